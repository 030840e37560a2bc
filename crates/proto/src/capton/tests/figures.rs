//! Figure 6 on flows whose outcome a reader can work out.

use rampmeter_types::{Bytes, Rate, Span, Time};

use super::super::figure6::{PendingFlow, schedule_by_figure6};
use super::super::network::{LevelMember, NarrowCorePolicy, Network};
use super::{flow, gbps, two_racks};
use crate::central::Arrival;
use crate::central::remaining::{RemainingLine, RemainingSize};

/// Returns the rates in Gbit/s, zero for flows that are stopped.
fn rates(network: &Network, flows: &[Arrival]) -> Vec<u64> {
    let pending = |flow: &Arrival| PendingFlow {
        src: flow.src,
        dst: flow.dst,
        remaining: RemainingSize::from_bytes(flow.remaining),
    };
    let flows: Vec<PendingFlow> = flows.iter().map(pending).collect();
    let in_gbps = |rate: Option<Rate>| rate.map_or(0, |rate| rate.as_bps() / 1_000_000_000);
    schedule_by_figure6(network, &flows).into_iter().map(in_gbps).collect()
}

#[test]
fn the_flow_with_the_fewest_remaining_bytes_is_first() {
    let flows = [flow(0, 0, 1, 30), flow(1, 0, 2, 10), flow(2, 3, 1, 20)];
    assert_eq!(rates(&two_racks(), &flows), [0, 10, 10]);
}

#[test]
fn a_host_sends_one_flow_and_receives_one() {
    let flows = [flow(0, 0, 1, 10), flow(1, 1, 0, 20), flow(2, 2, 1, 5), flow(3, 0, 3, 30)];
    assert_eq!(rates(&two_racks(), &flows), [0, 10, 10, 10]);
}

#[test]
fn equal_flows_are_served_in_order_of_arrival() {
    let flows = [flow(7, 0, 2, 10), flow(3, 1, 2, 10)];
    assert_eq!(rates(&two_racks(), &flows), [10, 0]);
}

/// The core has room for two of four; a flow within the rack needs none.
#[test]
fn flows_that_find_the_core_full_leave_their_hosts_to_others() {
    let between = |n: u64| flow(n, n as u32, 4 + n as u32, 10 + n);
    let flows = [between(0), between(1), between(2), between(3), flow(4, 2, 3, 500)];
    assert_eq!(rates(&two_racks(), &flows), [10, 10, 0, 0, 10]);
}

#[test]
fn the_slower_access_link_sets_the_rate_and_the_faster_one_is_not_shared() {
    let mut network = two_racks();
    network.set_capacity(network.down(0, 1).unwrap(), Some(gbps(4)));
    assert_eq!(rates(&network, &[flow(0, 0, 1, 10), flow(1, 0, 2, 20)]), [4, 0]);
}

#[test]
fn a_core_link_slower_than_the_access_links_has_two_readings() {
    let host = |n: u32| LevelMember { group: n / 2, up: Some(gbps(10)), down: Some(gbps(10)) };
    let rack = LevelMember { group: 0, up: Some(gbps(4)), down: Some(gbps(40)) };
    let levels = [(0..4).map(host).collect(), vec![rack; 2]];
    let flows = [flow(0, 0, 2, 10), flow(1, 1, 3, 20)];
    let network = |narrow| Network::new(&levels, narrow).unwrap();
    assert_eq!(rates(&network(NarrowCorePolicy::Refuse), &flows), [0, 0]);
    assert_eq!(rates(&network(NarrowCorePolicy::Shrink), &flows), [4, 0]);
}

#[test]
fn flows_of_a_link_that_is_down_are_stopped_and_hold_nothing() {
    let mut network = two_racks();
    network.set_capacity(network.down(0, 1).unwrap(), None);
    assert_eq!(rates(&network, &[flow(0, 0, 1, 10), flow(1, 0, 2, 20)]), [0, 10]);
}

/// A flow of 4 Gbit/s sends half a byte in a nanosecond.
#[test]
fn remaining_sizes_are_exact_and_round_up_to_bytes() {
    let at_ns = |ns| Time::ZERO + Span::from_ns(ns);
    let line = RemainingLine::new(RemainingSize::from_bytes(Bytes::new(10)), gbps(4), at_ns(5));
    let left = |ns| line.remaining(gbps(4), at_ns(ns));
    assert_eq!([5, 6, 7, 24, 25, 99].map(|ns| left(ns).bytes_ceil().get()), [10, 10, 9, 1, 0, 0]);
    assert!(left(6) < left(5) && left(26) < left(25));
    assert_eq!(line.end(gbps(4)), at_ns(25));
    // A third of a picosecond too early would not do.
    let line = RemainingLine::new(
        RemainingSize::from_bytes(Bytes::new(1)),
        Rate::from_bps(3_000_000_000).unwrap(),
        at_ns(0),
    );
    assert_eq!(line.end(Rate::from_bps(3_000_000_000).unwrap()), Time::from_ps(2_667));
}
