//! Deadlines of many flows behind the one that an endpoint shows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rampmeter_core::Time;

/// A heap of (deadline, key). Entries are not removed early: the owner notes which deadline of a key
/// is valid and ignores the others when they are popped.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    heap: BinaryHeap<Reverse<(Time, K)>>,
    /// The earliest deadline, which drivers ask for after every packet.
    next: Time,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next: Time::NEVER }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds a deadline of `key`.
    pub fn push(&mut self, at: Time, key: K) {
        self.heap.push(Reverse((at, key)));
        self.next = self.next.min(at);
    }

    /// The earliest deadline; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Takes a deadline that is due at `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, K)> {
        if self.next > now {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        self.next = self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        Some(entry)
    }
}
