//! Tables of what is sampled during a run: links, queues and drops over time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_core::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::columns::{rows, write_rows};
use crate::table::TableError;

rows! {
    /// All ports of one tier during one interval: a row of `series.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TierSample, TierSamples {
        /// When the interval ended.
        ["ps"] time_ps: u64,
        /// The tier: all ports of one kind, such as `tor-down`.
        [""] tier: Cow<'static, str>,
        /// The share of their capacity that the ports used in the interval.
        ["1"] utilisation: f64,
        /// Their mean queue at the end of it.
        ["B"] queue_mean_bytes: f64,
        /// Their longest queue at the end of it.
        ["B"] queue_max_bytes: u64,
    }
}

rows! {
    /// One direction of one link during one interval: a row of `links.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LinkSample, LinkSamples {
        /// When the interval ended.
        ["ps"] time_ps: u64,
        /// The link, by its place in the topology.
        [""] link: u32,
        /// The end that sends: `h` for hosts, `s` for switches, `a` for arbiters, and its number.
        [""] from: Cow<'static, str>,
        /// The end that receives.
        [""] to: Cow<'static, str>,
        /// The tier of the sending port.
        [""] tier: Cow<'static, str>,
        /// What it sent in the interval.
        ["B"] sent_bytes: u64,
        /// The share of its capacity that it used in the interval.
        ["1"] utilisation: f64,
        /// Its queue at the end of the interval.
        ["B"] queue_bytes: u64,
    }
}

rows! {
    /// Packets that one port dropped for one reason during one interval: a row of
    /// `drops.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DropSample, DropSamples {
        /// When the interval ended.
        ["ps"] time_ps: u64,
        /// The link in front of which they were dropped, or which lost them, by its place in the
        /// topology.
        [""] link: u32,
        /// The end that sends.
        [""] from: Cow<'static, str>,
        /// The end that receives.
        [""] to: Cow<'static, str>,
        /// The tier of the port.
        [""] tier: Cow<'static, str>,
        /// Why: buffer, pushed-out, loss, link-down, no-route, program, collision, cut-off or
        /// unscheduled.
        [""] reason: Cow<'static, str>,
        /// Packets dropped in the interval.
        [""] packets: u64,
        /// Data packets among them.
        [""] data_packets: u64,
        /// Their bytes, headers included.
        ["B"] bytes: u64,
    }
}

rows! {
    /// A failure or a repair: a row of `outages.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OutageRow, OutageRows {
        /// When.
        ["ps"] time_ps: u64,
        /// What: a host, a switch, an arbiter, or a link by its ends, such as `h0-s3`.
        [""] what: Cow<'static, str>,
        /// `down`, `up`, or `changed` of a link with other rates or another delay.
        [""] state: Cow<'static, str>,
        /// When switches route by it.
        ["ps"] routed_ps: u64,
    }
}

rows! {
    /// What one tenant's messages had brought to their receivers by an instant: a row of
    /// `tenants.parquet`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TenantSample, TenantSamples {
        /// The instant.
        ["ps"] time_ps: u64,
        /// The tenant.
        [""] tenant: u32,
        /// Message bytes so far.
        ["B"] delivered_bytes: u64,
    }
}

rows! {
    /// Progress of one flow during one interval: a row of `rates.parquet`. Flows have rows from the
    /// interval of their arrival to that of their last byte.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RateSample, RateSamples {
        /// When the interval ended.
        ["ps"] time_ps: u64,
        /// The flow.
        [""] flow: u64,
        /// Payload that reached its receiver in the interval for the first time.
        ["B"] delivered_bytes: u64,
        /// Payload that its sender put on its link in the interval, retransmissions included.
        ["B"] sent_bytes: u64,
        /// Rate of `delivered_bytes` over the interval.
        ["Gbit/s"] goodput_gbps: f64,
    }
}

rows! {
    /// A window or a credit at an instant: a row of `windows.parquet`. The transport's page says what
    /// its windows and credits are.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WindowSample, WindowSamples {
        /// The instant.
        ["ps"] time_ps: u64,
        /// The host that keeps it.
        [""] host: u32,
        /// The other host.
        [""] peer: u32,
        /// The flow; missing where it is that of a pair of hosts.
        [""] flow: Option<u64>,
        /// Its name, which ends in its unit, such as `cwnd_bytes`.
        [""] name: Cow<'static, str>,
        /// Its value.
        [""] value: u64,
    }
}

