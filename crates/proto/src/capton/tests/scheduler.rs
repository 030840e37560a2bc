//! The incremental scheduler by example.

use rampmeter_types::{Bytes, Rate, Span, Time};

use super::super::scheduler::Scheduler;
use super::{flow, gbps, two_racks};
use crate::central::{Change, FlowId};

const GO: Option<Rate> = Some(Rate::from_gbps(10));

fn changes(changes: &[Change<Rate>]) -> Vec<(u64, Option<Rate>)> {
    changes.iter().map(|change| (change.flow.0, change.grant)).collect()
}

/// 10 Gbit/s are 1.25 kB in a microsecond.
fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

#[test]
fn a_shorter_flow_takes_the_place_of_a_longer_one_and_gives_it_back() {
    let mut scheduler = Scheduler::new(two_racks());
    assert_eq!(changes(scheduler.arrive(flow(1, 0, 4, 125))), [(1, GO)]);
    scheduler.advance(at_us(20));
    assert_eq!(changes(scheduler.arrive(flow(2, 0, 5, 25))), [(1, None), (2, GO)]);
    assert_eq!(scheduler.next_completion(), Some((at_us(40), FlowId(2))));
    scheduler.advance(at_us(40));
    assert_eq!(changes(scheduler.complete(FlowId(2))), [(1, GO)]);
    // 25 kB were sent before, and nothing while it was stopped.
    assert_eq!(scheduler.remaining(FlowId(1)).unwrap().bytes_ceil(), Bytes::new(100_000));
    assert_eq!(scheduler.next_completion(), Some((at_us(120), FlowId(1))));
}

/// The remaining bytes count, not the size: a long flow that has nearly finished is not stopped.
#[test]
fn a_flow_that_has_less_left_is_not_preempted() {
    let mut scheduler = Scheduler::new(two_racks());
    scheduler.arrive(flow(1, 0, 4, 125));
    scheduler.advance(at_us(90));
    assert_eq!(changes(scheduler.arrive(flow(2, 0, 5, 25))), []);
    assert_eq!(scheduler.rate(FlowId(2)), None);
}

/// Flow 2 is between 1 and 3, whose hosts differ: without 1 it transmits, and 3 has to stop, so
/// that 4 may transmit.
#[test]
fn a_completion_may_stop_flows_too() {
    let mut scheduler = Scheduler::new(two_racks());
    for flow in [flow(1, 0, 1, 10), flow(2, 0, 2, 20), flow(3, 3, 2, 30), flow(4, 3, 1, 40)] {
        scheduler.arrive(flow);
    }
    assert_eq!((scheduler.rate(FlowId(3)), scheduler.rate(FlowId(4))), (GO, None));
    assert_eq!(changes(scheduler.complete(FlowId(1))), [(3, None), (2, GO), (4, GO)]);
}

#[test]
fn a_corrected_remaining_size_changes_the_rank_of_a_flow() {
    let mut scheduler = Scheduler::new(two_racks());
    scheduler.arrive(flow(1, 0, 4, 10));
    scheduler.arrive(flow(2, 0, 5, 20));
    assert_eq!(changes(scheduler.correct(FlowId(1), Bytes::new(15_000))), []);
    let swapped = [(1, None), (2, GO)];
    assert_eq!(changes(scheduler.correct(FlowId(1), Bytes::new(30_000))), swapped);
    let swapped = [(2, None), (1, GO)];
    assert_eq!(changes(scheduler.correct(FlowId(1), Bytes::new(19_999))), swapped);
}

/// A rack's four uplinks fail one after another, and are repaired at once.
#[test]
fn links_that_fail_stop_flows_with_most_left_and_then_slow_the_last() {
    let mut scheduler = Scheduler::new(two_racks());
    for n in 0..3 {
        scheduler.arrive(flow(n, n as u32, 4 + n as u32, 10 + n));
    }
    let up = scheduler.network().up(1, 0).unwrap();
    assert_eq!(changes(scheduler.set_capacity(up, Some(gbps(15)))), [(1, None)]);
    let slow = Some(gbps(5));
    assert_eq!(changes(scheduler.set_capacity(up, slow)), [(0, slow)]);
    assert_eq!(changes(scheduler.set_capacity(up, None)), [(0, None)]);
    assert_eq!(changes(scheduler.set_capacity(up, Some(gbps(20)))), [(0, GO), (1, GO)]);
}

/// Flows 1 and 2 both lead over the link, and 3 waits behind them for their source.
#[test]
fn a_failed_link_frees_the_source_for_the_next_possible_flow() {
    let mut scheduler = Scheduler::new(two_racks());
    for flow in [flow(1, 0, 1, 10), flow(2, 0, 1, 20), flow(3, 0, 2, 30)] {
        scheduler.arrive(flow);
    }
    let down = scheduler.network().down(0, 1).unwrap();
    assert_eq!(changes(scheduler.set_capacity(down, None)), [(1, None), (3, GO)]);
}

#[test]
fn flows_that_are_not_known_change_nothing() {
    let mut scheduler = Scheduler::new(two_racks());
    scheduler.arrive(flow(1, 0, 4, 10));
    assert_eq!(changes(scheduler.complete(FlowId(2))), []);
    assert_eq!(changes(scheduler.correct(FlowId(2), Bytes::new(1))), []);
    assert_eq!((scheduler.rate(FlowId(2)), scheduler.remaining(FlowId(2))), (None, None));
    assert_eq!(scheduler.len(), 1);
}
