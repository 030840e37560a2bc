//! The pieces of a run from which a summary is made.

use std::collections::BTreeMap;

use rampmeter_sim::LinkChange;
use rampmeter_sim::fabric::{Collisions, TierStats};
use rampmeter_sim::{Counters, PfcStats, Topology};
use rampmeter_types::{Span, Time};
use rampmeter_workload::Process;

use super::report::{DeadlockReport, FlowCounts};
use crate::record::FlowSample;
use crate::simulation::status::RunStatus;
use crate::topology::names::NamesSpec;
use crate::traffic::collective::CollectiveRound;
use crate::traffic::rpc::RpcSummary;
use crate::warning::Warning;

/// A run as a whole: its status, its counters and its network.
pub(crate) struct RunOutput<'a> {
    pub(crate) status: RunStatus,
    pub(crate) counters: &'a Counters,
    pub(crate) packet_hops: u64,
    pub(crate) end_ps: u64,
    pub(crate) tiers: Vec<TierStats>,
    /// Counters of priority flow control, by tier; `None` if it is off.
    pub(crate) pfc: Option<&'a [PfcStats]>,
    pub(crate) deadlocks: Vec<DeadlockReport>,
    pub(crate) collisions: Option<&'a Collisions>,
    pub(crate) transport: BTreeMap<&'static str, u64>,
    pub(crate) collectives: Vec<CollectiveRound>,
    pub(crate) rpcs: Vec<RpcSummary>,
    /// Time that the run continues after the last arrival.
    pub(crate) drain: Span,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
    /// Payload bytes of one BDP.
    pub(crate) bdp_bytes: u64,
    /// Warnings from the check of the plan.
    pub(crate) warnings: Vec<Warning>,
    /// True if there is a warning that the run ends before a flow could.
    pub(crate) has_short_drain: bool,
    /// Arrival process.
    pub(crate) process: Process,
    /// True if links or nodes fail or change during the run, so that it is not stationary.
    pub(crate) has_outages: bool,
    /// The network, the names of its nodes, and the changes of its links.
    pub(crate) topology: &'a Topology,
    pub(crate) names: &'a NamesSpec,
    pub(crate) changes: &'a [LinkChange],
}

impl RunOutput<'_> {
    /// Returns the process of the arrivals of `flows`. With an outage no run is stationary, nor is
    /// a trace of one burst.
    pub(super) fn process(&self, flows: &[FlowSample]) -> Process {
        let is_one_burst = flows.len() > 1 && flows.iter().all(|k| k.arrival == flows[0].arrival);
        match self.has_outages || is_one_burst {
            true => Process::Bursts,
            false => self.process,
        }
    }

    /// Returns the status of the run, incomplete if flows were not delivered.
    pub(super) fn status(&self, flows: &FlowCounts) -> RunStatus {
        match self.status {
            RunStatus::Finished if flows.delivered < flows.submitted + flows.not_started => {
                RunStatus::Incomplete
            }
            status => status,
        }
    }

    /// Returns the share of the offered packets that were delivered when arrivals stopped.
    pub(super) fn delivered_share(&self) -> Option<f64> {
        let is_over_time = self.counters.last_arrival > Time::ZERO && self.offered_packets > 0;
        let delivered = self.counters.fresh_packets_at_last_arrival as f64;
        is_over_time.then(|| delivered / self.offered_packets as f64)
    }
}
