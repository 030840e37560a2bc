//! What a run comes to, as JSON.

use rampmeter_metrics::histogram::LatencySummary;
use rampmeter_metrics::series::QueueSummary;
use rampmeter_metrics::{BinStats, Bins, Sample, Stats, by_size};
use rampmeter_sim::Counters;
use rampmeter_sim::fabric::{DropReason, TierStats};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::plan::MeasureSpec;
use crate::ran::RunStatus;
use crate::record::{Kept, Recorder};

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How it ended.
    pub status: RunStatus,
    /// Flows by how they ended.
    pub flows: FlowCounts,
    /// Data packets delivered when arrivals stopped, over those offered until then (dcPIM's
    /// figures).
    pub utilisation: f64,
    /// Sum of completion times over sum of ideals (`delivered`), of the flows counted.
    pub nfct: Option<f64>,
    /// Message bytes delivered until arrivals stopped, over that time, all hosts together.
    pub goodput_gbps: f64,
    /// Share of the flows with a deadline that were delivered by it.
    pub deadlines_met: Option<f64>,
    /// Slowdown (`delivered`) of the flows counted, by tenant; only where there are several.
    pub tenants: BTreeMap<u32, Stats>,
    /// Slowdown by ideal: `delivered`, `acked`, `figure`.
    pub slowdown: BTreeMap<&'static str, Slowdown>,
    /// Totals by hop tier.
    pub tiers: Vec<Tier>,
    /// Queue lengths by tier, sampled.
    pub queues: Vec<QueueSummary>,
    /// Time of packets in the fabric, `data` and `control`.
    pub latency: BTreeMap<&'static str, Option<LatencySummary>>,
    /// Totals.
    pub counters: Totals,
    /// What the transport's endpoints have counted, all hosts and arbiters together. Empty for
    /// transports that count nothing.
    pub transport: BTreeMap<&'static str, u64>,
}

/// Flows by how they ended.
#[derive(Clone, Debug, Serialize)]
pub struct FlowCounts {
    /// Submitted.
    pub submitted: u64,
    /// Delivered in full.
    pub delivered: u64,
    /// Given up by their sender.
    pub failed: u64,
    /// Not taken by the network.
    pub rejected: u64,
    /// Cut off by the end of the run.
    pub unfinished: u64,
    /// Counted in the statistics.
    pub counted: u64,
}

/// Slowdown against one ideal.
#[derive(Clone, Debug, Serialize)]
pub struct Slowdown {
    /// Of all flows counted.
    pub overall: Option<Stats>,
    /// By multiples of one BDP.
    pub bdp: Vec<BinStats>,
    /// By powers of ten of bytes.
    pub decades: Vec<BinStats>,
    /// By deciles of the flows counted.
    pub deciles: Vec<BinStats>,
    /// By classes of packets.
    pub classes: Vec<BinStats>,
}

/// Totals of one tier.
#[derive(Clone, Debug, Serialize)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Ports in it.
    pub ports: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// The longest queue.
    pub queue_max_bytes: u64,
    /// Packets dropped, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<&'static str, u64>,
    /// Data packets dropped.
    pub data_drops: u64,
    /// Bytes dropped.
    pub bytes_dropped: u64,
}

/// Totals of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Packets put on links.
    pub packet_hops: u64,
    /// Events.
    pub events: u64,
    /// Data packets that brought bytes for the first time.
    pub data_packets: u64,
    /// Message bytes that came again.
    pub duplicate_bytes: u64,
    /// When the last flow arrived, in picoseconds.
    pub last_arrival_ps: u64,
    /// When the run ended, in picoseconds.
    pub end_ps: u64,
}

/// The pieces of a run from which a summary is made.
pub(crate) struct Outcome<'a> {
    pub(crate) status: RunStatus,
    pub(crate) counters: &'a Counters,
    pub(crate) packet_hops: u64,
    pub(crate) end_ps: u64,
    pub(crate) tiers: Vec<TierStats>,
    pub(crate) transport: BTreeMap<&'static str, u64>,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
    /// Payload bytes of one BDP.
    pub(crate) bdp_bytes: u64,
}

impl Summary {
    /// The summary as JSON.
    pub fn to_json(&self) -> String {
        // Every field is a number, a string or a container of those.
        serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"))
    }

