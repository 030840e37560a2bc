//! A network without faults at a high load: nothing fails, and nothing waits without need.

use std::collections::BTreeMap;

use rampmeter_proto::RegisteredTransport;
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::{Arrival, FlowRecord, InterfacePacket, Probe, Sim, SimSpec, Status};
use rampmeter_types::{Bytes, FabricFacts, Header, Rate, Span, SwitchProgram, Time};
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

use crate::idle::IdleTimes;
use crate::network::{TestNetwork, leaf_spine_of};
use crate::run::spec;
use crate::suite::{Body, Case};

const RACKS: u32 = 3;

/// A network and the messages on it.
#[derive(Clone, Copy, Debug)]
struct Run {
    gbps: u32,
    hosts_per_rack: u32,
    /// Rate of the two links of each rack.
    core_gbps: u32,
    /// Load of hosts' links, at which the busiest tier has 0.9.
    load: f64,
    seed: u64,
    flows: &'static str,
}

/// Three hosts of a rack send to one more often than seven do. Delays stay the same, so that round
/// trips are of 5 packets at 10 Gbit/s, and of 48 at 100.
const RUNS: [Run; 4] = [
    Run { hosts_per_rack: 8, seed: 1, flows: "1000", ..RUN },
    Run { hosts_per_rack: 4, seed: 11, flows: "700", ..RUN },
    Run { gbps: 100, core_gbps: 400, seed: 13, ..RUN },
    // A core of 2:1: 8/11 of a host's load are sent to other racks.
    Run { gbps: 100, core_gbps: 100, load: 0.9 * 0.5 * 11.0 / 8.0, seed: 17, ..RUN },
];

const RUN: Run =
    Run { gbps: 10, hosts_per_rack: 4, core_gbps: 40, load: 0.9, seed: 0, flows: "700" };

impl Run {
    fn n_hosts(&self) -> u32 {
        RACKS * self.hosts_per_rack
    }
}

/// Heavy-tailed messages at load 0.9 on networks without faults. Each is delivered.
///
/// * Timers that are meant for losses expire at most once for each dropped packet. No packet of a
///   message without a loss arrives twice. Exceptions are those that `rules` allow and explain.
/// * Requests that a sender repeats while its message waits are no loss timers. They are at least
///   their interval apart.
/// * No message that could be served waits while both of its ends are idle for longer than its
///   transport explains.
///
/// `RAMPMETER_FLOWS` sets the number of messages, and `RAMPMETER_SIZES` the distribution.
#[derive(Clone, Copy, Debug)]
pub struct Liveness;

/// Behaviour that a transport may have in a network without faults. Times are control round trips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Longest time for which both ends of a message may be idle, in addition to a round trip of
    /// data.
    pub(crate) idle: u64,
    /// The reason.
    pub(crate) why_idle: &'static str,
    /// Longest idle time of a message that has lost packets: its timeout.
    after_loss: u64,
    /// Expiries without a loss.
    spurious: Spurious,
    /// The same in a core of 2:1, in which packets wait for longer.
    spurious_narrow: Spurious,
    /// Least interval between two questions about a message.
    query_interval_min: u64,
}

/// Expiries of timers for losses that no loss explains.
#[derive(Clone, Copy, Debug)]
struct Spurious {
    /// Expiries for each message, beyond one for each dropped packet.
    expiries: f64,
    /// Packets of a message without a loss that arrive twice.
    duplicates: u64,
}

const fn spurious(expiries: f64, duplicates: u64) -> Spurious {
    Spurious { expiries, duplicates }
}

/// The rules of a transport without a timer that expires without a loss.
const RULES: Rules = Rules {
    idle: 1,
    why_idle: "an announcement and its answer",
    after_loss: 1,
    spurious: spurious(0.0, 0),
    spurious_narrow: spurious(0.0, 0),
    query_interval_min: 64,
};

