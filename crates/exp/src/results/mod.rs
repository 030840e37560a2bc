//! Summary of a run, as JSON.

pub(crate) mod collisions;
pub(crate) mod manifest;
pub(crate) mod outcome;
pub(crate) mod publish;
pub(crate) mod report;
pub(crate) mod tier;
pub(crate) mod warnings;
pub(crate) mod window;

use rampmeter_metrics::histogram::LatencySummary;
use rampmeter_metrics::series::QueueSummary;
use rampmeter_metrics::{Bins, Ideal, Sample, SampleOrder, Stats, by_size};
use rampmeter_sim::fabric::TierStats;
use rampmeter_sim::tier_capacities;
use rampmeter_types::Time;
use rampmeter_workload::Process;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

use crate::plan::tables::MeasureSpec;
use crate::record::sampling::CumulativeSample;
use crate::record::{FlowSample, Recorder};
use crate::simulation::status::RunStatus;
use crate::traffic::collective::CollectiveRound;
use crate::traffic::rpc::RpcSummary;
use crate::warning::WarningValues;
use collisions::CollisionReport;
use outcome::RunOutput;
use report::{DeadlockReport, FlowCounts, Slowdown};
use tier::Tier;
use window::{WarmUpReport, Window, WindowInput, carried_until};

/// The summary of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Status of the run at its end.
    pub status: RunStatus,
    /// Flows by how they ended.
    pub flows: FlowCounts,
    /// Time over which `utilisation` and `goodput_gbps` are measured; none of an empty run.
    pub window: Option<Window>,
    /// First flows that are left out.
    pub warmup: WarmUpReport,
    /// Warnings to the reader of the numbers.
    pub warnings: Vec<String>,
    /// The kind of each warning, for programs; `rampmeter explain` has a paragraph on each.
    pub warning_codes: Vec<&'static str>,
    /// The numbers and names in the text of each warning; names of numbers end in their units.
    pub warning_values: Vec<WarningValues>,
    /// Share of the window in which the links of hosts, towards the network, were busy: their mean.
    /// None of runs without samples.
    pub utilisation: Option<f64>,
    /// Message bytes delivered in the window, over its length, all hosts together.
    pub goodput_gbps: Option<f64>,
    /// `goodput_gbps` by tenant. Only if there are several, and samples.
    pub tenant_goodput_gbps: BTreeMap<u32, f64>,
    /// Data packets delivered when arrivals stopped, over those offered until then: the
    /// utilisation of dcPIM's figures. None where all flows arrive at the start.
    pub delivered_share: Option<f64>,
    /// Sum of completion times over sum of ideals (`delivered`), of the flows counted.
    pub nfct: Option<f64>,
    /// Share of the flows with a deadline that were delivered by it.
    pub deadlines_met: Option<f64>,
    /// Slowdown (`delivered`) of the flows counted, by tenant; only where there are several.
    pub tenants: BTreeMap<u32, Stats>,
    /// Slowdown by ideal: `delivered`, `acked`, `figure`.
    pub slowdown: BTreeMap<&'static str, Slowdown>,
    /// Totals by hop tier.
    pub tiers: Vec<Tier>,
    /// Circles of ports that had paused each other at the end, and would stay paused. Left out if
    /// there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlocks: Vec<DeadlockReport>,
    /// Packets that found their port busy. Only of fabrics in which nothing may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collisions: Option<CollisionReport>,
    /// Queue lengths by tier, sampled.
    pub queues: Vec<QueueSummary>,
    /// Time of packets in the fabric, `data` and `control`.
    pub latency: BTreeMap<&'static str, Option<LatencySummary>>,
    /// Totals.
    pub counters: Totals,
    /// Counters of the transport's endpoints, all hosts and arbiters together. Empty for transports
    /// that count nothing.
    pub transport: BTreeMap<&'static str, u64>,
    /// Rounds of collective operations.
    pub collectives: Vec<CollectiveRound>,
    /// Latencies of calls (`rpc`), by part of the workload.
    pub rpcs: Vec<RpcSummary>,
}

