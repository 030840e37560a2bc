//! Tables of a plan: keys, defaults and documentation.

use rampmeter_types::fabric::PfcClasses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::warmup::WarmUp;
use crate::topology::names::NodeName;

/// The `fabric.pfc` table: switches that pause the other end of a link instead of dropping.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcSpec {
    /// Kind of threshold; default: `static` with `xoff-bytes`, else `dynamic`.
    pub threshold: Option<PfcThresholdKind>,
    /// Dynamic threshold, as a factor of the free shared memory (HPCC §5.1: 11 %).
    pub alpha: Option<f64>,
    /// Static threshold.
    pub xoff_bytes: Option<u64>,
    /// Distance below the threshold at which a pause ends, if the headroom is empty; default: two
    /// full packets.
    pub hysteresis_bytes: Option<u64>,
    /// Memory of each port above the threshold. Default: the bytes of two link delays and two
    /// packets, or three with cut-through. Less loses packets.
    pub headroom_bytes: Option<u64>,
    /// Paused classes. Default: `all` for transports with data in the highest class (TCP family),
    /// whose `express-bytes` is then 0, else `data`.
    pub classes: Option<PfcClasses>,
}

/// The threshold of priority flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PfcThresholdKind {
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
    /// Immediately: links are token buckets.
    Shaped,
}

/// The `run` table: when a run ends, and what it records.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RunSpec {
    /// Time after the last arrival at which the run ends with unfinished flows.
    pub drain_us: f64,
    /// Interval of samples of queues and links; 0 for none. By default the maximum of 10 us, eight
    /// packets of the slowest host and a 20th of a round trip.
    pub sample_us: Option<f64>,
    /// Interval of the rates of flows in `rates.parquet`, and of windows and credits in
    /// `windows.parquet`; 0 for no such tables.
    pub rates_us: f64,
    /// Encodes and decodes every packet, and compares.
    pub paranoid: bool,
    /// Name of a file in the folder of results for captured packets, such as `run.pcapng`.
    pub capture: Option<String>,
    /// Captured hosts by number or name; arbiters are numbered after hosts. All if left out.
    pub capture_hosts: Option<Vec<NodeName>>,
    /// Maximum number of captured packets. Then the capture ends, the run continues and the
    /// manifest reports it.
    pub capture_packets: u64,
    /// Records each link at every sample, in `links.parquet`.
    pub links: bool,
    /// Name of a file in the folder of results for a timeline, such as `run.perfetto-trace`.
    pub timeline: Option<String>,
    /// Start of the timeline.
    pub timeline_from_us: f64,
    /// End of the timeline; default: that of the run.
    pub timeline_until_us: Option<f64>,
    /// Maximum number of events, after which the timeline ends and the manifest reports it.
    pub timeline_events: u64,
    /// Hosts of the timeline by number or name; arbiters are numbered after hosts. All if left out.
    pub timeline_hosts: Option<Vec<NodeName>>,
    /// Switches of the timeline by number or name. All if left out.
    pub timeline_switches: Option<Vec<NodeName>>,
    /// Writes the paths of the data packets of each flow, in `paths.parquet`.
    pub paths: bool,
    /// Writes the causes of the time of each flow, in `blame.parquet` and `blockers.parquet`. Those
    /// of the starts of flows that wait for others are in `releases.parquet`.
    #[serde(skip_serializing_if = "is_false")]
    pub blame: bool,
    /// Threads among which the network is divided; results are the same. By default a long run uses
    /// all cores, unless others run at the same time.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing)]
    pub threads: Option<u32>,
}

fn is_false(value: &bool) -> bool {
    !value
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
            timeline: None,
            timeline_from_us: 0.0,
            timeline_until_us: None,
            timeline_events: 2_000_000,
            timeline_hosts: None,
            timeline_switches: None,
            paths: false,
            blame: false,
            threads: None,
        }
    }
}

/// The `measure` table: which flows the statistics of the summary count. Every flow is in the
/// table of flows in any case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MeasureSpec {
    /// Number of first flows that the summary leaves out, `mser-5`, or `auto`.
    pub warmup_flows: WarmUp,
    /// Number N of a flow, from 1. The summary counts only flows that complete before flow N
    /// arrives.
    pub completed_before_flow: Option<u64>,
}

/// The `load` table: the full packets that loads count, whatever those of the transport are. With
/// the same table transports of different headers have the same arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoadSpec {
    /// Payload of a packet.
    pub payload_bytes: u64,
    /// Headers of a packet, in bytes.
    pub header_bytes: u64,
}

/// The `clocks` table: how far the clocks of hosts start apart, and drift.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClocksSpec {
    /// Maximum difference of host clocks at the start.
    pub offset_us: f64,
    /// Maximum drift of host clocks.
    pub drift_ppm: f64,
}

/// The `faults` table: what links do to packets, and what fails when.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FaultsSpec {
    /// Probability that a link loses a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: f64,
    /// Probability that a link duplicates a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Probability that a link delays a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub reorder: f64,
    /// Maximum delay of delayed packets and duplicates.
    pub delay_us: f64,
    /// Faults of one link instead, in both directions: `{ link = "h0-s0", loss = 0.001 }`, also
    /// `duplicate`, `reorder` and `delay-us`.
    pub links: Vec<LinkFaultSpec>,
    /// Failures, by number or name: `{ link = "s0-s4", from-us = 10, until-us = 20 }` or `{ switch
    /// = 1, from-us = 5 }`.
    pub outages: Vec<OutageSpec>,
    /// Changes of links: `{ link = "s0-s4", at-us = 50, gbps = 25, propagation-ns = 5000 }`.
    /// `gbps-back` is the rate from the second end.
    pub changes: Vec<LinkChangeSpec>,
    /// Time that a link must have been down, or up again, until switches route by it (detection and
    /// convergence).
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
    /// Index of the link in the topology.
    Number(u32),
    /// Ends of the link.
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
    /// Probability that the link loses a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub loss: f64,
    /// Probability that the link duplicates a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub duplicate: f64,
    /// Probability that the link delays a packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    pub reorder: f64,
    /// Maximum delay of delayed packets and duplicates.
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
    /// Rate in Gbit/s.
    #[schemars(range(min = 1e-6, max = 1e5))]
    pub gbps: Option<f64>,
    /// Rate in Gbit/s from the second end to the first; default: `gbps`.
    #[schemars(range(min = 1e-6, max = 1e5))]
    pub gbps_back: Option<f64>,
    /// Propagation in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub propagation_ns: Option<f64>,
}

/// A failure of one link, host, switch or arbiter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutageSpec {
    /// The link that fails: its ends, such as `h0-s3`, or its place in the topology.
    pub link: Option<LinkName>,
    /// The host that fails, by name or number: all its links fail, and its state is kept.
    pub host: Option<NodeName>,
    /// The switch that fails, by name or number.
    pub switch: Option<NodeName>,
    /// The arbiter that crashes, by number: its link fails, and it restarts without state.
    pub arbiter: Option<u32>,
    /// Start of the failure.
    pub from_us: f64,
    /// Time of the repair; default: never.
    pub until_us: Option<f64>,
    /// Time between the starts of failures of one that repeats, such as a link that flaps; needs
    /// `until-us` and `count`.
    pub every_us: Option<f64>,
    /// Number of failures, 1 to 10000.
    pub count: Option<u32>,
}
