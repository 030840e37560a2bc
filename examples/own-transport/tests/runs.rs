//! What a lone message takes, and what becomes of messages when everything goes wrong.

use std::sync::Arc;

use own_transport::StopAndWait;
use own_transport::config::{Saw, SawKeys};
use rampmeter_core::{Bytes, NodeId, Purpose, Rng, Span, Time};
use rampmeter_sim::{
    Arrival, ClockSpec, FabricConfig, FaultSpec, FlowRecord, LinkFault, Outage, Probe, Sim,
    SimSpec, Status, Target, Topology, TopologySpec,
};

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

fn saw(topology: &Topology) -> Saw {
    SawKeys::default().on(&topology.facts(Bytes::new(1500), Bytes::new(40))).unwrap()
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

#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Probe for Records {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

fn run(spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let saw = Arc::new(saw(&spec.topology));
    let mut records = Records::default();
    let mut sim = Sim::<StopAndWait, _, _>::new(spec, saw, arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    drop(sim);
    (status, records.0)
}

fn arrival(at: u64, src: u32, dst: u32, size: u64) -> Arrival {
    Arrival::new(Time::from_ps(at), NodeId::new(src), NodeId::new(dst), Bytes::new(size))
}

/// Theory first: a message of n packets takes n round trips less the last acknowledgement's way.
#[test]
fn a_message_takes_a_round_trip_a_packet() {
    let arrivals = vec![arrival(0, 0, 100, 5 * 1460)];
    let (_, records) = run(spec(leaf_spine(9, 16, 4), 1), arrivals);
    // 4 links of 650 ns; 120 + 30 + 30 + 120 ns for a packet, 3.2 + .8 + .8 + 3.2 ns for an answer.
    let (there, back) = (4 * 650_000 + 300_000, 4 * 650_000 + 8_000);
    let took = records[0].delivered.unwrap() - records[0].arrival;
    assert_eq!(took.as_ps(), 5 * there + 4 * back);
}

/// Then everything that can go wrong. The simulator itself asserts that no byte and no message is
/// delivered twice, and that delivered means every byte; the seed replays a run.
#[test]
fn every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone() {
    for seed in 0..100 {
        let (spec, arrivals, cut) = scenario(seed);
        let (status, records) = run(spec, arrivals);
        assert_eq!((status, records.len()), (Status::Finished, 30), "seed {seed}");
        for r in &records {
            let is_cut_off = [r.src.get(), r.dst.get()].map(Some).contains(&cut);
            assert!(is_cut_off || r.failed.is_none(), "seed {seed}: {r:?}");
            assert!(r.failed.is_some() != r.completed.is_some(), "seed {seed}: {r:?}");
            assert!(r.completed.is_none() || r.delivered.is_some(), "seed {seed}: {r:?}");
        }
    }
}

/// Two racks of three hosts with loss, duplication, reordering, an outage in the middle, clocks
/// apart, and sometimes a host that is cut off for good.
fn scenario(seed: u64) -> (SimSpec, Vec<Arrival>, Option<u32>) {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let mut spec = spec(leaf_spine(2, 3, 2), seed);
    spec.faults.every_link = LinkFault {
        loss: rng.unit() * 0.05,
        duplicate: rng.unit() * 0.05,
        reorder: rng.unit() * 0.1,
        delay_max: Span::from_us(1 + rng.below(20) as u64),
    };
    // Links 0 to 5 belong to hosts, 6 to 9 to the spines.
    let from = Time::from_ps(rng.below(300_000_000) as u64);
    let until = from + Span::from_us(1 + rng.below(500) as u64);
    let target = Target::Link(6 + rng.below(4) as u32);
    spec.faults.outages.push(Outage { target, from, until });
    let cut = rng.chance(0.3).then(|| rng.below(6) as u32);
    if let Some(host) = cut {
        spec.faults.outages.push(Outage { target: Target::Link(host), from, until: Time::NEVER });
    }
    spec.clocks.offset_max = Span::from_ns(rng.below(2_000) as u64);
    spec.clocks.drift_ppm_max = rng.unit() * 50.0;
    let mut at = 0;
    let flow = |_| {
        at += rng.below(20_000_000) as u64;
        let src = rng.below(6) as u32;
        let dst = (src + 1 + rng.below(5) as u32) % 6;
        arrival(at, src, dst, 1 + rng.below(100_000) as u64)
    };
    (spec, (0..30).map(flow).collect(), cut)
}
