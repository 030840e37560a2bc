//! Fastpass in whole simulations: no queues, sources that wait, arbiters that crash.

use std::sync::Arc;

use rampmeter_proto::Keys;
use rampmeter_proto::fastpass::{FastpassConfig, FastpassTransport};
use rampmeter_sim::Target;
use rampmeter_sim::*;
use rampmeter_testkit::suite::each_seed;
use rampmeter_testkit::*;
use rampmeter_types::{Purpose, Rng, Span, Time};

type Fastpass = TestNetwork<FastpassTransport>;

/// Links above racks carry four packets a slot. So three wait there at a slot's start, or four if a
/// control packet takes the link at this instant. A packet from another rack arrives 1.6 slots
/// later than one from the same rack. Nothing else waits at load 0.6.
#[test]
fn scheduled_packets_meet_no_others() {
    let config = FastpassConfig { arbiters: 1, ..FastpassConfig::paper() };
    let TestNetwork { topology, config, .. } =
        Fastpass::simulated(&config, leaf_spine_at(10.0, 9, 16, 4));
    let (config, flows) = (Arc::new(config), imc10(3_000, 10, 3).into_iter());
    let mut sim = Sim::<FastpassTransport, _, _>::new(spec(topology, 3), config, flows, NoProbe);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let longest = sim.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max().unwrap();
    assert!(longest <= 4 * 1500, "{longest} bytes waited at one port");
    assert_eq!(sim.fabric().stats().dropped(), 0);
    assert_eq!(sim.counters().duplicate_bytes, 0);
}

/// The arbiter crashes, its standby takes over; in half of the runs it returns, knowing nothing.
#[test]
fn no_message_is_lost_or_doubled_when_the_arbiter_crashes() {
    let name = "no_message_is_lost_or_doubled_when_the_arbiter_crashes";
    each_seed(here!(), name, 0..1_000, |seed| {
        let mut rng = Rng::new(seed, 1, Purpose::Test);
        let place = Fastpass::simulated(&FastpassConfig::paper(), leaf_spine(2, 3, 2));
        let Scenario { mut spec, arrivals, .. } = scenario(place.topology, seed);
        spec.faults.outages.clear();
        let from = Time::from_ps(rng.uniform_below(400_000_000) as u64);
        let until = match rng.bernoulli(0.5) {
            true => from + Span::from_us(1 + rng.uniform_below(400) as u64),
            false => Time::NEVER,
        };
        spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
        assert_sound(&run::<FastpassTransport>(place.config, spec, arrivals), None);
    });
}

/// Fifty sources to one destination, 100 MB in all: each waits most of 80 ms for its turn, and none
/// is aborted meanwhile.
#[test]
fn sources_that_wait_for_slots_are_not_timed_out() {
    for (preset, keys) in FastpassConfig::PRESETS {
        let TestNetwork { topology, config, .. } =
            Fastpass::simulated(&keys(), leaf_spine_at(10.0, 9, 16, 4));
        let mut spec = spec(topology, 1);
        spec.sample = None;
        spec.paranoid = false;
        let flows = (1..=50).map(|src| arrival(0, src, 0, 2_000_000)).collect();
        let (status, records) = run::<FastpassTransport>(config, spec, flows);
        assert_eq!(status, Status::Finished, "{preset}");
        assert!(records.iter().all(|r| r.failed.is_none()), "{preset}");
        // The destination's link is never idle for long.
        let last = records.iter().filter_map(|r| r.delivered).max().unwrap();
        let line = Span::from_us(82_200);
        assert!(last - Time::ZERO < line.scale_floor(112, 100), "{preset}: {last}");
    }
}
