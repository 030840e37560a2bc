//! Histogram of packet latencies.

use hdrhistogram::Histogram;
use rampmeter_types::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::series::LatencyRow;

/// Histogram of latencies from 1 ps to 53 days with three significant digits. Needs about 450 kB
/// for any number of packets.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    counts: Histogram<u64>,
}

/// Summary of a histogram, in picoseconds. Quantiles are accurate to 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Number of packets.
    pub count: u64,
    /// Mean latency.
    pub mean_ps: f64,
    /// Minimum latency.
    pub min_ps: u64,
    /// Median latency.
    pub p50_ps: u64,
    /// 99th percentile of the latency.
    pub p99_ps: u64,
    /// 99.9th percentile of the latency.
    pub p999_ps: u64,
    /// Maximum latency.
    pub max_ps: u64,
}

impl LatencyHistogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        let counts = Histogram::new_with_max(LATENCY_MAX_PS, 3)
            .unwrap_or_else(|error| unreachable!("3 digits up to 2^62 are allowed: {error}"));
        Self { counts }
    }

    /// Counts one packet.
    #[inline]
    pub fn record(&mut self, latency: Span) {
        self.counts.saturating_record(latency.as_ps());
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same range and precision, so every value fits.
        self.counts += &other.counts;
    }

    /// Returns the number of packets counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns a row for each recorded latency, ascending, of packets of the kind `packets`.
    pub fn rows(&self, packets: &'static str) -> impl Iterator<Item = LatencyRow> {
        let total = self.counts.len() as f64;
        let mut seen = 0;
        self.counts.iter_recorded().map(move |step| {
            let count = step.count_at_value();
            seen += count;
            let (latency_ps, cdf) = (step.value_iterated_to(), seen as f64 / total);
            LatencyRow { packets: packets.into(), latency_ps, count, cdf }
        })
    }

    /// Returns the summary; `None` if there are no packets.
    pub fn summary(&self) -> Option<LatencySummary> {
        (!self.counts.is_empty()).then(|| LatencySummary {
            count: self.counts.len(),
            mean_ps: self.counts.mean(),
            min_ps: self.counts.min(),
            p50_ps: self.counts.value_at_quantile(0.5),
            p99_ps: self.counts.value_at_quantile(0.99),
            p999_ps: self.counts.value_at_quantile(0.999),
            max_ps: self.counts.max(),
        })
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Maximum latency in ps; longer ones are counted as this one.
const LATENCY_MAX_PS: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_good_to_a_thousandth() {
        let mut histogram = LatencyHistogram::new();
        assert_eq!(histogram.summary(), None);
        (1..=100_000).for_each(|n| histogram.record(Span::from_ns(n)));
        let summary = histogram.summary().unwrap();
        let near = |ours: u64, exact: f64| (ours as f64 / exact - 1.0).abs() < 1e-3;
        assert!(near(summary.p50_ps, 5e7) && near(summary.p99_ps, 9.9e7));
        assert!(near(summary.p999_ps, 9.99e7) && near(summary.max_ps, 1e8));
        assert!((summary.mean_ps / 50_000_500.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn merging_adds_counts_and_the_distribution_ends_at_one() {
        let mut a = LatencyHistogram::new();
        let mut b = LatencyHistogram::default();
        a.record(Span::from_us(1));
        b.record(Span::from_us(1));
        b.record(Span::from_us(2_000_000));
        a.merge(&b);
        let rows: Vec<LatencyRow> = a.rows("data").collect();
        assert_eq!((a.count(), rows.len()), (3, 2));
        assert_eq!((rows[0].count, rows[1].count), (2, 1));
        assert!((rows[0].cdf - 2.0 / 3.0).abs() < 1e-12 && rows[1].cdf == 1.0);
        assert!((rows[0].latency_ps as f64 / 1e6 - 1.0).abs() < 1e-3, "{rows:?}");
    }
}
