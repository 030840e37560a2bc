//! Memory of the next events, which is loaded ahead of them.
//!
//! *Problem*: in a network of 1024 hosts the state of ports, packets and routes is larger than the
//! second level of the cache. An arrival at a switch reads a packet and the port that it came
//! from, then a forwarding entry, then the output port. Each may be a miss.
//!
//! *This way*: as a bucket of the event queue opens, the packets and ports of the next bucket are
//! requested. Three events ahead of an arrival they are in the cache, and the forwarding entry or
//! the host is requested that follows from them. One event ahead the output port is requested that
//! follows from the entry.
//!
//! *Hazards*: it costs instructions for each event. Up to [`SMALL_MAX`] hosts and arbiters, whose
//! state is in the cache, only the packet and port of the third event ahead are requested. Requests
//! change nothing, so results do not depend on them. An event that is added to a bucket later is
//! not seen.

use rampmeter_types::{Header, SwitchProgram, Transport};

use super::stations::Stations;
use crate::engine::event::{ARRIVE, decode};
use crate::engine::{Wheel, prefetch};
use crate::fabric::Fabric;

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

    /// Requests memory of the events after the one that has just been popped.
    #[inline]
    pub(super) fn request<F: Transport>(
        &mut self,
        wheel: &Wheel,
        fabric: &Fabric<F::Header, F::SwitchProgram>,
        stations: &Stations<F>,
    ) {
        if self.is_large && self.bucket != wheel.bucket() {
            self.bucket = wheel.bucket();
            request_next_bucket(wheel, fabric);
        }
        if let Some(next) = wheel.peek_ahead(NEXT_HOP_EVENTS)
            && let (ARRIVE, via, handle) = decode(next)
        {
            if !self.is_large {
                return fabric.prefetch_arrival(via, handle);
            }
            if let Some(station) = fabric.prefetch_next_hop(via, handle) {
                prefetch(&stations[station]);
            }
        }
        if self.is_large
            && let Some(next) = wheel.peek_ahead(EGRESS_EVENTS)
            && let (ARRIVE, via, handle) = decode(next)
        {
            fabric.prefetch_egress(via, handle);
        }
    }
}

/// Requests packets and ports of the next bucket. Those of events without a packet cost less than
/// a check of the kind of each.
#[inline(never)]
fn request_next_bucket<H: Header, P: SwitchProgram<H>>(wheel: &Wheel, fabric: &Fabric<H, P>) {
    for code in wheel.next_bucket() {
        let (_, number, handle) = decode(code);
        fabric.prefetch_arrival(number, handle);
    }
}
