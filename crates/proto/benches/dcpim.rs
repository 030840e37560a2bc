//! The parts of dcPIM: a matching choice, the wire codec, and whole runs.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_proto::dcpim::matching::{Capacity, Offer, OfferOrder, choose};
use rampmeter_proto::dcpim::wire::{DcpimHeader, Match, Step};
use rampmeter_proto::dcpim::{DcpimConfig, DcpimTransport};
use rampmeter_sim::*;
use rampmeter_types::{Bytes, Header, NodeId, Purpose, Rate, Rng, Span};
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

fn matching(c: &mut Criterion) {
    let mut rng = Rng::new(1, 0, Purpose::Test);
    let offer = |peer: u32| {
        let (step, round, phase) = (Step::Request, 0, 0);
        let (channels, prompt, remaining, announced) = (2, 0, peer * 7 % 13, u64::from(peer));
        let fields = Match { step, channels, prompt, round, phase, remaining, announced };
        Offer { peer: NodeId::new(peer), fields }
    };
    for n in [4, 32] {
        let offers: Vec<Offer> = (0..n).map(offer).collect();
        c.bench_function(&format!("choose/{n}"), |b| {
            let capacity = Capacity { channels: 4, prompt: 0 };
            b.iter(|| {
                let mut offers = offers.clone();
                choose(&mut offers, OfferOrder::Random, capacity, &mut rng);
                black_box(offers.len())
            });
        });
    }
}

fn codec(c: &mut Criterion) {
    let header = DcpimHeader::Data { rx_slot: 7, seq: 12, number: 12 };
    c.bench_function("codec/data", |b| {
        let mut bytes = [0; 64];
        b.iter(|| {
            let written = black_box(header).encode(&mut bytes).unwrap_or(0);
            black_box(DcpimHeader::decode(&bytes[..written]))
        });
    });
}

fn runs(c: &mut Criterion) {
    let mut group = c.benchmark_group("imc10-load-0.6");
    group.sample_size(10);
    let leaf_spine = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 9,
        hosts_per_rack: 16,
        spines: 4,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    let fat_tree = TopologySpec::FatTree(topologies::FatTree {
        pods: None,
        k: 16,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    for (name, topology, flows) in
        [("leaf-spine-144", leaf_spine, 5_000), ("fat-tree-1024", fat_tree, 5_000)]
    {
        let topology = topology.build().expect("a valid topology");
        for (preset, config) in
            [("paper", DcpimConfig::paper()), ("reference", DcpimConfig::reference())]
        {
            let hops = run(&topology, config.clone(), flows);
            group.throughput(Throughput::Elements(hops));
            group.bench_function(BenchmarkId::new(name, preset), |b| {
                b.iter(|| black_box(run(&topology, config.clone(), flows)));
            });
        }
    }
    group.finish();
}

fn run(topology: &Topology, config: DcpimConfig, flows: u64) -> u64 {
    let text = format!("pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.6\nflows = {flows}");
    let spec: WorkloadSpec = toml::from_str(&text).expect("a valid workload");
    let context = WorkloadContext {
        n_hosts: topology.n_hosts(),
        access_rate: Rate::from_gbps(100),
        host_rates: Vec::new(),
        payload: config.packet.payload,
        wire: config.packet.wire(),
        hosts_per_rack: None,
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let workload = spec.validate(&context).expect("a valid workload");
    let arrivals = workload.flows(1).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size));
    let facts = topology.facts(config.packet.wire(), Bytes::new(40));
    let dcpim = Arc::new(config.derive(&facts).expect("valid parameters"));
    let spec = SimSpec {
        topology: topology.clone(),
        fabric: FabricConfig::default(),
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed: 1,
        drain: Span::from_us(100_000),
        sample: None,
        paranoid: false,
    };
    let mut sim = Sim::<DcpimTransport, _, _>::new(spec, dcpim, arrivals, NoProbe);
    while sim.run(u64::MAX) == Status::Running {}
    sim.fabric().stats().hops
}

criterion_group!(benches, matching, codec, runs);
criterion_main!(benches);
