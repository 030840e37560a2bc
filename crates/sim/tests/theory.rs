//! The engine against queueing theory and closed forms.

mod common;

use std::sync::Arc;

use common::{Blast, Cut};
use rampmeter_core::{Bytes, NodeId, Purpose, Rng, Span, Time};
use rampmeter_sim::*;

fn spec(topology: TopologySpec) -> SimSpec {
    SimSpec {
        topology: topology.build().unwrap(),
        fabric: FabricConfig { buffer: Buffer::PerPort(Bytes::new(1 << 30)), ..Default::default() },
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed: 1,
        drain: Span::from_us(1_000_000),
        sample: None,
        paranoid: true,
    }
}

fn star(hosts: u64) -> TopologySpec {
    TopologySpec::Star {
        hosts,
        access_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    }
}

#[derive(Default)]
struct Fcts(Vec<(FlowRecord, Span)>);

impl Probe for Fcts {
    fn on_flow(&mut self, record: &FlowRecord) {
        let delivered = record.delivered.expect("nothing is lost here");
        self.0.push((*record, delivered - record.arrival));
    }
}

/// Mean waiting time of one-packet messages at one link, in units of the service time. Enough
/// hosts send that their own links hardly shape the arrivals: each carries rho / (n - 1).
fn mean_wait(rho: f64, packets: u64, seed: u64) -> f64 {
    let n = 512;
    let service = 120_000.0;
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let mut at = 0.0;
    let arrivals = (0..packets).map(move |_| {
        at += rng.exponential() * service / rho;
        let src = NodeId::new(1 + rng.below(n - 1) as u32);
        Arrival { at: Time::from_ps(at as u64), src, dst: NodeId::new(0), size: Bytes::new(1460) }
    });
    let mut fcts = Fcts::default();
    let mut sim = Sim::<Blast, _, _>::new(
        spec(star(n as u64)),
        Arc::new(Cut::default()),
        arrivals,
        &mut fcts,
    );
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    drop(sim);
    // Alone: 120 ns on each of two links and 650 ns behind each.
    let alone = 1_540_000.0;
    let total: f64 = fcts.0.iter().map(|(_, fct)| fct.as_ps() as f64 - alone).sum();
    total / fcts.0.len() as f64 / service
}

/// M/D/1: W = rho / (2 (1 - rho)) service times. Packets queue at their own uplink as well, which
/// is M/D/1 at load rho / 511; its small wait is taken off the measured sum.
#[test]
fn waiting_at_one_port_is_that_of_m_d_1_within_1_percent() {
    for (rho, packets) in [(0.3, 1_000_000), (0.6, 2_000_000), (0.9, 8_000_000)] {
        let at_source = rho / 511.0;
        let expected = rho / (2.0 * (1.0 - rho)) + at_source / (2.0 * (1.0 - at_source));
        let measured = mean_wait(rho, packets, 11);
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.01, "load {rho}: wait {measured}, M/D/1 {expected}");
    }
}

#[test]
fn a_lone_message_takes_exactly_the_pipeline_time_on_every_topology() {
    let leaf_spine = TopologySpec::LeafSpine {
        racks: 3,
        hosts_per_rack: 4,
        spines: 2,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    };
    let fat_tree = TopologySpec::FatTree {
        k: 4,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    };
    // (topology, far host, links, serialisation of one 1500 B packet over the path in ns)
    let cases = [(star(5), 4, 2, 240), (leaf_spine, 11, 4, 300), (fat_tree, 15, 6, 720)];
    for (topology, dst, links, one_packet) in cases {
        for packets in [1u64, 2, 49, 1000] {
            let size = Bytes::new(packets * 1460);
            let at = Time::from_ps(12_345);
            let arrival = Arrival { at, src: NodeId::new(0), dst: NodeId::new(dst), size };
            let mut fcts = Fcts::default();
            let arrivals = std::iter::once(arrival);
            let config = Arc::new(Cut::default());
            let mut sim =
                Sim::<Blast, _, _>::new(spec(topology.clone()), config, arrivals, &mut fcts);
            assert_eq!(sim.run(u64::MAX), Status::Finished);
            drop(sim);
            let expected = Span::from_ns(650 * links + one_packet + (packets - 1) * 120);
            assert_eq!(fcts.0[0].1, expected, "{packets} packets over {links} links");
        }
    }
}

#[test]
fn cut_through_saves_the_body_of_the_packet_at_each_switch_of_equal_rate() {
    let mut spec = spec(star(2));
    spec.fabric.switching = Switching::CutThrough { header: Bytes::new(64) };
    let size = Bytes::new(1460 * 3);
    let arrival = Arrival { at: Time::ZERO, src: NodeId::new(0), dst: NodeId::new(1), size };
    let mut fcts = Fcts::default();
    let arrivals = std::iter::once(arrival);
    let mut sim = Sim::<Blast, _, _>::new(spec, Arc::new(Cut::default()), arrivals, &mut fcts);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    drop(sim);
    // Header in (5.12 ns), then three bodies back to back, and 650 ns behind each link.
    assert_eq!(fcts.0[0].1, Span::from_ps(5_120 + 3 * 120_000 + 2 * 650_000));
}

#[test]
fn strict_priority_pushes_out_the_newest_of_the_lowest_class_only() {
    // Ten hosts fill host 0's port with more than its buffer holds.
    let mut spec = spec(star(11));
    spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
    spec.drain = Span::from_us(100);
    let arrivals = (1..11).map(|h| Arrival {
        at: Time::ZERO,
        src: NodeId::new(h),
        dst: NodeId::new(0),
        size: Bytes::new(14_600),
    });
    let config = Arc::new(Cut::default());
    let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, NoProbe);
    assert_eq!(sim.run(u64::MAX), Status::Censored);
    let tiers = sim.fabric().tier_stats();
    let down = tiers.iter().find(|t| t.name == "tor-down").unwrap();
    assert!(down.queue_max <= Bytes::new(15_000));
    // All of one class: the newcomer goes, nothing is pushed out. 100 packets came, and while 10
    // a slot arrive one leaves.
    assert_eq!(down.drops[1], 0);
    assert_eq!(down.drops[0] + sim.fabric().stats().delivered, 100);
}
