//! Hosts that forward packets: BCube and tori of hosts.

#[allow(dead_code, reason = "other test programs use the rest")]
use std::sync::Arc;

use crate::common::Blast;
use rampmeter_sim::*;
use rampmeter_types::{Bytes, NodeId, Purpose, Rate, Rng, Span, Time};

fn build(
    hosts: u32,
    switches: u32,
    links: &[[String; 2]],
    forwards: bool,
) -> Result<Topology, String> {
    let link = |[a, b]: &[String; 2]| {
        format!("{{ between = ['{a}', '{b}'], gbps = 10.0, propagation-ns = 500.0 }}")
    };
    let links: Vec<String> = links.iter().map(link).collect();
    let text = format!(
        "kind = 'links'\nhosts = {hosts}\nswitches = {switches}\nswitch-ns = 100.0\n\
         host-ns = 100.0\nhosts-forward = {forwards}\nlinks = [{}]",
        links.join(", ")
    );
    let spec = toml::from_str::<TopologySpec>(&text).unwrap();
    spec.build().map_err(|error| error.to_string())
}

fn node(kind: char, number: u32) -> String {
    format!("{kind}{number}")
}

/// BCube(n, 1): host (i, j) has a link to switch i of level 0 and to switch j of level 1.
fn bcube(n: u32) -> Vec<[String; 2]> {
    let of = |host: u32| {
        let (i, j) = (host / n, host % n);
        [[node('h', host), node('s', i)], [node('h', host), node('s', n + j)]]
    };
    (0..n * n).flat_map(of).collect()
}

/// Returns the hosts in a grid whose rows and columns are rings.
fn torus(columns: u32, rows: u32) -> Vec<[String; 2]> {
    let at = |x: u32, y: u32| node('h', x % columns + y % rows * columns);
    let of = |x: u32, y: u32| [[at(x, y), at(x + 1, y)], [at(x, y), at(x, y + 1)]];
    (0..rows).flat_map(|y| (0..columns).flat_map(move |x| of(x, y))).collect()
}

#[test]
fn the_error_of_hosts_that_do_not_forward_names_the_remedy() {
    let hint = "hosts do not forward packets unless topology.hosts-forward is true";
    for (hosts, switches, links) in [(16, 8, bcube(4)), (9, 0, torus(3, 3))] {
        let error = build(hosts, switches, &links, false).unwrap_err();
        assert!(error.ends_with(hint), "{error}");
        assert!(build(hosts, switches, &links, true).is_ok());
    }
    // Two stars without a link between them are not joined by hosts either.
    let apart = [["h0", "s0"], ["h1", "s0"], ["h2", "s1"], ["h3", "s1"]];
    let apart = apart.map(|ends| ends.map(str::to_owned));
    for forwards in [false, true] {
        let error = build(4, 2, &apart, forwards).unwrap_err();
        assert_eq!(error, "expected a path between all hosts, got none between h0 and h2");
    }
}

#[test]
fn a_forwarding_host_has_a_switch_and_one_link_of_their_total_rate() {
    let topology = build(9, 0, &torus(3, 3), true).unwrap();
    assert_eq!((topology.n_hosts(), topology.n_switches()), (9, 9));
    let (links, own) = topology.links().split_at(18);
    assert!(links.iter().all(|l| matches!((l.a, l.b), (Node::Switch(_), Node::Switch(_)))));
    for (host, link) in (0..).zip(own) {
        assert_eq!((link.a, link.b), (Node::Host(host), Node::Switch(host)));
        assert_eq!(link.rate, Rate::from_gbps(40));
        assert_eq!(link.propagation, Span::ZERO);
    }
    // A host with one link has nothing to forward.
    let line = [["h0", "s0"], ["h1", "s0"], ["h1", "s1"], ["h2", "s1"]];
    let line = line.map(|ends| ends.map(str::to_owned));
    let topology = build(3, 2, &line, true).unwrap();
    assert_eq!(topology.n_switches(), 3);
    assert_eq!(topology.links()[0].a, Node::Host(0));
    assert_eq!(topology.links()[4].b, Node::Switch(2));
}

/// A packet of 1500 bytes takes 1200 ns on a link of 10 Gbit/s, and 500 ns behind it. It takes 100
/// ns in each switch, each host that forwards, and the receiver.
#[test]
fn a_packet_traverses_the_intermediate_hosts() {
    let line: Vec<[String; 2]> = (0..4).map(|h| [node('h', h), node('h', h + 1)]).collect();
    let topology = build(5, 0, &line, true).unwrap();
    let mut spec = rampmeter_testkit::spec(topology, 1);
    spec.drain = Span::from_us(1_000);
    let size = Bytes::new(1_460);
    let arrivals = [Arrival::new(Time::ZERO, NodeId::new(0), NodeId::new(4), size)];
    let mut sim =
        Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals.into_iter(), Latency::default());
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    // The host's own link has 10 Gbit/s at h0 and h4, which have one link each, and no delay.
    let expected = 6 * 1_200 + 4 * 500 + 6 * 100;
    assert_eq!(sim.into_probe().0, Some(Span::from_ns(expected)));
}

#[derive(Default)]
struct Latency(Option<Span>);

impl Probe for Latency {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0 = record.delivered.map(|at| at - record.arrival);
    }
}

/// In a connected graph of hosts alone every host reaches every other.
#[test]
fn random_graphs_of_hosts_carry_every_message() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let n = 2 + rng.uniform_below(8) as u32;
        let mut links: Vec<[String; 2]> = Vec::new();
        for host in 1..n {
            links.push([node('h', rng.uniform_below(host as usize) as u32), node('h', host)]);
        }
        for _ in 0..rng.uniform_below(6) {
            let (a, b) =
                (rng.uniform_below(n as usize) as u32, rng.uniform_below(n as usize) as u32);
            if a != b {
                links.push([node('h', a), node('h', b)]);
            }
        }
        let topology = build(n, 0, &links, true).unwrap();
        let mut spec = rampmeter_testkit::spec(topology, seed);
        spec.fabric.buffer = Buffer::PerPort(Bytes::new(4_000_000));
        spec.drain = Span::from_us(1_000_000);
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let arrival = |(a, b)| {
            let size = Bytes::new(14_600);
            Arrival::new(Time::ZERO, NodeId::new(a), NodeId::new(b), size)
        };
        let arrivals: Vec<Arrival> = pairs.map(arrival).collect();
        let n_messages = arrivals.len() as u64;
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals.into_iter(), NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::Finished, "seed {seed}");
        assert_eq!(sim.counters().delivered, n_messages);
    }
}
