//! Tests of arbiters, and of hosts with them.

use std::sync::Arc;

use super::super::wire::{Demand, FastpassHeader, List, Slot};
use super::super::{Fastpass, FastpassArbiter, FastpassConfig, FastpassHost, allocation_bytes};
use crate::test_packet::make_control;
use crate::toolkit::AttemptLimit;
use rampmeter_types::{
    Bytes, Endpoint, FabricFacts, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rate, Rng,
    Span, TenantId, Time,
};

const RATE: Rate = Rate::from_gbps(10);
/// Hosts 0 and 1, the arbiter and its standby.
const ARBITER: NodeId = NodeId::new(2);
const STANDBY: NodeId = NodeId::new(3);

fn fastpass() -> Arc<Fastpass> {
    fastpass_with(FastpassConfig::paper())
}

fn fastpass_with(config: FastpassConfig) -> Arc<Fastpass> {
    let facts = FabricFacts {
        n_hosts: 2,
        access_rate: RATE,
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    let config = FastpassConfig { arbiters: 2, ..config };
    let time = RATE.tx_time(allocation_bytes(2, config.packet.header, config.batch));
    Arc::new(config.derive(&facts, None, time).unwrap())
}

fn endpoint<E: Endpoint<Config = Fastpass>>(fastpass: &Arc<Fastpass>, node: NodeId) -> E {
    E::new(Arc::clone(fastpass), node, Rng::new(1, 0, Purpose::Test), Time::ZERO)
}

fn packet(src: NodeId, dst: NodeId, header: FastpassHeader) -> Packet<FastpassHeader> {
    make_control(header, 0, src.get(), dst.get())
}

/// Host 0's request for slots to host 1.
fn request(arbiter: NodeId, incarnation: u32, number: u32) -> Packet<FastpassHeader> {
    let mut demands = List::default();
    assert!(demands.push(Demand { dst: 1, total: 5 }));
    let header = FastpassHeader::Request { incarnation, number, demands };
    packet(NodeId::new(0), arbiter, header)
}

/// Returns the only packet that the arbiter sends, for a host.
fn answer(arbiter: &mut FastpassArbiter, now: Time) -> FastpassHeader {
    let answer = arbiter.poll_transmit(now).expect("an answer").header;
    assert_eq!(arbiter.poll_transmit(now), None);
    answer
}

/// A message that waits for slots fails only if arbiters have been unresponsive for long,
/// regardless of the number of requests.
#[test]
fn arbiters_that_are_late_fail_no_message() {
    let long = Span::from_us(1_000_000);
    for (time, expected) in [(Span::ZERO, 0..long.as_ps()), (long, long.as_ps()..u64::MAX)] {
        let base = (*fastpass()).clone();
        let attempt_limit = AttemptLimit { time, ..base.attempt_limit };
        let fastpass = Arc::new(Fastpass { attempt_limit, ..base });
        let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
        let (id, dst, size) = (MsgId::new(0), NodeId::new(1), Bytes::new(5_000));
        let (deadline, tenant) = (Time::NEVER, TenantId::default());
        host.submit(Time::ZERO, Message { id, dst, size, deadline, tenant });
        let mut now = Time::ZERO;
        while host.poll_event().is_none() {
            now = host.poll_timeout();
            host.handle_timeout(now);
            while host.poll_transmit(now).is_some() {}
        }
        assert!(expected.contains(&now.as_ps()), "failed at {now:?} with a patience of {time:?}");
    }
}

/// Slots of an arbiter whose clock is an hour ahead begin at once, as far apart as planned.
#[test]
fn slots_of_a_clock_that_is_ahead_begin_at_once() {
    let fastpass = fastpass();
    let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
    let n = 16;
    let size = Bytes::new(n * fastpass.segmentation().payload.get());
    host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), size));
    let mut slots = List::default();
    (0..n as u8).for_each(|offset| assert!(slots.push(Slot { dst: 1, offset, path: 0 })));
    let first = Span::from_us(3_600_000_000).div_floor(fastpass.slot);
    let header =
        FastpassHeader::Allocation { incarnation: 1, last_request: 1, granted: 16, first, slots };
    host.handle_packet(Time::ZERO, &packet(ARBITER, NodeId::new(0), header));
    let (mut now, mut n_sent) = (Time::ZERO, 0);
    while now < Time::ZERO + fastpass.slot * n {
        host.handle_timeout(now);
        while let Some(packet) = host.poll_transmit(now) {
            n_sent += u64::from(matches!(packet.header, FastpassHeader::Data { .. }));
        }
        now += fastpass.slot;
        assert!(n_sent <= now.as_ps().div_ceil(fastpass.slot.as_ps()));
    }
    assert_eq!(n_sent, n);
}

/// A host with a link slower than the schedule makes few packets ahead. It makes none a
/// second time because the first is still queued.
#[test]
fn slots_beyond_the_capacity_of_the_link_are_deferred() {
    let fastpass = fastpass();
    let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
    let size = Bytes::new(400 * fastpass.segmentation().payload.get());
    host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), size));
    for batch in 0..25 {
        let mut slots = List::default();
        (0..16).for_each(|offset| assert!(slots.push(Slot { dst: 1, offset, path: 0 })));
        let (granted, first) = (16 * (batch + 1), 16 * u64::from(batch));
        let header =
            FastpassHeader::Allocation { incarnation: 1, last_request: 1, granted, first, slots };
        host.handle_packet(Time::ZERO, &packet(ARBITER, NodeId::new(0), header));
    }
    let mut now = Time::ZERO + fastpass.rto * 100;
    host.handle_timeout(now);
    assert!(host.poll_timeout() > now, "turns are taken though there is no room");
    let mut seqs = Vec::new();
    for _ in 0..400 {
        while let Some(packet) = host.poll_transmit(now) {
            if let FastpassHeader::Data { seq, .. } = packet.header {
                seqs.push(seq);
                break;
            }
        }
        now += fastpass.slot;
        host.handle_timeout(now);
    }
    assert_eq!(seqs, (0..400).collect::<Vec<u32>>());
}

