//! dcPIM in whole simulations: exact times, loss of everything, faults by seed, clocks apart.

use std::sync::Arc;

use rampmeter_core::{Bytes, MsgId, NodeId, Purpose, Rate, Rng, Span, Time};
use rampmeter_proto::dcpim::config::{Handshake, Rounds};
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily};
use rampmeter_sim::*;
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

fn leaf_spine(racks: u64, hosts_per_rack: u64, spines: u64) -> Topology {
    let spec = TopologySpec::LeafSpine {
        racks,
        hosts_per_rack,
        spines,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    };
    spec.build().unwrap()
}

fn spec(topology: Topology, seed: u64) -> SimSpec {
    SimSpec {
        topology,
        fabric: FabricConfig::default(),
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed,
        drain: Span::from_us(2_000_000),
        sample: Some(Span::from_us(50)),
        paranoid: true,
    }
}

fn presets() -> [DcpimConfig; 2] {
    [DcpimConfig::paper(), DcpimConfig::reference()]
}

#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Probe for Records {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

fn run(config: DcpimConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let facts = spec.topology.facts(config.payload + config.header, config.header);
    let dcpim = Arc::new(config.on(&facts).unwrap());
    let mut records = Records::default();
    let mut sim = Sim::<DcpimFamily, _, _>::new(spec, dcpim, arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    drop(sim);
    records.0.sort_by_key(|r| r.id);
    (status, records.0)
}

fn arrival(at: u64, src: u32, dst: u32, size: u64) -> Arrival {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    Arrival { at: Time::from_ps(at), src, dst, size: Bytes::new(size) }
}

mod alone {
    use super::*;

    /// The notification (3.2 ns at 100 Gbit/s) goes first, then the pipeline runs as fast as links
    /// do: 4 x 650 ns and 300 ns for the first packet between racks, 120 ns for each further one.
    #[test]
    fn a_short_flow_takes_the_pipeline_time_after_its_notification() {
        for config in presets() {
            for (dst, packets, delivered_ns) in
                [(22, 1, 2_900), (22, 49, 2_900 + 48 * 120), (5, 1, 1_540), (5, 4, 1_540 + 360)]
            {
                let flow = arrival(24_600, 1, dst, packets * 1460);
                let (status, records) =
                    run(config.clone(), spec(leaf_spine(9, 16, 4), 3), vec![flow]);
                assert_eq!(status, Status::Finished);
                let delivered = records[0].delivered.unwrap() - records[0].arrival;
                // The paper's finish takes another spine than the last packet, is there first, and
                // goes before it on the last link.
                let overtakes = config.handshake == Handshake::Explicit && dst == 22 && packets > 1;
                let control = if overtakes { 6_400 } else { 3_200 };
                assert_eq!(delivered.as_ps(), delivered_ns * 1_000 + control);
            }
        }
    }

    /// protocol-notes: 5.508 us and 2.846 us from submission to the final acknowledgement, plus the
    /// notification; the first rows of the published run read 5 511 200 ps.
    #[test]
    fn the_acknowledgement_of_the_reference_preset_takes_the_published_time() {
        for (dst, ps) in [(22, 5_511_200), (5, 2_849_600)] {
            let flow = vec![arrival(24_600, 1, dst, 1460)];
            let (_, records) = run(DcpimConfig::reference(), spec(leaf_spine(9, 16, 4), 3), flow);
            assert_eq!((records[0].completed.unwrap() - records[0].arrival).as_ps(), ps);
        }
    }

    /// A matched flow alone gets all k channels: once data flows it flows at line rate, but for
    /// stalls of less than a window at phase borders.
    #[test]
    fn a_long_flow_runs_at_line_rate_after_its_first_matching() {
        for config in presets() {
            let phase_ps = 30_513_600;
            let packets = 20_000;
            let flow = vec![arrival(0, 0, 100, packets * 1460)];
            let (_, records) = run(config, spec(leaf_spine(9, 16, 4), 1), flow);
            let took = (records[0].delivered.unwrap() - records[0].arrival).as_ps();
            let line = packets * 120_000;
            assert!(took > line && took < line + line / 100 + 3 * phase_ps, "{took} of {line}");
        }
    }
}

mod loss {
    use super::*;

    /// §3.5: recovery from the loss of any packet. IMC10 at load .6 with 1 % loss on every link.
    #[test]
    fn every_flow_finishes_with_1_percent_loss_of_everything() {
        let text = "pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.6\nflows = 10000\n";
        let workload: WorkloadSpec = toml::from_str(text).unwrap();
        let context = WorkloadContext {
            n_hosts: 144,
            access_rate: Rate::from_gbps(100),
            payload: Bytes::new(1460),
            wire: Bytes::new(1500),
            hosts_per_rack: Some(16),
            base_dir: ".".into(),
        };
        let flows: Vec<Arrival> = workload
            .validate(&context)
            .unwrap()
            .flows(5)
            .map(|f| Arrival { at: f.arrival, src: f.src, dst: f.dst, size: f.size })
            .collect();
        for config in presets() {
            let mut spec = spec(leaf_spine(9, 16, 4), 5);
            spec.faults.every_link.loss = 0.01;
            spec.paranoid = false;
            let (status, records) = run(config, spec, flows.clone());
            assert_eq!(status, Status::Finished);
            assert_eq!(records.len(), 10_000);
            assert!(records.iter().all(|r| r.delivered.is_some() && r.failed.is_none()));
        }
    }
}

mod faults {
    use super::*;

    /// A small network in which everything goes wrong; `cut` is a host whose link fails for good.
    pub(super) fn scenario(seed: u64) -> (SimSpec, Vec<Arrival>, Option<u32>) {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut spec = spec(leaf_spine(2, 3, 2), seed);
        let delay_max = Span::from_us(1 + rng.below(20) as u64);
        spec.faults.every_link = LinkFault {
            loss: rng.unit() * 0.05,
            duplicate: rng.unit() * 0.05,
            reorder: rng.unit() * 0.1,
            delay_max,
        };
        // Links 0 to 5 belong to hosts, 6 to 9 to the spines.
        let from = Time::from_ps(rng.below(300_000_000) as u64);
        let until = from + Span::from_us(1 + rng.below(500) as u64);
        let target = if rng.chance(0.5) {
            Target::Link(6 + rng.below(4) as u32)
        } else {
            Target::Switch(2 + rng.below(2) as u32)
        };
        spec.faults.outages.push(Outage { target, from, until });
        let cut = rng.chance(0.3).then(|| rng.below(6) as u32);
        if let Some(host) = cut {
            let (target, until) = (Target::Link(host), Time::NEVER);
            spec.faults.outages.push(Outage { target, from, until });
        }
        spec.clocks.offset_max = Span::from_ns(rng.below(2_000) as u64);
        spec.clocks.drift_ppm_max = rng.unit() * 50.0;
        let mut at = 0;
        let flow = |_| {
            at += rng.below(20_000_000) as u64;
            let src = rng.below(6) as u32;
            let dst = (src + 1 + rng.below(5) as u32) % 6;
            let size = match rng.below(3) {
                0 => 1 + rng.below(3_000),
                1 => 1 + rng.below(100_000),
                _ => 1 + rng.below(600_000),
            };
            arrival(at, src, dst, size as u64)
        };
        (spec, (0..30).map(flow).collect(), cut)
    }

    /// The simulator itself asserts that no byte and no message is delivered twice, that delivered
    /// means every byte, and that no packet is lost track of.
    #[test]
    fn every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone() {
        let seeds = 0..1_000;
        for seed in seeds {
            for (preset, config) in ["paper", "reference"].into_iter().zip(presets()) {
                let (mut spec, arrivals, cut) = scenario(seed);
                if config.round_view == Rounds::Strict {
                    // Hosts whose clocks are apart by more than a stage's slack may never match.
                    spec.clocks = ClockSpec::default();
                }
                let (status, records) = run(config, spec, arrivals);
                let replay = format!("seed {seed}, preset {preset}");
                assert_eq!(status, Status::Finished, "{replay}");
                assert_eq!(records.len(), 30, "{replay}");
                for (i, r) in records.iter().enumerate() {
                    assert_eq!(r.id, MsgId::new(i as u32), "{replay}");
                    let ends = [Some(r.src.get()), Some(r.dst.get())];
                    if cut.is_none() || !ends.contains(&cut) {
                        assert!(r.failed.is_none(), "{replay}: {r:?}");
                    }
                    assert!(r.failed.is_some() != r.completed.is_some(), "{replay}: {r:?}");
                    assert!(r.completed.is_none() || r.delivered.is_some(), "{replay}: {r:?}");
                }
            }
        }
    }
}

mod clocks {
    use super::*;

    /// §3.5: clocks need not be synchronised. Within the slack of beta = 1.3 (0.78 us) offsets cost
    /// little; stages, and even phases, apart they cost matches but no flow starves.
    #[test]
    fn matching_survives_clocks_apart() {
        let mean_fct = |offset: Span| {
            let mut spec = spec(leaf_spine(2, 8, 2), 9);
            spec.clocks = ClockSpec { offset_max: offset, drift_ppm_max: 20.0 };
            let mut rng = Rng::new(4, 0, Purpose::Test);
            let flow = |i: u64| {
                let src = rng.below(16) as u32;
                let dst = (src + 1 + rng.below(15) as u32) % 16;
                arrival(i * 1_500_000, src, dst, 200_000)
            };
            let flows = (0..600).map(flow).collect();
            let (status, records) = run(DcpimConfig::paper(), spec, flows);
            assert_eq!(status, Status::Finished);
            let fct = |r: &FlowRecord| (r.delivered.unwrap() - r.arrival).as_us_f64();
            records.iter().map(fct).sum::<f64>() / records.len() as f64
        };
        let together = mean_fct(Span::ZERO);
        for (offset, factor) in
            [(Span::from_ns(300), 1.1), (Span::from_us(2), 2.0), (Span::from_us(100), 5.0)]
        {
            let apart = mean_fct(offset);
            assert!(apart < factor * together, "{offset}: {apart} us against {together} us");
        }
    }
}
