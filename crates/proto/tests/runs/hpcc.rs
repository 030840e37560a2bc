//! HPCC in whole simulations: incasts without loss, telemetry to the byte, and settled windows.

use std::sync::Arc;

use rampmeter_proto::hpcc::config::Recovery;
use rampmeter_proto::hpcc::int::Record;
use rampmeter_proto::hpcc::wire::HpccHeader;
use rampmeter_proto::hpcc::{HpccConfig, HpccTransport};
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::*;
use rampmeter_testkit::{arrival, leaf_spine, star};
use rampmeter_types::fabric::{PfcClasses, PfcThreshold};
use rampmeter_types::{Bytes, Header, MsgId, Rate, Span, SwitchProgram, Time};

/// A full packet of the paper: 1000 bytes, headers, and telemetry.
const FULL: u64 = 1_000 + 40 + 42;

fn facts(topology: &Topology) -> rampmeter_types::FabricFacts {
    topology.facts(Bytes::new(FULL), Bytes::new(82))
}

/// Switches of the paper's study: 32 MB, pauses above 11 % of the free memory, a path a message.
fn spec(topology: Topology) -> SimSpec {
    let mut spec = rampmeter_testkit::spec(topology, 1);
    spec.fabric.buffer = Buffer::Shared { per_switch: Bytes::new(32_000_000), alpha: 1.0 };
    spec.fabric.spray = Spray::Ecmp;
    spec.fabric.pfc = Some(PfcConfig {
        threshold: PfcThreshold::Dynamic { alpha: 0.11 },
        classes: PfcClasses::Data,
        hysteresis: Bytes::new(3_000),
        headroom: None,
        packet: Bytes::new(FULL),
    });
    spec
}

fn sim<P: Probe>(
    config: HpccConfig,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
    probe: P,
) -> Sim<HpccTransport, std::vec::IntoIter<Arrival>, P> {
    let hpcc = config.derive(&facts(&spec.topology)).unwrap();
    Sim::new(spec, Arc::new(hpcc), arrivals.into_iter(), probe)
}

mod incast {
    use super::*;

    /// 1000 flows to one host. All start at line rate, before any telemetry, so that memory fills
    /// and pauses reach back to hosts; nothing is lost or retransmitted.
    #[test]
    fn a_thousand_flows_lose_nothing() {
        for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
            let from = |n: u32| arrival(0, 1 + n % 143, 0, 200_000);
            let arrivals: Vec<Arrival> = (0..1_000).map(from).collect();
            let config = HpccConfig { recovery, ..HpccConfig::paper() };
            let mut sim = sim(config, spec(leaf_spine(9, 16, 4)), arrivals, NoProbe);
            assert_eq!(sim.run(u64::MAX), Status::Finished);
            assert_eq!(sim.counters().delivered, 1_000);
            assert_eq!(sim.fabric().stats().dropped(), 0);
            let pauses: u64 = sim.fabric().pfc_stats().unwrap().iter().map(|t| t.pauses).sum();
            assert!(pauses > 0, "nobody was paused");
            let counters = sim.transport_counters();
            let count = |name| counters.iter().find(|(n, _)| *n == name).unwrap().1;
            let lost = ["timeouts", "nacks_sent", "out_of_order_drops"].map(count);
            assert_eq!(lost, [0; 3], "{counters:?}");
        }
    }

    /// If switches drop instead, both methods of recovery deliver everything once.
    #[test]
    fn losses_without_pauses_are_retransmitted() {
        for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
            let mut spec = spec(leaf_spine(2, 16, 4));
            spec.fabric.pfc = None;
            spec.fabric.buffer = Buffer::PerPort(Bytes::new(100_000));
            let arrivals: Vec<Arrival> = (1..32).map(|n| arrival(0, n, 0, 200_000)).collect();
            let config = HpccConfig { recovery, ..HpccConfig::paper() };
            let mut sim = sim(config, spec, arrivals, NoProbe);
            assert_eq!(sim.run(u64::MAX), Status::Finished);
            assert_eq!(sim.counters().delivered, 31);
            assert!(sim.fabric().stats().dropped() > 0);
        }
    }
}

mod telemetry {
    use super::*;

    /// The records of the data packets that reach hosts, in order.
    #[derive(Default)]
    struct DataRecords(Vec<(u32, Vec<Record>)>);

    impl Probe for DataRecords {
        const PACKETS: bool = true;

        fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
            let mut bytes = [0; 128];
            let length = passing.packet.header.encode(&mut bytes).unwrap();
            let (header, _) = HpccHeader::decode(&bytes[..length]).unwrap();
            if let (HpccHeader::Data { records, .. }, Direction::Received) =
                (header, passing.direction)
            {
                self.0.push((passing.packet.src.get(), records.as_slice().to_vec()));
            }
        }
    }

    fn seen(topology: Topology, arrivals: Vec<Arrival>) -> Vec<(u32, Vec<Record>)> {
        let mut sim = sim(HpccConfig::paper(), spec(topology), arrivals, DataRecords::default());
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        sim.into_probe().0
    }

    /// Three packets of 1082 bytes, 86.56 ns at 100 Gbit/s, meet at a port 650 ns behind their
    /// hosts. The second is sent after the first, and one is queued behind it.
    #[test]
    fn a_port_reports_its_queue_and_sent_bytes_exactly() {
        let arrivals = (1..4).map(|n| arrival(0, n, 0, 1_000)).collect();
        let seen = seen(star(4).build().unwrap(), arrivals);
        let at = |n: u64| Time::from_ps(86_560 + 650_000 + n * 86_560);
        let record = |n, queued| Record::new(at(n), n * FULL, queued, Rate::from_gbps(100));
        let (mut hosts, records): (Vec<u32>, Vec<_>) = seen.into_iter().unzip();
        assert_eq!(records, [[record(0, 0)], [record(1, FULL as u32)], [record(2, 0)]]);
        hosts.sort_unstable();
        assert_eq!(hosts, [1, 2, 3]);
    }

    /// Three ports between racks write: at 400, 400 and 100 Gbit/s, at which a packet takes 21.64
    /// ns.
    #[test]
    fn every_switch_of_the_path_appends_its_record() {
        let seen = seen(leaf_spine(2, 2, 1), vec![arrival(0, 0, 3, 1_000)]);
        let at = [736_560, 736_560 + 671_640, 736_560 + 2 * 671_640].map(Time::from_ps);
        let rates = [400, 400, 100].map(Rate::from_gbps);
        let records = at.iter().zip(rates).map(|(&at, rate)| Record::new(at, 0, 0, rate));
        assert_eq!(seen, [(0, records.collect())]);
    }
}

mod steady {
    use super::*;

    /// Returns the time of a lone message of this many bytes.
    fn alone(bytes: u64) -> Span {
        let mut records = rampmeter_testkit::run::Records::default();
        let arrivals = vec![arrival(0, 1, 0, bytes)];
        let spec = spec(star(2).build().unwrap());
        let mut sim = sim(HpccConfig::paper(), spec, arrivals, &mut records);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        drop(sim);
        records.0[0].delivered.unwrap() - records.0[0].arrival
    }

    /// §3.2: windows settle at a use of eta, 95 %, of the fullest link.
    #[test]
    fn a_lone_long_flow_takes_eta_of_the_links_rate() {
        let (short, long) = (10_000_000, 60_000_000);
        let time = (alone(long) - alone(short)).as_ps() as f64;
        let bits = (long - short) as f64 / 1_000.0 * FULL as f64 * 8.0;
        let share = bits / time * 10.0;
        assert!((share - 0.95).abs() < 0.01, "{share} of the rate");
    }

    /// Queues of the port to host 0 at each microsecond after the first two milliseconds.
    #[derive(Default)]
    struct Queues(Vec<u32>);

    impl Probe for Queues {
        fn on_sample<H: Header, P: SwitchProgram<H>>(
            &mut self,
            now: Time,
            fabric: &mut Fabric<H, P>,
            _delivered: &[u64],
        ) {
            if now > Time::ZERO + Span::from_us(2_000) {
                self.0.push(fabric.queues().map(|(_, bytes)| bytes).max().unwrap_or(0));
            }
        }
    }

