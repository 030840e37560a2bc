//! The timer of a flow: deferred by every response, counted until the flow is aborted.
//!
//! Deferring is two stores: the entry in the heap stays, and is re-entered at the later time when
//! it expires. So a packet costs nothing regardless of the number of flows. An entry that is later
//! than the timer is due, as after a timeout that had grown, is replaced by an earlier one.

use rampmeter_types::Time;

use super::{AttemptLimit, Timers};

/// The timer of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryTimer {
    due: Time,
    /// Time of its valid entry in the heap; [`Time::NEVER`] while the timer is stopped.
    entry_at: Time,
    attempts: u32,
    /// Time of the first attempt since the last response.
    first_attempt_at: Time,
}

impl Default for RetryTimer {
    fn default() -> Self {
        Self { due: Time::NEVER, entry_at: Time::NEVER, attempts: 0, first_attempt_at: Time::ZERO }
    }
}

impl RetryTimer {
    /// Returns true if the timer runs.
    pub fn is_running(&self) -> bool {
        self.entry_at != Time::NEVER
    }

    /// Returns the time at which it expires. If it does not run, this is the last expiry or, after
    /// a response, the next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Returns the number of attempts since the last response.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Counts an attempt at `now`. Returns false if the flow fails: the limits are exceeded.
    pub fn attempt(&mut self, now: Time, limit: &AttemptLimit) -> bool {
        self.count(now);
        !limit.is_exceeded(self.attempts, now.saturating_since(self.first_attempt_at))
    }

    /// Counts an attempt at `now`.
    pub fn count(&mut self, now: Time) {
        if self.attempts == 0 {
            self.first_attempt_at = now;
        }
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Restarts the count of attempts: the peer has responded.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Makes the timer due at `until` if it runs. Attempts stay counted.
    #[inline]
    pub fn postpone<K: Ord + Copy>(&mut self, key: K, until: Time, timers: &mut Timers<K>) {
        self.due = until;
        if self.is_running() && until < self.entry_at {
            self.start(key, until, timers);
        }
    }

    /// Handles a response: the timer is due at `until` if it runs.
    #[inline]
    pub fn on_response<K: Ord + Copy>(&mut self, key: K, until: Time, timers: &mut Timers<K>) {
        self.attempts = 0;
        self.postpone(key, until, timers);
    }

    /// Handles a response: the timer is due at `until`, but no earlier than it was before. So a
    /// wait that has grown ends first: if packets wait longer than a timeout, each attempt brings
    /// packets twice.
    pub fn on_response_later(&mut self, until: Time) {
        self.attempts = 0;
        self.due = until;
    }

    /// Starts the timer.
    pub fn start<K: Ord + Copy>(&mut self, key: K, at: Time, timers: &mut Timers<K>) {
        (self.due, self.entry_at) = (at, at);
        timers.push(at, key);
    }

    /// Makes the timer due at `at`, and starts it if it is stopped.
    pub fn defer<K: Ord + Copy>(&mut self, key: K, at: Time, timers: &mut Timers<K>) {
        self.due = at;
        if at < self.entry_at {
            self.start(key, at, timers);
        }
    }

    /// Takes an expired entry of the heap, of time `at`. Returns true if the timer is due, and
    /// stops it. A stale entry is ignored; a deferred one is re-entered.
    pub fn expires<K: Ord + Copy>(
        &mut self,
        key: K,
        at: Time,
        now: Time,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time at which the timer expires, of those at which `timers` have an entry.
    fn expiry(retry: &mut RetryTimer, timers: &mut Timers<u8>) -> u64 {
        loop {
            let now = timers.next();
            let (at, key) = timers.pop_due(now).expect("the timer runs");
            if retry.expires(key, at, now, timers) {
                return now.as_ps();
            }
        }
    }

    #[test]
    fn a_received_packet_defers_the_timer() {
        let (mut retry, mut timers) = (RetryTimer::default(), Timers::default());
        retry.start(0, Time::from_ps(10), &mut timers);
        retry.on_response(0, Time::from_ps(15), &mut timers);
        retry.on_response(0, Time::from_ps(25), &mut timers);
        assert_eq!(expiry(&mut retry, &mut timers), 25);
    }

    /// A timeout grows with attempts, or is long until a round trip has been measured.
    #[test]
    fn a_received_packet_resets_a_timer_that_had_backed_off() {
        let earlier: [fn(&mut RetryTimer, &mut Timers<u8>); 3] = [
            |retry, timers| retry.on_response(0, Time::from_ps(20), timers),
            |retry, timers| retry.postpone(0, Time::from_ps(20), timers),
            |retry, timers| retry.defer(0, Time::from_ps(20), timers),
        ];
        for due in earlier {
            let (mut retry, mut timers) = (RetryTimer::default(), Timers::default());
            retry.start(0, Time::from_ps(1000), &mut timers);
            due(&mut retry, &mut timers);
            assert_eq!(expiry(&mut retry, &mut timers), 20);
            assert!(!retry.is_running());
        }
    }

    #[test]
    fn a_received_packet_does_not_start_a_stopped_timer() {
        let (mut retry, mut timers) = (RetryTimer::default(), Timers::<u8>::default());
        retry.on_response(0, Time::from_ps(20), &mut timers);
        assert!(!retry.is_running());
        assert_eq!(timers.next(), Time::NEVER);
    }
}
