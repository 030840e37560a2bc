//! Flows that start when others end.

use rampmeter_types::{Bytes, NodeId, Span, TenantId, Time};

use super::call::Call;
use super::error::GraphError;
use super::round::Round;
use crate::flow::Flow;

/// Flows and computations that depend on each other. Numbers are those of the builder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Flow>,
    delays: Vec<Span>,
    /// Index of the first dependent of each node; one more entry than there are nodes.
    first: Vec<u32>,
    dependents: Vec<u32>,
    n_flows: u64,
    rounds: Vec<Round>,
    calls: Vec<Call>,
}

impl Graph {
    /// Returns the number of nodes, flows and computations.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns true if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of nodes that are flows.
    pub fn n_flows(&self) -> u64 {
        self.n_flows
    }

    /// Returns node `number`, as the builder received it. `arrival` is the earliest time of its
    /// start.
    pub fn node(&self, number: u32) -> &Flow {
        &self.nodes[number as usize]
    }

    /// Returns the time that node `number` computes after its dependencies.
    pub fn delay(&self, number: u32) -> Span {
        self.delays[number as usize]
    }

    /// Returns true if node `number` is a computation, from a host to itself.
    pub fn is_computation(&self, number: u32) -> bool {
        let node = self.node(number);
        node.src == node.dst
    }

    /// Returns the flows, with their numbers.
    pub fn flows(&self) -> impl Iterator<Item = (u32, &Flow)> {
        (0..).zip(&self.nodes).filter(|(_, node)| node.src != node.dst)
    }

