//! Parts of a summary from which warnings follow.

use rampmeter_metrics::{BinStats, Stats};
use schemars::JsonSchema;
use serde::Serialize;

/// Flows by how they ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowCounts {
    /// Flows submitted.
    pub submitted: u64,
    /// Flows delivered in full.
    pub delivered: u64,
    /// Flows that their senders aborted.
    pub failed: u64,
    /// Flows that the network did not accept.
    pub rejected: u64,
    /// Flows that the end of the run cut off.
    pub unfinished: u64,
    /// Flows never submitted: they waited for others to the end. They are not among those
    /// submitted.
    pub not_started: u64,
    /// Flows counted in the statistics.
    pub counted: u64,
}

/// Slowdown against one ideal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Slowdown {
    /// Statistics of all flows counted.
    pub overall: Option<Stats>,
    /// Statistics by multiples of one BDP.
    pub bdp: Vec<BinStats>,
    /// Statistics by powers of ten of bytes.
    pub decades: Vec<BinStats>,
    /// Statistics by deciles of the flows counted.
    pub deciles: Vec<BinStats>,
    /// Statistics by size in packets, in classes that grow by a factor of seven.
    pub classes: Vec<BinStats>,
}

/// A deadlock of priority flow control.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadlockReport {
    /// Time at which the last of its ports was paused, in picoseconds.
    pub since_ps: u64,
    /// The paused ports, each by its two ends, as `s0>s1`. Each holds packets for the next, and the
    /// last for the first.
    pub ports: Vec<String>,
}
