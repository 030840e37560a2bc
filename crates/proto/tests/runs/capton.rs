//! CAPTON in whole simulations: the cost of scheduling, the order of messages, a dead controller.

use rampmeter_proto::capton::{CaptonConfig, CaptonTransport};
use rampmeter_proto::central::ControllerKeys;
use rampmeter_sim::Target;
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::{Span, Time};

type Capton = TestNetwork<CaptonTransport>;

/// Returns the delivery time of each message, in microseconds after its arrival.
fn delivered(keys: &CaptonConfig, arrivals: Vec<Arrival>) -> Vec<f64> {
    let TestNetwork { topology, config, fabric, .. } =
        Capton::simulated(keys, leaf_spine_at(10.0, 2, 3, 2));
    let spec = SimSpec { fabric, ..spec(topology, 1) };
    let (status, records) = run::<CaptonTransport>(config, spec, arrivals);
    assert_eq!(status, Status::Finished);
    records.iter().map(|r| (r.delivered.unwrap() - r.arrival).as_us_f64()).collect()
}

/// A lone message above the threshold waits for its request, the controller and the order. Then it
/// is as fast as one without a request (§V.C).
#[test]
fn a_scheduled_message_takes_longer_by_the_scheduling_delay() {
    let size = 100_000;
    let took = |threshold| {
        let compute = Some(Span::from_us(10));
        let keys = CaptonConfig {
            short_flow_packets: threshold,
            controller: ControllerKeys { compute, ..ControllerKeys::default() },
            ..CaptonConfig::paper()
        };
        delivered(&keys, vec![arrival(0, 0, 4, size)])[0]
    };
    let delay = took(10) - took(1_000);
    let facts = facts(&leaf_spine_at(10.0, 2, 3, 2));
    let compute = 10.0;
    // The controller is at most as far away as the farthest host.
    assert!(delay > compute, "{delay} us");
    assert!(delay <= compute + facts.control_rtt.as_us_f64(), "{delay} us");
}

/// Two messages for one host: the one with the smallest remaining size is sent first, though it
/// arrives later (§IV.D).
#[test]
fn the_message_with_the_fewest_remaining_bytes_completes_first() {
    let (long, short) = (3_000_000, 300_000);
    let alone = |src, size| delivered(&CaptonConfig::paper(), vec![arrival(0, src, 4, size)])[0];
    let (long_alone, short_alone) = (alone(0, long), alone(3, short));
    let both = vec![arrival(0, 0, 4, long), arrival(500_000_000, 3, 4, short)];
    let took = delivered(&CaptonConfig::paper(), both);
    // The long one is stopped one way later than the short one is started.
    assert!(took[1] < short_alone * 1.1, "{} us, alone {short_alone}", took[1]);
    // It waits for the short one and for the order after it.
    let waited = took[0] - long_alone;
    assert!(waited > short_alone * 0.8 && waited < short_alone * 1.3, "{waited} us");
}

/// A host sends one message at a time, so that of two equal ones the first takes its own time.
#[test]
fn messages_of_one_host_follow_one_another() {
    let size = 1_000_000;
    let alone = delivered(&CaptonConfig::paper(), vec![arrival(0, 0, 4, size)])[0];
    let both = vec![arrival(0, 0, 4, size), arrival(1, 0, 5, size)];
    let took = delivered(&CaptonConfig::paper(), both);
    assert!((took[0] / alone - 1.0).abs() < 0.05, "{} us, alone {alone}", took[0]);
    assert!((took[1] / (2.0 * alone) - 1.0).abs() < 0.1, "{} us", took[1]);
}

/// Without a controller messages take the fallback time more than with TCP alone, not longer.
#[test]
fn a_dead_controller_costs_the_fallback_time() {
    let keys = CaptonConfig::paper();
    let TestNetwork { topology, config, fabric, .. } =
        Capton::simulated(&keys, leaf_spine_at(10.0, 2, 3, 2));
    let fallback = config.settings.fallback.as_us_f64();
    let mut spec = SimSpec { fabric, ..spec(topology, 1) };
    let dead = Outage { target: Target::Arbiter(0), from: Time::ZERO, until: Time::NEVER };
    spec.faults.outages.push(dead);
    let (_, records) = run::<CaptonTransport>(config, spec, vec![arrival(1, 0, 4, 1_000_000)]);
    let took = (records[0].delivered.unwrap() - records[0].arrival).as_us_f64();
    let alone = delivered(&keys, vec![arrival(0, 0, 4, 1_000_000)])[0];
    assert!(took > fallback && took < fallback * 1.1 + alone * 1.3, "{took} us");
}

/// Twelve hosts of a rack with four uplinks send a message each to the other rack, after an uplink
/// has failed. Answers when the messages were delivered, in microseconds, in order.
fn over_three_of_four_uplinks(keys: &CaptonConfig) -> Vec<f64> {
    let network = leaf_spine_of([10.0, 10.0], 2, 12, 4).build().unwrap();
    let TestNetwork { topology, config, fabric, .. } = Capton::simulated(keys, network);
    let is_uplink = |link: &topo::Link| link.a == Node::Switch(0) && link.b == Node::Switch(2);
    let uplink = topology.links().iter().position(is_uplink).unwrap() as u32;
    let mut spec = SimSpec { fabric, ..spec(topology, 1) };
    let outage = Outage { target: Target::Link(uplink), from: Time::ZERO, until: Time::NEVER };
    spec.faults.outages.push(outage);
    let arrivals = (0..12).map(|n| arrival(1_000_000, n, 12 + n, 3_000_000)).collect();
    let (status, records) = run::<CaptonTransport>(config, spec, arrivals);
    assert_eq!(status, Status::Finished);
    let mut delivered: Vec<f64> =
        records.iter().map(|r| (r.delivered.unwrap() - r.arrival).as_us_f64()).collect();
    delivered.sort_by(f64::total_cmp);
    delivered
}

/// One of four uplinks has failed. The controller is notified, and grants three flows at a time,
/// each at the full rate of its host's link. With `rack-hosts` it does not have the number of
/// uplinks of a rack, and grants four, which share three uplinks.
#[test]
fn the_controller_reckons_with_the_links_that_routing_uses() {
    let packets = 3_000_000_f64 / 1460.0;
    let message = packets * 1500.0 * 8.0 / 10e3;
    let warned = over_three_of_four_uplinks(&CaptonConfig::paper());
    for (delivered, place) in warned.iter().zip(0..) {
        let rounds = f64::from(place / 3 + 1);
        assert!(*delivered > rounds * message, "{place}: {delivered} us");
        assert!(*delivered < rounds * message * 1.05, "{place}: {delivered} us");
    }
    let (uplinks_gbps, rack_hosts) = (Some(40.0), Some(12));
    let keys = CaptonConfig { uplinks_gbps, rack_hosts, ..CaptonConfig::paper() };
    let untold = over_three_of_four_uplinks(&keys);
    let first = message * 4.0 / 3.0;
    assert!(untold[0] > first * 0.95, "{} us", untold[0]);
}
