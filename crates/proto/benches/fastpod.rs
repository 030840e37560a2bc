//! Work of an arbiter for one slot of a pod (Fastpod §3.1), while every host has demands. It
//! computes a matching, an aggregation switch for each pair, and the SCHDs of all hosts. A slot of
//! the paper's pod takes 370 ns at 100 Gbit/s; the report gives slots a second.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_proto::fastpod::wire::{DEMANDS_MAX, Demand, FastpodHeader, List};
use rampmeter_proto::fastpod::{Fastpod, FastpodArbiter, FastpodConfig, FastpodTransport};
use rampmeter_sim::TopologySpec;
use rampmeter_testkit::TestNetwork;
use rampmeter_types::packet::Marks;
use rampmeter_types::{MsgId, NodeId, Packet, PayloadRef, Priority, Protocol, Purpose, Rng, Time};

/// Destinations that each host wants at one time.
const WANTED: u32 = 9;
/// Slots from one RTS of a host to the next.
const RTS_EVERY: u32 = 8;

/// An arbiter whose hosts want more slots than there will be.
struct Load {
    arbiter: FastpodArbiter,
    fastpod: Arc<Fastpod>,
    now: Time,
    slots: u32,
}

impl Load {
    fn new(k: u32) -> Self {
        let spec = format!("kind = 'pod'\nk = {k}");
        let topology = toml::from_str::<TopologySpec>(&spec).unwrap().build().unwrap();
        let place = TestNetwork::<FastpodTransport>::simulated(&FastpodConfig::paper(), topology);
        let fastpod = Arc::new(place.config);
        let rng = Rng::new(1, 0, Purpose::Test);
        let node = NodeId::new(fastpod.n_hosts);
        let arbiter = FastpodArbiter::new(Arc::clone(&fastpod), node, rng, Time::ZERO);
        let mut load = Self { arbiter, fastpod, now: Time::ZERO, slots: 0 };
        for number in 1..=WANTED.div_ceil(DEMANDS_MAX as u32) {
            (0..load.fastpod.n_hosts).for_each(|host| load.rts(host, number));
        }
        (0..100).for_each(|_| load.slot());
        load
    }

    /// An RTS of a host with endless demands of some destinations, spread over the pod.
    fn rts(&mut self, host: u32, number: u32) {
        let n_hosts = self.fastpod.n_hosts;
        let mut demands = List::default();
        for n in (number - 1) * DEMANDS_MAX as u32..number * DEMANDS_MAX as u32 {
            let dst = (host + 1 + n * (n_hosts - 1) / WANTED) % n_hosts;
            demands.push(Demand { dst: dst as u16, total: u32::MAX / 2 });
        }
        let (epoch, incarnation, acks) = (2, 1, List::default());
        let packet = Packet {
            header: FastpodHeader::Rts { epoch, incarnation, number, seen: 0, demands, acks },
            payload: PayloadRef { offset: 0, msg: MsgId::new(0), len: 0 },
            src: NodeId::new(host),
            dst: NodeId::new(n_hosts),
            wire_bytes: 64,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        };
        self.arbiter.handle_packet(self.now, &packet);
    }

    /// All that the arbiter does in the time of a slot.
    fn slot(&mut self) {
        let end = self.now + self.fastpod.slot;
        self.slots += 1;
        for host in (self.slots % RTS_EVERY..self.fastpod.n_hosts).step_by(RTS_EVERY as usize) {
            self.rts(host, 1);
        }
        while self.arbiter.poll_timeout() <= end {
            self.now = self.now.max(self.arbiter.poll_timeout());
            self.arbiter.handle_timeout(self.now);
            while let Some(packet) = self.arbiter.poll_transmit(self.now) {
                std::hint::black_box(packet);
            }
        }
        self.now = end;
    }
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("a slot of a pod whose hosts always send");
    for k in [8, 16, 32] {
        let mut load = Load::new(k);
        group.throughput(Throughput::Elements(1));
        let slot = load.fastpod.slot.as_ps() / 1_000;
        let name = format!("{} hosts, slots of {slot} ns", load.fastpod.n_hosts);
        group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| load.slot()));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
