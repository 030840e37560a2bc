//! Events of single ports of a fabric, for runs that are watched.
//!
//! The fabric has no probe. If [`SwitchProgram::IS_WATCHED`] is set it notes events with the
//! simulated time, and the simulation passes the notes to its probe after each event. If it is not
//! set, all of this compiles to nothing.

use rampmeter_types::{Header, Packet, SwitchProgram, Time};

use super::{DropReason, Fabric, Switching};
use crate::blame::{CLEANING_INTERVAL, Cause, HostPorts, PortFacts, TransitPaths};
use crate::engine::Handle;

/// Something that happened at a port.
#[derive(Clone, Copy, Debug)]
pub struct PortEvent<H> {
    /// Simulated time of the note.
    pub at: Time,
    /// The port, numbered as in [`Routes::end`](crate::topo::Routes::end).
    pub port: u32,
    /// The event.
    pub change: PortChange<H>,
}

/// Event at a port. A handle identifies one packet until that has arrived or was dropped.
#[derive(Clone, Copy, Debug)]
pub enum PortChange<H> {
    /// A packet takes its link. Express packets are reported ahead of time. If links are shaped,
    /// the idle time that is made up for counts as time of the transmission.
    TransmitStart {
        /// The packet.
        handle: Handle,
        /// The packet.
        packet: Packet<H>,
        /// Start of the transmission.
        from: Time,
        /// Time at which the link is free again, unless the packet is cut off.
        until: Time,
    },
    /// A packet has arrived over the link at a host or an arbiter.
    Arrival {
        /// The packet.
        handle: Handle,
        /// The packet.
        packet: Packet<H>,
    },
    /// The length of the queue has changed.
    QueueLength {
        /// Bytes, without the packet on the link.
        bytes: u32,
    },
    /// A packet is dropped.
    Drop {
        /// The packet.
        handle: Handle,
        /// The packet.
        packet: Packet<H>,
        /// The reason.
        reason: DropReason,
    },
    /// A packet that its link has brought is taken out of the fabric by the program of a switch.
    Consume {
        /// The packet.
        handle: Handle,
    },
    /// The packet on its link is cut off for another; the link is free.
    CutOff {
        /// The packet.
        handle: Handle,
        /// The packet, as long as it was.
        packet: Packet<H>,
    },
    /// A packet that is about to queue is marked: it has experienced congestion.
    Mark {
        /// The packet.
        handle: Handle,
        /// The packet, marked.
        packet: Packet<H>,
    },
    /// The link doubles a packet.
    Duplicate {
        /// The packet.
        handle: Handle,
        /// Handle of the duplicate.
        twin: Handle,
    },
    /// The link has failed.
    LinkDown,
    /// The link works again.
    LinkUp,
}

/// Events that have been noted and not yet shown.
#[derive(Debug)]
pub(crate) struct PortEventLog<H> {
    pub(crate) now: Time,
    /// True if events are noted.
    pub(crate) is_on: bool,
    pub(crate) events: Vec<PortEvent<H>>,
    /// The paths of packets, if the causes of messages' times are recorded.
    pub(crate) transits: Option<Box<TransitPaths>>,
    /// Number of transmissions from which on events and paths are processed: zero if there are
    /// events or drops.
    process_at: u64,
    /// Number of transmissions from which on old ones are removed from paths.
    pub(crate) clean_at: u64,
}

impl<H> PortEventLog<H> {
    pub(super) const fn new() -> Self {
        Self {
            now: Time::ZERO,
            is_on: true,
            events: Vec::new(),
            transits: None,
            process_at: u64::MAX,
            clean_at: u64::MAX,
        }
    }

    /// Records the paths of packets, after `n_started` transmissions.
    pub(crate) fn keep_transits(&mut self, transits: TransitPaths, n_started: u64) {
        self.transits = Some(Box::new(transits));
        self.defer_cleaning(n_started);
        self.set_processed();
    }

    /// Defers the next cleaning of paths by its interval after `n_started` transmissions.
    pub(crate) fn defer_cleaning(&mut self, n_started: u64) {
        self.clean_at = n_started + CLEANING_INTERVAL;
    }

