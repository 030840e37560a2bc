use std::sync::Arc;

use crate::test_packet::make_control;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, FabricFacts, Header, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rate, Rng, Span,
    Time, WireError,
};

use super::config::PathFacts;
use super::wire::{CosyHeader, ReleaseReason, Route};
use super::{CosyConfig, CosyHost, CosyTransport};
use crate::coexistence::CoexistingConfig;
use crate::keys::PacketSizes;
use crate::phost::{PhostConfig, PhostTransport};
use crate::registered::{Deployment, RegisteredTransport, Site};

#[test]
fn cosy_decoding_errors_name_the_field() {
    let decode = |bytes: &[u8]| CosyHeader::decode(bytes).unwrap_err();
    assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
    assert_eq!(decode(&[99]), WireError::UnknownType(99));
    let mut data = [0; 64];
    data[0] = 5;
    data[14] = 6;
    assert_eq!(decode(&data).to_string(), "field route length must be at most 5, got 6");
    data[13] = 2;
    assert_eq!(decode(&data).to_string(), "field last must be 0 or 1, got 2");
}

/// Two hosts, with round trips of data and of control packets.
fn facts(gbps: u64, [data_us, control_us]: [u64; 2]) -> FabricFacts {
    FabricFacts {
        n_hosts: 2,
        access_rate: Rate::from_gbps(gbps),
        core_rate: None,
        data_rtt: Span::from_us(data_us),
        control_rtt: Span::from_us(control_us),
        abort_timeout_min: Span::ZERO,
    }
}

/// Between hosts no switch names a path. Data and release of a reservation take one path, and
/// reservations differ. A route that a switch has chosen is kept.
#[test]
fn packets_of_a_slot_keep_their_order_on_ordinary_networks() {
    let facts = facts(1, [60, 50]);
    let path_of = |seq: u32, route: Route| {
        let mut host = host_on(&facts, 2, 0);
        host.submit(Time::ZERO, Message::new(MsgId::new(0), NodeId::new(1), Bytes::new(4_000)));
        let request = host.poll_transmit(Time::ZERO).unwrap();
        let CosyHeader::Request { tx_slot, .. } = request.header else { panic!("{request:?}") };
        assert!(!request.marks.contains(Marks::ROUTED));
        let (rx_slot, link, last, lease_us) = (0, 0, false, 1_000);
        let rsvp = CosyHeader::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route };
        host.handle_packet(Time::ZERO, &make_control(rsvp, 0, 1, 0));
        let mut packets = Vec::new();
        for us in 0..200 {
            let now = Time::ZERO + Span::from_us(us);
            host.handle_timeout(now);
            packets.extend(std::iter::from_fn(|| host.poll_transmit(now)));
        }
        assert_eq!(packets.len(), 3, "{packets:?}");
        let path = |marks: Marks, path| marks.contains(Marks::ROUTED).then_some(path);
        let paths: Vec<_> = packets.iter().map(|p| path(p.marks, p.path)).collect();
        assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
        paths[0]
    };
    assert_eq!(path_of(7, Route::default()), Some(7));
    assert_eq!(path_of(8, Route::default()), Some(8));
    let mut route = Route::default();
    assert!(route.push(1));
    assert_eq!(path_of(7, route), None);
}

/// Between hosts as in simulations, the longest packet of best-effort traffic may delay data at
/// every port. Hosts' packets have the length of hosts.
#[test]
fn best_effort_traffic_between_hosts_is_granted_its_packets() {
    let facts = facts(1, [60, 50]);
    let deployment = Deployment::Hosts(PacketSizes::new(1_400, 134));
    let site = Site { facts, deployment, lower: None };
    let alone = CosyTransport::configure(CosyConfig::paper(), &site).unwrap();
    let keys = (CosyConfig::paper(), PhostConfig::paper());
    let both =
        CoexistingConfig::configure::<CosyTransport, PhostTransport>(keys.0, keys.1, &site, facts)
            .unwrap();
    let packets = facts.access_rate.tx_time(Bytes::new(1_534)) * 8;
    assert_eq!(alone.slack, facts.control_rtt);
    assert_eq!(both.upper.slack, facts.control_rtt + packets);
    let size = Bytes::new(5_000);
    assert_eq!(both.upper.bound(size), alone.bound(size) + packets * 2);
}

