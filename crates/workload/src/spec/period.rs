//! Periods of the Poisson processes of a workload, by which it is stationary or not.

use super::valid::{Source, ValidWorkload};
use crate::flow::Limit;
use crate::pattern::poisson::Poisson;

/// Period in which the flows of a Poisson process arrive, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    start: f64,
    /// Its mean end, if a number of flows ends it; infinite without a limit.
    end: f64,
    arrivals_per_ps: f64,
}

/// Ends that differ by less than this share of the longest period are one. A number of flows ends a
/// process by chance: that of 400 flows varies by 5 % (one standard deviation).
const SAME_END: f64 = 0.05;

/// Returns the periods of all Poisson processes of a workload.
pub(super) fn periods(workload: &ValidWorkload) -> Vec<Period> {
    let whole = |poisson: &Poisson, more: f64| Period {
        start: poisson.start.as_ps() as f64,
        end: f64::INFINITY,
        arrivals_per_ps: poisson.arrivals_per_ps + more,
    };
    let of_source = match &workload.source {
        Source::Poisson(processes) => processes.iter().map(|p| whole(p, 0.0)).collect(),
        Source::OnOff(on_off) => vec![whole(&on_off.poisson, 0.0)],
        Source::Overlay(poisson, incasts) => {
            vec![whole(poisson, incasts.events_per_ps * f64::from(incasts.fan.n))]
        }
        Source::Mix(parts) => parts.iter().flat_map(periods).collect(),
        Source::Bursts(_)
        | Source::Together(_)
        | Source::Trace(_)
        | Source::Graph(_)
        | Source::Collective(_)
        | Source::Rpc(_)
        | Source::Phases(_) => Vec::new(),
    };
    limited(of_source, workload.limit)
}

/// Returns true if all periods begin at one instant and end at another.
pub(super) fn are_alike(periods: &[Period]) -> bool {
    let Some(first) = periods.first() else { return true };
    let ends = |of: fn(f64, f64) -> f64| periods.iter().map(|p| p.end).reduce(of);
    let (Some(least), Some(most)) = (ends(f64::min), ends(f64::max)) else { return true };
    let is_one_end = least == most || most - least < SAME_END * (most - first.start);
    periods.iter().all(|p| p.start == first.start) && is_one_end
}

/// Ends `periods` at a limit of all of them together. A number of flows is that of processes which
/// begin together and have no other end: a later end makes no difference to [`are_alike`].
fn limited(periods: Vec<Period>, limit: Limit) -> Vec<Period> {
    let Some(start) = periods.iter().map(|p| p.start).reduce(f64::min) else { return periods };
    let rate: f64 = periods.iter().map(|p| p.arrivals_per_ps).sum();
    let by_flows = limit.flows.map_or(f64::INFINITY, |flows| start + flows as f64 / rate);
    let until = limit.until.map_or(f64::INFINITY, |until| until.as_ps() as f64);
    let end = by_flows.min(until);
    periods.into_iter().map(|p| Period { end: p.end.min(end).max(p.start), ..p }).collect()
}
