//! Deadlines of many flows behind the one that an endpoint shows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rampmeter_core::Time;

/// A heap of (deadline, key). Entries are never taken out: the owner notes which deadline of a key
/// holds and ignores the others when they come up.
#[derive(Debug)]
pub(crate) struct Timers<K>(BinaryHeap<Reverse<(Time, K)>>);

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds a deadline of `key`.
    pub(crate) fn push(&mut self, at: Time, key: K) {
        self.0.push(Reverse((at, key)));
    }

    /// The earliest deadline; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.0.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Takes a deadline that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, K)> {
        if self.next() > now {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
