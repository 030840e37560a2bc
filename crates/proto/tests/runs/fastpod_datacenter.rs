//! Fastpod in whole data centers (§3.4): pods without memory, and core switches with some between
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::fastpod::{Fastpod, FastpodConfig, FastpodTransport, Pods};
use rampmeter_sim::Target;
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::fabric::Buffer;
use rampmeter_types::{Bytes, Purpose, Rng, Span, Time};

const HEADER: Bytes = Bytes::new(64);

/// Returns the paper's parameters, without optimism: control packets of pods alone.
fn config() -> FastpodConfig {
    FastpodConfig::paper()
}

/// `pods` pods of a fat-tree of `k`-port switches.
fn datacenter(config: &FastpodConfig, k: u32, pods: u32) -> (Topology, Fastpod) {
    let text = format!(
        "kind = 'fat-tree'\nk = {k}\npods = {pods}\npropagation-ns = 500\nswitch-ns = 200\n\
         host-ns = 100"
    );
    let topology = toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap();
    let facts = topology.facts(Bytes::new(1500), Bytes::new(64));
    let needs = FastpodTransport::network_needs(config, &facts, &topology);
    assert_eq!(needs.arbiters.len() as u32, pods * config.arbiters);
    let topology = topology.with_arbiters(&needs.arbiters);
    let fastpod = config.clone().derive(&facts, Pods::from_wiring(&topology, HEADER)).unwrap();
    (topology, fastpod)
}

fn spec_of(topology: Topology, seed: u64) -> SimSpec {
    let mut spec = spec(topology, seed);
    spec.fabric.buffer = Buffer::PerPort(Bytes::ZERO);
    spec.fabric.switching = Switching::CutThrough { header: HEADER };
    spec
}

/// `n` random messages among hosts of pods of `of` hosts within `us` microseconds. The share
/// `within` of them stays in its pod.
fn arrivals(n: usize, (hosts, of): (u32, u32), us: usize, within: f64, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::new(seed, 1, Purpose::Test);
    let one = |_| {
        let at = rng.uniform_below(us * 1_000_000) as u64;
        let src = rng.uniform_below(hosts as usize) as u32;
        let pod = src / of * of;
        let dst = match rng.bernoulli(within) {
            true => pod + (src - pod + 1 + rng.uniform_below(of as usize - 1) as u32) % of,
            false => (pod + of + rng.uniform_below((hosts - of) as usize) as u32) % hosts,
        };
        let most = if rng.bernoulli(0.1) { 100_000 } else { 6_000 };
        (at, src, dst, 1 + rng.uniform_below(most) as u64)
    };
    let mut all: Vec<_> = (0..n).map(one).collect();
    all.sort_unstable();
    all.into_iter().map(|(at, src, dst, size)| arrival(at, src, dst, size)).collect()
}

/// Results of a run: the records of its messages, and the counters.
struct RunResult {
    records: Vec<FlowRecord>,
    counts: BTreeMap<&'static str, u64>,
    collisions: [u64; 4],
}

/// Runs to the end: every message arrives once, no core switch has had more cells than its bound,
/// and nothing but unscheduled cells has collided.
fn simulate(fastpod: Fastpod, spec: SimSpec, arrivals: Vec<Arrival>) -> RunResult {
    let n = arrivals.len();
    let mut records = Records::default();
    let arrivals = arrivals.into_iter();
    let mut sim =
        Sim::<FastpodTransport, _, _>::new(spec, Arc::new(fastpod), arrivals, &mut records);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let stats = sim.fabric().stats();
    let collisions = stats.collisions.clone().expect("a fabric without memory");
    assert_eq!(collisions.violations, []);
    let counts: BTreeMap<&'static str, u64> = sim.transport_counters().into_iter().collect();
    assert_eq!(counts["core_overflows"], 0);
    drop(sim);
    let records = records.0;
    assert_eq!(records.len(), n);
    let open: Vec<_> =
        records.iter().filter(|r| r.failed.is_some() || r.completed.is_none()).collect();
    assert!(open.is_empty(), "{open:?}");
    RunResult { records, counts, collisions: collisions.kinds }
}

