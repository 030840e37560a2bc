//! What tests of whole runs share: a network, a run of any family, and scenarios in which
//! everything goes wrong.

#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::Arc;

use rampmeter_core::{Bytes, FabricFacts, Family, MsgId, NodeId, Purpose, Rate, Rng, Span, Time};
use rampmeter_sim::*;
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

pub(crate) fn leaf_spine(racks: u64, hosts_per_rack: u64, spines: u64) -> Topology {
    leaf_spine_at(100.0, racks, hosts_per_rack, spines)
}

pub(crate) fn leaf_spine_at(gbps: f64, racks: u64, hosts_per_rack: u64, spines: u64) -> Topology {
    let spec = TopologySpec::LeafSpine {
        racks,
        hosts_per_rack,
        spines,
        access_gbps: gbps,
        core_gbps: 4.0 * gbps,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    };
    spec.build().unwrap()
}

pub(crate) fn spec(topology: Topology, seed: u64) -> SimSpec {
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

/// The facts of a network for packets of 1500 and 40 bytes.
pub(crate) fn facts(topology: &Topology) -> FabricFacts {
    topology.facts(Bytes::new(1500), Bytes::new(40))
}

#[derive(Default)]
pub(crate) struct Records(pub(crate) Vec<FlowRecord>);

impl Probe for Records {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

/// Runs to the end; returns what became of each message, in order of submission.
pub(crate) fn run<F: Family>(
    config: F::Config,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
) -> (Status, Vec<FlowRecord>) {
    let mut records = Records::default();
    let mut sim = Sim::<F, _, _>::new(spec, Arc::new(config), arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    drop(sim);
    records.0.sort_by_key(|r| r.id);
    (status, records.0)
}

pub(crate) fn arrival(at: u64, src: u32, dst: u32, size: u64) -> Arrival {
    Arrival::new(Time::from_ps(at), NodeId::new(src), NodeId::new(dst), Bytes::new(size))
}

/// IMC10 at load .6 on 144 hosts.
pub(crate) fn imc10(flows: u64, gbps: u64, seed: u64) -> Vec<Arrival> {
    let text =
        format!("pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.6\nflows = {flows}\n");
    let workload: WorkloadSpec = toml::from_str(&text).unwrap();
    let context = WorkloadContext {
        n_hosts: 144,
        access_rate: Rate::from_gbps(gbps),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
        hosts_per_rack: Some(16),
        base_dir: ".".into(),
    };
    let workload = workload.validate(&context).unwrap();
    workload.flows(seed).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size)).collect()
}

/// 1 % loss of all packets on every link: every flow of a run must finish nevertheless.
pub(crate) fn assert_all_finish_with_loss<F: Family>(
    config: F::Config,
    mut spec: SimSpec,
    flows: Vec<Arrival>,
) {
    let n = flows.len();
    spec.faults.every_link.loss = 0.01;
    spec.paranoid = false;
    let (status, records) = run::<F>(config, spec, flows);
    assert_eq!(status, Status::Finished);
    assert_eq!(records.len(), n);
    assert!(records.iter().all(|r| r.delivered.is_some() && r.failed.is_none()));
}

/// A small network (2 racks of 3 hosts, 2 spines) in which everything goes wrong; `cut` is a host
/// whose link fails for good.
pub(crate) fn scenario(topology: Topology, seed: u64) -> (SimSpec, Vec<Arrival>, Option<u32>) {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let mut spec = spec(topology, seed);
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

/// What must hold of a scenario's run, whatever went wrong: every message is over, and is reported
/// failed only if one of its ends was cut off for good. The simulator itself asserts that no byte
/// and no message is delivered twice, that delivered means every byte, and that no packet is lost
/// track of. `replay` names the run.
pub(crate) fn assert_sound(
    (status, records): &(Status, Vec<FlowRecord>),
    cut: Option<u32>,
    replay: &str,
) {
    assert_eq!(*status, Status::Finished, "{replay}");
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
