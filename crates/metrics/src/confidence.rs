//! Length of the warm-up of a run, and confidence intervals of its results.
//!
//! The completion times of one run are not independent: flows near a flow that is queued are queued
//! too. So intervals are computed from batches (Law, *Simulation Modeling and Analysis*, §9.5.3).
//! The flows, in the order of arrival, are divided into [`BATCHES`] runs of equal length, whose
//! statistics are nearly independent if they are long.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Number of batches of an interval.
pub const BATCHES: usize = 20;
/// Minimum number of values in a batch.
const BATCH_MIN: usize = 5;
/// Minimum number of values of a batch beyond its quantile.
const BEYOND_MIN: usize = 5;
/// Number of values that MSER-5 averages.
const MSER_BATCH: usize = 5;

/// End of the warm-up of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Number of values in the warm-up, from the first on.
    pub values: usize,
    /// True if the series is long enough for the rule. Otherwise the rule demands more than its
    /// first half, which is then excluded.
    pub is_found: bool,
}

/// Returns the warm-up of a series by MSER-5 (White, Cobb and Spratt, *A comparison of five
/// steady-state truncation heuristics for simulation*, WSC 2000).
///
/// The series is averaged in batches of five. The rule truncates at the batch at which the standard
/// error of the mean of the rest is least. It does not truncate in the second half of the series
/// (Hoad, Robinson and Davies, *Automating warm-up length estimation*, WSC 2008). Values after the
/// last whole batch are ignored.
pub fn mser5(values: &[f64]) -> WarmUp {
    let means: Vec<f64> = values
        .chunks_exact(MSER_BATCH)
        .map(|batch| batch.iter().sum::<f64>() / MSER_BATCH as f64)
        .collect();
    // From the last batch to the first: count, mean and squared deviations (Welford's recurrence).
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (first, value) in means.iter().enumerate().rev() {
        n += 1.0;
        let delta = value - mean;
        mean += delta / n;
        squares += delta * (value - mean);
        let error = squares / (n * n);
        // The last few batches are often alike by chance.
        if n >= BATCH_MIN as f64 && error <= best.0 {
            best = (error, first);
        }
    }
    let half = means.len() / 2;
    let is_found = best.1 <= half && best.0.is_finite();
    WarmUp { values: best.1.min(half) * MSER_BATCH, is_found }
}

/// Half the widths of the 95 % confidence intervals of the statistics of a series; `None` if it is
/// too short for one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HalfWidths {
    /// Half-width for the mean.
    pub mean: Option<f64>,
    /// Half-widths for the median, the 99th and the 99.9th percentile.
    pub quantiles: [Option<f64>; 3],
}

/// Quantiles that have intervals, as fractions.
pub(crate) const QUANTILES: [(usize, usize); 3] = [(1, 2), (99, 100), (999, 1000)];

impl HalfWidths {
    /// Computes them by batches of `values`, which are in the order of arrival.
    pub fn from_values(values: &[f64]) -> Self {
        let Some(batches) = batches(values) else { return Self::default() };
        let shortest = values.len() / BATCHES;
        let quantiles = QUANTILES.map(|(p, q)| {
            let beyond = shortest * (q - p) / q;
            (beyond >= BEYOND_MIN).then(|| {
                let mut sorted = Vec::with_capacity(shortest + 1);
                let quantile = |batch: &&[f64]| {
                    sorted.clear();
                    sorted.extend_from_slice(batch);
                    let rank = (sorted.len() * p).div_ceil(q).max(1) - 1;
                    *sorted.select_nth_unstable_by(rank, f64::total_cmp).1
                };
                half_width(&batches.iter().map(quantile).collect::<Vec<_>>())
            })
        });
        let quantiles = quantiles.map(Option::flatten);
        Self { mean: half_width(&means(&batches)), quantiles }
    }
}

/// Returns the correlation of the means of neighbouring batches of `values`, which are in the order
/// of arrival. If it is far above zero, batches are too short and the intervals too narrow. `None`
/// if there are too few values for batches.
pub fn correlation_of_batches(values: &[f64]) -> Option<f64> {
    batches(values).map(|batches| correlation(&means(&batches)))
}

/// Returns the batches of `values`; `None` if there are too few values.
fn batches(values: &[f64]) -> Option<[&[f64]; BATCHES]> {
    let bound = |i: usize| values.len() * i / BATCHES;
    let is_enough = values.len() >= BATCHES * BATCH_MIN;
    is_enough.then(|| std::array::from_fn(|i| &values[bound(i)..bound(i + 1)]))
}

fn means(batches: &[&[f64]; BATCHES]) -> [f64; BATCHES] {
    batches.map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
}

/// Returns half the width of the 95 % interval of the mean of independent `values`.
fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(student_t(n - 1.0, 0.95)? * (squares / (n - 1.0)).sqrt() / n.sqrt())
}

/// Returns the two-sided quantile of Student's t at a confidence level between 0 and 1; `None`
/// without a degree of freedom.
pub fn student_t(freedom: f64, level: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.inverse_cdf(0.5 + level / 2.0))
}

