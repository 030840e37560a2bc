//! Outcome of the simulation of a plan, before the summary is computed.

use rampmeter_core::Time;
use rampmeter_sim::fabric::{Collisions, TierStats};
use rampmeter_sim::{Counters, Node, PfcStats};
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
    /// The run reached its end, but flows failed or were rejected.
    Incomplete,
    /// The drain time was over before that.
    Censored,
    /// Somebody stopped it.
    Interrupted,
}

/// A run that has ended.
pub(crate) struct CompletedRun {
    pub(crate) status: RunStatus,
    pub(crate) counters: Counters,
    pub(crate) hops: u64,
    pub(crate) end: Time,
    pub(crate) tiers: Vec<TierStats>,
    /// By tier; `None` without priority flow control.
    pub(crate) pfc: Option<Vec<PfcStats>>,
    /// Deadlocks of priority flow control at the end, with the ends of the paused ports.
    pub(crate) deadlocks: Vec<(Time, Vec<(Node, Node)>)>,
    /// Of fabrics in which nothing may wait.
    pub(crate) collisions: Option<Collisions>,
    /// Counters of all endpoints together.
    pub(crate) transport: Vec<(&'static str, u64)>,
    pub(crate) collectives: Vec<CollectiveRound>,
    pub(crate) rpcs: Vec<RpcSummary>,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
}

impl CompletedRun {
    /// A run without switches, collectives and calls.
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
            offered_packets: 0,
        }
    }
}
