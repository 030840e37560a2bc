//! Open-loop traffic: flows arrive as Poisson processes at a configured load, at all times or in
//! the on periods of each host.
//!
//! One process of the total rate whose flows draw their pair at random has the same distribution as
//! one process per pair. It needs no queue of next arrivals. Every process has three streams of
//! random numbers: arrivals, sizes, pairs. So a seed determines the arrival times for any sizes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rampmeter_types::{Bytes, Purpose, Rate, Rng, Span, Time};

use super::HostSet;
use super::pairs::{PairSource, Pairs};
use crate::flow::{Flow, FlowLimit, FlowSource, merge};
use crate::size::SizeDist;
use crate::source::{Period, Process, Source};

/// Offered load of every host, and the rate to which it is relative.
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
    /// Returns the arrivals per picosecond and host that offer this load. Messages have a mean of
    /// `mean_bytes`.
    pub fn arrivals_per_ps(&self, mean_bytes: f64) -> f64 {
        let overhead = self.wire.get() as f64 / self.payload.get() as f64;
        let bits_per_ps = self.access_rate.as_bps() as f64 / 1e12;
        self.fraction * bits_per_ps / (8.0 * mean_bytes * overhead)
    }
}

/// A Poisson process of flows, still without a seed.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// Pairs of sender and receiver.
    pub pairs: Pairs,
    /// The hosts by their numbers in `pairs`.
    pub hosts: HostSet,
    /// Message sizes.
    pub sizes: Arc<SizeDist>,
    /// Arrivals per picosecond, of all hosts together.
    pub arrivals_per_ps: f64,
    /// Number of the process within its workload, which separates its random streams.
    pub stream: u64,
    /// The instant from which on flows arrive.
    pub start: Time,
}

impl Poisson {
    /// Creates the process that offers `load` at each of `hosts`.
    pub fn new(
        pairs: Pairs,
        hosts: HostSet,
        sizes: Arc<SizeDist>,
        load: &Load,
        stream: u64,
    ) -> Self {
        let per_host = load.arrivals_per_ps(sizes.mean_bytes());
        let arrivals_per_ps = per_host * f64::from(pairs.n_hosts());
        Self { pairs, hosts, sizes, arrivals_per_ps, stream, start: Time::ZERO }
    }

    /// Returns the endless flows of this process under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let mut clock = PoissonClock::new(self.arrivals_per_ps, seed, self.stream);
        clock.now = self.start;
        let mut size_rng = Rng::new(seed, self.stream, Purpose::Size);
        let mut pairs = PairSource::new(&self.pairs, Rng::new(seed, self.stream, Purpose::Pair));
        let (hosts, sizes) = (self.hosts.clone(), Arc::clone(&self.sizes));
        std::iter::from_fn(move || {
            let arrival = clock.tick();
            let (src, dst) = pairs.draw();
            let (src, dst) = (hosts.host(src), hosts.host(dst));
            Some(Flow::new(arrival, src, dst, sizes.sample(&mut size_rng)))
        })
    }
}

impl Poisson {
    /// Returns the interval of the process; `extra_arrivals_per_ps` is the rate of other flows in
    /// it.
    pub(crate) fn period(&self, extra_arrivals_per_ps: f64) -> Period {
        Period {
            start: self.start.as_ps() as f64,
            end: f64::INFINITY,
            arrivals_per_ps: self.arrivals_per_ps + extra_arrivals_per_ps,
        }
    }
}

impl Source for Vec<Poisson> {
    fn flows(&self, seed: u64) -> FlowSource {
        merge(self.iter().map(|process| Box::new(process.flows(seed)) as FlowSource).collect())
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then_some(u64::MAX)
    }

    fn mean_bytes(&self) -> Option<f64> {
        self.first().map(|process| process.sizes.mean_bytes())
    }

    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Poisson
    }

    fn periods(&self) -> Vec<Period> {
        self.iter().map(|process| process.period(0.0)).collect()
    }
}

/// Poisson processes of hosts that send only in some periods, each with separate periods
/// (interrupted Poisson processes). Lengths of periods are exponential. A host starts in an on
/// period with probability on / (on + off), so that the load is stationary.
#[derive(Clone, Debug)]
pub struct OnOff {
    /// The flows, with the rate of arrivals over all time.
    pub poisson: Poisson,
    /// Mean length of a period in which a host sends.
    pub on_mean: Span,
    /// Mean length of a period in which it does not.
    pub off_mean: Span,
}

