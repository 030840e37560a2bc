//! Hosts that alternate between a high and a low rate: keys, checks and flows.
//!
//! # Design notes
//!
//! *Problem.* Traffic of hosts comes in bursts, but is not zero between them. The arrivals of a
//! host are a Poisson process whose rate alternates between two values. The load of the plan is
//! that of all time, for any periods.
//!
//! *Simple way.* Draw gaps at the present rate, and draw again at the end of a period. A gap of a
//! low rate spans many short periods, and each costs a draw.
//!
//! *Present way.* A gap is one exponential draw of unit mean: the expected number of arrivals until
//! the next one. Periods consume it at their rates. The sum is exact for any rates and lengths.
//!
//! *Hazard.* The time of a draw grows with the number of periods in it, so a plan must have periods
//! that are not far shorter than gaps ([`CYCLES_MAX`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rampmeter_types::{Purpose, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use super::{HostsSpec, SizeSpec};
use crate::flow::{Flow, FlowLimit, FlowSource};
use crate::pattern::HostSet;
use crate::size::SizeDist;
use crate::source::{Period, Process, Source};

/// Maximum mean number of cycles, of a period on and one off, between two flows of a host.
const CYCLES_MAX: f64 = 1e4;

/// Keys of `bimodal`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BimodalSpec {
    /// Message sizes.
    pub sizes: SizeSpec,
    /// Mean load of every host, headers included, above 0 and at most 2: a share of the rate at
    /// which the slowest host sends. Receivers are uniformly random.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub load: f64,
    /// Load in periods that are off, at most `load`. That in periods that are on follows from it.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub off_load: f64,
    /// Mean length of a period that is on.
    pub on_us: f64,
    /// Mean length of a period that is off.
    pub off_us: f64,
    /// Distribution of the lengths of periods.
    #[serde(default)]
    pub period_distribution: PeriodDistribution,
    /// Participating hosts; default: all.
    pub hosts: Option<HostsSpec>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Distribution of the lengths of periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeriodDistribution {
    /// Exponential, so that hosts change at random.
    #[default]
    Exponential,
    /// All periods have the mean length. Hosts start at random instants of a cycle.
    Fixed,
}

impl Pattern for BimodalSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        let load = checker.load_of(&hosts, "load", self.load)?;
        if !(0.0..=self.load).contains(&self.off_load) {
            let expected = format!("a load from 0 to that of all time, {}", self.load);
            return checker.wrong("off-load", &expected, self.off_load);
        }
        let mut lengths = [("on-us", self.on_us), ("off-us", self.off_us)].into_iter();
        let [on, off] = [(); 2].map(|()| {
            let (key, us) = lengths.next().expect("there are two periods");
            match checker.span(key, us)? {
                Span::ZERO => checker.wrong(key, "a time above 0", us),
                span => Ok(span.as_ps() as f64),
            }
        });
        let (on, off) = (on?, off?);
        let sizes = checker.sizes(&self.sizes)?;
        let mean = load.arrivals_per_ps(sizes.mean_bytes());
        let cycle = 1.0 / (CYCLES_MAX * mean);
        if on + off < cycle {
            let least = (cycle - off) / 1e6;
            let expected =
                format!("at least {least:.3}, {CYCLES_MAX} cycles for a message of a host");
            return checker.wrong("on-us", &expected, self.on_us);
        }
        let low = mean * self.off_load / self.load;
        let high = (mean * (on + off) - low * off) / on;
        let phases = Phases { high, low, on, off, law: self.period_distribution };
        let stream = checker.stream();
        let source = Bimodal { hosts, sizes: Arc::clone(&sizes), phases, stream };
        Ok(CheckedPattern::with_sizes(source, sizes))
    }

    fn uniform_load(&self) -> f64 {
        if self.hosts.is_none() { self.load } else { 0.0 }
    }
}

/// The flows of all hosts, still without a seed.
#[derive(Clone, Debug)]
struct Bimodal {
    hosts: HostSet,
    sizes: Arc<SizeDist>,
    phases: Phases,
    /// Number of the process within its workload.
    stream: u64,
}

impl Source for Bimodal {
    fn flows(&self, seed: u64) -> FlowSource {
        let Self { hosts, sizes, phases, stream } = self.clone();
        let [mut arrivals, mut lengths, mut partners] =
            [Purpose::Arrival, Purpose::Size, Purpose::Pair]
                .map(|purpose| Rng::new(seed, stream, purpose));
        let n = hosts.count();
        let mut senders: Vec<PhaseState> =
            (0..n).map(|_| PhaseState::new(&phases, &mut arrivals)).collect();
        let mut next = BinaryHeap::with_capacity(n as usize);
        for (src, sender) in (0..n).zip(&mut senders) {
            next.push(Reverse((sender.arrival_after(Time::ZERO, &phases, &mut arrivals), src)));
        }
        Box::new(std::iter::from_fn(move || {
            let Reverse((arrival, src)) = next.pop()?;
            let sender = &mut senders[src as usize];
            next.push(Reverse((sender.arrival_after(arrival, &phases, &mut arrivals), src)));
            let other = partners.uniform_below(n as usize - 1) as u32;
            let dst = other + u32::from(other >= src);
            let size = sizes.sample(&mut lengths);
            Some(Flow::new(arrival, hosts.host(src), hosts.host(dst), size))
        }))
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then_some(u64::MAX)
    }

