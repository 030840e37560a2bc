//! Closed bursts: flows that are released together, once or with a period.
//!
//! A burst pattern is a sequence of batches. Each batch is filled when it is needed, in a fixed
//! order. So a dense matrix of a thousand hosts has only one sender's flows in memory.

use std::sync::Arc;

use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time};

use super::HostSet;
use super::draw::DrawState;
use super::pairs::skip;
use super::poisson::{Poisson, PoissonClock};
use super::skewed_all_to_all::SkewedPairs;
use crate::flow::{Flow, FlowLimit, FlowSource, merge};
use crate::source::{Period, Process, Source};

/// Times of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The first time.
    pub start: Time,
    /// Time from one round to the next.
    pub period: Span,
    /// Number of rounds.
    pub n: u64,
}

impl Rounds {
    pub(super) fn at(&self, round: u64) -> Time {
        self.start.saturating_add(Span::from_ps(self.period.as_ps().saturating_mul(round)))
    }
}

/// Size of the flows of an incast or an outcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowVolume {
    /// Every flow has this size.
    PerFlow(Bytes),
    /// Size of all flows together; the first ones carry the remainder.
    Total(Bytes),
}

impl FlowVolume {
    fn flow(self, idx: u32, n: u32) -> Bytes {
        match self {
            Self::PerFlow(size) => size,
            Self::Total(total) => {
                let (n, idx) = (u64::from(n), u64::from(idx));
                Bytes::new(total.get() / n + u64::from(idx < total.get() % n))
            }
        }
    }

    fn total(self, n: u32) -> u128 {
        match self {
            Self::PerFlow(size) => u128::from(size.get()) * u128::from(n),
            Self::Total(total) => u128::from(total.get()),
        }
    }
}

/// Direction of the flows of a fan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Many senders, one receiver: incast.
    Incast,
    /// One sender, many receivers: outcast.
    Outcast,
}

/// Incast or outcast: one host on one side, a fan of others, all at once.
#[derive(Clone, Debug)]
pub struct Fan {
    /// Incast or outcast.
    pub direction: Direction,
    /// Number of hosts on the wide side.
    pub n: u32,
    /// The host on the narrow side; `None` draws another one in every round.
    pub hub: Option<NodeId>,
    /// Sizes.
    pub volume: FlowVolume,
    /// Number of hosts, from which the hub is drawn.
    pub n_hosts: u32,
    /// Hosts from which the wide side is drawn, without replacement and without the hub.
    pub peers: HostSet,
}

impl Fan {
    fn fill(&self, arrival: Time, state: &mut DrawState, out: &mut Vec<Flow>) {
        let rng = &mut state.rng;
        let hub = self.hub.map_or_else(|| rng.uniform_below(self.n_hosts as usize), NodeId::idx);
        // A partial shuffle of the others: the first n are a uniform choice in uniform order.
        let position = self.peers.position(NodeId::new(hub as u32));
        let hole = position.map_or(usize::MAX, |at| at as usize);
        let others = self.peers.count() as usize - usize::from(position.is_some());
        if state.order.len() != others {
            state.order = (0..others as u32).collect();
        }
        for i in 0..self.n {
            let at = i as usize + rng.uniform_below(others - i as usize);
            state.order.swap(i as usize, at);
            let other = self.peers.host(skip(state.order[i as usize] as usize, hole, 1) as u32);
            let hub = NodeId::new(hub as u32);
            let (src, dst) = match self.direction {
                Direction::Incast => (other, hub),
                Direction::Outcast => (hub, other),
            };
            out.push(Flow::new(arrival, src, dst, self.volume.flow(i, self.n)));
        }
    }
}

/// Every sender to every receiver, all at once: shuffle, or the dense matrix of all hosts.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Hosts that send.
    pub senders: HostSet,
    /// Hosts that receive; no host sends to itself.
    pub receivers: HostSet,
    /// Size of every flow.
    pub size: Bytes,
}

impl Grid {
    fn fill(&self, arrival: Time, sender: u32, out: &mut Vec<Flow>) {
        let (src, size) = (self.senders.host(sender), self.size);
        let receivers = self.receivers.iter();
        out.extend(receivers.filter(|&d| d != src).map(|dst| Flow::new(arrival, src, dst, size)));
    }

    fn flows_per_round(&self) -> u64 {
        u64::from(self.senders.count()) * u64::from(self.receivers.count())
            - u64::from(self.senders.overlap(&self.receivers))
    }
}

/// Pattern of one batch of flows.
#[derive(Clone, Debug)]
pub enum BatchPattern {
    /// Incast and outcast: a batch is a round.
    Fan(Fan),
    /// Shuffle and dense: a batch is one sender's flows in a round.
    Grid(Grid),
    /// Skewed all-to-all: a batch is one sender's flows in a round.
    Skewed(SkewedPairs),
}