/// A destination that acknowledges a packet of a message accepts it, even if the notification
/// was lost.
#[test]
fn an_acknowledgement_resumes_a_paused_fastpass_message() {
    let fastpass = fastpass();
    let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
    let (me, peer, msg) = (NodeId::new(0), NodeId::new(1), MsgId::new(7));
    host.submit(Time::ZERO, Message::new(msg, peer, Bytes::new(9_000)));
    let from_peer = |header| {
        let mut packet = packet(peer, me, header);
        packet.payload.msg = msg;
        packet
    };
    host.handle_packet(Time::ZERO, &from_peer(FastpassHeader::Pause { is_paused: true }));
    while host.poll_transmit(Time::ZERO).is_some() {}
    let n_demanded = |host: &mut FastpassHost, now: Time| {
        let sent = std::iter::from_fn(|| host.poll_transmit(now));
        sent.filter(|p| matches!(p.header, FastpassHeader::Request { .. })).count()
    };
    assert_eq!(n_demanded(&mut host, Time::ZERO), 0);
    let ack = FastpassHeader::Ack { tx_slot: 0, cumulative: 1, seq: 0 };
    host.handle_packet(Time::ZERO, &from_peer(ack));
    assert_eq!(n_demanded(&mut host, Time::ZERO), 1);
}

/// The allocations are sent when they have been computed, early enough that the host has them
/// in time.
#[test]
fn a_batch_is_sent_when_it_has_been_computed() {
    let compute = Span::from_us(15);
    let config = FastpassConfig { compute: Some(compute), ..FastpassConfig::paper() };
    let (fastpass, at_once) = (fastpass_with(config), fastpass());
    assert!(fastpass.lead_slots >= at_once.lead_slots + compute.div_floor(fastpass.slot));
    let mut arbiter = endpoint::<FastpassArbiter>(&fastpass, ARBITER);
    // The watchdog is sent first.
    arbiter.handle_timeout(Time::ZERO);
    assert!(arbiter.poll_transmit(Time::ZERO).is_some());
    arbiter.handle_packet(Time::ZERO, &request(ARBITER, 1, 1));
    let batch = arbiter.poll_timeout();
    arbiter.handle_timeout(batch);
    assert_eq!((arbiter.wants_transmit(), arbiter.poll_transmit(batch)), (false, None));
    let computed = arbiter.poll_timeout();
    assert_eq!(computed, batch + compute);
    arbiter.handle_timeout(computed);
    let allocation = answer(&mut arbiter, computed);
    assert!(matches!(allocation, FastpassHeader::Allocation { .. }), "{allocation:?}");
}

#[test]
fn a_computation_longer_than_a_batch_is_refused() {
    let facts = FabricFacts {
        n_hosts: 2,
        access_rate: RATE,
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    let config = FastpassConfig { compute: Some(Span::from_us(21)), ..FastpassConfig::paper() };
    let bad = config.derive(&facts, None, Span::ZERO).unwrap_err();
    assert_eq!((bad.key.as_str(), bad.got.as_str()), ("compute-us", "21"));
}

#[test]
fn a_standby_gives_no_slots_until_the_arbiter_has_missed_four_watchdogs() {
    let fastpass = fastpass();
    let mut standby = endpoint::<FastpassArbiter>(&fastpass, STANDBY);
    let last = Time::ZERO + fastpass.watchdog;
    standby.handle_packet(last, &packet(ARBITER, STANDBY, FastpassHeader::Watchdog));
    let missed = last + fastpass.watchdog * 4;
    standby.handle_packet(missed, &request(STANDBY, 1, 1));
    assert_eq!(answer(&mut standby, missed), FastpassHeader::NotActive);
    let now = missed + Span::from_ps(1);
    standby.handle_packet(now, &request(STANDBY, 1, 1));
    let now = standby.poll_timeout();
    standby.handle_timeout(now);
    let FastpassHeader::Allocation { granted, slots, .. } = answer(&mut standby, now) else {
        panic!("expected slots");
    };
    assert_eq!((granted, slots.as_slice().len()), (5, 5));
    // The arbiter is back: clients of the standby will send requests to the arbiter.
    standby.handle_packet(now, &packet(ARBITER, STANDBY, FastpassHeader::Watchdog));
    standby.handle_packet(now, &request(STANDBY, 1, 2));
    assert_eq!(answer(&mut standby, now), FastpassHeader::NotActive);
}

#[test]
fn an_arbiter_reports_a_forgotten_host() {
    let mut arbiter = endpoint::<FastpassArbiter>(&fastpass(), ARBITER);
    arbiter.handle_packet(Time::ZERO, &request(ARBITER, 6, 2));
    let answer = answer(&mut arbiter, Time::ZERO);
    assert_eq!(answer, FastpassHeader::Reset { incarnation: 6 });
}

#[test]
fn a_host_selects_the_standby_after_three_unanswered_requests() {
    let fastpass = fastpass();
    let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
    host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(9_000)));
    let mut requests = Vec::new();
    for repetition in 0..4 {
        let now = Time::ZERO + fastpass.retry * repetition;
        host.handle_timeout(now);
        while let Some(packet) = host.poll_transmit(now) {
            requests.push(packet.dst);
        }
    }
    assert_eq!(requests, [ARBITER, ARBITER, ARBITER, STANDBY]);
    assert_eq!(host.stats().failovers, 1);
}
