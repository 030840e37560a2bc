//! The arbiter's work: time slots and paths.
//!
//! Throughput is in allocations, each one packet of 1500 B: the published arbiter schedules
//! 2.21 Tbit/s on 8 cores (Fastpass §7), 23 million a second and core.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_proto::fastpass::allocate::{Allocation, Allocator};
use rampmeter_proto::fastpass::paths::Paths;
use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{Purpose, Rng};

const BATCH: u32 = 16;

/// Every host has demand for several others, as at a load of about .9.
fn loaded(n_hosts: u32, pairs_per_host: u32, slots: u32) -> Allocator {
    let mut rng = Rng::new(1, 0, Purpose::Test);
    let mut allocator = Allocator::new(n_hosts, BATCH);
    for src in 0..n_hosts {
        for _ in 0..pairs_per_host {
            let dst =
                (src as usize + 1 + rng.uniform_below(n_hosts as usize - 1)) % n_hosts as usize;
            allocator.request(src as u16, dst as u16, slots);
        }
    }
    allocator
}

fn slots(c: &mut Criterion) {
    let mut group = c.benchmark_group("allocate");
    for n_hosts in [64, 256, 512, 1024] {
        for pairs in [4, 16] {
            let mut out = Vec::new();
            loaded(n_hosts, pairs, 1_000_000).allocate(&mut out);
            group.throughput(Throughput::Elements(out.len() as u64));
            let mut allocator = loaded(n_hosts, pairs, 1_000_000_000);
            let id = BenchmarkId::new(format!("{pairs} pairs a host"), n_hosts);
            group.bench_function(id, |b| {
                b.iter(|| {
                    out.clear();
                    allocator.allocate(&mut out);
                });
            });
        }
    }
    group.finish();
}

fn paths(c: &mut Criterion) {
    let mut group = c.benchmark_group("paths of a slot");
    for (racks, hosts, spines) in [(9u16, 16u16, 4u16), (64, 16, 16)] {
        let plan = RegularPaths {
            rack_of: (0..racks * hosts).map(|h| h / hosts).collect(),
            pod_of: vec![0; usize::from(racks)],
            tor_uplinks: spines,
            agg_uplinks: 1,
        };
        let mut dsts: Vec<u16> = (0..racks * hosts).collect();
        Rng::new(1, 0, Purpose::Test).shuffle(&mut dsts);
        let slot: Vec<Allocation> =
            (0..).zip(dsts).map(|(src, dst)| Allocation { slot: 0, src, dst }).collect();
        group.throughput(Throughput::Elements(slot.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(racks * hosts), |b| {
            let (mut paths, mut chosen) = (Paths::default(), vec![0; slot.len()]);
            b.iter(|| paths.choose(&plan, &slot, &mut chosen));
        });
    }
    group.finish();
}

criterion_group!(benches, slots, paths);
criterion_main!(benches);
