//! One body of tests, three arms: the simulator, UDP between namespaces, and AF_XDP. All submit the
//! same number of messages of the same sizes. Each message is delivered whole and once, with any
//! loss, duplication and reordering. On the two real arms every byte is compared; in the simulator,
//! in which messages have no bytes, its ledger asserts that none is delivered twice or missing.
//!
//! RAMPMETER_MESSAGES is the number of messages that an arm carries for each protocol; `make
//! conformance` runs 100 000. Namespaces need root; without it the UDP arm runs on loopback, and
//! that of AF_XDP is skipped. If a transport promises a bound, messages may be rejected or fail
//! instead.

#[path = "../common/netns.rs"]
mod netns;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::common::ports::addresses;
use crate::common::*;
use netns::Net;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_sim::{Arrival, LinkFault, Status, Topology, TopologySpec, topologies};
use rampmeter_testkit::network::n_arbiters;
use rampmeter_testkit::{Body, Case, Suite, TestNetwork, run, spec};
use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time};

const HOSTS: usize = 4;
const LOSSES: [f64; 4] = [0.0, 0.001, 0.01, 0.05];
const PORT: u16 = 7_321;

/// Returns the number of messages that each host sends at each loss.
fn each() -> u64 {
    let total = std::env::var("RAMPMETER_MESSAGES").ok();
    let total: u64 = total.map_or(1_600, |n| n.parse().expect("RAMPMETER_MESSAGES is a number"));
    total.div_ceil((HOSTS * LOSSES.len()) as u64)
}

/// Returns a star of hosts at 200 Mbit/s.
fn star() -> Topology {
    let spec = TopologySpec::Star(topologies::Star {
        hosts: HOSTS as u64,
        access_gbps: 0.2,
        propagation_ns: 10_000.0,
        switch_ns: 0.0,
        host_ns: 20_000.0,
    });
    spec.build().unwrap()
}

/// Arm of the simulator.
#[derive(Clone, Copy)]
struct SimulatorArm;

impl Body for SimulatorArm {
    const NAME: &'static str = "conformance";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        LOSSES.into_iter().for_each(|loss| simulated::<T>(&case.keys, loss));
    }
}

fn simulated<T: RegisteredTransport>(keys: &T::Keys, loss: f64) {
    let mut rng = Rng::new(1, 0, Purpose::Test);
    let mut at = Time::ZERO;
    let arrivals: Vec<Arrival> = (0..each() * HOSTS as u64)
        .map(|n| {
            let src = (n % HOSTS as u64) as usize;
            let dst = (src + 1 + rng.uniform_below(HOSTS - 1)) % HOSTS;
            at += Span::from_us(rng.uniform_below(400) as u64);
            let size = Bytes::new(mixed_size(&mut rng) as u64);
            Arrival::new(at, NodeId::new(src as u32), NodeId::new(dst as u32), size)
        })
        .collect();
    let n = arrivals.len();
    let is_fair = loss == 0.0;
    let (duplicate, reorder) = if is_fair { (0.0, 0.0) } else { (0.02, 0.05) };
    let delay_max = Span::from_us(2_000);
    let place = TestNetwork::<T>::simulated(keys, star());
    let mut spec = spec(place.topology, 1);
    spec.fabric = place.fabric;
    spec.faults.every_link = LinkFault { loss, duplicate, reorder, delay_max };
    spec.drain = Span::from_us(60_000_000);
    spec.sample = None;
    // The simulator itself asserts that no byte is delivered twice.
    let (status, records) = run::<T>(place.config, spec, arrivals);
    assert_eq!((status, records.len()), (Status::Finished, n));
    let has_bound = records[0].bound.is_some();
    let completed = records.iter().filter(|r| r.completed.is_some());
    let completed = completed.inspect(|r| assert!(r.delivered.is_some(), "{r:?}")).count();
    assert!(completed == n || (has_bound && completed > n / 4), "{completed} of {n} completed");
}

/// Arm of UDP.
#[derive(Clone, Copy)]
struct OverUdp;

impl Body for OverUdp {
    const NAME: &'static str = "conformance";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let arbiters = n_arbiters::<T>(&case.keys, &facts(HOSTS as u32, 200, Span::from_us(1)));
        over_udp::<T>(arbiters as usize);
    }
}

fn over_udp<T: RegisteredTransport>(arbiters: usize) {
    let n = HOSTS + arbiters;
    for loss in LOSSES {
        match Net::switched(n as u8) {
            Some(net) => {
                let ips: Vec<IpAddr> = net.hosts.iter().map(|host| host.ip.into()).collect();
                let peers: Vec<_> = ips.iter().map(|ip| Some(SocketAddr::new(*ip, PORT))).collect();
                let hosts = net.hosts.clone();
                live::all_arrive::<T, _>(&ips, arbiters, each(), loss, move |node| {
                    hosts[node].enter();
                    let local = SocketAddr::new(hosts[node].ip.into(), PORT);
                    UdpDatapath::open(&UdpConfig::new(local, peers.clone())).unwrap()
                });
            }
            None => {
                let ip = IpAddr::from(Ipv4Addr::LOCALHOST);
                let addrs = addresses(ip, n);
                let peers: Vec<_> = addrs.iter().copied().map(Some).collect();
                let ips = vec![ip; n];
                live::all_arrive::<T, _>(&ips, arbiters, each(), loss, move |node| {
                    UdpDatapath::open(&UdpConfig::new(addrs[node], peers.clone())).unwrap()
                });
            }
        }
    }
}

/// Arm of AF_XDP.
#[cfg(feature = "xdp")]
#[derive(Clone, Copy)]
struct OverXdp;

#[cfg(feature = "xdp")]
impl Body for OverXdp {
    const NAME: &'static str = "conformance";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        use std::net::SocketAddrV4;

        use rampmeter_runtime::datapath::xdp::{XdpConfig, XdpDatapath};

        let arbiters = n_arbiters::<T>(&case.keys, &facts(HOSTS as u32, 200, Span::from_us(1)));
        let arbiters = arbiters as usize;
        for loss in LOSSES {
            let Some(net) = Net::switched((HOSTS + arbiters) as u8) else { return };
            let ips: Vec<IpAddr> = net.hosts.iter().map(|host| host.ip.into()).collect();
            let hosts = net.hosts.clone();
            let address = |ip| SocketAddrV4::new(ip, PORT);
            let peers: Vec<_> = hosts.iter().map(|host| Some(address(host.ip))).collect();
            live::all_arrive::<T, _>(&ips, arbiters, each(), loss, move |node| {
                hosts[node].enter();
                let local = address(hosts[node].ip);
                XdpDatapath::open(&XdpConfig::new(netns::DEVICE, local, peers.clone())).unwrap()
            });
        }
    }
}

/// Adds the tests of all arms.
pub(crate) fn add(suite: Suite) -> Suite {
    let suite = suite
        .each_transport::<Builtin, _>("sim", SimulatorArm)
        .each_transport::<HostCatalogue<Builtin>, _>("udp", OverUdp);
    #[cfg(feature = "xdp")]
    let suite = suite.each_transport::<HostCatalogue<Builtin>, _>("xdp", OverXdp);
    suite
}
