use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_core::packet::Marks;
use rampmeter_core::{
    Endpoint, FabricFacts, Header, MsgId, NodeId, Packet, PayloadRef, Priority, Purpose, Rate, Rng,
    Span, Time, WireError,
};

use super::config::PathFacts;
use super::wire::{CosyHeader, Route, Why};
use super::{CosyConfig, CosyHost};
use crate::parts::assert_codec;

fn route() -> impl Strategy<Value = Route> {
    proptest::collection::vec(any::<u16>(), 0..=5).prop_map(|ports| {
        let mut route = Route::default();
        for port in ports {
            assert!(route.push(port));
        }
        route
    })
}

fn header() -> impl Strategy<Value = CosyHeader> {
    let n = any::<u32>;
    let why = prop_oneof![Just(Why::Blocked), Just(Why::Busy), Just(Why::Done), Just(Why::Failed)];
    let pair = any::<(u16, u16)>;
    prop_oneof![
        (n(), n(), 1u64..)
            .prop_map(|(flow, tx_slot, size)| { CosyHeader::Request { flow, tx_slot, size } }),
        (any::<[u32; 3]>(), pair(), any::<bool>(), route()).prop_map(
            |([tx_slot, seq, lease_us], (rx_slot, link), last, route)| {
                CosyHeader::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route }
            }
        ),
        (n(), pair(), why, route()).prop_map(|(seq, (rx_slot, link), why, route)| {
            CosyHeader::Release { seq, rx_slot, link, why, route }
        }),
        (n(), n(), pair(), any::<bool>(), route()).prop_map(
            |(seq, number, (rx_slot, link), last, route)| {
                CosyHeader::Data { seq, number, rx_slot, link, last, route }
            }
        ),
        n().prop_map(|tx_slot| CosyHeader::Reject { tx_slot }),
        n().prop_map(|tx_slot| CosyHeader::Complete { tx_slot }),
        n().prop_map(|tx_slot| CosyHeader::Failure { tx_slot }),
    ]
}

#[test]
fn headers_leave_a_packet_in_one_cache_line() {
    assert!(size_of::<rampmeter_core::Packet<CosyHeader>>() <= 64);
}

#[test]
fn impossible_fields_are_named() {
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

proptest! {
    #[test]
    fn decode_inverts_encode_and_short_bytes_are_refused(header in header()) {
        assert_codec(&header);
    }

    #[test]
    fn any_bytes_decode_or_fail_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        if let Ok((header, read)) = CosyHeader::decode(&bytes) {
            let mut again = [0; 64];
            prop_assert_eq!(header.encode(&mut again), Ok(read));
            prop_assert_eq!(&again[..read], &bytes[..read]);
        }
    }
}

/// §5.1: of two pending messages drawn at random, with repetition, the one whose hold ends first
/// gets the free slot: the older of two in three draws out of four, not always and not by chance.
#[test]
fn of_two_choices_the_one_that_has_waited_longest_gets_the_slot() {
    let facts = FabricFacts {
        n_hosts: 2,
        access_rate: Rate::from_gbps(10),
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
    };
    let paths = PathFacts { switches: 1, ratio: 1, ports: 2, has_slower: false };
    let cosy = Arc::new(CosyConfig { slots: 1, ..CosyConfig::paper() }.on(&facts, paths).unwrap());
    let packet = |header, msg| Packet {
        header,
        payload: PayloadRef { msg: MsgId::new(msg), offset: 0, len: 0 },
        src: NodeId::new(1),
        dst: NodeId::new(0),
        wire_bytes: 40,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
    };
    let is_older_served = |seed: u64| {
        let rng = Rng::new(seed, 0, Purpose::Test);
        let mut host = CosyHost::new(Arc::clone(&cosy), NodeId::new(0), rng, Time::ZERO);
        for flow in 0..3 {
            let now = Time::ZERO + Span::from_us(flow.into());
            let request = CosyHeader::Request { flow, tx_slot: flow, size: 100_000 };
            host.handle_packet(now, &packet(request, flow));
        }
        let now = Time::ZERO + Span::from_us(5);
        let rsvp = |host: &mut CosyHost| match host.poll_transmit(now).unwrap().header {
            CosyHeader::Rsvp { tx_slot, seq, rx_slot, link, route, .. } => {
                (tx_slot, CosyHeader::Release { seq, rx_slot, link, why: Why::Busy, route })
            }
            other => panic!("{other:?} is no rsvp"),
        };
        let (first, release) = rsvp(&mut host);
        assert_eq!(first, 0);
        host.handle_packet(now, &packet(release, 0));
        rsvp(&mut host).0 == 1
    };
    let older = (0..400).filter(|&seed| is_older_served(seed)).count();
    assert!((260..340).contains(&older), "{older} of 400");
}
