//! Comparison of two sets of results: ours with a reference, or one transport's with another's.

use serde::{Deserialize, Serialize};

use crate::slowdown::{Bins, Sample, Stats};

/// Two sets of slowdowns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Label of the size class.
    pub label: String,
    /// Statistics of ours.
    pub ours: Option<Stats>,
    /// Statistics of theirs.
    pub theirs: Option<Stats>,
    /// Our mean over theirs, if both have flows.
    pub mean_ratio: Option<f64>,
    /// Our 99th percentile over theirs, if both have flows.
    pub p99_ratio: Option<f64>,
    /// Kolmogorov-Smirnov distance: the largest difference between the two cumulative
    /// distributions, 0 for the same values and 1 for disjoint ones.
    pub ks: Option<f64>,
}

/// Comparison of two results, overall and by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// All flows.
    pub overall: Pair,
    /// Flows by size class.
    pub bins: Vec<Pair>,
}

/// Compares the slowdowns of two sets of flows. The sets need not be of the same flows.
pub fn compare(ours: &[Sample], theirs: &[Sample], bins: &Bins) -> Comparison {
    let all = |samples: &[Sample]| samples.iter().map(|sample| sample.slowdown).collect();
    let split = |samples: &[Sample]| bins.split(samples.iter().copied());
    let pairs = split(ours).into_iter().zip(split(theirs)).zip(bins.labels());
    Comparison {
        overall: pair("all".to_owned(), all(ours), all(theirs)),
        bins: pairs.map(|((ours, theirs), label)| pair(label, ours, theirs)).collect(),
    }
}

fn pair(label: String, mut ours: Vec<f64>, mut theirs: Vec<f64>) -> Pair {
    let stats = [Stats::from_values(&mut ours), Stats::from_values(&mut theirs)];
    let both = if let [Some(a), Some(b)] = stats { Some((a, b)) } else { None };
    Pair {
        label,
        ours: stats[0],
        theirs: stats[1],
        mean_ratio: both.map(|(a, b)| a.mean / b.mean),
        p99_ratio: both.map(|(a, b)| a.p99 / b.p99),
        ks: both.map(|_| ks_distance(&ours, &theirs)),
    }
}

/// Returns the largest difference between the cumulative distributions of two ascending sets of
/// values.
pub fn ks_distance(a: &[f64], b: &[f64]) -> f64 {
    let share = |sorted: &[f64], n: usize| n as f64 / sorted.len().max(1) as f64;
    let (mut i, mut j, mut worst) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&v| v <= value).count();
        j += b[j..].iter().take_while(|&&v| v <= value).count();
        worst = worst.max((share(a, i) - share(b, j)).abs());
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(values: &[(u64, f64)]) -> Vec<Sample> {
        values.iter().map(|&(size_bytes, slowdown)| Sample { size_bytes, slowdown }).collect()
    }

    #[test]
    fn ratios_are_ours_over_theirs_by_bin() {
        let ours = samples(&[(1, 2.0), (1, 4.0), (9, 1.0)]);
        let theirs = samples(&[(1, 1.0), (1, 2.0), (1, 3.0)]);
        let comparison = compare(&ours, &theirs, &Bins::Deciles { sizes: vec![5] });
        let small = &comparison.bins[0];
        assert_eq!((small.mean_ratio, small.p99_ratio), (Some(1.5), Some(4.0 / 3.0)));
        assert_eq!(small.ks, Some(0.5));
        let large = &comparison.bins[1];
        assert_eq!((large.theirs, large.mean_ratio, large.ks), (None, None, None));
        assert_eq!(comparison.overall.ours.unwrap().count, 3);
    }

    proptest! {
        #[test]
        fn the_kolmogorov_smirnov_distance_matches_its_definition(
            mut a in prop::collection::vec(0..20u8, 1..60),
            mut b in prop::collection::vec(0..20u8, 1..60),
        ) {
            a.sort_unstable();
            b.sort_unstable();
            let cdf = |set: &[u8], x: u8| {
                set.iter().filter(|&&v| v <= x).count() as f64 / set.len() as f64
            };
            let worst = (0..20).map(|x| (cdf(&a, x) - cdf(&b, x)).abs()).fold(0.0, f64::max);
            let float = |set: &[u8]| set.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
            let ours = ks_distance(&float(&a), &float(&b));
            prop_assert!((ours - worst).abs() < 1e-12);
            prop_assert_eq!(ks_distance(&float(&a), &float(&a)), 0.0);
        }
    }
}
