//! The event queue: lanes for events that come in order anyway, a wheel for the rest.
//!
//! *Problem*: with the timing wheel alone, two fifths of a run's time went into putting events into
//! their slots and sorting them out again.
//!
//! *This way*: most events of a packet network lie a fixed time ahead of the moment at which they are
//! made: a full packet's arrival over a 100 Gbit/s link always 770 ns, say. Those of one kind are made
//! in order. So each kind gets a lane, a plain first-in first-out ring, and only the heads of the
//! lanes and of the wheel have to be compared. An event that is not in order for its lane goes to
//! the wheel instead, so lanes are an optimisation that callers cannot get wrong.
//!
//! The order is exactly that of (time, insertion), as of a heap.

use std::collections::VecDeque;

use rampmeter_core::{Span, Time};

use super::wheel::{Key, Wheel};

/// How many lanes there are.
pub const LANES: usize = 12;

/// Where an event goes if it is in order there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(u8);

impl Lane {
    /// Lane `n`, counted round and round.
    pub const fn new(n: usize) -> Self {
        Self((n % LANES) as u8)
    }
}

/// Bits of a head that hold its lane's number.
const LANE_BITS: u32 = 4;
/// Later than every event: the head of an empty lane.
const NONE: u64 = u64::MAX;
/// The wheel's place among the heads: the first, so that the lanes in use follow.
const WHEEL: usize = 0;

/// The event queue.
#[derive(Debug)]
pub struct EventQueue {
    lanes: [VecDeque<Key>; LANES],
    /// Time and number of the first event of the wheel, then of each lane, in one word each.
    heads: [u64; LANES + 1],
    /// How many heads are in use.
    n_heads: usize,
    /// The time of the last event that went into each lane.
    tails: [Time; LANES],
    wheel: Wheel,
    inserted: u64,
    in_lanes: usize,
}

impl EventQueue {
    /// An empty queue whose wheel has slots of `width`.
    pub fn new(width: Span) -> Self {
        Self {
            lanes: std::array::from_fn(|_| VecDeque::new()),
            heads: [NONE; LANES + 1],
            n_heads: 1,
            tails: [Time::ZERO; LANES],
            wheel: Wheel::new(width),
            inserted: 0,
            in_lanes: 0,
        }
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.in_lanes + self.wheel.len()
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event, which must not lie before the one popped last.
    #[inline]
    pub fn push(&mut self, time: Time, what: u32, arg: u32) {
        let key = self.number(time, what, arg);
        self.wheel.push(key);
        let head = &mut self.heads[WHEEL];
        *head = (*head).min(head_of(&key, WHEEL));
    }

    /// Adds an event to a lane, or to the wheel if it lies before the lane's last one.
    #[inline]
    pub fn push_lane(&mut self, lane: Lane, time: Time, what: u32, arg: u32) {
        let idx = usize::from(lane.0);
        if time < self.tails[idx] {
            return self.push(time, what, arg);
        }
        let key = self.number(time, what, arg);
        self.tails[idx] = time;
        if self.lanes[idx].is_empty() {
            self.heads[idx + 1] = head_of(&key, idx + 1);
            self.n_heads = self.n_heads.max(idx + 2);
        }
        self.lanes[idx].push_back(key);
        self.in_lanes += 1;
    }

    #[inline]
    fn number(&mut self, time: Time, what: u32, arg: u32) -> Key {
        let seq = self.inserted;
        self.inserted += 1;
        Key { time, seq, what, arg }
    }

    /// Takes the earliest event; of equal times the one pushed first.
    #[inline]
    pub fn pop(&mut self) -> Option<Key> {
        let heads = &self.heads[..self.n_heads];
        let least = heads.iter().copied().fold(NONE, u64::min);
        let time = least >> LANE_BITS;
        let ties = heads.iter().filter(|&&head| head >> LANE_BITS == time).count();
        let first =
            if ties == 1 { least as usize % (1 << LANE_BITS) } else { self.first_of_tie(time)? };
        if first == WHEEL {
            let key = self.wheel.pop();
            self.heads[WHEEL] = self.wheel.peek().map_or(NONE, |k| head_of(&k, WHEEL));
            return key;
        }
        let lane = &mut self.lanes[first - 1];
        let key = lane.pop_front()?;
        self.heads[first] = lane.front().map_or(NONE, |k| head_of(k, first));
        self.in_lanes -= 1;
        Some(key)
    }

    /// Of the heads with this time, the one inserted first; `None` if all are empty.
    fn first_of_tie(&mut self, time: u64) -> Option<usize> {
        if time == NONE >> LANE_BITS {
            return None;
        }
        let mut first = None;
        for idx in (0..self.n_heads).filter(|&idx| self.heads[idx] >> LANE_BITS == time) {
            let key = match idx {
                WHEEL => self.wheel.peek(),
                lane => self.lanes[lane - 1].front().copied(),
            };
            let place = key.map(|k| (k.seq, idx));
            first = match (first, place) {
                (Some(a), Some(b)) => Some(std::cmp::min(a, b)),
                (a, b) => a.or(b),
            };
        }
        first.map(|(_, idx)| idx)
    }
}

/// A head: time above lane number. Times stay below 2^60 ps, which is 13 days.
#[inline]
fn head_of(key: &Key, idx: usize) -> u64 {
    debug_assert!(key.time.as_ps() >> (64 - LANE_BITS) == 0, "{:?} is past 13 days", key.time);
    key.time.as_ps() << LANE_BITS | idx as u64
}

const _: () = assert!(LANES < 1 << LANE_BITS);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// One step of a random schedule: push at a distance, into the wheel or a lane, or pop.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u64, Option<usize>),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let lane = || proptest::option::of(0..LANES);
        prop_oneof![
            (0u64..40, lane()).prop_map(|(t, l)| Step::Push(t, l)),
            (0u64..4_000, lane()).prop_map(|(t, l)| Step::Push(t, l)),
            (0u64..8_000_000, lane()).prop_map(|(t, l)| Step::Push(t, l)),
            (0u64..4_000_000_000, lane()).prop_map(|(t, l)| Step::Push(t, l)),
            Just(Step::Pop),
            Just(Step::Pop),
            Just(Step::Pop),
        ]
    }

    proptest! {
        #[test]
        fn pops_in_the_order_of_a_heap(
            steps in proptest::collection::vec(step(), 0..2_000),
            width in 1u64..5_000,
        ) {
            let mut queue = EventQueue::new(Span::from_ps(width));
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(ahead, lane) => {
                        let time = Time::from_ps(now + ahead);
                        match lane {
                            Some(lane) => queue.push_lane(Lane::new(lane), time, n as u32, 0),
                            None => queue.push(time, n as u32, 0),
                        }
                        heap.push(Reverse((time, n as u32)));
                    }
                    Step::Pop => {
                        let popped = queue.pop().map(|k| (k.time, k.what));
                        prop_assert_eq!(popped, heap.pop().map(|Reverse(k)| k));
                        now = popped.map_or(now, |(t, _)| t.as_ps());
                    }
                }
                prop_assert_eq!(queue.len(), heap.len());
            }
            while let Some(Reverse(expected)) = heap.pop() {
                prop_assert_eq!(queue.pop().map(|k| (k.time, k.what)), Some(expected));
            }
            prop_assert!(queue.pop().is_none());
        }
    }
}
