//! Switches that pause instead of dropping, and memory that ports share.

#[allow(dead_code, reason = "other test programs use the rest")]
use std::sync::Arc;

use crate::common::{Blast, RankedBlast, Segmentation};
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::*;
use rampmeter_testkit::{leaf_spine, star};
use rampmeter_types::fabric::{PfcClasses, PfcThreshold};
use rampmeter_types::{Bytes, Header, NodeId, Priority, Span, SwitchProgram, Time};

const PACKET: Bytes = Bytes::new(1_500);

fn pfc(threshold: PfcThreshold) -> PfcConfig {
    let (classes, hysteresis) = (PfcClasses::Data, Bytes::new(3_000));
    PfcConfig { threshold, classes, hysteresis, headroom: None, packet: PACKET }
}

fn spec(topology: Topology, per_switch: u64, pfc: Option<PfcConfig>) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(topology, 1);
    spec.fabric.buffer = Buffer::Shared { per_switch: Bytes::new(per_switch), alpha: 1.0 };
    spec.fabric.pfc = pfc;
    spec.drain = Span::from_us(1_000_000);
    spec.sample = Some(Span::from_us(1));
    spec
}

fn message(at_ns: u64, (src, dst): (u32, u32), packets: u64) -> Arrival {
    let (at, size) = (Time::ZERO + Span::from_ns(at_ns), Bytes::new(1_460 * packets));
    Arrival::new(at, NodeId::new(src), NodeId::new(dst), size)
}

/// Returns the counters of one tier.
fn tier<A: Source, P: Probe>(sim: &Sim<Blast, A, P>, name: &str) -> PfcStats {
    let names = sim.fabric().tier_names();
    let place = names.iter().position(|&n| n == name).expect("the topology has the tier");
    sim.fabric().pfc_stats().expect("pauses are on")[place]
}

mod two_ports {
    use super::*;

    /// Returns a host at 100 Gbit/s and one at 10 Gbit/s. A packet takes 120 ns on one link and
    /// 1200 ns on the other, and 650 ns behind each.
    fn fast_and_slow() -> Topology {
        let text = "kind = 'links'\nhosts = 2\nswitches = 1\nswitch-ns = 450.0\nhost-ns = 450.0\n\
            links = [{ between = ['h0', 's0'], gbps = 100.0, propagation-ns = 200.0 },\n\
            { between = ['h1', 's0'], gbps = 10.0, propagation-ns = 200.0 }]";
        toml::from_str::<TopologySpec>(text).unwrap().build().unwrap()
    }

    #[derive(Default)]
    struct Deliveries(Vec<u64>);

    impl Probe for Deliveries {
        fn on_flow(&mut self, record: &FlowRecord) {
            self.0.push(record.delivered.expect("nothing is lost").as_ps());
        }
    }

    /// Packet n arrives at 650 + 120 n ns, and the first is sent at once. Packets 2 to 5 fill the
    /// threshold. Packet 6 arrives at 1370 and causes a pause, which the host receives at 2020. It
    /// has started packet 17 at 1920. Departures are at 770 + 1200 k. The most headroom is taken at
    /// 2690: 12 packets beyond the threshold, of which that at 1970 has freed one. At 17 570 two
    /// packets are queued, half the threshold, and the host resumes at 18 220.
    #[test]
    fn a_pause_begins_and_ends_at_the_calculated_times() {
        let pfc = pfc(PfcThreshold::Static(Bytes::new(6_000)));
        let spec = spec(fast_and_slow(), 100_000, Some(pfc));
        let arrivals = [message(0, (0, 1), 20)].into_iter();
        let config = Arc::new(Segmentation::default());
        let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, Deliveries::default());
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        let expected = PfcStats {
            pauses: 1,
            paused: Span::from_ns(18_220 - 2_020),
            headroom_max: Bytes::new(11 * 1_500),
        };
        assert_eq!(tier(&sim, "host-up"), expected);
        assert_eq!(tier(&sim, "tor-down"), PfcStats::default());
        // The slow link was never idle.
        assert_eq!(sim.into_probe().0, [(770 + 20 * 1_200 + 650) * 1_000]);
    }

    /// Seven packets fit the threshold in all, and are never behind a pause.
    #[test]
    fn traffic_below_the_threshold_causes_no_pause() {
        let pfc = pfc(PfcThreshold::Static(Bytes::new(6_000)));
        let spec = spec(fast_and_slow(), 100_000, Some(pfc));
        let arrivals = [message(0, (0, 1), 5)].into_iter();
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals, NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        assert_eq!(tier(&sim, "host-up"), PfcStats::default());
    }

    /// Without pauses all packets beyond the memory are dropped.
    #[test]
    fn without_pauses_the_same_senders_lose_packets() {
        let mut spec = spec(fast_and_slow(), 10_000, None);
        spec.drain = Span::from_us(100);
        let arrivals = [message(0, (0, 1), 20)].into_iter();
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals, NoProbe);
        sim.run(u64::MAX);
        assert!(sim.fabric().stats().dropped() > 0);
        assert!(sim.fabric().pfc_stats().is_none());
    }

    /// Packets of the highest class pass a port whose other classes are paused, and are stopped if
    /// pauses stop all classes.
    #[test]
    fn the_highest_class_passes_unless_pauses_stop_all() {
        for (classes, passes) in [(PfcClasses::Data, true), (PfcClasses::All, false)] {
            let threshold = PfcThreshold::Static(Bytes::new(6_000));
            let mut spec =
                spec(fast_and_slow(), 100_000, Some(PfcConfig { classes, ..pfc(threshold) }));
            spec.fabric.express_max = 0;
            spec.fabric.interface = Interface::Queue;
            // Host 1 sends a message, whose confirmation by host 0 meets the pause.
            let arrivals = [message(0, (0, 1), 100), message(0, (1, 0), 1)].into_iter();
            let mut sim =
                Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals, Confirmation::default());
            assert_eq!(sim.run(u64::MAX), Status::Finished);
            let at = sim.into_probe().0.expect("the message is confirmed");
            assert_eq!(at < Time::from_ps(6_000_000), passes, "{classes:?}: {at}");
        }
    }

    #[derive(Default)]
    struct Confirmation(Option<Time>);

    impl Probe for Confirmation {
        fn on_flow(&mut self, record: &FlowRecord) {
            if record.src == NodeId::new(1) {
                self.0 = record.completed;
            }
        }
    }
}

