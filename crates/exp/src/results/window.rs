//! The measured window of a run: the flows that its statistics count, and the bytes that links
//! carried.

use rampmeter_metrics::Ideal;
use rampmeter_metrics::confidence::mser5;
use rampmeter_types::Time;
use rampmeter_workload::Process;
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::tables::MeasureSpec;
use crate::plan::warmup::WarmUp;
use crate::record::FlowSample;
use crate::record::sampling::CumulativeSample;

/// Returns the amount carried by the instant `ps` of `quantity`, a quantity of the knots:
/// interpolated between the knots around it. `None` after the last knot.
pub(crate) fn carried_until(
    knots: &[CumulativeSample],
    ps: u64,
    quantity: impl Fn(&CumulativeSample) -> u64,
) -> Option<f64> {
    let after = knots.partition_point(|knot| knot.at.as_ps() < ps);
    let knot = knots.get(after)?;
    let before = after.checked_sub(1).map(|i| &knots[i]);
    let (start, base) = before.map_or((0, 0.0), |k| (k.at.as_ps(), quantity(k) as f64));
    let length = knot.at.as_ps() - start;
    let share = if length == 0 { 1.0 } else { (ps - start) as f64 / length as f64 };
    Some(base + (quantity(knot) as f64 - base) * share)
}

/// Number of first flows that are omitted, and the rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarmUpReport {
    /// `mser-5`, `flows` (the plan's number) or `none`.
    pub rule: &'static str,
    /// Number of first flows that are omitted.
    pub flows: u64,
    /// True if the run is long enough for the rule; true of the other rules.
    pub is_found: bool,
}

impl WarmUpReport {
    /// Returns the warm-up of `flows`, which are in the order of arrival.
    pub(crate) fn new(measure: &MeasureSpec, process: Process, flows: &[FlowSample]) -> Self {
        let by_rule = match measure.warmup_flows {
            WarmUp::Flows(0) => return Self { rule: "none", flows: 0, is_found: true },
            WarmUp::Flows(flows) => return Self { rule: "flows", flows, is_found: true },
            WarmUp::Mser5 => true,
            WarmUp::Auto => process == Process::Poisson,
        };
        let slowdown = |k: &FlowSample| k.slowdown(Ideal::Delivered);
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
    /// The arrival of the first flow that is counted; if the window ends with the run, that of the
    /// first flow after the warm-up.
    pub from_ps: u64,
    /// The last arrival; the last delivery if all flows arrive within their mean completion time.
    /// The end of the run if flows were unfinished, unless arrivals are stationary.
    pub to_ps: u64,
}

/// Properties of a run from which its window follows.
pub(crate) struct WindowInput<'a> {
    /// The flows counted.
    pub(crate) counted: &'a [&'a FlowSample],
    /// Numbers and arrivals of the flows that were not delivered, without those that were rejected.
    pub(crate) unfinished_flows: &'a [(u32, Time)],
    /// Flows that the end of the run cut off.
    pub(crate) unfinished: u64,
    /// Number of first flows that are omitted.
    pub(crate) warmup: u64,
    pub(crate) process: Process,
    pub(crate) last_arrival: Time,
    pub(crate) end_ps: u64,
    /// The instant at which statistics end, if they end at the arrival of a flow.
    pub(crate) statistics_end: Option<u64>,
}

impl WindowInput<'_> {
    /// Returns true if flows that arrive within a time are as ones that arrive at once. That is so
    /// if the time is shorter than their mean completion time, unless arrivals are stationary.
    fn arrives_at_once(&self, arrivals_ps: u64) -> bool {
        let sum: u128 = self.counted.iter().map(|k| u128::from(k.fct[0])).sum();
        let is_short = u128::from(arrivals_ps) * (self.counted.len() as u128) < sum;
        arrivals_ps == 0 || is_short && self.process != Process::Poisson
    }
}

impl Window {
    pub(crate) fn seconds(self) -> f64 {
        (self.to_ps - self.from_ps) as f64 * 1e-12
    }

