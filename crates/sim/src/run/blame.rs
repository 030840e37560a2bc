//! Causes of messages' times: notes of the run loop.

use rampmeter_types::{
    Event, Header, MsgId, NodeId, PayloadRef, Permission, SwitchProgram, Time, Transport,
};

use super::{Sim, Station};
use crate::arrival::Arrival;
use crate::blame::{Blame, CompletingPacket, PermissionInput};
use crate::engine::Handle;
use crate::fabric::Fabric;
use crate::probe::Probe;
use crate::source::Source;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Returns a simulation of a watched transport that notes events of ports if `notes_ports`, and
    /// records the causes of messages' times if `records_causes`.
    pub fn with_observers(mut self, notes_ports: bool, records_causes: bool) -> Self {
        self.fabric.watch.is_on = notes_ports;
        if records_causes {
            let (n_hosts, tiers) = (self.fabric.topology().n_hosts(), self.fabric.pausing_tiers());
            let (transits, n_started) = (self.fabric.new_transits(), self.fabric.n_started());
            self.fabric.watch.keep_transits(transits, n_started);
            let has_queues = self.n_pull_fast_hosts == 0;
            self.blame = Some(Box::new(Blame::new(n_hosts as usize, has_queues, tiers)));
        }
        self
    }

    /// A message has been submitted to its endpoint.
    #[inline(never)]
    pub(super) fn blame_submission(&mut self, msg: MsgId, arrival: &Arrival) {
        let Self { blame: Some(blame), stations, now, .. } = self else { return };
        let number = arrival.number.unwrap_or(msg.get());
        let Arrival { src, dst, size, .. } = *arrival;
        blame.submit(*now, msg, number, src, dst, size.get());
        let permission = stations[src.get()].permission(*now, dst, msg);
        blame.on_permission(*now, msg, permission, PermissionInput::Own);
    }

    /// Notes the permissions of messages of `station` after an input: those to `peer`, or all.
    pub(super) fn note_permissions(
        &mut self,
        station: u32,
        peer: Option<NodeId>,
        input: PermissionInput,
    ) {
        let Self { blame: Some(blame), stations, now, .. } = self else { return };
        let state = &stations[station];
        blame.on_permissions(*now, station, peer, input, |dst, msg| {
            state.permission(*now, dst, msg)
        });
    }

    /// Notes permissions that are due and whose timer fires later at this instant: a request for a
    /// packet uses them.
    #[inline]
    pub(super) fn note_due_permissions(&mut self, station: u32) {
        if !<F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED
            || !self.blame.as_ref().is_some_and(|blame| blame.has_open(station))
        {
            return;
        }
        let state = &self.stations[station];
        if state.endpoint.permission_deadline() <= state.clock.local(self.now) {
            self.note_permissions(station, None, PermissionInput::Deadline);
        }
    }

    /// Paranoid mode: no message of `station` got permission without an input that is noted.
    pub(super) fn check_permissions(&self, station: u32) {
        let Some(blame) = &self.blame else { return };
        let state = &self.stations[station];
        let local = state.clock.local(self.now);
        if state.endpoint.permission_deadline() <= local {
            // Its event is of this instant, and follows.
            return;
        }
        let open = (0..).map_while(|idx| blame.open_of(station, idx));
        for (dst, msg) in open {
            let permission = state.endpoint.permission(local, dst, msg);
            let is_granted = !matches!(permission, None | Some(Permission::Awaited(_)));
            assert!(
                blame.is_granted(self.now, msg).is_none_or(|known| known == is_granted),
                "seed {}: message {} of host {station} got or lost permission unnoticed at {}",
                self.seed,
                msg.get(),
                self.now
            );
        }
    }

    /// A packet has been handled: a control packet may change permissions. Those of arbiters
    /// concern messages to all receivers.
    #[inline]
    pub(super) fn note_response(&mut self, station: u32, handle: Handle) {
        let packet = self.fabric.pool.get(handle);
        if packet.payload.len > 0 || self.blame.is_none() {
            return;
        }
        let is_host = packet.src.get() < self.fabric.topology().n_hosts();
        let peer = is_host.then_some(packet.src);
        let sent = self.fabric.pool.sent(handle);
        self.note_permissions(station, peer, PermissionInput::Packet(sent));
    }

    /// The last byte of a message may have arrived in a packet.
    pub(super) fn blame_completion(&mut self, handle: Handle) {
        let Self { blame: Some(blame), fabric, now, ledger, .. } = self else { return };
        let msg = fabric.pool.get(handle).payload.msg;
        if let Some(transits) = &fabric.watch.transits
            && ledger.has_all(msg)
        {
            let sent = fabric.pool.sent(handle);
            let of = CompletingPacket { msg, handle, sent };
            blame.on_complete(*now, &of, transits, |port| fabric.port_facts(port));
        }
    }

    /// Shows the probe the causes of a message that has been delivered.
    pub(super) fn report_causes(&mut self, event: Event) {
        if let Event::Delivered { msg, .. } = event
            && let Some(blame) = &mut self.blame
            && let Some(causes) = blame.on_delivered(self.now, msg)
        {
            self.probe.on_blame(&causes);
        }
    }

    /// A packet of `station` has been handed to its interface, and its transmission has begun if
    /// `has_started`.
    #[inline]
    pub(super) fn note_sent(&mut self, station: u32, payload: PayloadRef, has_started: bool) {
        if !<F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
            return;
        }
        let Self { blame: Some(blame), fabric, stations, now, .. } = self else { return };
        let Some(transits) = fabric.watch.transits.as_ref().filter(|_| payload.len > 0) else {
            return;
        };
        let until = has_started.then_some(transits.last_until);
        let state = &stations[station];
        blame.on_sent(*now, payload, until, |dst| state.permission(*now, dst, payload.msg));
    }

    /// Shows the probe events of ports. Takes drops from the log of transmissions, and removes
    /// entries that no packet can change.
    #[inline(never)]
    pub(super) fn process_notes(&mut self) {
        let Self { blame, fabric, now, probe, .. } = self;
        for event in fabric.watch.events.drain(..) {
            probe.on_port(&event);
        }
        let n_started = fabric.n_started();
        if let (Some(blame), Some(transits)) = (blame, &mut fabric.watch.transits) {
            for (msg, tier) in transits.drops.drain(..) {
                blame.on_drop(MsgId::new(msg), tier);
            }
            if n_started >= fabric.watch.clean_at {
                let horizon = fabric.pool.oldest().unwrap_or(*now).min(*now);
                blame.advance(horizon, transits);
                transits.clean(horizon);
                fabric.watch.defer_cleaning(n_started);
            }
        }
        fabric.watch.set_processed();
    }
}

impl<F: Transport> Station<F> {
    /// Returns the permission of a message to `dst`, with its time by the clock of the run.
    #[inline]
    fn permission(&self, now: Time, dst: NodeId, msg: MsgId) -> Option<Permission> {
        let permission = self.endpoint.permission(self.clock.local(now), dst, msg)?;
        Some(match permission {
            Permission::GrantedUntil(at, stage) => {
                Permission::GrantedUntil(self.clock.global(at), stage)
            }
            other => other,
        })
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the number of transmissions that have begun.
    pub(super) fn n_started(&self) -> u64 {
        self.stats().hops
    }
}