mod incast {
    use super::*;

    /// Sends `flows` messages of `packets` to host 0, from all others by turns, at once.
    fn run<F>(
        spec: SimSpec,
        hosts: u32,
        flows: u32,
        packets: u64,
    ) -> Sim<F, std::vec::IntoIter<Arrival>, NoProbe>
    where
        F: rampmeter_types::Transport<Config = Segmentation>,
    {
        let from = |flow: u32| message(0, (1 + flow % (hosts - 1), 0), packets);
        let arrivals: Vec<Arrival> = (0..flows).map(from).collect();
        let mut sim = Sim::<F, _, _>::new(spec, Arc::default(), arrivals.into_iter(), NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        assert_eq!(sim.fabric().stats().dropped(), 0);
        assert_eq!(sim.counters().delivered, u64::from(flows));
        sim
    }

    /// Headroom of a link of the star, in bytes: 650 ns in each direction at 100 Gbit/s, and two
    /// packets.
    const HEADROOM: u64 = 16_250 + 3_000;

    #[test]
    fn a_hundred_senders_that_do_not_react_lose_nothing() {
        for threshold in [
            PfcThreshold::Dynamic { alpha: 0.11 },
            PfcThreshold::Dynamic { alpha: 8.0 },
            PfcThreshold::Static(Bytes::new(10_000)),
            PfcThreshold::Static(Bytes::ZERO),
        ] {
            let spec =
                spec(star(101).build().unwrap(), 101 * (HEADROOM + 10_000), Some(pfc(threshold)));
            let sim = run::<Blast>(spec, 101, 100, 200);
            let up = tier(&sim, "host-up");
            assert!(up.pauses >= 100 && up.paused > Span::from_us(100), "{threshold:?}: {up:?}");
            let most = up.headroom_max.get();
            assert!(most > 1_500 && most <= HEADROOM, "{threshold:?}: {most} of {HEADROOM}");
        }
    }

    /// With less headroom than arithmetic demands, the same run loses packets.
    #[test]
    fn three_packets_less_of_headroom_are_too_little() {
        let threshold = PfcThreshold::Static(Bytes::ZERO);
        let headroom = Some(Bytes::new(HEADROOM - 4_500));
        let mut spec = spec(
            star(101).build().unwrap(),
            4_000_000,
            Some(PfcConfig { headroom, ..pfc(threshold) }),
        );
        spec.drain = Span::from_us(1_000);
        let arrivals = (1..101).map(|src| message(0, (src, 0), 200));
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), arrivals, NoProbe);
        sim.run(u64::MAX);
        assert!(sim.fabric().stats().dropped() > 0);
    }

    #[test]
    fn a_thousand_flows_over_a_leaf_spine_lose_nothing() {
        let switchings =
            [Switching::StoreAndForward, Switching::CutThrough { header: Bytes::new(64) }];
        for (switching, spray) in switchings.into_iter().zip([Spray::Ecmp, Spray::Random]) {
            let threshold = PfcThreshold::Dynamic { alpha: 0.11 };
            let mut spec = spec(leaf_spine(9, 16, 4), 4_000_000, Some(pfc(threshold)));
            (spec.fabric.switching, spec.fabric.spray) = (switching, spray);
            let sim = run::<Blast>(spec, 144, 1_000, 44);
            // Pauses reach back to hosts of other racks.
            for name in ["host-up", "tor-up", "spine-down"] {
                assert!(tier(&sim, name).pauses > 0, "{name}");
            }
        }
    }

    #[test]
    fn interfaces_that_queue_and_ports_that_rank_obey_too() {
        let threshold = PfcThreshold::Dynamic { alpha: 0.11 };
        let mut queues = spec(star(101).build().unwrap(), 4_000_000, Some(pfc(threshold)));
        queues.fabric.interface = Interface::Queue;
        run::<Blast>(queues, 101, 100, 100);
        let ranks = spec(star(101).build().unwrap(), 4_000_000, Some(pfc(threshold)));
        run::<RankedBlast>(ranks, 101, 100, 100);
        let mut all = spec(star(101).build().unwrap(), 4_000_000, Some(pfc(threshold)));
        all.fabric.pfc.as_mut().unwrap().classes = PfcClasses::All;
        all.fabric.express_max = 0;
        let config = Segmentation { priority: Priority::HIGHEST, ..Segmentation::default() };
        let arrivals = (1..101).map(|src| message(0, (src, 0), 100));
        let mut sim = Sim::<Blast, _, _>::new(all, Arc::new(config), arrivals, NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        assert_eq!(sim.fabric().stats().dropped(), 0);
    }

    /// A link that fails drops its queued packets, and the ports that it had paused resume.
    #[test]
    fn a_failure_leaves_no_port_paused() {
        let threshold = PfcThreshold::Static(Bytes::new(10_000));
        let mut spec = spec(star(11).build().unwrap(), 1_000_000, Some(pfc(threshold)));
        let (from, until) = (Time::from_ps(10_000_000), Time::from_ps(20_000_000));
        spec.faults.outages.push(Outage { target: Target::Link(0), from, until });
        spec.drain = Span::from_us(1_000);
        // While the link is down, hosts that were paused reach others.
        let to_zero = (1..11).map(|src| message(0, (src, 0), 400));
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), to_zero, NoProbe);
        sim.run(u64::MAX);
        let sent: u64 = sim.fabric().tier_stats()[0].bytes;
        assert!(sent >= 10 * 400 * 1_500, "{sent} bytes left the hosts");
    }
}

