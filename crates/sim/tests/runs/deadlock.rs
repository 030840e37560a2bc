//! Deadlocks of priority flow control are found if and only if there are any.

#[allow(dead_code, reason = "other test programs use the rest")]
use std::sync::Arc;

use crate::common::{Blast, RankedBlast, Segmentation};
use rampmeter_sim::fabric::Deadlock;
use rampmeter_sim::*;
use rampmeter_testkit::{leaf_spine, star};
use rampmeter_types::fabric::{PfcClasses, PfcThreshold};
use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time, Transport};

/// Two hosts at each of `n` switches, which are in a ring with further links between them.
fn ring(n: u32, chords: &[(u32, u32)]) -> Topology {
    let mut links = Vec::new();
    for switch in 0..n {
        links.push(format!("['h{}', 's{switch}']", 2 * switch));
        links.push(format!("['h{}', 's{switch}']", 2 * switch + 1));
    }
    links.extend((0..n).map(|switch| format!("['s{switch}', 's{}']", (switch + 1) % n)));
    links.extend(chords.iter().map(|(a, b)| format!("['s{a}', 's{b}']")));
    let link = |ends: &String| format!("{{ between = {ends}, propagation-ns = 500.0 }}");
    let links: Vec<String> = links.iter().map(link).collect();
    let hosts = 2 * n;
    let text =
        format!("kind = 'links'\nhosts = {hosts}\nswitches = {n}\nlinks = [{}]", links.join(", "));
    toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
}

fn spec(topology: Topology, threshold: PfcThreshold) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(topology, 1);
    let (classes, hysteresis) = (PfcClasses::Data, Bytes::new(3_000));
    let packet = Bytes::new(1_500);
    spec.fabric.buffer = Buffer::Shared { per_switch: Bytes::new(2_000_000), alpha: 1.0 };
    spec.fabric.pfc = Some(PfcConfig { threshold, classes, hysteresis, headroom: None, packet });
    spec.fabric.spray = Spray::Ecmp;
    spec.drain = Span::from_us(20_000);
    spec
}

fn message((src, dst): (u32, u32), packets: u64) -> Arrival {
    let size = Bytes::new(1_460 * packets);
    Arrival::new(Time::ZERO, NodeId::new(src), NodeId::new(dst), size)
}

/// Deadlocks of a run: the first that is found while it runs, and those at its end.
struct Deadlocks {
    early: Vec<Deadlock>,
    end: Vec<(Time, Vec<String>)>,
    ports: Vec<Vec<u32>>,
    is_all_delivered: bool,
}

fn run<F: Transport<Config = Segmentation>>(spec: SimSpec, arrivals: Vec<Arrival>) -> Deadlocks {
    let mut sim = Sim::<F, _, _>::new(spec, Arc::default(), arrivals.into_iter(), NoProbe);
    let mut early = Vec::new();
    while sim.run(5_000) == Status::Running {
        if early.is_empty() {
            early = sim.fabric().find_deadlocks(sim.now());
        }
    }
    assert_eq!(sim.fabric().stats().dropped(), 0);
    let name = |&port: &u32| {
        let id = sim.fabric().port(port);
        format!("{}>{}", id.from, id.to)
    };
    let end = sim.fabric().deadlocks().iter();
    let ports = end.clone().map(|d| d.ports.clone()).collect();
    let end = end.map(|d| (d.since, d.ports.iter().map(name).collect())).collect();
    let is_all_delivered = sim.counters().delivered == sim.counters().submitted;
    Deadlocks { early, end, ports, is_all_delivered }
}

const STATIC: PfcThreshold = PfcThreshold::Static(Bytes::new(20_000));
const DYNAMIC: PfcThreshold = PfcThreshold::Dynamic { alpha: 0.11 };