    /// Two flows that start a millisecond apart have the same window 20 ms later. Together they use
    /// eta of the link and their additive steps, 1 %; queues are almost empty.
    #[test]
    fn two_flows_share_fairly_and_without_a_queue() {
        let mut spec = spec(star(3).build().unwrap());
        spec.sample = Some(Span::from_us(1));
        let arrivals =
            vec![arrival(0, 1, 0, 1_000_000_000), arrival(1_000_000_000, 2, 0, 1_000_000_000)];
        let config = HpccConfig { flows_per_link: 10, ..HpccConfig::paper() };
        let mut sim = sim(config, spec, arrivals, Queues::default());
        let sent = |sim: &Sim<HpccTransport, _, Queues>| {
            let to_first = sim.fabric().n_interfaces() as usize;
            sim.fabric().port_samples().nth(to_first).unwrap().sent as f64
        };
        while sim.now() < Time::ZERO + Span::from_us(10_000) {
            sim.run(10_000);
        }
        let (from, before) = (sim.now(), sent(&sim));
        while sim.now() < Time::ZERO + Span::from_us(20_000) {
            sim.run(10_000);
        }
        let share = (sent(&sim) - before) * 8_000.0 / (sim.now() - from).as_ps() as f64 / 100.0;
        // Each round trip both windows W become W eta / U + W_AI: U is eta (1 + 2 W_AI / (2 W)).
        let expected = 0.95 * (1.0 + 2.0 * 184.0 / 35_500.0);
        assert!((share - expected).abs() < 0.005, "{share} of the rate, {expected} expected");
        let window = |host, msg| sim.endpoint(host).window(MsgId::new(msg)).unwrap();
        let (one, two) = (window(1, 0), window(2, 1));
        assert!((one / two - 1.0).abs() < 0.1, "windows {one} and {two}");
        let queues = sim.into_probe().0;
        let mean = queues.iter().map(|&q| f64::from(q)).sum::<f64>() / queues.len() as f64;
        assert!(mean < FULL as f64, "{mean} bytes wait on average");
    }

    /// Returns the share of B T that is queued if the windows of `n` flows do not change: W = W eta
    /// / U + W_AI (algorithm 1) and U = 1 + q / (B T).
    ///
    /// A flow sends while less than W is in flight, half a packet more than W on average. n of that
    /// are the queue and B T. `step` is W_AI / (B T) and `full` a packet; zero if the link is not
    /// full.
    fn queue_of_the_fixed_point(n: f64, step: f64, full: f64) -> f64 {
        let excess = |q: f64| n * (step * (1.0 + q) / (q + 0.05) + full / 2.0) - 1.0 - q;
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            *if excess(middle) > 0.0 { &mut low } else { &mut high } = middle;
        }
        low
    }

    /// Section 3.3: up to N flows nothing waits, with more their additive steps fill the queue.
    #[test]
    fn the_queue_of_many_flows_is_that_of_the_fixed_point() {
        let topology = TopologySpec::Star(topologies::Star {
            hosts: 61,
            access_gbps: 100.0,
            propagation_ns: 5_000.0,
            switch_ns: 450.0,
            host_ns: 450.0,
        });
        let config = HpccConfig { flows_per_link: 20, ..HpccConfig::paper() };
        for n in [10u32, 40, 60] {
            let topology = topology.build().unwrap();
            let bdp = 12.5e-3 * facts(&topology).data_rtt.as_ps() as f64;
            let mut spec = spec(topology);
            spec.sample = Some(Span::from_us(1));
            let arrivals = (1..=n).map(|from| arrival(0, from, 0, 1_000_000_000)).collect();
            let mut sim = sim(config.clone(), spec, arrivals, Queues::default());
            while sim.now() < Time::ZERO + Span::from_us(8_000) {
                sim.run(10_000);
            }
            let queues = sim.into_probe().0.split_off(3_000);
            let mean = queues.iter().map(|&q| f64::from(q)).sum::<f64>() / queues.len() as f64;
            let full = FULL as f64;
            let expected = bdp * queue_of_the_fixed_point(n.into(), 0.05 / 20.0, full / bdp);
            let (error, most) = ((mean - expected).abs(), 0.03 * expected + 1.5 * full);
            assert!(error < most, "{n} flows: {mean} bytes wait, {expected} expected");
        }
    }

    /// A flow that arrives later than sixteen others gets its share: nobody starves.
    #[test]
    fn sixteen_flows_and_a_late_one_share_within_a_factor_of_two() {
        let mut arrivals: Vec<Arrival> = (1..17).map(|n| arrival(0, n, 0, 1_000_000_000)).collect();
        arrivals.push(arrival(5_000_000_000, 17, 0, 1_000_000_000));
        let config = HpccConfig { flows_per_link: 20, ..HpccConfig::paper() };
        let mut sim = sim(config, spec(star(18).build().unwrap()), arrivals, NoProbe);
        while sim.now() < Time::ZERO + Span::from_us(25_000) {
            sim.run(10_000);
        }
        let windows: Vec<f64> =
            (1..18).map(|n| sim.endpoint(n).window(MsgId::new(n - 1)).unwrap()).collect();
        let most = windows.iter().copied().fold(0.0, f64::max);
        let least = windows.iter().copied().fold(f64::MAX, f64::min);
        assert!(most < 2.0 * least, "{windows:?}");
    }
}
