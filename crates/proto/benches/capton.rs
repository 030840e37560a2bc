//! The controller's work: figure 6 on all flows against the incremental scheduler.
//!
//! The number of active flows is held: whenever a flow completes, as predicted, another one
//! arrives, between random hosts and with a size of the Web Search workload. The paper has up to 10
//! us for 640 flows on an Intel i7-6700 (§V.C).

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rampmeter_proto::capton::network::LevelMember;
use rampmeter_proto::capton::{
    NarrowCorePolicy, Network, PendingFlow, Scheduler, schedule_by_figure6,
};
use rampmeter_proto::central::{Arrival, FlowId, RemainingSize};
use rampmeter_types::{Bytes, NodeId, Purpose, Rate, Rng};
use rampmeter_workload::SizeDist;
use rampmeter_workload::size::named;

/// Flows of up to 10 MSS are not scheduled (§IV.E).
const THRESHOLD: Bytes = Bytes::new(10 * 1_460);

/// A network under load.
struct Load {
    scheduler: Scheduler,
    sizes: SizeDist,
    rng: Rng,
    /// By flow number: source and destination.
    ends: Vec<(NodeId, NodeId)>,
}

impl Load {
    /// `flows` active flows, after each has been replaced several times.
    fn new(network: Network, flows: usize) -> Self {
        let scheduler = Scheduler::new(network);
        let sizes = named("web-search").expect("a published distribution");
        let rng = Rng::new(1, 0, Purpose::Test);
        let mut load = Self { scheduler, sizes, rng, ends: Vec::new() };
        (0..flows).for_each(|_| load.arrive());
        for _ in 0..3 * flows {
            load.complete();
            load.arrive();
        }
        load
    }

    fn arrival(&mut self) -> Arrival {
        let n = self.scheduler.network().n_hosts();
        let src = self.rng.uniform_below(n as usize) as u32;
        let dst = (src + 1 + self.rng.uniform_below(n as usize - 1) as u32) % n;
        let remaining = loop {
            let size = self.sizes.sample(&mut self.rng);
            if size > THRESHOLD {
                break size;
            }
        };
        let (src, dst) = (NodeId::new(src), NodeId::new(dst));
        self.ends.push((src, dst));
        Arrival { id: FlowId(self.ends.len() as u64 - 1), src, dst, remaining }
    }

    fn arrive(&mut self) {
        let arrival = self.arrival();
        self.scheduler.arrive(arrival);
    }

    fn complete(&mut self) {
        let (end, id) = self.scheduler.next_completion().expect("some flow transmits");
        self.scheduler.advance(end);
        self.scheduler.complete(id);
    }

    /// Returns the active flows, in the order of their arrival.
    fn pending(&self) -> Vec<PendingFlow> {
        let flows = (0..).zip(&self.ends).filter_map(|(id, &(src, dst))| {
            let remaining: RemainingSize = self.scheduler.remaining(FlowId(id))?;
            Some(PendingFlow { src, dst, remaining })
        });
        flows.collect()
    }
}

/// Returns the paper's network with this many flows.
fn paper(flows: usize) -> (String, Network, usize) {
    let (access, core) = (Rate::from_gbps(10), Rate::from_gbps(40));
    let network = Network::leaf_spine(12, 12, access, core).expect("a valid network");
    (format!("144 hosts, {flows} flows"), network, flows)
}

/// Returns the paper's network with up to 640 flows, two of 10 000 hosts with the same
/// over-subscription, in two tiers and in three.
fn networks() -> Vec<(String, Network, usize)> {
    let gbps = Rate::from_gbps;
    let member = |group, rate| LevelMember { group, up: Some(gbps(rate)), down: Some(gbps(rate)) };
    let tiers = [
        (0..10_000).map(|host| member(host / 40, 10)).collect(),
        (0..250).map(|rack| member(rack / 25, 200)).collect(),
        (0..10).map(|_| member(0, 3_330)).collect(),
    ];
    let wide = Network::leaf_spine(250, 40, gbps(10), gbps(130)).expect("a valid network");
    let pods = Network::new(&tiers, NarrowCorePolicy::Shrink).expect("a valid network");
    let mut all: Vec<_> = [10, 40, 160, 640].map(paper).into();
    all.push(("10 000 hosts, 100 000 flows".to_owned(), wide, 100_000));
    all.push(("10 000 hosts in pods, 100 000 flows".to_owned(), pods, 100_000));
    all
}

fn whole(c: &mut Criterion) {
    let mut group = c.benchmark_group("figure 6");
    group.sample_size(10);
    for (name, network, flows) in networks() {
        let load = Load::new(network, flows);
        let pending = load.pending();
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter(|| schedule_by_figure6(load.scheduler.network(), &pending));
        });
    }
    group.finish();
}

/// Two decisions an iteration.
fn incremental(c: &mut Criterion) {
    let mut group = c.benchmark_group("completion and arrival");
    group.throughput(Throughput::Elements(2));
    for (name, network, flows) in networks() {
        let mut load = Load::new(network, flows);
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter(|| {
                load.complete();
                load.arrive();
            });
        });
    }
    group.finish();
}

#[expect(clippy::disallowed_methods, reason = "how long a decision takes is wall time")]
fn timed(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// Mean, percentiles and maximum of single decisions, and how many flows each examines.
#[expect(clippy::print_stdout, reason = "criterion has no percentiles")]
fn percentiles(_: &mut Criterion) {
    const ROUNDS: usize = 100_000;
    for (name, network, flows) in networks() {
        let mut load = Load::new(network, flows);
        let (mut completions, mut arrivals) = (Vec::new(), Vec::new());
        let before = load.scheduler.n_flows_examined();
        for _ in 0..ROUNDS {
            completions.push(timed(|| load.complete()));
            let arrival = load.arrival();
            arrivals.push(timed(|| {
                load.scheduler.arrive(arrival);
            }));
        }
        let examined = (load.scheduler.n_flows_examined() - before) as f64 / (2 * ROUNDS) as f64;
        println!("{name}: {examined:.1} flows examined a decision");
        for (what, mut times) in [("completion", completions), ("arrival", arrivals)] {
            times.sort_unstable();
            let at = |p: usize| times[(times.len() - 1) * p / 1_000];
            let mean = times.iter().sum::<Duration>() / ROUNDS as u32;
            let (p50, p99, most) = (at(500), at(990), at(1_000));
            println!("  {what}: mean {mean:?}, p50 {p50:?}, p99 {p99:?}, maximum {most:?}");
        }
    }
}

criterion_group!(benches, percentiles, incremental, whole);
criterion_main!(benches);
