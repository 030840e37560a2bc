//! cosy in whole simulations: exact times, bounds, rejects, faults by seed.

mod common;

use common::*;
use std::sync::Arc;

use rampmeter_core::{Bytes, Rate, Time};
use rampmeter_proto::cosy::config::PathFacts;
use rampmeter_proto::cosy::{Cosy, CosyConfig, CosyFamily};
use rampmeter_sim::*;

fn on(config: CosyConfig, topology: &Topology) -> Cosy {
    let Shape { switches, ratio, ports } = topology.shape();
    config.on(&facts(topology), PathFacts { switches, ratio, ports }).unwrap()
}

fn run(config: CosyConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let config = on(config, &spec.topology);
    common::run::<CosyFamily>(config, spec, arrivals)
}

#[test]
fn a_lone_message_completes_within_its_bound() {
    for slots in [1, 2, 8, 16] {
        let config = CosyConfig { slots, ..CosyConfig::paper() };
        let spec = spec(leaf_spine(9, 16, 4), 1);
        let bound = on(config.clone(), &spec.topology).bound(Bytes::new(128_000));
        let (status, records) = run(config, spec, vec![arrival(310_200, 81, 28, 128_000)]);
        assert_eq!(status, Status::Finished);
        let took = records[0].completed.unwrap() - records[0].arrival;
        println!("K={slots}: {} of {} us", took.as_us_f64(), bound.as_us_f64());
        assert!(took <= bound);
    }
}

/// Poisson arrivals of messages of one size between all hosts.
fn poisson(
    topology: &Topology,
    gbps: u64,
    size: u64,
    load: f64,
    n: u64,
    seed: u64,
) -> Vec<Arrival> {
    let text =
        format!("pattern = \"all-to-all\"\nload = {load}\nflows = {n}\n[sizes]\nfixed = {size}\n");
    let workload: rampmeter_workload::WorkloadSpec = toml::from_str(&text).unwrap();
    let context = rampmeter_workload::WorkloadContext {
        n_hosts: topology.n_hosts(),
        access_rate: Rate::from_gbps(gbps),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
        hosts_per_rack: None,
        base_dir: ".".into(),
    };
    let workload = workload.validate(&context).unwrap();
    workload.flows(seed).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size)).collect()
}

struct Seen {
    completed: usize,
    rejected: usize,
    failed: usize,
    worst: f64,
    bound: f64,
    queue: u64,
}

fn measure(config: CosyConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> Seen {
    let cosy = Arc::new(on(config, &spec.topology));
    let sizes: Vec<Bytes> = arrivals.iter().map(|a| a.size).collect();
    let mut records = Records::default();
    let mut sim =
        Sim::<CosyFamily, _, _>::new(spec, Arc::clone(&cosy), arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    let queue = sim.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max().unwrap();
    drop(sim);
    assert_eq!(status, Status::Finished);
    let mut seen = Seen { completed: 0, rejected: 0, failed: 0, worst: 0.0, bound: 0.0, queue };
    for r in &records.0 {
        let bound = cosy.bound(sizes[r.id.idx()]);
        seen.bound = bound.as_us_f64();
        if let Some(end) = r.completed {
            assert!(end - r.arrival <= bound, "{r:?}");
            seen.completed += 1;
            seen.worst = seen.worst.max((end - r.arrival).as_us_f64());
        }
        seen.rejected += usize::from(r.rejected.is_some());
        seen.failed += usize::from(r.failed.is_some());
    }
    seen
}

/// Whatever goes wrong, each message has one fate, known within its bound, and nothing stays reserved.
#[test]
fn faults_leave_one_fate_a_message_and_no_reservation() {
    for seed in 0..1_000 {
        let slots = 1 << (seed % 5);
        for config in [CosyConfig { slots, ..CosyConfig::paper() }, CosyConfig::rsvp()] {
            let (mut spec, mut arrivals, _) = scenario(leaf_spine(2, 3, 2), seed);
            spec.faults
                .outages
                .iter_mut()
                .for_each(|o| o.until = o.until.min(Time::from_ps(5_000_000_000)));
            let cosy = Arc::new(on(config, &spec.topology));
            // When this one is over, everything outside of its rack must be.
            let rack = seed as u32 % 2;
            arrivals.push(arrival(20_000_000_000, 3 * rack, 3 * rack + 1, 1_000));
            let mut records = Records::default();
            let n = arrivals.len();
            let config = Arc::clone(&cosy);
            let mut sim =
                Sim::<CosyFamily, _, _>::new(spec, config, arrivals.into_iter(), &mut records);
            assert_eq!(sim.run(u64::MAX), Status::Finished, "seed {seed}");
            for host in (0..6).filter(|host| host / 3 != rack || host % 3 == 2) {
                assert!(sim.endpoint(host).is_idle(), "seed {seed}: host {host} {:?}", sim.endpoint(host));
            }
            for switch in (0..4).filter(|&switch| switch != rack) {
                let left = sim.fabric().program(switch).reserved(sim.now());
                assert_eq!(left, 0, "seed {seed}: switch {switch}");
            }
            drop(sim);
            assert_eq!(records.0.len(), n);
            for r in &records.0 {
                let ends = [r.completed, r.failed, r.rejected];
                let ends: Vec<Time> = ends.into_iter().flatten().collect();
                assert_eq!(ends.len(), 1, "seed {seed}: {r:?}");
                assert!(r.rejected.is_none() || r.delivered.is_none(), "seed {seed}: {r:?}");
                let bound = cosy.bound(r.size).scale_floor(1_000_051, 1_000_000);
                assert!(ends[0] - r.arrival <= bound, "seed {seed}: {r:?}, bound {bound}");
            }
        }
    }
}
