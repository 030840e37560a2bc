//! Collective operations, as flows that depend on each other.
//!
//! Each algorithm defines the flows between hosts, and the received flows that a host needs before
//! it sends. A host begins a round once it has completed the one before. Only these dependencies
//! order the flows, so hosts may be in different rounds.
//!
//! | algorithm | sends |
//! |---|---|
//! | [`Algorithm::Ring`] | one `n`-th of the vector in each step, to the next host |
//! | [`Algorithm::Tree`] | the whole vector, along a binomial tree |
//! | [`Algorithm::HalvingDoubling`] | halves to ever nearer partners, doubles to farther ones |
//! | [`Algorithm::Direct`] | to each other host its part, all at once |
//! | [`Algorithm::Chain`] | the whole vector, chunk by chunk, to the next host; not the last host |

mod algorithm;
mod operation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, TenantId, Time};

use super::HostSet;
use super::skewed_all_to_all::shares;
use crate::flow::Flow;
use crate::graph::{Graph, GraphBuilder, Round};
use crate::source::{Source, join_graphs};

pub use operation::{Algorithm, Operation};

/// Bytes that each host sends to each other one.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// One `n`-th of the vector.
    Even,
    /// A share that falls with the rank of the receiver as `1 / rank^skew`; ranks are redrawn
    /// in every round.
    Skew(f64),
    /// Bytes by sender and receiver, row by row. The diagonal means nothing.
    Matrix(Vec<Vec<u64>>),
}

/// A collective operation, some times over.
#[derive(Clone, Debug)]
pub struct Collective {
    /// Operation.
    pub operation: Operation,
    /// Algorithm by which the data move.
    pub algorithm: Algorithm,
    /// Participating hosts.
    pub hosts: HostSet,
    /// The vector; of an all-to-all the data of every host for all hosts, itself included.
    pub size: Bytes,
    /// Number of chunks into which a host divides the data that it sends.
    pub chunks: u32,
    /// Bytes that hosts send to each other.
    pub demand: Arc<Demand>,
    /// Start of the first round.
    pub start: Time,
    /// Time from the end of the last dependency of a flow to its start.
    pub compute: Span,
    /// Number of rounds.
    pub rounds: u32,
    /// Time from the end of a round at a host to its part in the next.
    pub pause: Span,
    /// Number of the pattern within its workload, which separates its random streams.
    pub stream: u64,
}

impl Collective {
    /// Returns the number of flows of a round.
    pub fn flows_per_round(&self) -> u64 {
        let (n, chunks) = (u64::from(self.hosts.count()), u64::from(self.chunks));
        let levels = u64::from(self.levels());
        let halves = if self.operation == Operation::AllReduce { 2 } else { 1 };
        match self.algorithm {
            Algorithm::Ring => (halves * n * (n - 1)).saturating_mul(chunks),
            Algorithm::Tree => halves * (n - 1) * chunks,
            Algorithm::HalvingDoubling => halves * n * levels,
            Algorithm::Chain => (n - 1) * chunks,
            Algorithm::Direct => match &*self.demand {
                Demand::Even | Demand::Skew(_) => n * (n - 1),
                Demand::Matrix(rows) => {
                    let row = |(i, row): (usize, &Vec<u64>)| {
                        (0..).zip(row).filter(|&(j, &bytes)| i != j && bytes > 0).count() as u64
                    };
                    rows.iter().enumerate().map(row).sum()
                }
            },
        }
    }

    /// Returns the number of flows of all rounds.
    pub fn n_flows(&self) -> u64 {
        self.flows_per_round().saturating_mul(self.rounds.into())
    }

    /// Returns the number of pieces into which a vector is divided.
    pub fn pieces(&self) -> u64 {
        let (n, chunks) = (u64::from(self.hosts.count()), u64::from(self.chunks));
        match self.algorithm {
            Algorithm::Ring => n.saturating_mul(chunks),
            Algorithm::HalvingDoubling | Algorithm::Direct => n,
            Algorithm::Tree | Algorithm::Chain => chunks,
        }
    }

