//! NDP's parameters and what they imply for one fabric.

use rampmeter_types::fabric::{HeaderOverflow, Trim, TrimChoice};
use rampmeter_types::{Bytes, FabricFacts, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{AttemptLimit, Padding, Segmentation, forget_after, timeout_of};

/// Order in which a receiver pulls from its flows (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullOrder {
    /// Round robin.
    Fair,
    /// The flow with the fewest missing packets.
    ShortestFirst,
}

/// Reaction of senders to paths with many trimmed packets (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPenalty {
    /// A path with more than twice the mean share of packets trimmed or lost is not used for a
    /// while.
    Outliers,
    /// Senders do not react. The published simulator does this.
    None,
}

/// The ports that NDP needs of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FabricModel {
    /// Eight data packets are queued, and as many bytes of headers; ten headers are sent for one
    /// data packet. Headers that do not fit return to their sender (NDP, section 3).
    Paper,
    /// Memory of eight packets of 1500 bytes, that on the link included. As packets are longer by
    /// 64 bytes, seven fit. Headers are sent first, have memory of sixteen packets, and are dropped
    /// if they do not fit. The published simulator does this.
    Reference,
}

impl FabricModel {
    /// The memory of a port for data packets, and how it trims; `packet` is a full packet.
    pub(super) fn memory(self, packet: Bytes) -> (Bytes, Trim) {
        let paper = Trim::paper(packet);
        match self {
            Self::Paper => (packet * 8, paper),
            Self::Reference => {
                let counted = Bytes::new(packet.get().saturating_sub(UNCHARGED_BYTES));
                let waiting = Bytes::new((counted * 8).get().saturating_sub(packet.get()));
                let (waiting, headers) = (waiting.max(packet), counted * 16);
                let overflow = HeaderOverflow::Drop;
                (waiting, Trim { ratio: 0, choice: TrimChoice::Coin, headers, overflow, ..paper })
            }
        }
    }
}

/// NDP's parameters. [`NdpConfig::paper`] and [`NdpConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NdpConfig {
    /// Packets that a flow sends without a pull; default: one bandwidth-delay product.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub window_initial: Option<u32>,
    /// Bytes of its link that a receiver allows for each pull; default: a full packet.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub pull_bytes: Option<u64>,
    /// Order in which flows are pulled.
    pub pull_order: PullOrder,
    /// Reaction of senders to paths with many trimmed packets.
    pub path_penalty: PathPenalty,
    /// The ports that it needs of the fabric.
    pub fabric_model: FabricModel,
    /// Time after which a packet is retransmitted that was neither acknowledged nor refused;
    /// doubled up to four times. Default: a millisecond, at least 64 round trips.
    #[serde(rename = "rto-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 1e7))]
    pub rto: Option<Span>,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Length of acknowledgements, refusals and pulls.
    #[serde(rename = "control-bytes")]
    #[schemars(with = "u64", range(min = 1, max = 1_000))]
    pub control: Bytes,
    /// Timeouts in a row after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
}

impl Default for NdpConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for NdpConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", Self::paper), ("reference", Self::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 100, payload: None, window: Some(75_000) }];
}

/// Maximum number of times that consecutive timeouts double the next one.
const DOUBLINGS_MAX: u32 = 4;

/// Bytes that a packet takes on the link beyond those that the published simulator's ports count.
const UNCHARGED_BYTES: u64 = 64;
/// Control round trips in the timeout. The paper's 1 ms (section 3) is some 20 round trips of a
/// loaded network of 10 Gbit/s with packets of 9 KB.
const RTO_ROUND_TRIPS: u32 = 64;

impl NdpConfig {
    /// The paper's design (section 3), with packets of the length that the other transports use.
    pub fn paper() -> Self {
        Self {
            window_initial: None,
            pull_bytes: None,
            pull_order: PullOrder::Fair,
            path_penalty: PathPenalty::Outliers,
            fabric_model: FabricModel::Paper,
            rto: None,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            control: Bytes::new(64),
            attempts_max: 24,
        }
    }

    /// The behaviour of csg-htsim at 100 Gbit/s. It charges links 64 bytes of header in addition to
    /// packets of 1500 bytes, which have headers of 40 already. A flow sends 50 packets at once.
    /// Pulls are spaced by 1564 bytes at 99 % of the link's rate, which are 1580.
    pub fn reference() -> Self {
        Self {
            window_initial: Some(50),
            pull_bytes: Some(1_580),
            path_penalty: PathPenalty::None,
            fabric_model: FabricModel::Reference,
            rto: Some(Span::from_us(50_000)),
            padding: Padding::Full,
            packet: PacketSizes::new(1_460, 104),
            ..Self::paper()
        }
    }

    /// Checks the parameters and derives what follows from them on a fabric with `paths` ways
    /// between racks.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts, paths: u16) -> Result<Ndp, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let pull = self.pull_bytes.map_or(self.packet.wire(), Bytes::new);
        let rto = match self.rto {
            Some(rto) => rto,
            None => {
                let timeout = timeout_of(facts, RTO_ROUND_TRIPS, self.packet.wire());
                timeout.max(facts.data_rtt)
            }
        };
        Ok(Ndp {
            window: self.window(facts),
            peers: None,
            pull_interval: facts.access_rate.tx_time(pull),
            rto,
            paths: paths.max(1),
            forget_timeout: attempt_limit
                .forget_timeout(forget_after(rto * (1 << DOUBLINGS_MAX), self.attempts_max)),
            attempt_limit,
            config: self,
        })
    }

    /// Returns the number of packets that a flow between hosts of one rate sends without a pull.
    fn window(&self, facts: &FabricFacts) -> u32 {
        let bdp = || facts.bdp_packets(self.packet.wire()).clamp(1, 1_000_000);
        self.window_initial.unwrap_or_else(bdp)
    }
}

/// The parameters of NDP on one fabric, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ndp {
    /// The parameters.
    pub config: NdpConfig,
    /// Number of packets that a flow sends without a pull.
    pub window: u32,
    /// The rates of all hosts; `None` if none is slower.
    pub peers: Option<Peers>,
    /// Time between the pulls of a receiver.
    pub pull_interval: Span,
    /// Time after which a packet is retransmitted that was neither acknowledged nor refused.
    pub rto: Span,
    /// Paths between racks among which senders choose; with 1 the fabric chooses.
    pub paths: u16,
    /// Time without packets of its source after which a receiver drops a flow.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
}

impl Ndp {
    /// Returns the number of packets that a flow to `dst` sends without a pull: a bandwidth-delay
    /// product of the slower end. More would be trimmed at the port to a slower host.
    pub(super) fn window_to(&self, dst: NodeId) -> u32 {
        let pair = |peers: &Peers| self.config.window(&peers.facts_to(dst));
        self.peers.as_ref().map_or(self.window, pair)
    }

    /// Returns the timeout of flows to `dst` after `attempts` consecutive timeouts.
    #[inline]
    pub(super) fn timeout_to(&self, dst: NodeId, attempts: u32) -> Span {
        let rto = match &self.peers {
            Some(peers) if self.config.rto.is_none() => {
                let full = self.config.packet.wire();
                peers.scale_timeout(self.rto, RTO_ROUND_TRIPS, full, dst)
            }
            _ => self.rto,
        };
        rto * (1 << attempts.min(DOUBLINGS_MAX))
    }

    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }
}