/// Nothing is lost, nothing collides, and no message waits for a timeout. That holds with two pods
/// and with all of them, for any share of traffic between pods.
#[test]
fn messages_between_pods_arrive_without_a_collision() {
    for seed in 0..3 {
        for (k, pods, messages) in [(4, 2, 200), (4, 4, 400), (8, 8, 1_500)] {
            for within in [0.9, 0.5, 0.1] {
                let optimistic = seed % 2 == 0;
                let config = FastpodConfig { optimistic, ..config() };
                let (topology, fastpod) = datacenter(&config, k, pods);
                let all = (fastpod.n_hosts, fastpod.n_hosts / pods);
                let arrivals = arrivals(messages, all, 200, within, seed);
                let ran = simulate(fastpod, spec_of(topology, seed), arrivals);
                let what = format!("k = {k}, {pods} pods, seed {seed}: {:?}", ran.counts);
                assert_eq!(ran.collisions[..3], [0, 0, 0], "{what}");
                assert!(optimistic || ran.collisions[3] == 0, "{what}");
                assert_eq!((ran.counts["timeouts"], ran.counts["resets"]), (0, 0), "{what}");
                assert_eq!(ran.counts["links_failed"] + ran.counts["cores_unresponsive"], 0);
                assert!(
                    ran.counts["core_cells"] > 0 && ran.counts["core_acks_relayed"] > 0,
                    "{what}"
                );
            }
        }
    }
}

/// The same if packets share cells, with as much of core switches' memory as their cells may take.
#[test]
fn packets_between_pods_share_cells_without_a_collision() {
    for seed in 0..3 {
        for (k, pods, messages) in [(4, 4, 600), (8, 4, 1_500)] {
            let config = FastpodConfig { packing: true, core_queue_cells: 16, ..config() };
            let (topology, fastpod) = datacenter(&config, k, pods);
            let all = (fastpod.n_hosts, fastpod.n_hosts / pods);
            let mut arrivals = arrivals(messages, all, 200, 0.5, seed);
            arrivals
                .iter_mut()
                .step_by(2)
                .for_each(|a| a.size = Bytes::new(1 + a.size.get() % 300));
            let most = fastpod.core_cells_max();
            let ran = simulate(fastpod, spec_of(topology, seed), arrivals);
            assert_eq!(ran.collisions[..3], [0, 0, 0], "k = {k}, seed {seed}: {:?}", ran.counts);
            assert!(ran.counts["core_cells"] > 0 && ran.counts["core_cells_max"] <= most);
            assert_eq!((ran.counts["resets"], ran.counts["links_failed"]), (0, 0));
        }
    }
}

/// All hosts of the other pods send to one: cells wait at core switches up to their limit, and
/// arbiters hold back the rest.
#[test]
fn core_switches_hold_no_more_than_their_bound() {
    let config = FastpodConfig { core_queue_cells: 24, core_buffer_cells: 40, ..config() };
    let (topology, fastpod) = datacenter(&config, 4, 4);
    let most = fastpod.core_cells_max();
    let arrivals =
        (4..16).map(|src| arrival(u64::from(src), src, src % 2, 600_000)).collect::<Vec<_>>();
    let ran = simulate(fastpod, spec_of(topology, 1), arrivals);
    let held = ran.counts["core_cells_max"];
    assert!(held >= 24 && held <= most, "{held} of {most}");
    // Two hosts receive all of it, and no slot of theirs is idle for long.
    let last = ran.records.iter().filter_map(|r| r.delivered).max().unwrap();
    let cells = 12_u64 * 600_000_u64.div_ceil(1_460) / 2;
    let least = Span::from_ps(cells * 120_000);
    let took = last - Time::ZERO;
    assert!(took >= least && took <= least * 5 / 4 + Span::from_us(60), "{took:?} of {least:?}");
}

