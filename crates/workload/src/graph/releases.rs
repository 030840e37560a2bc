//! Releases of the flows of a graph, as others are delivered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rampmeter_types::{NodeId, Time};

use super::Graph;
use crate::flow::Flow;

/// The end of a flow, which let another one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseCause {
    /// Number of the flow that ended.
    pub flow: u32,
    /// Time at which the sender of the other one knew it.
    pub at: Time,
}

/// Progress of a graph in a run. It is notified of the flows that hosts have received or completed,
/// and returns the flows that may start, with their times.
///
/// Flows that may start at the same time start in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Releases {
    graph: Arc<Graph>,
    /// Number of open dependencies of each node; [`TAKEN`] once it has been released.
    open: Vec<u32>,
    /// Latest end so far of the dependencies of each node.
    at: Vec<Time>,
    /// The end that is the latest so far of the dependencies of each node, directly or by
    /// computations; empty if causes are not kept.
    causes: Vec<Option<ReleaseCause>>,
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    /// The only host whose flows are released; all if `None`.
    host: Option<NodeId>,
    /// The first node that may be among those withheld.
    withheld: u32,
}

/// Number of open dependencies that marks a node as released.
const TAKEN: u32 = u32::MAX;

impl Releases {
    /// Creates the state of a run of `graph`, of which no flow has started.
    pub fn new(graph: Arc<Graph>) -> Self {
        Self::with_host(graph, None)
    }

    /// Creates the state of a host's part: the flows that `host` sends.
    pub fn for_host(graph: Arc<Graph>, host: NodeId) -> Self {
        Self::with_host(graph, Some(host))
    }

    fn with_host(graph: Arc<Graph>, host: Option<NodeId>) -> Self {
        let open = graph.in_degrees();
        let at = (0..graph.len()).map(|node| graph.node(node).arrival).collect();
        let (causes, ready) = (Vec::new(), BinaryHeap::new());
        let mut this = Self { graph, open, at, causes, ready, host, withheld: 0 };
        let free: Vec<u32> =
            (0..this.graph.len()).filter(|&node| this.open[node as usize] == 0).collect();
        let mut done = Vec::new();
        free.into_iter().for_each(|node| this.start(node, &mut done));
        this.work_off(done);
        this
    }

    /// Keeps the causes of releases from now on.
    pub fn keep_causes(&mut self) {
        self.causes = vec![None; self.open.len()];
    }

    /// Returns the end that let flow `number` start; `None` if it waited for none, or if causes are
    /// not kept.
    pub fn cause(&self, number: u32) -> Option<ReleaseCause> {
        self.causes.get(number as usize).copied().flatten()
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Records that the receiver of flow `number` has all of it at `at`.
    pub fn on_delivered(&mut self, number: u32, at: Time) {
        self.settle(number, self.graph.node(number).dst, at);
    }

    /// Records that the sender of flow `number` is notified at `at` that it has been delivered.
    pub fn on_completed(&mut self, number: u32, at: Time) {
        self.settle(number, self.graph.node(number).src, at);
    }

    /// Returns the start of the next flow; [`Time::NEVER`] if none starts before another is
    /// delivered.
    pub fn next_release(&self) -> Time {
        self.ready.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Removes and returns that flow, with its number. Its arrival is [`Releases::next_release`].
    pub fn release(&mut self) -> Option<(u32, Flow)> {
        let Reverse((arrival, number)) = self.ready.pop()?;
        self.open[number as usize] = TAKEN;
        Some((number, Flow { arrival, ..*self.graph.node(number) }))
    }

    /// Removes and returns one of the flows that have not been released, in the order of their
    /// numbers.
    pub fn take_withheld(&mut self) -> Option<(u32, Flow)> {
        self.ready.clear();
        while self.withheld < self.graph.len() {
            let number = self.withheld;
            self.withheld += 1;
            let node = *self.graph.node(number);
            let is_mine = self.host.is_none_or(|host| host == node.src);
            if self.open[number as usize] != TAKEN && node.src != node.dst && is_mine {
                return Some((number, node));
            }
        }
        None
    }

    /// Handles the completion of node `number` at `host`. Nodes of other hosts are not notified.
    fn settle(&mut self, number: u32, host: NodeId, at: Time) {
        let graph = Arc::clone(&self.graph);
        let mut done = Vec::new();
        let cause = Some(ReleaseCause { flow: number, at });
        for &node in graph.dependents(number).iter().filter(|&&node| graph.node(node).src == host) {
            self.release_dependency(node, at, cause, &mut done);
        }
        self.work_off(done);
    }

    /// Removes one open dependency of node `number`.
    fn release_dependency(
        &mut self,
        number: u32,
        at: Time,
        cause: Option<ReleaseCause>,
        done: &mut Vec<(u32, Time)>,
    ) {
        let idx = number as usize;
        if at >= self.at[idx] {
            self.at[idx] = at;
            if let Some(kept) = self.causes.get_mut(idx) {
                *kept = cause;
            }
        }
        self.open[idx] -= 1;
        if self.open[idx] == 0 {
            self.start(number, done);
        }
    }

    /// Starts node `number`, which has no open dependencies. Computations are appended to `done`.
    fn start(&mut self, number: u32, done: &mut Vec<(u32, Time)>) {
        if self.host.is_some_and(|only| only != self.graph.node(number).src) {
            return;
        }
        let at = self.at[number as usize].saturating_add(self.graph.delay(number));
        if self.graph.is_computation(number) {
            done.push((number, at));
        } else {
            self.ready.push(Reverse((at, number)));
        }
    }

    /// Notifies the nodes that depend on computations. It uses a list instead of recursion, as
    /// chains may be long.
    fn work_off(&mut self, mut done: Vec<(u32, Time)>) {
        let graph = Arc::clone(&self.graph);
        while let Some((computation, at)) = done.pop() {
            let cause = self.cause(computation);
            for &node in graph.dependents(computation) {
                self.release_dependency(node, at, cause, &mut done);
            }
        }
    }
}
