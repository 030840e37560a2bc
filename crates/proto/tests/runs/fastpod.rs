//! Fastpod in whole simulations of pods without memory: nothing but unscheduled cells collides.

use std::sync::Arc;

use rampmeter_proto::fastpod::{Fastpod, FastpodConfig, FastpodTransport, Pods};
use rampmeter_proto::{Keys, RegisteredTransport};
use rampmeter_sim::Target;
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::fabric::Buffer;
use rampmeter_types::{Bytes, Purpose, Rng, Span, Time};

const HEADER: Bytes = Bytes::new(64);

/// Returns the paper's pod (§5), or one with other cables.
fn pod(config: FastpodConfig, k: u32, spread_ns: u32) -> (Topology, Fastpod) {
    let text = format!(
        "kind = 'pod'\nk = {k}\npropagation-ns = 1000\nswitch-ns = 0\nhost-ns = 0\n\
         cable-spread-ns = {spread_ns}"
    );
    let topology = toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap();
    let facts = topology.facts(Bytes::new(1500), Bytes::new(64));
    let needs = FastpodTransport::network_needs(&config, &facts, &topology);
    let topology = topology.with_arbiters(&needs.arbiters);
    let pods = Pods::from_wiring(&topology, HEADER).expect("a pod");
    let fastpod = config.derive(&facts, Some(pods)).unwrap();
    (topology, fastpod)
}

fn spec_of(topology: Topology, seed: u64) -> SimSpec {
    let mut spec = spec(topology, seed);
    spec.fabric.buffer = Buffer::PerPort(Bytes::ZERO);
    spec.fabric.switching = Switching::CutThrough { header: HEADER };
    spec
}

/// Random messages among 16 hosts within 200 us, some of them long.
fn arrivals(n_hosts: u32, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::new(seed, 1, Purpose::Test);
    let one = |_| {
        let at = rng.uniform_below(200_000_000) as u64;
        let src = rng.uniform_below(n_hosts as usize) as u32;
        let dst = (src + 1 + rng.uniform_below(n_hosts as usize - 1) as u32) % n_hosts;
        let most = if rng.bernoulli(0.1) { 200_000 } else { 6_000 };
        (at, src, dst, 1 + rng.uniform_below(most) as u64)
    };
    let mut all: Vec<_> = (0..300).map(one).collect();
    all.sort_unstable();
    all.into_iter().map(|(at, src, dst, size)| arrival(at, src, dst, size)).collect()
}

/// Runs to the end. Returns the records and the collisions by kind.
fn simulate(
    fastpod: Fastpod,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
) -> (Vec<FlowRecord>, [u64; 4]) {
    let mut records = Records::default();
    let arrivals = arrivals.into_iter();
    let mut sim =
        Sim::<FastpodTransport, _, _>::new(spec, Arc::new(fastpod), arrivals, &mut records);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let collisions = sim.fabric().stats().collisions.clone().expect("a fabric without memory");
    assert_eq!(collisions.violations, []);
    drop(sim);
    records.0.sort_by_key(|record| record.id);
    assert!(records.0.iter().all(|r| r.failed.is_none() && r.completed.is_some()));
    (records.0, collisions.kinds)
}

/// §5: no collision without optimism; with it, only of unscheduled cells.
#[test]
fn scheduled_and_control_packets_never_collide() {
    for seed in 0..6 {
        for (k, spread_ns) in [(4, 0), (8, 0), (8, 700), (16, 0)] {
            for optimistic in [false, true] {
                let config = FastpodConfig { optimistic, ..FastpodConfig::paper() };
                let (topology, fastpod) = pod(config, k, spread_ns);
                let n_hosts = fastpod.n_hosts;
                let (_, kinds) =
                    simulate(fastpod, spec_of(topology, seed), arrivals(n_hosts, seed));
                assert_eq!(kinds[..3], [0, 0, 0], "k = {k}, seed {seed}");
                assert!(optimistic || kinds[3] == 0, "k = {k}, seed {seed}");
            }
        }
    }
}