    fn mean_bytes(&self) -> Option<f64> {
        Some(self.sizes.mean_bytes())
    }

    fn process(&self, _limit: FlowLimit) -> Process {
        Process::Poisson
    }

    fn periods(&self) -> Vec<Period> {
        let arrivals_per_ps = self.phases.mean() * f64::from(self.hosts.count());
        vec![Period { start: 0.0, end: f64::INFINITY, arrivals_per_ps }]
    }
}

/// Rates of a host in flows per picosecond, and mean lengths of its periods in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Phases {
    high: f64,
    low: f64,
    on: f64,
    off: f64,
    law: PeriodDistribution,
}

impl Phases {
    /// Returns the mean rate of all time.
    fn mean(&self) -> f64 {
        (self.high * self.on + self.low * self.off) / (self.on + self.off)
    }
}

/// The present period of a host.
#[derive(Clone, Copy, Debug)]
struct PhaseState {
    is_on: bool,
    /// Picoseconds until it ends.
    remaining: f64,
}

impl PhaseState {
    /// Draws the state at any instant, so that the load is the same at all times.
    fn new(phases: &Phases, rng: &mut Rng) -> Self {
        let is_on = rng.bernoulli(phases.on / (phases.on + phases.off));
        let mean = if is_on { phases.on } else { phases.off };
        let remaining = match phases.law {
            PeriodDistribution::Exponential => mean * rng.exponential(),
            PeriodDistribution::Fixed => mean * rng.uniform_unit(),
        };
        Self { is_on, remaining }
    }

    /// Begins the next period.
    fn change(&mut self, phases: &Phases, rng: &mut Rng) {
        self.is_on = !self.is_on;
        let mean = if self.is_on { phases.on } else { phases.off };
        self.remaining = match phases.law {
            PeriodDistribution::Exponential => mean * rng.exponential(),
            PeriodDistribution::Fixed => mean,
        };
    }