/// Returns the correlation of neighbours; zero if all values are equal.
fn correlation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rampmeter_types::{Purpose, Rng};

    /// Returns the waiting times of successive customers of M/D/1 that starts with a backlog, with
    /// service 1, by Lindley's recurrence.
    fn md1(load: f64, backlog: f64, customers: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut wait = backlog;
        let next = |_| {
            let this = wait;
            wait = f64::max(0.0, wait + 1.0 - rng.exponential() / load);
            this
        };
        (0..customers).map(next).collect()
    }

    /// Returns the mean waiting time by Pollaczek and Khinchine.
    fn pollaczek(load: f64) -> f64 {
        load / (2.0 * (1.0 - load))
    }

    #[test]
    fn quantiles_of_student_t_match_published_tables() {
        for (freedom, t) in [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (29.0, 2.0452)] {
            let ours = student_t(freedom, 0.95).unwrap();
            assert!((ours - t).abs() < 1e-3, "{freedom}: {ours}");
        }
        assert!((half_width(&[1.0, 2.0, 3.0]).unwrap() - 4.3027 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!(half_width(&[1.5]), None);
    }

    #[test]
    fn ninety_five_of_a_hundred_intervals_hold_the_mean_of_md1() {
        let (load, warm) = (0.7, 1000);
        let holds = |seed: &u64| {
            let waits = md1(load, 0.0, 41_000, *seed);
            let waits = &waits[warm..];
            let mean = waits.iter().sum::<f64>() / waits.len() as f64;
            (mean - pollaczek(load)).abs() <= HalfWidths::from_values(waits).mean.unwrap()
        };
        let share = (0..200).filter(holds).count() as f64 / 200.0;
        assert!((0.90..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn ninety_five_of_a_hundred_intervals_hold_the_quantile() {
        // Independent exponentials, whose 99th percentile is ln 100.
        let holds = |seed: &u64| {
            let mut rng = Rng::new(*seed, 0, Purpose::Test);
            let values: Vec<f64> = (0..20_000).map(|_| rng.exponential()).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let p99 = sorted[19_799];
            (p99 - 100f64.ln()).abs() <= HalfWidths::from_values(&values).quantiles[1].unwrap()
        };
        let share = (0..200).filter(holds).count() as f64 / 200.0;
        assert!((0.90..=0.99).contains(&share), "{share}");
    }

    /// Runs M/D/1 100 times, with a backlog at the start. Returns the mean waiting time of all
    /// customers, that of those after the warm-up, and the median warm-up.
    fn md1_warm_up(load: f64, backlog: f64, customers: usize) -> (f64, f64, usize) {
        let runs = 100;
        let (mut all, mut rest, mut cuts) = (0.0, 0.0, Vec::new());
        for seed in 0..runs {
            let waits = md1(load, backlog, customers, seed);
            let cut = mser5(&waits).values;
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            all += mean(&waits) / runs as f64;
            rest += mean(&waits[cut..]) / runs as f64;
            cuts.push(cut);
        }
        cuts.sort_unstable();
        (all, rest, cuts[runs as usize / 2])
    }

    #[test]
    fn the_warm_up_of_md1_ends_when_its_backlog_has_drained() {
        // The server reduces a backlog of 100 services by 1 - load a service. The wait of the n-th
        // customer falls by 1 / load - 1 a customer, to zero after 400.
        let (load, backlog) = (0.8, 100.0);
        let drained = backlog / (1.0 / load - 1.0);
        let (all, rest, cut) = md1_warm_up(load, backlog, 4_000);
        let theory = pollaczek(load);
        assert!((0.9..1.5).contains(&(cut as f64 / drained)), "{cut} of {drained}");
        assert!(all > 3.0 * theory && (rest - theory).abs() < 0.1 * theory, "{all}, {rest}");
    }

    #[test]
    fn a_short_warm_up_leaves_the_mean_unchanged() {
        // Initially empty, the bias is smaller than the noise. The rule then tends to truncate just
        // after a long queue, which costs a few per cent.
        let (all, rest, cut) = md1_warm_up(0.8, 0.0, 4_000);
        let theory = pollaczek(0.8);
        assert!((all - theory).abs() < 0.05 * theory, "{all}");
        assert!((rest - theory).abs() < 0.1 * theory && cut < 400, "{rest}, {cut}");
    }

    #[test]
    fn a_ramp_is_cut_at_its_end_and_a_rising_series_is_too_short() {
        // Small deterministic variations, so that the error is above zero.
        let wobble = |i: usize| if i.is_multiple_of(2) { 0.1 } else { -0.1 };
        let level = |i: usize| (i.min(100) as f64 / 10.0) + wobble(i / 5);
        let series: Vec<f64> = (0..1000).map(level).collect();
        let WarmUp { values, is_found } = mser5(&series);
        assert!(is_found && (90..=110).contains(&values), "{values}");
        let climbing: Vec<f64> = (0..1000).map(|i| (i as f64).exp2().min(1e300)).collect();
        assert!(!mser5(&climbing).is_found);
        assert_eq!(mser5(&[]), WarmUp { values: 0, is_found: false });
    }

    proptest! {
        #[test]
        fn the_cut_has_the_least_standard_error(
            values in prop::collection::vec(0.0..10.0f64, 50..400)
        ) {
            let WarmUp { values: cut, is_found } = mser5(&values);
            let means: Vec<f64> =
                values.chunks_exact(5).map(|b| b.iter().sum::<f64>() / 5.0).collect();
            let error = |first: usize| {
                let rest = &means[first..];
                let n = rest.len() as f64;
                let mean = rest.iter().sum::<f64>() / n;
                rest.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * n)
            };
            let least = (0..=means.len() - 5).map(error).fold(f64::INFINITY, f64::min);
            if is_found {
                prop_assert!((error(cut / 5) - least).abs() <= 1e-9 * (1.0 + least));
            } else {
                prop_assert_eq!(cut / 5, means.len() / 2);
            }
        }
    }
}
