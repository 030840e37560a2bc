//! Messages from one application to another through the rings of one node, without a network.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use common::{Testbed, TestbedConfig};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_ring::{Completion, Port, PortConfig};
use rampmeter_runtime::WaitMode;
use rampmeter_types::{NodeId, Span};

const HERE: NodeId = NodeId::new(0);

/// Waits for a message, and does not sleep if the node does not sleep either.
fn receive(port: &Port, wait: WaitMode) {
    loop {
        let next = match wait {
            WaitMode::Block { .. } => port.wait(None),
            WaitMode::Poll => port.try_next(),
        };
        if let Some(Completion::Received(_)) = next.unwrap() {
            return;
        }
    }
}

fn ports(bed: &Testbed) -> [Port; 2] {
    [1, 2].map(|service| Port::attach(&bed.sockets[0], service, PortConfig::default()).unwrap())
}

/// Measures the round trip of a message of 64 bytes.
fn round_trip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round trip");
    for (name, wait) in
        [("asleep", WaitMode::Block { spin: Span::ZERO }), ("awake", WaitMode::Poll)]
    {
        let dir = tempfile::tempdir().unwrap();
        let bed = Testbed::start(
            dir.path(),
            &TestbedConfig { n_nodes: 1, wait, ..TestbedConfig::default() },
        );
        let [a, b] = ports(&bed);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                a.submit(HERE, 2, &[1; 64]).unwrap();
                receive(&b, wait);
                b.submit(HERE, 1, &[2; 64]).unwrap();
                receive(&a, wait);
            });
        });
        drop((a, b));
        bed.stop();
    }
    group.finish();
}

/// Measures one-way throughput with as many messages in flight as the rings hold.
fn one_way(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one way");
    for size in [64, 1_024, 16_384] {
        let dir = tempfile::tempdir().unwrap();
        let bed =
            Testbed::start(dir.path(), &TestbedConfig { n_nodes: 1, ..TestbedConfig::default() });
        let [a, b] = ports(&bed);
        let bytes = vec![1; size];
        group.throughput(Throughput::Bytes(512 * size as u64));
        group.bench_function(format!("512 of {size} bytes"), |bencher| {
            bencher.iter(|| {
                let (mut sent, mut taken) = (0, 0);
                while taken < 512 {
                    if sent < 512 && a.submit(HERE, 2, &bytes).is_ok() {
                        sent += 1;
                        continue;
                    }
                    while b.wait(Some(Duration::from_millis(1))).unwrap().is_some() {
                        taken += 1;
                        if taken == 512 {
                            break;
                        }
                    }
                    while a.try_next().unwrap().is_some() {}
                }
            });
        });
        drop((a, b));
        bed.stop();
    }
    group.finish();
}

criterion_group!(benches, round_trip, one_way);
criterion_main!(benches);