/// Totals of the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Totals {
    /// Packets put on links.
    pub packet_hops: u64,
    /// Events.
    pub events: u64,
    /// Data packets that brought bytes for the first time.
    pub data_packets: u64,
    /// Message bytes that were received again.
    pub duplicate_bytes: u64,
    /// Arrival of the last flow, in picoseconds.
    pub last_arrival_ps: u64,
    /// End of the run, in picoseconds.
    pub end_ps: u64,
}

impl Summary {
    /// Returns the summary as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("every field is a number, a text or a container of those")
    }

    pub(crate) fn new(run: RunOutput<'_>, mut recorder: Recorder, measure: &MeasureSpec) -> Self {
        let end_ps = recorder.statistics_end_ps();
        let mut all = std::mem::take(&mut recorder.flow_samples);
        all.sort_unstable_by_key(|k| k.number);
        let process = run.process(&all);
        let warmup = WarmUpReport::new(measure, process, &all);
        let choice = CountedFlows { first: warmup.flows, end_ps };
        let counted: Vec<&FlowSample> =
            all.iter().filter(|k| choice.counts(k, Ideal::Delivered)).collect();
        let order = order_of(process);
        let slowdown = slowdowns(&all, choice, run.bdp_bytes, order);
        let window = Window::new(&WindowInput {
            counted: &counted,
            unfinished_flows: &recorder.unfinished_flows,
            unfinished: recorder.unfinished,
            warmup: warmup.flows,
            process: run.process,
            last_arrival: run.counters.last_arrival,
            end_ps: run.end_ps,
            statistics_end: end_ps,
        });
        let knots = std::mem::take(&mut recorder.samples.cumulative);
        let is_sampled = !knots.is_empty();
        let samples = window.filter(|_| is_sampled).map(|w| w.samples(&knots));
        let knots = with_ends(knots, &run, &all, &recorder.delivered_bytes);
        let carried = CarriedBytes { knots, window, is_sampled };
        let tiers = carried.tiers(&run);
        let flows = flow_counts(&run, &recorder, counted.len());
        let delivered_share = run.delivered_share();
        let warnings = warnings::run_warnings(&warnings::RunFacts {
            outcome: &run,
            recorder: &recorder,
            flows: &flows,
            warmup: &warmup,
            slowdown: &slowdown,
            counted: &counted,
            process,
            delivered_share,
            samples,
        });
        let each = warnings.into_iter().map(|w| (w.code, (w.values, w.text)));
        let (warning_codes, (warning_values, warnings)) = each.unzip();
        Self {
            counters: totals(&run),
            status: run.status(&flows),
            flows,
            window,
            warmup,
            warnings,
            warning_codes,
            warning_values,
            utilisation: utilisation_of_hosts(&run.tiers, &tiers),
            goodput_gbps: carried.gbps(&|knot| knot.fresh_bytes),
            tenant_goodput_gbps: carried.tenants(&recorder.delivered_bytes),
            delivered_share,
            nfct: nfct(&counted),
            deadlines_met: (recorder.n_with_deadline > 0)
                .then(|| recorder.n_in_time as f64 / recorder.n_with_deadline as f64),
            tenants: by_tenant(&counted, order),
            slowdown,
            tiers,
            deadlocks: run.deadlocks,
            collisions: run.collisions.map(CollisionReport::new),
            queues: recorder.samples.queues.summaries(),
            latency: latency(&recorder),
            transport: run.transport,
            collectives: run.collectives,
            rpcs: run.rpcs,
        }
    }
}

/// Returns the order of flows in which batches of samples are formed.
fn order_of(process: Process) -> SampleOrder {
    match process {
        Process::Changing | Process::Bursts => SampleOrder::Any,
        Process::Poisson | Process::Trace => SampleOrder::Arrival,
    }
}

