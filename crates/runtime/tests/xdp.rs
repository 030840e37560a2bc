//! Nodes over AF_XDP, each in a separate network namespace. As root only; skipped otherwise.

mod common;
#[path = "common/netns.rs"]
mod netns;

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::Duration;

use common::*;
use netns::{DEVICE, Net};
use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::dcpim::DcpimTransport;
use rampmeter_proto::phost::PhostTransport;
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::datapath::xdp::{Queues, XdpConfig, XdpDatapath, XdpMode};
use rampmeter_runtime::datapath::{Datapath, Rail, Route};
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Span, Time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use socket2::{Domain, Protocol, Socket, Type};

/// Control port of every node.
const PORT: u16 = 7_321;

fn address(ip: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(ip, PORT)
}

fn config(net: &Net, node: usize) -> XdpConfig {
    let peers = net.hosts.iter().map(|host| Some(address(host.ip))).collect();
    XdpConfig::new(DEVICE, address(net.hosts[node].ip), peers)
}

/// Opens a node's datapath at its host.
fn open(net: &Net, node: usize) -> XdpDatapath {
    let config = config(net, node);
    net.hosts[node].within(|| XdpDatapath::open(&config)).unwrap()
}

fn send(datapath: &mut impl Datapath, dst: u32, class: Priority, bytes: &[u8]) {
    let marks = Marks::ECN_CAPABLE;
    let route = Route { dst: NodeId::new(dst), class, path: 3, rail: Rail::Any, marks };
    let write = |out: &mut [u8]| {
        out[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    };
    datapath.send(route, write).unwrap();
}

/// Returns all datagrams that arrive until there have been `n`, or none for a second.
fn receive(datapath: &mut impl Datapath, n: usize) -> Vec<Vec<u8>> {
    receive_marked(datapath, n).into_iter().map(|(bytes, _)| bytes).collect()
}

/// Returns the same with their marks.
fn receive_marked(datapath: &mut impl Datapath, n: usize) -> Vec<(Vec<u8>, Marks)> {
    let mut got = Vec::new();
    let mut silent = 0;
    while got.len() < n && silent < 1_000 {
        let each = |arrived: rampmeter_runtime::datapath::ArrivedPacket<'_>| {
            got.push((arrived.bytes.to_vec(), arrived.marks));
        };
        if datapath.receive(Time::ZERO, each).unwrap() == 0 {
            silent += 1;
            thread::sleep(Duration::from_millis(1));
        } else {
            silent = 0;
        }
    }
    got
}

/// [`live::all_arrive`] between the hosts of a network.
fn all_arrive<T: RegisteredTransport>(net: Option<Net>, loss: f64) {
    let Some(net) = net else { return };
    let ips: Vec<IpAddr> = net.hosts.iter().map(|host| host.ip.into()).collect();
    let nodes = 0..net.hosts.len();
    let nodes: Vec<_> = nodes.map(|node| (net.hosts[node].clone(), config(&net, node))).collect();
    live::all_arrive::<T, _>(&ips, 0, 250, loss, move |node| {
        let (host, config) = &nodes[node];
        host.enter();
        XdpDatapath::open(config).unwrap()
    });
}

#[test]
fn dcpim_between_two_hosts() {
    all_arrive::<DcpimTransport>(Net::pair(), 0.0);
}

#[test]
fn phost_delivers_between_four_hosts() {
    all_arrive::<PhostTransport>(Net::switched(4), 0.0);
}

#[test]
fn dcpim_delivers_with_loss_between_four_hosts() {
    all_arrive::<DcpimTransport>(Net::switched(4), 0.02);
}

#[test]
fn phost_with_loss_over_a_router() {
    all_arrive::<PhostTransport>(Net::routed(3), 0.02);
}

/// The ECN bits equal the sender's marks, over AF_XDP and over UDP.
#[test]
fn marks_cross_between_udp_and_xdp() {
    let Some(net) = Net::pair() else { return };
    let mut xdp = open(&net, 0);
    let peers = net.hosts.iter().map(|host| Some(address(host.ip).into())).collect();
    let udp = UdpConfig::new(address(net.hosts[1].ip).into(), peers);
    let mut udp = net.hosts[1].within(|| UdpDatapath::open(&udp)).unwrap();
    let class = Priority::new(5);
    for marks in [Marks::NONE, Marks::ECN_CAPABLE, Marks::ECN_CAPABLE.union(Marks::CONGESTION)] {
        let route = |dst| Route { dst: NodeId::new(dst), class, path: 3, rail: Rail::Any, marks };
        let expected = [(vec![0; 50], marks)];
        let write = |out: &mut [u8]| {
            out[..50].fill(0);
            50
        };
        xdp.send(route(1), write).unwrap();
        xdp.flush().unwrap();
        assert_eq!(receive_marked(&mut udp, 1), expected);
        udp.send(route(0), write).unwrap();
        udp.flush().unwrap();
        assert_eq!(receive_marked(&mut xdp, 1), expected);
    }
}