/// Returns the rules of a transport. Bounds without a derivation are about 1.5 times the times that
/// are measured in [`RUNS`].
pub(crate) fn rules(transport: &str) -> Rules {
    match transport {
        // A message waits for the end of a phase and for the next matching: two phases of nine
        // stages of 0.65 round trips (§3.1, §3.3). A full window opens after 1.1 BDP times, and
        // packets of long flows wait for longer behind short flows, which have a higher class
        // (§3.2): 0.75 tokens a message, and 25 in a core of 2:1, in which messages of 727 packets
        // were sent twice.
        "dcpim" => Rules {
            idle: 12,
            why_idle: "two phases",
            spurious: spurious(1.2, 75),
            spurious_narrow: spurious(40.0, 1_100),
            ..RULES
        },
        // A downgraded source gets no token for three BDPs, of 1.7 round trips at 10 Gbit/s (§3.2).
        // A destination requests packets again after one BDP time (`reference`: 1.8 a message).
        "phost" => Rules {
            idle: 9,
            why_idle: "a downgraded source gets no token for three BDPs",
            spurious: spurious(3.0, 60),
            ..RULES
        },
        // The timeout is three round trips (§4.2), and packets of long flows wait behind all
        // others: 63 timeouts a message at 10 Gbit/s. In `ns-2` it is 256 us, or 49 round trips.
        "pfabric" => Rules {
            after_loss: 50,
            spurious: spurious(95.0, 410),
            spurious_narrow: spurious(95.0, 850),
            ..RULES
        },
        "fastpass" => Rules {
            idle: 5,
            why_idle: "a request, its computation and its slots ahead; an epoch",
            ..RULES
        },
        // Cells that are sent before their schedule are retransmitted with it (§3.4).
        "fastpod" => Rules {
            idle: 2,
            why_idle: "a request and the slots that its arbiter plans ahead",
            spurious: spurious(0.0, 75),
            ..RULES
        },
        _ => rules_of_windows(transport),
    }
}

/// Returns the rules of transports with windows, controllers or grants.
fn rules_of_windows(transport: &str) -> Rules {
    match transport {
        // A lost acknowledgement of a short message causes its retransmission.
        "tcp" => Rules {
            after_loss: 75,
            spurious: spurious(0.0, 2),
            spurious_narrow: spurious(0.0, 2),
            ..RULES
        },
        // Probes of the end of a flight after two round trips (RFC 8985 §7.2).
        "dctcp" => {
            Rules { spurious: spurious(0.05, 0), spurious_narrow: spurious(0.05, 0), ..RULES }
        }
        // Packets of a lower class wait for longer than a probe and a timeout: 0.9 a message.
        "pias" => {
            Rules { spurious: spurious(1.4, 55), spurious_narrow: spurious(1.4, 65), ..RULES }
        }
        // A request is repeated after four round trips of data. Probes of the end of a flight as
        // DCTCP: 0.084 a message in runs of 100 000, and 0.059 in a core of 2:1.
        "capton" => Rules {
            idle: 5,
            why_idle: "a request and the controller's computation",
            spurious: spurious(0.13, 0),
            spurious_narrow: spurious(0.09, 0),
            after_loss: 8,
            query_interval_min: 4,
        },
        "hyline" => Rules {
            idle: 5,
            why_idle: "a request and the controller's computation",
            after_loss: 8,
            spurious: spurious(0.0, 2),
            spurious_narrow: spurious(0.0, 35),
            query_interval_min: 4,
        },
        // A receiver cannot distinguish a busy core or sender from a loss (§3.7): 0.6 RESENDs a
        // message.
        "homa" => {
            Rules { spurious: spurious(0.9, 105), spurious_narrow: spurious(0.9, 160), ..RULES }
        }
        "homa-aeolus" => {
            Rules { spurious: spurious(0.9, 380), spurious_narrow: spurious(0.9, 380), ..RULES }
        }
        // The first missing packet waits for a timeout in a few messages, and the sender answers
        // BUSY.
        "sird" => {
            Rules { spurious: spurious(0.02, 0), spurious_narrow: spurious(0.02, 0), ..RULES }
        }
        "hpcc" => Rules { idle: 2, why_idle: "a window of one packet", ..RULES },
        _ => RULES,
    }
}

