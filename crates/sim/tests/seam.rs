//! What the fabric does for transports: marks, hooks of switch programs, buffers, controllers.

#[allow(dead_code, reason = "other test programs use the rest")]
mod common;

use std::sync::Arc;

use common::{Blast, BlastHeader, BlastHost, Cut};
use rampmeter_core::packet::Marks;
use rampmeter_core::{
    Bytes, Crossing, Departure, Endpoint, Event, Family, Header, Hop, Message, MsgId, NoArbiter,
    NodeId, Packet, Passive, PayloadRef, Priority, Rate, Receipt, Rng, Span, SwitchFacts, Time,
    Verdict,
};
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::*;
use rampmeter_testkit::star;

/// A star of hosts at 100 Gbit/s, on which a full packet takes 120 ns.
fn spec(hosts: u64) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(star(hosts).build().unwrap(), 1);
    spec.drain = Span::from_us(1_000);
    spec.sample = Some(Span::from_us(1));
    spec
}

/// A message to host 0 of full packets.
fn to_first(at_ns: u64, src: u32, packets: u64) -> Arrival {
    let at = Time::ZERO + Span::from_ns(at_ns);
    Arrival::new(at, NodeId::new(src), NodeId::new(0), Bytes::new(1_460 * packets))
}

type Ran<F> = Sim<F, std::vec::IntoIter<Arrival>, NoProbe>;

/// Runs to the end.
fn run<F: Family<Host = BlastHost, Config = Cut>>(
    spec: SimSpec,
    cut: Cut,
    arrivals: Vec<Arrival>,
) -> Ran<F> {
    let mut sim = Sim::<F, _, _>::new(spec, Arc::new(cut), arrivals.into_iter(), NoProbe);
    sim.run(u64::MAX);
    sim
}

mod marks {
    use super::*;

    /// One packet sets the port's beat; then two hosts send a packet each per beat, so that those
    /// of beat k find k and k + 1 packets waiting.
    fn marked(mark_above: Option<Bytes>, marks: Marks) -> u64 {
        let mut spec = spec(4);
        spec.fabric.mark_above = mark_above;
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let sim = run::<Blast>(spec, Cut { marks, ..Cut::default() }, arrivals);
        assert_eq!(sim.counters().delivered, 3);
        sim.endpoint(0).marked
    }

    #[test]
    fn packets_that_find_a_queue_above_the_threshold_are_marked() {
        let capable = Marks::ECN_CAPABLE;
        assert_eq!(marked(Some(Bytes::new(3 * 1_500)), capable), 16 + 17);
        assert_eq!(marked(Some(Bytes::new(3 * 1_500 - 1)), capable), 17 + 18);
        assert_eq!(marked(Some(Bytes::ZERO), capable), 19 + 20);
        assert_eq!(marked(None, capable), 0);
    }

    #[test]
    fn packets_of_senders_that_do_not_understand_marks_have_none() {
        assert_eq!(marked(Some(Bytes::ZERO), Marks::NONE), 0);
    }
}

mod watched {
    use super::*;
    use rampmeter_sim::fabric::{PortChange, PortEvent};

    /// Everything that ports did, without packets: (time, port, what).
    #[derive(Default)]
    struct Log(Vec<(Time, u32, String)>);