/// Ten times as much traffic within pods as between them, and the reverse, at more than the hosts'
/// rate: no pair starves. A host receives from five pairs, which share its slots: one of its pod,
/// and four core switches.
#[test]
fn no_pair_starves() {
    for (near, far) in [(10, 1), (1, 10), (10, 10)] {
        let config = FastpodConfig { optimistic: false, ..config() };
        let (topology, fastpod) = datacenter(&config, 4, 2);
        let (slot, cells_of_a_slot) = (fastpod.slot, u64::from(fastpod.slots.cells()));
        // Each host sends to one of its pod, and to one of the other.
        let of = |src: u32| {
            let (pod, place) = (src / 4, src % 4);
            let to_near = pod * 4 + (place + 1) % 4;
            let to_far = (1 - pod) * 4 + (place + 2) % 4;
            [(src, to_near, near * 1_000_000), (src, to_far, far * 1_000_000)]
        };
        let arrivals = (0..8).flat_map(of).map(|(src, dst, size)| arrival(0, src, dst, size));
        let ran = simulate(fastpod, spec_of(topology, 1), arrivals.collect());
        let share = |record: &FlowRecord| {
            let slots = record.size.get().div_ceil(1_460).div_ceil(cells_of_a_slot);
            let took = record.delivered.unwrap() - Time::ZERO;
            (slot * slots).as_ps() as f64 / took.as_ps() as f64
        };
        let least = ran.records.iter().map(share).fold(f64::INFINITY, f64::min);
        assert!(least > 0.2, "{near}:{far}: {least}");
    }
}

/// Pods have clocks of their own, and hosts and core switches follow them.
#[test]
fn every_pod_has_a_separate_clock() {
    for seed in 0..3 {
        let config = FastpodConfig { clock_ppb: 50_000, ..config() };
        let (topology, fastpod) = datacenter(&config, 4, 3);
        let mut spec = spec_of(topology, seed);
        spec.clocks = ClockSpec { offset_max: Span::from_us(50), drift_ppm_max: 50.0 };
        let arrivals = arrivals(300, (fastpod.n_hosts, 4), 300, 0.5, seed);
        let ran = simulate(fastpod, spec, arrivals);
        assert_eq!(ran.collisions[..3], [0, 0, 0], "seed {seed}");
    }
}

/// A core switch fails, with the cells that it holds, and returns. It is not used while it is
/// unresponsive, and the cells that it lost are retransmitted.
#[test]
fn a_core_switch_that_fails_loses_no_message() {
    for seed in 0..3 {
        let (topology, fastpod) = datacenter(&config(), 4, 3);
        let core = topology.n_switches() - 1;
        let mut spec = spec_of(topology, seed);
        let (from, until) = (Span::from_us(60), Span::from_us(400));
        let (from, until) = (Time::ZERO + from, Time::ZERO + until);
        spec.faults.outages.push(Outage { target: Target::Switch(core), from, until });
        let mut arrivals = arrivals(600, (fastpod.n_hosts, 4), 600, 0.3, seed);
        arrivals.sort_by_key(|arrival| arrival.at);
        let ran = simulate(fastpod, spec, arrivals);
        assert_eq!(ran.collisions[..3], [0, 0, 0], "seed {seed}");
        // Each of the three arbiters misses it once.
        assert_eq!(ran.counts["cores_unresponsive"], 3, "seed {seed}: {:?}", ran.counts);
        assert_eq!(ran.counts["links_failed"], 0, "seed {seed}");
    }
}

/// A link between a rack and a switch above it fails permanently. Traffic within the pod shows it,
/// and cells to and from core switches take other paths too.
#[test]
fn a_failed_link_of_a_pod_is_excluded() {
    for seed in 0..3 {
        let (topology, fastpod) = datacenter(&config(), 4, 3);
        let rack = Node::Switch(topology.rack(0));
        let is_switch = |node: Node| matches!(node, Node::Switch(_));
        let is_up = |a: Node, b: Node| a == rack && is_switch(b);
        let mut links = topology.links().iter();
        let link = links.position(|link| is_up(link.a, link.b) || is_up(link.b, link.a));
        let target = Target::Link(link.expect("a way up") as u32);
        let mut spec = spec_of(topology, seed);
        let from = Time::ZERO + Span::from_us(60);
        spec.faults.outages.push(Outage { target, from, until: Time::NEVER });
        let arrivals = arrivals(900, (fastpod.n_hosts, 4), 600, 0.7, seed);
        let ran = simulate(fastpod, spec, arrivals);
        assert_eq!(ran.collisions[..3], [0, 0, 0], "seed {seed}");
        assert!(ran.counts["links_failed"] > ran.counts["links_restored"], "seed {seed}");
    }
}

