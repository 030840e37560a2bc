//! Open-loop traffic: flows arrive as Poisson processes at a given load.
//!
//! One process of the total rate whose flows draw their pair at random is equal in law to one
//! process per pair, and needs no queue of next arrivals. Every process has three streams of
//! random numbers (arrivals, sizes, pairs), so that the same seed gives the same arrival times
//! whatever the sizes are.

use std::sync::Arc;

use rampmeter_core::{Bytes, NodeId, Purpose, Rate, Rng, Span, Time};

use crate::flow::Flow;
use crate::size::SizeDist;

/// How pairs are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Every ordered pair of different hosts is equally likely.
    AllToAll {
        /// How many hosts there are.
        n_hosts: u32,
    },
    /// Every host sends to one other, and receives from one: a permutation without fixed points,
    /// drawn uniformly from the seed.
    Permutation {
        /// How many hosts there are.
        n_hosts: u32,
    },
    /// Every ordered pair of different hosts in the same rack is equally likely.
    SameRack {
        /// How many hosts there are.
        n_hosts: u32,
        /// How many of them share a rack.
        rack: u32,
    },
    /// Every ordered pair of hosts in different racks is equally likely.
    OtherRack {
        /// How many hosts there are.
        n_hosts: u32,
        /// How many of them share a rack.
        rack: u32,
    },
}

impl Pairs {
    fn n_hosts(&self) -> u32 {
        match *self {
            Self::AllToAll { n_hosts }
            | Self::Permutation { n_hosts }
            | Self::SameRack { n_hosts, .. }
            | Self::OtherRack { n_hosts, .. } => n_hosts,
        }
    }
}

/// The offered load of every host and what it is a fraction of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Wire bytes offered as a fraction of the access rate.
    pub fraction: f64,
    /// The rate of an access link.
    pub access_rate: Rate,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// The same packet's bytes on the wire.
    pub wire: Bytes,
}

impl Load {
    /// Arrivals per picosecond and host that offer this load with messages of `mean_bytes`.
    pub fn arrivals_per_ps(&self, mean_bytes: f64) -> f64 {
        let overhead = self.wire.get() as f64 / self.payload.get() as f64;
        let bits_per_ps = self.access_rate.as_bps() as f64 / 1e12;
        self.fraction * bits_per_ps / (8.0 * mean_bytes * overhead)
    }
}

/// A Poisson process of flows, still without a seed.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// Who sends to whom.
    pub pairs: Pairs,
    /// How long the messages are.
    pub sizes: Arc<SizeDist>,
    /// Arrivals per picosecond, of all hosts together.
    pub arrivals_per_ps: f64,
    /// Number of the process within its workload, which keeps its random streams apart.
    pub stream: u64,
}

impl Poisson {
    /// The process that offers `load` at every host.
    pub fn new(pairs: Pairs, sizes: Arc<SizeDist>, load: &Load, stream: u64) -> Self {
        let per_host = load.arrivals_per_ps(sizes.mean_bytes());
        let arrivals_per_ps = per_host * f64::from(pairs.n_hosts());
        Self { pairs, sizes, arrivals_per_ps, stream }
    }

    /// The endless flows of this process under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let mut clock = PoissonClock::new(self.arrivals_per_ps, seed, self.stream);
        let mut size_rng = Rng::new(seed, self.stream, Purpose::Size);
        let mut pairs = PairSource::new(&self.pairs, Rng::new(seed, self.stream, Purpose::Pair));
        let sizes = Arc::clone(&self.sizes);
        std::iter::from_fn(move || {
            let arrival = clock.tick();
            let (src, dst) = pairs.draw();
            Some(Flow::new(arrival, src, dst, sizes.sample(&mut size_rng)))
        })
    }
}

/// The instants of a Poisson process, rounded to picoseconds.
#[derive(Debug)]
pub struct PoissonClock {
    now: Time,
    gap_mean_ps: f64,
    rng: Rng,
}

impl PoissonClock {
    /// The process of this rate, from time zero.
    pub fn new(arrivals_per_ps: f64, seed: u64, stream: u64) -> Self {
        let rng = Rng::new(seed, stream, Purpose::Arrival);
        Self { now: Time::ZERO, gap_mean_ps: 1.0 / arrivals_per_ps, rng }
    }

    /// The next instant.
    pub fn tick(&mut self) -> Time {
        let gap = (self.gap_mean_ps * self.rng.exponential()).round();
        self.now = self.now.saturating_add(Span::from_ps(gap as u64));
        self.now
    }
}

/// Pairs with what their law needs at hand.
#[derive(Debug)]
enum PairSource {
    AllToAll { n: usize, rng: Rng },
    Permutation { to: Vec<u32>, rng: Rng },
    SameRack { n: usize, rack: usize, rng: Rng },
    OtherRack { n: usize, rack: usize, rng: Rng },
}

impl PairSource {
    fn new(pairs: &Pairs, mut rng: Rng) -> Self {
        match *pairs {
            Pairs::AllToAll { n_hosts } => Self::AllToAll { n: n_hosts as usize, rng },
            Pairs::Permutation { n_hosts } => {
                Self::Permutation { to: derangement(n_hosts, &mut rng), rng }
            }
            Pairs::SameRack { n_hosts, rack } => {
                Self::SameRack { n: n_hosts as usize, rack: rack as usize, rng }
            }
            Pairs::OtherRack { n_hosts, rack } => {
                Self::OtherRack { n: n_hosts as usize, rack: rack as usize, rng }
            }
        }
    }

    fn draw(&mut self) -> (NodeId, NodeId) {
        let (src, dst) = match self {
            Self::AllToAll { n, rng } => {
                let src = rng.below(*n);
                (src, skip(rng.below(*n - 1), src, 1))
            }
            Self::Permutation { to, rng } => {
                let src = rng.below(to.len());
                (src, to[src] as usize)
            }
            Self::SameRack { n, rack, rng } => {
                let src = rng.below(*n);
                let first = src / *rack * *rack;
                (src, first + skip(rng.below(*rack - 1), src - first, 1))
            }
            Self::OtherRack { n, rack, rng } => {
                let src = rng.below(*n);
                (src, skip(rng.below(*n - *rack), src / *rack * *rack, *rack))
            }
        };
        (NodeId::new(src as u32), NodeId::new(dst as u32))
    }
}

/// Number `idx` of those that are left when `n` numbers from `hole` on are taken out.
pub(super) fn skip(idx: usize, hole: usize, n: usize) -> usize {
    if idx < hole { idx } else { idx + n }
}

/// A uniformly random permutation without fixed points, by rejection: about e tries.
fn derangement(n: u32, rng: &mut Rng) -> Vec<u32> {
    let mut to: Vec<u32> = (0..n).collect();
    loop {
        rng.shuffle(&mut to);
        if to.iter().zip(0..).all(|(&dst, src)| dst != src) {
            return to;
        }
    }
}
