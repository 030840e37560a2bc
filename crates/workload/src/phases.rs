//! Workloads one after the other at each host, as a graph of flows.
//!
//! There is no barrier: a host that has finished a phase begins the next one while others still run
//! it. Each host has a *gate* per phase, a node of the graph without traffic. The flows that the
//! host sends in the phase depend on the gate. The gate depends on all flows that the host received
//! in the phase before, or on those that it sent if it received none. Flows at fixed instants of a
//! phase start that long after the gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_types::{NodeId, Span, TenantId, Time};

use crate::ValidWorkload;
use crate::graph::Round;
use crate::graph::{Graph, GraphBuilder};
use crate::source::Source;

/// Workloads one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    /// Workloads of the phases, each of which ends.
    pub(crate) parts: Vec<ValidWorkload>,
    /// Number of times that hosts run all phases.
    pub(crate) rounds: u32,
    /// Time between two phases at a host.
    pub(crate) pause: Span,
}

impl Phases {
    /// Returns the number of flows, if it does not depend on the seed.
    pub(crate) fn total_flows(&self) -> Option<u64> {
        let mut flows = self.parts.iter().map(ValidWorkload::total_flows);
        let all = flows.try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))?;
        Some(all.saturating_mul(self.rounds.into()))
    }

    /// Returns the flows under `seed`. Every round has the same.
    pub(crate) fn graph(&self, seed: u64) -> Graph {
        let parts: Vec<Graph> = self.parts.iter().map(|part| part.as_graph(seed)).collect();
        let mut draft = PhaseGraphBuilder::default();
        for round in 0..self.rounds {
            for (idx, part) in (0..).zip(&parts) {
                let is_last = round + 1 == self.rounds && idx as usize + 1 == parts.len();
                draft.append(part, TenantId::new(idx), round);
                if !is_last {
                    draft.add_gates(part, self.pause);
                }
            }
        }
        // Edges lead only to later nodes, so the graph has no cycle.
        draft.builder.build().unwrap_or_else(|error| panic!("phases: {error}"))
    }
}

impl Source for Phases {
    fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        Some(Arc::new(Phases::graph(self, seed)))
    }

    fn has_graph(&self) -> bool {
        true
    }

    fn total_flows(&self, _until: Option<Time>) -> Option<u64> {
        Phases::total_flows(self)
    }
}

/// Builder of the graph of all phases.
#[derive(Default)]
struct PhaseGraphBuilder {
    builder: GraphBuilder,
    /// Gate of the next phase of each host that has taken part in one.
    gates: BTreeMap<NodeId, u32>,
    /// Number of the first node of the present phase.
    phase_start: u32,
    /// Collective rounds in one repetition of each part.
    rounds_per_part: BTreeMap<u32, u32>,
}

impl PhaseGraphBuilder {
    /// Adds a phase, which depends on the gates.
    fn append(&mut self, part: &Graph, tenant: TenantId, round: u32) {
        let waits = part.in_degrees();
        // Computations after a gate until an instant of the phase, by host and instant.
        let mut delayed: BTreeMap<(NodeId, Time), u32> = BTreeMap::new();
        let mut edges = Vec::new();
        for number in 0..part.len() {
            let (flow, mut delay) = (*part.node(number), part.delay(number));
            let Some(&gate) = self.gates.get(&flow.src) else {
                continue;
            };
            let offset = flow.arrival - Time::ZERO;
            if offset == Span::ZERO || waits[number as usize] == 0 {
                delay += offset;
                edges.push((number, gate, delay));
            } else {
                let host = flow.src;
                let key = (host, flow.arrival);
                let at = *delayed.entry(key).or_insert_with(|| {
                    let node = self.builder.computation(host, Time::ZERO, offset);
                    self.builder.wait(node, gate);
                    node
                });
                edges.push((number, at, delay));
            }
        }
        let base = self.builder.append_as(part, tenant);
        for (number, gate, delay) in edges {
            self.builder.wait(base + number, gate);
            self.builder.restart(base + number, delay);
        }
        self.number_rounds(part, base, tenant, round);
        self.phase_start = base;
    }

    /// Adds the collective rounds of a part. Their numbers follow those of earlier repetitions.
    fn number_rounds(&mut self, part: &Graph, base: u32, tenant: TenantId, round: u32) {
        let n = part.rounds().iter().map(|round| round.number + 1).max().unwrap_or(0);
        let per_round = *self.rounds_per_part.entry(tenant.get()).or_insert(n);
        for one in part.rounds() {
            let nodes = one.nodes.start + base..one.nodes.end + base;
            let number = one.number + round * per_round;
            self.builder.round(Round { nodes, number, ..one.clone() });
        }
    }

    /// Makes hosts wait for the end of the present phase, and `pause` longer.
    fn add_gates(&mut self, part: &Graph, pause: Span) {
        let mut ends: BTreeMap<NodeId, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for number in 0..part.len() {
            let (node, number) = (part.node(number), number + self.phase_start);
            ends.entry(node.dst).or_default().0.push(number);
            if node.src != node.dst {
                ends.entry(node.src).or_default().1.push(number);
            }
        }
        for (host, (mut after, sent)) in ends {
            let receives = after.iter().any(|&number| {
                let (src, dst) = self.builder.ends(number);
                src != dst
            });
            if !receives {
                after.extend(sent);
            }
            let gate = self.builder.computation(host, Time::ZERO, pause);
            after.into_iter().for_each(|number| self.builder.wait(gate, number));
            if let Some(before) = self.gates.insert(host, gate) {
                self.builder.wait(gate, before);
            }
        }
    }
}
