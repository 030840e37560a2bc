//! Fastpass in whole simulations: exact times, no queues, loss of everything, faults by seed,
//! arbiters that crash.

mod common;

use common::*;
use rampmeter_core::{Purpose, Rate, Rng, Span, Time};
use rampmeter_proto::fastpass::{Fastpass, FastpassConfig, FastpassFamily, allocations_time};
use rampmeter_sim::*;

fn presets() -> [(&'static str, FastpassConfig); 2] {
    [("paper", FastpassConfig::paper()), ("reference", FastpassConfig::reference())]
}

const ARBITER: Rate = Rate::from_gbps(40);

/// The network with its arbiters, at the first rack.
fn with_arbiters(mut topology: Topology, config: &FastpassConfig) -> Topology {
    for _ in 0..config.arbiters {
        let (switch, rate, propagation) = (0, ARBITER, Span::from_ns(200));
        topology = topology.with_arbiter(ArbiterLink { switch, rate, propagation });
    }
    topology
}

fn on(config: FastpassConfig, topology: &Topology, plan: Option<RegularPaths>) -> Fastpass {
    let facts = facts(topology);
    let time = allocations_time(facts.n_hosts, config.header.get(), ARBITER);
    config.on(&facts, plan, time).unwrap()
}

/// The paths of a network of `racks` with `hosts` each.
fn plan(racks: u16, hosts: u16, spines: u16) -> RegularPaths {
    RegularPaths {
        rack_of: (0..racks * hosts).map(|h| h / hosts).collect(),
        pod_of: vec![0; usize::from(racks)],
        tor_up: spines,
        agg_up: 1,
    }
}

/// Links above racks carry four packets a slot, so three wait there at a slot's start; and a packet
/// from another rack arrives 1.6 slots later than one from the same rack. Nothing else ever waits
/// at load .6.
#[test]
fn scheduled_packets_meet_no_others() {
    let config = FastpassConfig { arbiters: 1, ..FastpassConfig::paper() };
    let topology = with_arbiters(leaf_spine_at(10.0, 9, 16, 4), &config);
    let fastpass = on(config, &topology, Some(plan(9, 16, 4)));
    let spec = spec(topology, 3);
    let flows = imc10(3_000, 10, 3);
    let mut sim = Sim::<FastpassFamily, _, _>::new(
        spec,
        std::sync::Arc::new(fastpass),
        flows.into_iter(),
        NoProbe,
    );
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let longest = sim.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max().unwrap();
    assert!(longest <= 3 * 1500 + 500, "{longest} bytes waited at one port");
    assert_eq!(sim.fabric().stats().dropped(), 0);
    assert_eq!(sim.counters().duplicate_bytes, 0);
}

#[test]
fn every_flow_finishes_with_1_percent_loss_of_everything() {
    for (_, config) in presets() {
        let topology = with_arbiters(leaf_spine_at(10.0, 9, 16, 4), &config);
        let fastpass = on(config, &topology, Some(plan(9, 16, 4)));
        let spec = spec(topology, 5);
        assert_all_finish_with_loss::<FastpassFamily>(fastpass, spec, imc10(10_000, 10, 5));
    }
}

#[test]
fn every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone() {
    let seeds = 0..1_000;
    for seed in seeds {
        for (preset, config) in presets() {
            let topology = with_arbiters(leaf_spine(2, 3, 2), &config);
            let fastpass = on(config, &topology, Some(plan(2, 3, 2)));
            let (spec, arrivals, cut) = scenario(topology, seed);
            let ran = common::run::<FastpassFamily>(fastpass, spec, arrivals);
            assert_sound(&ran, cut, &format!("seed {seed}, preset {preset}"));
        }
    }
}

/// The arbiter crashes, its standby takes over; in half of the runs it comes back, knowing nothing.
#[test]
fn no_message_is_lost_or_doubled_when_the_arbiter_crashes() {
    let config = FastpassConfig::paper();
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed, 1, Purpose::Test);
        let topology = with_arbiters(leaf_spine(2, 3, 2), &config);
        let fastpass = on(config.clone(), &topology, Some(plan(2, 3, 2)));
        let (mut spec, arrivals, _) = scenario(topology, seed);
        spec.faults.outages.clear();
        let from = Time::from_ps(rng.below(400_000_000) as u64);
        let until = match rng.chance(0.5) {
            true => from + Span::from_us(1 + rng.below(400) as u64),
            false => Time::NEVER,
        };
        spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
        let ran = common::run::<FastpassFamily>(fastpass, spec, arrivals);
        assert_sound(&ran, None, &format!("seed {seed}"));
    }
}

/// Fifty sources to one destination, 100 MB in all: each waits most of 80 ms for its turn, and none
/// is given up meanwhile.
#[test]
fn sources_that_wait_for_their_turn_are_not_given_up() {
    for (preset, config) in presets() {
        let topology = with_arbiters(leaf_spine_at(10.0, 9, 16, 4), &config);
        let fastpass = on(config, &topology, Some(plan(9, 16, 4)));
        let mut spec = spec(topology, 1);
        spec.sample = None;
        spec.paranoid = false;
        let flows = (1..=50).map(|src| arrival(0, src, 0, 2_000_000)).collect();
        let (status, records) = common::run::<FastpassFamily>(fastpass, spec, flows);
        assert_eq!(status, Status::Finished, "{preset}");
        assert!(records.iter().all(|r| r.failed.is_none()), "{preset}");
        // The destination's link is never idle for long.
        let last = records.iter().filter_map(|r| r.delivered).max().unwrap();
        let line = Span::from_us(82_200);
        assert!(last - Time::ZERO < line.scale_floor(112, 100), "{preset}: {last}");
    }
}
