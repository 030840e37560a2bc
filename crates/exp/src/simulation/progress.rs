//! Progress of a run, and the observer that it is reported to.

use rampmeter_types::Time;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Flows submitted.
    pub submitted: u64,
    /// Flows delivered.
    pub delivered: u64,
    /// Total number of flows of the run, if it is determined.
    pub total: Option<u64>,
    /// Simulated time.
    pub now: Time,
    /// Packets put on links.
    pub hops: u64,
    /// Events.
    pub events: u64,
}

/// Observer of a run, which may stop it.
pub trait Observer {
    /// Called with the progress from time to time. Returns true if the run continues.
    fn on_progress(&mut self, progress: &Progress) -> bool;
}

/// Watches nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {
    fn on_progress(&mut self, _progress: &Progress) -> bool {
        true
    }
}
