//! cosy in whole simulations: exact times, bounds, rejects, faults by seed.

mod theorems;

use std::sync::Arc;

use rampmeter_proto::coexistence::{Coexisting, CoexistingConfig};
use rampmeter_proto::cosy::config::PathFacts;
use rampmeter_proto::cosy::{Cosy, CosyConfig, CosyTransport, analysis};
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::phost::{PhostConfig, PhostTransport};
use rampmeter_sim::*;
use rampmeter_testkit::suite::each_seed;
use rampmeter_testkit::{
    Records, Scenario, arrival, facts, here, leaf_spine, leaf_spine_of, scenario, spec, star,
};
use rampmeter_types::{Bytes, Purpose, Rate, Rng, Span, TenantId, Time, Transport};

fn on(config: CosyConfig, topology: &Topology) -> Cosy {
    let delays = topology.delays(config.packet.wire(), config.packet.header);
    let NetworkShape { switches, ratio, ports, .. } = topology.shape(&delays);
    let facts = delays.facts();
    config.derive(&facts, PathFacts { switches, ratio, ports }).unwrap()
}

fn run(config: CosyConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let config = on(config, &spec.topology);
    rampmeter_testkit::run::<CosyTransport>(config, spec, arrivals)
}

#[test]
fn a_lone_message_has_the_whole_link() {
    for slots in [1, 2, 8, 16] {
        let config = CosyConfig { slots, ..CosyConfig::paper() };
        let spec = spec(leaf_spine(9, 16, 4), 1);
        let bound = on(config.clone(), &spec.topology).bound(Bytes::new(128_000));
        let (status, records) = run(config, spec, vec![arrival(310_200, 81, 28, 128_000)]);
        assert_eq!(status, Status::Finished);
        let took = records[0].completed.unwrap() - records[0].arrival;
        // It has all slots, so it takes the time of two round trips and its packets.
        let size = Bytes::new(128_000 * 1500 / 1460);
        let least = analysis::delta_star(Span::from_ns(5_500), size, Rate::from_gbps(100));
        assert!(took <= bound && took < least.scale_floor(6, 5), "K = {slots}: {took}");
    }
}

/// Observations of a run without faults.
#[derive(Debug, Default)]
struct Observations {
    completed: u64,
    rejected: u64,
    failed: u64,
    packets: u64,
    /// The longest time of a completed message over its bound.
    tightest: f64,
    /// The longest queue over its bound.
    fullest: f64,
}

/// Runs: no message is late, none fails unless something in the network does, and queues are
/// bounded if cosy has the links for itself.
fn check<F: Transport>(
    cosy: &Cosy,
    config: Arc<F::Config>,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
) -> Observations {
    let has_failures = !spec.faults.outages.is_empty();
    let mut records = Records::default();
    let mut sim = Sim::<F, _, _>::new(spec, config, arrivals.into_iter(), &mut records);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let tiers = sim.fabric().tier_stats();
    // Best-effort packets may find buffers full.
    let is_alone = cosy.config.best_effort.is_none();
    assert!(has_failures || !is_alone || sim.fabric().stats().dropped() == 0);
    drop(sim);
    let mut seen = Observations::default();
    for record in records.0.iter().filter(|record| record.bound.is_some()) {
        assert!(has_failures || record.failed.is_none(), "{record:?}");
        let ends = [record.completed, record.failed, record.rejected];
        let mut ends = ends.into_iter().flatten();
        let fate = ends.next().expect("every message has a fate");
        assert!(ends.next().is_none() && fate - record.arrival <= cosy.bound(record.size));
        if let Some(end) = record.rejected.filter(|_| !has_failures) {
            // Held until it was rejected; then a reject may have to answer the last rsvp.
            let (took, rtt) = (end - record.arrival, cosy.facts.data_rtt);
            let latest = cosy.hold + (rtt + cosy.slack) * 2 + cosy.frame + cosy.queueing;
            assert!(took + cosy.pause.max(rtt) >= cosy.hold && took <= latest, "{record:?}");
        }
        if let Some(end) = record.completed {
            let part = (end - record.arrival).as_secs_f64() / cosy.bound(record.size).as_secs_f64();
            assert!(part <= 1.0, "{record:?}");
            seen.tightest = seen.tightest.max(part);
            seen.completed += 1;
            seen.packets += record.size.packets_ceil(cosy.config.packet.payload);
        }
        seen.rejected += u64::from(record.rejected.is_some());
        seen.failed += u64::from(record.failed.is_some());
    }
    if !is_alone {
        return seen;
    }
    let packet = cosy.config.packet.wire();
    let PathFacts { switches, ratio, .. } = cosy.paths;
    let lemma = analysis::queue_bound(switches, cosy.config.slots * ratio, packet);
    // The lemma counts data alone. A control packet that is in the way makes one more packet wait
    // at each switch.
    let bound = lemma + Bytes::new(packet.get() * u64::from(switches));
    for tier in tiers {
        assert!(tier.queue_max <= bound, "{}: {:?} of {bound:?}", tier.name, tier.queue_max);
        seen.fullest = seen.fullest.max(tier.queue_max.get() as f64 / bound.get() as f64);
    }
    seen
}

