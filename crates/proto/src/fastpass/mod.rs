//! Fastpass (Perry, Ousterhout, Balakrishnan, Shah, Fugal: *Fastpass: A Centralized "Zero-Queue"
//! Datacenter Network*, SIGCOMM 2014).
//!
//! An arbiter decides when each packet of the network is sent and which path it takes. Hosts
//! request time slots from it. It gives them out as maximal matchings of sources and destinations.
//! It spreads the packets of a slot over the paths so that none meets another.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * [`allocate`]: time slots for pairs of hosts (§3)
//! * [`colour`], [`paths`]: paths for the packets of a slot (§4)
//! * `arbiter`: the arbiter and its standby (§5)
//! * `timetable`: requests of a host, and its schedule
//! * `epoch`: the model that the pHost study calls Fastpass, both ends
//! * `flows`: data and retransmission
//!
//! Destinations are [`AckReceiver`](crate::toolkit::AckReceiver)s.
//!
//! `docs/protocols/fastpass.md` lists the packets and the deviations from the paper.

pub mod allocate;
pub mod colour;
pub mod config;
pub mod paths;
pub mod wire;

mod arbiter;
mod epoch;
mod flows;
mod host;
mod stats;
mod timetable;

#[cfg(test)]
mod tests;

pub use arbiter::{FastpassArbiter, allocation_bytes};
pub use config::{Fastpass, FastpassConfig};
pub use host::FastpassHost;
pub use stats::FastpassStats;

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate, FabricNeeds, Need};
use rampmeter_types::{FabricFacts, ForwardOnly, Stage, SwitchFacts, Transport};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Network, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::{Segmentation, phost_study_buffer};
use config::AllocationUnit;

/// Returns the rate of the arbiter's link: allocations to all hosts take at most nine tenths of a
/// batch.
fn arbiter_rate(keys: &FastpassConfig, facts: &FabricFacts) -> ArbiterRate {
    match keys.allocation_unit {
        AllocationUnit::Slots => {
            let slot = facts.access_rate.tx_time(keys.packet.wire());
            let slot = slot.scale_floor(keys.slot_milli.into(), 1_000);
            let most = (slot * u64::from(keys.batch)).scale_floor(9, 10).as_ps().max(1);
            let bits =
                u128::from(allocation_bytes(facts.n_hosts, keys.packet.header, keys.batch).get())
                    * 8;
            let bps = (bits * 1_000_000_000_000).div_ceil(most.into());
            ArbiterRate::AtLeast(u64::try_from(bps).unwrap_or(u64::MAX))
        }
        AllocationUnit::Epochs => ArbiterRate::Slowest,
    }
}

/// The Fastpass transport.
#[derive(Clone, Copy, Debug)]
pub struct FastpassTransport;

impl Transport for FastpassTransport {
    const NAME: &'static str = "fastpass";
    const HAS_ARBITERS: bool = true;
    type Config = Fastpass;
    type Header = wire::FastpassHeader;
    type Host = FastpassHost;
    type Arbiter = FastpassArbiter;
    type SwitchProgram = ForwardOnly;

    fn switch_program(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

impl RegisteredTransport for FastpassTransport {
    type Keys = FastpassConfig;
    const TITLE: &'static str = "Fastpass";
    const SUMMARY: &'static str = "An arbiter that grants time slots and paths (Fastpass).";
    const WIRE: TransportId = TransportId(4);
    const STAGES: &'static [&'static Stage] = host::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "an arbiter, for each slot",
        host_state: "flows, requests by destination, allocated slots",
        switch_functions: "follow source routes",
        after_loss: "the packet gets another slot",
    };

    fn segmentation(keys: &FastpassConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// Returns the ports of the pHost study, 36 KB at 10 Gbit/s. The paper's arbiter may have to
    /// answer every host in every batch. So it has enough interfaces of the speed of the fastest
    /// link for that. The link of the epoch model is as fast as a host's.
    fn needs(keys: &FastpassConfig, facts: &FabricFacts) -> FabricNeeds {
        let (rate, place) = (arbiter_rate(keys, facts), ArbiterPlace::FirstRack);
        let arbiter = ArbiterNeed { rate, place };
        FabricNeeds {
            buffer: Need::Prefer(phost_study_buffer(keys.packet.wire(), facts)),
            control_class: true,
            priorities: 2,
            arbiters: vec![arbiter; keys.arbiters as usize],
            ..FabricNeeds::default()
        }
    }

    /// Arbiters between real hosts are as fast as hosts, and choose no paths. Arbiters grant
    /// the time of hosts' links, so that links between switches must not be slower.
    fn configure(keys: FastpassConfig, site: &Site) -> Result<Fastpass, BadKey> {
        let packet = site.packet(keys.packet);
        let keys = FastpassConfig { packet, ..keys };
        let (rate, paths) = match &site.deployment {
            Deployment::Hosts(_) => (site.facts.access_rate, None),
            Deployment::Network(Network { slow_link: Some(slower), .. }) => {
                return Err(slower.refusal(Self::NAME));
            }
            // A slot on the wire has a byte for its path.
            Deployment::Network(Network { paths: Some(paths), .. })
                if u32::from(paths.tor_uplinks) * u32::from(paths.agg_uplinks) > 256 =>
            {
                let n = u32::from(paths.tor_uplinks) * u32::from(paths.agg_uplinks);
                let expected = format!("a transport for {n} paths between racks");
                return Err(BadKey::new("name", expected, "fastpass, which supports 256"));
            }
            Deployment::Network(Network { slowest, fastest, paths, .. }) => {
                (arbiter_rate(&keys, &site.facts).resolve(*slowest, *fastest), paths.clone())
            }
        };
        let time =
            rate.tx_time(allocation_bytes(site.facts.n_hosts, keys.packet.header, keys.batch));
        keys.derive(&site.slot_facts(), paths, time)
    }

    fn assumptions(config: &Self::Config, _site: &Site) -> Assumptions {
        Assumptions {
            full_bisection: true,
            one_rate: true,
            one_round_trip: true,
            one_clock: config.config.allocation_unit == AllocationUnit::Slots,
            chooses_paths: config.paths.is_some()
                && config.config.allocation_unit == AllocationUnit::Slots,
            ..Assumptions::default()
        }
    }

    fn describe(config: &Fastpass) -> Vec<DerivedValue> {
        vec![
            DerivedValue::time("slot", config.slot),
            DerivedValue::time("compute", config.compute),
            DerivedValue::count("planned-ahead-slots", config.lead_slots),
            DerivedValue::time("epoch", config.epoch),
            DerivedValue::time("timeout", config.rto),
            DerivedValue::time("retry", config.retry),
            DerivedValue::time("watchdog", config.watchdog),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
