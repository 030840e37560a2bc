//! Nodes over UDP on loopback, each on a separate thread and on the real clock.

mod common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::live::LiveNode;
use common::ports::addresses;
use common::*;
use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::dcpim::{DcpimHost, DcpimTransport};
use rampmeter_proto::phost::{PhostHost, PhostTransport};
use rampmeter_runtime::app::{Completion, Failure, PortConfig, SubmitError};
use rampmeter_runtime::datapath::fault::Faults;
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::datapath::{ArrivedPacket, Datapath, Rail, Route};
use rampmeter_runtime::{Clock, ClockSource, Outcome};
use rampmeter_types::envelope::{HostPacket, IPV6_UDP, Protection};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Endpoint, FabricFacts, NodeId, Priority, Purpose, Rng, Span, Time};

fn start<E: Endpoint>(
    protocol: &Arc<E::Config>,
    facts: &FabricFacts,
    addrs: &[SocketAddr],
    node: usize,
    faults: Faults,
    port: PortConfig,
) -> LiveNode
where
    E::Config: Send + Sync + 'static,
{
    let ips: Vec<IpAddr> = addrs.iter().map(SocketAddr::ip).collect();
    let udp = open(addrs, node);
    live::start::<E, _>(protocol, facts, &ips, node, faults, port, move || udp)
}

fn config(addrs: &[SocketAddr], node: usize) -> UdpConfig {
    UdpConfig::new(addrs[node], addrs.iter().copied().map(Some).collect())
}

fn open(addrs: &[SocketAddr], node: usize) -> UdpDatapath {
    UdpDatapath::open(&config(addrs, node)).unwrap()
}

/// Opens a node's sockets, which coalesce packets.
fn open_joined(addrs: &[SocketAddr], node: usize) -> UdpDatapath {
    let config = UdpConfig { segment_offload: true, ..config(addrs, node) };
    UdpDatapath::open(&config).unwrap()
}

/// Sends messages between four hosts; each arrives once and unaltered.
fn all_arrive<T: RegisteredTransport>(ip: IpAddr, loss: f64) {
    let addrs = addresses(ip, 4);
    live::all_arrive::<T, _>(&[ip; 4], 0, 250, loss, move |node| open(&addrs, node));
}

/// The same with three of four hosts that coalesce packets.
fn all_arrive_joined<T: RegisteredTransport>(ip: IpAddr, loss: f64) {
    let addrs = addresses(ip, 4);
    live::all_arrive::<T, _>(&[ip; 4], 0, 250, loss, move |node| match node {
        0 => open(&addrs, node),
        _ => open_joined(&addrs, node),
    });
}

#[test]
fn dcpim_delivers_every_message_over_ipv4() {
    all_arrive::<DcpimTransport>(Ipv4Addr::LOCALHOST.into(), 0.0);
}

#[test]
fn phost_delivers_every_message_over_ipv6() {
    match UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => all_arrive::<PhostTransport>(Ipv6Addr::LOCALHOST.into(), 0.0),
        Err(error) => println!("skipped: no IPv6 here ({error})"),
    }
}

#[test]
fn dcpim_with_loss_reordering_and_duplication() {
    all_arrive::<DcpimTransport>(Ipv4Addr::LOCALHOST.into(), 0.02);
}

#[test]
fn phost_with_loss_reordering_and_duplication() {
    all_arrive::<PhostTransport>(Ipv4Addr::LOCALHOST.into(), 0.02);
}

#[test]
fn dcpim_with_segmentation_offload() {
    all_arrive_joined::<DcpimTransport>(Ipv4Addr::LOCALHOST.into(), 0.0);
}

#[test]
fn phost_with_segmentation_offload_loss_reordering_and_duplication() {
    all_arrive_joined::<PhostTransport>(Ipv4Addr::LOCALHOST.into(), 0.02);
}

#[test]
fn dcpim_with_segmentation_offload_over_ipv6() {
    match UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => all_arrive_joined::<DcpimTransport>(Ipv6Addr::LOCALHOST.into(), 0.02),
        Err(error) => println!("skipped: no IPv6 here ({error})"),
    }
}

