//! pFabric (Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker: *pFabric: Minimal
//! Near-Optimal Datacenter Transport*, SIGCOMM 2013).
//!
//! Packets carry how much of their flow remains. Ports send the earliest packet of the flow with
//! the least and drop the packet of the flow with the most. So hosts need hardly any rate control:
//! flows start at line rate, and only those that starve slow down.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, what follows from them
//! * [`wire`]: the packets
//! * `sender`: window, timeouts, probe mode (§4.3)
//! * `receiver`: arrival, an acknowledgement a packet
//!
//! The queues are the simulator's ([`Queueing::Ranks`](rampmeter_core::Queueing)).
//! `docs/protocols/pfabric.md` lists the packets, and what differs from the paper.

pub mod config;
pub mod wire;

mod host;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use config::{Pfabric, PfabricConfig};
pub use host::PfabricHost;

use std::sync::Arc;

use rampmeter_core::{Family, NoArbiter, Ranked, SwitchFacts};

/// The pFabric family.
#[derive(Clone, Copy, Debug)]
pub struct PfabricFamily;

impl Family for PfabricFamily {
    const NAME: &'static str = "pfabric";
    type Config = Pfabric;
    type Header = wire::PfabricHeader;
    type Host = PfabricHost;
    type Arbiter = NoArbiter<wire::PfabricHeader, Pfabric>;
    type Hop = Ranked;

    fn hop(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> Ranked {
        Ranked
    }
}

/// What a host counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfabricStats {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes sent.
    pub probes: u64,
}

impl PfabricStats {
    /// Tells `each` every count with its name, in the order above.
    fn tell(self, each: &mut dyn FnMut(&'static str, u64)) {
        let Self { timeouts, probes } = self;
        let all = [("timeouts", timeouts), ("probes", probes)];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}
