//! cosy (Agarwal, Cai, Agarwal, Shmoys, Vahdat: *Building a Partial Communication Synchrony
//! Abstraction on Asynchronous Datacenters: Fundamental Limits, Mechanisms, and Applications*).
//!
//! A message is delivered within a bound that is known when it is submitted, or rejected. Every
//! link is divided into K virtual links and every host has K slots. A receiver answers a request
//! with a rsvp, which reserves a virtual link on each link of a path that the switches choose. The
//! sender sends along that path at a K-th of the link's rate, which bounds every queue. A network
//! without a free path turns a rsvp into a reject.
//!
//! * [`analysis`]: the bounds and the sustainable load of the paper's theorems
//! * [`config`]: parameters, the `paper` and `rsvp` presets, derived values
//! * [`wire`]: the packets
//! * [`CosySwitch`]: virtual links, the choice of paths, releases, rejects
//! * `sender`: requests, slots and their pace, the end of a message at its bound
//! * `receiver`: held requests, slots, failures inferred from packets that do not arrive
//!
//! `docs/protocols/cosy.md` lists the packets and the deviations from the paper.

pub mod analysis;
pub mod config;
pub mod wire;

mod host;
mod receiver;
mod sender;
mod stats;
mod switch;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use config::{Cosy, CosyConfig};
pub use host::CosyHost;
pub use stats::CosyStats;
pub use switch::CosySwitch;

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Interface, Need};
use rampmeter_types::{Bytes, FabricFacts, NoArbiter, Stage, SwitchFacts, Transport};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Network, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::Segmentation;
use config::PathFacts;

/// The cosy transport.
#[derive(Clone, Copy, Debug)]
pub struct CosyTransport;

impl Transport for CosyTransport {
    const NAME: &'static str = "cosy";
    type Config = Cosy;
    type Header = wire::CosyHeader;
    type Host = CosyHost;
    type Arbiter = NoArbiter<wire::CosyHeader, Cosy>;
    type SwitchProgram = CosySwitch;

    fn switch_program(config: &Arc<Cosy>, switch: SwitchFacts) -> CosySwitch {
        CosySwitch::new(config, switch)
    }
}

impl RegisteredTransport for CosyTransport {
    type Keys = CosyConfig;
    const TITLE: &'static str = "cosy";
    const SUMMARY: &'static str = "Delivery within a bound, or a reject (cosy).";
    const WIRE: TransportId = TransportId(5);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers and switches, which reserve a virtual link on each link",
        host_state: "messages, K slots in each direction, queued requests",
        switch_functions: "keep reservations",
        after_loss: "the message fails at once, as its bound is lost",
    };

    fn segmentation(keys: &CosyConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    fn reply_bytes(_keys: &CosyConfig) -> Bytes {
        Bytes::ZERO
    }

    /// Packets of a slot are sent at fixed times, so they must not wait in interfaces.
    fn needs(_keys: &CosyConfig, _facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds {
            interface: Need::Require(Interface::Pull),
            control_class: true,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    /// The switches between real hosts do not take part, so only the slots at both ends bound
    /// queues. The bound is that of a network in which only hosts' links are full. Hosts that are
    /// not on their processor are granted a round trip each way. Links slower than those of hosts
    /// could have no virtual link.
    fn configure(keys: CosyConfig, site: &Site) -> Result<Cosy, BadKey> {
        let keys = CosyConfig { best_effort: site.lower, ..keys };
        match &site.deployment {
            Deployment::Network(Network { rails: 2.., .. }) => {
                let expected = "a transport for hosts with several links";
                Err(BadKey::new("name", expected, Self::NAME))
            }
            Deployment::Network(Network { slow_link: Some(slower), .. }) => {
                Err(slower.refusal(Self::NAME))
            }
            &Deployment::Network(Network { switches, rate_ratio, ports, .. }) => {
                keys.derive(&site.facts, PathFacts { switches, ratio: rate_ratio, ports })
            }
            &Deployment::Hosts(packet) => {
                let slack = Some(site.facts.control_rtt);
                let paths = PathFacts { switches: 3, ratio: 1, ports: 1 };
                CosyConfig { packet, slack, ..keys }.derive(&site.facts, paths)
            }
        }
    }

    /// Returns the longest queue of data (lemma 3.3, appendix A), and one more packet at each
    /// switch for a control packet ahead of it.
    fn buffer_min(config: &Cosy) -> Bytes {
        let CosyConfig { slots, packet, .. } = config.config;
        let PathFacts { switches, ratio, .. } = config.paths;
        analysis::queue_bound(switches, slots.saturating_mul(ratio) + 1, packet.wire())
    }

    fn assumptions(_config: &Self::Config, _site: &Site) -> Assumptions {
        Assumptions {
            one_rate: true,
            one_round_trip: true,
            chooses_paths: true,
            ..Assumptions::default()
        }
    }

    fn describe(config: &Cosy) -> Vec<DerivedValue> {
        let bound = |bytes| config.bound(Bytes::new(bytes));
        vec![
            DerivedValue::time("frame", config.frame),
            DerivedValue::count("slots-of-a-message", config.slots_per_message_max.into()),
            DerivedValue::time("hold", config.hold),
            DerivedValue::time("queueing", config.queueing),
            DerivedValue::time("slack", config.slack),
            DerivedValue::time("pause", config.pause),
            DerivedValue::time("bound-of-1-kb", bound(1_000)),
            DerivedValue::time("bound-of-128-kb", bound(128_000)),
        ]
    }
}