    impl Probe for Log {
        fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
            let what = match event.what {
                PortChange::Sends { from, until, .. } => format!("sends {from} {until}"),
                PortChange::Arrives { .. } => "arrives".to_owned(),
                PortChange::Queue { bytes } => format!("queue {bytes}"),
                PortChange::Drops { reason, .. } => format!("drops {reason:?}"),
                PortChange::Marks { packet, .. } => format!("marks {:?}", packet.marks),
                PortChange::Doubles { .. } => "doubles".to_owned(),
                PortChange::Fails => "fails".to_owned(),
                PortChange::Recovers => "recovers".to_owned(),
            };
            self.0.push((event.at, event.port, what));
        }
    }

    type Logged = Sim<Watched<Blast>, std::vec::IntoIter<Arrival>, Log>;

    fn log(spec: SimSpec, cut: Cut, arrivals: Vec<Arrival>) -> (Log, Logged) {
        let (arrivals, config) = (arrivals.into_iter(), Arc::new(cut));
        let mut sim = Logged::new(spec, config, arrivals, Log::default());
        sim.run(u64::MAX);
        (Log(sim.probe().0.clone()), sim)
    }

    fn count(log: &Log, what: &str) -> usize {
        log.0.iter().filter(|(_, _, did)| did.starts_with(what)).count()
    }

    #[test]
    fn ports_tell_sending_queues_marks_and_arrivals_and_the_run_is_the_same() {
        let mut spec = spec(4);
        spec.fabric.mark_above = Some(Bytes::new(3 * 1_500));
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let cut = Cut { marks: Marks::ECN_CAPABLE, ..Cut::default() };
        let plain = run::<Blast>(spec.clone(), cut, arrivals.clone());
        let (log, watched) = log(spec, cut, arrivals);
        assert_eq!(watched.counters(), plain.counters());
        assert_eq!(watched.fabric().tier_stats(), plain.fabric().tier_stats());
        assert_eq!(count(&log, "marks"), 16 + 17);
        assert_eq!(count(&log, "sends") as u64, watched.fabric().stats().hops);
        assert_eq!(count(&log, "arrives") as u64, watched.fabric().stats().delivered);
        let longest = watched.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max();
        let queues = log.0.iter().filter_map(|(_, _, did)| did.strip_prefix("queue "));
        assert_eq!(queues.map(|bytes| bytes.parse().unwrap()).max(), longest);
    }

    #[test]
    fn links_that_fail_and_work_again_are_told_at_both_ends_with_what_they_lose() {
        let mut spec = spec(3);
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let outage =
            rampmeter_sim::Outage { target: Target::Link(1), from: at(500), until: at(900) };
        spec.faults.outages = vec![outage];
        let (log, sim) = log(spec, Cut::default(), vec![to_first(0, 1, 20)]);
        let of = |what: &str| -> Vec<(Time, u32)> {
            let did = log.0.iter().filter(|(_, _, did)| did == what);
            did.map(|(at, port, _)| (*at, *port)).collect()
        };
        assert_eq!(of("fails"), [(at(500), 1), (at(500), 4)]);
        assert_eq!(of("recovers"), [(at(900), 1), (at(900), 4)]);
        assert_eq!(count(&log, "drops LinkDown") as u64, sim.fabric().stats().dropped());
        assert!(sim.fabric().stats().dropped() > 0);
    }
}

/// The family of [`Blast`] with another program at switches.
macro_rules! family {
    ($family:ident, $hop:ty, $switch:ident => $make:expr) => {
        struct $family;

        impl Family for $family {
            const NAME: &'static str = stringify!($family);
            type Config = Cut;
            type Header = BlastHeader;
            type Host = BlastHost;
            type Arbiter = NoArbiter<BlastHeader, Cut>;
            type Hop = $hop;

            fn hop(_config: &Arc<Cut>, $switch: SwitchFacts) -> $hop {
                $make
            }
        }
    };
}

mod departures {
    use super::*;

    /// Notes every departure, and makes each packet as much longer as HPCC's INT does at a switch.
    #[derive(Debug, Default)]
    struct Stamps(Vec<(Departure, u16)>);

    const STAMP: u16 = 8;

    impl<H> Hop<H> for Stamps {
        const ACTIVE: bool = false;
        const DEPARTURES: bool = true;

        fn on_forward(&mut self, _crossing: Crossing<'_>, _packet: &mut Packet<H>) -> Verdict {
            Verdict::Forward
        }

        fn on_depart(&mut self, departure: Departure, packet: &mut Packet<H>) {
            packet.wire_bytes += STAMP;
            self.0.push((departure, packet.wire_bytes));
        }
    }

    family!(Stamped, Stamps, _switch => Stamps::default());

