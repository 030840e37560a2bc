//! The controller by example. Rates are 10 Gbit/s: 1.25 kB in a microsecond.

use rampmeter_types::{Bytes, NodeId, Rate, Span, Time};

use super::super::sharing::{AnyScheduler, SharingPolicy};
use super::super::split::MinShare;
use super::{gbps, two_racks};
use crate::central::{self, ControllerConfig, Order, Request};

type Controller = central::Controller<AnyScheduler>;

const CONFIG: ControllerConfig = ControllerConfig {
    grace: Span::ZERO,
    query_timeout: Span::from_us(50),
    lease: Span::from_us(1_000),
    flows_max: 3,
};

const GO: Option<Rate> = Some(Rate::from_gbps(10));

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn with(config: ControllerConfig, sharing: SharingPolicy) -> Controller {
    Controller::new(AnyScheduler::new(two_racks(), sharing), config)
}

fn new() -> Controller {
    with(CONFIG, SharingPolicy::Serial)
}

fn request(number: u32, dst: u32, kb: u64, acked_order: u32) -> Request {
    Request { number, dst: NodeId::new(dst), remaining: Bytes::new(kb * 1_000), acked_order }
}

/// An order: host, flow, number of the order, rate.
type RateOrder = (u32, u32, u32, Option<Rate>);

/// Returns the orders that wait.
fn orders(controller: &mut Controller) -> Vec<RateOrder> {
    let order = |Order { host, number, order, grant }| (host.get(), number, order, grant);
    std::iter::from_fn(|| controller.poll_order()).map(order).collect()
}

/// Requests at `at` microseconds, and the orders that follow.
fn request_rate(
    controller: &mut Controller,
    at: u64,
    src: u32,
    request: Request,
) -> Vec<RateOrder> {
    controller.handle_request(us(at), NodeId::new(src), request);
    orders(controller)
}

fn done(controller: &mut Controller, at: u64, src: u32, number: u32) -> Vec<RateOrder> {
    controller.handle_done(us(at), NodeId::new(src), number);
    orders(controller)
}

fn wait(controller: &mut Controller, until: u64) -> Vec<RateOrder> {
    controller.handle_timeout(us(until));
    orders(controller)
}

#[test]
fn a_request_gets_a_grant_or_a_stop_and_a_shorter_flow_is_first() {
    let mut controller = new();
    assert_eq!(request_rate(&mut controller, 0, 0, request(1, 4, 125, 0)), [(0, 1, 1, GO)]);
    assert_eq!(request_rate(&mut controller, 0, 0, request(2, 5, 250, 0)), [(0, 2, 1, None)]);
    // Flow 2 is granted to a host that is free.
    assert_eq!(
        request_rate(&mut controller, 10, 2, request(7, 4, 25, 0)),
        [(0, 1, 2, None), (2, 7, 1, GO), (0, 2, 2, GO)]
    );
}

#[test]
fn a_repeated_request_gets_the_last_order_again() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 0, request(2, 5, 250, 0));
    assert_eq!(request_rate(&mut controller, 100, 0, request(1, 4, 125, 0)), [(0, 1, 1, GO)]);
    assert_eq!(request_rate(&mut controller, 100, 0, request(2, 5, 250, 1)), [(0, 2, 1, None)]);
    assert_eq!((controller.stats().control_retransmissions, controller.flows()), (2, 2));
    // The flow had not begun, so that it completes that much later.
    assert_eq!(controller.poll_timeout(), us(200));
}

#[test]
fn capacity_is_granted_on_at_the_predicted_completion() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 0, request(2, 5, 250, 0));
    assert_eq!(controller.poll_timeout(), us(100));
    assert_eq!(wait(&mut controller, 99), []);
    assert_eq!(wait(&mut controller, 100), [(0, 2, 2, GO)]);
    assert_eq!(controller.flows(), 2);
    assert_eq!(done(&mut controller, 120, 0, 1), []);
    assert_eq!((controller.flows(), controller.poll_timeout()), (1, us(150)));
    // The question after flow 1 is no longer due.
    assert_eq!(wait(&mut controller, 150), []);
    assert_eq!(controller.stats().queries, 0);
}

#[test]
fn a_grace_keeps_the_capacity_longer_and_done_ends_it() {
    let config = ControllerConfig { grace: Span::from_us(30), ..CONFIG };
    let mut controller = with(config, SharingPolicy::Serial);
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 0, request(2, 5, 250, 0));
    assert_eq!(controller.poll_timeout(), us(130));
    assert_eq!(wait(&mut controller, 129), []);
    assert_eq!(done(&mut controller, 129, 0, 1), [(0, 2, 2, GO)]);
}

#[test]
fn an_early_completion_frees_its_capacity_at_once() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 0, request(2, 5, 250, 0));
    assert_eq!(done(&mut controller, 40, 0, 1), [(0, 2, 2, GO)]);
    assert_eq!(done(&mut controller, 41, 0, 1), []);
}

#[test]
fn done_queries_repeat_until_the_host_responds() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    assert_eq!(wait(&mut controller, 100), []);
    assert_eq!(wait(&mut controller, 150), [(0, 1, 2, None)]);
    // After 50 us, then after twice as long.
    assert_eq!(wait(&mut controller, 249), []);
    assert_eq!(wait(&mut controller, 250), [(0, 1, 3, None)]);
    assert_eq!(done(&mut controller, 260, 0, 1), []);
    assert_eq!((wait(&mut controller, 900), controller.flows()), (vec![], 0));
}