/// Returns the sum of completion times over the sum of ideals.
fn nfct(counted: &[&FlowSample]) -> Option<f64> {
    let sum = |quantity: &dyn Fn(&FlowSample) -> u64| {
        counted.iter().map(|k| quantity(k) as f64).sum::<f64>()
    };
    let ideals = sum(&|k| k.ideal[0]);
    (ideals > 0.0).then(|| sum(&|k| k.fct[0]) / ideals)
}

/// Returns the utilisation of the tier of hosts.
fn utilisation_of_hosts(stats: &[TierStats], tiers: &[Tier]) -> Option<f64> {
    let mut tiers = stats.iter().zip(tiers);
    tiers.find(|(stats, _)| stats.is_of_hosts).and_then(|(_, tier)| tier.utilisation)
}

fn totals(outcome: &RunOutput<'_>) -> Totals {
    let counters = outcome.counters;
    Totals {
        packet_hops: outcome.packet_hops,
        events: counters.events,
        data_packets: counters.fresh_packets,
        duplicate_bytes: counters.duplicate_bytes,
        last_arrival_ps: counters.last_arrival.as_ps(),
        end_ps: outcome.end_ps,
    }
}

fn flow_counts(outcome: &RunOutput<'_>, recorder: &Recorder, counted: usize) -> FlowCounts {
    FlowCounts {
        submitted: outcome.counters.submitted,
        delivered: outcome.counters.delivered,
        failed: recorder.failed,
        rejected: recorder.rejected,
        unfinished: recorder.unfinished,
        not_started: recorder.not_started,
        counted: counted as u64,
    }
}

/// Times of packets in the fabric, by their kind.
fn latency(recorder: &Recorder) -> BTreeMap<&'static str, Option<LatencySummary>> {
    BTreeMap::from([
        ("data", recorder.data_latency.summary()),
        ("control", recorder.control_latency.summary()),
    ])
}

/// Bytes that the network carried in the measured window.
struct CarriedBytes {
    knots: Vec<CumulativeSample>,
    window: Option<Window>,
    /// True if there are samples of links.
    is_sampled: bool,
}

impl CarriedBytes {
    /// Returns the amount in the window of `quantity`, a quantity of the knots.
    fn carried(&self, quantity: &dyn Fn(&CumulativeSample) -> u64) -> Option<f64> {
        self.window.and_then(|window| window.carried(&self.knots, quantity))
    }

    /// Returns the rate of `quantity`, a quantity of the knots in bytes.
    fn gbps(&self, quantity: &dyn Fn(&CumulativeSample) -> u64) -> Option<f64> {
        let seconds = self.window.map_or(0.0, Window::seconds);
        self.carried(quantity).map(|bytes| bytes * 8e-9 / seconds)
    }

    /// Returns the goodput of each of several tenants, which have `delivered` bytes in the run.
    fn tenants(&self, delivered: &BTreeMap<u32, u64>) -> BTreeMap<u32, f64> {
        let tenants = delivered.keys().filter(|_| self.is_sampled && delivered.len() > 1);
        let goodput = |&tenant: &u32| Some((tenant, self.gbps(&|knot| knot.of_tenant(tenant))?));
        tenants.filter_map(goodput).collect()
    }

    /// Returns the totals of tiers, with their utilisation.
    fn tiers(&self, outcome: &RunOutput<'_>) -> Vec<Tier> {
        let capacities = self.window.map(|window| {
            let [from, to] = [window.from_ps, window.to_ps].map(Time::from_ps);
            tier_capacities(outcome.topology, outcome.changes, from, to)
        });
        let capacity = |name: &str| capacities.as_ref()?.get(name).copied();
        let tier = |(i, stats): (usize, &TierStats)| {
            let bits = self.carried(&|knot| knot.of_tier(i)).map(|bytes| bytes * 8.0);
            // The bytes sent by an instant are in samples only.
            let bits = bits.filter(|_| self.is_sampled);
            let pfc = outcome.pfc.and_then(|tiers| tiers.get(i)).copied();
            let utilisation = bits.zip(capacity(&stats.name)).map(|(bits, most)| bits / most);
            Tier::new(stats.clone(), utilisation, pfc, outcome.names)
        };
        outcome.tiers.iter().enumerate().map(tier).collect()
    }
}

