//! Fastpass (Perry, Ousterhout, Balakrishnan, Shah, Fugal: *Fastpass: A Centralized "Zero-Queue"
//! Datacenter Network*, SIGCOMM 2014).
//!
//! An arbiter decides when each packet of the network is sent and which way it takes. Hosts ask it
//! for time slots; it gives them out as maximal matchings of sources and destinations and spreads
//! the packets of a slot over the paths so that none meets another.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, what follows from them
//! * [`wire`]: the packets
//! * [`allocate`]: time slots for pairs of hosts (§3)
//! * [`colour`], [`paths`]: paths for the packets of a slot (§4)
//! * `arbiter`: the arbiter and its standby (§5)
//! * `timetable`: what a host asks for and keeps to
//! * `epoch`: the model that the pHost study calls Fastpass, both ends
//! * `flows`, `receiver`: data, acknowledgements, retransmission
//!
//! `docs/protocols/fastpass.md` lists the packets, and what differs from the paper.

pub mod allocate;
pub mod colour;
pub mod config;
pub mod paths;
pub mod wire;

mod arbiter;
mod epoch;
mod flows;
mod host;
mod receiver;
mod timetable;

#[cfg(test)]
mod tests;

pub use arbiter::{FastpassArbiter, allocations_time};
pub use config::{Fastpass, FastpassConfig};
pub use host::FastpassHost;
pub use paths::PathPlan;

use std::sync::Arc;

use rampmeter_core::{Family, Passive, SwitchFacts};

/// The Fastpass family.
#[derive(Clone, Copy, Debug)]
pub struct FastpassFamily;

impl Family for FastpassFamily {
    const NAME: &'static str = "fastpass";
    const HAS_ARBITERS: bool = true;
    type Config = Fastpass;
    type Header = wire::FastpassHeader;
    type Host = FastpassHost;
    type Arbiter = FastpassArbiter;
    type Hop = Passive;

    fn hop(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> Passive {
        Passive
    }
}

/// What a host counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastpassStats {
    /// Slots that no packet was left for.
    pub slots_unused: u64,
    /// Slots that had begun when the host heard of them.
    pub slots_late: u64,
    /// Times that the host asked its arbiter anew.
    pub resets: u64,
    /// Times that it turned to the other arbiter because its own was silent.
    pub fail_overs: u64,
}

impl FastpassStats {
    /// Tells `each` every count with its name, in the order above.
    fn tell(self, each: &mut dyn FnMut(&'static str, u64)) {
        let Self { slots_unused, slots_late, resets, fail_overs } = self;
        let all = [
            ("slots_unused", slots_unused),
            ("slots_late", slots_late),
            ("resets", resets),
            ("fail_overs", fail_overs),
        ];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}
