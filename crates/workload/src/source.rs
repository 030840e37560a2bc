//! Sources of flows, still without a seed, and the periods of their Poisson processes.

use std::fmt::Debug;
use std::sync::Arc;

use rampmeter_types::{TenantId, Time};

use crate::flow::{Flow, FlowLimit, FlowSource};
use crate::graph::{Graph, GraphBuilder};

/// Arrival process of a workload. A mixture has the last one of those of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    /// Poisson processes of one period: after a warm-up the run is steady.
    Poisson,
    /// Arrivals of a file, which may be steady.
    Trace,
    /// Poisson processes that begin or end at different times: the load changes during the run.
    Changing,
    /// Bursts, collectives, and all other workloads with dependencies: no two instants are alike.
    Bursts,
}

/// A source of flows: a pattern whose keys have been checked.
pub(crate) trait Source: Debug + Send + Sync {
    /// Returns the flows under `seed` that depend on no others, in arrival order.
    fn flows(&self, _seed: u64) -> FlowSource {
        Box::new(std::iter::empty())
    }

    /// Returns the flows under `seed` that depend on each other; `None` if there are none.
    fn graph(&self, _seed: u64) -> Option<Arc<Graph>> {
        None
    }

    /// Returns true if there are flows that depend on others.
    fn has_graph(&self) -> bool {
        false
    }

    /// Returns true if only a limit ends it.
    fn is_endless(&self) -> bool {
        false
    }

    /// Returns the number of flows that arrive before an instant, or of all; `None` if it depends
    /// on the seed.
    fn total_flows(&self, until: Option<Time>) -> Option<u64>;

    /// Returns the exact mean size of its flows, if it is known.
    fn mean_bytes(&self) -> Option<f64> {
        None
    }

    /// Returns its arrival process up to a limit.
    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Bursts
    }

    /// Returns the periods of its Poisson processes.
    fn periods(&self) -> Vec<Period> {
        Vec::new()
    }

    /// Returns the arrival of the last flow of a file, or the latest time before which a node of
    /// its graph cannot start. `None` for patterns.
    fn last_arrival(&self) -> Option<Time> {
        None
    }

    /// Returns the number of the last tenant, from zero.
    fn last_tenant(&self) -> u32 {
        0
    }
}

/// Flows of a file, in arrival order.
#[derive(Clone, Debug)]
pub(crate) struct RecordedFlows(pub(crate) Arc<[Flow]>);

impl Source for RecordedFlows {
    fn flows(&self, _seed: u64) -> FlowSource {
        let flows = Arc::clone(&self.0);
        Box::new((0..flows.len()).map(move |i| flows[i]))
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        let until = until.unwrap_or(Time::NEVER);
        Some(self.0.partition_point(|flow| flow.arrival < until) as u64)
    }

    fn mean_bytes(&self) -> Option<f64> {
        let total: u128 = self.0.iter().map(|flow| u128::from(flow.size.get())).sum();
        (!self.0.is_empty()).then(|| total as f64 / self.0.len() as f64)
    }

    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Trace
    }

    fn last_arrival(&self) -> Option<Time> {
        Some(self.0.last()?.arrival)
    }

    fn last_tenant(&self) -> u32 {
        self.0.iter().map(|flow| flow.tenant.get()).max().unwrap_or(0)
    }
}

/// Flows of a file that depend on each other.
impl Source for Arc<Graph> {
    fn graph(&self, _seed: u64) -> Option<Arc<Graph>> {
        Some(Arc::clone(self))
    }

    fn has_graph(&self) -> bool {
        true
    }

    fn total_flows(&self, _until: Option<Time>) -> Option<u64> {
        Some(self.n_flows())
    }

    fn last_arrival(&self) -> Option<Time> {
        self.as_ref().flows().map(|(_, node)| node.arrival).max()
    }

    fn last_tenant(&self) -> u32 {
        self.as_ref().flows().map(|(_, flow)| flow.tenant.get()).max().unwrap_or(0)
    }
}

/// Period in which the flows of a Poisson process arrive, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) start: f64,
    /// Mean end, if a number of flows ends it; infinite without a limit.
    pub(crate) end: f64,
    pub(crate) arrivals_per_ps: f64,
}

/// Ends that differ by less than this share of the longest period are one. A number of flows ends a
/// process by chance: that of 400 flows varies by 5 % (one standard deviation).
const SAME_END: f64 = 0.05;

/// Returns true if all periods begin at one instant and end at another.
pub(crate) fn are_alike(periods: &[Period]) -> bool {
    let Some(first) = periods.first() else { return true };
    let ends = |select: fn(f64, f64) -> f64| periods.iter().map(|p| p.end).reduce(select);
    let (Some(least), Some(most)) = (ends(f64::min), ends(f64::max)) else { return true };
    let is_one_end = least == most || most - least < SAME_END * (most - first.start);
    periods.iter().all(|p| p.start == first.start) && is_one_end
}

/// Ends `periods` at a limit of all of them together. A number of flows is that of processes which
/// begin together and have no other end: a later end makes no difference to [`are_alike`].
pub(crate) fn limited(periods: Vec<Period>, limit: FlowLimit) -> Vec<Period> {
    let Some(start) = periods.iter().map(|p| p.start).reduce(f64::min) else { return periods };
    let rate: f64 = periods.iter().map(|p| p.arrivals_per_ps).sum();
    let by_flows = limit.flows.map_or(f64::INFINITY, |flows| start + flows as f64 / rate);
    let until = limit.until.map_or(f64::INFINITY, |until| until.as_ps() as f64);
    let end = by_flows.min(until);
    periods.into_iter().map(|p| Period { end: p.end.min(end).max(p.start), ..p }).collect()
}

/// Joins graphs that do not depend on one another.
pub(crate) fn join_graphs(graphs: impl Iterator<Item = (Graph, TenantId)>) -> Graph {
    let mut whole = GraphBuilder::default();
    graphs.for_each(|(graph, tenant)| whole.append(&graph, tenant));
    // The parts are graphs, and no edge joins them.
    whole.build().unwrap_or_else(|error| panic!("a mix of graphs: {error}"))
}
