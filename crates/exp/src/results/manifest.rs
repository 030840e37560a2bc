//! Manifest of a result: plan, seed, version, commit, counts, time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::Plan;
use crate::record::observers::ObservedReport;
use crate::simulation::status::{RunStatus, Threads};

/// Manifest of a result folder. Everything but its times and threads is the same whenever the plan
/// is run again.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Manifest<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) seed: u64,
    pub(crate) version: &'static str,
    pub(crate) commit: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) status: RunStatus,
    pub(crate) flows: u64,
    pub(crate) packet_hops: u64,
    pub(crate) events: u64,
    pub(crate) simulated_ps: u64,
    pub(crate) wall_seconds: f64,
    /// Processor time of the simulation; `None` of runs on hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_seconds: Option<f64>,
    /// Threads, and windows in which they ran.
    pub(crate) threads: Threads,
    /// Queueing of ports: by class, or by rank of the message.
    pub(crate) queueing: &'static str,
    /// Values derived from plan and network: round trips, windows, timeouts. Names end in their
    /// units.
    pub(crate) derived: BTreeMap<String, f64>,
    /// Files written of single packets.
    #[serde(flatten)]
    pub(crate) observed: ObservedReport,
}