mod shared_memory {
    use super::*;

    /// The longest queues at samples after the first 20 us.
    #[derive(Default)]
    struct Queues(Vec<u32>);

    impl Probe for Queues {
        fn on_sample<H: Header, P: SwitchProgram<H>>(
            &mut self,
            now: Time,
            fabric: &mut Fabric<H, P>,
            _delivered: &[u64],
        ) {
            if now == Time::ZERO + Span::from_us(40) {
                self.0 = fabric.queues().map(|(_, bytes)| bytes).collect();
            }
        }
    }

    /// Choudhury and Hahne: n ports that are offered more than they send hold alpha B / (1 + n
    /// alpha) each, for any offered load.
    #[test]
    fn overloaded_ports_hold_the_fixed_point_of_dynamic_thresholds() {
        for (alpha, n) in [(1.0, 1), (1.0, 3), (0.5, 2), (2.0, 2), (0.25, 4)] {
            let memory = 600_000;
            let mut spec = spec(star(16).build().unwrap(), memory, None);
            spec.fabric.buffer = Buffer::Shared { per_switch: Bytes::new(memory), alpha };
            spec.fabric.overflow = Overflow::TailDrop;
            spec.drain = Span::from_us(100);
            // Each of n hosts receives from three others for more than 48 us.
            let flows = (0..n)
                .flat_map(|dst| (0..3u32).map(move |k| message(0, (n + dst * 3 + k, dst), 400)));
            let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), flows, Queues::default());
            sim.run(u64::MAX);
            let queues = sim.into_probe().0;
            let expected = alpha * memory as f64 / (1.0 + f64::from(n) * alpha);
            for &held in &queues[..n as usize] {
                let held = f64::from(held);
                let error = (held - expected).abs();
                assert!(error <= 3_000.0, "alpha {alpha}, {n} ports: {held} of {expected}");
            }
        }
    }

    /// Ingresses reach the same fixed point if ports are paused instead. Three senders to one host
    /// each hold the threshold, alpha times the unused memory.
    #[test]
    fn paused_ingresses_share_memory_by_the_same_fixed_point() {
        let (alpha, memory) = (0.5, 1_000_000);
        let threshold = PfcThreshold::Dynamic { alpha };
        let mut spec = spec(star(16).build().unwrap(), memory, Some(pfc(threshold)));
        spec.drain = Span::from_us(10_000);
        let flows = (1..4).map(|src| message(0, (src, 0), 1_000));
        let mut sim = Sim::<Blast, _, _>::new(spec, Arc::default(), flows, NoProbe);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        let shared = memory as f64 - 16.0 * 19_250.0;
        let each = alpha * shared / (1.0 + 3.0 * alpha);
        let down = sim.fabric().tier_stats().into_iter().find(|t| t.name == "tor-down").unwrap();
        let longest = down.queue_max.get() as f64;
        let (least, most) = (3.0 * each, 3.0 * (each + 19_250.0));
        assert!((least - 4_500.0..=most).contains(&longest), "{least} {longest} {most}");
    }
}
