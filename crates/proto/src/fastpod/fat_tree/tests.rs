//! A core switch alone: its instants by arithmetic, its memory under arbiters that obey late, and
//! its restart.

mod memory;

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::SourceRoute;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, FabricFacts, MsgId, NodeId, Packet, PayloadRef, Priority, Purpose, Rate, Rng, Span,
    SwitchFacts, SwitchProgram, Time, TransitPacket, Verdict,
};

use super::core_switch::FastpodProgram;
use crate::fastpod::config::{Fastpod, FastpodConfig};
use crate::fastpod::routes::control;
use crate::fastpod::topology::{CoreSwitch, Pod, PodHost, Pods};
use crate::fastpod::wire::{Ack, Demand, FastpodHeader, List, NO_DST, Relay};

const RATE: Rate = Rate::from_gbps(100);
const CABLE: Span = Span::from_ns(1_000);
/// A hop: the header, a cable and a switch.
const HOP: Span = Span::from_ps(5_120 + 1_000_000 + 250_000);
const SLOT: u64 = 370_240;
const FIRST_PORT: u32 = 500;
/// Hosts a rack.
const N: u16 = 4;

/// Pods of four racks of four hosts below four aggregation switches.
fn pods(n_pods: u16) -> Pods {
    let pod = |number: u16| Pod {
        rate: RATE,
        header: Bytes::new(64),
        switch_latency: Span::from_ns(250),
        host_latency: Span::from_ns(100),
        hosts: (0..N * N)
            .map(|n| PodHost { rack: n / N, index: n % N, port: n % N, propagation: CABLE })
            .collect(),
        trunk_propagation: (CABLE, CABLE),
        arbiter_propagation: vec![vec![CABLE]; N.into()],
        ports_to_agg: vec![(N..2 * N).collect(); N.into()],
        ports_to_rack: vec![(0..N).collect(); N.into()],
        ports_to_arbiter: vec![vec![2 * N]; N.into()],
        first_host: u32::from(number * N * N),
        ports_to_core: vec![(N..2 * N).collect(); N.into()],
        agg_arbiter_propagation: vec![vec![CABLE]; N.into()],
        agg_ports_to_arbiter: vec![vec![2 * N]; N.into()],
    };
    let core = |n: u16| CoreSwitch {
        switch: 100 + u32::from(n),
        agg: n / N,
        index: n % N,
        propagation: CABLE,
        ports: (0..n_pods).collect(),
    };
    Pods { pods: (0..n_pods).map(pod).collect(), cores: (0..N * N).map(core).collect() }
}

fn fastpod(config: FastpodConfig, n_pods: u16) -> Arc<Fastpod> {
    let facts = FabricFacts {
        n_hosts: u32::from(n_pods * N * N),
        access_rate: RATE,
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    Arc::new(config.derive(&facts, Some(pods(n_pods))).unwrap())
}

/// A core switch, and the packets that it has sent, with times and ports.
struct Bench {
    fastpod: Arc<Fastpod>,
    hop: FastpodProgram,
    sent: VecDeque<(Time, u16, Packet<FastpodHeader>)>,
}

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

impl Bench {
    /// Core switch 6: the third of the second aggregation switch.
    fn new(fastpod: &Arc<Fastpod>) -> Self {
        let hop = Self::program(fastpod);
        Self { fastpod: Arc::clone(fastpod), hop, sent: VecDeque::new() }
    }

    fn program(fastpod: &Arc<Fastpod>) -> FastpodProgram {
        let rng = Rng::new(1, 0, Purpose::SwitchProgram);
        let rates = vec![RATE; fastpod.n_pods().into()];
        let facts = SwitchFacts { number: 106, first_port: FIRST_PORT, rates, rng };
        FastpodProgram::new(fastpod, &facts)
    }

    fn drain(&mut self, now: Time) {
        while let Some((port, packet)) = self.hop.poll_transmit() {
            self.sent.push_back((now, (port - FIRST_PORT) as u16, packet));
        }
    }

    /// Runs it until an instant.
    fn run(&mut self, until: Time) {
        while self.hop.poll_timeout() <= until {
            let now = self.hop.poll_timeout();
            self.hop.handle_timeout(now);
            self.drain(now);
            assert!(self.hop.poll_timeout() > now, "it stands still at {now}");
        }
    }

    fn give(&mut self, now: Time, pod: u16, mut packet: Packet<FastpodHeader>) -> Verdict {
        self.run(now);
        let ingress = FIRST_PORT + u32::from(pod);
        let crossing = TransitPacket { now, ingress, egress: None, choices: &[] };
        let verdict = self.hop.on_forward(crossing, &mut packet);
        self.drain(now);
        verdict
    }

    fn control(&self, src: NodeId, header: FastpodHeader) -> Packet<FastpodHeader> {
        control(&self.fastpod, src.get(), self.fastpod.core(6), header)
    }

    /// Delivers a packet of a pod's arbiter whose clock is ahead by `offset`.
    fn schd(&mut self, now: Time, pod: u16, offset: i64, schd: Schd) -> Verdict {
        let stamp = (now.as_ps() - HOP.as_ps() * 2).wrapping_add_signed(offset);
        let Schd { epoch, slot, dst, incarnation, last_rts, granted, relays } = schd;
        let header = FastpodHeader::CoreSchd {
            epoch,
            stamp,
            slot,
            dst,
            incarnation,
            last_rts,
            granted,
            relays,
        };
        self.give(now, pod, self.control(self.fastpod.arbiter(pod, 0), header))
    }

    fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.hop.counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.expect("it is counted")
    }
}

