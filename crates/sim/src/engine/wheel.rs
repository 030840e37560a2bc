//! A timing wheel with an overflow heap, exactly ordered by (time, insertion).
//!
//! *Problem*: a packet simulator pops and pushes tens of millions of events a second, nearly all
//! of them less than a microsecond ahead. A heap costs a cache miss per level.
//!
//! *This way*: time is cut into slots of a power of two picoseconds. A push appends to its slot; the
//! slot that is being served is sorted once (stably, so insertion order breaks ties) and read
//! front to back. Events past the wheel's horizon wait in a heap. A slot is a list of small chunks
//! from a pool that uses the chunk freed last first: the memory in use is what the pending events
//! need, and stays in the cache.
//!
//! *What can go wrong*: an event in the heap must come out before one with the same time that is
//! pushed later straight into the wheel. So events leave the heap in the very step in which their
//! slot comes under the horizon, before anything can be pushed there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rampmeter_core::{Span, Time};

/// An event: when, and two words for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// When it happens.
    pub time: Time,
    /// What happens.
    pub what: u32,
    /// To what.
    pub arg: u32,
}

const SLOTS: usize = 8192;
const WORDS: usize = SLOTS / 64;
/// Events in a chunk: with the two words of its list, 128 bytes.
const CHUNK: usize = 7;
const NIL: u32 = u32::MAX;
const NEVER: Key = Key { time: Time::NEVER, what: 0, arg: 0 };

/// A piece of a slot's list.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
struct Chunk {
    keys: [Key; CHUNK],
    len: u32,
    /// The chunk that was filled next.
    next: u32,
}

/// The event queue.
#[derive(Debug)]
pub struct Wheel {
    /// log2 of a slot's width in picoseconds.
    shift: u32,
    /// The number (not the index) of the slot being served.
    cursor: u64,
    /// The events of the slot being served, sorted; those before `head` are done.
    current: Vec<Key>,
    head: usize,
    /// The oldest and the newest chunk of each slot.
    slots: Vec<(u32, u32)>,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// A bit per slot that holds events.
    occupied: [u64; WORDS],
    overflow: BinaryHeap<Reverse<(Time, u64, u32, u32)>>,
    /// Insertion numbers of events in the overflow heap.
    inserted: u64,
    len: usize,
}

impl Wheel {
    /// An empty wheel with slots of `width`, rounded up to a power of two picoseconds.
    pub fn new(width: Span) -> Self {
        Self {
            shift: width.as_ps().max(1).next_power_of_two().trailing_zeros(),
            cursor: 0,
            current: Vec::new(),
            head: 0,
            slots: vec![(NIL, NIL); SLOTS],
            chunks: Vec::new(),
            free: Vec::new(),
            occupied: [0; WORDS],
            overflow: BinaryHeap::new(),
            inserted: 0,
            len: 0,
        }
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event, which must not lie before the one popped last.
    #[inline]
    pub fn push(&mut self, key: Key) {
        self.len += 1;
        let slot = key.time.as_ps() >> self.shift;
        let ahead = slot.wrapping_sub(self.cursor);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            self.push_slot(slot as usize % SLOTS, key);
        } else if slot <= self.cursor {
            self.push_current(key);
        } else {
            self.overflow.push(Reverse((key.time, self.inserted, key.what, key.arg)));
            self.inserted += 1;
        }
    }

    #[inline]
    fn push_slot(&mut self, idx: usize, key: Key) {
        let newest = self.slots[idx].1;
        if newest != NIL {
            let chunk = &mut self.chunks[newest as usize];
            let len = chunk.len as usize;
            if len < CHUNK {
                chunk.keys[len] = key;
                chunk.len += 1;
                return;
            }
        }
        let number = self.new_chunk(key);
        self.slots[idx].1 = number;
        if newest == NIL {
            self.slots[idx].0 = number;
            self.occupied[idx / 64] |= 1 << (idx % 64);
        } else {
            self.chunks[newest as usize].next = number;
        }
    }

    fn new_chunk(&mut self, key: Key) -> u32 {
        if let Some(number) = self.free.pop() {
            let chunk = &mut self.chunks[number as usize];
            chunk.keys[0] = key;
            (chunk.len, chunk.next) = (1, NIL);
            return number;
        }
        let mut keys = [NEVER; CHUNK];
        keys[0] = key;
        self.chunks.push(Chunk { keys, len: 1, next: NIL });
        self.chunks.len() as u32 - 1
    }

    /// Moves a slot's events to `current`, in order of insertion.
    fn open_slot(&mut self, idx: usize) {
        let (mut number, _) = std::mem::replace(&mut self.slots[idx], (NIL, NIL));
        self.occupied[idx / 64] &= !(1 << (idx % 64));
        while number != NIL {
            let chunk = &self.chunks[number as usize];
            // Whole chunks are copied, and the part that is not in use cut off: that is faster than
            // copying a number of events that the processor cannot predict.
            let len = self.current.len() + chunk.len as usize;
            self.current.extend_from_slice(&chunk.keys);
            self.current.truncate(len);
            self.free.push(number);
            number = chunk.next;
        }
    }

