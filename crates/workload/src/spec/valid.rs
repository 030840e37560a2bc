//! A workload that fits its network, and its flows.

use std::sync::Arc;

use rampmeter_core::{Span, TenantId, Time};

use super::period::{are_alike, periods};
use crate::flow::{Flow, FlowSource, Limit, merge};
use crate::graph::{Graph, GraphBuilder};
use crate::pattern::burst::{Bursts, PoissonIncast, Volume};
use crate::pattern::collective::Collective;
use crate::pattern::poisson::{OnOff, Poisson};
use crate::pattern::rpc::Rpc;
use crate::pattern::together::Together;
use crate::phases::Phases;
use crate::size::SizeDist;

/// A workload that fits its network.
#[derive(Clone, Debug)]
pub struct ValidWorkload {
    pub(super) source: Source,
    pub(super) limit: Limit,
    /// The distribution behind random sizes, for bins by its quantiles.
    pub(super) sizes: Option<Arc<SizeDist>>,
    pub(super) warnings: Vec<String>,
}

/// Arrival process of a workload. A mixture has the last one of those of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    /// Poisson processes of one period: after a warm-up the run is steady.
    Poisson,
    /// Those of a file: it may be steady.
    Trace,
    /// Poisson processes that begin or end at different times: the load changes during the run.
    Changing,
    /// Bursts, collectives, and all other workloads with dependencies: no two instants are alike.
    Bursts,
}

/// Source of flows.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Poisson(Vec<Poisson>),
    /// Hosts that send in some periods only.
    OnOff(OnOff),
    Overlay(Poisson, PoissonIncast),
    Bursts(Bursts),
    /// Hosts that send at once, each to its partner.
    Together(Together),
    Trace(Arc<[Flow]>),
    /// Flows of a trace that depend on each other.
    Graph(Arc<Graph>),
    /// A collective of each group of hosts.
    Collective(Vec<Collective>),
    Rpc(Rpc),
    Mix(Vec<ValidWorkload>),
    Phases(Phases),
}

impl Source {
    /// Returns true if only a limit ends it.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Self::Poisson(_) | Self::OnOff(_) | Self::Overlay(..))
    }
}

impl ValidWorkload {
    /// Returns the flows under `seed` outside of [`ValidWorkload::graph`], in arrival order. They
    /// are equal for equal seeds.
    pub fn flows(&self, seed: u64) -> FlowSource {
        let source: FlowSource = match &self.source {
            Source::Poisson(processes) => {
                let sources = processes.iter().map(|p| Box::new(p.flows(seed)) as FlowSource);
                merge(sources.collect())
            }
            Source::Overlay(poisson, incasts) => {
                merge(vec![Box::new(poisson.flows(seed)), Box::new(incasts.flows(seed))])
            }
            Source::OnOff(on_off) => Box::new(on_off.flows(seed)),
            Source::Bursts(bursts) => Box::new(bursts.flows(seed)),
            Source::Together(together) => Box::new(together.flows(seed)),
            Source::Trace(flows) => {
                let flows = Arc::clone(flows);
                Box::new((0..flows.len()).map(move |i| flows[i]))
            }
            Source::Graph(_) | Source::Collective(_) | Source::Rpc(_) | Source::Phases(_) => {
                Box::new(std::iter::empty())
            }
            Source::Mix(parts) => {
                let of_tenant = |(part, tenant): (&Self, u32)| -> FlowSource {
                    let tenant = TenantId::new(tenant);
                    Box::new(part.flows(seed).map(move |flow| Flow { tenant, ..flow }))
                };
                merge(parts.iter().zip(0..).map(of_tenant).collect())
            }
        };
        self.limit.apply(source)
    }

    /// Returns true if flows are of several tenants, or of another tenant than the first.
    pub fn has_tenants(&self) -> bool {
        self.last_tenant() > 0
    }

    /// Returns the number of the last tenant, from zero.
    pub fn last_tenant(&self) -> u32 {
        let tenant = |flow: &Flow| flow.tenant.get();
        let last = match &self.source {
            Source::Mix(parts) => Some(parts.len().saturating_sub(1) as u32),
            Source::Trace(flows) => flows.iter().map(tenant).max(),
            Source::Graph(graph) => graph.flows().map(|(_, flow)| tenant(flow)).max(),
            _ => None,
        };
        last.unwrap_or(0)
    }