    #[test]
    fn a_program_sees_queue_bytes_rate_and_time_of_what_departs() {
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let sim = run::<Stamped>(spec(4), Cut::default(), arrivals);
        assert_eq!(sim.counters().delivered, 3);
        let port = sim.fabric().n_interfaces();
        let seen = &sim.fabric().program(0).0;
        let first: Vec<_> = seen.iter().filter(|(d, _)| d.port == port).collect();
        assert_eq!(first.len(), 41);
        let (mut sent, mut free_at) = (0, Time::ZERO);
        for (departure, bytes) in &first {
            let Departure { now, rate, .. } = *departure;
            assert_eq!(departure.sent, sent);
            assert!(now >= free_at && *bytes == 1_508);
            free_at = now + rate.tx_time(Bytes::new(1_508));
            sent += 1_508;
        }
        // The longest queue is found by the last packets of both; it empties at the end.
        let longest = first.iter().map(|(d, _)| d.queued).max().unwrap();
        assert!((18 * 1_500..=20 * 1_500).contains(&longest), "{longest}");
        assert_eq!(first.last().unwrap().0.queued, 0);
        let down = &sim.fabric().tier_stats()[1];
        assert_eq!(down.bytes, seen.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>());
    }
}

mod ingress {
    use super::*;

    /// Compares at every sample; keeps the most that came by each of the first ports.
    #[derive(Default)]
    struct Held([u64; 4]);

    impl Probe for Held {
        fn on_sample<H: Header, P: Hop<H>>(
            &mut self,
            _now: Time,
            fabric: &mut Fabric<H, P>,
            _delivered: &[u64],
        ) {
            let first = fabric.n_interfaces();
            let by_ingress = (0..4).map(|n| fabric.waiting_from(first + n));
            let queued: u64 = fabric.queues().map(|(_, bytes)| u64::from(bytes)).sum();
            assert_eq!(by_ingress.clone().sum::<u64>(), queued);
            self.0.iter_mut().zip(by_ingress).for_each(|(most, now)| *most = now.max(*most));
        }
    }

    #[test]
    fn waiting_bytes_are_accounted_for_by_the_port_they_came_by() {
        for overflow in [Overflow::TailDrop, Overflow::PushOut] {
            let mut spec = spec(4);
            spec.sample = Some(Span::from_ns(50));
            spec.fabric.by_ingress = true;
            spec.fabric.overflow = overflow;
            spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
            spec.faults.every_link =
                LinkFault { duplicate: 0.1, reorder: 0.1, loss: 0.05, delay_max: Span::from_us(1) };
            let (from, until) = (Time::from_ps(4_000_000), Time::from_ps(4_500_000));
            spec.faults.outages.push(Outage { target: Target::Link(0), from, until });
            spec.drain = Span::from_us(50);
            // Host 1 is silent; the packets of host 2 are pushed out by those of the others.
            let cut = Cut { urgent: Some(NodeId::new(3)), ..Cut::default() };
            let arrivals = vec![to_first(0, 2, 60), to_first(500, 3, 60)];
            let config = Arc::new(cut);
            let mut sim =
                Sim::<Blast, _, _>::new(spec, config, arrivals.into_iter(), Held::default());
            sim.run(u64::MAX);
            let dropped: [u64; 6] = sim.fabric().tier_stats()[1].drops;
            assert!(dropped[0] + dropped[1] > 0 && dropped[3] > 0, "{dropped:?}");
            let [_, silent, low, high] = sim.into_probe().0;
            assert!(silent == 0 && low > 0 && high > 0);
        }
    }
}

mod timers {
    use super::*;

    const EVERY: Span = Span::from_us(1);

    /// Sends an empty packet to host 0 at every beat.
    #[derive(Debug)]
    struct Beats {
        port: u32,
        next: Time,
        at: Vec<Time>,
        is_due: bool,
    }

    impl Hop<BlastHeader> for Beats {
        const ACTIVE: bool = false;
        const TIMERS: bool = true;