/// The same if packets share cells, most of them short, and clocks and cables differ.
#[test]
fn packets_that_share_cells_never_collide() {
    for seed in 0..6 {
        for (k, spread_ns, clock_ppb) in [(4, 0, 0), (8, 700, 0), (8, 300, 50_000), (16, 0, 0)] {
            for optimistic in [false, true] {
                let paper = FastpodConfig { optimistic, ..FastpodConfig::paper() };
                let config = FastpodConfig { packing: true, clock_ppb, ..paper };
                let (topology, fastpod) = pod(config, k, spread_ns);
                let mut arrivals = arrivals(fastpod.n_hosts, seed);
                let short = arrivals.iter_mut().filter(|arrival| arrival.size.get() < 6_000);
                short.for_each(|arrival| arrival.size = Bytes::new(arrival.size.get() / 10 + 1));
                let mut spec = spec_of(topology, seed);
                if clock_ppb > 0 {
                    spec.clocks = ClockSpec { offset_max: Span::from_us(3), drift_ppm_max: 50.0 };
                }
                let (_, kinds) = simulate(fastpod, spec, arrivals);
                assert_eq!(kinds[..3], [0, 0, 0], "k = {k}, seed {seed}");
                assert!(optimistic || kinds[3] == 0, "k = {k}, seed {seed}");
            }
        }
    }
}

/// Control packets without content may be left out: the times of all messages do not change. With
/// optimism that holds too. But if two cells meet at one picosecond, the order of events decides
/// which survives (the unit tests of whole pods order them by host).
#[test]
fn beacons_change_no_result() {
    for seed in 0..6 {
        let times = [1, 64].map(|beacon_slots| {
            let config =
                FastpodConfig { beacon_slots, optimistic: false, ..FastpodConfig::paper() };
            let (topology, fastpod) = pod(config, 8, 0);
            let (records, kinds) = simulate(fastpod, spec_of(topology, seed), arrivals(16, seed));
            let times = records.iter().map(|r| (r.delivered, r.completed)).collect::<Vec<_>>();
            (times, kinds)
        });
        assert_eq!(times[0], times[1], "seed {seed}");
    }
}

/// The arbiter crashes and returns while its standby works.
#[test]
fn the_standby_takes_over_without_a_collision() {
    for seed in 0..6 {
        let config = FastpodConfig { arbiters: 2, ..FastpodConfig::paper() };
        let (topology, fastpod) = pod(config, 8, 300);
        let mut spec = spec_of(topology, seed);
        let from = Time::ZERO + Span::from_us(50 + 10 * seed);
        let until = from + Span::from_us(80);
        spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
        simulate(fastpod, spec, arrivals(16, seed));
    }
}

/// The watchdogs of a living arbiter reach its standby, which never takes over.
#[test]
fn the_standby_sends_nothing_while_the_arbiter_is_active() {
    let config = FastpodConfig { arbiters: 2, ..FastpodConfig::paper() };
    let (topology, fastpod) = pod(config, 8, 300);
    let arrivals = arrivals(16, 1).into_iter();
    let spec = spec_of(topology, 1);
    let mut sim = Sim::<FastpodTransport, _, _>::new(spec, Arc::new(fastpod), arrivals, NoProbe);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let takeovers = (0..16).map(|host| sim.endpoint(host).stats().takeovers);
    assert_eq!(takeovers.sum::<u64>(), 0);
    assert_eq!(sim.fabric().stats().collisions.as_ref().unwrap().violations, []);
}

/// §4: clocks start apart and drift by up to 50 parts per million, with guard bands for that.
#[test]
fn guard_bands_hold_under_clock_drift() {
    for seed in 0..6 {
        let config = FastpodConfig { clock_ppb: 50_000, ..FastpodConfig::paper() };
        let (topology, fastpod) = pod(config, 8, 300);
        let mut spec = spec_of(topology, seed);
        spec.clocks = ClockSpec { offset_max: Span::from_us(3), drift_ppm_max: 50.0 };
        simulate(fastpod, spec, arrivals(16, seed));
    }
}

/// Returns the link between the rack of a host and the first switch above the racks.
fn link_of(topology: &Topology, host: u32) -> Target {
    let ends = [Node::Switch(topology.rack(host)), first_above(topology)];
    let mut links = topology.links().iter();
    let is_it = links.position(|link| ends.contains(&link.a) && ends.contains(&link.b));
    Target::Link(is_it.expect("a link of the pod") as u32)
}

/// Returns the first switch above the racks, which follow one another.
fn first_above(topology: &Topology) -> Node {
    let racks = (0..topology.n_hosts()).map(|host| topology.rack(host));
    Node::Switch(racks.max().expect("hosts") + 1)
}

