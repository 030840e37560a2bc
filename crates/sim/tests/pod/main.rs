//! Pods whose switches hold nothing: source routes, collisions, and packets that are cut off.

mod collisions;
#[allow(dead_code, reason = "other test programs use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod random;
mod script;

use rampmeter_sim::*;
use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};
use rampmeter_types::wiring::Port;
use rampmeter_types::{Bytes, SourceRoute, Span, Time};

use script::{PlannedPacket, ReceivedPacket, ScriptSim, run};

/// Bytes of a header, which a switch receives before it forwards.
const HEADER: u64 = 64;
/// A byte's time at 100 Gbit/s.
const BYTE: Span = Span::from_ps(80);
/// Propagation and processing of a hop.
const HOP: Span = Span::from_ns(1_000 + 450);

/// Returns a pod of 4-port switches with an arbiter at both racks, and cables that differ by up to
/// `spread` nanoseconds. Hosts 0 and 1 are at switch 0, hosts 2 and 3 at switch 1.
fn topology(spread: f64) -> Topology {
    let spec = TopologySpec::Pod(topologies::Pod {
        k: 4,
        gbps: 100.0,
        propagation_ns: 1_000.0,
        switch_ns: 450.0,
        host_ns: 450.0,
        cable_spread_ns: spread,
    });
    let need = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::EveryRack };
    spec.build().unwrap().with_arbiters(&[need])
}

/// Returns a fabric without memory, which cuts through.
fn spec(topology: Topology) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(topology, 1);
    spec.fabric.buffer = Buffer::PerPort(Bytes::ZERO);
    spec.fabric.switching = Switching::CutThrough { header: Bytes::new(HEADER) };
    spec.sample = Some(Span::from_us(1));
    spec
}

/// Ports of a pod.
struct Pod(Topology);

impl Pod {
    /// Returns the port of the switch of a host's rack to the host.
    fn host(&self, host: u32) -> Port {
        self.between(self.0.rack(host), Node::Host(host))
    }

    /// Returns the port of a rack's switch to the arbiter.
    fn arbiter(&self, rack: u32) -> Port {
        self.between(rack, Node::Arbiter(0))
    }

    fn between(&self, switch: u32, to: Node) -> Port {
        let ports = self.0.ports().swap_remove(switch as usize);
        ports.into_iter().find(|port| port.to == to).expect("the switch has a link to the node")
    }
}

fn pod() -> Pod {
    Pod(topology(0.0))
}

/// The number of the arbiter's station.
const ARBITER: u32 = 4;

/// Time zero of tests that send something before it.
fn at(ps: u64) -> Time {
    Time::from_ps(100_000_000 + ps)
}

fn route(ports: &[u16]) -> u16 {
    SourceRoute::new(ports).unwrap().path()
}

/// Returns the route from a host by aggregation switch `agg` to another.
fn by_agg(pod: &Pod, src: u32, agg: u32, dst: u32) -> u16 {
    let (from, to) = (pod.0.rack(src), pod.0.rack(dst));
    let up = pod.between(from, Node::Switch(2 + agg));
    let down = pod.between(2 + agg, Node::Switch(to));
    route(&[up.number, down.number, pod.host(dst).number])
}

/// Returns the time at which the last bit of a lone packet of `bytes` is received, over `links`
/// links.
fn latency(links: u64, bytes: u64) -> Span {
    HOP * links + BYTE * (HEADER.min(bytes) * (links - 1) + bytes)
}

#[test]
fn source_routes_reach_every_host_by_every_path_in_constant_time() {
    let pod = pod();
    let mut sends = Vec::new();
    for src in 0..4 {
        for dst in (0..4).filter(|dst| *dst != src) {
            for agg in 0..2 {
                for bytes in [40, 64, 65, 1_500] {
                    let time = at(100_000_000 * sends.len() as u64);
                    let path = by_agg(&pod, src, agg, dst);
                    sends.push(PlannedPacket { bytes, path, ..PlannedPacket::new(time, src, dst) });
                }
            }
        }
    }
    let sim = run(spec(topology(0.0)), sends.clone());
    let received = script::received(&sim);
    assert_eq!(received.len(), sends.len());
    for (id, send) in (0..).zip(&sends) {
        // Three switches, also within a rack.
        let at = send.at + latency(4, send.bytes.into());
        assert_eq!(
            received[id],
            ReceivedPacket { at, by: send.dst, id: id as u64, bytes: send.bytes }
        );
    }
    let sent =
        |tier: &str| sim.fabric().tier_stats().iter().find(|t| t.name == tier).unwrap().bytes;
    assert_eq!((sent("host-up"), sent("tor-up")), (sent("tor-up"), sent("spine-down")));
}

#[test]
fn longer_cables_add_their_delay() {
    let topology = topology(200.0);
    let pod = Pod(topology.clone());
    let (from, to) = (pod.host(1).link.propagation, pod.host(2).link.propagation);
    assert_ne!(from, to);
    let path = by_agg(&pod, 1, 1, 2);
    let to_arbiter = route(&[pod.arbiter(0).number]);
    let sends = [
        PlannedPacket { bytes: 1_500, path, ..PlannedPacket::new(at(0), 1, 2) },
        PlannedPacket { path: to_arbiter, ..PlannedPacket::new(at(9_000_000), 1, ARBITER) },
        PlannedPacket {
            path: route(&[pod.host(2).number]),
            ..PlannedPacket::new(at(9_000_000), ARBITER, 2)
        },
    ];
    let received = script::received(&run(spec(topology), sends.into()));
    let short = Span::from_ns(1_000);
    let more = |cable: Span| cable.saturating_sub(short);
    assert_eq!(received[0].at, at(0) + latency(4, 1_500) + more(from) + more(to));
    let last = |cable: Span| at(9_000_000) + latency(2, 64) + more(cable);
    assert_eq!(received[1].at, last(from) + more(pod.arbiter(0).link.propagation));
    assert_eq!(received[2].at, last(to) + more(pod.arbiter(1).link.propagation));
}

#[test]
fn ports_that_a_switch_does_not_have_and_links_that_are_down_drop() {
    let pod = pod();
    let has = pod.arbiter(0).number + 1;
    let sends = [
        PlannedPacket { path: route(&[has]), ..PlannedPacket::new(at(0), 0, 2) },
        PlannedPacket { path: by_agg(&pod, 0, 0, 2), ..PlannedPacket::new(at(9_000_000), 0, 2) },
        PlannedPacket { path: by_agg(&pod, 0, 1, 2), ..PlannedPacket::new(at(18_000_000), 0, 2) },
    ];
    let mut spec = spec(topology(0.0));
    let link = spec.topology.link_named("s0-s2").unwrap();
    let (from, until) = (Time::from_ps(1), Time::NEVER);
    spec.faults.outages.push(Outage { target: Target::Link(link), from, until });
    let sim = run(spec, sends.into());
    assert_eq!(script::received(&sim).iter().map(|received| received.id).collect::<Vec<_>>(), [2]);
    assert_eq!(dropped(&sim), [("link-down", 1), ("no-route", 1)]);
}

/// Returns the packets dropped by reason, without those that did not occur.
fn dropped(sim: &ScriptSim) -> Vec<(&'static str, u64)> {
    let tiers = sim.fabric().tier_stats();
    let sum = |reason: usize| tiers.iter().map(|tier| tier.drops[reason]).sum::<u64>();
    let all = fabric::DropReason::NAMES.into_iter().zip((0..).map(sum));
    all.filter(|(_, count)| *count > 0).collect()
}
