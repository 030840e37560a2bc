//! The engine against queueing theory and closed forms.

use std::sync::Arc;

use crate::common::{Blast, RankedBlast, Segmentation};
use rampmeter_sim::*;
use rampmeter_testkit::star;
use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time};

fn spec(topology: TopologySpec) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(topology.build().unwrap(), 1);
    spec.fabric.buffer = Buffer::PerPort(Bytes::new(1 << 30));
    spec.drain = Span::from_us(1_000_000);
    spec.sample = None;
    spec
}

#[derive(Default)]
struct Fcts(Vec<(FlowRecord, Span)>);

impl Probe for Fcts {
    fn on_flow(&mut self, record: &FlowRecord) {
        let delivered = record.delivered.expect("nothing is lost here");
        self.0.push((*record, delivered - record.arrival));
    }
}

/// The sum of completion times, for runs of which nobody could keep every record.
#[derive(Default)]
struct Total {
    messages: u64,
    ps: u128,
}

impl Probe for Total {
    fn on_flow(&mut self, record: &FlowRecord) {
        let delivered = record.delivered.expect("nothing is lost here");
        self.messages += 1;
        self.ps += u128::from((delivered - record.arrival).as_ps());
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
        let src = NodeId::new(1 + rng.uniform_below(n - 1) as u32);
        Arrival::new(Time::from_ps(at as u64), src, NodeId::new(0), Bytes::new(1460))
    });
    let mut total = Total::default();
    let mut sim = Sim::<Blast, _, _>::new(
        spec(star(n as u64)),
        Arc::new(Segmentation::default()),
        arrivals,
        &mut total,
    );
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    drop(sim);
    assert_eq!(total.messages, packets);
    // Alone: 120 ns on each of two links and 650 ns behind each.
    let alone = 1_540_000.0;
    (total.ps as f64 / packets as f64 - alone) / service
}

/// M/D/1: W = rho / (2 (1 - rho)) service times. Packets queue at their own uplink as well, which
/// is M/D/1 at load rho / 511; its small wait is taken off the measured sum.
fn assert_wait_is_that_of_m_d_1(rho: f64, packets: u64) {
    let at_source = rho / 511.0;
    let expected = rho / (2.0 * (1.0 - rho)) + at_source / (2.0 * (1.0 - at_source));
    let measured = mean_wait(rho, packets, 11);
    let error = measured / expected - 1.0;
    assert!(error.abs() < 0.01, "load {rho}: wait {measured}, M/D/1 {expected}");
}

#[test]
fn waiting_at_one_port_is_that_of_m_d_1_within_1_percent() {
    assert_wait_is_that_of_m_d_1(0.3, 1_000_000);
    assert_wait_is_that_of_m_d_1(0.6, 3_000_000);
}

#[test]
#[ignore = "long"]
fn waiting_at_one_port_at_a_high_load_is_that_of_m_d_1_within_1_percent() {
    assert_wait_is_that_of_m_d_1(0.9, 30_000_000);
}

