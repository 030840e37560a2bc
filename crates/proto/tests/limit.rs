//! Peers that may have so many messages under way to a host, and no more.

#[path = "common/hosts.rs"]
mod hosts;

use std::sync::Arc;

use hosts::{N_HOSTS, facts};
use rampmeter_core::packet::Marks;
use rampmeter_core::{
    Endpoint, MsgId, NodeId, Packet, PayloadRef, Priority, Purpose, Rate, Receipt, Rng, Time,
};
use rampmeter_proto::cosy::config::PathFacts;
use rampmeter_proto::cosy::wire::CosyHeader;
use rampmeter_proto::cosy::{CosyConfig, CosyHost};
use rampmeter_proto::dcpim::wire::DcpimHeader;
use rampmeter_proto::dcpim::{DcpimConfig, DcpimHost};
use rampmeter_proto::fastpass::wire::FastpassHeader;
use rampmeter_proto::fastpass::{FastpassConfig, FastpassHost, allocations_time};
use rampmeter_proto::pfabric::wire::PfabricHeader;
use rampmeter_proto::pfabric::{PfabricConfig, PfabricHost};
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_proto::phost::{PhostConfig, PhostHost};

const LIMIT: usize = 10;
/// Of messages of two packets.
const PAYLOAD: u16 = 1_460;

/// A packet to host 0, with the offset and the length of its payload.
fn packet<H>(header: H, src: u32, flow: u32, (offset, len): (u64, u16)) -> Packet<H> {
    Packet {
        header,
        payload: PayloadRef { msg: MsgId::new(flow), offset, len },
        src: NodeId::new(src),
        dst: NodeId::new(0),
        wire_bytes: 1_500,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
    }
}

/// The limit holds for each peer by itself; what exceeds it is counted, and taken when it comes
/// again after another message is over or the peer has been started again. `data` is the header of
/// a flow's packet of this number.
fn is_held_to<E: Endpoint>(
    config: E::Config,
    data: impl Fn(u32, u32) -> E::Header,
    count: fn(&E) -> (usize, usize),
) {
    let rng = Rng::new(1, 0, Purpose::Endpoint);
    let mut host = E::new(Arc::new(config), NodeId::new(0), rng, Time::ZERO);
    host.limit_arriving(LIMIT as u32);
    let arrive = |host: &mut E, src: u32, flow: u32, seq: u32| {
        let offset = u64::from(seq) * u64::from(PAYLOAD);
        let packet = packet(data(flow, seq), src, flow, (offset, PAYLOAD));
        host.handle_packet(Time::ZERO, &packet)
    };
    for src in [1, 2] {
        let receipts: Vec<_> = (0..15).map(|flow| arrive(&mut host, src, flow, 0)).collect();
        assert_eq!(receipts[..LIMIT], [Receipt::Fresh; LIMIT]);
        assert_eq!(receipts[LIMIT..], [Receipt::Ignored; 15 - LIMIT]);
    }
    assert_eq!((count(&host).1, host.arriving_excess()), (2 * LIMIT, 10));
    assert_eq!(arrive(&mut host, 1, 3, 1), Receipt::Fresh);
    assert_eq!(arrive(&mut host, 1, 12, 0), Receipt::Fresh);
    assert_eq!(arrive(&mut host, 1, 11, 0), Receipt::Ignored);
    assert_eq!((count(&host).1, host.arriving_excess()), (2 * LIMIT, 11));
    host.forget_peer(Time::ZERO, NodeId::new(1));
    assert_eq!(arrive(&mut host, 1, 0, 0), Receipt::Fresh);
    assert_eq!(count(&host).1, LIMIT + 1);
}

const SIZE: u64 = 2 * PAYLOAD as u64;

#[test]
fn dcpim_holds_peers_to_their_limit() {
    let data = |flow, seq| DcpimHeader::Unscheduled { flow, tx_slot: flow, seq, size: SIZE };
    is_held_to(DcpimConfig::paper().on(&facts()).unwrap(), data, DcpimHost::messages);
}

#[test]
fn phost_holds_peers_to_their_limit() {
    let data = |flow, seq| PhostHeader::Free { flow, tx_slot: flow, seq, size: SIZE };
    is_held_to(PhostConfig::paper().on(&facts()).unwrap(), data, PhostHost::messages);
}

#[test]
fn pfabric_holds_peers_to_their_limit() {
    let data = |flow, seq| {
        let (tx_slot, remaining) = (flow, 2);
        PfabricHeader::Data { flow, tx_slot, seq, remaining, size: SIZE }
    };
    is_held_to(PfabricConfig::paper().on(&facts()).unwrap(), data, PfabricHost::messages);
}

#[test]
fn fastpass_holds_peers_to_their_limit() {
    let data = |flow, seq| FastpassHeader::Data { flow, tx_slot: flow, seq, size: SIZE };
    let config = FastpassConfig::paper();
    let time = allocations_time(N_HOSTS, config.header.get(), Rate::from_gbps(10));
    is_held_to(config.on(&facts(), None, time).unwrap(), data, FastpassHost::messages);
}

/// cosy's receivers hear of messages by requests: data comes only when they have asked for it.
#[test]
fn cosy_holds_peers_to_their_limit() {
    let paths = PathFacts { switches: 1, ratio: 1, ports: N_HOSTS, has_slower: false };
    let cosy = CosyConfig::paper().on(&facts(), paths).unwrap();
    let rng = Rng::new(1, 0, Purpose::Endpoint);
    let mut host = CosyHost::new(Arc::new(cosy), NodeId::new(0), rng, Time::ZERO);
    host.limit_arriving(LIMIT as u32);
    let request = |host: &mut CosyHost, flow| {
        let header = CosyHeader::Request { flow, tx_slot: flow, size: SIZE };
        host.handle_packet(Time::ZERO, &packet(header, 1, flow, (0, 0)));
        host.arriving_excess()
    };
    let excess: Vec<u64> = (0..12).map(|flow| request(&mut host, flow)).collect();
    assert_eq!(excess, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    host.forget_peer(Time::ZERO, NodeId::new(1));
    assert_eq!(request(&mut host, 0), 2);
}
