//! NDP (Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik: *Re-architecting datacenter
//! networks and stacks for low latency and high performance*, SIGCOMM 2017).
//!
//! A sender sends its first window at line rate without a handshake. A port whose data queue is
//! full cuts the payload off a packet and sends the header ahead of all data. So the receiver
//! detects every packet at once. It acknowledges packets that arrive, refuses those that were
//! trimmed, and paces all further packets by pulls, at the rate of its link.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * `sender`: first window, pulls, retransmissions (section 3)
//! * `path`: permutations of paths, and paths that are excluded (section 3)
//! * `receiver`: acknowledgements, and the pull queue with its pacer (section 3)
//!
//! Ports are the simulator's ([`Queueing::Trimming`](rampmeter_types::Queueing)).
//! `docs/protocols/ndp.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod wire;

mod host;
mod path;
mod pulls;
mod receiver;
mod sender;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Ndp, NdpConfig};
pub use host::NdpHost;
pub use stats::NdpStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need, Overflow};
use rampmeter_types::{Bytes, FabricFacts, Stage, Transport, TrimmingProgram};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Peers, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::{Segmentation, transport};

transport! {
    /// The NDP transport.
    pub struct NdpTransport {
        const NAME = "ndp";
        type Config = Ndp;
        type Header = wire::NdpHeader;
        type Host = NdpHost;
        type SwitchProgram = TrimmingProgram;
    }
}

impl RegisteredTransport for NdpTransport {
    type Keys = NdpConfig;
    const TITLE: &'static str = "NDP";
    const SUMMARY: &'static str =
        "Switches that trim packets, receivers that pull at the rate of their link (NDP).";
    const WIRE: TransportId = TransportId(12);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers, by a pull for each packet; the first window without",
        host_state: "flows, unanswered packets, a queue of pulls, scores of paths",
        switch_functions: "trim packets",
        after_loss: "the trimmed header shows it at once; a timeout finds lost headers",
    };
    const ON_HOSTS: bool = false;

    fn segmentation(keys: &NdpConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// An acknowledgement carries the pull that is due. If pulls are further apart than packets,
    /// each is late for its acknowledgement and a separate packet.
    fn reply_bytes(keys: &NdpConfig) -> Bytes {
        let full = keys.packet.wire().get();
        match keys.pull_bytes {
            Some(bytes) if bytes > full => keys.control * 2,
            _ => keys.control,
        }
    }

    /// Returns the ports with a data queue of eight packets and a header queue of as many bytes
    /// (section 3).
    fn needs(keys: &NdpConfig, _facts: &FabricFacts) -> FabricNeeds {
        let (data, trim) = keys.fabric_model.memory(keys.packet.wire());
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(data)),
            overflow: Need::Prefer(Overflow::TailDrop),
            express_max: Need::Require(0),
            trim: Some(trim),
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    /// Switches between real hosts do not trim packets, and NDP needs that.
    fn configure(keys: NdpConfig, site: &Site) -> Result<Ndp, BadKey> {
        let Deployment::Network(network) = &site.deployment else {
            let expected = "a transport that runs without switches that trim";
            return Err(BadKey::new("name", expected, Self::NAME));
        };
        let paths = network.paths.as_ref().map_or(1, |p| p.tor_uplinks * p.agg_uplinks);
        let config = keys.derive(&site.facts, paths)?;
        let rtt = site.facts.data_rtt;
        if config.rto < rtt {
            let expected = format!("at least a round trip, {} us", rtt.as_us_f64());
            return Err(BadKey::new("rto-us", expected, config.rto.as_us_f64()));
        }
        Ok(config)
    }

    fn adapt_to_peers(own: Ndp, _network: &Ndp, peers: &Peers) -> Ndp {
        Ndp { peers: Some(peers.clone()), ..own }
    }

    fn assumptions(config: &Ndp, _site: &Site) -> Assumptions {
        Assumptions {
            paced_by_receivers: true,
            chooses_paths: config.paths > 1,
            ..Assumptions::default()
        }
    }

    fn describe(config: &Ndp) -> Vec<DerivedValue> {
        vec![
            DerivedValue::packets("window-initial", config.window),
            DerivedValue::time("pull-spacing", config.pull_interval),
            DerivedValue::time("timeout", config.rto),
            DerivedValue::count("paths", config.paths.into()),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