/// Coalesced packets of all lengths, classes and receivers are the same as without coalescing.
#[test]
fn coalesced_packets_are_split_at_their_boundaries() {
    let addrs = addresses(Ipv4Addr::LOCALHOST.into(), 3);
    for (src, dst) in [(true, true), (true, false), (false, true)] {
        let open = |joins: bool, node| {
            if joins { open_joined(&addrs, node) } else { open(&addrs, node) }
        };
        let (mut a, mut b, mut c) = (open(src, 0), open(dst, 1), open(dst, 2));
        let max = a.datagram_max();
        let mut rng = Rng::new(1, 0, Purpose::Test);
        for round in 0..200 {
            let mut sent = [Vec::new(), Vec::new()];
            for number in 0..60u8 {
                let len = [max, max, max, max, 500, 500, 1, 0][rng.uniform_below(8)];
                let (dst, class) =
                    (rng.uniform_below(8) / 7, Priority::new((rng.uniform_below(8) / 6) as u8 + 1));
                let bytes = vec![number; len];
                let (dst_id, marks) = (NodeId::new(dst as u32 + 1), Marks::NONE);
                let route = Route { dst: dst_id, class, path: 0, rail: Rail::Any, marks };
                a.send(route, |out| {
                    out[..len].copy_from_slice(&bytes);
                    len
                })
                .unwrap();
                sent[dst].push(bytes);
            }
            a.flush().unwrap();
            for (datapath, sent) in [&mut b, &mut c].into_iter().zip(sent) {
                let mut got = Vec::new();
                let mut take = |arrived: ArrivedPacket<'_>| got.push(arrived.bytes.to_vec());
                while datapath.receive(Time::ZERO, &mut take).unwrap() > 0 {}
                assert_eq!(got, sent, "round {round}");
            }
        }
        assert_eq!(a.counts().drops, 0);
    }
}

/// Receivers read the ECN bits of a packet's IP header as sent, coalesced or not.
#[test]
fn marks_arrive_as_they_were_sent() {
    let addresses = |ip: IpAddr| UdpSocket::bind((ip, 0)).ok().map(|_| addresses(ip, 2));
    let capable = Marks::ECN_CAPABLE;
    let marks = [Marks::NONE, capable, capable.union(Marks::CONGESTION), Marks::NONE];
    for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let Some(addrs) = addresses(ip) else {
            println!("skipped: no {ip} here");
            continue;
        };
        for joins in [false, true] {
            let open = |node| if joins { open_joined(&addrs, node) } else { open(&addrs, node) };
            let (mut a, mut b) = (open(0), open(1));
            for class in [Priority::HIGHEST, Priority::new(5)] {
                for &marks in marks.iter().flat_map(|marks| [marks; 3]) {
                    let route =
                        Route { dst: NodeId::new(1), class, path: 0, rail: Rail::Any, marks };
                    a.send(route, |out| out[..100].len()).unwrap();
                }
                a.flush().unwrap();
                let mut got = Vec::new();
                let mut take = |arrived: ArrivedPacket<'_>| got.push(arrived.marks);
                while b.receive(Time::ZERO, &mut take).unwrap() > 0 {}
                let sent: Vec<Marks> = marks.iter().flat_map(|&marks| [marks; 3]).collect();
                assert_eq!(got, sent, "{ip}, {class:?}, joined {joins}");
            }
        }
    }
}

/// A stalled application pauses its senders. When it reads again, everything arrives.
#[test]
fn a_receiver_that_does_not_read_pauses_its_senders() {
    let facts = facts(2, 500, Span::from_us(1_000));
    let addrs = addresses(Ipv4Addr::LOCALHOST.into(), 2);
    let config = Arc::new(protocol::<PhostTransport>(&facts));
    let small = PortConfig { depth: 64, budget: 100_000 };
    let faults = Faults::default();
    let mut a = start::<PhostHost>(&config, &facts, &addrs, 0, faults, small);
    let mut b = start::<PhostHost>(&config, &facts, &addrs, 1, faults, small);
    let dst = NodeId::new(1);
    for number in 0..20 {
        a.port.submit(dst, SERVICE, message(0, 1, number, 20_000)).unwrap();
    }
    thread::sleep(Duration::from_millis(300));
    let mut completed = 0;
    while a.port.try_next().is_some() {
        completed += 1;
    }
    assert_eq!(completed, 5, "five messages fit into the budget");
    let mut numbers = Vec::new();
    while numbers.len() < 20 {
        match b.port.wait_for(Duration::from_secs(20)) {
            Some(Completion::Received(received)) => numbers.push(read_message(received.bytes()).2),
            other => panic!("{other:?} after {} messages", numbers.len()),
        }
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..20));
    assert!(b.stop().no_memory_packets > 0);
    a.stop();
}