    /// Returns the nodes that depend on node `number`.
    pub fn dependents(&self, number: u32) -> &[u32] {
        let at = number as usize;
        &self.dependents[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Returns the dependencies of each node, in the order of their numbers.
    pub fn dependencies(&self) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); self.nodes.len()];
        for from in 0..self.len() {
            for &to in self.dependents(from) {
                all[to as usize].push(from);
            }
        }
        all
    }

    /// Returns the number of dependencies of each node.
    pub(crate) fn in_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes.len()];
        for &to in &self.dependents {
            degrees[to as usize] += 1;
        }
        degrees
    }

    /// Returns the rounds of collective operations that the flows belong to.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Returns the calls that the flows belong to, in the order of their nodes.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns the nodes in an order in which each follows all its dependencies.
    pub fn topological_order(&self) -> Vec<u32> {
        let mut open = self.in_degrees();
        let mut order: Vec<u32> = (0..self.len()).filter(|&n| open[n as usize] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &to in self.dependents(node) {
                open[to as usize] -= 1;
                if open[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        order
    }

    /// Checks that every node can start.
    fn check_cycles(&self) -> Result<(), GraphError> {
        let order = self.topological_order();
        if order.len() == self.nodes.len() {
            return Ok(());
        }
        let mut is_done = vec![false; self.nodes.len()];
        order.iter().for_each(|&node| is_done[node as usize] = true);
        // Each remaining node depends on another remaining one: the walk backwards ends in a cycle.
        let mut waits_for = vec![0; self.nodes.len()];
        for from in (0..self.len()).rev().filter(|&from| !is_done[from as usize]) {
            for &to in self.dependents(from) {
                waits_for[to as usize] = from;
            }
        }
        let mut node = is_done.iter().position(|done| !done).unwrap_or(0) as u32;
        for _ in 0..self.len() {
            node = waits_for[node as usize];
        }
        let (mut least, last) = (node, node);
        loop {
            node = waits_for[node as usize];
            least = least.min(node);
            if node == last {
                break;
            }
        }
        Err(GraphError::Cycle { node: least, dependency: waits_for[least as usize] })
    }
}

/// Builds a graph: nodes in the order of their numbers, edges in any order.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    nodes: Vec<Flow>,
    delays: Vec<Span>,
    /// Edges from a dependency to the node that depends on it.
    edges: Vec<(u32, u32)>,
    rounds: Vec<Round>,
    calls: Vec<Call>,
}

impl GraphBuilder {
    /// Adds a flow that starts `delay` after `flow.arrival`, or after the last of its dependencies
    /// if that is later. Returns its number.
    pub fn flow(&mut self, flow: Flow, delay: Span) -> u32 {
        self.nodes.push(flow);
        self.delays.push(delay);
        self.nodes.len() as u32 - 1
    }

    /// Adds a computation of `host` that ends `delay` after `earliest`, or after the last of its
    /// dependencies if that is later. Returns its number.
    pub fn computation(&mut self, host: NodeId, earliest: Time, delay: Span) -> u32 {
        let tenant = TenantId::default();
        let node = Flow { tenant, ..Flow::new(earliest, host, host, Bytes::ZERO) };
        self.flow(node, delay)
    }

    /// Makes `node` depend on `dependency`.
    pub fn wait(&mut self, node: u32, dependency: u32) {
        self.edges.push((dependency, node));
    }

    /// Returns the number of nodes so far.
    pub(crate) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the source and destination of a node.
    pub(crate) fn ends(&self, node: u32) -> (NodeId, NodeId) {
        let flow = &self.nodes[node as usize];
        (flow.src, flow.dst)
    }

    pub(crate) fn round(&mut self, round: Round) {
        self.rounds.push(round);
    }

    pub(crate) fn call(&mut self, call: Call) {
        self.calls.push(call);
    }

    /// Makes a node start `delay` after its dependencies, without an earliest time.
    pub(crate) fn restart(&mut self, node: u32, delay: Span) {
        self.nodes[node as usize].arrival = Time::ZERO;
        self.delays[node as usize] = delay;
    }

    /// Adds all of `graph` as a part of `tenant`. Its nodes get the numbers after the existing
    /// ones.
    pub(crate) fn append(&mut self, graph: &Graph, tenant: TenantId) {
        let offset = self.append_as(graph, tenant);
        self.rounds.extend(graph.rounds.iter().map(|round| {
            let nodes = round.nodes.start + offset..round.nodes.end + offset;
            Round { nodes, ..round.clone() }
        }));
    }

    /// Adds all of `graph` but its rounds, and returns the number of its first node.
    pub(crate) fn append_as(&mut self, graph: &Graph, tenant: TenantId) -> u32 {
        let offset = self.len();
        self.nodes.extend(graph.nodes.iter().map(|flow| Flow { tenant, ..*flow }));
        self.delays.extend(&graph.delays);
        for from in 0..graph.len() {
            let edge = |&to| (from + offset, to + offset);
            self.edges.extend(graph.dependents(from).iter().map(edge));
        }
        let call = |call: &Call| Call { first: call.first + offset, ..*call };
        self.calls.extend(graph.calls.iter().map(call));
        offset
    }

    /// Returns the graph.
    ///
    /// # Errors
    /// An edge has an end that does not exist. A flow depends on one that its source
    /// neither sends nor receives. The dependencies have a cycle.
    pub fn build(self) -> Result<Graph, GraphError> {
        let Self { nodes, delays, edges, rounds, calls } = self;
        let mut first = vec![0; nodes.len() + 1];
        for &(dependency, node) in &edges {
            let known = |number: u32| nodes.get(number as usize);
            let (Some(from), Some(to)) = (known(dependency), known(node)) else {
                return Err(GraphError::Unknown { node, dependency });
            };
            if to.src != from.src && to.src != from.dst {
                return Err(GraphError::Host { node, host: to.src.get(), dependency });
            }
            first[dependency as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        let mut dependents = vec![0; edges.len()];
        for (dependency, node) in edges {
            let at = &mut next[dependency as usize];
            dependents[*at as usize] = node;
            *at += 1;
        }
        let n_flows = nodes.iter().filter(|node| node.src != node.dst).count() as u64;
        let graph = Graph { nodes, delays, first, dependents, n_flows, rounds, calls };
        graph.check_cycles()?;
        Ok(graph)
    }
}
