//! One body of tests, three arms: the simulator, UDP between namespaces, and AF_XDP. As many
//! messages of the same sizes go in, and come out whole and once, whatever the network loses,
//! doubles and reorders. On the two real arms every byte is compared; in the simulator, where
//! messages have no bytes, its ledger asserts that none is delivered twice or left out.
//!
//! RAMPMETER_MESSAGES says how many messages an arm carries for each protocol; `make conformance`
//! runs 100 000. Namespaces need root; without it the UDP arm runs on loopback, and that of AF_XDP
//! is skipped.

mod common;
#[path = "common/netns.rs"]
mod netns;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use common::ports::addresses;
use common::*;
use netns::Net;
use rampmeter_core::{Bytes, FabricFacts, Family, NodeId, Purpose, Rng, Span, Time};
use rampmeter_proto::dcpim::DcpimFamily;
use rampmeter_proto::fastpass::FastpassFamily;
use rampmeter_proto::phost::PhostFamily;
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_sim::{
    ArbiterLink, Arrival, ClockSpec, FabricConfig, FaultSpec, FlowRecord, LinkFault, Probe, Sim,
    SimSpec, Status, Topology, TopologySpec,
};

const HOSTS: usize = 4;
const LOSSES: [f64; 4] = [0.0, 0.001, 0.01, 0.05];
const PORT: u16 = 7_321;

/// Messages that each host sends at each loss.
fn each() -> u64 {
    let total = std::env::var("RAMPMETER_MESSAGES").ok();
    let total: u64 = total.map_or(1_600, |n| n.parse().expect("RAMPMETER_MESSAGES is a number"));
    total.div_ceil((HOSTS * LOSSES.len()) as u64)
}

/// What came of every message of the simulator's arm.
#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Probe for Records {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

/// A star of hosts at 200 Mbit/s.
fn star(arbiters: usize) -> Topology {
    let spec = TopologySpec::Star {
        hosts: HOSTS as u64,
        access_gbps: 0.2,
        propagation_ns: 10_000.0,
        switch_ns: 0.0,
        host_ns: 20_000.0,
    };
    let mut topology = spec.build().unwrap();
    for _ in 0..arbiters {
        let link = topology.links()[0];
        let (switch, rate) = (topology.rack(0), link.rate);
        topology =
            topology.with_arbiter(ArbiterLink { switch, rate, propagation: link.propagation });
    }
    topology
}

fn simulated<F: Family>(arbiters: usize, protocol: fn(&FabricFacts) -> F::Config) {
    for loss in LOSSES {
        let mut rng = Rng::new(1, 0, Purpose::Test);
        let mut at = Time::ZERO;
        let arrivals: Vec<Arrival> = (0..each() * HOSTS as u64)
            .map(|n| {
                let src = (n % HOSTS as u64) as usize;
                let dst = (src + 1 + rng.below(HOSTS - 1)) % HOSTS;
                at += Span::from_us(rng.below(400) as u64);
                let size = Bytes::new(mixed_size(&mut rng) as u64);
                Arrival::new(at, NodeId::new(src as u32), NodeId::new(dst as u32), size)
            })
            .collect();
        let n = arrivals.len();
        let is_fair = loss == 0.0;
        let (duplicate, reorder) = if is_fair { (0.0, 0.0) } else { (0.02, 0.05) };
        let delay_max = Span::from_us(2_000);
        let every_link = LinkFault { loss, duplicate, reorder, delay_max };
        let spec = SimSpec {
            topology: star(arbiters),
            fabric: FabricConfig::default(),
            faults: FaultSpec { every_link, ..FaultSpec::default() },
            clocks: ClockSpec::default(),
            seed: 1,
            drain: Span::from_us(60_000_000),
            sample: None,
            paranoid: true,
        };
        let facts = facts(HOSTS as u32, 200, Span::from_us(1_000));
        let mut records = Records::default();
        let config = Arc::new(protocol(&facts));
        let mut sim = Sim::<F, _, _>::new(spec, config, arrivals.into_iter(), &mut records);
        // The simulator itself asserts that no byte is delivered twice.
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        drop(sim);
        assert_eq!(records.0.len(), n);
        assert!(records.0.iter().all(|r| r.delivered.is_some() && r.failed.is_none()));
    }
}

fn over_udp<F: Family>(arbiters: usize, protocol: fn(&FabricFacts) -> F::Config) {
    let n = HOSTS + arbiters;
    for loss in LOSSES {
        match Net::switched(n as u8) {
            Some(net) => {
                let ips: Vec<IpAddr> = net.hosts.iter().map(|host| host.ip.into()).collect();
                let peers: Vec<_> = ips.iter().map(|ip| Some(SocketAddr::new(*ip, PORT))).collect();
                let hosts = net.hosts.clone();
                live::all_arrive::<F, _>(&ips, arbiters, each(), loss, protocol, move |node| {
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
                live::all_arrive::<F, _>(&ips, arbiters, each(), loss, protocol, move |node| {
                    UdpDatapath::open(&UdpConfig::new(addrs[node], peers.clone())).unwrap()
                });
            }
        }
    }
}

#[cfg(feature = "xdp")]
fn over_xdp<F: Family>(arbiters: usize, protocol: fn(&FabricFacts) -> F::Config) {
    use std::net::SocketAddrV4;

    use rampmeter_runtime::datapath::xdp::{XdpConfig, XdpDatapath};

    for loss in LOSSES {
        let Some(net) = Net::switched((HOSTS + arbiters) as u8) else { return };
        let ips: Vec<IpAddr> = net.hosts.iter().map(|host| host.ip.into()).collect();
        let hosts = net.hosts.clone();
        let address = |ip| SocketAddrV4::new(ip, PORT);
        let peers: Vec<_> = hosts.iter().map(|host| Some(address(host.ip))).collect();
        live::all_arrive::<F, _>(&ips, arbiters, each(), loss, protocol, move |node| {
            hosts[node].enter();
            let local = address(hosts[node].ip);
            XdpDatapath::open(&XdpConfig::new(netns::DEVICE, local, peers.clone())).unwrap()
        });
    }
}

/// An arm of each protocol.
macro_rules! arms {
    ($arm:ident: $run:ident) => {
        mod $arm {
            use super::*;

            #[test]
            fn dcpim() {
                $run::<DcpimFamily>(0, common::dcpim);
            }

            #[test]
            fn phost() {
                $run::<PhostFamily>(0, common::phost);
            }

            #[test]
            fn fastpass() {
                $run::<FastpassFamily>(2, common::fastpass);
            }
        }
    };
}

arms!(sim: simulated);
arms!(udp: over_udp);
#[cfg(feature = "xdp")]
arms!(xdp: over_xdp);