    /// Returns the window of a run; `None` if it is empty.
    ///
    /// The window of Poisson processes of one period ends with the arrivals, because the network is
    /// in the same state until then. Other flows that the end of the run cuts off load the network
    /// to the end, and the window ends there: flows that never end have a goodput.
    pub(crate) fn new(run: &WindowInput<'_>) -> Option<Self> {
        let mark = run.statistics_end.unwrap_or(u64::MAX);
        let counted = run.counted.iter().map(|k| k.arrival.as_ps()).min();
        let open =
            run.unfinished_flows.iter().filter(|(number, _)| u64::from(*number) >= run.warmup);
        let open = open.map(|(_, arrival)| arrival.as_ps()).min();
        let is_cut_off = run.unfinished > 0 && run.process != Process::Poisson;
        let (from_ps, to_ps) = match (counted, open) {
            (Some(from), Some(open)) if is_cut_off => (from.min(open), run.end_ps.min(mark)),
            (None, Some(open)) => (open, run.end_ps.min(mark)),
            (Some(from), _) => {
                let last = run.last_arrival.as_ps().min(mark);
                let delivered = run.counted.iter().map(|k| k.arrival.as_ps() + k.fct[0]).max()?;
                (
                    from,
                    if run.arrives_at_once(last.saturating_sub(from)) { delivered } else { last },
                )
            }
            (None, None) => return None,
        };
        (to_ps > from_ps).then_some(Self { from_ps, to_ps })
    }

    /// Returns the number of `knots`, which are in order of time, in the window.
    pub(crate) fn samples(self, knots: &[CumulativeSample]) -> usize {
        let before = knots.partition_point(|knot| knot.at.as_ps() < self.from_ps);
        knots.partition_point(|knot| knot.at.as_ps() <= self.to_ps) - before
    }

    /// Returns the amount carried in the window of `quantity`, a quantity of the knots. `None` if
    /// the window ends after the last knot.
    pub(crate) fn carried(
        self,
        knots: &[CumulativeSample],
        quantity: impl Fn(&CumulativeSample) -> u64,
    ) -> Option<f64> {
        let until = |ps: u64| carried_until(knots, ps, &quantity);
        Some(until(self.to_ps)? - until(self.from_ps)?)
    }
}

/// Minimum number of flows for the search of a warm-up.
const FLOWS_MIN: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn cumulative_sample(ps: u64, fresh_bytes: u64) -> CumulativeSample {
        CumulativeSample { at: Time::from_ps(ps), fresh_bytes, tiers: vec![], tenants: vec![] }
    }

    #[test]
    fn bytes_in_a_window_are_interpolated_between_samples() {
        let knots = [
            cumulative_sample(100, 1000),
            cumulative_sample(200, 1000),
            cumulative_sample(300, 4000),
        ];
        let carried = |from_ps, to_ps| Window { from_ps, to_ps }.carried(&knots, |k| k.fresh_bytes);
        assert_eq!(carried(0, 300), Some(4000.0));
        assert_eq!(carried(50, 250), Some(2000.0));
        assert_eq!(carried(100, 200), Some(0.0));
        assert_eq!(carried(100, 301), None);
    }

    fn kept(number: u32, arrival: u64, fct: u64) -> FlowSample {
        let arrival = Time::from_ps(arrival);
        FlowSample { number, arrival, size: 1, tenant: 0, fct: [fct; 2], ideal: [1; 3] }
    }

    fn window(
        process: Process,
        counted: &[&FlowSample],
        unfinished_flows: &[(u32, Time)],
    ) -> Option<(u64, u64)> {
        let unfinished = unfinished_flows.len() as u64;
        let last_arrival = Time::from_ps(300);
        let (warmup, end_ps, statistics_end) = (0, 1000, None);
        let run = WindowInput {
            counted,
            unfinished_flows,
            unfinished,
            warmup,
            process,
            last_arrival,
            end_ps,
            statistics_end,
        };
        Window::new(&run).map(|w| (w.from_ps, w.to_ps))
    }

    #[test]
    fn unfinished_flows_extend_the_window_to_the_end_of_the_run() {
        let (open, short) = ([(0, Time::ZERO), (2, Time::from_ps(300))], kept(1, 100, 50));
        for process in [Process::Poisson, Process::Trace, Process::Changing, Process::Bursts] {
            assert_eq!(window(process, &[], &open), Some((0, 1000)), "{process:?}");
            assert_eq!(window(process, &[], &[]), None, "{process:?}");
            assert_eq!(window(process, &[&short], &[]), Some((100, 300)), "{process:?}");
        }
        assert_eq!(window(Process::Trace, &[&short], &open), Some((0, 1000)));
        assert_eq!(window(Process::Changing, &[&short], &open), Some((0, 1000)));
        assert_eq!(window(Process::Poisson, &[&short], &open), Some((100, 300)));
    }

    #[test]
    fn samples_at_the_ends_of_a_window_are_in_it() {
        let knots = [
            cumulative_sample(100, 1000),
            cumulative_sample(200, 1000),
            cumulative_sample(300, 4000),
        ];
        let samples = |from_ps, to_ps| Window { from_ps, to_ps }.samples(&knots);
        assert_eq!([samples(100, 300), samples(101, 299), samples(301, 400)], [3, 1, 0]);
    }
}
