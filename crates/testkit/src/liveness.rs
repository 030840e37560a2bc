//! A network without faults at a high load: nothing fails, and nothing waits in vain.

use std::collections::BTreeMap;

use rampmeter_core::{Bytes, Header, Hop, Rate, Span, Time};
use rampmeter_proto::Transport;
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::{Arrival, FlowRecord, Passing, Probe, Sim, SimSpec, Status};
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

use crate::idle::IdleTimes;
use crate::network::{Place, leaf_spine_at};
use crate::run::spec;
use crate::suite::{Body, Case};

const RACKS: u32 = 3;
const GBPS: u64 = 10;
/// Hosts of a rack, seed, and messages: three hosts of a rack send to one more often than seven do.
const RUNS: [(u32, u64, &str); 3] = [(8, 1, "1500"), (4, 11, "700"), (4, 13, "700")];

/// Heavy-tailed messages at load 0.9 on a network without faults. Each is delivered, and no timer
/// that is meant for losses expires unless a packet was dropped. No message that could be served
/// waits while both of its ends are idle for longer than its transport explains (`idle_max`).
///
/// `RAMPMETER_FLOWS` sets the number of messages, and `RAMPMETER_SIZES` the distribution.
#[derive(Clone, Copy, Debug)]
pub struct Liveness;

/// Returns the control round trips for which both ends of a message may be idle while it is not
/// complete. Returns the reason too if they are more than two.
pub(crate) fn idle_max(transport: &str) -> (u64, &'static str) {
    match transport {
        "dcpim" => (12, "a message waits for the end of a phase and for the next matching"),
        "fastpass" => (12, "a request, its computation and its slots ahead; an epoch"),
        "fastpod" => (40, "a request and the slots that its arbiter plans ahead"),
        "phost" => (12, "a downgraded source gets no token for three BDPs (§3.2)"),
        "cosy" => (64, "a refused reservation is requested again after a pause"),
        "tcp" | "dctcp" | "pias" => (6, "a handshake, and a window of few packets"),
        "capton" | "hyline" => (8, "a request and the controller's computation"),
        _ => (3, "an announcement and its answer"),
    }
}

/// Counters of timers that are meant for losses.
const LOSS_TIMERS: [&str; 4] = ["timeouts", "pull_timeouts", "resends", "reclaimed"];

/// Transports whose timers may expire without a loss, and the reason.
fn may_time_out(transport: &str) -> Option<&'static str> {
    match transport {
        "pfabric" => Some("timeouts of three round trips, packets wait longer (§4.2)"),
        "pias" => Some("packets of a lower class wait for longer than the timeout"),
        "homa" | "homa-aeolus" => Some("a receiver cannot tell a busy sender from a loss (§3.7)"),
        "sird" => Some("a receiver cannot tell a busy sender from a loss"),
        _ => None,
    }
}

/// Idle times of hosts, and what became of messages.
struct Idle {
    times: IdleTimes,
    records: Vec<FlowRecord>,
    counters: BTreeMap<&'static str, u64>,
    dropped: u64,
}

