//! Clocks of runs: times at which an observer is notified of progress, and the duration of a run.

use std::time::{Duration, Instant};

/// Interval at which an observer is notified of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Timer of the reports of progress.
pub(crate) struct ProgressTimer {
    reported_at: Instant,
}

impl ProgressTimer {
    pub(crate) fn new() -> Self {
        Self { reported_at: wall_clock() }
    }

    /// Returns true if progress is due. If it is, the next is due an interval later. Reads the
    /// clock.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.reported_at.elapsed() >= PROGRESS_EVERY;
        if is_due {
            self.reported_at = wall_clock();
        }
        is_due
    }
}

/// Measures a run.
pub(crate) struct Stopwatch {
    wall: Instant,
    /// Processor time of this thread and of the process, in seconds; `None` if the system does not
    /// report it.
    cpu: [Option<f64>; 2],
}

/// Time that a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElapsedTime {
    pub(crate) wall: Duration,
    /// Processor time of the thread in seconds, or of the process if the run had several threads.
    /// Other work on the machine lengthens `wall` alone.
    pub(crate) cpu_seconds: Option<f64>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { wall: wall_clock(), cpu: [thread_cpu_seconds(), process_cpu_seconds()] }
    }

    /// Returns the time since the start, which was in the same thread, of a run in `n_threads`.
    pub(crate) fn elapsed(&self, n_threads: usize) -> ElapsedTime {
        let (from, until) = match n_threads {
            1 => (self.cpu[0], thread_cpu_seconds()),
            _ => (self.cpu[1], process_cpu_seconds()),
        };
        let cpu_seconds = from.zip(until).map(|(from, until)| until - from);
        ElapsedTime { wall: self.wall.elapsed(), cpu_seconds }
    }
}

/// Returns the processor time of the calling thread, from the first field of its schedstat
/// (nanoseconds).
fn thread_cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}

/// Returns the processor time of all threads of the process: fields 14 and 15 of its stat, in
/// hundredths of a second (proc(5)).
fn process_cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut hundredths = || fields.next()?.parse::<f64>().ok();
    Some((hundredths()? + hundredths()?) / 100.0)
}

/// Returns the wall clock, for progress and manifests; results do not depend on it.
#[expect(clippy::disallowed_methods, reason = "progress and manifests have wall time")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}
