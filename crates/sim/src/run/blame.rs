//! Causes of messages' times: notes of the run loop.

use rampmeter_types::{
    Event, Header, MsgId, NodeId, PayloadRef, Permission, SwitchProgram, Time, Transport,
};

use super::Sim;
use crate::arrival::Arrival;
use crate::blame::{Blame, CompletingPacket, PermissionInput};
use crate::clock::HostClock;
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
            self.fabric.watch.transits = Some(Box::new(self.fabric.new_transits()));
            let has_queues = self.n_pull_fast_hosts == 0;
            self.blame = Some(Box::new(Blame::new(n_hosts as usize, has_queues, tiers)));
        }
        self
    }

    /// A message has been submitted to its endpoint.
    #[inline(never)]
    pub(super) fn blame_submission(&mut self, msg: MsgId, arrival: &Arrival) {
        let Some(blame) = &mut self.blame else { return };
        let number = arrival.number.unwrap_or(msg.get());
        let Arrival { src, dst, size, .. } = *arrival;
        blame.submit(self.now, msg, number, src, dst, size.get());
        self.note_permission(src.get(), dst, msg, PermissionInput::Own);
    }

    /// Notes the permissions of messages of `station` after an input: those to `peer`, or all.
    pub(super) fn note_permissions(
        &mut self,
        station: u32,
        peer: Option<NodeId>,
        input: PermissionInput,
    ) {
        let mut idx = 0;
        while let Some((dst, msg)) = self.blame.as_ref().and_then(|b| b.open_of(station, idx)) {
            if peer.is_none_or(|peer| peer == dst) {
                self.note_permission(station, dst, msg, input);
            }
            idx += 1;
        }
    }

    /// Notes permissions that are due and whose timer fires later at this instant: a request for a
    /// packet uses them.
    #[inline]
    pub(super) fn note_due_permissions(&mut self, station: u32) {
        if !<F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED || self.blame.is_none() {
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

    fn note_permission(&mut self, station: u32, dst: NodeId, msg: MsgId, input: PermissionInput) {
        let Some(blame) = &mut self.blame else { return };
        let state = &self.stations[station];
        let permission = state.endpoint.permission(state.clock.local(self.now), dst, msg);
        let permission = permission.map(|permission| in_global_time(permission, &state.clock));
        blame.on_permission(self.now, msg, permission, input);
    }

    /// A packet has been handled: a control packet may change permissions. Those of arbiters
    /// concern messages to all receivers.
    pub(super) fn note_response(&mut self, station: u32, handle: Handle) {
        if self.blame.is_none() {
            return;
        }
        let packet = self.fabric.pool.get(handle);
        if packet.payload.len > 0 {
            return;
        }
        let is_host = packet.src.get() < self.fabric.topology().n_hosts();
        let peer = is_host.then_some(packet.src);
        let sent = self.fabric.pool.stamps(handle).sent;
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
        let Self { blame: Some(blame), fabric, now, .. } = self else { return };
        if payload.len == 0 {
            return;
        }
        let Some(transits) = &fabric.watch.transits else { return };
        let until = has_started.then(|| transits.last_until());
        let state = &self.stations[station];
        let local = state.clock.local(*now);
        blame.on_sent(*now, payload, until, |dst| {
            let permission = state.endpoint.permission(local, dst, payload.msg)?;
            Some(in_global_time(permission, &state.clock))
        });
    }

    /// Takes drops from the log of transmissions, and removes entries that no packet can change.
    #[inline(never)]
    pub(super) fn process_transits(&mut self) {
        let Self { blame: Some(blame), fabric, now, .. } = self else { return };
        let Some(transits) = &mut fabric.watch.transits else { return };
        for (msg, tier) in transits.drops.drain(..) {
            blame.on_drop(MsgId::new(msg), tier);
        }
        if transits.is_full() {
            let horizon = fabric.pool.oldest().unwrap_or(*now).min(*now);
            blame.advance(horizon, transits);
            transits.clean(horizon);
        }
    }
}

/// Returns a permission of a host with its time by the clock of the run.
fn in_global_time(permission: Permission, clock: &HostClock) -> Permission {
    match permission {
        Permission::GrantedUntil(at, stage) if at != Time::NEVER => {
            Permission::GrantedUntil(clock.global(at), stage)
        }
        other => other,
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the number of transmissions that have begun, modulo cleanings.
    pub(super) fn n_started(&self) -> u32 {
        self.watch.transits.as_ref().map_or(0, |transits| transits.n_started())
    }
}