    /// Takes the earliest event; of equal times the one pushed first.
    #[inline]
    pub fn pop(&mut self) -> Option<Key> {
        if self.head == self.current.len() && !self.advance() {
            return None;
        }
        let key = self.current[self.head];
        self.head += 1;
        self.len -= 1;
        Some(key)
    }

    /// The event `ahead` places after the one popped last, if it is in the slot being served.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<Key> {
        self.current.get(self.head + ahead).copied()
    }

    /// Inserts into the slot being served, behind all events of the same time.
    fn push_current(&mut self, key: Key) {
        let later =
            self.current[self.head..].iter().rev().take_while(|k| k.time > key.time).count();
        let at = self.current.len() - later;
        self.current.insert(at, key);
    }

    /// Opens the next slot that holds events; false if there is none.
    fn advance(&mut self) -> bool {
        self.current.clear();
        self.head = 0;
        let next = match self.next_occupied() {
            Some(slot) => slot,
            None => match self.overflow.peek() {
                Some(Reverse((time, ..))) => time.as_ps() >> self.shift,
                None => return false,
            },
        };
        self.cursor = next;
        self.open_slot(next as usize % SLOTS);
        self.admit_overflow();
        sort_by_time(&mut self.current);
        true
    }

    /// Moves the events that the horizon has reached from the heap into the wheel.
    fn admit_overflow(&mut self) {
        while let Some(&Reverse((time, _, what, arg))) = self.overflow.peek() {
            let slot = time.as_ps() >> self.shift;
            if slot - self.cursor >= SLOTS as u64 {
                return;
            }
            self.overflow.pop();
            let key = Key { time, what, arg };
            if slot == self.cursor {
                self.current.push(key);
                continue;
            }
            self.push_slot(slot as usize % SLOTS, key);
        }
    }

    /// The number of the first slot after the cursor that holds events.
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.cursor as usize + 1) % SLOTS;
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        if first != 0 {
            let idx = start / 64 * 64 + first.trailing_zeros() as usize;
            return Some(self.cursor + 1 + (idx - start) as u64);
        }
        for step in 1..=WORDS {
            let word = (start / 64 + step) % WORDS;
            if self.occupied[word] != 0 {
                let idx = word * 64 + self.occupied[word].trailing_zeros() as usize;
                let ahead = (idx + SLOTS - start) % SLOTS;
                return Some(self.cursor + 1 + ahead as u64);
            }
        }
        None
    }
}

/// Most events that are sorted by rank.
const RANKED: usize = 24;

/// Sorts stably by time. Slots hold a few events, whose order the processor cannot predict; so each
/// one's rank is counted without a branch.
fn sort_by_time(keys: &mut [Key]) {
    let n = keys.len();
    if n > RANKED {
        keys.sort_by_key(|k| k.time);
        return;
    }
    let mut ranks = [0u8; RANKED];
    let mut sorted = [NEVER; RANKED];
    for i in 1..n {
        let time = keys[i].time;
        let mut before = 0;
        for j in 0..i {
            let is_later = u8::from(keys[j].time > time);
            ranks[j] += is_later;
            before += 1 - is_later;
        }
        ranks[i] = before;
    }
    for i in 0..n {
        sorted[usize::from(ranks[i]) % RANKED] = keys[i];
    }
    keys.copy_from_slice(&sorted[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One step of a random schedule: push at a distance, or pop.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u64),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..40).prop_map(Step::Push),
            (0u64..4_000).prop_map(Step::Push),
            (0u64..8_000_000).prop_map(Step::Push),
            (0u64..4_000_000_000).prop_map(Step::Push),
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
            let mut wheel = Wheel::new(Span::from_ps(width));
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(ahead) => {
                        let time = Time::from_ps(now + ahead);
                        wheel.push(Key { time, what: n as u32, arg: 0 });
                        heap.push(Reverse((time, n as u32)));
                    }
                    Step::Pop => {
                        let popped = wheel.pop().map(|k| (k.time, k.what));
                        prop_assert_eq!(popped, heap.pop().map(|Reverse(k)| k));
                        now = popped.map_or(now, |(t, _)| t.as_ps());
                    }
                }
                prop_assert_eq!(wheel.len(), heap.len());
            }
            while let Some(Reverse(expected)) = heap.pop() {
                prop_assert_eq!(wheel.pop().map(|k| (k.time, k.what)), Some(expected));
            }
            prop_assert!(wheel.pop().is_none());
        }
    }
}
