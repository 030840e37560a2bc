//! Memory of the next events, which is loaded ahead of them.
//!
//! *Problem*: in a network of 1024 hosts the state of ports, packets and routes is larger than the
//! second level of the cache. An arrival at a switch reads a packet and the port that it came
//! from, then a forwarding entry, then the output port. Each may be a miss.
//!
//! *This way*: as a bucket of the event queue opens, the packets and ports of the next bucket are
//! requested. Three events ahead of an arrival they are there, and tell which forwarding entry or
//! host is next. One event ahead the entry is there, and tells the output port.
//!
//! *Hazards*: it costs instructions for each event. Up to [`SMALL_MAX`] hosts and arbiters, whose
//! state is in the cache, only the packet and port of the third event ahead are requested. Requests
//! read nothing that later events change, except the queue of events, so results do not depend on
//! them. An event that is added to a bucket later is not seen.

use rampmeter_core::Transport;

use super::Sim;
use crate::engine::event::{ARRIVE, parts};
use crate::engine::prefetch;
use crate::probe::Probe;
use crate::source::Source;

/// Number of events by which the packet, port or next hop of an arrival is loaded ahead.
const NEXT_HOP_EVENTS: usize = 3;
/// Number of events by which the output port of an arrival is loaded ahead.
const EGRESS_EVENTS: usize = 1;
/// Maximum number of hosts and arbiters of a network whose state is in the cache.
const SMALL_MAX: u32 = 256;

/// State of requests for memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookAhead {
    is_large: bool,
    /// The bucket from which events were requested last.
    bucket: u64,
}

impl LookAhead {
    /// Creates the state for a network with as many hosts and arbiters.
    pub(super) fn new(n_stations: u32) -> Self {
        Self { is_large: n_stations > SMALL_MAX, bucket: u64::MAX }
    }
}

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Requests memory of the events after the one that has just been popped.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.look_ahead.is_large && self.look_ahead.bucket != self.wheel.bucket() {
            self.look_into_next_bucket();
        }
        if let Some(next) = self.wheel.upcoming(NEXT_HOP_EVENTS)
            && let (ARRIVE, via, handle) = parts(next)
        {
            if !self.look_ahead.is_large {
                return self.fabric.prefetch_arrival(via, handle);
            }
            if let Some(station) = self.fabric.prefetch_next_hop(via, handle) {
                prefetch(&self.stations[station]);
            }
        }
        if self.look_ahead.is_large
            && let Some(next) = self.wheel.upcoming(EGRESS_EVENTS)
            && let (ARRIVE, via, handle) = parts(next)
        {
            self.fabric.prefetch_egress(via, handle);
        }
    }

    /// Requests packets and ports of the next bucket. Those of events without a packet cost less
    /// than to tell events apart.
    #[inline(never)]
    fn look_into_next_bucket(&mut self) {
        self.look_ahead.bucket = self.wheel.bucket();
        for code in self.wheel.next_bucket() {
            let (_, number, handle) = parts(code);
            self.fabric.prefetch_arrival(number, handle);
        }
    }
}
