//! Tables of what is sampled during a run: queue lengths by tier, and link utilisation over time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use rampmeter_core::units::PS_PER_SECOND;
use rampmeter_core::{Bytes, Rate, Span, Time};
use serde::Serialize;

use crate::table::{TableError, TableWriter, broken};

/// What one tenant's messages had brought to their receivers by an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantSample {
    /// The instant.
    pub time: Time,
    /// The tenant.
    pub tenant: u32,
    /// Message bytes so far.
    pub delivered: Bytes,
}

/// Writes the columns `time_ps`, `tenant` and `delivered_bytes`.
///
/// # Errors
/// If the table cannot be written.
pub fn write_tenants(
    file: &Path,
    samples: &[TenantSample],
    metadata: &[(String, String)],
) -> Result<(), TableError> {
    let times: Vec<u64> = samples.iter().map(|s| s.time.as_ps()).collect();
    let tenants: Vec<u32> = samples.iter().map(|s| s.tenant).collect();
    let delivered: Vec<u64> = samples.iter().map(|s| s.delivered.get()).collect();
    write_table(
        file,
        metadata,
        vec![
            ("time_ps", DataType::UInt64, Arc::new(UInt64Array::from(times))),
            ("tenant", DataType::UInt32, Arc::new(UInt32Array::from(tenants))),
            ("delivered_bytes", DataType::UInt64, Arc::new(UInt64Array::from(delivered))),
        ],
    )
}

/// What the endpoints of a transport had counted by an instant, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSample {
    /// The instant.
    pub time: Time,
    /// What is counted.
    pub name: &'static str,
    /// How much, since the start.
    pub value: u64,
}

/// Writes the columns `time_ps`, `counter` and `value`.
///
/// # Errors
/// If the table cannot be written.
pub fn write_counters(
    file: &Path,
    samples: &[CounterSample],
    metadata: &[(String, String)],
) -> Result<(), TableError> {
    let times: Vec<u64> = samples.iter().map(|s| s.time.as_ps()).collect();
    let names: Vec<&str> = samples.iter().map(|s| s.name).collect();
    let values: Vec<u64> = samples.iter().map(|s| s.value).collect();
    write_table(
        file,
        metadata,
        vec![
            ("time_ps", DataType::UInt64, Arc::new(UInt64Array::from(times))),
            ("counter", DataType::Utf8, Arc::new(StringArray::from(names))),
            ("value", DataType::UInt64, Arc::new(UInt64Array::from(values))),
        ],
    )
}

/// How long queues were, by tier: a count of samples for every length that occurred.
#[derive(Clone, Debug, Default)]
pub struct QueueDistribution {
    tiers: BTreeMap<String, BTreeMap<u64, u64>>,
}

/// The queues of one tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueSummary {
    /// The tier.
    pub tier: String,
    /// Samples.
    pub samples: u64,
    /// Mean length in bytes.
    pub mean_bytes: f64,
    /// 99th percentile of the length in bytes, by nearest rank.
    pub p99_bytes: u64,
    /// Largest sampled length in bytes.
    pub max_bytes: u64,
}

impl QueueDistribution {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `samples` samples of a queue of `length` in `tier`.
    pub fn record(&mut self, tier: &str, length: Bytes, samples: u64) {
        // Most samples are of a tier that is known, and need no new name.
        if !self.tiers.contains_key(tier) {
            self.tiers.insert(tier.to_owned(), BTreeMap::new());
        }
        if let Some(lengths) = self.tiers.get_mut(tier) {
            *lengths.entry(length.get()).or_insert(0) += samples;
        }
    }

    /// What each tier comes to.
    pub fn summaries(&self) -> Vec<QueueSummary> {
        let summary = |(tier, lengths): (&String, &BTreeMap<u64, u64>)| {
            let samples: u64 = lengths.values().sum();
            let total: u128 =
                lengths.iter().map(|(&len, &n)| u128::from(len) * u128::from(n)).sum();
            let rank = (u128::from(samples) * 99).div_ceil(100);
            let mut seen = 0;
            let p99 = lengths.iter().find(|&(_, &n)| {
                seen += u128::from(n);
                seen >= rank
            });
            QueueSummary {
                tier: tier.clone(),
                samples,
                mean_bytes: total as f64 / samples.max(1) as f64,
                p99_bytes: p99.map_or(0, |(&length, _)| length),
                max_bytes: lengths.keys().next_back().copied().unwrap_or(0),
            }
        };
        self.tiers.iter().map(summary).collect()
    }

    /// Writes the columns `tier`, `queue_bytes`, `samples` and `cdf`, the share of the tier's
    /// samples at or below the length.
    ///
    /// # Errors
    /// If the table cannot be written.
    pub fn write(&self, file: &Path, metadata: &[(String, String)]) -> Result<(), TableError> {
        let (mut tiers, mut lengths) = (Vec::new(), Vec::new());
        let (mut counts, mut cdf) = (Vec::new(), Vec::new());
        for (tier, samples) in &self.tiers {
            let total: u64 = samples.values().sum();
            let mut seen = 0;
            for (&length, &n) in samples {
                seen += n;
                tiers.push(tier.as_str());
                lengths.push(length);
                counts.push(n);
                cdf.push(seen as f64 / total as f64);
            }
        }
        write_table(
            file,
            metadata,
            vec![
                ("tier", DataType::Utf8, Arc::new(StringArray::from(tiers))),
                ("queue_bytes", DataType::UInt64, Arc::new(UInt64Array::from(lengths))),
                ("samples", DataType::UInt64, Arc::new(UInt64Array::from(counts))),
                ("cdf", DataType::Float64, Arc::new(Float64Array::from(cdf))),
            ],
        )
    }
}