    /// Returns the flows under `seed`.
    pub fn graph(&self, seed: u64) -> Graph {
        let mut builder = GraphBuilder::default();
        let mut rng = Rng::new(seed, self.stream, Purpose::Pair);
        let mut gates = None;
        for number in 0..self.rounds {
            let first = builder.len();
            let mut draft =
                RoundBuilder { collective: self, builder: &mut builder, gates: gates.as_deref() };
            let bytes = match (self.algorithm, self.operation) {
                (Algorithm::Ring, _) => draft.ring(),
                (Algorithm::Tree, _) => draft.tree(),
                (Algorithm::HalvingDoubling, _) => draft.halving_doubling(),
                (Algorithm::Chain, Operation::Pipeline) => draft.pipeline(),
                (Algorithm::Chain, _) => draft.chain(),
                (Algorithm::Direct, _) => draft.direct(&mut rng),
            };
            let nodes = first..builder.len();
            if number + 1 < self.rounds {
                gates = Some(self.gates(&mut builder, nodes.clone(), gates.as_deref()));
            }
            let Self { operation, algorithm, ref hosts, .. } = *self;
            let hosts = hosts.clone();
            builder.round(Round { operation, algorithm, hosts, number, bytes, nodes });
        }
        // In every algorithm hosts depend only on flows that they receive, and on earlier ones.
        builder.build().unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// Levels of the tree or the halving.
    fn levels(&self) -> u32 {
        self.hosts.count().next_power_of_two().trailing_zeros()
    }

    /// Adds a computation for each host, which ends when the host may begin the round after that of
    /// `nodes`. It has then received everything of this round, or has sent everything if it
    /// receives nothing.
    fn gates(
        &self,
        builder: &mut GraphBuilder,
        nodes: Range<u32>,
        before: Option<&[u32]>,
    ) -> Vec<u32> {
        let hosts = 0..self.hosts.count();
        let gates: Vec<u32> = hosts
            .map(|host| builder.computation(self.hosts.host(host), self.start, self.pause))
            .collect();
        let places: BTreeMap<NodeId, usize> = self.hosts.iter().zip(0..).collect();
        let gate = |host: NodeId| places[&host];
        let mut receives = vec![false; gates.len()];
        let flows = |builder: &GraphBuilder| -> Vec<(u32, NodeId, NodeId)> {
            let ends = |node| (node, builder.ends(node).0, builder.ends(node).1);
            nodes.clone().map(ends).filter(|(_, src, dst)| src != dst).collect()
        };
        let flows = flows(builder);
        for &(node, _, dst) in &flows {
            receives[gate(dst)] = true;
            builder.wait(gates[gate(dst)], node);
        }
        for &(node, src, _) in flows.iter().filter(|(_, src, _)| !receives[gate(*src)]) {
            builder.wait(gates[gate(src)], node);
        }
        for (&gate, &earlier) in gates.iter().zip(before.unwrap_or_default()) {
            builder.wait(gate, earlier);
        }
        gates
    }
}

/// A round in the making. Hosts are numbered from zero.
struct RoundBuilder<'a> {
    collective: &'a Collective,
    builder: &'a mut GraphBuilder,
    /// Node that each host must complete before it begins; `None` in the first round.
    gates: Option<&'a [u32]>,
}

impl RoundBuilder<'_> {
    /// Adds a flow of `size` bytes from `src` to `dst`, which depends on `after`.
    fn send(&mut self, src: u32, dst: u32, size: u64, after: &[u32]) -> u32 {
        let delay = if after.is_empty() { Span::ZERO } else { self.collective.compute };
        self.send_after(src, dst, size, after, delay)
    }

    fn send_after(&mut self, src: u32, dst: u32, size: u64, after: &[u32], delay: Span) -> u32 {
        let Collective { ref hosts, start, .. } = *self.collective;
        let flow = Flow::new(start, hosts.host(src), hosts.host(dst), Bytes::new(size));
        let node = self.builder.flow(flow, delay);
        self.wait(node, src, after);
        node
    }

    fn compute(&mut self, host: u32, after: &[u32]) -> u32 {
        let Collective { ref hosts, start, compute, .. } = *self.collective;
        let node = self.builder.computation(hosts.host(host), start, compute);
        self.wait(node, host, after);
        node
    }

    fn wait(&mut self, node: u32, host: u32, after: &[u32]) {
        after.iter().for_each(|&dependency| self.builder.wait(node, dependency));
        if let Some(gates) = self.gates {
            self.builder.wait(node, gates[host as usize]);
        }
    }

    /// Returns the bytes from each host to each other one, row by row; the diagonal is zero.
    fn demands(&self, rng: &mut Rng) -> Vec<Vec<u64>> {
        let n = self.collective.hosts.count();
        let size = self.collective.size;
        match &*self.collective.demand {
            Demand::Even => {
                let row: Vec<u64> = (0..n).map(|dst| part(size.get(), n, dst)).collect();
                vec![row; n as usize]
            }
            Demand::Skew(skew) => {
                let mut ranks: Vec<u32> = (0..n).collect();
                rng.shuffle(&mut ranks);
                let row = |src| {
                    let mut row = vec![0; n as usize];
                    for (dst, share) in shares(size, *skew, &ranks, src) {
                        row[dst as usize] = share.get();
                    }
                    row
                };
                (0..n).map(row).collect()
            }
            Demand::Matrix(rows) => rows.clone(),
        }
    }
}

/// Returns the length of piece `idx` of `total` bytes, divided into `n` pieces that differ by at
/// most one byte.
fn part(total: u64, n: u32, idx: u32) -> u64 {
    let (n, idx) = (u64::from(n), u64::from(idx));
    total / n + u64::from(idx < total % n)
}

/// A collective of each group of hosts.
impl Source for Vec<Collective> {
    fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        let graphs = self.iter().map(|group| (group.graph(seed), TenantId::default()));
        Some(Arc::new(join_graphs(graphs)))
    }

    fn has_graph(&self) -> bool {
        true
    }

    fn total_flows(&self, _until: Option<Time>) -> Option<u64> {
        Some(self.iter().map(Collective::n_flows).sum())
    }
}