/// Content of an SCHD.
#[derive(Clone, Copy)]
struct Schd {
    epoch: u32,
    slot: u32,
    dst: u16,
    incarnation: u32,
    last_rts: u32,
    granted: u32,
    relays: List<Relay, 2>,
}

fn nothing() -> Schd {
    let (slot, incarnation, last_rts, granted) = (0, 0, 0, 0);
    Schd { epoch: 2, slot, dst: NO_DST, incarnation, last_rts, granted, relays: list(&[]) }
}

fn list(relays: &[Relay]) -> List<Relay, 2> {
    let mut list = List::default();
    assert!(relays.iter().all(|relay| list.push(*relay)), "{relays:?}");
    list
}

fn cell(src: u32, dst: u32, seq: u32) -> Packet<FastpodHeader> {
    Packet {
        header: FastpodHeader::Cell { flow: 0, tx_slot: 0, seq, size: 1_000_000 },
        payload: PayloadRef { offset: u64::from(seq) * 1_460, msg: MsgId::new(0), len: 1_460 },
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        wire_bytes: 1_500,
        path: 0,
        priority: Priority::new(1),
        marks: Marks::ROUTED.union(Marks::SOURCE_ROUTED),
    }
}

/// Cells and RTSs are sent at the instants of the arbiter's slots, by a clock that is 5 us ahead.
#[test]
fn instants_are_those_of_the_arbiters_slots() {
    let mut bench = Bench::new(&fastpod(FastpodConfig::paper(), 2));
    let dst = 16 + 13;
    for seq in 0..4 {
        assert_eq!(bench.give(at(9_000_000), 0, cell(3, dst, seq)), Verdict::Consume);
    }
    assert_eq!(bench.schd(at(10_000_000), 1, 5_000_000, nothing()), Verdict::Consume);
    bench.run(at(18_000_000));
    // Slot 37 starts at 37 slots and a hop by the arbiter's clock; place 2 is behind two cells.
    let (when, port, packet) = bench.sent.pop_front().unwrap();
    assert_eq!((when, port), (at(37 * SLOT + HOP.as_ps() + 240_000 - 5_000_000), 1));
    let FastpodHeader::CoreRts { epoch, incarnation, number, open, demands, .. } = packet.header
    else {
        panic!("{packet:?}")
    };
    // Ten microseconds are 27 slots, and incarnations count from one. Nothing has arrived from
    // other pods.
    assert_eq!((epoch, incarnation, number, open), (2, 28, 1, 0));
    assert_eq!(demands.as_slice(), [Demand { dst: dst as u16, total: 2 }]);
    assert_eq!(packet.dst, bench.fastpod.arbiter(1, 0));
    assert_eq!(SourceRoute::split(packet.path), (2 * N, 0));
    assert_eq!(bench.sent, [], "what is asked for is not asked for again");
    let granted =
        Schd { slot: 60, dst: dst as u16, incarnation: 28, last_rts: 1, granted: 1, ..nothing() };
    bench.schd(at(18_000_000), 1, 5_000_000, granted);
    bench.run(at(19_000_000));
    // From place 2 to place 1: three cells, with a gap before the second, and one for the RTS.
    let start = 60 * SLOT + HOP.as_ps() - 5_000_000;
    let when: Vec<Time> = bench.sent.iter().map(|sent| sent.0).collect();
    assert_eq!(when, [at(start), at(start + 125_120), at(start + 250_240)]);
    for (seq, (_, port, packet)) in (0..).zip(&bench.sent) {
        let (rack, rest) = SourceRoute::split(packet.path);
        assert_eq!((*port, rack, SourceRoute::split(rest)), (1, 3, (1, 0)));
        assert_eq!(packet.payload.offset, seq * 1_460, "in the order of arrival");
    }
    assert_eq!((bench.counter("core_cells"), bench.counter("core_cells_max")), (4, 4));
}

