//! Slowdown statistics, overall and by message size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confidence::{HalfWidths, QUANTILES};
use crate::ideal::Ideal;
use crate::row::FlowRow;

/// Sample of a flow for statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Completion time divided by ideal.
    pub slowdown: f64,
}

impl Sample {
    /// Returns the sample of a row that has completed in the sense of `ideal`.
    pub fn from_row(row: &FlowRow, ideal: Ideal) -> Option<Self> {
        row.slowdown(ideal).map(|slowdown| Self { size_bytes: row.size_bytes, slowdown })
    }
}

/// Exact statistics of a set of values. Quantiles are by nearest rank: the p-quantile of n values
/// is the value number `ceil(p n)` in ascending order, always one that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Number of values.
    pub count: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub p50: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// 99.9th percentile of the values.
    pub p999: f64,
    /// Maximum of the values.
    pub max: f64,
    /// Half the width of the 95 % confidence interval of the mean, by batch means. `None` if there
    /// are too few values, or their order has no meaning.
    #[serde(default)]
    pub mean_ci: Option<f64>,
    /// Half the width of the 95 % confidence interval of the median.
    #[serde(default)]
    pub p50_ci: Option<f64>,
    /// Half the width of the 95 % confidence interval of the 99th percentile.
    #[serde(default)]
    pub p99_ci: Option<f64>,
    /// Half the width of the 95 % confidence interval of the 99.9th percentile.
    #[serde(default)]
    pub p999_ci: Option<f64>,
}

impl Stats {
    /// Computes the statistics of `values`, which are sorted in the process; `None` if there are
    /// none. No intervals.
    pub fn from_values(values: &mut [f64]) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let max = *values.last()?;
        // Summed in ascending order, so that the order of the input does not matter.
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let [p50, p99, p999] = QUANTILES.map(|(p, q)| quantile(values, p, q));
        let count = values.len() as u64;
        let (mean_ci, p50_ci, p99_ci, p999_ci) = (None, None, None, None);
        Some(Self { count, mean, p50, p99, p999, max, mean_ci, p50_ci, p99_ci, p999_ci })
    }

    /// Computes the statistics with intervals, of values of one steady process in the order of
    /// arrival.
    pub fn of_process(values: &mut [f64]) -> Option<Self> {
        let HalfWidths { mean: mean_ci, quantiles } = HalfWidths::from_values(values);
        let [p50_ci, p99_ci, p999_ci] = quantiles;
        Some(Self { mean_ci, p50_ci, p99_ci, p999_ci, ..Self::from_values(values)? })
    }
}

/// Meaning of the order of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOrder {
    /// None.
    Any,
    /// Order of arrival in one steady process, whose batches allow confidence intervals.
    Arrival,
}

impl SampleOrder {
    /// Computes the statistics of values in this order, which are sorted in the process; `None` if
    /// there are none.
    pub fn stats(self, values: &mut [f64]) -> Option<Stats> {
        match self {
            Self::Any => Stats::from_values(values),
            Self::Arrival => Stats::of_process(values),
        }
    }
}

/// Returns the nearest-rank quantile `p / q` of ascending values, of which there is at least one.
/// The rank is computed in integers: 0.99 x 100 is 99.00000000000001 in floating point.
fn quantile(sorted: &[f64], p: usize, q: usize) -> f64 {
    let rank = (sorted.len() * p).div_ceil(q);
    sorted[rank.max(1) - 1]
}

/// Bins of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bins {
    /// Below 1, 2, 4, 8 and 16 times this many bytes, and the rest: the bins of dcPIM's figure 3.
    BdpMultiples {
        /// One bandwidth-delay product in bytes of payload.
        bdp_bytes: u64,
    },
    /// 1, 2 to 7, 8 to 49, 50 to 343, 344 to 2401 and more packets of 1460 B.
    PacketClasses,
    /// Powers of ten of bytes, up to 1 GB.
    Decades,
    /// Ten groups of equal numbers of flows, by the nine sizes that separate them; see
    /// `SizeDist::deciles` of the workloads. A flow of such a size is in the lower group.
    Deciles {
        /// Sizes in bytes, ascending; equal ones make empty bins, which are omitted.
        sizes: Vec<u64>,
    },
}

impl Bins {
    /// Returns the largest size of every bin except the last, which has none.
    fn uppers(&self) -> Vec<u64> {
        let mut uppers = match self {
            Self::BdpMultiples { bdp_bytes } => {
                [1, 2, 4, 8, 16].map(|n| (n * bdp_bytes).saturating_sub(1)).to_vec()
            }
            Self::PacketClasses => [1, 7, 49, 343, 2401].map(|n| n * PACKET).to_vec(),
            Self::Decades => (1..=9).map(|n| 10u64.pow(n) - 1).collect(),
            Self::Deciles { sizes } => sizes.clone(),
        };
        uppers.dedup();
        uppers
    }