/// Number of messages of which one may exceed a bound. Bounds are those of runs of a thousand
/// messages, in which none does.
const EXTREME: usize = 2_000;

/// Presets with recorded timeouts of 200 ms, in control round trips of [`RUNS`].
const RECORDED: [(&str, &str); 3] =
    [("dctcp", "ns-2"), ("pias", "reference"), ("tcp", "reference")];
const RECORDED_TIMEOUT: u64 = 40_000;

/// Counters of timers that are meant for losses. Each transport has one of them.
const LOSS_TIMERS: [&str; 10] = [
    "timeouts",
    "pull_timeouts",
    "probes",
    "resends",
    "credits_reclaimed",
    "tokens_reissued",
    "failures",
    "resets",
    "core_resets",
    "takeovers",
];

/// Idle times of hosts, and outcomes of messages.
struct IdleRun {
    times: IdleTimes,
    records: Vec<FlowRecord>,
    counters: BTreeMap<&'static str, u64>,
    dropped: u64,
}

impl IdleRun {
    fn new(n_hosts: u32, longest: Span) -> Self {
        Self {
            times: IdleTimes::new(n_hosts, longest),
            records: Vec::new(),
            counters: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Returns the counter of a name; none that the transport lacks.
    fn count(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }

    /// Timers for losses expire once a dropped packet, and questions keep their interval. Returns
    /// the violated rules.
    fn check_timers(&self, rules: &Rules, spurious: Spurious, rtt: Span) -> Vec<String> {
        let known = LOSS_TIMERS.iter().filter_map(|name| self.count(name));
        assert!(known.clone().count() > 0, "no counter of {LOSS_TIMERS:?} in {:?}", self.counters);
        // A token that expired at its source, whose packet was not sent, must be reissued.
        let expected = self.count("tokens_expired").unwrap_or(0);
        let expired = known.sum::<u64>().saturating_sub(expected);
        let messages = self.records.len() as f64;
        let most = self.dropped + (spurious.expiries * messages) as u64;
        let mut broken = Vec::new();
        if expired > most {
            broken.push(format!("{expired} timeouts, at most {most} with {} drops", self.dropped));
        }
        let n_queries = self.count("control_retransmissions").unwrap_or(0)
            + self
                .count("requests")
                .unwrap_or(0)
                .saturating_sub(self.count("scheduled").unwrap_or(0));
        let query_time = rtt * rules.query_interval_min;
        let end = |r: &FlowRecord| r.completed.or(r.failed).or(r.rejected);
        let duration =
            |r: &FlowRecord| end(r).map_or(Span::ZERO, |at| at.saturating_since(r.arrival));
        let most =
            self.records.iter().map(|r| 2 + duration(r).as_ps() / query_time.as_ps()).sum::<u64>();
        if n_queries > most {
            broken.push(format!("{n_queries} questions, at most {most} in messages' lives"));
        }
        broken
    }

    /// Packets of a message without a loss arrive once.
    fn check_twice(&self, spurious: Spurious, payload: Bytes) -> Option<String> {
        let most = spurious.duplicates;
        self.check_each(|record| {
            let twice = record.duplicate_bytes.get().div_ceil(payload.get());
            let is_broken = lost_bytes(record) == 0 && twice > most;
            is_broken.then(|| (twice, format!("{twice} packets twice, at most {most}")))
        })
    }

    /// No message waits while its ends are idle.
    fn check_waits(
        &self,
        rules: &Rules,
        facts: &FabricFacts,
        has_arbiters: bool,
    ) -> Option<String> {
        self.check_each(|record| {
            record.delivered?;
            // A controller keeps links for a message that repairs a loss.
            let has_lost = lost_bytes(record) > 0 || (has_arbiters && self.dropped > 0);
            let round_trips = if has_lost { rules.idle.max(rules.after_loss) } else { rules.idle };
            let longest = facts.control_rtt * round_trips + facts.data_rtt;
            let wait = self.longest_wait(record);
            let why = rules.why_idle;
            let idle_text =
                || (wait.as_ps(), format!("idle for {wait}, at most {longest} ({why})"));
            (wait > longest).then(idle_text)
        })
    }

    /// Returns a sentence if a rule does not hold for more than one message in [`EXTREME`].
    /// `broken` has the size of the excess and a sentence for a message that breaks it.
    #[expect(clippy::print_stdout, reason = "tests report what they measured")]
    fn check_each(&self, broken: impl Fn(&FlowRecord) -> Option<(u64, String)>) -> Option<String> {
        let found: Vec<_> =
            self.records.iter().filter_map(|r| broken(r).map(|idle_text| (idle_text, r))).collect();
        let n_allowed = self.records.len() / EXTREME;
        let ((_, idle_text), record) = found.iter().max_by_key(|((size, _), _)| *size)?;
        let n = found.len();
        println!("  {n} messages, {n_allowed} allowed; the worst: {idle_text}");
        (n > n_allowed)
            .then(|| format!("{n} messages, {n_allowed} allowed: {idle_text}: {record:?}"))
    }

    /// Returns the longest time for which both ends of a message were idle before it was delivered.
    fn longest_wait(&self, record: &FlowRecord) -> Span {
        let end = record.delivered.unwrap_or(Time::NEVER);
        self.times.longest_wait(record.src, record.dst, record.arrival..end)
    }
}

impl Probe for IdleRun {
    const PACKETS: bool = true;
    const COUNTERS: bool = true;

    fn on_flow(&mut self, record: &FlowRecord) {
        self.records.push(*record);
    }

    fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
        // A packet without its payload (NDP) is a sign of service too.
        if passing.message.is_some() {
            self.times.note_data(passing.now, passing.end.idx(), passing.direction);
        }
    }

    fn on_counters(&mut self, _now: Time, counters: &[(&'static str, u64)]) {
        self.counters.extend(counters.iter().copied());
    }

    fn on_end<H: Header, P: SwitchProgram<H>>(&mut self, _now: Time, fabric: &mut Fabric<H, P>) {
        let tiers = fabric.tier_stats();
        self.dropped = tiers.iter().map(|tier| tier.drops.iter().sum::<u64>()).sum();
    }
}

/// Returns the messages of all pairs of hosts at load 0.9.
fn messages(run: &Run, payload: Bytes, wire: Bytes) -> Vec<Arrival> {
    let flows = setting("RAMPMETER_FLOWS", run.flows);
    let sizes = setting("RAMPMETER_SIZES", "web-search");
    let load = run.load;
    let text =
        format!("pattern = \"all-to-all\"\nsizes = \"{sizes}\"\nload = {load}\nflows = {flows}\n");
    let workload: WorkloadSpec = toml::from_str(&text).expect("a workload");
    let context = WorkloadContext {
        n_hosts: run.n_hosts(),
        access_rate: Rate::from_gbps(run.gbps.into()),
        host_rates: Vec::new(),
        payload,
        wire,
        hosts_per_rack: None,
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let workload = workload.validate(&context).expect("a workload for the network");
    workload.flows(run.seed).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size)).collect()
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

impl Body for Liveness {
    const NAME: &'static str = "liveness";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let broken: Vec<String> = RUNS.iter().flat_map(|run| self.run(case, run)).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}

impl Liveness {
    /// Returns the rules that a run violates.
    fn run<T: RegisteredTransport>(self, case: &Case<T>, run: &Run) -> Vec<String> {
        let segmentation = T::segmentation(&case.keys);
        let wire = segmentation.payload + segmentation.header;
        let arrivals = messages(run, segmentation.payload, wire);
        let rates = [run.gbps.into(), run.core_gbps.into()];
        let topology = leaf_spine_of(rates, RACKS.into(), run.hosts_per_rack.into(), 2);
        let topology = topology.build().expect("the numbers make a network");
        let place = TestNetwork::<T>::preferred(&case.keys, topology);
        let is_narrow = place.topology.bisection_share() < 1.0;
        if is_narrow && place.assumptions.needs_full_bisection() {
            return Vec::new();
        }
        let facts = place.topology.facts(wire, segmentation.header);
        let spec =
            SimSpec { fabric: place.fabric, paranoid: false, ..spec(place.topology, run.seed) };
        let mut idle = IdleRun::new(run.n_hosts(), facts.control_rtt * 2);
        let config = std::sync::Arc::new(place.config);
        let mut sim = Sim::<T, _, _>::new(spec, config, arrivals.into_iter(), &mut idle);
        let status = sim.run(u64::MAX);
        drop(sim);
        let Run { gbps, core_gbps, .. } = run;
        let name =
            format!("{} {}, {} hosts, {gbps}/{core_gbps}G", T::NAME, case.preset, run.n_hosts());
        report(&name, &idle, facts.control_rtt, segmentation.payload);
        assert_eq!(status, Status::Finished);
        let promises = idle.records.iter().any(|record| record.bound.is_some());
        let undelivered = idle.records.iter().filter(|r| r.delivered.is_none() && !promises);
        let undelivered: Vec<_> = undelivered.collect();
        assert!(undelivered.is_empty(), "{} not delivered: {undelivered:?}", undelivered.len());
        let mut rules = rules(T::NAME);
        if idle.dropped > 0 && RECORDED.contains(&(T::NAME, case.preset)) {
            // Of the dropped packets some are acknowledgements.
            (rules.idle, rules.after_loss) = (4, RECORDED_TIMEOUT);
        }
        let spurious = if is_narrow { rules.spurious_narrow } else { rules.spurious };
        let mut broken = idle.check_timers(&rules, spurious, facts.control_rtt);
        broken.extend(idle.check_twice(spurious, segmentation.payload));
        // In a narrow core packets wait for others of a higher class.
        if !is_narrow {
            broken.extend(idle.check_waits(&rules, &facts, T::HAS_ARBITERS));
        }
        broken.into_iter().map(|idle_text| format!("{name}: {idle_text}")).collect()
    }
}

fn lost_bytes(record: &FlowRecord) -> u64 {
    record.sent_bytes.get().saturating_sub((record.fresh_bytes + record.duplicate_bytes).get())
}

/// Prints the measurements of a run, by which bounds are adjusted.
#[expect(clippy::print_stdout, reason = "tests report what they measured")]
fn report(name: &str, idle: &IdleRun, rtt: Span, payload: Bytes) {
    let wait = |is_lossy: bool| {
        let of = idle
            .records
            .iter()
            .filter(|r| r.delivered.is_some() && (lost_bytes(r) > 0) == is_lossy);
        of.map(|record| idle.longest_wait(record)).max().unwrap_or(Span::ZERO).as_us_f64()
            / rtt.as_us_f64()
    };
    let (clean, lossy) = (wait(false), wait(true));
    let packets = |bytes: u64| bytes.div_ceil(payload.get());
    let of = |f: fn(&FlowRecord) -> u64| idle.records.iter().map(|r| packets(f(r))).sum::<u64>();
    let all = of(|r| r.size.get());
    let twice = of(|r| r.duplicate_bytes.get());
    let again = of(|r| r.sent_bytes.get().saturating_sub(r.size.get()));
    let lost =
        of(|r| (r.sent_bytes.get()).saturating_sub(r.fresh_bytes.get() + r.duplicate_bytes.get()));
    let unexplained = idle
        .records
        .iter()
        .filter(|r| r.sent_bytes == r.fresh_bytes + r.duplicate_bytes)
        .map(|r| packets(r.duplicate_bytes.get()))
        .max()
        .unwrap_or(0);
    println!(
        "{name}: idle {clean:.1} {lossy:.1} round trips, {} drops, {all} packets, {again} again, \
         {lost} lost, {twice} twice, {unexplained} most without loss, {:?}",
        idle.dropped, idle.counters
    );
}
