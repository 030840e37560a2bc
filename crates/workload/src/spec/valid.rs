//! A workload that fits its network, and its flows.

use std::sync::Arc;

use rampmeter_types::{Span, TenantId, Time};

use crate::flow::{Flow, FlowLimit, FlowSource};
use crate::graph::{Graph, GraphBuilder};
use crate::size::SizeDist;
use crate::source::{Period, Process, Source, limited};

/// A workload that fits its network.
#[derive(Clone, Debug)]
pub struct ValidWorkload {
    pub(crate) source: Arc<dyn Source>,
    pub(super) limit: FlowLimit,
    /// The distribution behind random sizes, for bins by its quantiles.
    pub(super) sizes: Option<Arc<SizeDist>>,
    pub(super) warnings: Vec<String>,
}

impl ValidWorkload {
    /// Returns the flows under `seed` outside of [`ValidWorkload::graph`], in arrival order. They
    /// are equal for equal seeds.
    pub fn flows(&self, seed: u64) -> FlowSource {
        self.limit.apply(self.source.flows(seed))
    }

    /// Returns true if flows are of several tenants, or of another tenant than the first.
    pub fn has_tenants(&self) -> bool {
        self.last_tenant() > 0
    }

    /// Returns the number of the last tenant, from zero.
    pub fn last_tenant(&self) -> u32 {
        self.source.last_tenant()
    }

    /// Returns the flows under `seed` that depend on each other; `None` if there are none. In the
    /// whole workload they have the first numbers, and the others follow in order of arrival.
    pub fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        self.source.graph(seed)
    }

    /// Returns all flows under `seed` as one graph, in which flows without dependencies start when
    /// they arrive.
    pub(crate) fn as_graph(&self, seed: u64) -> Graph {
        let mut whole = GraphBuilder::default();
        if let Some(graph) = self.graph(seed) {
            // The rounds of a mix's parts do not change, and the tenant is the phase's.
            whole.append(&graph, TenantId::default());
        }
        for flow in self.flows(seed) {
            whole.flow(flow, Span::ZERO);
        }
        whole.build().unwrap_or_else(|error| panic!("a graph and flows: {error}"))
    }

    /// Returns all flows under `seed` with their numbers: those of [`ValidWorkload::graph`], with
    /// the earliest time of their start, then the others.
    pub fn numbered(&self, seed: u64) -> impl Iterator<Item = (u32, Flow)> + use<> {
        let graph = self.graph(seed).unwrap_or_default();
        let others = (graph.len()..).zip(self.flows(seed));
        let waiting: Vec<(u32, Flow)> =
            Graph::flows(&graph).map(|(number, flow)| (number, *flow)).collect();
        waiting.into_iter().chain(others)
    }

    /// Returns true if there are flows that depend on others.
    pub(crate) fn has_graph(&self) -> bool {
        self.source.has_graph()
    }

    /// Returns the number of flows of the run, if it does not depend on the seed.
    pub fn total_flows(&self) -> Option<u64> {
        let available = self.source.total_flows(self.limit.until)?;
        Some(available.min(self.limit.flows.unwrap_or(u64::MAX)))
    }

    /// Returns the arrival of the last flow of a trace, or the latest time before which a node of
    /// its graph cannot start. `None` for patterns.
    pub fn last_arrival(&self) -> Option<Time> {
        Some(self.source.last_arrival()?.min(self.limit.until.unwrap_or(Time::NEVER)))
    }

    /// Returns the exact mean message size of the pattern, without limits; `None` for mixtures and
    /// flows that depend on others.
    pub fn mean_bytes(&self) -> Option<f64> {
        self.source.mean_bytes()
    }

    /// Returns its arrival process, for statistics over time.
    pub fn process(&self) -> Process {
        self.source.process(self.limit)
    }

    /// Returns the periods of all Poisson processes.
    pub(crate) fn periods(&self) -> Vec<Period> {
        limited(self.source.periods(), self.limit)
    }

    /// Returns the warnings about likely mistakes, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the distribution of random sizes; `None` for patterns with custom sizes.
    pub fn sizes(&self) -> Option<&SizeDist> {
        self.sizes.as_deref()
    }
}