#[test]
fn a_lone_message_takes_exactly_the_pipeline_time_on_every_topology() {
    let leaf_spine = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 3,
        hosts_per_rack: 4,
        spines: 2,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    let fat_tree = TopologySpec::FatTree(topologies::FatTree {
        pods: None,
        k: 4,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    // (topology, far host, links, serialisation of one 1500 B packet over the path in ns)
    let cases = [(star(5), 4, 2, 240), (leaf_spine, 11, 4, 300), (fat_tree, 15, 6, 720)];
    for (topology, dst, links, one_packet) in cases {
        for packets in [1u64, 2, 49, 1000] {
            let size = Bytes::new(packets * 1460);
            let at = Time::from_ps(12_345);
            let arrival = Arrival::new(at, NodeId::new(0), NodeId::new(dst), size);
            let mut fcts = Fcts::default();
            let arrivals = std::iter::once(arrival);
            let config = Arc::new(Segmentation::default());
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
    let arrival = Arrival::new(Time::ZERO, NodeId::new(0), NodeId::new(1), size);
    let mut fcts = Fcts::default();
    let arrivals = std::iter::once(arrival);
    let mut sim =
        Sim::<Blast, _, _>::new(spec, Arc::new(Segmentation::default()), arrivals, &mut fcts);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    drop(sim);
    // Header in (5.12 ns), then three bodies back to back, and 650 ns behind each link.
    assert_eq!(fcts.0[0].1, Span::from_ps(5_120 + 3 * 120_000 + 2 * 650_000));
}

/// Token buckets: of n packets the last is sent n - 1 packet times after the first, less the burst.
/// Only the last link adds a packet's time.
#[test]
fn shaped_links_keep_their_rate_but_for_the_burst() {
    for (burst, packets) in [(0, 1), (0, 10), (120, 10), (300, 10), (300, 2)] {
        let mut spec = spec(star(2));
        spec.fabric.switching = Switching::Shaped { burst: Span::from_ns(burst) };
        let size = Bytes::new(1460 * packets);
        // The links have been idle for long.
        let at = Time::ZERO + Span::from_us(5);
        let arrival = Arrival::new(at, NodeId::new(0), NodeId::new(1), size);
        let mut fcts = Fcts::default();
        let arrivals = std::iter::once(arrival);
        let mut sim =
            Sim::<Blast, _, _>::new(spec, Arc::new(Segmentation::default()), arrivals, &mut fcts);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        drop(sim);
        let paced = Span::from_ns(((packets - 1) * 120).saturating_sub(burst));
        let expected = paced + Span::from_ns(120 + 2 * 650);
        assert_eq!(fcts.0[0].1, expected, "{packets} packets, burst {burst} ns");
    }
}

/// Ten hosts send ten times the buffer of host 0's port. Packets that find it full are dropped, as
/// all are of one class; its queue never exceeds the buffer.
#[test]
fn a_full_port_drops_newcomers_and_stays_within_its_buffer() {
    for overflow in [Overflow::TailDrop, Overflow::PushOut] {
        let mut spec = spec(star(11));
        spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
        spec.fabric.overflow = overflow;
        spec.drain = Span::from_us(100);
        let arrivals = (1..11)
            .map(|h| Arrival::new(Time::ZERO, NodeId::new(h), NodeId::new(0), Bytes::new(14_600)));
        let config = Arc::new(Segmentation::default());
        let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::TimedOut);
        let tiers = sim.fabric().tier_stats();
        let down = tiers.iter().find(|t| t.name == "tor-down").unwrap();
        assert_eq!(down.queue_max, Bytes::new(15_000));
        // Ten bursts of ten arrive, one each packet time. Of the first, one is sent at once. Of
        // each later one, as many are queued as fit, and then one is sent. At the end nine are
        // queued.
        let [full, pushed_out, ..] = down.drops;
        assert_eq!((full + sim.counters().fresh_packets, pushed_out), (100, 0));
        assert_eq!(sim.counters().fresh_packets, 10 + 9);
    }
}

/// Four senders of low-priority packets and then one of high-priority packets share a port. With
/// push-out every high-priority packet is delivered. With tail drop none that finds the port full
/// is.
#[test]
fn push_out_drops_only_lower_priorities() {
    let mut delivered = Vec::new();
    for overflow in [Overflow::PushOut, Overflow::TailDrop] {
        let mut spec = spec(star(6));
        spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
        spec.fabric.overflow = overflow;
        spec.drain = Span::from_us(200);
        let from = |src: u32, at: u64, packets: u64| {
            Arrival::new(
                Time::from_ps(at),
                NodeId::new(src),
                NodeId::new(0),
                Bytes::new(1460 * packets),
            )
        };
        // Host 5 sends at priority 1, the others at 6. Packets arrive and depart every 120 ns.
        // Those of hosts 3 and 4 arrive half an interval after the port has sent one, so that host
        // 5's find it full.
        let low = [(1, 0), (2, 0), (3, 60_000), (4, 60_000)].map(|(h, at)| from(h, at, 40));
        let arrivals = low.into_iter().chain([from(5, 2_000_000, 10)]);
        let config =
            Arc::new(Segmentation { urgent: Some(NodeId::new(5)), ..Segmentation::default() });
        let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, Deliveries::default());
        assert_eq!(sim.run(u64::MAX), Status::TimedOut);
        let pushed: u64 = sim.fabric().tier_stats().iter().map(|t| t.drops[1]).sum();
        assert_eq!(pushed > 0, overflow == Overflow::PushOut);
        delivered.push(sim.into_probe().0);
    }
    assert!(delivered[0].contains(&5), "push-out delivers the urgent message whole");
    assert!(!delivered[1].contains(&5), "tail drop does not");
}

#[derive(Default)]
struct Deliveries(Vec<u32>);

impl Probe for Deliveries {
    fn on_flow(&mut self, record: &FlowRecord) {
        if record.delivered.is_some() {
            self.0.push(record.src.get());
        }
    }
}

/// A message on a path whose spine fails is cut off, the next one takes the other spine; after the
/// repair both are used again.
#[test]
fn routing_follows_failures_and_repairs() {
    let topology = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 2,
        hosts_per_rack: 2,
        spines: 2,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    let mut spec = spec(topology);
    spec.drain = Span::from_us(100);
    let (from, until) = (Time::from_ps(50_000_000), Time::from_ps(100_000_000));
    spec.faults.outages.push(Outage { target: Target::Switch(2), from, until });
    let send = |at: u64, packets: u64| {
        Arrival::new(Time::from_ps(at), NodeId::new(0), NodeId::new(3), Bytes::new(1460 * packets))
    };
    // The second is in flight when spine 0 (switch 2) fails, the others are not.
    let arrivals =
        [send(0, 100), send(45_000_000, 100), send(60_000_000, 100), send(110_000_000, 100)];
    let config = Arc::new(Segmentation::default());
    let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals.into_iter(), NoProbe);
    assert_eq!(sim.run(u64::MAX), Status::TimedOut);
    assert_eq!(sim.counters().delivered, 3);
    let lost: u64 = sim.fabric().tier_stats().iter().map(|t| t.drops[3]).sum();
    assert!(lost > 0 && lost < 60, "{lost} packets were on the failed links");
}

/// pFabric §4.1: a port sends the message with the fewest remaining bytes first, even if another
/// arrived before. Six messages of different lengths meet at one link and finish in the order of
/// their lengths.
#[test]
fn ports_that_queue_by_rank_serve_the_shortest_message_first() {
    let lengths = [60, 10, 50, 20, 40, 30];
    let arrivals = lengths.iter().zip(1..).map(|(&packets, src)| {
        Arrival::new(Time::ZERO, NodeId::new(src), NodeId::new(0), Bytes::new(1460 * packets))
    });
    let config = Arc::new(Segmentation::default());
    let mut sim =
        Sim::<RankedBlast, _, _>::new(spec(star(7)), config, arrivals, Deliveries::default());
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    assert_eq!(sim.into_probe().0, [2, 4, 6, 5, 3, 1]);
}

/// pFabric §4.2: a full port drops packets of the message with the most, also those that wait; the
/// shortest message loses none.
#[test]
fn ports_that_queue_by_rank_drop_the_longest_message() {
    let mut spec = spec(star(5));
    spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
    spec.drain = Span::from_us(200);
    let arrivals = [40, 39, 38, 8].iter().zip(1..).map(|(&packets, src)| {
        let at = Time::from_ps(u64::from(src == 4) * 2_000_000);
        Arrival::new(at, NodeId::new(src), NodeId::new(0), Bytes::new(1460 * packets))
    });
    let config = Arc::new(Segmentation::default());
    let mut sim = Sim::<RankedBlast, _, _>::new(spec, config, arrivals, Deliveries::default());
    assert_eq!(sim.run(u64::MAX), Status::TimedOut);
    let [_, pushed_out, ..] =
        sim.fabric().tier_stats().iter().find(|t| t.name == "tor-down").unwrap().drops;
    assert!(pushed_out > 0);
    assert!(sim.into_probe().0.starts_with(&[4]), "the shortest message is first and whole");
}

/// An interface that queues has a switch port's buffer. Packets beyond it are dropped there, and
/// those that fit are sent at line rate. An interface that pulls drops nothing.
#[test]
fn interfaces_queue_and_drop_if_the_fabric_configures_it() {
    for (interface, dropped) in [(Interface::Queue, 100 - 11), (Interface::Pull, 0)] {
        let mut spec = spec(star(2));
        spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
        spec.fabric.interface = interface;
        spec.drain = Span::from_us(100);
        let size = Bytes::new(1460 * 100);
        let arrival = Arrival::new(Time::ZERO, NodeId::new(0), NodeId::new(1), size);
        let config = Arc::new(Segmentation::default());
        let mut sim = Sim::<Blast, _, _>::new(spec, config, [arrival].into_iter(), NoProbe);
        sim.run(u64::MAX);
        let host = &sim.fabric().tier_stats()[0];
        assert_eq!((host.name.as_str(), host.data_drops), ("host-up", dropped));
        assert_eq!(sim.counters().fresh_packets, 100 - dropped);
    }
}

/// With a slot as long as a full packet, buffers count packets of any length: here ten, behind the
/// one on the link. Without, 150 packets of 100 bytes fit.
#[test]
fn slots_make_buffers_count_packets() {
    for (slot, waiting) in [(0, 150), (1_500, 10)] {
        let mut spec = spec(star(2));
        spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
        spec.fabric.interface = Interface::Queue;
        spec.fabric.express_max = 0;
        spec.fabric.buffer_cell = slot;
        spec.drain = Span::from_us(100);
        let arrivals = (0..1_000)
            .map(|_| Arrival::new(Time::ZERO, NodeId::new(0), NodeId::new(1), Bytes::new(60)));
        let config = Arc::new(Segmentation::default());
        let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, NoProbe);
        sim.run(u64::MAX);
        let host = &sim.fabric().tier_stats()[0];
        assert_eq!(host.data_drops, 1_000 - waiting - 1, "{host:?}");
    }
}