    /// Returns the flows under `seed` that depend on each other; `None` if there are none. In the
    /// whole workload they have the first numbers, and the others follow in order of arrival.
    pub fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        match &self.source {
            Source::Graph(graph) => Some(Arc::clone(graph)),
            Source::Collective(groups) => {
                Some(joined(groups.iter().map(|group| (group.graph(seed), TenantId::default()))))
            }
            Source::Rpc(rpc) => Some(Arc::new(rpc.graph(seed))),
            Source::Phases(phases) => Some(Arc::new(phases.graph(seed))),
            Source::Mix(parts) => {
                let graphs = parts.iter().zip(0..).filter_map(|(part, tenant)| {
                    Some((Graph::clone(&*part.graph(seed)?), TenantId::new(tenant)))
                });
                let whole = joined(graphs);
                (!whole.is_empty()).then_some(whole)
            }
            Source::Poisson(_)
            | Source::OnOff(_)
            | Source::Overlay(..)
            | Source::Bursts(_)
            | Source::Together(_)
            | Source::Trace(_) => None,
        }
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
            graph.flows().map(|(number, flow)| (number, *flow)).collect();
        waiting.into_iter().chain(others)
    }

    /// Returns true if there are flows that depend on others.
    pub(super) fn has_graph(&self) -> bool {
        match &self.source {
            Source::Graph(_) | Source::Collective(_) | Source::Rpc(_) | Source::Phases(_) => true,
            Source::Mix(parts) => parts.iter().any(Self::has_graph),
            Source::Poisson(_)
            | Source::OnOff(_)
            | Source::Overlay(..)
            | Source::Bursts(_)
            | Source::Together(_)
            | Source::Trace(_) => false,
        }
    }

    /// Returns the number of flows of the run, if it does not depend on the seed.
    pub fn total_flows(&self) -> Option<u64> {
        let before = |flows: &[Flow]| {
            let until = self.limit.until.unwrap_or(Time::NEVER);
            flows.partition_point(|flow| flow.arrival < until) as u64
        };
        let available = match &self.source {
            Source::Trace(flows) => Some(before(flows)),
            Source::Graph(graph) => Some(graph.n_flows()),
            Source::Collective(groups) => Some(groups.iter().map(Collective::n_flows).sum()),
            Source::Rpc(rpc) => Some(rpc.n_flows()),
            Source::Phases(phases) => phases.total_flows(),
            _ if self.limit.until.is_some() => return None,
            Source::Poisson(_) | Source::OnOff(_) | Source::Overlay(..) => Some(u64::MAX),
            Source::Bursts(bursts) => Some(bursts.n_flows()),
            Source::Together(together) => Some(together.n_flows()),
            Source::Mix(parts) => parts
                .iter()
                .map(Self::total_flows)
                .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?))),
        };
        available.map(|n| n.min(self.limit.flows.unwrap_or(u64::MAX)))
    }

    /// Returns the arrival of the last flow of a trace, or the latest time before which a node of
    /// its graph cannot start. `None` for patterns.
    pub fn last_arrival(&self) -> Option<Time> {
        let last = match &self.source {
            Source::Trace(flows) => flows.last()?.arrival,
            Source::Graph(graph) => graph.flows().map(|(_, node)| node.arrival).max()?,
            Source::Mix(parts) => parts.iter().filter_map(Self::last_arrival).max()?,
            _ => return None,
        };
        Some(last.min(self.limit.until.unwrap_or(Time::NEVER)))
    }

    /// Returns the exact mean message size of the pattern, without limits; `None` for mixtures and
    /// flows that depend on others.
    pub fn mean_bytes(&self) -> Option<f64> {
        match &self.source {
            Source::Poisson(processes) => processes.first().map(|p| p.sizes.mean_bytes()),
            Source::OnOff(on_off) => Some(on_off.poisson.sizes.mean_bytes()),
            Source::Together(together) => Some(together.sizes.mean_bytes()),
            Source::Overlay(poisson, incasts) => {
                let flows = incasts.events_per_ps * f64::from(incasts.fan.n);
                let Volume::PerFlow(size) = incasts.fan.volume else { return None };
                let bytes = flows * size.get() as f64
                    + poisson.arrivals_per_ps * poisson.sizes.mean_bytes();
                Some(bytes / (flows + poisson.arrivals_per_ps))
            }
            Source::Bursts(bursts) => Some(bursts.mean_bytes()),
            Source::Trace(flows) => {
                let total: u128 = flows.iter().map(|flow| u128::from(flow.size.get())).sum();
                (!flows.is_empty()).then(|| total as f64 / flows.len() as f64)
            }
            Source::Graph(_)
            | Source::Collective(_)
            | Source::Rpc(_)
            | Source::Phases(_)
            | Source::Mix(_) => None,
        }
    }

    /// Returns its arrival process, for statistics over time.
    pub fn process(&self) -> Process {
        match &self.source {
            Source::Poisson(_) | Source::OnOff(_) | Source::Overlay(..) => Process::Poisson,
            Source::Bursts(_)
            | Source::Together(_)
            | Source::Graph(_)
            | Source::Collective(_)
            | Source::Rpc(_)
            | Source::Phases(_) => Process::Bursts,
            Source::Trace(_) => Process::Trace,
            Source::Mix(parts) => {
                let of_parts = parts.iter().map(Self::process).max().unwrap_or(Process::Poisson);
                match are_alike(&periods(self)) {
                    true => of_parts,
                    false => of_parts.max(Process::Changing),
                }
            }
        }
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

/// Joins graphs that do not depend on one another.
fn joined(graphs: impl Iterator<Item = (Graph, TenantId)>) -> Arc<Graph> {
    let mut whole = GraphBuilder::default();
    graphs.for_each(|(graph, tenant)| whole.append(&graph, tenant));
    // The parts are graphs, and no edge joins them.
    Arc::new(whole.build().unwrap_or_else(|error| panic!("a mix of graphs: {error}")))
}
