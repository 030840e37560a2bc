//! Several workloads at once, each of a tenant.

use std::sync::Arc;

use rampmeter_types::{TenantId, Time};

use crate::ValidWorkload;
use crate::flow::{Flow, FlowLimit, FlowSource, merge};
use crate::graph::Graph;
use crate::source::{Period, Process, Source, are_alike, join_graphs, limited};

/// Workloads that are merged in arrival order.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    pub(crate) parts: Vec<ValidWorkload>,
}

impl Source for Mix {
    fn flows(&self, seed: u64) -> FlowSource {
        let of_tenant = |(part, tenant): (&ValidWorkload, u32)| -> FlowSource {
            let tenant = TenantId::new(tenant);
            Box::new(part.flows(seed).map(move |flow| Flow { tenant, ..flow }))
        };
        merge(self.parts.iter().zip(0..).map(of_tenant).collect())
    }

    fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        let graphs = self.parts.iter().zip(0..).filter_map(|(part, tenant)| {
            Some((Graph::clone(&*part.graph(seed)?), TenantId::new(tenant)))
        });
        let whole = join_graphs(graphs);
        (!whole.is_empty()).then(|| Arc::new(whole))
    }

    fn has_graph(&self) -> bool {
        self.parts.iter().any(ValidWorkload::has_graph)
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        if until.is_some() {
            return None;
        }
        let mut flows = self.parts.iter().map(ValidWorkload::total_flows);
        flows.try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
    }

    /// Returns the last process of the parts in the order of [`Process`], or one that changes.
    fn process(&self, limit: FlowLimit) -> Process {
        let of_parts = self.parts.iter().map(ValidWorkload::process).max();
        let of_parts = of_parts.unwrap_or(Process::Poisson);
        match are_alike(&limited(self.periods(), limit)) {
            true => of_parts,
            false => of_parts.max(Process::Changing),
        }
    }

    fn periods(&self) -> Vec<Period> {
        self.parts.iter().flat_map(ValidWorkload::periods).collect()
    }

    fn last_arrival(&self) -> Option<Time> {
        self.parts.iter().filter_map(ValidWorkload::last_arrival).max()
    }

    fn last_tenant(&self) -> u32 {
        self.parts.len().saturating_sub(1) as u32
    }
}