/// Short packets to one host share the cells of a core switch, back to back. The first that does
/// not fit begins the next cell, and the queue of the link is still held.
#[test]
fn short_packets_share_cells() {
    let config = FastpodConfig { packing: true, ..FastpodConfig::paper() };
    let mut bench = Bench::new(&fastpod(config, 2));
    let dst = 16 + 13;
    let short = |seq| Packet { wire_bytes: 400, ..cell(3, dst, seq) };
    for seq in 0..4 {
        assert_eq!(bench.give(at(9_000_000), 0, short(seq)), Verdict::Consume);
    }
    bench.give(at(9_000_000), 0, cell(3, dst, 4));
    bench.schd(at(10_000_000), 1, 5_000_000, nothing());
    bench.run(at(18_000_000));
    let (.., rts) = bench.sent.pop_front().unwrap();
    let FastpodHeader::CoreRts { demands, incarnation, .. } = rts.header else { panic!("{rts:?}") };
    // 3 100 bytes: three packets, one packet, and a whole cell.
    assert_eq!(demands.as_slice(), [Demand { dst: dst as u16, total: 1 }]);
    let granted =
        Schd { slot: 60, dst: dst as u16, incarnation, last_rts: 1, granted: 1, ..nothing() };
    bench.schd(at(18_000_000), 1, 5_000_000, granted);
    bench.run(at(19_000_000));
    let start = 60 * SLOT + HOP.as_ps() - 5_000_000;
    let when: Vec<Time> = bench.sent.iter().map(|sent| sent.0).collect();
    let offsets = [0, 32_000, 64_000, 125_120, 250_240];
    assert_eq!(when, offsets.map(|offset| at(start + offset)));
    assert!(bench.sent.iter().zip(0..).all(|(sent, seq)| sent.2.payload.offset == seq * 1_460));
    // 3 100 bytes are more than two cells.
    assert_eq!((bench.counter("core_cells"), bench.counter("core_cells_max")), (5, 3));
}

/// An RTS every beacon's interval, with the room for other pods, at each pod's own time.
#[test]
fn pods_receive_credit_by_their_own_clocks() {
    let fastpod = fastpod(FastpodConfig { beacon_slots: 8, ..FastpodConfig::paper() }, 3);
    let mut bench = Bench::new(&fastpod);
    let offsets = [0, 123_457, 99_999_999];
    for (pod, offset) in (0..).zip(offsets) {
        bench.schd(at(10_000_000), pod, offset, nothing());
    }
    bench.run(at(30_000_000));
    for (pod, offset) in (0..).zip(offsets) {
        let of_pod = bench.sent.iter().filter(|sent| sent.1 == pod);
        let sent: Vec<(u64, u32)> = of_pod
            .map(|(when, _, packet)| match packet.header {
                FastpodHeader::CoreRts { open, .. } => (when.as_ps() + offset as u64, open),
                _ => panic!("{packet:?}"),
            })
            .collect();
        // The first is sent as soon as a packet of another pod arrives; others are beacons.
        let position = |at: u64| (at - HOP.as_ps() - 240_000) % (8 * SLOT);
        assert!(sent.len() >= 6 && sent[1..].iter().all(|(at, _)| position(*at) == 0), "{sent:?}");
        assert!(sent[1..].iter().all(|(_, open)| *open == 0b111 & !(1 << pod)), "{sent:?}");
    }
}