    /// Returns the next arrival after one at `now`.
    fn arrival_after(&mut self, now: Time, phases: &Phases, rng: &mut Rng) -> Time {
        let mut expected = rng.exponential();
        let mut gap = 0.0;
        loop {
            let rate = if self.is_on { phases.high } else { phases.low };
            if expected < rate * self.remaining {
                let rest = expected / rate;
                self.remaining -= rest;
                return now.saturating_add(Span::from_ps((gap + rest).round() as u64));
            }
            expected -= rate * self.remaining;
            gap += self.remaining;
            self.change(phases, rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rampmeter_types::{Bytes, Rate};

    use super::*;
    use crate::spec::{ValidWorkload, WorkloadContext, WorkloadSpec};

    fn plan(keys: &str) -> Result<ValidWorkload, String> {
        let text = format!("pattern = 'bimodal'\nsizes = {{ fixed = 1460 }}\n{keys}");
        let spec: WorkloadSpec = toml::from_str(&text).map_err(|e| e.message().to_owned())?;
        let context = WorkloadContext {
            n_hosts: 8,
            access_rate: Rate::from_gbps(100),
            host_rates: Vec::new(),
            payload: Bytes::new(1460),
            wire: Bytes::new(1500),
            hosts_per_rack: None,
            hosts_per_pod: None,
            base_dir: Path::new(".").to_owned(),
        };
        spec.validate(&context).map_err(|error| error.to_string())
    }

    fn flows(keys: &str) -> Vec<Flow> {
        plan(keys).unwrap().numbered(1).map(|(_, flow)| flow).collect()
    }

    /// Load of all hosts until the last flow.
    fn mean_load(flows: &[Flow]) -> f64 {
        let seconds = flows.last().unwrap().arrival.as_secs_f64();
        flows.len() as f64 * 1500.0 * 8.0 / (8.0 * 100e9 * seconds)
    }

    #[test]
    fn the_mean_load_is_that_of_the_plan() {
        for (keys, off) in
            [("", 0.0), ("period-distribution = 'fixed'\n", 0.0), ("off-load = 0.2\n", 0.2)]
        {
            let keys = format!("{keys}load = 0.5\non-us = 10.0\noff-us = 30.0\nflows = 400000");
            let load = mean_load(&flows(&keys));
            // About 1200 cycles of each of 8 hosts; an exponential share has a deviation of 0.9 %.
            assert!((load - 0.5).abs() < 0.02, "{load}, off {off}");
        }
    }

    #[test]
    fn fixed_periods_have_two_rates_for_their_share_of_the_cycle() {
        let keys = "period-distribution = 'fixed'\nload = 0.4\noff-load = 0.1\non-us = 10.0\n\
                    off-us = 30.0\nflows = 400000";
        // Loads 0.1 and (0.4 x 40 - 0.1 x 30) / 10 = 1.3.
        let mut counts = [0_u64; 40];
        let flows = flows(keys);
        let cycles = flows.last().unwrap().arrival.as_ps() as f64 / 40e6;
        for flow in flows.iter().filter(|flow| flow.src.get() == 3) {
            counts[(flow.arrival.as_ps() / 1_000_000 % 40) as usize] += 1;
        }
        // A load of 1 sends 8.33 packets each microsecond.
        let loads = counts.map(|count| count as f64 / cycles / 8.333);
        let near = |target: f64| loads.iter().filter(|&&load| (load - target).abs() < 0.08).count();
        // Two bins of a microsecond contain a change of the rate.
        assert!(near(1.3) >= 9 && near(0.1) >= 29, "{loads:?}");
    }

    #[test]
    fn exponential_periods_have_their_means_and_the_duty_cycle() {
        let law = PeriodDistribution::Exponential;
        let phases = Phases { high: 1.0, low: 0.0, on: 10.0, off: 30.0, law };
        let mut rng = Rng::new(5, 0, Purpose::Test);
        let n = 40_000;
        let on_first = (0..n).filter(|_| PhaseState::new(&phases, &mut rng).is_on).count();
        assert!((on_first as f64 / f64::from(n) - 0.25).abs() < 0.01, "{on_first}");
        let mut state = PhaseState::new(&phases, &mut rng);
        let mut lengths = [Vec::new(), Vec::new()];
        for _ in 0..n {
            state.change(&phases, &mut rng);
            lengths[usize::from(state.is_on)].push(state.remaining);
        }
        for (lengths, mean) in lengths.iter().zip([30.0, 10.0]) {
            let n = lengths.len() as f64;
            let sum: f64 = lengths.iter().sum();
            assert!((sum / n / mean - 1.0).abs() < 4.0 / n.sqrt(), "{} of {mean}", sum / n);
            // e^-2 of all are longer than two means.
            let long = lengths.iter().filter(|&&length| length > 2.0 * mean).count() as f64;
            assert!((long / n - (-2.0f64).exp()).abs() < 2.0 / n.sqrt(), "{}", long / n);
        }
    }

    #[test]
    fn nothing_is_sent_in_periods_that_are_off() {
        let keys =
            "period-distribution = 'fixed'\nload = 0.1\non-us = 5.0\noff-us = 95.0\nflows = 100000";
        let flows = flows(keys);
        let mut times: Vec<u64> = flows
            .iter()
            .filter(|f| f.src.get() == 0)
            .map(|f| f.arrival.as_ps() % 100_000_000)
            .collect();
        times.sort_unstable();
        let around = times[0] + 100_000_000 - times.last().unwrap();
        let silent = times.windows(2).map(|w| w[1] - w[0]).max().unwrap().max(around);
        assert!(silent >= 94_900_000, "{silent} ps");
    }

    #[test]
    fn receivers_are_all_other_hosts() {
        let flows = flows("load = 0.5\non-us = 1.0\noff-us = 1.0\nflows = 20000");
        for src in 0..8 {
            let mut counts = [0; 8];
            flows.iter().filter(|f| f.src.get() == src).for_each(|f| {
                counts[f.dst.get() as usize] += 1;
            });
            assert_eq!(counts[src as usize], 0);
            assert_eq!(counts.iter().filter(|&&count| count > 200).count(), 7, "{counts:?}");
        }
    }

    #[test]
    fn errors_of_bimodal_loads_name_the_key() {
        let wrong = |keys: &str| plan(&format!("{keys}\nflows = 9")).unwrap_err();
        let key = |keys| wrong(keys).split(':').next().unwrap().to_owned();
        assert_eq!(key("load = 0.5\noff-load = 0.6\non-us = 1.0\noff-us = 1.0"), "off-load");
        assert_eq!(key("load = 0.5\non-us = 0.0\noff-us = 1.0"), "on-us");
        assert_eq!(key("load = 0.5\non-us = 1.0\noff-us = 0.0"), "off-us");
        assert_eq!(key("load = 1e-6\non-us = 1e-6\noff-us = 1e-6"), "on-us");
        assert_eq!(key("load = 0.0\non-us = 1.0\noff-us = 1.0"), "load");
    }
}