rows! {
    /// What the endpoints of a transport had counted by an instant, all together: a row of
    /// `transport.parquet`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CounterSample, CounterSamples {
        /// The instant.
        ["ps"] time_ps: u64,
        /// What is counted.
        [""] counter: Cow<'static, str>,
        /// How much, since the start.
        [""] value: u64,
    }
}

rows! {
    /// How often the queues of a tier had one length: a row of `queues.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QueueRow, QueueRows {
        /// The tier.
        [""] tier: Cow<'static, str>,
        /// The length.
        ["B"] queue_bytes: u64,
        /// Samples of this length.
        [""] samples: u64,
        /// The share of the tier's samples at or below it.
        ["1"] cdf: f64,
    }
}

rows! {
    /// How many packets were in the fabric for one time, to one part in a thousand: a row of
    /// `latencies.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LatencyRow, LatencyRows {
        /// Which packets: `data` or `control`.
        [""] packets: Cow<'static, str>,
        /// From the first bit at the sender's interface to the last bit at the receiver.
        ["ps"] latency_ps: u64,
        /// Packets with this latency.
        [""] count: u64,
        /// The share of these packets at or below it.
        ["1"] cdf: f64,
    }
}

/// How long queues were, by tier: a count of samples for every length that occurred.
#[derive(Clone, Debug, Default)]
pub struct QueueDistribution {
    tiers: BTreeMap<String, BTreeMap<u64, u64>>,
}

/// The queues of one tier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueSummary {
    /// The tier.
    pub tier: String,
    /// Samples.
    pub samples: u64,
    /// Mean length in bytes.
    pub mean_bytes: f64,
    /// 99th percentile of the length in bytes, by nearest rank.
    pub p99_bytes: u64,
    /// Largest sampled length in bytes. The longest queue at any time is `queue_max_bytes` of the
    /// tier.
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

    /// Writes a [`QueueRow`] for each length that occurred.
    ///
    /// # Errors
    /// If the table cannot be written.
    pub fn write(&self, file: &Path, metadata: &[(String, String)]) -> Result<(), TableError> {
        let mut rows = Vec::new();
        for (tier, lengths) in &self.tiers {
            let total: u64 = lengths.values().sum();
            let mut seen = 0;
            for (&queue_bytes, &samples) in lengths {
                seen += samples;
                let cdf = seen as f64 / total as f64;
                rows.push(QueueRow { tier: tier.clone().into(), queue_bytes, samples, cdf });
            }
        }
        write_rows(file, &rows, metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Row as _, read_rows};
    use tempfile::TempDir;

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
        let (rows, _) = read_rows::<QueueRow>(&file).unwrap();
        assert_eq!(rows.cdf, [1.0, 0.98, 0.99, 1.0]);
    }

    #[test]
    fn every_column_says_what_it_means_and_names_end_in_their_units() {
        let tables = [
            TierSample::ABOUT,
            LinkSample::ABOUT,
            DropSample::ABOUT,
            OutageRow::ABOUT,
            LatencyRow::ABOUT,
            TenantSample::ABOUT,
            RateSample::ABOUT,
            WindowSample::ABOUT,
            CounterSample::ABOUT,
            QueueRow::ABOUT,
            crate::FlowRow::ABOUT,
        ];
        for about in tables.into_iter().flatten() {
            assert!(about.meaning.trim().ends_with('.'), "{about:?}");
            let end = match about.unit {
                "ps" => "_ps",
                "B" => "bytes",
                _ => "",
            };
            assert!(about.name.ends_with(end), "{about:?}");
        }
    }

    #[test]
    fn unit_and_meaning_stand_in_the_file() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("tenants.parquet");
        let sample = TenantSample { time_ps: 5, tenant: 1, delivered_bytes: 1460 };
        write_rows(&file, &[sample], &[]).unwrap();
        let input = std::fs::File::open(&file).unwrap();
        let builder =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(input).unwrap();
        let field = builder.schema().field_with_name("delivered_bytes").unwrap().clone();
        assert_eq!(field.metadata()["unit"], "B");
        assert_eq!(field.metadata()["meaning"], "Message bytes so far.");
    }
}