fn assert_promises_kept(config: CosyConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> Observations {
    let cosy = Arc::new(on(config, &spec.topology));
    check::<CosyTransport>(&cosy, Arc::clone(&cosy), spec, arrivals)
}

/// Returns the same with pHost in lower classes, which has another four tenths of the links.
fn assert_promises_kept_beside(
    config: CosyConfig,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
) -> Observations {
    let config = CosyConfig { best_effort: Some(Bytes::new(1_500)), ..config };
    let upper = Arc::new(on(config, &spec.topology));
    let lower = Arc::new(PhostConfig::paper().derive(&facts(&spec.topology)).unwrap());
    let both = CoexistingConfig { upper: Arc::clone(&upper), lower };
    let best_effort = mixed(&spec.topology, 0.4, arrivals.len() as u64, spec.seed + 1_000_000);
    let tenant = TenantId::new(1);
    let best_effort = best_effort.into_iter().map(|arrival| Arrival { tenant, ..arrival });
    let mut arrivals: Vec<Arrival> = arrivals.into_iter().chain(best_effort).collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    check::<Coexisting<CosyTransport, PhostTransport>>(&upper, Arc::new(both), spec, arrivals)
}

/// §4: best-effort traffic has no effect on messages with a promise, even if its packets are longer
/// than theirs.
#[test]
fn longer_packets_of_best_effort_traffic_reject_no_message() {
    let (hold, packet) = (Some(Span::ZERO), PacketSizes::new(360, 40));
    let config = CosyConfig { hold, packet, ..CosyConfig::paper() };
    let topology = leaf_spine_of([10.0, 10.0], 4, 2, 2);
    let spec = SimSpec { paranoid: false, ..spec(topology.build().unwrap(), 1) };
    let probes: Vec<Arrival> = (0..2_000).map(|n| arrival(n * 10_000_000, 0, 7, 100)).collect();
    let seen = assert_promises_kept_beside(config, spec, probes);
    assert_eq!((seen.completed, seen.rejected, seen.failed), (2_000, 0, 0));
}

/// Every end of a slot repeats two requests, and a message of a few packets may end as many slots.
/// These control packets are within their reserved share of the link.
#[test]
fn repeated_requests_of_short_messages_break_no_promise() {
    for slots in [1, 4, 16] {
        let spec = SimSpec { paranoid: false, ..spec(leaf_spine(9, 16, 4), 1) };
        let hold = Some(Span::from_us(200));
        let config = CosyConfig { slots, hold, ..CosyConfig::paper() };
        let mut rng = Rng::new(u64::from(slots), 2, Purpose::Test);
        let (n, mut at) = (144, 0.0);
        let flow = |_| {
            // 1.2 times the capacity of all links, at 5000 bytes a message.
            at += 5_000.0 * 8e12 / (100e9 * n as f64 * 1.2) * rng.exponential();
            let src = rng.uniform_below(n);
            let dst = (src + 1 + rng.uniform_below(n - 1)) % n;
            arrival(at as u64, src as u32, dst as u32, 1 + rng.uniform_below(9_000) as u64)
        };
        let arrivals = (0..100_000).map(flow).collect();
        let seen = assert_promises_kept(config, spec, arrivals);
        println!("K = {slots}: {seen:?}");
        assert!(seen.completed > 5_000 && seen.rejected > 1_000, "K = {slots}: {seen:?}");
    }
}

/// Poisson arrivals between all hosts, of sizes from 8 to 512 KB.
fn mixed(topology: &Topology, load: f64, flows: u64, seed: u64) -> Vec<Arrival> {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let n = topology.n_hosts() as usize;
    let mean = f64::from((8..=512u32).sum::<u32>()) / 505.0 * 1e3 * 1500.0 / 1460.0;
    let gap = mean * 8.0 * 1e12 / (100e9 * n as f64 * load);
    let mut at = 0.0;
    let flow = |_| {
        at += gap * rng.exponential();
        let src = rng.uniform_below(n);
        let dst = (src + 1 + rng.uniform_below(n - 1)) % n;
        arrival(at as u64, src as u32, dst as u32, 1_000 * (8 + rng.uniform_below(505) as u64))
    };
    (0..flows).map(flow).collect()
}

/// `RAMPMETER_PACKETS` is the number of packets that must have been admitted in all.
#[test]
fn every_promise_is_kept_up_to_saturation_and_beyond() {
    let n_packets_max = std::env::var("RAMPMETER_PACKETS").ok().and_then(|n| n.parse().ok());
    let n_packets_max: u64 = n_packets_max.unwrap_or(1_000_000);
    let fat_tree = TopologySpec::FatTree(topologies::FatTree {
        pods: None,
        k: 8,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    let topologies = [leaf_spine(9, 16, 4), fat_tree.build().unwrap()];
    let mut total = Observations::default();
    for seed in 1.. {
        let mut rng = Rng::new(seed, 1, Purpose::Test);
        let config = CosyConfig { slots: 1 + rng.uniform_below(16) as u32, ..CosyConfig::paper() };
        let config = if rng.bernoulli(0.2) { CosyConfig::rsvp() } else { config };
        let topology = topologies[seed as usize % 2].clone();
        let load = 0.2 + rng.uniform_unit();
        let arrivals = mixed(&topology, load, (n_packets_max / 1_000).clamp(1_000, 20_000), seed);
        let mut spec = SimSpec { paranoid: false, ..spec(topology, seed) };
        let seen = match rng.uniform_below(4) {
            0 => assert_promises_kept_beside(config, spec, arrivals),
            1 => {
                let last = arrivals[arrivals.len() - 1].at.as_ps() as usize;
                let n_links = spec.topology.links().len();
                for _ in 0..3 {
                    let from = Time::from_ps(rng.uniform_below(last) as u64);
                    let until = from + Span::from_us(1 + rng.uniform_below(1_000) as u64);
                    let target = Target::Link(rng.uniform_below(n_links) as u32);
                    spec.faults.outages.push(Outage { target, from, until });
                }
                assert_promises_kept(config, spec, arrivals)
            }
            _ => assert_promises_kept(config, spec, arrivals),
        };
        total.completed += seen.completed;
        total.rejected += seen.rejected;
        total.failed += seen.failed;
        total.packets += seen.packets;
        total.tightest = total.tightest.max(seen.tightest);
        total.fullest = total.fullest.max(seen.fullest);
        if total.packets >= n_packets_max {
            break;
        }
    }
    println!("{total:?}");
    assert!(total.rejected > 0 && total.failed > 0 && total.tightest > 0.9, "{total:?}");
}

/// §4: best-effort traffic in lower classes takes nothing from the promises, and is delivered.
#[test]
fn best_effort_traffic_breaks_no_promise() {
    for (seed, slots) in [(1, 1), (2, 4), (3, 16)] {
        let spec = spec(leaf_spine(9, 16, 4), seed);
        let config = CosyConfig { slots, ..CosyConfig::paper() };
        let arrivals = mixed(&spec.topology, 0.5, 1_000, seed);
        let seen = assert_promises_kept_beside(config, spec, arrivals);
        assert!(seen.completed > 500, "K = {slots}: {seen:?}");
    }
}

/// §4: a failure is inferred from the packet that does not arrive. The time is a round trip and the
/// longest time in queues, after the packet had to be sent. A lone message has one packet a frame.
#[test]
fn a_failure_is_known_within_a_round_trip_and_the_bound_on_queues() {
    for slots in [1, 4, 16] {
        // No other packet is in the way of a lone message.
        let (slots_per_message, slack) = (Some(1), Some(Span::ZERO));
        let config = CosyConfig { slots, slots_per_message, slack, ..CosyConfig::paper() };
        let from = Time::from_ps(20_000_000);
        let fate_if_down = |link| {
            let mut spec = spec(leaf_spine(2, 3, 2), 1);
            let cosy = on(config.clone(), &spec.topology);
            let outage = Outage { target: Target::Link(link), from, until: Time::NEVER };
            spec.faults.outages.push(outage);
            let (_, records) = run(config.clone(), spec, vec![arrival(0, 0, 5, 500_000)]);
            (cosy, records[0])
        };
        // The message takes one of the two routes.
        let runs = [6, 7].map(fate_if_down);
        let failed: Vec<_> = runs.iter().filter(|(_, record)| record.failed.is_some()).collect();
        let [(cosy, record)] = failed[..] else { panic!("{} runs failed", failed.len()) };
        let knows = record.failed.unwrap() - from;
        let within = cosy.facts.data_rtt + cosy.queueing + cosy.frame;
        assert!(knows <= within, "K = {slots}: {knows} of {within}");
    }
}

/// §4: the table of virtual links has pK + pK log2(pK) bits; the paper's example is 128 ports, K =
/// 4 and 640 bytes.
#[test]
fn the_state_of_switches_is_that_of_the_paper() {
    let topology = star(128).build().unwrap();
    let config = CosyConfig { slots: 4, ..CosyConfig::paper() };
    let cosy = Arc::new(on(config, &topology));
    let sim = Sim::<CosyTransport, _, _>::new(spec(topology, 1), cosy, [].into_iter(), NoProbe);
    assert_eq!(sim.fabric().program(0).state_bits(), 640 * 8);
}

/// No reservation remains after any fault, for any number of slots. That each message has one fate
/// within its bound is tested with all transports.
#[test]
fn faults_leave_no_reservation() {
    each_seed(here!(), "faults_leave_no_reservation", 0..1_000, |seed| {
        let slots = 1 << (seed % 5);
        for config in [CosyConfig { slots, ..CosyConfig::paper() }, CosyConfig::rsvp()] {
            let Scenario { mut spec, mut arrivals, .. } = scenario(leaf_spine(2, 3, 2), seed);
            for outage in &mut spec.faults.outages {
                outage.until = outage.until.min(Time::from_ps(5_000_000_000));
            }
            let cosy = Arc::new(on(config, &spec.topology));
            // At the end of this one everything outside of its rack must have ended.
            let rack = seed as u32 % 2;
            arrivals.push(arrival(20_000_000_000, 3 * rack, 3 * rack + 1, 1_000));
            let mut records = Records::default();
            let n = arrivals.len();
            let config = Arc::clone(&cosy);
            let mut sim =
                Sim::<CosyTransport, _, _>::new(spec, config, arrivals.into_iter(), &mut records);
            assert_eq!(sim.run(u64::MAX), Status::Finished);
            for host in (0..6).filter(|host| host / 3 != rack || host % 3 == 2) {
                let endpoint = sim.endpoint(host);
                assert!(endpoint.is_idle(), "host {host} {endpoint:?}");
            }
            for switch in (0..4).filter(|&switch| switch != rack) {
                let left = sim.fabric().program(switch).reserved(sim.now());
                assert_eq!(left, 0, "switch {switch}");
            }
            drop(sim);
            assert_eq!(records.0.len(), n);
            for r in &records.0 {
                let ends = [r.completed, r.failed, r.rejected];
                let ends: Vec<Time> = ends.into_iter().flatten().collect();
                assert_eq!(ends.len(), 1, "{r:?}");
                let bound = cosy.bound(r.size).scale_floor(1_000_051, 1_000_000);
                assert!(ends[0] - r.arrival <= bound, "{r:?}, bound {bound}");
            }
        }
    });
}