/// The host paused for 20 us; its successor is stopped for as long.
#[test]
fn a_flow_that_ends_late_is_granted_again() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 1, request(2, 4, 250, 0));
    assert_eq!(wait(&mut controller, 100), [(1, 2, 2, GO)]);
    let again = [(1, 2, 3, None), (0, 1, 2, GO)];
    assert_eq!(request_rate(&mut controller, 101, 0, request(1, 4, 25, 1)), again);
    assert_eq!(controller.stats().reactivated_flows, 1);
    assert_eq!(wait(&mut controller, 121), [(1, 2, 4, GO)]);
}

/// 76 kB of flow 2 remain by then. The host is no longer queried about flow 1.
#[test]
fn a_flow_that_ends_late_with_more_left_than_the_next_is_stopped() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 0, 1, request(2, 4, 126, 0));
    assert_eq!(wait(&mut controller, 100), [(1, 2, 2, GO)]);
    assert_eq!(request_rate(&mut controller, 140, 0, request(1, 4, 80, 1)), [(0, 1, 2, None)]);
    assert_eq!(wait(&mut controller, 160), []);
}

#[test]
fn the_remaining_size_that_a_stopped_host_reports_counts() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    request_rate(&mut controller, 40, 0, request(2, 5, 50, 0));
    // By the calculation 75 kB of it remain. In fact 40 kB do: less than of flow 2.
    let swapped = [(0, 2, 2, None), (0, 1, 3, GO)];
    assert_eq!(request_rate(&mut controller, 41, 0, request(1, 4, 40, 2)), swapped);
    // A request that was sent before that, with a larger remaining size.
    assert_eq!(request_rate(&mut controller, 42, 0, request(1, 4, 125, 0)), [(0, 1, 3, GO)]);
    assert_eq!(controller.poll_timeout(), us(41 + 32));
}

#[test]
fn a_new_controller_continues_with_higher_numbers() {
    let mut controller = new();
    assert_eq!(request_rate(&mut controller, 0, 0, request(1, 4, 125, 7)), [(0, 1, 8, GO)]);
    assert_eq!(request_rate(&mut controller, 0, 0, request(2, 5, 250, 3)), [(0, 2, 4, None)]);
    // A late request of before the crash had made an entry with a lower number.
    assert_eq!(request_rate(&mut controller, 1, 0, request(2, 5, 250, 9)), [(0, 2, 10, None)]);
    assert_eq!(request_rate(&mut controller, 2, 0, request(2, 5, 250, u32::MAX)).len(), 1);
}

#[test]
fn a_lost_or_unresponsive_host_is_forgotten() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 12_500, 0));
    request_rate(&mut controller, 0, 1, request(1, 4, 25_000, 0));
    controller.forget(us(10), NodeId::new(0));
    assert_eq!(orders(&mut controller), [(1, 1, 2, GO)]);
    // A message renews the lease of its host.
    request_rate(&mut controller, 600, 1, request(1, 4, 25_000, 2));
    request_rate(&mut controller, 600, 2, request(1, 4, 50_000, 0));
    assert_eq!(wait(&mut controller, 1_599), []);
    assert_eq!(
        request_rate(&mut controller, 1_599, 2, request(1, 4, 50_000, 1)),
        [(2, 1, 1, None)]
    );
    assert_eq!(wait(&mut controller, 1_600), [(2, 1, 2, GO)]);
    assert_eq!((controller.stats().expired_leases, controller.flows()), (1, 1));
}

#[test]
fn requests_that_make_no_sense_and_those_beyond_the_limit_are_refused() {
    let mut controller = new();
    for (src, wrong) in
        [(0, request(1, 0, 10, 0)), (0, request(1, 8, 10, 0)), (8, request(1, 0, 10, 0))]
    {
        assert_eq!(request_rate(&mut controller, 0, src, wrong), []);
    }
    for number in 0..3 {
        assert_eq!(request_rate(&mut controller, 0, 0, request(number, 4, 10, 0)).len(), 1);
    }
    assert_eq!(request_rate(&mut controller, 0, 0, request(3, 4, 10, 0)), []);
    // The same flow with another destination.
    assert_eq!(request_rate(&mut controller, 0, 0, request(2, 5, 10, 0)), []);
    assert_eq!((controller.stats().refused, controller.flows()), (5, 3));
    done(&mut controller, 1, 0, 0);
    assert_eq!(request_rate(&mut controller, 1, 0, request(3, 4, 10, 0)).len(), 1);
    assert_eq!(done(&mut controller, 1, 8, 0), []);
}

#[test]
fn hosts_are_notified_when_links_fail() {
    let mut controller = new();
    request_rate(&mut controller, 0, 0, request(1, 4, 125, 0));
    let up = controller.network().up(1, 0).unwrap();
    controller.set_capacity(us(50), up, Some(gbps(5)));
    assert_eq!(orders(&mut controller), [(0, 1, 2, Some(gbps(5)))]);
    assert_eq!(controller.poll_timeout(), us(150));
}

#[test]
fn flows_that_share_links_are_granted_the_remaining_capacity() {
    let sharing = SharingPolicy::Split(MinShare::from_milli(100).unwrap());
    let mut controller = with(CONFIG, sharing);
    let slow = controller.network().down(0, 4).unwrap();
    controller.set_capacity(us(0), slow, Some(gbps(6)));
    assert_eq!(
        request_rate(&mut controller, 0, 0, request(1, 4, 75, 0)),
        [(0, 1, 1, Some(gbps(6)))]
    );
    assert_eq!(
        request_rate(&mut controller, 0, 0, request(2, 5, 125, 0)),
        [(0, 2, 1, Some(gbps(4)))]
    );
    assert_eq!(wait(&mut controller, 100), [(0, 2, 2, GO)]);
    assert_eq!(controller.poll_timeout(), us(150));
}
