//! The measured window of a run: which flows its statistics count, and what was carried in it.

use rampmeter_core::Time;
use rampmeter_metrics::Ideal;
use rampmeter_metrics::confidence::mser5;
use rampmeter_workload::Process;
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{MeasureSpec, WarmUp};
use crate::record::Kept;

/// What had been carried by an instant.
#[derive(Clone, Debug)]
pub(crate) struct Knot {
    pub(crate) at: Time,
    /// Message bytes that had reached their receiver.
    pub(crate) fresh: u64,
    /// Bytes that each tier had sent.
    pub(crate) tiers: Vec<u64>,
}

impl Knot {
    /// Bytes that one tier had sent; zero in runs without samples.
    pub(crate) fn of_tier(&self, tier: usize) -> u64 {
        self.tiers.get(tier).copied().unwrap_or(0)
    }
}

/// What had been carried by the instant `ps` of `of`, a quantity of the knots: interpolated between
/// the knots around it. `None` after the last knot.
pub(crate) fn carried_until(knots: &[Knot], ps: u64, of: impl Fn(&Knot) -> u64) -> Option<f64> {
    let after = knots.partition_point(|knot| knot.at.as_ps() < ps);
    let knot = knots.get(after)?;
    let before = after.checked_sub(1).map(|i| &knots[i]);
    let (start, base) = before.map_or((0, 0.0), |k| (k.at.as_ps(), of(k) as f64));
    let length = knot.at.as_ps() - start;
    let share = if length == 0 { 1.0 } else { (ps - start) as f64 / length as f64 };
    Some(base + (of(knot) as f64 - base) * share)
}

/// How many first flows are left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarmUpReport {
    /// `mser-5`, `flows` (the plan's number) or `none`.
    pub rule: &'static str,
    /// How many first flows are left out.
    pub flows: u64,
    /// Whether the run is long enough for the rule; true of the other rules.
    pub is_found: bool,
}

impl WarmUpReport {
    /// The warm-up of `flows`, which are in the order of arrival.
    pub(crate) fn of(measure: &MeasureSpec, process: Process, flows: &[Kept]) -> Self {
        let by_rule = match measure.warmup_flows {
            WarmUp::Flows(0) => return Self { rule: "none", flows: 0, is_found: true },
            WarmUp::Flows(flows) => return Self { rule: "flows", flows, is_found: true },
            WarmUp::Mser5 => true,
            WarmUp::Auto => process == Process::Poisson,
        };
        let slowdown = |k: &Kept| k.slowdown(Ideal::Delivered);
        let series: Vec<f64> = flows.iter().filter_map(slowdown).collect();
        if !by_rule || series.len() < FLOWS_MIN {
            return Self { rule: "none", flows: 0, is_found: true };
        }
        let cut = mser5(&series);
        let mut with_slowdown = flows.iter().filter(|k| slowdown(k).is_some());
        let first = with_slowdown.nth(cut.values).map_or(0, |k| u64::from(k.number));
        let flows = if cut.values == 0 { 0 } else { first };
        Self { rule: "mser-5", flows, is_found: cut.is_found }
    }
}

/// The measured window. Times since the start of the run, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Window {
    /// The arrival of the first flow that is counted.
    pub from_ps: u64,
    /// The last arrival; the last delivery where all flows arrive at once.
    pub to_ps: u64,
}

impl Window {
    pub(crate) fn seconds(self) -> f64 {
        (self.to_ps - self.from_ps) as f64 * 1e-12
    }

    /// The window of `counted` flows, of which there may be none. Arrivals end at `last_arrival`,
    /// or at `mark` if the statistics end there.
    pub(crate) fn of(counted: &[&Kept], last_arrival: Time, mark: Option<u64>) -> Option<Self> {
        let from_ps = counted.iter().map(|k| k.arrival.as_ps()).min()?;
        let last = last_arrival.as_ps().min(mark.unwrap_or(u64::MAX));
        let delivered = counted.iter().map(|k| k.arrival.as_ps() + k.fct[0]).max()?;
        let to_ps = if last > from_ps { last } else { delivered };
        (to_ps > from_ps).then_some(Self { from_ps, to_ps })
    }

    /// How many of `knots`, which are in order of time, are in the window.
    pub(crate) fn samples(self, knots: &[Knot]) -> usize {
        let before = knots.partition_point(|knot| knot.at.as_ps() < self.from_ps);
        knots.partition_point(|knot| knot.at.as_ps() <= self.to_ps) - before
    }

    /// What was carried in the window of `of`, a quantity of the knots. `None` if the window ends
    /// after the last knot.
    pub(crate) fn carried(self, knots: &[Knot], of: impl Fn(&Knot) -> u64) -> Option<f64> {
        let until = |ps: u64| carried_until(knots, ps, &of);
        Some(until(self.to_ps)? - until(self.from_ps)?)
    }
}

/// Fewest flows of which a warm-up is looked for.
const FLOWS_MIN: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn knot(ps: u64, fresh: u64) -> Knot {
        Knot { at: Time::from_ps(ps), fresh, tiers: vec![] }
    }

    #[test]
    fn what_a_window_carries_is_interpolated_between_samples() {
        let knots = [knot(100, 1000), knot(200, 1000), knot(300, 4000)];
        let carried = |from_ps, to_ps| Window { from_ps, to_ps }.carried(&knots, |k| k.fresh);
        assert_eq!(carried(0, 300), Some(4000.0));
        assert_eq!(carried(50, 250), Some(2000.0));
        assert_eq!(carried(100, 200), Some(0.0));
        assert_eq!(carried(100, 301), None);
    }

    #[test]
    fn samples_at_the_ends_of_a_window_are_in_it() {
        let knots = [knot(100, 1000), knot(200, 1000), knot(300, 4000)];
        let samples = |from_ps, to_ps| Window { from_ps, to_ps }.samples(&knots);
        assert_eq!([samples(100, 300), samples(101, 299), samples(301, 400)], [3, 1, 0]);
    }
}