/// One link during one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSample {
    /// When the interval ended.
    pub end: Time,
    /// Its length.
    pub interval: Span,
    /// The link's number.
    pub link: u32,
    /// Its tier.
    pub tier: String,
    /// What it carried in the interval.
    pub carried: Bytes,
    /// Its rate.
    pub rate: Rate,
}

impl LinkSample {
    /// The share of the interval in which the link was busy.
    pub fn utilisation(&self) -> f64 {
        let capacity = self.rate.as_bps() as f64 * self.interval.as_ps() as f64;
        self.carried.get() as f64 * 8.0 * PS_PER_SECOND as f64 / capacity
    }
}

/// Writes the columns `end_ps`, `interval_ps`, `link`, `tier`, `carried_bytes` and `utilisation`.
///
/// # Errors
/// If the table cannot be written.
pub fn write_links(
    file: &Path,
    samples: &[LinkSample],
    metadata: &[(String, String)],
) -> Result<(), TableError> {
    let numbers = |of: fn(&LinkSample) -> u64| -> ArrayRef {
        Arc::new(samples.iter().map(of).collect::<UInt64Array>())
    };
    let tiers: StringArray = samples.iter().map(|sample| Some(sample.tier.as_str())).collect();
    let links: UInt32Array = samples.iter().map(|sample| sample.link).collect();
    let shares: Float64Array = samples.iter().map(LinkSample::utilisation).collect();
    write_table(
        file,
        metadata,
        vec![
            ("end_ps", DataType::UInt64, numbers(|sample| sample.end.as_ps())),
            ("interval_ps", DataType::UInt64, numbers(|sample| sample.interval.as_ps())),
            ("link", DataType::UInt32, Arc::new(links)),
            ("tier", DataType::Utf8, Arc::new(tiers)),
            ("carried_bytes", DataType::UInt64, numbers(|sample| sample.carried.get())),
            ("utilisation", DataType::Float64, Arc::new(shares)),
        ],
    )
}

/// All ports of one tier during one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct TierSample {
    /// When the interval ended.
    pub end: Time,
    /// The tier.
    pub tier: String,
    /// The share of their capacity that the ports used in the interval.
    pub utilisation: f64,
    /// Their mean queue at the end of it, in bytes.
    pub queue_mean: f64,
    /// Their longest queue at the end of it.
    pub queue_max: Bytes,
}

/// Writes the columns `time_ps`, `tier`, `utilisation`, `queue_mean_bytes` and `queue_max_bytes`.
///
/// # Errors
/// If the table cannot be written.
pub fn write_tiers(
    file: &Path,
    samples: &[TierSample],
    metadata: &[(String, String)],
) -> Result<(), TableError> {
    let times: UInt64Array = samples.iter().map(|sample| sample.end.as_ps()).collect();
    let tiers: StringArray = samples.iter().map(|sample| Some(sample.tier.as_str())).collect();
    let shares: Float64Array = samples.iter().map(|sample| sample.utilisation).collect();
    let means: Float64Array = samples.iter().map(|sample| sample.queue_mean).collect();
    let longest: UInt64Array = samples.iter().map(|sample| sample.queue_max.get()).collect();
    write_table(
        file,
        metadata,
        vec![
            ("time_ps", DataType::UInt64, Arc::new(times)),
            ("tier", DataType::Utf8, Arc::new(tiers)),
            ("utilisation", DataType::Float64, Arc::new(shares)),
            ("queue_mean_bytes", DataType::Float64, Arc::new(means)),
            ("queue_max_bytes", DataType::UInt64, Arc::new(longest)),
        ],
    )
}

fn write_table(
    file: &Path,
    metadata: &[(String, String)],
    columns: Vec<(&str, DataType, ArrayRef)>,
) -> Result<(), TableError> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, of, _)| Field::new(*name, of.clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|error| broken(file, error))?;
    let mut table = TableWriter::create(file, schema)?;
    table.write(&batch)?;
    table.finish(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Float64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
    use tempfile::TempDir;

    fn column(file: &Path, name: &str) -> Vec<f64> {
        let input = std::fs::File::open(file).unwrap();
        let mut reader = ParquetRecordBatchReader::try_new(input, 1024).unwrap();
        let batch = reader.next().unwrap().unwrap();
        batch.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec()
    }

    #[test]
    fn queues_are_counted_by_tier() {
        let mut queues = QueueDistribution::new();
        queues.record("tor-down", Bytes::ZERO, 98);
        queues.record("tor-down", Bytes::new(3000), 1);
        queues.record("tor-down", Bytes::new(6000), 1);
        queues.record("host", Bytes::new(1500), 1);
        let summaries = queues.summaries();
        assert_eq!((summaries[0].tier.as_str(), summaries[0].p99_bytes), ("host", 1500));
        let tor = &summaries[1];
        assert_eq!((tor.samples, tor.p99_bytes, tor.max_bytes), (100, 3000, 6000));
        assert_eq!(tor.mean_bytes, 90.0);
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("queues.parquet");
        queues.write(&file, &[]).unwrap();
        assert_eq!(column(&file, "cdf"), [1.0, 0.98, 0.99, 1.0]);
    }

    #[test]
    fn utilisation_is_busy_time_over_time() {
        let sample = LinkSample {
            end: Time::from_ps(20_000_000),
            interval: Span::from_us(10),
            link: 3,
            tier: "host".to_owned(),
            carried: Bytes::new(62_500),
            rate: Rate::from_gbps(100),
        };
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("links.parquet");
        write_links(&file, &[sample], &[]).unwrap();
        assert_eq!(column(&file, "utilisation"), [0.5]);
    }
}
