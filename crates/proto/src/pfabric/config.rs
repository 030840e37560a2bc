//! pFabric's parameters and what they imply for one fabric.

use rampmeter_types::{FabricFacts, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{
    AttemptLimit, Padding, Segmentation, check_range, keepalive, paused_probe_interval,
    retransmit_gap,
};

/// Reaction of a flow to several consecutive timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutReaction {
    /// The flow sends probes without payload until one is answered (§4.3).
    Probe,
    /// The flow sends one packet a timeout, as before. The authors' simulator does this.
    Persist,
}

/// Priority of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbePriority {
    /// Priority of acknowledgements.
    First,
    /// Priority of the flow's data, so that a probe arrives when data would.
    Flow,
}

/// Ports, paths and interfaces that pFabric needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FabricModel {
    /// Ports of two bandwidth-delay products, interfaces that pull packets (§5.1).
    Paper,
    /// The same ports, and interfaces that queue and drop like them, as in the pHost study.
    Phost,
    /// Ports of 142 packets, one path a message and such interfaces, as in the CAPTON study.
    Capton,
}

/// pFabric's parameters. [`PfabricConfig::paper`] and [`PfabricConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PfabricConfig {
    /// First window in packets; default: one bandwidth-delay product.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub window_initial: Option<u32>,
    /// Maximum window in packets; default: five quarters of the first.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub window_max: Option<u32>,
    /// Retransmission timeout; default: three round trips.
    #[serde(rename = "rto-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 1e6))]
    pub rto: Option<Span>,
    /// Packets that must have arrived after a missing one for it to be lost; if left out, only
    /// timeouts find losses (§4.3).
    #[schemars(range(min = 1, max = 60))]
    pub duplicate_acks: Option<u32>,
    /// Consecutive timeouts after which a flow starves.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub starvation_timeouts: u32,
    /// Reaction of a starving flow.
    pub starvation_reaction: TimeoutReaction,
    /// The priority of its probes.
    pub probe_priority: ProbePriority,
    /// Ports, paths and interfaces that it needs; keys of the fabric have precedence.
    pub fabric_model: FabricModel,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Timeouts in a row after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
}

impl Default for PfabricConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for PfabricConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", Self::paper), ("reference", Self::reference), ("ns-2", Self::ns2)];
    const SETTINGS: &'static [Setting] = &[
        Setting { preset: "reference", gbps: 10, payload: None, window: Some(18_000) },
        Setting { preset: "ns-2", gbps: 10, payload: None, window: None },
    ];
}

impl PfabricConfig {
    /// The paper's design (§4.3). Its windows of 12 packets are one bandwidth-delay product at 10
    /// Gbit/s. Its timeout of 45 us is three of its round trips of 14.6 us (§5.1). That is the time
    /// of a round trip and of full buffers on the path.
    pub fn paper() -> Self {
        Self {
            window_initial: None,
            window_max: None,
            rto: None,
            duplicate_acks: None,
            starvation_timeouts: 5,
            starvation_reaction: TimeoutReaction::Probe,
            probe_priority: ProbePriority::First,
            fabric_model: FabricModel::Paper,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 400,
        }
    }

    /// The parameters of the ns-2 scripts of the study of over-subscribed cores (CAPTON §V).
    /// Windows are at most two bandwidth-delay products of 71 packets, and timeouts three round
    /// trips of 85.2 us.
    pub fn ns2() -> Self {
        Self {
            window_initial: Some(70),
            window_max: Some(141),
            rto: Some(Span::from_ns(255_600)),
            duplicate_acks: Some(3),
            probe_priority: ProbePriority::Flow,
            fabric_model: FabricModel::Capton,
            padding: Padding::Full,
            ..Self::paper()
        }
    }

    /// The behaviour of the pHost study's simulator at 10 Gbit/s.
    pub fn reference() -> Self {
        Self {
            window_initial: Some(12),
            window_max: Some(15),
            rto: Some(Span::from_us(45)),
            starvation_reaction: TimeoutReaction::Persist,
            fabric_model: FabricModel::Phost,
            padding: Padding::Full,
            attempts_max: 50_000,
            ..Self::paper()
        }
    }
}

/// The parameters of pFabric on one fabric, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pfabric {
    /// The parameters.
    pub config: PfabricConfig,
    /// First window in packets.
    pub window: u32,
    /// Maximum window in packets.
    pub window_max: u32,
    /// The rates of all hosts; `None` if none is slower.
    pub peers: Option<Peers>,
    /// Retransmission timeout.
    pub rto: Span,
    /// Time without packets of its source after which a destination drops a flow.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// Pause between probes for a message for which the destination has no credit.
    pub paused_probe_interval: Span,
    /// Time between probes for two paused messages, if many are due.
    pub retransmit_gap: Span,
}

impl PfabricConfig {
    /// Checks the parameters and derives windows and timeout on a fabric.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts) -> Result<Pfabric, BadKey> {
        check_ranges(&self)?;
        let Windows { first: window, max: window_max } = self.windows(facts);
        check_range(
            "window-max",
            window_max.into(),
            window.into()..=1_000_000,
            "window-initial to 1000000",
        )?;
        let rto = self.rto.unwrap_or(facts.data_rtt * 3);
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let by_attempts = rto * (u64::from(attempt_limit.attempts) + 2) + facts.data_rtt;
        let forget_timeout = attempt_limit.forget_timeout(by_attempts);
        let paused_probe_interval = paused_probe_interval(keepalive(facts, self.packet.wire()));
        let retransmit_gap = retransmit_gap(facts);
        Ok(Pfabric {
            window,
            window_max,
            peers: None,
            rto,
            forget_timeout,
            attempt_limit,
            paused_probe_interval,
            retransmit_gap,
            config: self,
        })
    }
}

impl PfabricConfig {
    /// Returns the first and the largest window, in packets, between hosts of one rate.
    fn windows(&self, facts: &FabricFacts) -> Windows {
        let bdp = || facts.bdp_packets(self.packet.wire()).clamp(1, 1_000_000);
        let window = self.window_initial.unwrap_or_else(bdp);
        let max = self.window_max.unwrap_or((window * 5 / 4).clamp(window, 1_000_000));
        Windows { first: window, max }
    }
}

/// Windows of a flow, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// The first one.
    pub(super) first: u32,
    /// The largest one.
    pub(super) max: u32,
}

impl Pfabric {
    /// The first and the largest window to a host, in packets. Those that follow from the network
    /// are of the slower of the two ends.
    pub(super) fn windows_to(&self, dst: NodeId) -> Windows {
        match &self.peers {
            Some(peers) => self.config.windows(&peers.facts_to(dst)),
            None => Windows { first: self.window, max: self.window_max },
        }
    }

    /// Returns the timeout of flows to a host.
    #[inline]
    pub(super) fn rto_to(&self, dst: NodeId) -> Span {
        match &self.peers {
            Some(peers) if self.config.rto.is_none() => peers.scale_data_time(self.rto, dst),
            _ => self.rto,
        }
    }

    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }
}
