//! Deadlines of many flows behind the one that an endpoint shows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rampmeter_core::Time;

/// A queue of (deadline, key), earliest first. Entries are not removed early: the owner notes which
/// deadline of a key is valid and ignores the others when they are popped.
///
/// Most deadlines of a transport are so many microseconds from now, for few different numbers. Those of
/// each number are pushed in order, so that the queue keeps them in a sorted run: an entry joins the run
/// whose last one is the closest before it, and the heap if there is none. Pushing and popping take
/// O(1) steps then, however many there are. The order of popping is that of one heap.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    runs: [VecDeque<(Time, K)>; RUNS],
    heap: BinaryHeap<Reverse<(Time, K)>>,
    /// The earliest deadline, which drivers ask for after every packet.
    next: Time,
}

/// Enough for a timeout and its first doublings.
const RUNS: usize = 4;

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        let runs = std::array::from_fn(|_| VecDeque::new());
        Self { runs, heap: BinaryHeap::new(), next: Time::NEVER }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Adds a deadline of `key`.
    #[inline]
    pub fn push(&mut self, at: Time, key: K) {
        let entry = (at, key);
        self.next = self.next.min(at);
        let mut closest: Option<&mut VecDeque<(Time, K)>> = None;
        for run in &mut self.runs {
            let is_closer = match (run.back(), &closest) {
                (None, None) => true,
                (None, Some(_)) => false,
                (Some(last), _) if *last > entry => false,
                (Some(last), Some(other)) => other.back().is_none_or(|other| last > other),
                (Some(_), None) => true,
            };
            if is_closer {
                closest = Some(run);
            }
        }
        match closest {
            Some(run) => run.push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
    }

    /// The earliest deadline; [`Time::NEVER`] if there is none.
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
        let entry = match self.first_run() {
            Some((idx, first)) if self.heap.peek().is_none_or(|Reverse(other)| first <= *other) => {
                self.runs[idx].pop_front()
            }
            _ => self.heap.pop().map(|Reverse(entry)| entry),
        };
        let run = self.first_run().map_or(Time::NEVER, |(_, (at, _))| at);
        let heap = self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        self.next = run.min(heap);
        entry
    }

    /// The run with the earliest entry, and the entry.
    fn first_run(&self) -> Option<(usize, (Time, K))> {
        let firsts = self.runs.iter().enumerate();
        firsts.filter_map(|(idx, run)| run.front().map(|first| (idx, *first))).min_by_key(|f| f.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is popped when is what one heap would have popped.
        #[test]
        fn entries_come_in_the_order_of_a_heap(
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