/// With cut-through a packet from a slow link waits until enough of it is received before a faster
/// link takes it. That link serves others meanwhile: four hosts at 10 Gbit/s fill one link of 40.
#[test]
fn a_fast_link_does_not_wait_for_a_partly_received_packet() {
    let topology = TopologySpec::Dumbbell(topologies::Dumbbell {
        hosts_per_side: 4,
        access_gbps: 10.0,
        core_gbps: 40.0,
        propagation_ns: 200.0,
        switch_ns: 0.0,
        host_ns: 0.0,
    });
    let mut spec = spec(topology);
    spec.fabric.switching = Switching::CutThrough { header: Bytes::new(40) };
    let arrivals = (0..4).map(|h| {
        let size = Bytes::new(1460 * 100);
        Arrival::new(Time::ZERO, NodeId::new(h), NodeId::new(4 + h), size)
    });
    let config = Arc::new(Segmentation::default());
    let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, Fcts::default());
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    // 100 packets of 1.2 us, and 600 ns of wires. The first may start on the fast link after 0.9
    // us, and its head takes 32 ns. At the fast link the last of four waits for three packets of
    // 300 ns.
    let slowest = sim.into_probe().0.iter().map(|(_, fct)| fct.as_ps()).max().unwrap();
    let alone = 100 * 1_200_000 + 600_000 + 900_000 + 8_000;
    assert!((alone..=alone + 3 * 300_000 + 32_000).contains(&slowest), "{slowest} of {alone}");
}
