//! Fastpod in pods without memory with all faults, by seed: every message arrives once, and nothing
//! but unscheduled cells collides.

use std::sync::Arc;

use rampmeter_proto::fastpod::{FastpodConfig, FastpodTransport, MessageOrder};
use rampmeter_sim::{
    Arrival, ClockSpec, LinkFault, Node, Outage, Sim, SimSpec, Status, Target, Topology,
    TopologySpec,
};
use rampmeter_testkit::{Records, TestNetwork, arrival, spec};
use rampmeter_types::{Purpose, Rng, Span, Time};

/// Returns a pod of some size, with cables that may differ.
fn one_pod(rng: &mut Rng) -> Topology {
    let (k, spread_ns) = ([4, 8][rng.uniform_below(2)], [0, 300][rng.uniform_below(2)]);
    topology(&format!("kind = 'pod'\nk = {k}\ncable-spread-ns = {spread_ns}"))
}

/// Two to four pods of four hosts, joined by core switches.
fn several_pods(rng: &mut Rng) -> Topology {
    topology(&format!("kind = 'fat-tree'\nk = 4\npods = {}", 2 + rng.uniform_below(3)))
}

fn topology(spec: &str) -> Topology {
    toml::from_str::<TopologySpec>(spec).unwrap().build().unwrap()
}

fn keys(rng: &mut Rng) -> FastpodConfig {
    let compute = rng.bernoulli(0.3).then(|| Span::from_ns(rng.uniform_below(20_000) as u64));
    FastpodConfig {
        arbiters: 1 + rng.uniform_below(2) as u32,
        optimistic: rng.bernoulli(0.7),
        message_order: if rng.bernoulli(0.5) { MessageOrder::Srpt } else { MessageOrder::Fifo },
        beacon_slots: [1, 8, 64][rng.uniform_below(3)],
        compute,
        clock_ppb: [0, 50_000][rng.uniform_below(2)],
        ..FastpodConfig::paper()
    }
}

/// Links that lose packets, and up to three links, switches, hosts or arbiters that fail for a
/// while.
fn break_things(spec: &mut SimSpec, keys: &FastpodConfig, rng: &mut Rng) {
    spec.faults.every_link = LinkFault { loss: rng.uniform_unit() * 0.02, ..LinkFault::default() };
    let n_hosts = spec.topology.n_hosts() as usize;
    // The standby's links are last. If one of each arbiter's fails, they may both reach hosts and
    // not one another, and then both allocate slots.
    let links = spec.topology.links().iter();
    let others = links.filter(|link| ![link.a, link.b].contains(&Node::Arbiter(1)));
    let n_links = others.count();
    for _ in 0..rng.uniform_below(4) {
        let target = match rng.uniform_below(4) {
            0 => Target::Link(rng.uniform_below(n_links) as u32),
            1 => Target::Switch(rng.uniform_below(spec.topology.n_switches() as usize) as u32),
            2 => Target::Host(rng.uniform_below(n_hosts) as u32),
            _ => Target::Arbiter(rng.uniform_below(keys.arbiters as usize) as u32),
        };
        let from = Time::from_ps(rng.uniform_below(300_000_000) as u64);
        let until = from + Span::from_us(1 + rng.uniform_below(500) as u64);
        spec.faults.outages.push(Outage { target, from, until });
    }
    let offset_max = Span::from_ns(rng.uniform_below(5_000) as u64);
    spec.clocks =
        ClockSpec { offset_max, drift_ppm_max: if keys.clock_ppb > 0 { 50.0 } else { 0.0 } };
}

fn arrivals(n_hosts: u32, rng: &mut Rng) -> Vec<Arrival> {
    let mut at = 0;
    let one = |_| {
        at += rng.uniform_below(8_000_000) as u64;
        let src = rng.uniform_below(n_hosts as usize) as u32;
        let dst = (src + 1 + rng.uniform_below(n_hosts as usize - 1) as u32) % n_hosts;
        let most = [1_500, 20_000, 300_000][rng.uniform_below(3)];
        arrival(at, src, dst, 1 + rng.uniform_below(most) as u64)
    };
    (0..60).map(one).collect()
}

fn check(topology: impl Fn(&mut Rng) -> Topology, seed: u64) {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let keys = FastpodConfig { packing: !seed.is_multiple_of(2), ..keys(&mut rng) };
    let place = TestNetwork::<FastpodTransport>::simulated(&keys, topology(&mut rng));
    assert!(place.config.pods.is_some(), "seed {seed} has a pod");
    let mut spec = SimSpec { fabric: place.fabric, ..spec(place.topology, seed) };
    break_things(&mut spec, &keys, &mut rng);
    let arrivals = arrivals(spec.topology.n_hosts(), &mut rng);
    let n = arrivals.len();
    let mut records = Records::default();
    let arrivals = arrivals.into_iter();
    let mut sim =
        Sim::<FastpodTransport, _, _>::new(spec, Arc::new(place.config), arrivals, &mut records);
    assert_eq!(sim.run(u64::MAX), Status::Finished, "seed {seed}");
    let collisions = sim.fabric().stats().collisions.clone().expect("a fabric without memory");
    assert_eq!(collisions.violations, [], "seed {seed}");
    drop(sim);
    let whole = records.0.iter().filter(|r| r.completed.is_some() && r.failed.is_none());
    assert_eq!((records.0.len(), whole.count()), (n, n), "seed {seed}");
}

#[test]
fn messages_arrive_once_and_slots_never_collide_under_faults() {
    (0..200).for_each(|seed| check(one_pod, seed));
}

#[test]
fn messages_between_pods_arrive_once_without_collisions_under_faults() {
    (0..20).for_each(|seed| check(several_pods, seed));
}

#[test]
#[ignore = "long"]
fn messages_arrive_once_without_collisions_under_many_faults() {
    (200..1_000).for_each(|seed| check(one_pod, seed));
    (20..500).for_each(|seed| check(several_pods, seed));
}