        fn on_forward(
            &mut self,
            _crossing: Crossing<'_>,
            _packet: &mut Packet<BlastHeader>,
        ) -> Verdict {
            Verdict::Forward
        }

        fn poll_timeout(&self) -> Time {
            self.next
        }

        fn handle_timeout(&mut self, now: Time) {
            assert!(now >= self.next);
            self.at.push(now);
            self.next = now + EVERY;
            self.is_due = true;
        }

        fn poll_transmit(&mut self) -> Option<(u32, Packet<BlastHeader>)> {
            let packet = Packet {
                header: BlastHeader::Data { packets: 1 },
                payload: PayloadRef { msg: MsgId::new(0), offset: 0, len: 0 },
                src: NodeId::new(1),
                dst: NodeId::new(0),
                wire_bytes: 64,
                path: 0,
                priority: Priority::HIGHEST,
                marks: Marks::NONE,
            };
            std::mem::take(&mut self.is_due).then_some((self.port, packet))
        }
    }

    family!(Beating, Beats, switch => Beats {
        port: switch.first_port,
        next: Time::ZERO + EVERY,
        at: Vec::new(),
        is_due: false,
    });

    #[test]
    fn a_program_is_called_at_its_deadlines_and_its_packets_are_sent() {
        let arrivals = vec![to_first(0, 1, 1), to_first(10_000, 1, 1)];
        let sim = run::<Beating>(spec(2), Cut::default(), arrivals);
        let at = &sim.fabric().program(0).at;
        let expected = (1..).map(|n| Time::ZERO + EVERY * n).take_while(|at| *at <= sim.now());
        assert!(at.iter().copied().eq(expected) && at.len() == 12, "{at:?}");
        assert_eq!(sim.endpoint(0).beats, 12);
    }

    #[test]
    fn a_switch_that_comes_back_has_the_timers_of_its_new_program() {
        let mut spec = spec(2);
        let (from, until) = (Time::from_ps(3_500_000), Time::from_ps(6_200_000));
        spec.faults.outages.push(Outage { target: Target::Switch(0), from, until });
        let arrivals = vec![to_first(0, 1, 1), to_first(10_000, 1, 1)];
        let sim = run::<Beating>(spec, Cut::default(), arrivals);
        let at = &sim.fabric().program(0).at;
        let expected = (0..).map(|n| until + EVERY * n).take_while(|at| *at <= sim.now());
        assert!(at.iter().copied().eq(expected) && at.len() >= 5, "{at:?}");
        // Beat 3 was on the link when it failed; beats 4 to 6 of the old program found it down.
        assert_eq!(sim.fabric().tier_stats()[1].drops[3], 4);
    }
}

mod bufferless {
    use super::*;

    /// Two hosts send at the same time; the packets of the second find the port busy.
    fn collide(cut: Cut) -> ([u64; 6], u64) {
        let mut spec = spec(3);
        spec.fabric.buffer = Buffer::PerPort(Bytes::ZERO);
        let size = Bytes::new(10 * u64::from(cut.payload));
        let second = Time::from_ps(4_000);
        let arrivals = [(1, Time::ZERO), (2, second)]
            .map(|(src, at)| Arrival::new(at, NodeId::new(src), NodeId::new(0), size));
        let sim = run::<Blast>(spec, cut, arrivals.into());
        let tiers = sim.fabric().tier_stats();
        assert_eq!(tiers[1].queue_max, Bytes::ZERO);
        (tiers[1].drops, sim.counters().fresh_packets)
    }

    #[test]
    fn a_packet_that_finds_its_port_busy_is_dropped() {
        let cut = Cut::default();
        assert_eq!(collide(cut), ([10, 0, 0, 0, 0, 0], 10));
    }

    /// Elsewhere packets of 64 bytes of the highest class would get a place behind the busy link.
    #[test]
    fn express_packets_are_dropped_too() {
        let cut = Cut { payload: 24, priority: Priority::HIGHEST, ..Cut::default() };
        assert_eq!(collide(cut), ([10, 0, 0, 0, 0, 0], 10));
    }
}

