//! Summary of a run, as JSON.

use rampmeter_core::{Span, Time};
use rampmeter_metrics::histogram::LatencySummary;
use rampmeter_metrics::series::QueueSummary;
use rampmeter_metrics::{BinStats, Bins, Ideal, Order, Sample, Stats, by_size};
use rampmeter_sim::fabric::{Collisions, LinkChange, TierStats};
use rampmeter_sim::{Counters, PfcStats, Topology, tier_capacities};
use rampmeter_workload::Process;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

use crate::collective::CollectiveRound;
use crate::collisions::CollisionReport;
use crate::names::NamesSpec;
use crate::plan::MeasureSpec;
use crate::ran::RunStatus;
use crate::record::{Kept, Recorder};
use crate::rpc::RpcSummary;
use crate::tier::Tier;
use crate::warnings;
use crate::window::{Knot, Measured, WarmUpReport, Window, carried_until};

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
    /// Share of the window in which the links of hosts, towards the network, were busy: their mean.
    /// None of runs without samples.
    pub utilisation: Option<f64>,
    /// Message bytes delivered in the window, over its length, all hosts together.
    pub goodput_gbps: Option<f64>,
    /// `goodput_gbps` by tenant. Only if there are several, and samples.
    pub tenant_goodput_gbps: BTreeMap<u32, f64>,
    /// Data packets delivered when arrivals stopped, over those offered until then: what dcPIM's
    /// figures call utilisation. None where all flows arrive at the start.
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

/// Flows by how they ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    /// Never submitted: they waited for others to the end. They are not among those submitted.
    pub not_started: u64,
    /// Counted in the statistics.
    pub counted: u64,
}

/// Slowdown against one ideal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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

/// A deadlock of priority flow control.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadlockReport {
    /// Time at which the last of its ports was paused, in picoseconds.
    pub since_ps: u64,
    /// The paused ports, each by its two ends, as `s0>s1`. Each holds packets for the next, and the
    /// last for the first.
    pub ports: Vec<String>,
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

/// The pieces of a run from which a summary is made.
pub(crate) struct Outcome<'a> {
    pub(crate) status: RunStatus,
    pub(crate) counters: &'a Counters,
    pub(crate) packet_hops: u64,
    pub(crate) end_ps: u64,
    pub(crate) tiers: Vec<TierStats>,
    /// Counters of priority flow control, by tier; `None` if it is off.
    pub(crate) pfc: Option<&'a [PfcStats]>,
    pub(crate) deadlocks: Vec<DeadlockReport>,
    pub(crate) collisions: Option<&'a Collisions>,
    pub(crate) transport: BTreeMap<&'static str, u64>,
    pub(crate) collectives: Vec<CollectiveRound>,
    pub(crate) rpcs: Vec<RpcSummary>,
    /// Time that the run continues after the last arrival.
    pub(crate) drain: Span,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
    /// Payload bytes of one BDP.
    pub(crate) bdp_bytes: u64,
    /// Warnings from the check of the plan.
    pub(crate) warnings: Vec<String>,
    /// True if there is a warning that the run ends before a flow could.
    pub(crate) has_short_drain: bool,
    /// Arrival process.
    pub(crate) process: Process,
    /// True if links or nodes fail during the run, so that it is not stationary.
    pub(crate) has_outages: bool,
    /// The network, the names of its nodes, and the changes of its links.
    pub(crate) topology: &'a Topology,
    pub(crate) names: &'a NamesSpec,
    pub(crate) changes: &'a [LinkChange],
}

impl Summary {
    /// The summary as JSON.
    pub fn to_json(&self) -> String {
        // Every field is a number, a string or a container of those.
        serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"))
    }

