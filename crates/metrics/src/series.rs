//! Tables of samples during a run: links, queues and drops over time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_types::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::columns::{rows, write_rows};
use crate::table::TableError;

rows! {
    /// Sample of all ports of one tier over one interval: a row of `series.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TierSample, TierSamples {
        /// End of the interval.
        ["ps"] time_ps: u64,
        /// Tier: all ports of one kind, such as `tor-down`.
        [""] tier: Cow<'static, str>,
        /// Share of their capacity that the ports used in the interval.
        ["1"] utilisation: f64,
        /// Mean queue of the ports at the end of the interval.
        ["B"] queue_mean_bytes: f64,
        /// Longest queue of the ports at the end of the interval.
        ["B"] queue_max_bytes: u64,
    }
}

rows! {
    /// Sample of one direction of one link over one interval: a row of `links.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LinkSample, LinkSamples {
        /// End of the interval.
        ["ps"] time_ps: u64,
        /// Number of the link in the topology.
        [""] link: u32,
        /// Sending end: `h` for hosts, `s` for switches, `a` for arbiters, and its number.
        [""] from: Cow<'static, str>,
        /// Receiving end.
        [""] to: Cow<'static, str>,
        /// Tier of the sending port.
        [""] tier: Cow<'static, str>,
        /// Bytes sent in the interval.
        ["B"] sent_bytes: u64,
        /// Share of its capacity that it used in the interval.
        ["1"] utilisation: f64,
        /// Queue at the end of the interval.
        ["B"] queue_bytes: u64,
    }
}

rows! {
    /// Packets that one port dropped for one reason during one interval: a row of `drops.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DropSample, DropSamples {
        /// End of the interval.
        ["ps"] time_ps: u64,
        /// Number in the topology of the link before which they were dropped, or which lost them.
        [""] link: u32,
        /// Sending end.
        [""] from: Cow<'static, str>,
        /// Receiving end.
        [""] to: Cow<'static, str>,
        /// Tier of the port.
        [""] tier: Cow<'static, str>,
        /// Reason: buffer, pushed-out, loss, link-down, no-route, program, collision, cut-off or
        /// unscheduled.
        [""] reason: Cow<'static, str>,
        /// Packets dropped in the interval.
        [""] packets: u64,
        /// Data packets among them.
        [""] data_packets: u64,
        /// Bytes of these packets, headers included.
        ["B"] bytes: u64,
    }
}

rows! {
    /// Failure or repair: a row of `outages.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OutageRow, OutageRows {
        /// Time of the event.
        ["ps"] time_ps: u64,
        /// Element: a host, a switch, an arbiter, or a link by its ends, such as `h0-s3`.
        [""] element: Cow<'static, str>,
        /// `down`, `up`, or `changed` if the link has another rate or delay.
        [""] state: Cow<'static, str>,
        /// Time from which switches route by it.
        ["ps"] routed_ps: u64,
    }
}

rows! {
    /// Name of a host: a row of `hosts.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HostRow, HostRows {
        /// Number of the host, as in other tables.
        [""] host: u32,
        /// Name of the host in the plan or in the file of the topology.
        [""] name: Cow<'static, str>,
    }
}

rows! {
    /// Bytes of one tenant's messages delivered by an instant: a row of `tenants.parquet`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TenantSample, TenantSamples {
        /// Time of the sample.
        ["ps"] time_ps: u64,
        /// Number of the tenant.
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
        /// End of the interval.
        ["ps"] time_ps: u64,
        /// Number of the flow.
        [""] flow: u64,
        /// Payload that reached its receiver in the interval for the first time.
        ["B"] delivered_bytes: u64,
        /// Payload that its sender sent in the interval, retransmissions included.
        ["B"] sent_bytes: u64,
        /// Rate of `delivered_bytes` over the interval.
        ["Gbit/s"] goodput_gbps: f64,
    }
}

rows! {
    /// Window or credit at an instant: a row of `windows.parquet`. The transport's page describes
    /// its windows and credits.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WindowSample, WindowSamples {
        /// Time of the sample.
        ["ps"] time_ps: u64,
        /// Host that keeps it.
        [""] host: u32,
        /// Other host.
        [""] peer: u32,
        /// Number of the flow; missing if it belongs to a pair of hosts.
        [""] flow: Option<u64>,
        /// Name, which ends in its unit, such as `cwnd_bytes`.
        [""] name: Cow<'static, str>,
        /// Value, in the unit of the name.
        [""] value: u64,
    }
}

rows! {
    /// Counters of the endpoints of a transport at an instant, all together: a row of
    /// `transport.parquet`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CounterSample, CounterSamples {
        /// Time of the sample.
        ["ps"] time_ps: u64,
        /// Name of the counter.
        [""] counter: Cow<'static, str>,
        /// Count since the start.
        [""] value: u64,
    }
}

rows! {
    /// Number of samples with one queue length in a tier: a row of `queues.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QueueRow, QueueRows {
        /// Name of the tier.
        [""] tier: Cow<'static, str>,
        /// Queue length.
        ["B"] queue_bytes: u64,
        /// Number of samples of this length.
        [""] samples: u64,
        /// Share of the tier's samples at or below this length.
        ["1"] cdf: f64,
    }
}

rows! {
    /// Number of packets with one latency in the fabric, to 0.1 %: a row of `latencies.parquet`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LatencyRow, LatencyRows {
        /// Kind of packets: `data` or `control`.
        [""] packets: Cow<'static, str>,
        /// Time from the first bit at the sender's interface to the last bit at the receiver.
        ["ps"] latency_ps: u64,
        /// Number of packets with this latency.
        [""] count: u64,
        /// Share of these packets at or below this latency.
        ["1"] cdf: f64,
    }
}

/// Distribution of queue lengths, by tier: a count of samples for every length that occurred.
#[derive(Clone, Debug, Default)]
pub struct QueueDistribution {
    tiers: BTreeMap<String, BTreeMap<u64, u64>>,
}

/// Queues of one tier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueSummary {
    /// Name of the tier.
    pub tier: String,
    /// Number of samples.
    pub samples: u64,
    /// Mean length in bytes.
    pub mean_bytes: f64,
    /// 99th percentile of the length in bytes, by nearest rank.
    pub p99_bytes: u64,
    /// Maximum sampled length in bytes. The longest queue at any time is `queue_max_bytes` of the
    /// tier.
    pub max_bytes: u64,
}

impl QueueDistribution {
    /// Creates an empty distribution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `samples` samples of a queue of `length` in `tier`.
    pub fn record(&mut self, tier: &str, length: Bytes, samples: u64) {
        // Most samples are of a tier that has an entry, and need no new name.
        if !self.tiers.contains_key(tier) {
            self.tiers.insert(tier.to_owned(), BTreeMap::new());
        }
        if let Some(lengths) = self.tiers.get_mut(tier) {
            *lengths.entry(length.get()).or_insert(0) += samples;
        }
    }

    /// Returns a summary of each tier.
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
    fn every_column_has_a_description_and_a_name_with_its_unit() {
        let tables = [
            TierSample::ABOUT,
            LinkSample::ABOUT,
            DropSample::ABOUT,
            OutageRow::ABOUT,
            HostRow::ABOUT,
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
    fn the_file_contains_unit_and_meaning() {
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