/// Class, ports and lengths are equal to those of the UDP datapath, in both directions.
#[test]
fn udp_and_xdp_interoperate() {
    let Some(net) = Net::pair() else { return };
    let mut xdp = open(&net, 0);
    let peers = net.hosts.iter().map(|host| Some(address(host.ip).into())).collect();
    let udp = UdpConfig::new(address(net.hosts[1].ip).into(), peers);
    let mut udp = net.hosts[1].within(|| UdpDatapath::open(&udp)).unwrap();
    assert_eq!(xdp.datagram_max(), udp.datagram_max());
    assert_eq!(xdp.overhead(), udp.overhead());
    let sizes = [0, 1, 17, 18, 19, 500, xdp.datagram_max()];
    let datagrams: Vec<Vec<u8>> = sizes.map(|len| vec![len as u8; len]).into();
    for class in [Priority::HIGHEST, Priority::new(5)] {
        datagrams.iter().for_each(|bytes| send(&mut xdp, 1, class, bytes));
        xdp.flush().unwrap();
        assert_eq!(receive(&mut udp, datagrams.len()), datagrams);
        datagrams.iter().for_each(|bytes| send(&mut udp, 0, class, bytes));
        udp.flush().unwrap();
        let mut back = receive(&mut xdp, datagrams.len());
        back.sort_by_key(Vec::len);
        assert_eq!(back, datagrams);
    }
    assert_eq!((xdp.counts().drops, udp.counts().drops, xdp.overflow()), (0, 0, 0));
}

/// Packets to the control port overtake those that wait for the data port.
#[test]
fn control_is_handed_over_first() {
    let Some(net) = Net::pair() else { return };
    let (mut a, mut b) = (open(&net, 0), open(&net, 1));
    for n in 0..150u8 {
        send(&mut a, 1, Priority::new(3), &[n]);
    }
    send(&mut a, 1, Priority::HIGHEST, &[255]);
    a.flush().unwrap();
    thread::sleep(Duration::from_millis(50));
    let got = receive(&mut b, 151);
    assert_eq!(got.iter().map(|bytes| bytes[0]).collect::<Vec<_>>(), {
        let mut order = vec![255];
        order.extend(0..150);
        order
    });
}

/// Packets of different source ports arrive at different queues. A node that receives from all
/// queues gets each of them, and a node that receives from one queue gets a part.
#[test]
fn packets_arrive_at_all_queues() {
    const EACH: usize = 10;
    for attach in [XdpMode::Generic, XdpMode::Native] {
        let Some(net) = Net::pair_with_queues(4) else { return };
        let peers = net.hosts.iter().map(|host| Some(address(host.ip).into())).collect();
        let udp = UdpConfig { spray: 64, ..UdpConfig::new(address(net.hosts[0].ip).into(), peers) };
        let mut udp = net.hosts[0].within(|| UdpDatapath::open(&udp)).unwrap();
        let mut arrived = |queues| {
            let config = XdpConfig { queues, attach, ..config(&net, 1) };
            let mut xdp = net.hosts[1].within(|| XdpDatapath::open(&config)).unwrap();
            for path in (0..64).flat_map(|path| [path; EACH]) {
                let (dst, class) = (NodeId::new(1), Priority::new(3));
                let route = Route { dst, class, path, rail: Rail::Any, marks: Marks::NONE };
                let write = |out: &mut [u8]| {
                    out[..2].copy_from_slice(&path.to_be_bytes());
                    2
                };
                udp.send(route, write).unwrap();
            }
            udp.flush().unwrap();
            let mut got = receive(&mut xdp, 64 * EACH);
            got.sort();
            assert_eq!(xdp.overflow(), 0);
            got
        };
        let expected: Vec<_> = (0..64u16).flat_map(|path| [path; EACH]).collect();
        let all: Vec<_> = expected.iter().map(|path| path.to_be_bytes()).collect();
        assert_eq!(arrived(Queues::All), all, "{attach:?}");
        let some = arrived(Queues::One(1)).len();
        assert!((1..all.len()).contains(&some), "{attach:?}: {some} at one queue");
        assert_eq!(arrived(Queues::All), all, "{attach:?}, once more");
    }
}

/// Whole nodes receive packets from all queues, and lose only those that are dropped on purpose.
#[test]
fn phost_between_hosts_of_four_queues() {
    all_arrive::<PhostTransport>(Net::pair_with_queues(4), 0.02);
}

