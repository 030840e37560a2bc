//! When an observer is told of progress.

use std::time::{Duration, Instant};

/// How often an observer is told of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Tells when progress is due.
pub(crate) struct Pace {
    told: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { told: wall_clock() }
    }

    /// Whether progress is due. If it is, the next is due an interval later. Reads the clock.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.told.elapsed() >= PROGRESS_EVERY;
        if is_due {
            self.told = wall_clock();
        }
        is_due
    }
}

/// The wall clock, for progress and manifests; results do not depend on it.
#[expect(clippy::disallowed_methods, reason = "progress and manifests tell wall time")]
pub(crate) fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}