/// Flows that statistics count.
#[derive(Clone, Copy, Debug)]
struct CountedFlows {
    /// First number that is counted.
    first: u64,
    /// Only those that finish before this instant, in picoseconds.
    end_ps: Option<u64>,
}

impl CountedFlows {
    /// Returns true if a flow is counted by the completion that `ideal` is about.
    fn counts(self, k: &FlowSample, ideal: Ideal) -> bool {
        let Some(completion) = k.completion(ideal) else { return false };
        let finish = k.arrival.as_ps().saturating_add(completion);
        u64::from(k.number) >= self.first && self.end_ps.is_none_or(|mark| finish < mark)
    }
}

/// Slowdown by ideal, of flows that are in the order of arrival.
fn slowdowns(
    all: &[FlowSample],
    choice: CountedFlows,
    bdp_bytes: u64,
    order: SampleOrder,
) -> BTreeMap<&'static str, Slowdown> {
    let of = |ideal: Ideal| {
        let sample = |k: &FlowSample| {
            k.slowdown(ideal).map(|slowdown| Sample { size_bytes: k.size, slowdown })
        };
        let samples = || all.iter().filter(|k| choice.counts(k, ideal)).filter_map(sample);
        (ideal.name(), by_all_bins(samples, bdp_bytes, order))
    };
    [Ideal::Delivered, Ideal::Acked, Ideal::Figure].map(of).into_iter().collect()
}

/// Returns the bytes carried by each sample and by the end. Runs without samples count the bytes of
/// a flow when it is delivered.
fn with_ends(
    mut knots: Vec<CumulativeSample>,
    outcome: &RunOutput<'_>,
    all: &[FlowSample],
    delivered: &BTreeMap<u32, u64>,
) -> Vec<CumulativeSample> {
    if knots.is_empty() {
        let delivery = |k: &FlowSample| (k.arrival.as_ps().saturating_add(k.fct[0]), k.size);
        let mut deliveries: Vec<(u64, u64)> = all.iter().map(delivery).collect();
        deliveries.sort_unstable();
        let mut fresh = 0;
        knots.extend(deliveries.into_iter().flat_map(|(ps, size)| {
            let before = fresh;
            fresh += size;
            // Nothing just before, everything at the instant.
            [(ps.saturating_sub(1), before), (ps, fresh)].map(|(ps, fresh_bytes)| {
                CumulativeSample {
                    at: Time::from_ps(ps),
                    fresh_bytes,
                    tiers: vec![],
                    tenants: vec![],
                }
            })
        }));
    }
    let tiers = outcome.tiers.iter().map(|tier| tier.bytes).collect();
    let end = Time::from_ps(outcome.end_ps);
    if knots.last().is_none_or(|last| last.at <= end) {
        let n_tenants = delivered.keys().next_back().map_or(0, |last| last + 1);
        let of_tenant = |tenant| delivered.get(&tenant).copied().unwrap_or(0);
        let tenants = (0..n_tenants).map(of_tenant).collect();
        knots.push(CumulativeSample {
            at: end,
            fresh_bytes: outcome.counters.fresh_bytes,
            tiers,
            tenants,
        });
    }
    let counters = &outcome.counters;
    add_exact_sum(counters.last_arrival, counters.fresh_bytes_at_last_arrival, &mut knots);
    // The last delivery of a flow brought the last byte, unless parts of others were delivered.
    let delivered = all.iter().map(|k| k.arrival.as_ps().saturating_add(k.fct[0])).max();
    if let Some(at) = delivered
        && all.iter().map(|k| k.size).sum::<u64>() == counters.fresh_bytes
    {
        add_exact_sum(Time::from_ps(at), counters.fresh_bytes, &mut knots);
    }
    knots
}