mod arbiters {
    use super::*;

    const N_HOSTS: u32 = 6;

    /// Two kinds of controllers: the first calls every host at the start, the second only listens.
    #[derive(Debug)]
    struct Controller {
        number: u32,
        node: NodeId,
        to_call: Vec<NodeId>,
        heard: Vec<NodeId>,
    }

    impl Endpoint for Controller {
        type Header = BlastHeader;
        type Config = Cut;

        fn new(_config: Arc<Cut>, node: NodeId, _rng: Rng, _now: Time) -> Self {
            Self { number: u32::MAX, node, to_call: Vec::new(), heard: Vec::new() }
        }

        fn submit(&mut self, _now: Time, _message: Message) {}

        fn cancel(&mut self, _now: Time, _msg: MsgId) {}

        fn handle_packet(&mut self, _now: Time, packet: &Packet<BlastHeader>) -> Receipt {
            self.heard.push(packet.src);
            Receipt::Control
        }

        fn has_delivered(&mut self, _now: Time, _packet: &Packet<BlastHeader>) -> bool {
            false
        }

        fn forget_peer(&mut self, _now: Time, _peer: NodeId) {}

        fn handle_timeout(&mut self, _now: Time) {}

        fn poll_transmit(&mut self, _now: Time) -> Option<Packet<BlastHeader>> {
            self.to_call.pop().map(|dst| Packet {
                header: BlastHeader::Data { packets: 0 },
                payload: PayloadRef::default(),
                src: self.node,
                dst,
                wire_bytes: 64,
                path: 0,
                priority: Priority::HIGHEST,
                marks: Marks::NONE,
            })
        }

        fn poll_timeout(&self) -> Time {
            Time::NEVER
        }

        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    struct Controlled;

    impl Family for Controlled {
        const NAME: &'static str = "controlled";
        type Config = Cut;
        type Header = BlastHeader;
        type Host = BlastHost;
        type Arbiter = Controller;
        type Hop = Passive;

        fn arbiter(config: Arc<Cut>, number: u32, node: NodeId, rng: Rng, now: Time) -> Controller {
            let hosts = (0..N_HOSTS).map(NodeId::new);
            let to_call = if number == 0 { hosts.collect() } else { Vec::new() };
            Controller { number, to_call, ..Controller::new(config, node, rng, now) }
        }

        fn hop(_config: &Arc<Cut>, _switch: SwitchFacts) -> Passive {
            Passive
        }
    }

    fn link(switch: u32) -> ArbiterLink {
        ArbiterLink { switch, rate: Rate::from_gbps(40), propagation: Span::from_ns(300) }
    }

    /// Three racks of two hosts; the first arbiter is at every rack, the second at a spine.
    fn spec() -> SimSpec {
        let topology = TopologySpec::LeafSpine {
            rails: 1,
            racks: 3,
            hosts_per_rack: 2,
            spines: 2,
            access_gbps: 100.0,
            core_gbps: 100.0,
            propagation_ns: 200.0,
            switch_ns: 450.0,
            host_ns: 450.0,
        };
        let topology = topology.build().unwrap();
        let topology = topology.with_arbiter_at(&[0, 1, 2].map(link)).with_arbiter(link(3));
        SimSpec { topology, ..super::spec(2) }
    }

    fn run(spec: SimSpec) -> Ran<Controlled> {
        // The messages stay within their rack.
        super::run(spec, Cut::default(), vec![to_first(0, 1, 1), to_first(50_000, 1, 1)])
    }

    fn bytes(sim: &Ran<Controlled>, tier: &str) -> u64 {
        sim.fabric().tier_stats().iter().find(|t| t.name == tier).unwrap().bytes
    }