    pub(crate) fn of(outcome: Outcome<'_>, recorder: Recorder, measure: &MeasureSpec) -> Self {
        let counters = outcome.counters;
        let mark = recorder.mark_ps();
        let mut all = recorder.kept;
        all.sort_unstable_by_key(|k| k.number);
        // With an outage no run is stationary, nor is a trace of one burst.
        let is_one_burst = all.len() > 1 && all.iter().all(|k| k.arrival == all[0].arrival);
        let process = match outcome.has_outages || is_one_burst {
            true => Process::Bursts,
            false => outcome.process,
        };
        let warmup = WarmUpReport::of(measure, process, &all);
        let choice = Choice { first: warmup.flows, mark };
        let counted: Vec<&Kept> =
            all.iter().filter(|k| choice.counts(k, Ideal::Delivered)).collect();
        let order = match process {
            Process::Bursts => Order::Any,
            Process::Poisson | Process::Trace => Order::Arrival,
        };
        let slowdown = slowdowns(&all, choice, outcome.bdp_bytes, order);
        let window = Window::of(&Measured {
            counted: &counted,
            open: &recorder.open,
            unfinished: recorder.unfinished,
            warmup: warmup.flows,
            process: outcome.process,
            last_arrival: counters.last_arrival,
            end_ps: outcome.end_ps,
            mark,
        });
        let is_sampled = !recorder.samples.knots.is_empty();
        let samples = window.filter(|_| is_sampled).map(|w| w.samples(&recorder.samples.knots));
        let delivered = &recorder.delivered_bytes;
        let knots = knots(&outcome, recorder.samples.knots, &all, delivered);
        let carried = |of: &dyn Fn(&Knot) -> u64| window.and_then(|w| w.carried(&knots, of));
        let seconds = window.map_or(0.0, Window::seconds);
        let tenants = delivered.keys().filter(|_| is_sampled && delivered.len() > 1);
        let tenants = tenants.filter_map(|&tenant| {
            let bytes = carried(&|knot| knot.of_tenant(tenant))?;
            Some((tenant, bytes * 8e-9 / seconds))
        });
        let capacities = window.map(|window| {
            let [from, to] = [window.from_ps, window.to_ps].map(Time::from_ps);
            tier_capacities(outcome.topology, outcome.changes, from, to)
        });
        let capacity = |name: &str| capacities.as_ref()?.get(name).copied();
        let tier = |(i, stats): (usize, &TierStats)| {
            let bits = carried(&|knot| knot.of_tier(i)).map(|bytes| bytes * 8.0);
            // The bytes sent by an instant are in samples only.
            let bits = bits.filter(|_| is_sampled);
            let pfc = outcome.pfc.and_then(|tiers| tiers.get(i)).copied();
            let utilisation = bits.zip(capacity(&stats.name)).map(|(bits, most)| bits / most);
            Tier::new(stats.clone(), utilisation, pfc, outcome.names)
        };
        let tiers: Vec<Tier> = outcome.tiers.iter().enumerate().map(tier).collect();
        let mut by_tier = outcome.tiers.iter().zip(&tiers);
        let hosts = by_tier.find(|(stats, _)| stats.is_of_hosts);
        let utilisation = hosts.and_then(|(_, tier)| tier.utilisation);
        let flows = FlowCounts {
            submitted: counters.submitted,
            delivered: counters.delivered,
            failed: recorder.failed,
            rejected: recorder.rejected,
            unfinished: recorder.unfinished,
            not_started: recorder.not_started,
            counted: counted.len() as u64,
        };
        let status = match outcome.status {
            RunStatus::Finished if flows.delivered < flows.submitted + flows.not_started => {
                RunStatus::Incomplete
            }
            status => status,
        };
        let has_deadlines = recorder.with_deadline > 0;
        let met = recorder.in_time as f64 / recorder.with_deadline as f64;
        let sum = |of: &dyn Fn(&Kept) -> u64| counted.iter().map(|k| of(k) as f64).sum::<f64>();
        let ideal_sum = sum(&|k| k.ideal[0]);
        let is_over_time = counters.last_arrival > Time::ZERO && outcome.offered_packets > 0;
        let delivered_packets = counters.fresh_packets_at_last_arrival as f64;
        let delivered_share =
            is_over_time.then(|| delivered_packets / outcome.offered_packets as f64);
        let latency = [
            ("data", recorder.data_latency.summary()),
            ("control", recorder.control_latency.summary()),
        ];
        let mut warnings = outcome.warnings.clone();
        warnings.extend(recorder.warnings.iter().cloned());
        warnings.extend(warnings::of(&warnings::Facts {
            flows: &flows,
            deadlocks: &outcome.deadlocks,
            warmup: &warmup,
            slowdown: &slowdown,
            counted: &counted,
            process,
            has_outages: outcome.has_outages,
            is_cut_off: outcome.status == RunStatus::Censored,
            delivered_share,
            samples,
            sent_bytes: recorder.sent_bytes,
            retransmitted_bytes: recorder.retransmitted_bytes,
            // The check of the plan has already warned of this.
            unfinished_ideal_ps: match outcome.has_short_drain {
                true => 0,
                false => recorder.unfinished_ideal_ps,
            },
            drain: outcome.drain,
        }));
        Self {
            status,
            flows,
            window,
            warmup,
            warnings,
            utilisation,
            goodput_gbps: carried(&|knot| knot.fresh).map(|bytes| bytes * 8e-9 / seconds),
            tenant_goodput_gbps: tenants.collect(),
            delivered_share,
            nfct: (ideal_sum > 0.0).then(|| sum(&|k| k.fct[0]) / ideal_sum),
            deadlines_met: has_deadlines.then_some(met),
            tenants: by_tenant(&counted, order),
            slowdown,
            tiers,
            deadlocks: outcome.deadlocks,
            collisions: outcome.collisions.map(CollisionReport::of),
            queues: recorder.samples.queues.summaries(),
            latency: latency.into_iter().collect(),
            transport: outcome.transport,
            collectives: outcome.collectives,
            rpcs: outcome.rpcs,
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

/// Flows that statistics count.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// First number that is counted.
    first: u64,
    /// Only those that finish before this instant, in picoseconds.
    mark: Option<u64>,
}

impl Choice {
    /// Returns whether a flow is counted by the completion that `ideal` is about.
    fn counts(self, k: &Kept, ideal: Ideal) -> bool {
        let Some(completion) = k.completion(ideal) else { return false };
        let finish = k.arrival.as_ps().saturating_add(completion);
        u64::from(k.number) >= self.first && self.mark.is_none_or(|mark| finish < mark)
    }
}

/// Slowdown by ideal, of flows that are in the order of arrival.
fn slowdowns(
    all: &[Kept],
    choice: Choice,
    bdp_bytes: u64,
    order: Order,
) -> BTreeMap<&'static str, Slowdown> {
    let of = |ideal: Ideal| {
        let sample =
            |k: &Kept| k.slowdown(ideal).map(|slowdown| Sample { size_bytes: k.size, slowdown });
        let samples = || all.iter().filter(|k| choice.counts(k, ideal)).filter_map(sample);
        (ideal.name(), by_all_bins(samples, bdp_bytes, order))
    };
    [Ideal::Delivered, Ideal::Acked, Ideal::Figure].map(of).into_iter().collect()
}

/// Returns the bytes carried by each sample and by the end. Runs without samples count the bytes of
/// a flow when it is delivered.
fn knots(
    outcome: &Outcome<'_>,
    mut knots: Vec<Knot>,
    all: &[Kept],
    delivered: &BTreeMap<u32, u64>,
) -> Vec<Knot> {
    if knots.is_empty() {
        let delivery = |k: &Kept| (k.arrival.as_ps().saturating_add(k.fct[0]), k.size);
        let mut deliveries: Vec<(u64, u64)> = all.iter().map(delivery).collect();
        deliveries.sort_unstable();
        let mut fresh = 0;
        knots.extend(deliveries.into_iter().flat_map(|(ps, size)| {
            let before = fresh;
            fresh += size;
            // Nothing just before, everything at the instant.
            [(ps.saturating_sub(1), before), (ps, fresh)].map(|(ps, fresh)| Knot {
                at: Time::from_ps(ps),
                fresh,
                tiers: vec![],
                tenants: vec![],
            })
        }));
    }
    let tiers = outcome.tiers.iter().map(|tier| tier.bytes).collect();
    let end = Time::from_ps(outcome.end_ps);
    if knots.last().is_none_or(|last| last.at <= end) {
        let n_tenants = delivered.keys().next_back().map_or(0, |last| last + 1);
        let of_tenant = |tenant| delivered.get(&tenant).copied().unwrap_or(0);
        let tenants = (0..n_tenants).map(of_tenant).collect();
        knots.push(Knot { at: end, fresh: outcome.counters.fresh_bytes, tiers, tenants });
    }
    exact_at_last_arrival(outcome, &mut knots);
    knots
}

/// Adds the bytes that had been delivered when arrivals stopped, which are exact.
fn exact_at_last_arrival(outcome: &Outcome<'_>, knots: &mut Vec<Knot>) {
    let at = outcome.counters.last_arrival;
    let after = knots.partition_point(|knot| knot.at < at);
    let Some(next) = knots.get(after) else { return };
    let sent = |tier: usize| carried_until(knots, at.as_ps(), |knot| knot.of_tier(tier));
    let tiers = (0..next.tiers.len()).filter_map(sent).map(|bytes| bytes as u64).collect();
    let arrived = |tenant| carried_until(knots, at.as_ps(), |knot| knot.of_tenant(tenant));
    let tenants = (0..next.tenants.len() as u32).filter_map(arrived);
    let tenants = tenants.map(|bytes| bytes as u64).collect();
    let fresh = outcome.counters.fresh_bytes_at_last_arrival;
    knots.insert(after, Knot { at, fresh, tiers, tenants });
}

fn by_tenant(counted: &[&Kept], order: Order) -> BTreeMap<u32, Stats> {
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
    order: Order,
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