/// Adds the bytes that had been delivered at an instant. Their sum is exact; those of tiers and
/// tenants are interpolated.
fn add_exact_sum(at: Time, fresh_bytes: u64, knots: &mut Vec<CumulativeSample>) {
    let after = knots.partition_point(|knot| knot.at < at);
    let Some(next) = knots.get(after) else { return };
    let sent = |tier: usize| carried_until(knots, at.as_ps(), |knot| knot.of_tier(tier));
    let tiers = (0..next.tiers.len()).filter_map(sent).map(|bytes| bytes as u64).collect();
    let before = after.checked_sub(1).map(|i| &knots[i]);
    let tenants = tenants_between(before, next, fresh_bytes);
    knots.insert(after, CumulativeSample { at, fresh_bytes, tiers, tenants });
}

/// Returns the bytes of each tenant at an instant between two knots, when all tenants together had
/// received `fresh_bytes`. Each has the same fraction of its bytes between the knots.
fn tenants_between(
    before: Option<&CumulativeSample>,
    next: &CumulativeSample,
    fresh_bytes: u64,
) -> Vec<u64> {
    let base = before.map_or(0, |knot| knot.fresh_bytes);
    let part = u128::from(fresh_bytes.saturating_sub(base));
    let whole = u128::from(next.fresh_bytes.saturating_sub(base));
    let (mut sum, mut allotted) = (0, 0);
    let bytes = |tenant| {
        let base = before.map_or(0, |knot| knot.of_tenant(tenant));
        sum += u128::from(next.of_tenant(tenant).saturating_sub(base)) * part;
        // The sum is rounded, not the parts, so that they add up to it.
        let own = sum.checked_div(whole).unwrap_or(0) - allotted;
        allotted += own;
        base + own as u64
    };
    (0..next.tenants.len() as u32).map(bytes).collect()
}

fn by_tenant(counted: &[&FlowSample], order: SampleOrder) -> BTreeMap<u32, Stats> {
    let mut samples: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for k in counted {
        if let Some(slowdown) = k.slowdown(Ideal::Delivered) {
            samples.entry(k.tenant).or_default().push(slowdown);
        }
    }
    if samples.len() < 2 {
        return BTreeMap::new();
    }
    samples.into_iter().filter_map(|(t, mut s)| Some((t, order.stats(&mut s)?))).collect()
}

fn by_all_bins<I: Iterator<Item = Sample>>(
    samples: impl Fn() -> I + Copy,
    bdp_bytes: u64,
    order: SampleOrder,
) -> Slowdown {
    let mut sizes: Vec<u64> = samples().map(|s| s.size_bytes).collect();
    sizes.sort_unstable();
    let decile = |n: usize| sizes.get(sizes.len() * n / 10).copied();
    let deciles = Bins::Deciles { sizes: (1..10).filter_map(decile).collect() };
    drop(sizes);
    let (overall, bdp) = by_size(samples, &Bins::BdpMultiples { bdp_bytes }, order);
    Slowdown {
        overall,
        bdp,
        decades: by_size(samples, &Bins::Decades, order).1,
        deciles: by_size(samples, &deciles, order).1,
        classes: by_size(samples, &Bins::PacketClasses, order).1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_tenants_add_up_to_the_total() {
        let knot = |tenants: &[u64]| CumulativeSample {
            at: Time::ZERO,
            fresh_bytes: tenants.iter().sum(),
            tiers: vec![],
            tenants: tenants.to_vec(),
        };
        let (before, next) = (knot(&[100, 7]), knot(&[200, 7, 50]));
        assert_eq!(tenants_between(Some(&before), &next, 107), [100, 7, 0]);
        assert_eq!(tenants_between(Some(&before), &next, 257), next.tenants);
        assert_eq!(tenants_between(Some(&before), &next, 182), [150, 7, 25]);
        for total in 107..=257 {
            assert_eq!(tenants_between(Some(&before), &next, total).iter().sum::<u64>(), total);
        }
        assert_eq!(tenants_between(None, &next, 0), [0; 3]);
        assert_eq!(tenants_between(None, &knot(&[0, 0]), 0), [0; 2]);
    }
}