/// Frames are reused: many times more packets than frames pass, in both directions. Packets that
/// are sent faster than received are counted as dropped at one end or the other.
#[test]
fn no_frame_is_lost() {
    let Some(net) = Net::pair() else { return };
    let (mut a, mut b) = (open(&net, 0), open(&net, 1));
    let bytes = vec![7; a.datagram_max()];
    for round in 0..300 {
        for _ in 0..60 {
            send(&mut a, 1, Priority::new(1), &bytes);
        }
        a.flush().unwrap();
        assert_eq!(receive(&mut b, 60).len(), 60, "round {round}");
    }
    assert_eq!((a.counts().drops, b.overflow()), (0, 0));
    // Nobody receives these: the memory holds 2048.
    for _ in 0..5_000 {
        send(&mut a, 1, Priority::new(1), &bytes);
    }
    a.flush().unwrap();
    let got = receive(&mut b, 5_000).len() as u64;
    assert!(got >= 2_000, "{got}");
    assert_eq!(got + a.counts().drops + b.overflow(), 5_000);
    send(&mut a, 1, Priority::HIGHEST, &[1]);
    a.flush().unwrap();
    assert_eq!(receive(&mut b, 1), [[1]]);
}

/// An interface that is down loses packets and no frames.
#[test]
fn a_repaired_link_carries_packets_again() {
    let Some(net) = Net::pair() else { return };
    let (mut a, mut b) = (open(&net, 0), open(&net, 1));
    let name = &net.hosts[0].name;
    net.ip(&format!("-n {name} link set {DEVICE} down"));
    for _ in 0..5_000 {
        send(&mut a, 1, Priority::new(1), &[0; 1_000]);
    }
    a.flush().unwrap();
    assert!(a.counts().drops >= 2_000, "{} were dropped", a.counts().drops);
    net.ip(&format!("-n {name} link set {DEVICE} up"));
    thread::sleep(Duration::from_millis(100));
    while a.next_arrival() != Time::NEVER {
        a.receive(Time::ZERO, |_| ()).unwrap();
    }
    let late = receive(&mut b, 5_000).len() as u64;
    assert_eq!(late + a.counts().drops + b.overflow(), 5_000);
    let before = a.counts().drops;
    for n in 0..100 {
        send(&mut a, 1, Priority::new(1), &[n]);
    }
    a.flush().unwrap();
    assert_eq!((receive(&mut b, 100).len(), a.counts().drops), (100, before));
}

/// ARP resolves the address before the first packet; ping and UDP to other ports still work.
#[test]
fn the_kernel_keeps_everything_else() {
    for attach in [XdpMode::Generic, XdpMode::Native] {
        let Some(net) = Net::pair() else { return };
        let open = |node: usize| {
            let config = XdpConfig { attach, ..config(&net, node) };
            net.hosts[node].within(|| XdpDatapath::open(&config)).unwrap()
        };
        let (mut a, mut b) = (open(0), open(1));
        let target = net.hosts[1].ip;
        net.hosts[0].within(|| ping(target));
        let server = net.hosts[1].within(|| UdpSocket::bind((target, PORT + 2))).unwrap();
        let client = net.hosts[0].within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap();
        client.send_to(b"question", (target, PORT + 2)).unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let (len, from) = server.recv_from(&mut [0; 100]).unwrap();
        assert_eq!((len, from.ip()), (8, net.hosts[0].ip.into()));
        // Packets of the kernel to the node's ports reach the node.
        client.send_to(b"from afar", (target, PORT)).unwrap();
        assert_eq!(receive(&mut b, 1), [b"from afar"]);
        send(&mut a, 1, Priority::LOWEST, b"near");
        a.flush().unwrap();
        assert_eq!(receive(&mut b, 1), [b"near"]);
    }
}

/// A UDP header with a length beyond its packet.
#[test]
fn damaged_frames_are_counted() {
    let Some(net) = Net::pair() else { return };
    let mut node = open(&net, 1);
    let (target, port) = (net.hosts[1].ip, PORT.to_be_bytes());
    let header = [0xc0, 0, port[0], port[1], 0, 99, 0, 0, 1, 2, 3];
    net.hosts[0].within(|| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap();
        socket.send_to(&header, &SocketAddrV4::new(target, 0).into()).unwrap();
    });
    assert_eq!(receive(&mut node, 1).len(), 0);
    assert_eq!((node.counts().malformed_packets, node.counts().drops), (1, 0));
}

/// Sends an echo request to `target` and waits for the answer.
fn ping(target: Ipv4Addr) {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // Echo request, code 0, checksum, identifier 0x1234, sequence 1.
    let request = [8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1];
    socket.send_to(&request, &SocketAddrV4::new(target, 0).into()).unwrap();
    let mut bytes = [MaybeUninit::uninit(); 100];
    let len = socket.recv(&mut bytes).expect("an answer within five seconds");
    // A header of 20 bytes, and the bytes that were sent. No other program sends this host ICMP.
    assert_eq!(len, 28);
}