/// Runs a pod in which `target` fails at 60 us, until 400 us or permanently. Returns
/// the counters of the transport.
fn with_outage(
    seed: u64,
    k: u32,
    until: Option<u64>,
    target: impl Fn(&Topology) -> Target,
) -> Vec<(&'static str, u64)> {
    let (topology, fastpod) = pod(FastpodConfig::paper(), k, 300);
    let (n_hosts, target) = (fastpod.n_hosts, target(&topology));
    let mut spec = spec_of(topology, seed);
    let at = |us| Time::ZERO + Span::from_us(us);
    spec.faults.outages.push(Outage { target, from: at(60), until: until.map_or(Time::NEVER, at) });
    let mut arrivals = arrivals(n_hosts, seed);
    // Messages that are in flight when all failures have ended.
    for src in 0..n_hosts {
        let dst = (src + n_hosts / 2) % n_hosts;
        arrivals.push(arrival(500_000_000 + u64::from(src), src, dst, 1_500_000));
    }
    let mut sim =
        Sim::<FastpodTransport, _, _>::new(spec, Arc::new(fastpod), arrivals.into_iter(), NoProbe);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let counters = sim.counters();
    assert_eq!((counters.delivered, counters.failed), (counters.submitted, 0));
    assert_eq!(sim.fabric().stats().collisions.as_ref().unwrap().violations, []);
    sim.transport_counters()
}

fn count(counts: &[(&'static str, u64)], name: &str) -> u64 {
    counts.iter().find(|(of, _)| *of == name).expect("it is counted").1
}

/// §4: a link above the racks fails in the middle of a run, permanently or temporarily. It is
/// detected by reports of hosts and no longer used, until a probe has passed it.
#[test]
fn failed_links_are_excluded_until_their_repair() {
    for seed in 0..4 {
        for k in [4, 8] {
            let for_good = with_outage(seed, k, None, |pod| link_of(pod, k * k / 4 - 1));
            let left = count(&for_good, "links_failed") - count(&for_good, "links_restored");
            assert!((1..=2).contains(&left), "k = {k}, seed {seed}: {for_good:?}");
            let repaired = with_outage(seed, k, Some(400), |pod| link_of(pod, k * k / 4 - 1));
            let convicted = count(&repaired, "links_failed");
            assert!(convicted > 0, "k = {k}, seed {seed}");
            assert_eq!(convicted, count(&repaired, "links_restored"), "k = {k}, seed {seed}");
        }
    }
}

/// §4: a host that fails is unresponsive. It returns, and no link above is blamed. A switch above
/// the racks that fails and returns loses nothing either.
#[test]
fn restarted_hosts_and_switches_get_their_slots() {
    for seed in 0..4 {
        let host = with_outage(seed, 8, Some(400), |_| Target::Host(6));
        assert_eq!((count(&host, "hosts_unresponsive"), count(&host, "links_failed")), (1, 0));
        let switch = with_outage(seed, 8, Some(400), |pod| match first_above(pod) {
            Node::Switch(switch) => Target::Switch(switch),
            other => panic!("{other:?} is no switch"),
        });
        assert!(count(&switch, "links_failed") >= 4, "{switch:?}");
        assert_eq!(count(&switch, "hosts_unresponsive"), 0);
    }
}

/// §4: time stamps are wrong by up to 3 ns at both ends, with guard bands for that.
#[test]
fn guard_bands_hold_under_time_stamp_errors() {
    for seed in 0..6 {
        simulate_with_wrong_stamps(seed, 3, 3);
    }
}

/// With guard bands for less, packets collide.
#[test]
#[should_panic(expected = "Violation")]
fn larger_time_stamp_errors_make_packets_collide() {
    simulate_with_wrong_stamps(1, 1, 8);
}

/// Simulates a pod with wrong time stamps. The first number is the error that guard bands allow
/// for, the second the actual error, in nanoseconds.
fn simulate_with_wrong_stamps(seed: u64, clock_jitter_ns: u32, timestamp_error_ns: u32) {
    let config = FastpodConfig { clock_jitter_ns, timestamp_error_ns, ..FastpodConfig::paper() };
    let (topology, fastpod) = pod(config, 8, 300);
    simulate(fastpod, spec_of(topology, seed), arrivals(16, seed));
}

/// Keys in plans' words.
#[test]
fn the_paper_preset_is_that_of_section_5() {
    let [(name, keys)] = FastpodConfig::PRESETS else { panic!("one preset") };
    let (_, fastpod) = pod(keys(), 8, 0);
    assert_eq!((*name, fastpod.n_hosts), ("paper", 16));
    assert_eq!(fastpod.slot, Span::from_ps(370_240));
}
