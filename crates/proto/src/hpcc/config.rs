//! HPCC's parameters and what they imply for one fabric.

use rampmeter_types::{Bytes, FabricFacts, NodeId, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{AttemptLimit, Padding, RttEstimator, Segmentation, forget_after};

/// Recovery of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// The receiver drops packets after a missing one. A NACK makes the sender return to that
    /// packet, as in RDMA over Converged Ethernet.
    GoBackN,
    /// The receiver keeps them, and the sender retransmits only missing ones.
    SelectiveRepeat,
}

/// HPCC's parameters. [`HpccConfig::paper`] and [`HpccConfig::dcpim_study`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HpccConfig {
    /// The share of the fullest link that windows aim at: eta.
    #[schemars(range(min = 0.1, max = 1.0))]
    pub eta: f64,
    /// Additive steps in a row before a multiplicative one: maxStage.
    #[schemars(range(min = 0, max = 1000))]
    pub max_stage: u32,
    /// Flows that a link should carry: N. The additive step is W_init (1 - eta) / N.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub flows_per_link: u32,
    /// The additive step in bytes, W_AI; default: from `flows-per-link`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub step_bytes: Option<u64>,
    /// The base round-trip time T; default: that of the longest path.
    #[serde(rename = "base-rtt-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 1e6))]
    pub base_rtt: Option<Span>,
    /// Recovery of lost packets.
    pub recovery: Recovery,
    /// Minimum retransmission timeout; default: 32 base round trips.
    #[serde(rename = "rto-min-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 1e6))]
    pub timeout_min: Option<Span>,
    /// Maximum retransmission timeout, and the one before a round trip is measured; default: 1024
    /// base round trips.
    #[serde(rename = "rto-max-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 1e6))]
    pub timeout_max: Option<Span>,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Bytes of telemetry charged to each packet in addition, on its whole path.
    #[serde(rename = "int-bytes")]
    #[schemars(with = "u64", range(min = 0, max = 1_000))]
    pub int: Bytes,
    /// Timeouts in a row after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
}

impl Default for HpccConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for HpccConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", Self::paper), ("dcpim-study", Self::dcpim_study)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "dcpim-study", gbps: 100, payload: None, window: Some(72_500) }];
}

impl HpccConfig {
    /// The paper's parameters (§5.1: eta 95 %, maxStage 5). Its W_AI of 80 bytes is the formula of
    /// §3.3 with 100 flows at 100 Gbit/s and its round trip of 13 us. Packets of 1 KB carry 42
    /// bytes of telemetry for five switches (§4.1).
    pub fn paper() -> Self {
        Self {
            eta: 0.95,
            max_stage: 5,
            flows_per_link: 100,
            step_bytes: None,
            base_rtt: None,
            recovery: Recovery::GoBackN,
            timeout_min: None,
            timeout_max: None,
            packet: PacketSizes::new(1_000, 40),
            int: Bytes::new(42),
            attempts_max: 24,
        }
    }

    /// The parameters of the dcPIM paper's figures. The base round trip is 12 us at 100 Gbit/s, and
    /// packets are as long as those of the other transports there.
    pub fn dcpim_study() -> Self {
        Self {
            base_rtt: Some(Span::from_us(12)),
            packet: PacketSizes::new(1_460, 40),
            ..Self::paper()
        }
    }

    /// Segmentation of messages: telemetry takes its bytes of every packet, regardless of its path.
    pub(super) fn segmentation(&self) -> Segmentation {
        let header = self.packet.header + self.int;
        PacketSizes { header, ..self.packet }.segmentation(Padding::Exact)
    }
}

/// Windows of a flow, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// The first window and the largest: the bytes that a link of the pair carries in T (§3.3).
    pub max: f64,
    /// The additive step W_AI.
    pub step: f64,
    /// The unloaded round trip (T).
    pub rtt: Span,
}

/// The parameters of HPCC on one fabric, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpcc {
    /// The parameters.
    pub config: HpccConfig,
    /// The base round-trip time T.
    pub rtt: Span,
    /// Windows of flows at the host's own rate.
    pub windows: Windows,
    /// Rates and round trips of peers; `None` if all are the host's own.
    pub peers: Option<Peers>,
    /// Least retransmission timeout.
    pub timeout_min: Span,
    /// Longest retransmission timeout.
    pub timeout_max: Span,
    /// Time without packets of its sender after which a receiver drops a flow.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
}

impl HpccConfig {
    /// Checks the parameters and derives windows and timeouts on a fabric.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts) -> Result<Hpcc, BadKey> {
        check_ranges(&self)?;
        let rtt = self.base_rtt.unwrap_or(facts.data_rtt);
        let windows = self.windows(facts.access_rate, rtt);
        let timeout_min = self.timeout_min.unwrap_or(rtt * 32);
        let timeout_max = self.timeout_max.unwrap_or((rtt * 1024).max(timeout_min));
        if timeout_max < timeout_min {
            let expected = format!("at least {} (`rto-min-us`)", timeout_min.as_us_f64());
            return Err(BadKey::new("rto-max-us", expected, timeout_max.as_us_f64()));
        }
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let forget_timeout =
            attempt_limit.forget_timeout(forget_after(timeout_max, self.attempts_max));
        Ok(Hpcc {
            rtt,
            windows,
            peers: None,
            timeout_min,
            timeout_max,
            forget_timeout,
            attempt_limit,
            config: self,
        })
    }

    /// Returns the windows of a flow between hosts of which the slower has the rate `rate`.
    fn windows(&self, rate: Rate, rtt: Span) -> Windows {
        let max = rate.as_bps() as f64 * rtt.as_ps() as f64 / 8e12;
        let share = (1.0 - self.eta) / f64::from(self.flows_per_link);
        let step = self.step_bytes.map_or(max * share, |bytes| bytes as f64);
        // A step below a byte would prevent the window from growing.
        Windows { max, step: step.max(1.0), rtt }
    }
}

impl Hpcc {
    /// Returns the windows of a flow to `dst`.
    pub(super) fn windows_to(&self, dst: NodeId) -> Windows {
        let pair = |peers: &Peers| {
            let facts = peers.facts_to(dst);
            let rtt = self.config.base_rtt.unwrap_or(facts.data_rtt);
            self.config.windows(facts.access_rate, rtt)
        };
        self.peers.as_ref().map_or(self.windows, pair)
    }

    /// Returns the retransmission timeouts of a flow to `dst`.
    pub(super) fn timeouts_to(&self, dst: NodeId) -> RttEstimator {
        let HpccConfig { base_rtt, timeout_min, timeout_max, .. } = self.config;
        let of_pair = |time, written: Option<Span>| match &self.peers {
            Some(peers) if base_rtt.or(written).is_none() => peers.scale_data_time(time, dst),
            _ => time,
        };
        let least = of_pair(self.timeout_min, timeout_min);
        RttEstimator::new(least, of_pair(self.timeout_max, timeout_max).max(least))
    }

    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.segmentation()
    }
}
