//! Calls of clients to servers: how long they took.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_types::{Span, Time};
use rampmeter_workload::{Call, Graph};
use schemars::JsonSchema;
use serde::Serialize;

use super::collective::Network;

/// Latencies of the calls of one part of a workload: from the start of a call's first request to
/// the delivery of its last response. Those of calls that ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RpcSummary {
    /// The part of a mix or the phase that the calls belong to, from zero.
    pub tenant: u32,
    /// Calls of the workload.
    pub calls: u64,
    /// Calls whose responses were all delivered.
    pub completed: u64,
    /// Mean latency; null if no call ended, as all that follow.
    pub latency_mean_ps: Option<u64>,
    /// Median latency.
    pub latency_p50_ps: Option<u64>,
    /// 99th percentile of latencies.
    pub latency_p99_ps: Option<u64>,
    /// 99.9th percentile of latencies.
    pub latency_p999_ps: Option<u64>,
    /// Longest latency.
    pub latency_max_ps: Option<u64>,
    /// Mean of the lower bounds of these calls: request, service and response of the slowest
    /// server, with all messages alone in the network.
    pub lower_bound_mean_ps: Option<u64>,
    /// Mean of latency over bound.
    pub slowdown_mean: Option<f64>,
}

/// The calls of a run in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTracker {
    graph: Arc<Graph>,
    progress: Vec<Progress>,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Responses that have not been delivered.
    remaining: u32,
    start: Time,
    end: Time,
}

impl CallTracker {
    /// Returns the calls of `graph`, of which none has started.
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let of =
            |call: &Call| Progress { remaining: call.fan, start: Time::NEVER, end: Time::ZERO };
        let progress = graph.calls().iter().map(of).collect();
        Self { graph, progress }
    }

    /// Returns the call of node `number`, and true if the node is a response.
    fn find(&mut self, number: u32) -> Option<(&mut Progress, bool)> {
        let calls = self.graph.calls();
        let at = calls.partition_point(|call| call.first + 2 * call.fan <= number);
        let call = calls.get(at).filter(|call| call.first <= number)?;
        Some((&mut self.progress[at], number >= call.first + call.fan))
    }

    pub(crate) fn on_start(&mut self, number: u32, at: Time) {
        if let Some((call, false)) = self.find(number) {
            call.start = call.start.min(at);
        }
    }

    pub(crate) fn on_delivered(&mut self, number: u32, at: Time) {
        if let Some((call, true)) = self.find(number) {
            call.remaining -= 1;
            call.end = call.end.max(at);
        }
    }

    /// Returns a summary for each part that has calls.
    pub(crate) fn results(&self, network: &mut impl Network) -> Vec<RpcSummary> {
        let mut parts: BTreeMap<u32, (u64, Vec<(Span, Span)>)> = BTreeMap::new();
        for (call, progress) in self.graph.calls().iter().zip(&self.progress) {
            let tenant = self.graph.node(call.first).tenant.get();
            let (n, ended) = parts.entry(tenant).or_default();
            *n += 1;
            if progress.remaining == 0 {
                ended.push((progress.end - progress.start, self.bound(call, network)));
            }
        }
        parts.into_iter().map(|(tenant, (n, ended))| summary(tenant, n, ended)).collect()
    }

    /// Returns the least time that a call can take.
    fn bound(&self, call: &Call, network: &mut impl Network) -> Span {
        let mut alone = |node: u32| {
            let flow = self.graph.node(node);
            network.isolated_times(flow.src, flow.dst, flow.size)[0]
        };
        let of = |request: u32| {
            let response = request + call.fan;
            alone(request) + self.graph.delay(response) + alone(response)
        };
        (call.first..call.first + call.fan).map(of).max().unwrap_or(Span::ZERO)
    }
}

fn summary(tenant: u32, calls: u64, mut ended: Vec<(Span, Span)>) -> RpcSummary {
    ended.sort_unstable();
    let n = ended.len();
    let mean = |quantity: &dyn Fn(&(Span, Span)) -> f64| {
        (n > 0).then(|| ended.iter().map(quantity).sum::<f64>() / n as f64)
    };
    let quantile = |share: f64| {
        let rank = (share * n as f64).ceil().max(1.0) as usize;
        ended.get(rank - 1).map(|(took, _)| took.as_ps())
    };
    RpcSummary {
        tenant,
        calls,
        completed: n as u64,
        latency_mean_ps: mean(&|(took, _)| took.as_ps() as f64).map(|ps| ps.round() as u64),
        latency_p50_ps: quantile(0.5),
        latency_p99_ps: quantile(0.99),
        latency_p999_ps: quantile(0.999),
        latency_max_ps: quantile(1.0),
        lower_bound_mean_ps: mean(&|(_, bound)| bound.as_ps() as f64).map(|ps| ps.round() as u64),
        slowdown_mean: mean(&|(took, bound)| took.as_ps() as f64 / bound.as_ps() as f64),
    }
}
