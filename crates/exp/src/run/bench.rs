//! The speed of whole runs.

use serde::Serialize;

use super::{recorder, simulate};
use crate::plan::valid::ValidPlan;
use crate::simulation::clock::Stopwatch;
use crate::simulation::progress::NullObserver;
use crate::simulation::status::ThreadCount;

/// Cost of a run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Packets put on links.
    pub hops: u64,
    /// Events.
    pub events: u64,
    /// Data packets that brought bytes for the first time.
    pub fresh_packets: u64,
    /// Processor seconds of the run; wall seconds if the system does not report them.
    pub cpu_seconds: f64,
    /// Maximum memory of the process, in bytes; zero if the system does not report it.
    pub peak_rss_bytes: u64,
    /// Hops per processor second.
    pub hops_per_cpu_second: f64,
    /// Events per processor second.
    pub events_per_cpu_second: f64,
    /// Data packets per processor second.
    pub packets_per_cpu_second: f64,
}

/// Runs `plan` with everything observed but nothing written.
pub fn bench(plan: &ValidPlan) -> BenchReport {
    let mut recorder = recorder(plan, None);
    let watch = Stopwatch::start();
    let ran = simulate(plan, &mut recorder, None, &mut NullObserver, ThreadCount::ONE);
    let elapsed = watch.elapsed(ran.threads.count);
    let cpu_seconds = elapsed.cpu_seconds.unwrap_or(elapsed.wall.as_secs_f64());
    let per_second = |n: u64| n as f64 / cpu_seconds.max(1e-9);
    BenchReport {
        hops: ran.hops,
        events: ran.counters.events,
        fresh_packets: ran.counters.fresh_packets,
        cpu_seconds,
        peak_rss_bytes: peak_rss_bytes().unwrap_or(0),
        hops_per_cpu_second: per_second(ran.hops),
        events_per_cpu_second: per_second(ran.counters.events),
        packets_per_cpu_second: per_second(ran.counters.fresh_packets),
    }
}

fn peak_rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
