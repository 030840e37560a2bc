use std::sync::Arc;

use crate::test_packet::control;
use rampmeter_core::{
    Endpoint, FabricFacts, Header, NodeId, Purpose, Rate, Rng, Span, Time, WireError,
};

use super::config::PathFacts;
use super::wire::{CosyHeader, Why};
use super::{CosyConfig, CosyHost};

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
    let packet = |header, msg| control(header, msg, (1, 0));
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