    /// Returns the names of the bins, in order of size.
    pub fn labels(&self) -> Vec<String> {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        match self {
            Self::BdpMultiples { .. } => {
                named(&["<1 BDP", "1-2 BDP", "2-4 BDP", "4-8 BDP", "8-16 BDP", ">16 BDP"])
            }
            Self::PacketClasses => named(&["1", "2-7", "8-49", "50-343", "344-2401", ">2401"]),
            Self::Decades | Self::Deciles { .. } => {
                let uppers = self.uppers();
                let bounded = uppers.iter().map(|upper| format!("<={upper} B"));
                let rest = uppers.last().map_or("all".to_owned(), |upper| format!(">{upper} B"));
                bounded.chain([rest]).collect()
            }
        }
    }

    /// Returns the slowdowns of each bin.
    pub(crate) fn split(&self, samples: impl Iterator<Item = Sample>) -> Vec<Vec<f64>> {
        let uppers = self.uppers();
        let mut bins = vec![Vec::new(); uppers.len() + 1];
        for sample in samples {
            bins[uppers.partition_point(|&upper| upper < sample.size_bytes)].push(sample.slowdown);
        }
        bins
    }
}

/// Statistics of one bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BinStats {
    /// Label of the size class.
    pub label: String,
    /// Largest size in bytes; `None` if the bin has no upper end.
    pub upper_bytes: Option<u64>,
    /// Statistics of the bin; `None` if it has no flow.
    pub stats: Option<Stats>,
}

/// Computes statistics of slowdowns, overall and by size. Calls `samples` twice.
pub fn by_size<I: Iterator<Item = Sample>>(
    samples: impl Fn() -> I,
    bins: &Bins,
    order: SampleOrder,
) -> (Option<Stats>, Vec<BinStats>) {
    let mut slowdowns: Vec<f64> = samples().map(|sample| sample.slowdown).collect();
    let overall = order.stats(&mut slowdowns);
    drop(slowdowns);
    let uppers = bins.uppers().into_iter().map(Some).chain([None]);
    let labels = bins.labels().into_iter().zip(uppers).zip(bins.split(samples()));
    let stats = labels.map(|((label, upper_bytes), mut values)| BinStats {
        label,
        upper_bytes,
        stats: order.stats(&mut values),
    });
    (overall, stats.collect())
}

/// Payload of a full packet in bytes, the unit of the packet classes.
const PACKET: u64 = 1460;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_values_by_nearest_rank() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let stats = Stats::from_values(&mut values).unwrap();
        assert_eq!((stats.p50, stats.p99, stats.p999, stats.max), (50.0, 99.0, 100.0, 100.0));
        assert_eq!((stats.count, stats.mean), (100, 50.5));
        assert_eq!(Stats::from_values(&mut []), None);
        assert_eq!(Stats::from_values(&mut [7.0]).unwrap().p999, 7.0);
    }

    proptest! {
        #[test]
        fn a_quantile_has_the_right_share_at_or_below_it(
            mut values in prop::collection::vec(0.0..10.0f64, 1..2000)
        ) {
            let n = values.len() as f64;
            let stats = Stats::from_values(&mut values).unwrap();
            for (p, value) in [(0.5, stats.p50), (0.99, stats.p99), (0.999, stats.p999)] {
                let at_most = values.iter().filter(|&&v| v <= value).count() as f64;
                let below = values.iter().filter(|&&v| v < value).count() as f64;
                prop_assert!(at_most >= p * n - 1e-9 && below < p * n + 1e-9);
            }
        }
    }

    fn bin_of(bins: &Bins, size_bytes: u64) -> String {
        let split = bins.split([Sample { size_bytes, slowdown: 1.0 }].into_iter());
        bins.labels()[split.iter().position(|bin| !bin.is_empty()).unwrap()].clone()
    }

    #[test]
    fn sizes_fall_into_the_published_bins() {
        let bdp = Bins::BdpMultiples { bdp_bytes: 49 * 1460 };
        let cases = [(1, "<1 BDP"), (48, "<1 BDP"), (49, "1-2 BDP"), (97, "1-2 BDP")];
        for (packets, label) in cases.into_iter().chain([(783, "8-16 BDP"), (784, ">16 BDP")]) {
            assert_eq!(bin_of(&bdp, packets * 1460), label, "{packets} packets");
        }
        let cases = [(1, "1"), (2, "2-7"), (49, "8-49"), (50, "50-343"), (2401, "344-2401")];
        for (packets, label) in cases.into_iter().chain([(2402, ">2401")]) {
            assert_eq!(bin_of(&Bins::PacketClasses, packets * 1460), label, "{packets} packets");
        }
        assert_eq!(bin_of(&Bins::Decades, 9), "<=9 B");
        assert_eq!(bin_of(&Bins::Decades, 10), "<=99 B");
        assert_eq!(bin_of(&Bins::Decades, 5_000_000_000), ">999999999 B");
        let deciles = Bins::Deciles { sizes: vec![1460, 1460, 2920] };
        assert_eq!(deciles.labels(), ["<=1460 B", "<=2920 B", ">2920 B"]);
        assert_eq!(bin_of(&deciles, 1460), "<=1460 B");
        assert_eq!(Bins::Deciles { sizes: vec![] }.labels(), ["all"]);
    }
}