/// The arbiter of one pod crashes and returns while its standby works. The other pods continue, and
/// core switches change to the standby.
#[test]
fn the_standby_of_a_pod_takes_over() {
    for seed in 0..3 {
        let config = FastpodConfig { arbiters: 2, ..config() };
        let (topology, fastpod) = datacenter(&config, 4, 2);
        let mut spec = spec_of(topology, seed);
        let (from, until) = (Span::from_us(60 + seed), Span::from_us(200));
        let (from, until) = (Time::ZERO + from, Time::ZERO + until);
        spec.faults.outages.push(Outage { target: Target::Arbiter(2), from, until });
        let arrivals = arrivals(400, (fastpod.n_hosts, 4), 400, 0.5, seed);
        let ran = simulate(fastpod, spec, arrivals);
        assert_eq!(ran.collisions[..3], [0, 0, 0], "seed {seed}");
        assert_eq!(ran.counts["takeovers"], 4, "seed {seed}: {:?}", ran.counts);
    }
}

/// The link between a core switch and one pod fails and returns. Meanwhile neither that pod nor the
/// others use the switch for traffic to or from it.
#[test]
fn a_failed_link_of_a_core_switch_is_excluded() {
    for seed in 0..3 {
        let (topology, fastpod) = datacenter(&config(), 4, 3);
        let core = Node::Switch(topology.n_switches() - 1);
        let mut links = topology.links().iter();
        let link = links.position(|link| link.a == core || link.b == core);
        let target = Target::Link(link.expect("a link of the switch") as u32);
        let mut spec = spec_of(topology, seed);
        let (from, until) = (Span::from_us(60), Span::from_us(500));
        let (from, until) = (Time::ZERO + from, Time::ZERO + until);
        spec.faults.outages.push(Outage { target, from, until });
        let arrivals = arrivals(900, (fastpod.n_hosts, 4), 700, 0.3, seed);
        let ran = simulate(fastpod, spec, arrivals);
        assert_eq!(ran.collisions[..3], [0, 0, 0], "seed {seed}");
        let counts = (ran.counts["cores_unresponsive"], ran.counts["links_failed"]);
        assert_eq!(counts, (1, 0), "seed {seed}: {:?}", ran.counts);
    }
}

/// More than the network can carry, ten times as much of it within pods as between them and the
/// reverse. All of it arrives, in at most 1.5 times the time that the busiest end needs.
#[test]
fn overload_is_eventually_delivered() {
    for within in [0.91, 0.09] {
        let (topology, fastpod) = datacenter(&config(), 8, 4);
        let n_hosts = fastpod.n_hosts;
        let (slot, cells) = (fastpod.slot, u64::from(fastpod.slots.cells()));
        // 20 us of arrivals, and more than 100 us of work.
        let arrivals = arrivals(6_000, (n_hosts, n_hosts / 4), 20, within, 1);
        let mut busy = BTreeMap::<(bool, u32), u64>::new();
        for arrival in &arrivals {
            let slots = arrival.size.get().div_ceil(1_460);
            *busy.entry((true, arrival.src.get())).or_default() += slots;
            *busy.entry((false, arrival.dst.get())).or_default() += slots;
        }
        let least = slot * (busy.values().max().unwrap() / cells);
        let ran = simulate(fastpod, spec_of(topology, 1), arrivals);
        let last = ran.records.iter().filter_map(|r| r.delivered).max().unwrap();
        let took = last - Time::ZERO;
        assert_eq!(ran.collisions[..3], [0, 0, 0]);
        assert!(took >= least && took <= least * 3 / 2, "{within}: {took:?} of {least:?}");
    }
}
