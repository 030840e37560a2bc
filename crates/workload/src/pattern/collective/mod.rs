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
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rampmeter_core::{Bytes, NodeId, Purpose, Rng, Span, TenantId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostSet;
use super::skewed::shares;
use crate::flow::Flow;
use crate::graph::{Graph, GraphBuilder};
use crate::source::{Source, joined};

/// Operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every host has a vector, and at the end the sum of all.
    AllReduce,
    /// Every host has one `n`-th of a vector, and at the end all of it.
    AllGather,
    /// Every host has a vector, and at the end one `n`-th of the sum.
    ReduceScatter,
    /// The first host has a vector, and at the end every host has it.
    Broadcast,
    /// Every host has one `n`-th of its vector for each host.
    AllToAll,
    /// Every host sends to each other host the bytes of a matrix or a skew.
    AllToAllV,
    /// A vector is sent in chunks from host to host, each of which computes on every chunk.
    Pipeline,
}

impl Operation {
    /// Returns its name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Broadcast => "broadcast",
            Self::AllToAll => "all-to-all",
            Self::AllToAllV => "all-to-all-v",
            Self::Pipeline => "pipeline",
        }
    }

    /// Returns the algorithms that can do it, the default first.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm::{Chain, Direct, HalvingDoubling, Ring, Tree};
        match self {
            Self::AllReduce => &[Ring, Tree, HalvingDoubling],
            Self::AllGather | Self::ReduceScatter => &[Ring, HalvingDoubling],
            Self::Broadcast => &[Tree, Chain],
            Self::AllToAll | Self::AllToAllV => &[Direct],
            Self::Pipeline => &[Chain],
        }
    }

    /// Returns the bus bandwidth over the algorithm bandwidth among `n` hosts: the minimum that a
    /// host's link must carry for each byte of the vector. These are the factors of nccl-tests
    /// (doc/PERFORMANCE.md).
    pub fn bus_factor(self, n: u32) -> f64 {
        let others = f64::from(n - 1) / f64::from(n);
        match self {
            Self::AllReduce => 2.0 * others,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => others,
            Self::Broadcast | Self::AllToAllV | Self::Pipeline => 1.0,
        }
    }
}

/// Algorithm by which a collective moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Around a ring: `n - 1` steps for a reduce-scatter, as many for an all-gather. In step `s`
    /// host `i` sends part `i - s` to host `i + 1` as soon as it has it.
    Ring,
    /// A binomial tree whose root is the first host, up for a reduction and down for a broadcast.
    Tree,
    /// Recursive halving with partners `n / 2`, `n / 4`, ... 1 apart, then recursive doubling the
    /// other way. Needs a power of two of hosts.
    HalvingDoubling,
    /// Every host to every other one at once.
    Direct,
    /// From each host to the next one, chunk by chunk.
    Chain,
}

impl Algorithm {
    /// Returns its name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::HalvingDoubling => "halving-doubling",
            Self::Direct => "direct",
            Self::Chain => "chain",
        }
    }

    /// Returns true if it can send a vector in chunks that do not wait for each other.
    pub const fn has_chunks(self) -> bool {
        matches!(self, Self::Ring | Self::Tree | Self::Chain)
    }
}

/// Bytes that each host sends to each other one.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// One `n`-th of the vector.
    Even,
    /// A share that falls with the rank of the receiver as `1 / rank^skew`; ranks are drawn anew
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

/// One round of a collective, and its nodes in the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Operation.
    pub operation: Operation,
    /// Algorithm by which the data move.
    pub algorithm: Algorithm,
    /// Participating hosts.
    pub hosts: HostSet,
    /// Its number, from zero.
    pub number: u32,
    /// Bytes for bandwidths: the vector, or for an all-to-all-v the maximum that any host sends.
    pub bytes: Bytes,
    /// Its flows and computations.
    pub nodes: Range<u32>,
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
            let mut draft = Draft { of: self, builder: &mut builder, gates: gates.as_deref() };
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
struct Draft<'a> {
    of: &'a Collective,
    builder: &'a mut GraphBuilder,
    /// Node that each host must complete before it begins; `None` in the first round.
    gates: Option<&'a [u32]>,
}

impl Draft<'_> {
    /// Adds a flow of `size` bytes from `src` to `dst`, which depends on `after`.
    fn send(&mut self, src: u32, dst: u32, size: u64, after: &[u32]) -> u32 {
        let delay = if after.is_empty() { Span::ZERO } else { self.of.compute };
        self.send_after(src, dst, size, after, delay)
    }

    fn send_after(&mut self, src: u32, dst: u32, size: u64, after: &[u32], delay: Span) -> u32 {
        let Collective { ref hosts, start, .. } = *self.of;
        let flow = Flow::new(start, hosts.host(src), hosts.host(dst), Bytes::new(size));
        let node = self.builder.flow(flow, delay);
        self.wait(node, src, after);
        node
    }

    fn compute(&mut self, host: u32, after: &[u32]) -> u32 {
        let Collective { ref hosts, start, compute, .. } = *self.of;
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
        let n = self.of.hosts.count();
        let size = self.of.size;
        match &*self.of.demand {
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
        Some(Arc::new(joined(graphs)))
    }

    fn has_graph(&self) -> bool {
        true
    }

    fn total_flows(&self, _until: Option<Time>) -> Option<u64> {
        Some(self.iter().map(Collective::n_flows).sum())
    }
}
