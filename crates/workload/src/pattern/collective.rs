//! Collective operations as traces of phases.
//!
//! A real collective starts a step when the previous one has finished; a workload has no such
//! feedback, and this crate does not guess at it. Here step `k` of a round starts at a fixed
//! instant, `k` times the given step after the round. Choose a step longer than the slowest
//! transfer and the phases are those of a synchronised collective; choose a shorter one and
//! phases overlap, as they would not in reality.

use rampmeter_core::{Bytes, Span, Time};

use super::HostRange;
use super::burst::Draw;
use super::poisson::skip;
use crate::flow::Flow;

/// How an all-reduce moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Reduce-scatter and all-gather around a ring: `2 (n - 1)` steps, in each of which every
    /// host sends one `n`-th to the next one.
    Ring,
    /// A binomial tree, up to the first host and down again: the whole vector in every flow,
    /// `2 ceil(log2 n)` steps.
    Tree,
    /// Recursive halving and doubling between partners a power of two apart: `2 log2 n` steps,
    /// with a half, a quarter, and so on of the vector. Needs a power of two of hosts.
    Butterfly,
}

/// An all-reduce.
#[derive(Clone, Copy, Debug)]
pub struct AllReduce {
    /// How the data move.
    pub algorithm: Algorithm,
    /// Those that take part.
    pub hosts: HostRange,
    /// The vector that every host has.
    pub size: Bytes,
    /// From the start of a step to that of the next.
    pub step: Span,
}

impl AllReduce {
    /// How many steps a round has.
    pub fn n_steps(&self) -> u32 {
        match self.algorithm {
            Algorithm::Ring => 2 * (self.hosts.count - 1),
            Algorithm::Tree | Algorithm::Butterfly => 2 * self.levels(),
        }
    }

    /// How many flows a round has.
    pub(super) fn flows_per_round(&self) -> u64 {
        let n = u64::from(self.hosts.count);
        match self.algorithm {
            Algorithm::Ring => n * u64::from(self.n_steps()),
            Algorithm::Tree => 2 * (n - 1),
            Algorithm::Butterfly => n * u64::from(self.n_steps()),
        }
    }

    /// The bytes of a round.
    pub(super) fn total(&self) -> u128 {
        let mut flows = Vec::new();
        let mut total = 0;
        for step in 0..self.n_steps() {
            self.fill(Time::ZERO, step, &mut flows);
            total += flows.drain(..).map(|flow| u128::from(flow.size.get())).sum::<u128>();
        }
        total
    }

    /// Levels of the tree or the butterfly.
    fn levels(&self) -> u32 {
        self.hosts.count.next_power_of_two().trailing_zeros()
    }

    pub(super) fn fill(&self, round: Time, step: u32, out: &mut Vec<Flow>) {
        let after = self.step.as_ps().saturating_mul(u64::from(step));
        let arrival = round.saturating_add(Span::from_ps(after));
        let n = self.hosts.count;
        let mut push = |src: u32, dst: u32, size: u64| {
            let (src, dst) = (self.hosts.host(src), self.hosts.host(dst));
            out.push(Flow::new(arrival, src, dst, Bytes::new(size.max(1))));
        };
        let levels = self.levels();
        // The second half of a tree or a butterfly undoes the first in reverse order.
        let level = if step < levels { step } else { (2 * levels - 1).saturating_sub(step) };
        match self.algorithm {
            Algorithm::Ring => {
                let part = self.size.get().div_ceil(u64::from(n));
                (0..n).for_each(|i| push(i, (i + 1) % n, part));
            }
            Algorithm::Tree => {
                let far = 1u32 << level;
                for lower in (0..n).step_by(2 * far as usize).filter(|i| i + far < n) {
                    let (src, dst) =
                        if step < levels { (lower + far, lower) } else { (lower, lower + far) };
                    push(src, dst, self.size.get());
                }
            }
            Algorithm::Butterfly => {
                let part = self.size.get().div_ceil(1 << (level + 1));
                // Halving starts with the farthest partner, which gets one half.
                let far = n >> (level + 1);
                (0..n).for_each(|i| push(i, i ^ far, part));
            }
        }
    }
}

/// An all-to-all in which some receivers are more popular than others, as with the experts of a
/// mixture-of-experts model.
///
/// In every round the hosts are ranked in a random order, and each sender splits its bytes over
/// the others in proportion to `1 / rank^skew` (Zipf's law; 0 is the plain all-to-all). A flow has
/// at least one byte.
#[derive(Clone, Debug)]
pub struct Skewed {
    /// Those that take part.
    pub hosts: HostRange,
    /// What every host sends in a round, before rounding.
    pub size: Bytes,
    /// The exponent.
    pub skew: f64,
}

impl Skewed {
    /// How many flows a round has.
    pub(super) fn flows_per_round(&self) -> u64 {
        u64::from(self.hosts.count) * u64::from(self.hosts.count - 1)
    }

    /// The bytes of a round, up to the rounding of each flow.
    pub(super) fn total(&self) -> u128 {
        u128::from(self.size.get()) * u128::from(self.hosts.count)
    }

    pub(super) fn fill(&self, arrival: Time, sender: u32, draw: &mut Draw, out: &mut Vec<Flow>) {
        let n = self.hosts.count as usize;
        if draw.order.len() != n {
            draw.order = (0..n as u32).collect();
        }
        if sender == 0 {
            draw.rng.shuffle(&mut draw.order);
        }
        let weight = |host: usize| f64::from(draw.order[host] + 1).powf(-self.skew);
        let others = || (0..n - 1).map(|i| skip(i, sender as usize, 1));
        let whole: f64 = others().map(weight).sum();
        let src = self.hosts.host(sender);
        out.extend(others().map(|host| {
            let size = (self.size.get() as f64 * weight(host) / whole).round();
            let dst = self.hosts.host(host as u32);
            Flow::new(arrival, src, dst, Bytes::new((size as u64).max(1)))
        }));
    }
}
