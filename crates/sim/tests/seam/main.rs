//! Services of the fabric for transports: marks, hooks of switch programs, buffers, controllers.

mod arbiters;
#[allow(dead_code, reason = "other test programs use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod keeping;
mod rerouting;
mod timers;
mod watched;

use std::sync::Arc;

use common::{Blast, BlastHeader, BlastHost, Segmentation};
use rampmeter_sim::fabric::{DropReason, Fabric};
use rampmeter_sim::*;
use rampmeter_testkit::star;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Departure, Event, ForwardOnly, Header, HostPolicy, Message, MsgId, NoArbiter, NodeId,
    Observation, Packet, PayloadRef, Priority, Protocol, Rate, Receipt, Rng, Span, SwitchFacts,
    SwitchProgram, Time, TransitPacket, Transport, Verdict,
};

/// Returns a star of hosts at 100 Gbit/s, on which a full packet takes 120 ns.
fn spec(hosts: u64) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(star(hosts).build().unwrap(), 1);
    spec.drain = Span::from_us(1_000);
    spec.sample = Some(Span::from_us(1));
    spec
}

/// Returns a message to host 0 of full packets.
fn to_first(at_ns: u64, src: u32, packets: u64) -> Arrival {
    let at = Time::ZERO + Span::from_ns(at_ns);
    Arrival::new(at, NodeId::new(src), NodeId::new(0), Bytes::new(1_460 * packets))
}

type TestSim<F> = Sim<F, std::vec::IntoIter<Arrival>, NoProbe>;

/// Runs to the end.
fn run<F: Transport<Host = BlastHost, Config = Segmentation>>(
    spec: SimSpec,
    cut: Segmentation,
    arrivals: Vec<Arrival>,
) -> TestSim<F> {
    let mut sim = Sim::<F, _, _>::new(spec, Arc::new(cut), arrivals.into_iter(), NoProbe);
    sim.run(u64::MAX);
    sim
}

mod marks {
    use super::*;

    /// One packet sets the port's beat. Then two hosts send a packet each per beat, so those of
    /// beat k find k and k + 1 packets queued.
    fn marked(mark_above: Option<Bytes>, marks: Marks) -> u64 {
        let mut spec = spec(4);
        spec.fabric.mark_above = mark_above;
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let sim = run::<Blast>(spec, Segmentation { marks, ..Segmentation::default() }, arrivals);
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

/// The transport of [`Blast`] with another program at switches.
macro_rules! transport {
    ($transport:ident, $program:ty, $switch:ident => $make:expr) => {
        struct $transport;

        impl Transport for $transport {
            const NAME: &'static str = stringify!($transport);
            type Config = Segmentation;
            type Header = BlastHeader;
            type Host = BlastHost;
            type Arbiter = NoArbiter<BlastHeader, Segmentation>;
            type SwitchProgram = $program;

            fn switch_program(_config: &Arc<Segmentation>, $switch: SwitchFacts) -> $program {
                $make
            }
        }
    };
}

use transport;

mod departures {
    use super::*;

    /// Notes every departure, and makes each packet as much longer as HPCC's INT does at a switch.
    #[derive(Debug, Default)]
    struct Stamps(Vec<(Departure, u16)>);

    const STAMP: u16 = 8;

    impl<H> SwitchProgram<H> for Stamps {
        const HANDLES_FORWARD: bool = false;
        const HANDLES_DEPART: bool = true;

        fn on_forward(&mut self, _crossing: TransitPacket<'_>, _packet: &mut Packet<H>) -> Verdict {
            Verdict::Forward
        }

        fn on_depart(&mut self, departure: Departure, packet: &mut Packet<H>) {
            packet.wire_bytes += STAMP;
            self.0.push((departure, packet.wire_bytes));
        }
    }

    transport!(Stamped, Stamps, _switch => Stamps::default());

    #[test]
    fn a_program_receives_queue_bytes_rate_and_time_of_departures() {
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let sim = run::<Stamped>(spec(4), Segmentation::default(), arrivals);
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

    /// Compares at every sample; keeps the maximum by each of the first ports.
    #[derive(Default)]
    struct PortMaxima([u64; 4]);

    impl Probe for PortMaxima {
        fn on_sample<H: Header, P: SwitchProgram<H>>(
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
    fn queued_bytes_are_accounted_to_their_ingress_port() {
        for overflow in [Overflow::TailDrop, Overflow::PushOut] {
            let mut spec = spec(4);
            spec.sample = Some(Span::from_ns(50));
            spec.fabric.counts_ingress = true;
            spec.fabric.overflow = overflow;
            spec.fabric.buffer = Buffer::PerPort(Bytes::new(15_000));
            spec.faults.every_link =
                LinkFault { duplicate: 0.1, reorder: 0.1, loss: 0.05, delay_max: Span::from_us(1) };
            let (from, until) = (Time::from_ps(4_000_000), Time::from_ps(4_500_000));
            spec.faults.outages.push(Outage { target: Target::Link(0), from, until });
            spec.drain = Span::from_us(50);
            // Host 1 is unresponsive; the packets of host 2 are pushed out by those of the others.
            let cut = Segmentation { urgent: Some(NodeId::new(3)), ..Segmentation::default() };
            let arrivals = vec![to_first(0, 2, 60), to_first(500, 3, 60)];
            let config = Arc::new(cut);
            let mut sim =
                Sim::<Blast, _, _>::new(spec, config, arrivals.into_iter(), PortMaxima::default());
            sim.run(u64::MAX);
            let dropped: [u64; DropReason::COUNT] = sim.fabric().tier_stats()[1].drops;
            assert!(dropped[0] + dropped[1] > 0 && dropped[3] > 0, "{dropped:?}");
            let [_, silent, low, high] = sim.into_probe().0;
            assert!(silent == 0 && low > 0 && high > 0);
        }
    }
}

mod bufferless {
    use super::*;

    /// Two hosts send at the same time; the packets of the second find the port busy.
    fn collide(cut: Segmentation) -> ([u64; DropReason::COUNT], u64) {
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
        let cut = Segmentation::default();
        assert_eq!(collide(cut), ([0, 0, 0, 0, 0, 0, 10, 0, 0], 10));
    }

    /// Elsewhere packets of 64 bytes of the highest class would get a place behind the busy link.
    #[test]
    fn express_packets_are_dropped_too() {
        let cut =
            Segmentation { payload: 24, priority: Priority::HIGHEST, ..Segmentation::default() };
        assert_eq!(collide(cut), ([0, 0, 0, 0, 0, 0, 10, 0, 0], 10));
    }
}
