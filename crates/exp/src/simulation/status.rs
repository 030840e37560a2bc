//! Outcome of the simulation of a plan, before the summary is computed.

use rampmeter_metrics::blame::ReleaseRow;
use rampmeter_sim::fabric::{Collisions, TierStats};
use rampmeter_sim::{Counters, Node, PfcStats};
use rampmeter_types::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::traffic::collective::CollectiveRound;
use crate::traffic::rpc::RpcSummary;

/// Status of a run at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Every flow was delivered.
    Finished,
    /// The run reached its end, but flows failed, were rejected or never started.
    Incomplete,
    /// Flows were in flight when the drain time was over.
    TimedOut,
    /// The run was stopped by a signal.
    Interrupted,
}

/// Threads that a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadCount {
    pub(crate) count: usize,
    /// True if the plan has the number. Otherwise short runs use one thread.
    pub(crate) is_explicit: bool,
}

impl ThreadCount {
    pub(crate) const ONE: Self = Self { count: 1, is_explicit: true };
}

/// Threads that a run used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Threads {
    pub(crate) count: usize,
    /// Reason for which a run that may use several threads was not divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undivided: Option<&'static str>,
    /// Windows in which partitions ran side by side.
    pub(crate) windows: u64,
    /// Events in windows, of all partitions together.
    pub(crate) work_events: u64,
    /// Sum over windows of the maximum number of events of a partition: the minimum with any number
    /// of cores.
    pub(crate) span_events: u64,
}

impl Threads {
    /// Returns a single thread, and the reason if the run cannot be divided.
    pub(crate) fn single(undivided: Option<&'static str>) -> Self {
        Self { count: 1, undivided, windows: 0, work_events: 0, span_events: 0 }
    }
}

/// A run that has ended.
pub(crate) struct CompletedRun {
    pub(crate) status: RunStatus,
    pub(crate) counters: Counters,
    pub(crate) hops: u64,
    pub(crate) end: Time,
    pub(crate) tiers: Vec<TierStats>,
    /// Counters of priority flow control by tier; `None` without it.
    pub(crate) pfc: Option<Vec<PfcStats>>,
    /// Deadlocks of priority flow control at the end, with the ends of the paused ports.
    pub(crate) deadlocks: Vec<(Time, Vec<(Node, Node)>)>,
    /// Collisions; `None` unless the fabric has no buffers.
    pub(crate) collisions: Option<Collisions>,
    /// Counters of all endpoints together.
    pub(crate) transport: Vec<(&'static str, u64)>,
    pub(crate) collectives: Vec<CollectiveRound>,
    pub(crate) rpcs: Vec<RpcSummary>,
    /// Causes of releases, if the plan requests them.
    pub(crate) release_rows: Vec<ReleaseRow>,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
    pub(crate) threads: Threads,
    /// True if the run must be repeated in one thread ([`rampmeter_sim::Status::Overrun`]).
    pub(crate) is_overrun: bool,
}

impl CompletedRun {
    /// Creates the result of a run without switches, collectives and calls.
    pub(crate) fn new(status: RunStatus, counters: Counters, end: Time) -> Self {
        Self {
            status,
            counters,
            hops: 0,
            end,
            tiers: vec![],
            pfc: None,
            deadlocks: vec![],
            collisions: None,
            transport: vec![],
            collectives: vec![],
            rpcs: vec![],
            release_rows: vec![],
            offered_packets: 0,
            threads: Threads::single(None),
            is_overrun: false,
        }
    }
}