impl OnOff {
    /// Returns the endless flows under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let Poisson { ref pairs, ref hosts, ref sizes, arrivals_per_ps, stream, start } =
            self.poisson;
        let (on, off) = (self.on_mean.as_ps() as f64, self.off_mean.as_ps() as f64);
        let n = hosts.count();
        let gap = on / (on + off) * f64::from(n) / arrivals_per_ps;
        let mut clocks =
            OnOffArrivals { gap, on, off, rng: Rng::new(seed, stream, Purpose::Arrival) };
        let mut size_rng = Rng::new(seed, stream, Purpose::Size);
        let mut pairs = PairSource::new(pairs, Rng::new(seed, stream, Purpose::Pair));
        let (hosts, sizes) = (hosts.clone(), Arc::clone(sizes));
        let mut left: Vec<f64> = Vec::with_capacity(n as usize);
        let mut next = BinaryHeap::with_capacity(n as usize);
        for src in 0..n {
            let is_on = clocks.rng.bernoulli(on / (on + off));
            left.push(if is_on { on * clocks.rng.exponential() } else { 0.0 });
            next.push(Reverse((clocks.next_arrival(start, &mut left[src as usize]), src)));
        }
        std::iter::from_fn(move || {
            let Reverse((arrival, src)) = next.pop()?;
            next.push(Reverse((clocks.next_arrival(arrival, &mut left[src as usize]), src)));
            let (src, dst) = (hosts.host(src), hosts.host(pairs.partner(src)));
            Some(Flow::new(arrival, src, dst, sizes.sample(&mut size_rng)))
        })
    }
}

impl Source for OnOff {
    fn flows(&self, seed: u64) -> FlowSource {
        Box::new(OnOff::flows(self, seed))
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then_some(u64::MAX)
    }

    fn mean_bytes(&self) -> Option<f64> {
        Some(self.poisson.sizes.mean_bytes())
    }

    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Poisson
    }

    fn periods(&self) -> Vec<Period> {
        vec![self.poisson.period(0.0)]
    }
}

/// Draws the arrivals of hosts with periods. Times are in picoseconds.
#[derive(Debug)]
struct OnOffArrivals {
    /// Mean time between two flows of a host that is on.
    gap: f64,
    on: f64,
    off: f64,
    rng: Rng,
}

impl OnOffArrivals {
    /// Returns the next arrival after `now` at a host whose on period lasts for `on_remaining`.
    fn next_arrival(&mut self, now: Time, on_remaining: &mut f64) -> Time {
        let mut on_time = self.gap * self.rng.exponential();
        let mut gap = on_time;
        while on_time >= *on_remaining {
            on_time -= *on_remaining;
            gap += self.off * self.rng.exponential();
            *on_remaining = self.on * self.rng.exponential();
            let periods = on_time / self.on;
            if periods > PERIODS_MAX {
                gap += self.off * self.off_periods(periods);
                on_time = 0.0;
            }
        }
        *on_remaining -= on_time;
        now.saturating_add(Span::from_ps(gap.round() as u64))
    }

    /// Returns the length of all periods that are off between `mean` periods that are on, in mean
    /// lengths. Their number is Poisson distributed and each is exponential, so the sum has the
    /// variance `2 mean`; for large `mean` it is normal.
    fn off_periods(&mut self, mean: f64) -> f64 {
        mean + (2.0 * mean).sqrt() * self.normal()
    }

    /// Draws from the standard normal distribution: a uniform direction by rejection, and a radius
    /// whose square is exponential (Marsaglia's polar method).
    fn normal(&mut self) -> f64 {
        loop {
            let [x, y] = [(); 2].map(|()| 2.0 * self.rng.uniform_unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x / square.sqrt() * (2.0 * self.rng.exponential()).sqrt();
            }
        }
    }
}

/// Maximum number of on periods that are drawn one by one between two flows. Above it their off
/// time is drawn as one normal variable, which bounds the cost of a draw.
const PERIODS_MAX: f64 = 10_000.0;

/// The instants of a Poisson process, rounded to picoseconds.
#[derive(Debug)]
pub struct PoissonClock {
    now: Time,
    gap_mean_ps: f64,
    rng: Rng,
}

impl PoissonClock {
    /// Creates the process of this rate, from time zero.
    pub fn new(arrivals_per_ps: f64, seed: u64, stream: u64) -> Self {
        let rng = Rng::new(seed, stream, Purpose::Arrival);
        Self { now: Time::ZERO, gap_mean_ps: 1.0 / arrivals_per_ps, rng }
    }

    /// Returns the next instant.
    pub fn tick(&mut self) -> Time {
        let gap = (self.gap_mean_ps * self.rng.exponential()).round();
        self.now = self.now.saturating_add(Span::from_ps(gap as u64));
        self.now
    }
}