fn host(slots: u32, seed: u64) -> CosyHost {
    host_on(&facts(10, [12, 10]), slots, seed)
}

fn host_on(facts: &FabricFacts, slots: u32, seed: u64) -> CosyHost {
    let paths = PathFacts { switches: 1, ratio: 1, ports: 2 };
    let cosy = CosyConfig { slots, ..CosyConfig::paper() }.derive(facts, paths).unwrap();
    CosyHost::new(Arc::new(cosy), NodeId::new(0), Rng::new(seed, 0, Purpose::Test), Time::ZERO)
}

/// Returns a packet of the other host.
fn packet(header: CosyHeader, msg: u32) -> Packet<CosyHeader> {
    make_control(header, msg, 1, 0)
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Returns the message of the next rsvp, and the release that reports its sender busy.
fn rsvp(host: &mut CosyHost, now: Time) -> Option<(u32, CosyHeader)> {
    match host.poll_transmit(now)?.header {
        CosyHeader::Rsvp { tx_slot, seq, rx_slot, link, route, .. } => Some((
            tx_slot,
            CosyHeader::Release { seq, rx_slot, link, reason: ReleaseReason::Busy, route },
        )),
        other => panic!("{other:?} is no rsvp"),
    }
}

/// §5.1: of two pending messages drawn at random, with repetition, the one whose hold ends first
/// gets the free slot. That is the older of two in three draws out of four, not always and not by
/// chance.
#[test]
fn the_longest_waiting_of_two_requests_gets_the_slot() {
    let is_older_served = |seed: u64| {
        let mut host = host(1, seed);
        for flow in 0..3 {
            let request = CosyHeader::Request { flow, tx_slot: flow, size: 100_000 };
            host.handle_packet(at_us(flow.into()), &packet(request, flow));
        }
        let now = at_us(5);
        let (first, release) = rsvp(&mut host, now).unwrap();
        assert_eq!(first, 0);
        host.handle_packet(now, &packet(release, 0));
        rsvp(&mut host, now).unwrap().0 == 1
    };
    let older = (0..400).filter(|&seed| is_older_served(seed)).count();
    assert!((260..340).contains(&older), "{older} of 400");
}

/// A request that met a reject is not retried before the end of a pause, unless it is repeated.
#[test]
fn a_repeated_request_ends_the_pause() {
    for is_repeated in [false, true] {
        let mut host = host(1, 1);
        let request = CosyHeader::Request { flow: 0, tx_slot: 0, size: 100_000 };
        host.handle_packet(at_us(0), &packet(request, 0));
        let (_, release) = rsvp(&mut host, at_us(0)).unwrap();
        // While a rsvp is out, a second one would take a second slot.
        host.handle_packet(at_us(1), &packet(request, 0));
        assert!(rsvp(&mut host, at_us(1)).is_none());
        host.handle_packet(at_us(10), &packet(release, 0));
        if is_repeated {
            host.handle_packet(at_us(11), &packet(request, 0));
        }
        assert_eq!(rsvp(&mut host, at_us(11)).is_some(), is_repeated);
    }
}

/// The sender of a message, which alone sees that it has a free slot, notifies the receivers of the
/// two messages that have waited longest.
#[test]
fn a_slot_that_falls_free_repeats_the_two_oldest_requests() {
    let mut host = host(1, 1);
    for msg in 0..4 {
        let message = Message::new(MsgId::new(msg), NodeId::new(1), Bytes::new(3_000));
        host.submit(at_us(u64::from(msg)), message);
        while host.poll_transmit(at_us(u64::from(msg))).is_some() {}
    }
    // The second one's rsvp arrives first.
    let (tx_slot, seq, lease_us, rx_slot, link, last) = (1, 9, 1_000, 0, 0, false);
    let route = Route::default();
    let rsvp = CosyHeader::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route };
    host.handle_packet(at_us(20), &packet(rsvp, 1));
    let (mut now, mut data, mut repeated) = (at_us(20), 0, Vec::new());
    while now < at_us(50) {
        host.handle_timeout(now);
        while let Some(sent) = host.poll_transmit(now) {
            match sent.header {
                CosyHeader::Data { .. } => data += 1,
                CosyHeader::Request { tx_slot, .. } => repeated.push(tx_slot),
                other => panic!("{other:?}"),
            }
        }
        now = host.poll_timeout();
    }
    assert_eq!((data, repeated), (3, vec![0, 2]));
}
