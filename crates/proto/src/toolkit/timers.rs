//! Deadlines of many flows behind the one that an endpoint shows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rampmeter_types::Time;

/// A queue of (deadline, key), earliest first. Entries are not removed early: the owner notes which
/// deadline of a key is valid and ignores the others when they are popped.
///
/// Most deadlines of a transport are at one of few intervals from now, in microseconds. Those of
/// each interval are pushed in order, so that the queue keeps them in a sorted run. An entry joins
/// the run whose last one is the closest before it, and the heap if there is none. Pushing and
/// popping then take O(1) steps, regardless of their number. The order of popping is that of one
/// heap.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    runs: [VecDeque<(Time, K)>; RUNS],
    heap: BinaryHeap<Reverse<(Time, K)>>,
    /// The earliest deadline, which drivers query after every packet.
    next: Time,
    /// Run that has it; [`RUNS`] means the heap.
    first: usize,
}

/// Enough for a timeout and its first doublings.
const RUNS: usize = 4;

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        let runs = std::array::from_fn(|_| VecDeque::new());
        Self { runs, heap: BinaryHeap::new(), next: Time::NEVER, first: RUNS }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds a deadline of `key`.
    #[inline]
    pub fn push(&mut self, at: Time, key: K) {
        let entry = (at, key);
        let is_first = self.entry(self.first).is_none_or(|first| entry < first);
        let mut closest: Option<(usize, Option<(Time, K)>)> = None;
        for (idx, run) in self.runs.iter().enumerate() {
            let last = run.back().copied();
            let is_in_order = last.is_none_or(|last| last <= entry);
            if is_in_order && closest.is_none_or(|(_, other)| last > other) {
                closest = Some((idx, last));
            }
        }
        let place = match closest {
            Some((idx, _)) => {
                self.runs[idx].push_back(entry);
                idx
            }
            None => {
                self.heap.push(Reverse(entry));
                RUNS
            }
        };
        if is_first {
            (self.next, self.first) = (at, place);
        }
    }

    /// Returns the earliest deadline; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Takes a deadline that is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, K)> {
        if self.next > now {
            return None;
        }
        let entry = match self.runs.get_mut(self.first) {
            Some(run) => run.pop_front(),
            None => self.heap.pop().map(|Reverse(entry)| entry),
        };
        let places = (0..=RUNS).filter_map(|idx| Some((self.entry(idx)?, idx)));
        let first = places.min().map(|((at, _), idx)| (at, idx));
        (self.next, self.first) = first.unwrap_or((Time::NEVER, RUNS));
        entry
    }

    /// Returns the earliest entry of a run, or of the heap.
    #[inline]
    fn entry(&self, idx: usize) -> Option<(Time, K)> {
        match self.runs.get(idx) {
            Some(run) => run.front().copied(),
            None => self.heap.peek().map(|Reverse(entry)| *entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Entries are popped in the same order as from one heap.
        #[test]
        fn entries_are_popped_in_heap_order(
            steps in proptest::collection::vec((0u64..6, 0u64..40, 0u8..4), 0..600),
        ) {
            let mut timers = Timers::default();
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for (doublings, passed, key) in steps {
                let at = Time::from_ps(now + (20 << doublings));
                timers.push(at, key);
                heap.push(Reverse((at, key)));
                now += passed;
                loop {
                    let first = heap.peek().map(|Reverse(first)| *first);
                    prop_assert_eq!(timers.next(), first.map_or(Time::NEVER, |(at, _)| at));
                    let due = first.filter(|(at, _)| *at <= Time::from_ps(now));
                    prop_assert_eq!(timers.pop_due(Time::from_ps(now)), due);
                    if due.is_none() {
                        break;
                    }
                    heap.pop();
                }
            }
        }
    }
}