#[test]
fn flows_across_two_switches_of_a_ring_deadlock() {
    for (n, threshold) in [(5, STATIC), (6, STATIC), (9, STATIC), (5, DYNAMIC)] {
        let flows = (0..2 * n).map(|h| message((h, (h + 4) % (2 * n)), 3_000)).collect();
        let found = run::<Blast>(spec(ring(n, &[]), threshold), flows);
        let circle: Vec<String> = (0..n).map(|s| format!("s{s}>s{}", (s + 1) % n)).collect();
        let [(since, ports)] = &found.end[..] else { panic!("{:?}", found.end) };
        assert_eq!(ports, &circle, "{n} {threshold:?}");
        assert!(*since < Time::from_ps(200_000_000), "{n} {threshold:?}: {since}");
        assert!(!found.is_all_delivered);
    }
}

#[test]
fn ranking_ports_deadlock_too() {
    let flows = (0..10).map(|h| message((h, (h + 4) % 10), 3_000)).collect();
    let found = run::<RankedBlast>(spec(ring(5, &[]), STATIC), flows);
    assert_eq!(found.end.len(), 1);
}

/// A port waits for ports to hosts only, which are never paused.
#[test]
fn flows_across_one_switch_of_a_ring_do_not_deadlock() {
    for threshold in [STATIC, DYNAMIC] {
        let flows = (0..10).map(|h| message((h, (h + 2) % 10), 3_000));
        let flows = flows.chain((0..10).map(|h| message((h, h ^ 1), 300))).collect();
        let found = run::<Blast>(spec(ring(5, &[]), threshold), flows);
        assert!(found.is_all_delivered);
        assert!(found.early.is_empty() && found.end.is_empty(), "{:?}", found.end);
    }
}

#[test]
fn an_incast_is_no_deadlock() {
    let topologies = [star(21).build().unwrap(), leaf_spine(4, 5, 2)];
    for topology in topologies {
        for threshold in [STATIC, DYNAMIC] {
            let n = topology.n_hosts();
            let flows = (1..n).map(|h| message((h, 0), 500)).collect();
            let found = run::<Blast>(spec(topology.clone(), threshold), flows);
            assert!(found.is_all_delivered);
            assert!(found.early.is_empty() && found.end.is_empty(), "{:?}", found.end);
        }
    }
}

/// Nothing is lost and nothing is sent twice, so flows remain unfinished for one reason only. A
/// deadlock does not end.
#[test]
fn a_lossless_network_has_a_deadlock_if_and_only_if_flows_do_not_end() {
    let (mut locked, mut free) = (0, 0);
    for seed in 0..80 {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut pick = |n: u32| rng.uniform_below(n as usize) as u32;
        let n = 3 + pick(5);
        // Half of the networks are rings whose flows all have the same direction.
        let is_one_way = seed % 2 == 0;
        let n_chords = if is_one_way { 0 } else { pick(3) };
        let chords: Vec<(u32, u32)> = (0..n_chords).map(|_| (pick(n), pick(n))).collect();
        let chords: Vec<(u32, u32)> = chords.into_iter().filter(|(a, b)| a != b).collect();
        let mut pair = |_| {
            let src = pick(2 * n);
            let dst = if is_one_way { src + 2 * pick(n / 2 + 1) } else { pick(2 * n) };
            (src, dst % (2 * n))
        };
        let pairs: Vec<(u32, u32)> = (0..5 * n).map(&mut pair).collect();
        let pairs = pairs.into_iter().filter(|(src, dst)| src != dst);
        let flows = pairs.map(|pair| message(pair, 100 + u64::from(pick(1_000)))).collect();
        let threshold = [STATIC, DYNAMIC, PfcThreshold::Static(Bytes::new(3_000))];
        let threshold = threshold[pick(3) as usize];
        let found = run::<Blast>(spec(ring(n, &chords), threshold), flows);
        assert_eq!(found.end.is_empty(), found.is_all_delivered, "seed {seed}: {:?}", found.end);
        for early in &found.early {
            assert!(found.ports.contains(&early.ports), "seed {seed}: {early:?} has ended");
        }
        *if found.is_all_delivered { &mut free } else { &mut locked } += 1;
    }
    assert!(locked >= 8 && free >= 8, "{locked} networks locked up, {free} did not");
}
