//! pFabric (Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker: *pFabric: Minimal
//! Near-Optimal Datacenter Transport*, SIGCOMM 2013).
//!
//! Packets carry how much of their flow remains. Ports send the earliest packet of the flow with
//! the least and drop the packet of the flow with the most. So hosts need hardly any rate control:
//! flows start at line rate, and only those that starve slow down.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * `sender`: window, timeouts, probe mode (§4.3)
//!
//! Destinations are [`AckReceiver`](crate::toolkit::AckReceiver)s.
//!
//! The queues are the simulator's ([`Queueing::Ranks`](rampmeter_types::Queueing)).
//! `docs/protocols/pfabric.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod wire;

mod host;
mod sender;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Pfabric, PfabricConfig};
pub use host::PfabricHost;
pub use stats::PfabricStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Interface, Need, Spray};
use rampmeter_types::{FabricFacts, RankProgram, Stage};

use crate::keys::BadKey;
use crate::registered::{
    Deployment, DerivedValue, Peers, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::{CAPTON_PORT_PACKETS, Segmentation, transport, two_bdps};
use config::FabricModel;

transport! {
    /// The pFabric transport.
    pub struct PfabricTransport {
        const NAME = "pfabric";
        type Config = Pfabric;
        type Header = wire::PfabricHeader;
        type Host = PfabricHost;
        type SwitchProgram = RankProgram;
    }
}

impl RegisteredTransport for PfabricTransport {
    type Keys = PfabricConfig;
    const TITLE: &'static str = "pFabric";
    const SUMMARY: &'static str =
        "Ports that order and drop by remaining size, hosts at line rate (pFabric).";
    const WIRE: TransportId = TransportId(3);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "senders, at line rate",
        host_state: "flows with windows, a heap by remaining size",
        switch_functions: "order and drop by remaining size",
        after_loss: "a timeout of three round trips",
    };

    fn segmentation(keys: &PfabricConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// Returns the ports that hold two bandwidth-delay products (§5.1: 36 KB). The simulators of
    /// both studies hand the whole window to the interface of a host, which drops like a port.
    fn needs(keys: &PfabricConfig, facts: &FabricFacts) -> FabricNeeds {
        let packet = keys.packet.wire();
        let (buffer, interface, spray) = match keys.fabric_model {
            FabricModel::Paper => (two_bdps(packet, facts), Interface::Pull, Need::Any),
            FabricModel::Phost => (two_bdps(packet, facts), Interface::Queue, Need::Any),
            FabricModel::Capton => {
                (packet * CAPTON_PORT_PACKETS, Interface::Queue, Need::Prefer(Spray::Ecmp))
            }
        };
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(buffer)),
            spray,
            interface: Need::Prefer(interface),
            control_class: true,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: PfabricConfig, site: &Site) -> Result<Pfabric, BadKey> {
        let packet = site.packet(keys.packet);
        let config = PfabricConfig { packet, ..keys }.derive(&site.facts)?;
        let rtt = site.facts.data_rtt;
        if matches!(site.deployment, Deployment::Network(_)) && config.rto < rtt {
            let expected = format!("at least a round trip, {} us", rtt.as_us_f64());
            return Err(BadKey::new("rto-us", expected, config.rto.as_us_f64()));
        }
        Ok(config)
    }

    /// A window is a bandwidth-delay product of the slower end.
    fn adapt_to_peers(own: Pfabric, _network: &Pfabric, peers: &Peers) -> Pfabric {
        Pfabric { peers: Some(peers.clone()), ..own }
    }

    fn describe(config: &Pfabric) -> Vec<DerivedValue> {
        vec![
            DerivedValue::packets("window-initial", config.window),
            DerivedValue::packets("window-max", config.window_max),
            DerivedValue::time("timeout", config.rto),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