impl Idle {
    fn new(n_hosts: u32, longest: Span) -> Self {
        Self {
            times: IdleTimes::new(n_hosts, longest),
            records: Vec::new(),
            counters: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Longest time for which both ends of a message were idle before it was delivered.
    fn longest_wait(&self, record: &FlowRecord) -> Span {
        let end = record.delivered.unwrap_or(Time::NEVER);
        self.times.longest_wait((record.src, record.dst), (record.arrival, end))
    }
}

impl Probe for Idle {
    const PACKETS: bool = true;
    const COUNTERS: bool = true;

    fn on_flow(&mut self, record: &FlowRecord) {
        self.records.push(*record);
    }

    fn on_packet<H: Header>(&mut self, passing: &Passing<'_, H>) {
        // A packet without its payload (NDP) is a sign of service too.
        if passing.message.is_some() {
            self.times.pass(passing.now, passing.end.idx(), passing.direction);
        }
    }

    fn on_counters(&mut self, _now: Time, counters: &[(&'static str, u64)]) {
        self.counters.extend(counters.iter().copied());
    }

    fn on_end<H: Header, P: Hop<H>>(&mut self, _now: Time, fabric: &mut Fabric<H, P>) {
        let tiers = fabric.tier_stats();
        self.dropped = tiers.iter().map(|tier| tier.drops.iter().sum::<u64>()).sum();
    }
}

/// Messages of all pairs of hosts at load 0.9.
fn messages((n_hosts, seed): (u32, u64), flows: &str, payload: Bytes, wire: Bytes) -> Vec<Arrival> {
    let flows = setting("RAMPMETER_FLOWS", flows);
    let sizes = setting("RAMPMETER_SIZES", "web-search");
    let text =
        format!("pattern = \"all-to-all\"\nsizes = \"{sizes}\"\nload = 0.9\nflows = {flows}\n");
    let workload: WorkloadSpec = toml::from_str(&text).expect("a workload");
    let context = WorkloadContext {
        n_hosts,
        access_rate: Rate::from_gbps(GBPS),
        payload,
        wire,
        hosts_per_rack: None,
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let workload = workload.validate(&context).expect("a workload for the network");
    workload.flows(seed).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size)).collect()
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

impl Body for Liveness {
    const NAME: &'static str = "liveness";

    fn test<T: Transport>(self, case: &Case<T>) {
        RUNS.into_iter().for_each(|run| self.run(case, run));
    }
}

impl Liveness {
    fn run<T: Transport>(self, case: &Case<T>, (hosts, seed, flows): (u32, u64, &str)) {
        let framing = T::framing(&case.keys);
        let wire = framing.payload + framing.header;
        let n_hosts = RACKS * hosts;
        let arrivals = messages((n_hosts, seed), flows, framing.payload, wire);
        let topology = leaf_spine_at(GBPS as f64, RACKS.into(), hosts.into(), 2);
        let place = Place::<T>::preferred(&case.keys, topology);
        let facts = place.topology.facts(wire, framing.header);
        let spec = SimSpec { fabric: place.fabric, paranoid: false, ..spec(place.topology, seed) };
        let (round_trips, reason) = idle_max(T::NAME);
        let mut idle = Idle::new(n_hosts, facts.control_rtt * 2);
        let config = std::sync::Arc::new(place.config);
        let mut sim = Sim::<T, _, _>::new(spec, config, arrivals.into_iter(), &mut idle);
        let status = sim.run(u64::MAX);
        drop(sim);
        assert_eq!(status, Status::Finished);
        let promises = idle.records.iter().any(|record| record.bound.is_some());
        let undelivered = idle.records.iter().filter(|r| r.delivered.is_none() && !promises);
        let undelivered: Vec<_> = undelivered.collect();
        assert!(undelivered.is_empty(), "{} not delivered: {undelivered:?}", undelivered.len());
        let expired = LOSS_TIMERS.iter().filter_map(|name| idle.counters.get(name)).sum::<u64>();
        let is_explained = idle.dropped > 0 || may_time_out(T::NAME).is_some();
        assert!(expired == 0 || is_explained, "{expired} timeouts without a loss");
        let longest = facts.control_rtt * round_trips + facts.data_rtt;
        for record in idle.records.iter().filter(|r| r.delivered.is_some()) {
            // A controller keeps links for a message that repairs a loss.
            let has_lost = idle.dropped > 0 && (record.sent > record.size || T::HAS_ARBITERS);
            let wait = idle.longest_wait(record);
            assert!(
                wait <= longest || has_lost,
                "idle for {wait}, at most {longest} ({reason}): {record:?}"
            );
        }
        report(case.preset, T::NAME, &idle, facts.control_rtt);
    }
}

/// Prints the longest wait of a run, for whoever adjusts [`idle_max`].
#[expect(clippy::print_stdout, reason = "tests report what they measured")]
fn report(preset: &str, name: &str, idle: &Idle, rtt: Span) {
    let longest = idle.records.iter().map(|record| idle.longest_wait(record)).max();
    let longest = longest.unwrap_or(Span::ZERO).as_us_f64() / rtt.as_us_f64();
    println!(
        "{name} {preset}: longest idle {longest:.1} round trips, {} drops, {:?}",
        idle.dropped, idle.counters
    );
}