    #[test]
    fn each_packet_takes_the_nearest_of_an_arbiters_links_both_ways() {
        let sim = run(spec());
        assert_eq!((sim.arbiter(0).number, sim.arbiter(1).number), (0, 1));
        let mut heard = sim.arbiter(0).heard.clone();
        heard.sort_unstable();
        assert!(heard.into_iter().eq((0..N_HOSTS).map(NodeId::new)));
        assert!(sim.arbiter(1).heard.is_empty());
        // Nothing went by a spine.
        assert_eq!((bytes(&sim, "tor-up"), bytes(&sim, "spine-down")), (0, 0));
        assert_eq!(bytes(&sim, "arbiter-up"), 64 * u64::from(N_HOSTS));
        assert_eq!(bytes(&sim, "arbiter-down"), 40 * u64::from(N_HOSTS));
    }

    #[test]
    fn a_link_that_fails_is_replaced_by_the_next_nearest() {
        let mut spec = spec();
        // Links 0 to 5 are the hosts', 6 to 11 the spines', 12 to 14 the first arbiter's.
        let (from, until) = (Time::from_ps(1), Time::NEVER);
        spec.faults.outages.push(Outage { target: Target::Link(12), from, until });
        let sim = run(spec);
        // The calls left before; the answers of the first rack go round by a spine.
        assert_eq!(sim.arbiter(0).heard.len(), 4 + 2 - lost(&sim));
        assert_eq!(bytes(&sim, "tor-up"), 40 * (2 - lost(&sim) as u64));
    }

    /// Hosts of the first rack that were not called, because the link failed first.
    fn lost(sim: &Ran<Controlled>) -> usize {
        (0..2).filter(|&host| sim.endpoint(host).beats == 0).count()
    }

    #[test]
    fn an_arbiter_that_comes_back_knows_its_number_and_starts_anew() {
        let mut spec = spec();
        let (from, until) = (Time::from_ps(20_000_000), Time::from_ps(25_000_000));
        spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
        let sim = run(spec);
        assert_eq!((sim.arbiter(0).number, sim.arbiter(0).heard.len()), (0, 6));
        assert!((0..N_HOSTS).all(|host| sim.endpoint(host).beats == 2));
    }
}

mod rerouting {
    use super::*;
    use rampmeter_testkit::leaf_spine;

    /// A host sends 1000 packets of 120 ns to another rack by two spines, one packet by either. The
    /// link to one of them fails after 200 packet times for `down`. Returns the packets that are lost.
    fn lost(rerouting: Span, down: Option<Span>) -> u64 {
        let mut spec = rampmeter_testkit::spec(leaf_spine(2, 3, 2), 1);
        spec.drain = Span::from_us(1_000);
        spec.faults.rerouting = rerouting;
        let from = Time::ZERO + Span::from_us(24);
        let until = down.map_or(Time::NEVER, |down| from + down);
        // Links 0 to 5 are the hosts', 6 is that of the first rack and the first spine.
        spec.faults.outages.push(Outage { target: Target::Link(6), from, until });
        let dst = NodeId::new(3);
        let arrivals = vec![Arrival::new(Time::ZERO, NodeId::new(0), dst, Bytes::new(1_460_000))];
        let sim = run::<Blast>(spec, Cut::default(), arrivals);
        sim.fabric().stats().dropped()
    }

    #[test]
    fn switches_send_to_a_failed_link_until_routing_has_followed() {
        let us = Span::from_us;
        // What is on the link or waits for it is lost in any case.
        let at_once = lost(us(0), None);
        assert!(at_once <= 20, "{at_once}");
        // Half of 800 packets, of 400, and of 200.
        for (rerouting, half) in [(us(1_000), 400), (us(48), 200), (us(24), 100)] {
            let more = lost(rerouting, None) - at_once;
            assert!(more.abs_diff(half) <= half / 4, "{rerouting}: {more}");
        }
    }

    #[test]
    fn a_link_that_comes_back_before_routing_has_followed_stays_in_use() {
        let us = Span::from_us;
        let (short, long) = (lost(us(48), Some(us(24))), lost(us(1_000), Some(us(24))));
        assert_eq!(short, long);
        assert!(short.abs_diff(100) <= 30, "{short}");
    }
}
