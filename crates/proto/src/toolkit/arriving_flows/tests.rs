//! Tests of the table of arriving flows: lookup, holding, and searches for unresponsive sources.

use super::*;

fn announce(src: u32, flow: u32, packets: u32) -> Announcement {
    let (src, msg) = (NodeId::new(src), MsgId::new(flow));
    Announcement { src, msg, flow, tx_slot: flow, packets }
}

/// The table holds one entry a flow, and the numbers of a source two words, in any order.
#[test]
fn a_hundred_thousand_flows_of_one_peer_are_found_by_number() {
    let (mut flows, mut out) = (ArrivingFlows::default(), Output::<()>::new(NodeId::new(0), 40));
    let slots: Vec<u32> = (0..100_000)
        .map(|flow| flows.insert(Time::ZERO, announce(1, flow, 1), ()).unwrap())
        .collect();
    assert_eq!(flows.len(), 100_000);
    for flow in (0..100_000).rev() {
        assert_eq!(flows.find(&announce(1, flow, 1)), FlowStatus::Arriving(slots[flow as usize]));
        assert!(flows.deliver(slots[flow as usize], &mut out).is_some());
        assert!(flows.is_delivered(NodeId::new(1), flow));
    }
    assert!(flows.is_empty() && flows.slots.is_empty());
}

#[test]
fn a_header_that_claims_a_huge_size_allocates_nothing_for_it() {
    let mut flows = ArrivingFlows::default();
    let slot = flows.insert(Time::ZERO, announce(1, 0, u32::MAX), ()).unwrap();
    let got = &mut flows[slot].received;
    assert!(got.insert(u32::MAX - 1) && got.insert(5));
    assert_eq!((flows[slot].remaining(), flows.len()), (u32::MAX - 2, 1));
    assert_eq!(flows.insert(Time::ZERO, announce(1, u32::MAX, 1), ()), None);
}

#[test]
fn a_paused_message_does_not_time_out_before_it_is_resumed() {
    let (mut flows, mut out) = (ArrivingFlows::default(), Output::<()>::new(NodeId::new(0), 40));
    let (src, late) = (NodeId::new(1), Time::ZERO + Span::from_us(10));
    assert_eq!(flows.pause(src, MsgId::new(0)), None);
    let slot = flows.insert(Time::ZERO, announce(1, 0, 2), ()).unwrap();
    assert!(flows[slot].is_paused);
    flows.forget_unresponsive(late, Span::from_us(5), 1, &mut out, |_, _| {});
    assert_eq!(flows.resume(late, src, MsgId::new(0), Span::ZERO), Some(slot));
    assert!(!flows[slot].is_paused && flows[slot].last_packet_at == late);
    assert_eq!(flows.resume(late, src, MsgId::new(0), Span::ZERO), None);
}

#[test]
fn unresponsive_sources_and_lost_peers_end_their_flows_once() {
    let (mut flows, mut out) = (ArrivingFlows::default(), Output::<()>::new(NodeId::new(0), 40));
    let late = Time::ZERO + Span::from_us(10);
    flows.insert(Time::ZERO, announce(1, 0, 2), ());
    flows.insert(late, announce(1, 1, 2), ());
    flows.insert(late, announce(2, 0, 2), ());
    flows.forget_unresponsive(late, Span::from_us(5), 1, &mut out, |_, _| {});
    flows.forget_peer(NodeId::new(2), &mut out, |_, _| {});
    let abandoned = |src, msg| Event::Abandoned { src: NodeId::new(src), msg: MsgId::new(msg) };
    assert_eq!(out.next_event(), Some(abandoned(1, 0)));
    assert_eq!(out.next_event(), Some(abandoned(2, 0)));
    assert_eq!((out.next_event(), flows.len()), (None, 1));
    assert_eq!(flows.find(&announce(1, 0, 2)), FlowStatus::Abandoned);
    assert_eq!(flows.find(&announce(2, 0, 2)), FlowStatus::New);
}

/// Calls after which all of 1000 unresponsive flows are abandoned, and the most of one call.
fn calls_to_abandon_all(
    mut search: impl FnMut(&mut ArrivingFlows<()>, &mut Output<()>),
) -> (usize, usize) {
    let (mut flows, mut out) = (ArrivingFlows::default(), Output::<()>::new(NodeId::new(0), 40));
    for number in 0..1_000 {
        flows.insert(Time::ZERO, announce(1 + number % 4, number / 4, 2), ());
    }
    let (mut calls, mut most) = (0, 0);
    while !flows.is_empty() && calls < 1_000 {
        let before = flows.len();
        search(&mut flows, &mut out);
        (calls, most) = (calls + 1, most.max(before - flows.len()));
    }
    let n_events = std::iter::from_fn(|| out.next_event()).count();
    assert_eq!((n_events, flows.len()), (1_000, 0));
    (calls, most)
}

#[test]
fn a_search_for_unresponsive_flows_checks_some_in_each_call() {
    let (late, forget) = (Time::ZERO + Span::from_us(10), Span::from_us(5));
    let in_parts = calls_to_abandon_all(|flows, out| {
        flows.forget_unresponsive(late, forget, 8, out, |_, _| {});
    });
    assert_eq!(in_parts, (8, 125));
    let with_packets = calls_to_abandon_all(|flows, out| flows.sweep(late, forget, out));
    assert_eq!(with_packets, (1_000_usize.div_ceil(SWEEP_STEP), SWEEP_STEP));
}

#[test]
fn a_flow_is_found_by_its_exact_announcement() {
    let mut flows = ArrivingFlows::default();
    let of = announce(1, 3, 9);
    let slot = flows.insert(Time::ZERO, of, ()).unwrap();
    assert_eq!(flows.find(&of), FlowStatus::Arriving(slot));
    let others = [
        Announcement { msg: MsgId::new(of.msg.get() + 1), ..of },
        Announcement { tx_slot: of.tx_slot + 1, ..of },
        Announcement { packets: 10, ..of },
    ];
    for other in others {
        assert_eq!(flows.find(&other), FlowStatus::Abandoned, "{other:?}");
    }
}