    /// Notes that all drops have been processed.
    pub(crate) fn set_processed(&mut self) {
        self.process_at = if self.events.is_empty() { self.clean_at } else { 0 };
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Notes an event of a port.
    #[inline(always)]
    pub(super) fn record(&mut self, port: u32, change: impl FnOnce(&Self) -> PortChange<H>) {
        if P::IS_WATCHED && self.watch.is_on {
            let event = PortEvent { at: self.watch.now, port, change: change(self) };
            self.watch.events.push(event);
            self.watch.process_at = 0;
        }
    }

    /// Returns true if there are events or drops, or old transmissions should be removed.
    #[inline(always)]
    pub(crate) fn has_notes(&self) -> bool {
        self.stats.hops >= self.watch.process_at
    }

    /// Notes that a data packet of a message was dropped or trimmed at a port of this tier.
    pub(super) fn note_data_drop(&mut self, msg: u32, tier: u8) {
        if P::IS_WATCHED
            && let Some(transits) = &mut self.watch.transits
        {
            transits.drops.push((msg, tier));
            self.watch.process_at = 0;
        }
    }

    /// Calls `note` with the paths of packets, if they are recorded.
    #[inline(always)]
    pub(super) fn note_transit(&mut self, note: impl FnOnce(&mut TransitPaths)) {
        if P::IS_WATCHED
            && let Some(transits) = &mut self.watch.transits
        {
            note(transits);
        }
    }

    /// Puts a packet of a host or a program into the pool.
    #[inline(always)]
    pub(super) fn enter_pool(&mut self, packet: Packet<H>, now: Time) -> Handle {
        let has_data = packet.payload.len > 0;
        let handle = self.pool.insert(packet, now);
        self.stats.injected += 1;
        if has_data {
            self.note_transit(|transits| transits.on_enter(handle));
        }
        handle
    }

    /// Notes how much waits at a port.
    #[inline(always)]
    pub(super) fn note_queue(&mut self, port: u32) {
        self.record(port, |fabric| PortChange::QueueLength {
            bytes: fabric.ports[port as usize].queued,
        });
    }

    /// Returns the facts of a port on which the causes of times depend.
    pub(crate) fn port_facts(&self, port: u32) -> PortFacts {
        let (link, _) = self.routes.end(port);
        let link = self.topology.links()[link as usize];
        let of = &self.ports[port as usize];
        PortFacts {
            tier: of.tier,
            delay: of.delay,
            propagation: of.delay.min(link.propagation),
            idle_cause: match self.waits_idly() {
                true => Cause::Paused(of.tier),
                false => Cause::Queueing(of.tier),
            },
        }
    }

    /// Returns true if a port may be idle although packets are queued. It is paused, its link is
    /// down, or packets wait for their tails or for tokens.
    fn may_wait_idly(&self) -> bool {
        self.config.has_pauses()
            || self.config.switching != Switching::StoreAndForward
            || self.ports.iter().any(|port| port.is_irregular)
    }

    /// Returns the tier of each host's links if these may be idle while hosts may send.
    pub(crate) fn pausing_tiers(&self) -> Vec<u8> {
        if !self.may_wait_idly() {
            return Vec::new();
        }
        self.ports[..self.topology.n_hosts() as usize].iter().map(|port| port.tier).collect()
    }

    fn waits_idly(&self) -> bool {
        self.watch.transits.as_ref().is_some_and(|transits| transits.logs_control)
    }

    /// Returns an empty log of transmissions.
    pub(crate) fn new_transits(&self) -> TransitPaths {
        let waits_idly = self.may_wait_idly();
        let mut keeps_all = vec![waits_idly; self.ports.len()];
        let from =
            |host| HostPorts { from: self.routes.uplinks_of(host).collect(), to: Vec::new() };
        let mut of_hosts: Vec<HostPorts> = (0..self.topology.n_hosts()).map(from).collect();
        for (number, port) in (0..).zip(&self.ports) {
            if let Some(host) = of_hosts.get_mut(port.far_end as usize) {
                host.to.push(number);
            }
        }
        for port in of_hosts.iter().flat_map(|host| host.from.iter().chain(&host.to)) {
            keeps_all[*port as usize] = true;
        }
        TransitPaths::new(of_hosts, keeps_all, waits_idly)
    }
}