    pub(crate) fn of(outcome: Outcome<'_>, recorder: &mut Recorder, measure: &MeasureSpec) -> Self {
        let counters = outcome.counters;
        let all = std::mem::take(&mut recorder.kept);
        let finish = |k: &Kept, fct: usize| k.arrival.as_ps().saturating_add(k.fct[fct]);
        let mark = measure.finished_before_arrival.and_then(|n| {
            // Flows are numbered in the order of arrival, from zero.
            all.iter().find(|k| u64::from(k.number) + 1 == n).map(|k| k.arrival.as_ps())
        });
        let counts = |k: &Kept, fct: usize| {
            u64::from(k.number) >= measure.warmup_flows
                && k.fct[fct] < u64::MAX
                && mark.is_none_or(|m| finish(k, fct) < m)
        };
        let counted: Vec<&Kept> = all.iter().filter(|k| counts(k, 0)).collect();
        let mut slowdown = BTreeMap::new();
        for (name, fct, ideal) in [("delivered", 0, 0), ("acked", 1, 1), ("figure", 1, 2)] {
            let samples = || {
                all.iter().filter(|k| counts(k, fct) && k.ideal[ideal] > 0).map(|k| Sample {
                    size_bytes: k.size,
                    slowdown: k.fct[fct] as f64 / k.ideal[ideal] as f64,
                })
            };
            slowdown.insert(name, by_all_bins(samples, outcome.bdp_bytes));
        }
        let has_deadlines = recorder.with_deadline > 0;
        let met = recorder.in_time as f64 / recorder.with_deadline as f64;
        let sum = |of: &dyn Fn(&Kept) -> u64| counted.iter().map(|k| of(k) as f64).sum::<f64>();
        let ideal_sum = sum(&|k| k.ideal[0]);
        let seconds = counters.last_arrival.as_secs_f64();
        let goodput = counters.fresh_bytes_at_last_arrival as f64 * 8e-9 / seconds;
        let delivered_packets = counters.fresh_packets_at_last_arrival as f64;
        let latency = [
            ("data", recorder.data_latency.summary()),
            ("control", recorder.control_latency.summary()),
        ];
        Self {
            status: outcome.status,
            flows: FlowCounts {
                submitted: counters.submitted,
                delivered: counters.delivered,
                failed: recorder.failed,
                rejected: recorder.rejected,
                unfinished: recorder.unfinished,
                counted: counted.len() as u64,
            },
            utilisation: delivered_packets / (outcome.offered_packets.max(1)) as f64,
            nfct: (ideal_sum > 0.0).then(|| sum(&|k| k.fct[0]) / ideal_sum),
            goodput_gbps: if seconds > 0.0 { goodput } else { 0.0 },
            deadlines_met: has_deadlines.then_some(met),
            tenants: by_tenant(&counted),
            slowdown,
            tiers: outcome.tiers.into_iter().map(Tier::from).collect(),
            queues: recorder.queues.summaries(),
            latency: latency.into_iter().collect(),
            transport: outcome.transport,
            counters: Totals {
                packet_hops: outcome.packet_hops,
                events: counters.events,
                data_packets: counters.fresh_packets,
                duplicate_bytes: counters.duplicate_bytes,
                last_arrival_ps: counters.last_arrival.as_ps(),
                end_ps: outcome.end_ps,
            },
        }
    }
}

fn by_tenant(counted: &[&Kept]) -> BTreeMap<u32, Stats> {
    let mut samples: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for k in counted.iter().filter(|k| k.ideal[0] > 0) {
        samples.entry(k.tenant).or_default().push(k.fct[0] as f64 / k.ideal[0] as f64);
    }
    if samples.len() < 2 {
        return BTreeMap::new();
    }
    samples.into_iter().filter_map(|(t, mut s)| Some((t, Stats::of(&mut s)?))).collect()
}

fn by_all_bins<I: Iterator<Item = Sample>>(
    samples: impl Fn() -> I + Copy,
    bdp_bytes: u64,
) -> Slowdown {
    let mut sizes: Vec<u64> = samples().map(|s| s.size_bytes).collect();
    sizes.sort_unstable();
    let decile = |n: usize| sizes.get(sizes.len() * n / 10).copied();
    let deciles = Bins::Deciles { sizes: (1..10).filter_map(decile).collect() };
    drop(sizes);
    let (overall, bdp) = by_size(samples, &Bins::BdpMultiples { bdp_bytes });
    Slowdown {
        overall,
        bdp,
        decades: by_size(samples, &Bins::Decades).1,
        deciles: by_size(samples, &deciles).1,
        classes: by_size(samples, &Bins::PacketClasses).1,
    }
}

impl From<TierStats> for Tier {
    fn from(tier: TierStats) -> Self {
        let drops = DropReason::NAMES.into_iter().zip(tier.drops).filter(|(_, n)| *n > 0);
        Self {
            name: tier.name,
            ports: tier.ports,
            bytes: tier.bytes,
            queue_max_bytes: tier.queue_max.get(),
            drops: drops.collect(),
            data_drops: tier.data_drops,
            bytes_dropped: tier.bytes_dropped,
        }
    }
}