/// A queue that has just been closed can be opened again, and no program remains at the interface.
#[test]
fn closing_releases_everything_and_reopening_works() {
    let Some(net) = Net::pair() else { return };
    let show = || net.ip(&format!("-n {} -d link show {DEVICE}", net.hosts[0].name));
    let mut b = open(&net, 1);
    for n in 0..5 {
        let mut a = open(&net, 0);
        assert!(show().contains("xdp"), "{}", show());
        send(&mut a, 1, Priority::HIGHEST, &[n]);
        a.flush().unwrap();
        assert_eq!(receive(&mut b, 1), [[n]]);
        drop(a);
        // Processes that other tests start hold copies of descriptors until they run.
        let is_gone = || {
            thread::sleep(Duration::from_millis(10));
            !show().contains("xdp")
        };
        assert!((0..100).any(|_| is_gone()), "{}", show());
    }
    let names: Vec<String> = net.hosts.iter().map(|host| host.name.clone()).collect();
    drop((b, net));
    let left = std::fs::read_dir("/run/netns").map(|dir| {
        let names_left = dir.flatten().map(|entry| entry.file_name().into_string().unwrap());
        names_left.filter(|name| names.contains(name)).count()
    });
    assert_eq!(left.unwrap_or(0), 0);
}

#[test]
fn errors_of_opening_name_the_reason() {
    let Some(net) = Net::pair() else { return };
    let why = |config: XdpConfig| {
        net.hosts[0].within(|| XdpDatapath::open(&config)).unwrap_err().to_string()
    };
    let good = || config(&net, 0);
    let expect = |config, part: &str| {
        let why = why(config);
        assert!(why.contains(part), "{why}");
    };
    expect(XdpConfig { interface: "eth7".to_owned(), ..good() }, "interface eth7");
    expect(XdpConfig { mtu: 9_000, ..good() }, "not 9000");
    expect(XdpConfig { queues: Queues::One(5), ..good() }, "queue of eth0 must be below 1, not 5");
    expect(XdpConfig { rx_frames: 1_000, ..good() }, "power of two");
    let elsewhere = SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, 1), PORT);
    expect(XdpConfig { local: elsewhere, ..good() }, "cannot reserve UDP port 10.99.0.1");
    let _first = open(&net, 0);
    expect(good(), "cannot reserve UDP port");
    let other_port = SocketAddrV4::new(net.hosts[0].ip, PORT + 10);
    expect(XdpConfig { local: other_port, ..good() }, "another socket has the interface's queue");
}

/// Each privilege that is missing is named.
#[test]
fn errors_of_missing_privileges_name_them() {
    let Some(net) = Net::pair() else { return };
    // Irrelevant to tests that may lock memory without limit.
    let limit = Rlimit { current: Some(1 << 20), ..getrlimit(Resource::Memlock) };
    setrlimit(Resource::Memlock, limit).unwrap();
    let why = |missing: CapabilitySet| {
        let config = config(&net, 0);
        let open = || {
            let mut all = capabilities(None).unwrap();
            all.effective.remove(missing);
            set_capabilities(None, all).unwrap();
            XdpDatapath::open(&config).unwrap_err().to_string()
        };
        net.hosts[0].within(open)
    };
    let admin = CapabilitySet::SYS_ADMIN;
    let expect = |missing, part: &str| {
        let why = why(missing);
        assert!(why.contains(part), "{why}");
    };
    expect(CapabilitySet::NET_RAW, "CAP_NET_RAW");
    expect(CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK");
    expect(CapabilitySet::BPF | admin, "CAP_BPF");
    expect(CapabilitySet::NET_ADMIN | admin, "CAP_NET_ADMIN");
    expect(CapabilitySet::all(), "CAP_NET_RAW");
    open(&net, 0);
}

/// The link address of a peer whose interface is up later is resolved when packets are sent to it.
#[test]
fn link_addresses_are_found_on_demand() {
    let Some(net) = Net::pair() else { return };
    let name = &net.hosts[1].name;
    net.ip(&format!("-n {name} addr del {}/24 dev {DEVICE}", net.hosts[1].ip));
    let mut a = open(&net, 0);
    assert_eq!(a.n_peers_resolved(), 0);
    send(&mut a, 1, Priority::HIGHEST, b"lost");
    assert_eq!(a.counts().drops, 1);
    net.ip(&format!("-n {name} addr add {}/24 dev {DEVICE}", net.hosts[1].ip));
    let mut b = open(&net, 1);
    for ms in (0..5_000).step_by(20) {
        a.receive(Time::ZERO + Span::from_us(ms * 1_000), |_| ()).unwrap();
        send(&mut a, 1, Priority::HIGHEST, b"found");
        a.flush().unwrap();
        if a.n_peers_resolved() == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(receive(&mut b, 1), [b"found"]);
}
