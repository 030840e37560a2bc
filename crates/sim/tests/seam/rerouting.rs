//! Links that fail, and routing that follows later.

use super::*;
use rampmeter_testkit::leaf_spine;

/// A host sends 1000 packets of 120 ns to another rack by two spines, one packet by either. The
/// link to one of them fails after 200 packet times for `down`. Returns the packets that are lost.
fn lost(rerouting: Span, down: Option<Span>) -> u64 {
    let mut spec = rampmeter_testkit::spec(leaf_spine(2, 3, 2), 1);
    spec.drain = Span::from_us(1_000);
    spec.faults.rerouting = rerouting;
    let from = Time::ZERO + Span::from_us(24);
    let until = down.map_or(Time::NEVER, |down| from + down);
    // Links 0 to 5 are the hosts', 6 is that of the first rack and the first spine.
    spec.faults.outages.push(Outage { target: Target::Link(6), from, until });
    let dst = NodeId::new(3);
    let arrivals = vec![Arrival::new(Time::ZERO, NodeId::new(0), dst, Bytes::new(1_460_000))];
    let sim = run::<Blast>(spec, Segmentation::default(), arrivals);
    sim.fabric().stats().dropped()
}

#[test]
fn switches_send_to_a_failed_link_until_routing_has_followed() {
    let us = Span::from_us;
    // Packets on the link and in its queue are lost in any case.
    let at_once = lost(us(0), None);
    assert!(at_once <= 20, "{at_once}");
    // Half of 800 packets, of 400, and of 200.
    for (rerouting, half) in [(us(1_000), 400), (us(48), 200), (us(24), 100)] {
        let more = lost(rerouting, None) - at_once;
        assert!(more.abs_diff(half) <= half / 4, "{rerouting}: {more}");
    }
}

#[test]
fn a_link_repaired_before_rerouting_stays_in_use() {
    let us = Span::from_us;
    let (short, long) = (lost(us(48), Some(us(24))), lost(us(1_000), Some(us(24))));
    assert_eq!(short, long);
    assert!(short.abs_diff(100) <= 30, "{short}");
}