#[test]
fn undeliverable_messages_over_udp_are_refused_or_fail_with_a_reason() {
    let facts = facts(2, 500, Span::from_us(1_000));
    let addrs = addresses(Ipv4Addr::LOCALHOST.into(), 2);
    let config = Arc::new(protocol::<DcpimTransport>(&facts));
    let (small, faults) = (PortConfig { depth: 4, budget: 50_000 }, Faults::default());
    let mut a = start::<DcpimHost>(&config, &facts, &addrs, 0, faults, small);
    let b = start::<DcpimHost>(&config, &facts, &addrs, 1, faults, small);
    let mut outcome = |dst, service, size| {
        a.port.submit(NodeId::new(dst), service, vec![1; size]).unwrap();
        loop {
            match a.port.wait_for(Duration::from_secs(20)) {
                Some(Completion::Finished { outcome, .. }) => return outcome,
                Some(Completion::Received(_)) => {}
                None => panic!("no outcome for {size} bytes to {dst}"),
            }
        }
    };
    assert_eq!(outcome(1, SERVICE, 1), Outcome::Completed);
    assert_eq!(outcome(0, SERVICE, 30_000), Outcome::Completed);
    assert_eq!(outcome(1, SERVICE, 0), Outcome::Failed(Failure::BadSize));
    assert_eq!(outcome(5, SERVICE, 10), Outcome::Failed(Failure::UnknownPeer));
    assert_eq!(outcome(1, 99, 10), Outcome::Failed(Failure::Refused));
    assert_eq!(outcome(1, SERVICE, 60_000), Outcome::Failed(Failure::Refused));
    let dst = NodeId::new(1);
    for _ in 0..4 {
        a.port.submit(dst, SERVICE, vec![1; 10_000]).unwrap();
    }
    let full = a.port.submit(dst, SERVICE, vec![1; 3]);
    assert_eq!(full, Err(SubmitError::Full { depth: 4, bytes: vec![1; 3] }));
    a.stop();
    b.stop();
}

/// Bytes that no node sends are counted and cause no harm.
#[test]
fn noise_is_counted_and_dropped() {
    let facts = facts(2, 500, Span::from_us(1_000));
    let addrs = addresses(Ipv4Addr::LOCALHOST.into(), 2);
    let config = Arc::new(protocol::<DcpimTransport>(&facts));
    let faults = Faults::default();
    let node = start::<DcpimHost>(&config, &facts, &addrs, 1, faults, PortConfig::default());
    let noise = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut rng = Rng::new(1, 0, Purpose::Test);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..rng.uniform_below(100)).map(|_| rng.bits() as u8).collect();
        noise.send_to(&bytes, addrs[1]).unwrap();
    }
    // A datagram of 1500 bytes does not fit into a packet of as many.
    let data = SocketAddr::new(addrs[1].ip(), addrs[1].port() + 1);
    for addr in [addrs[1], data] {
        noise.send_to(&[0; 1_500], addr).unwrap();
    }
    thread::sleep(Duration::from_millis(100));
    let stats = node.stop();
    assert_eq!((stats.malformed_packets, stats.oversized_packets), (200, 2));
}

/// Clocks with the time of day of nodes started at different times differ by less than a
/// millisecond.
#[test]
fn clocks_of_one_machine_agree() {
    let clocks = [ClockSource::TimeOfDay, ClockSource::TimeOfDay].map(|source| {
        thread::sleep(Duration::from_millis(3));
        Clock::start(source).unwrap()
    });
    let ns = |clock: Clock| clock.origin().as_ns() + clock.now().as_ps() / 1_000;
    let times = clocks.map(ns);
    assert!(times[0].abs_diff(times[1]) < 1_000_000, "{times:?} ns");
}

#[test]
fn payloads_of_the_tests_fit_into_ipv6_packets() {
    assert!(PAYLOAD as usize <= HostPacket::new(1_500, IPV6_UDP, Protection::Sealed).payload);
}
