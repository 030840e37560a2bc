//! dcPIM (Cai, Arashloo, Agarwal: *dcPIM: Near-Optimal Proactive Datacenter Transport*, SIGCOMM
//! 2022).
//!
//! Receivers and senders match k channels in r rounds of request, grant and accept, for a data
//! phase that runs while the next matching is made. In its data phase a receiver sends one token a
//! packet to each matched source. Flows up to one bandwidth-delay product skip all this and are
//! sent at once.
//!
//! * [`config`]: parameters (§3.6), the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * [`schedule`]: stages, rounds, phases by the host's own clock (§3.3)
//! * [`matching`]: the choice among requests or grants (§3.1, §3.4, §3.5)
//! * `backlog`: how long a congested core holds up data
//! * `receiver`, `rx_flow`, `sources`, `link`: requests, accepts, tokens, windows, arrival (§3.2)
//! * `sender`: announcement, grants, service of tokens, retransmission (§3.2, §3.5)
//!
//! `docs/protocols/dcpim.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod matching;
pub mod schedule;
pub mod wire;

mod backlog;
mod host;
mod link;
mod order;
mod receiver;
mod rx_flow;
mod sender;
mod sources;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Dcpim, DcpimConfig};
pub use host::DcpimHost;
pub use stats::DcpimStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Need};
use rampmeter_types::{FabricFacts, ForwardOnly, Stage};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Peers, RegisteredTransport, SharedTime, Site,
    TransportRules,
};
use crate::toolkit::{Segmentation, dcpim_study_buffer, transport};
use config::Rounds;

transport! {
    /// The dcPIM transport.
    pub struct DcpimTransport {
        const NAME = "dcpim";
        type Config = Dcpim;
        type Header = wire::DcpimHeader;
        type Host = DcpimHost;
        type SwitchProgram = ForwardOnly;
    }
}

impl RegisteredTransport for DcpimTransport {
    type Keys = DcpimConfig;
    const TITLE: &'static str = "dcPIM";
    const SUMMARY: &'static str =
        "Rounds of parallel iterative matching between hosts, then tokens (dcPIM).";
    const WIRE: TransportId = TransportId(1);
    const STAGES: &'static [&'static Stage] = sender::permission::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers, for senders that a matching gave them",
        host_state: "flows, tokens, channels and offers of the matching",
        switch_functions: "serve classes",
        after_loss: "the token expires with its phase, and the receiver sends another",
    };

    fn segmentation(keys: &DcpimConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// With strict rounds, hosts ignore messages of another stage than their own. They may never
    /// match if their clocks are apart by more than the slack of a stage. The slack is the stage
    /// less half a control round trip.
    ///
    /// Ports hold as many bandwidth-delay products as in the paper's study.
    fn needs(keys: &DcpimConfig, facts: &FabricFacts) -> FabricNeeds {
        let slack = keys.stage(facts).saturating_sub(facts.control_rtt / 2);
        let clock_skew_max = (keys.stage_check == Rounds::Strict).then_some(slack);
        FabricNeeds {
            buffer: Need::Prefer(dcpim_study_buffer(facts)),
            control_class: true,
            priorities: 8,
            clock_skew_max,
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: DcpimConfig, site: &Site) -> Result<Dcpim, BadKey> {
        let packet = site.packet(keys.packet);
        let dcpim = DcpimConfig { packet, ..keys }.derive(&site.facts)?;
        let (may_sleep, may_delay_data) = match &site.deployment {
            Deployment::Hosts(_) => (true, true),
            Deployment::Network(network) => (false, network.is_narrow),
        };
        Ok(Dcpim { may_sleep, may_delay_data, ..dcpim })
    }

    fn adapt_to_peers(own: Dcpim, network: &Dcpim, peers: &Peers) -> Dcpim {
        own.adapt_to_peers(network, peers)
    }

    fn assumptions(_config: &Dcpim, _site: &Site) -> Assumptions {
        Assumptions { one_round_trip: true, one_window_each: true, ..Assumptions::default() }
    }

    fn shared_time(own: &Dcpim, network: &Dcpim) -> Option<SharedTime> {
        let (shared, fastest) = (network.phase(), own.phase());
        (fastest < shared).then_some(SharedTime { name: "phase", shared, fastest })
    }

    fn describe(config: &Dcpim) -> Vec<DerivedValue> {
        vec![
            DerivedValue::packets("bdp", config.bdp),
            DerivedValue::time("matching-stage", config.stage),
            DerivedValue::count("stages", config.stages.into()),
            DerivedValue::time("phase", config.phase()),
            DerivedValue::packets("short-flow", config.short_max),
            DerivedValue::packets("channel", config.channel_packets),
            DerivedValue::time("grace", config.grace),
            DerivedValue::time("data-timeout", config.own_pair().data_timeout),
            DerivedValue::time("window-timeout", config.own_pair().window_timeout),
            DerivedValue::time("retry", config.retry),
            DerivedValue::time("keepalive", config.keepalive),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
