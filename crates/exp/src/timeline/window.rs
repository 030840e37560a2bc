//! The window of a timeline.

use rampmeter_types::Time;

/// The part of the run that is shown, and the events that may be added.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) events: u64,
    events_max: u64,
    pub(super) limit_reached: bool,
}

impl Window {
    pub(super) fn new(from: Time, until: Time, events_max: u64) -> Self {
        Self { from, until, events: 0, events_max, limit_reached: false }
    }

    /// Returns true if any of the time from one instant to another is in the window.
    pub(super) fn overlaps(&self, from: Time, until: Time) -> bool {
        from < self.until && until >= self.from
    }

    /// Returns true if an instant is in the window.
    pub(super) fn holds(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }

    /// Counts an event of the simulation at `at`. If the limit is reached, the window ends there.
    pub(super) fn count_event(&mut self, at: Time) -> bool {
        if self.events >= self.events_max {
            self.limit_reached = true;
            self.until = self.until.min(at);
            return false;
        }
        self.events += 1;
        true
    }
}