/// A pattern of bursts, still without a seed.
#[derive(Clone, Debug)]
pub struct Bursts {
    /// Pattern of each batch.
    pub pattern: Arc<BatchPattern>,
    /// Times of the rounds.
    pub rounds: Rounds,
    /// Number of the pattern within its workload, which separates its random streams.
    pub stream: u64,
}

impl Bursts {
    /// Returns the number of flows of all rounds.
    pub fn n_flows(&self) -> u64 {
        let per_round = match &*self.pattern {
            BatchPattern::Fan(fan) => u64::from(fan.n),
            BatchPattern::Grid(grid) => grid.flows_per_round(),
            BatchPattern::Skewed(skewed) => skewed.flows_per_round(),
        };
        per_round.saturating_mul(self.rounds.n)
    }

    /// Returns the mean size of the flows.
    pub fn mean_bytes(&self) -> f64 {
        let (total, n) = match &*self.pattern {
            BatchPattern::Fan(fan) => (fan.volume.total(fan.n), u64::from(fan.n)),
            BatchPattern::Grid(grid) => return grid.size.get() as f64,
            BatchPattern::Skewed(skewed) => (skewed.total(), skewed.flows_per_round()),
        };
        total as f64 / n as f64
    }

    fn batches_per_round(&self) -> u64 {
        match &*self.pattern {
            BatchPattern::Fan(_) => 1,
            BatchPattern::Grid(grid) => u64::from(grid.senders.count()),
            BatchPattern::Skewed(skewed) => u64::from(skewed.hosts.count()),
        }
    }

    /// Returns the flows under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let this = self.clone();
        let per_round = self.batches_per_round();
        let mut draw =
            DrawState { rng: Rng::new(seed, self.stream, Purpose::Pair), order: Vec::new() };
        let n_batches = per_round.saturating_mul(self.rounds.n);
        (0..n_batches).flat_map(move |batch| {
            let mut out = Vec::new();
            let (round, part) = (batch / per_round, (batch % per_round) as u32);
            let at = this.rounds.at(round);
            match &*this.pattern {
                BatchPattern::Fan(fan) => fan.fill(at, &mut draw, &mut out),
                BatchPattern::Grid(grid) => grid.fill(at, part, &mut out),
                BatchPattern::Skewed(skewed) => skewed.fill(at, part, &mut draw, &mut out),
            }
            out
        })
    }
}

impl Source for Bursts {
    fn flows(&self, seed: u64) -> FlowSource {
        Box::new(Bursts::flows(self, seed))
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then(|| self.n_flows())
    }

    fn mean_bytes(&self) -> Option<f64> {
        Some(Bursts::mean_bytes(self))
    }
}

/// Incasts that arrive as a Poisson process: the overlay of the bursty workloads.
#[derive(Clone, Debug)]
pub struct PoissonIncast {
    /// One incast.
    pub fan: Fan,
    /// Incasts per picosecond.
    pub events_per_ps: f64,
    /// Number of the process within its workload, which separates its random streams.
    pub stream: u64,
}

impl PoissonIncast {
    /// Returns the endless flows under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let fan = self.fan.clone();
        let mut clock = PoissonClock::new(self.events_per_ps, seed, self.stream);
        let mut draw =
            DrawState { rng: Rng::new(seed, self.stream, Purpose::Pair), order: Vec::new() };
        std::iter::repeat_with(move || {
            let mut out = Vec::new();
            fan.fill(clock.tick(), &mut draw, &mut out);
            out
        })
        .flatten()
    }
}

/// A Poisson process of flows, and one of incasts.
#[derive(Clone, Debug)]
pub(crate) struct IncastOverlay {
    pub(crate) poisson: Poisson,
    pub(crate) incasts: PoissonIncast,
}

impl Source for IncastOverlay {
    fn flows(&self, seed: u64) -> FlowSource {
        merge(vec![Box::new(self.poisson.flows(seed)), Box::new(self.incasts.flows(seed))])
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then_some(u64::MAX)
    }

    fn mean_bytes(&self) -> Option<f64> {
        let Self { poisson, incasts } = self;
        let flows = incasts.events_per_ps * f64::from(incasts.fan.n);
        let FlowVolume::PerFlow(size) = incasts.fan.volume else { return None };
        let bytes =
            flows * size.get() as f64 + poisson.arrivals_per_ps * poisson.sizes.mean_bytes();
        Some(bytes / (flows + poisson.arrivals_per_ps))
    }

    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Poisson
    }

    fn periods(&self) -> Vec<Period> {
        vec![self.poisson.period(self.incasts.events_per_ps * f64::from(self.incasts.fan.n))]
    }
}
