//! The timer of a flow: deferred by every sign of life, counted until the flow is aborted.
//!
//! Deferring is two stores: the entry in the heap stays, and is entered anew at the later time when
//! it expires. So a packet costs nothing regardless of the number of flows.

use rampmeter_core::Time;

use super::{AttemptLimit, Timers};

/// The timer of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    due: Time,
    /// Time of its valid entry in the heap; [`Time::NEVER`] while the timer is stopped.
    entry_at: Time,
    attempts: u32,
    /// Time of the first attempt since the last sign of life.
    since: Time,
}

impl Default for Retry {
    fn default() -> Self {
        Self { due: Time::NEVER, entry_at: Time::NEVER, attempts: 0, since: Time::ZERO }
    }
}

impl Retry {
    /// Returns whether the timer runs.
    pub fn is_running(&self) -> bool {
        self.entry_at != Time::NEVER
    }

    /// Returns the time at which it expires. If it does not run, this is the last expiry or, after
    /// a sign of life, the next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Attempts since the last sign of life.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Counts an attempt at `now`. Returns false if the flow fails: the limits are exceeded.
    pub fn attempt(&mut self, now: Time, limit: &AttemptLimit) -> bool {
        self.count(now);
        !limit.is_over(self.attempts, now.saturating_since(self.since))
    }

    /// Counts an attempt at `now`.
    pub fn count(&mut self, now: Time) {
        if self.attempts == 0 {
            self.since = now;
        }
        self.attempts = self.attempts.saturating_add(1);
    }

    /// The peer is alive: attempts are counted anew.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Makes the timer due at `until`, no earlier than before. Attempts stay counted.
    pub fn postpone(&mut self, until: Time) {
        self.due = until;
    }

    /// The peer is alive, and the timer is due at `until`, no earlier than before.
    pub fn hear(&mut self, until: Time) {
        self.attempts = 0;
        self.due = until;
    }

    /// Starts the timer anew.
    pub fn start<K: Ord + Copy>(&mut self, key: K, at: Time, timers: &mut Timers<K>) {
        (self.due, self.entry_at) = (at, at);
        timers.push(at, key);
    }

    /// Makes the timer due at `at`, no earlier than before, and starts it if it is stopped.
    pub fn defer<K: Ord + Copy>(&mut self, key: K, at: Time, timers: &mut Timers<K>) {
        self.due = at;
        if !self.is_running() {
            self.start(key, at, timers);
        }
    }

    /// Takes an expired entry of the heap, of time `at`. Returns whether the timer is due, which
    /// stops it. An entry that is stale is ignored; one that was deferred is entered anew.
    pub fn expires<K: Ord + Copy>(
        &mut self,
        key: K,
        (at, now): (Time, Time),
        timers: &mut Timers<K>,
    ) -> bool {
        if self.entry_at != at {
            return false;
        }
        if self.due > now {
            self.start(key, self.due, timers);
            return false;
        }
        self.entry_at = Time::NEVER;
        true
    }
}
