//! Tables of a plan: keys, defaults and documentation.

use rampmeter_core::fabric::PfcClasses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::warmup::WarmUp;
use crate::topology::names::NodeName;

/// The `fabric.pfc` table: switches that pause the other end of a link instead of dropping.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcSpec {
    /// Kind of threshold: static if `xoff-bytes` is given, else dynamic.
    pub mode: Option<PfcMode>,
    /// The dynamic threshold: this many times what is free of the shared memory.
    pub alpha: Option<f64>,
    /// The static threshold.
    pub xoff_bytes: Option<u64>,
    /// Distance below the threshold at which the other end is resumed; two full packets if left
    /// out.
    pub hysteresis_bytes: Option<u64>,
    /// Memory of each port beyond the threshold; what its link needs if left out.
    pub headroom_bytes: Option<u64>,
    /// Classes that a pause stops.
    pub classes: Option<PfcClasses>,
}

/// The threshold of priority flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PfcMode {
    /// A multiple of the shared memory that is free.
    Dynamic,
    /// A fixed number of bytes.
    Static,
    /// No pauses.
    Off,
}

/// Time at which forwarding begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchingSpec {
    /// After the last bit of the packet.
    StoreAndForward,
    /// After the header.
    CutThrough,
    /// At once: links are token buckets.
    Shaped,
}

/// The `run` table: when a run ends, and what it records.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RunSpec {
    /// Time after the last arrival until the run ends although flows are unfinished.
    pub drain_us: f64,
    /// Interval at which queues and links are sampled; none if it is 0. If left out, the longest of
    /// 10 us, eight packets of the slowest host and a twentieth of a round trip.
    pub sample_us: Option<f64>,
    /// Interval of the rates of flows in `rates.parquet`, and of windows and credits in
    /// `windows.parquet`; these are not written if it is 0.
    pub rates_us: f64,
    /// Pass every packet through the wire codec.
    pub paranoid: bool,
    /// The file, in the folder of results, to which packets are captured.
    pub capture: Option<String>,
    /// The hosts whose packets are captured, by name or number; arbiters are numbered after hosts.
    /// All if left out.
    pub capture_hosts: Option<Vec<NodeName>>,
    /// Maximum number of packets that are captured.
    pub capture_packets: u64,
    /// Record each link at every sample, not only tiers.
    pub links: bool,
    /// The file, in the folder of results, that a timeline is written to.
    pub trace: Option<String>,
    /// Start of the timeline.
    pub trace_from_us: f64,
    /// End of the timeline; that of the run if left out.
    pub trace_until_us: Option<f64>,
    /// Maximum number of events of the timeline.
    pub trace_events: u64,
    /// The hosts that the timeline shows, by name or number; arbiters are numbered after hosts. All
    /// if left out.
    pub trace_hosts: Option<Vec<NodeName>>,
    /// The switches whose ports the timeline shows, by name or number. All if left out.
    pub trace_switches: Option<Vec<NodeName>>,
    /// Write the table of the paths that the packets of flows took.
    pub paths: bool,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            drain_us: 1e6,
            sample_us: None,
            rates_us: 0.0,
            paranoid: false,
            capture: None,
            capture_hosts: None,
            capture_packets: 1_000_000,
            links: false,
            trace: None,
            trace_from_us: 0.0,
            trace_until_us: None,
            trace_events: 2_000_000,
            trace_hosts: None,
            trace_switches: None,
            paths: false,
        }
    }
}

/// The `measure` table: which flows the statistics of the summary count. Every flow is in the
/// table of flows in any case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MeasureSpec {
    /// First flows that the statistics leave out.
    pub warmup_flows: WarmUp,
    /// Count only flows that finish before this one arrives (numbered from 1).
    pub finished_before_arrival: Option<u64>,
}

/// The `load` table: the full packets that loads count, whatever those of the transport are. With
/// the same table transports of different headers have the same arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoadSpec {
    /// Payload of a packet.
    pub payload_bytes: u64,
    /// Its headers.
    pub header_bytes: u64,
}

/// The `clocks` table: how far the clocks of hosts start apart, and drift.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClocksSpec {
    /// Clocks start up to this far apart.
    pub offset_us: f64,
    /// Clocks run fast or slow by up to this.
    pub drift_ppm: f64,
}

/// The `faults` table: what links do to packets, and what fails when.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FaultsSpec {
    /// Probability that a link loses a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Probability that a link delivers a packet twice.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Probability that a link holds a packet back.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub reorder: f64,
    /// Longest time that packets and twins are held back.
    pub delay_us: f64,
    /// Links that lose, double and delay packets otherwise than every link does.
    pub links: Vec<LinkFaultSpec>,
    /// Failures and repairs.
    pub outages: Vec<OutageSpec>,
    /// Links that become faster, slower, longer or shorter.
    pub changes: Vec<LinkChangeSpec>,
    /// Time that a link must have been down, or up again, until switches route by it.
    pub rerouting_us: f64,
}

impl Default for FaultsSpec {
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            delay_us: 0.0,
            links: Vec::new(),
            outages: Vec::new(),
            changes: Vec::new(),
            rerouting_us: 1_000.0,
        }
    }
}

/// A link in a plan: its ends, such as `h0-s3`, or its place in the topology.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(untagged, expecting = "expected the ends of a link, such as \"h0-s3\", or its number")]
pub enum LinkName {
    /// Its place.
    Number(u32),
    /// Its ends.
    Ends(String),
}

impl std::fmt::Display for LinkName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Ends(ends) => f.write_str(ends),
        }
    }
}

/// Faults of one link, in both directions, instead of those of every link.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkFaultSpec {
    /// The link: its ends, such as `h0-s3`, or its place in the topology.
    pub link: LinkName,
    /// Probability that it loses a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub loss: f64,
    /// Probability that it delivers a packet twice.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub duplicate: f64,
    /// Probability that it holds a packet back.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub reorder: f64,
    /// Longest time that packets and twins are held back.
    #[serde(default)]
    pub delay_us: f64,
}

/// A change of one link at a time. Keys that are left out stay as they were.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkChangeSpec {
    /// The link: its ends, such as `h0-s3`, or its place in the topology.
    pub link: LinkName,
    /// Time of the change.
    pub at_us: f64,
    /// Its rate in Gbit/s.
    #[schemars(range(min = 1e-6, max = 1e5))]
    pub gbps: Option<f64>,
    /// Its rate in Gbit/s from the second end to the first; `gbps` if left out.
    #[schemars(range(min = 1e-6, max = 1e5))]
    pub gbps_back: Option<f64>,
    /// Its propagation in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub propagation_ns: Option<f64>,
}

/// A failure of one link, host, switch or arbiter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutageSpec {
    /// The link that fails: its ends, such as `h0-s3`, or its place in the topology.
    pub link: Option<LinkName>,
    /// The host that fails, by name or number: all its links fail, and it remembers everything.
    pub host: Option<NodeName>,
    /// The switch that fails, by name or number.
    pub switch: Option<NodeName>,
    /// The arbiter that crashes, by number: its link fails, and it restarts without state.
    pub arbiter: Option<u32>,
    /// Start of the failure.
    pub from_us: f64,
    /// Time of the repair; never if left out.
    pub until_us: Option<f64>,
}
