//! The parts of the engine: the event queue against a binary heap, and bare forwarding.

#[path = "../tests/common/mod.rs"]
mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::Arc;

use common::{Blast, Segmentation};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_sim::engine::{EventKey, Wheel};
use rampmeter_sim::*;
use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time};

/// Distances of events as a packet network has them: mostly a link's delay, now and then a timer.
fn ahead(rng: &mut Rng) -> u64 {
    match rng.uniform_below(10) {
        0 => 3_390_400,
        1..=3 => 653_200,
        _ => 770_000 + rng.uniform_below(120_000) as u64,
    }
}

/// The hold model: pop one, push one, at a constant number of pending events.
fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("hold");
    group.throughput(Throughput::Elements(10_000));
    for pending in [4_000u32, 40_000] {
        group.bench_function(BenchmarkId::new("wheel", pending), |b| {
            let mut rng = Rng::new(1, 0, Purpose::Test);
            let mut wheel = Wheel::new(Span::from_ps(1024));
            for code in 0..pending.into() {
                wheel.push(EventKey { time: Time::from_ps(ahead(&mut rng)), code });
            }
            b.iter(|| {
                for _ in 0..10_000 {
                    let key = wheel.pop().expect("events are pending");
                    let time = key.time + Span::from_ps(ahead(&mut rng));
                    wheel.push(EventKey { time, ..key });
                }
            });
        });
        group.bench_function(BenchmarkId::new("heap", pending), |b| {
            let mut rng = Rng::new(1, 0, Purpose::Test);
            let mut heap: BinaryHeap<_> =
                (0..u64::from(pending)).map(|n| Reverse((ahead(&mut rng), n))).collect();
            let mut n = u64::from(pending);
            b.iter(|| {
                for _ in 0..10_000 {
                    let Reverse((time, _)) = heap.pop().expect("events are pending");
                    heap.push(Reverse((time + ahead(&mut rng), n)));
                    n += 1;
                }
            });
        });
    }
    group.finish();
}

/// Hosts that send full packets to random others at load 0.6, with no transport.
fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("forward");
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
    for (name, topology) in [("leaf-spine-144", leaf_spine), ("fat-tree-1024", fat_tree)] {
        let topology = topology.build().expect("a valid topology");
        let packets = 200_000;
        let hops = run(&topology, packets);
        group.throughput(Throughput::Elements(hops));
        group.bench_function(name, |b| b.iter(|| black_box(run(&topology, packets))));
    }
    group.finish();
}

fn run(topology: &Topology, packets: u64) -> u64 {
    let n = topology.n_hosts();
    let mut rng = Rng::new(1, 0, Purpose::Test);
    let gap = 120_000.0 / 0.6 / f64::from(n);
    let mut at = 0.0;
    let arrivals = (0..packets).map(move |_| {
        at += rng.exponential() * gap;
        let src = rng.uniform_below(n as usize) as u32;
        let dst = (src + 1 + rng.uniform_below(n as usize - 1) as u32) % n;
        let (src, dst) = (NodeId::new(src), NodeId::new(dst));
        Arrival::new(Time::from_ps(at as u64), src, dst, Bytes::new(1460))
    });
    let spec = SimSpec {
        topology: topology.clone(),
        fabric: FabricConfig::default(),
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed: 1,
        drain: Span::from_us(1_000),
        sample: None,
        paranoid: false,
    };
    let config = Arc::new(Segmentation::default());
    let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, NoProbe);
    while sim.run(u64::MAX) == Status::Running {}
    sim.fabric().stats().hops
}

criterion_group!(benches, hold, forward);
criterion_main!(benches);