/// Acknowledgements are forwarded by the port of their source's pod.
#[test]
fn acknowledgements_pass_to_the_pod_of_their_source() {
    let mut bench = Bench::new(&fastpod(FastpodConfig::paper(), 2));
    bench.schd(at(10_000_000), 0, 0, nothing());
    let relay = Relay { to: 5, from: 20, flow: 7 };
    // One to its own pod, and one to nobody.
    let wrong = [Relay { to: 21, from: 20, flow: 7 }, Relay { to: 99, from: 20, flow: 7 }];
    let relays = list(&[relay]);
    bench.schd(at(11_000_000), 1, 0, Schd { relays, ..nothing() });
    bench.schd(at(12_000_000), 1, 0, Schd { relays: list(&wrong), ..nothing() });
    bench.run(at(14_000_000));
    let notified = bench.sent.iter().filter_map(|(_, port, packet)| match packet.header {
        FastpodHeader::CoreRts { relays, .. } if !relays.as_slice().is_empty() => {
            Some((*port, relays.as_slice().to_vec()))
        }
        _ => None,
    });
    assert_eq!(notified.collect::<Vec<_>>(), [(0, vec![relay])]);
}

/// A clock that may be further off than guard bands allow is not used.
#[test]
fn a_port_without_contact_to_its_arbiter_sends_nothing() {
    let fastpod = fastpod(FastpodConfig { clock_ppb: 50_000, ..FastpodConfig::paper() }, 2);
    let mut bench = Bench::new(&fastpod);
    let last_rts = at(10_000_000);
    bench.schd(last_rts, 1, 0, nothing());
    let end = last_rts + fastpod.clock_lifetime;
    bench.run(end + fastpod.clock_lifetime * 9);
    let last = bench.sent.iter().map(|(at, ..)| *at).max().unwrap();
    assert!(last < end && last + fastpod.slot * 65 > end, "{last} of {end}");
    bench.schd(end + fastpod.clock_lifetime * 10, 1, 0, nothing());
    bench.run(end + fastpod.clock_lifetime * 11);
    assert!(bench.sent.iter().any(|(at, ..)| *at > end));
}

/// A switch that returns sends requests under a greater incarnation than before.
#[test]
fn incarnations_grow_over_restarts() {
    let fastpod = fastpod(FastpodConfig::paper(), 2);
    let mut bench = Bench::new(&fastpod);
    let mut last = 0;
    for second in 1..20 {
        let now = at(second * 1_000_000_000);
        bench.schd(now, 1, 0, nothing());
        bench.give(now, 0, cell(0, 20, 0));
        // Nobody answers: it repeats its requests as often as it may.
        bench.run(at((second + 1) * 1_000_000_000 - 1));
        for (_, _, packet) in bench.sent.drain(..) {
            let FastpodHeader::CoreRts { incarnation, .. } = packet.header else { continue };
            assert!(incarnation >= last);
            last = incarnation;
        }
        bench.hop = Bench::program(&fastpod);
        last += 1;
    }
}

#[test]
fn misdirected_packets_are_dropped() {
    let fastpod = fastpod(FastpodConfig::paper(), 2);
    let mut bench = Bench::new(&fastpod);
    let mut free = cell(3, 20, 0);
    free.marks = free.marks.union(Marks::UNSCHEDULED);
    let acks: List<Ack, 3> = List::default();
    let rts = FastpodHeader::Rts {
        epoch: 2,
        incarnation: 1,
        number: 1,
        seen: 0,
        demands: List::default(),
        acks,
    };
    let rts = bench.control(NodeId::new(3), rts);
    let schd = |dst: u16| {
        let header = FastpodHeader::CoreSchd {
            epoch: 2,
            stamp: 0,
            slot: 1,
            dst: 20,
            incarnation: 0,
            last_rts: 0,
            granted: 0,
            relays: list(&[]),
        };
        Packet { header, src: fastpod.arbiter(dst, 0), ..rts }
    };
    for packet in [cell(3, 4, 0), cell(3, 40, 0), free, schd(1), rts] {
        assert_eq!(bench.give(at(1_000_000), 0, packet), Verdict::Drop, "{packet:?}");
    }
    assert_eq!(bench.give(at(1_000_000), 0, schd(0)), Verdict::Consume);
}
