//! A timing wheel with an overflow heap, exactly ordered by time, then by [`rank`], then by
//! insertion.
//!
//! The problem: a packet simulator pops and pushes tens of millions of events a second, nearly all
//! of them less than a microsecond ahead.
//!
//! The simple way is a binary heap. Each push and each pop moves an event through the levels of the
//! heap. That is a comparison that the processor cannot predict for each level, and often a cache
//! miss.
//!
//! The present way: time is cut into buckets of a power of two picoseconds. A push appends to its
//! bucket. The bucket that is being served is sorted once, by time, and each group of equal times
//! by rank. It is then read front to back. Events past the wheel's horizon wait in a heap. An event
//! in the wheel is one word. Its bucket is the upper bits of its time; the word holds the lower
//! bits and the action. A bucket is a list of small chunks from a pool that reuses the chunk freed
//! last first. So the memory in use is that of the pending events, and stays in the cache.
//!
//! Hazards: an event in the heap must be popped before one of the same time and rank that is pushed
//! into the wheel later. So events are moved out of the heap in the same step in which their bucket
//! enters the horizon, before any push to it (`events_are_popped_in_heap_order`). An event before
//! the bucket being served has no place in the wheel: a push of one panics. An event for the bucket
//! being served must be inserted in order, since that bucket is sorted already.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rampmeter_types::{Span, Time};

use super::event::rank;
use super::key::{EventKey, EventLimit};
use super::ranks::{LANES, TIME_BITS, ranks};

const BUCKETS: usize = 32_768;
const WORDS: usize = BUCKETS / 64;
/// log2 of the widest bucket in picoseconds: the bits of a word that are not `what`.
const SHIFT_MAX: u32 = 64 - EventKey::CODE_BITS;
const _: () = assert!(SHIFT_MAX == TIME_BITS);
/// Words in a chunk, of which the first is the end of the bucket's previous chunk.
const CHUNK: usize = LANES;

/// A piece of a bucket's list: two cache lines that the processor loads together.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
struct Chunk([u64; CHUNK]);

/// The event queue.
#[derive(Debug)]
pub struct Wheel {
    /// log2 of a bucket's width in picoseconds.
    shift: u32,
    /// The number (not the index) of the bucket being served.
    cursor: u64,
    /// The events of the bucket being served, sorted; those before `head` are done.
    current: Vec<u64>,
    head: usize,
    /// Position of each bucket's next event in all chunks' words. It is zero in an empty bucket. If
    /// the newest chunk is full, it is the start of the chunk that follows in memory, which is not
    /// the bucket's.
    buckets: Box<[u32; BUCKETS]>,
    /// The first one is never used.
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// A bit per bucket that holds events.
    occupied: [u64; WORDS],
    overflow: BinaryHeap<Reverse<(Time, u64, u64)>>,
    /// Insertion numbers of events in the overflow heap.
    inserted: u64,
    len: usize,
    /// Last result of [`Wheel::highest_rank`], with its time and the events done by then.
    highest: (Time, u64, usize),
}

impl Wheel {
    /// Returns an empty wheel with buckets of `width`, rounded up to a power of two picoseconds up
    /// to 4096.
    pub fn new(width: Span) -> Self {
        let shift = width.as_ps().max(1).next_power_of_two().trailing_zeros();
        Self::starting_at(shift.min(SHIFT_MAX), Time::ZERO)
    }

    /// Returns an empty wheel with buckets of the same width, for events from `now` on.
    pub(crate) fn renewed(&self, now: Time) -> Self {
        Self::starting_at(self.shift, now)
    }

    fn starting_at(shift: u32, now: Time) -> Self {
        Self {
            shift,
            cursor: now.as_ps() >> shift,
            current: Vec::new(),
            head: 0,
            buckets: Box::new([0; BUCKETS]),
            chunks: vec![Chunk([0; CHUNK])],
            free: Vec::new(),
            occupied: [0; WORDS],
            overflow: BinaryHeap::new(),
            inserted: 0,
            len: 0,
            highest: (Time::NEVER, 0, 0),
        }
    }

    /// Returns the number of queued events.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no event is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event, which must not be earlier than the one popped last.
    #[inline]
    pub fn push(&mut self, key: EventKey) {
        debug_assert!(key.code < 1 << EventKey::CODE_BITS, "{key:?}");
        self.len += 1;
        let bucket = key.time.as_ps() >> self.shift;
        let at = self.buckets[bucket as usize % BUCKETS];
        // Next after the bucket being served, and into a chunk that has room. Everything else is
        // out of line: `push` is inlined at many call sites.
        let ahead = bucket.wrapping_sub(self.cursor);
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1
            && !(at as usize).is_multiple_of(CHUNK)
            && let Some(chunk) = self.chunks.get_mut(at as usize / CHUNK)
        {
            let within = key.time.as_ps() & ((1 << self.shift) - 1);
            chunk.0[at as usize % CHUNK] = within << EventKey::CODE_BITS | key.code;
            self.buckets[bucket as usize % BUCKETS] = at + 1;
        } else {
            self.push_rare(bucket, key);
        }
    }

    /// The rest of `push`: for a bucket without room, the one being served, and past the horizon.
    #[inline(never)]
    fn push_rare(&mut self, bucket: u64, key: EventKey) {
        let ahead = bucket.wrapping_sub(self.cursor);
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1 {
            self.push_bucket(bucket as usize % BUCKETS, self.word(key));
        } else if ahead == 0 {
            self.push_current(key);
        } else {
            assert!(bucket > self.cursor, "{key:?} lies before the event popped last");
            self.overflow.push(Reverse((key.time, self.inserted, key.code)));
            self.inserted += 1;
        }
    }

    /// Returns an event within its bucket.
    #[inline]
    fn word(&self, key: EventKey) -> u64 {
        let within = key.time.as_ps() & ((1 << self.shift) - 1);
        within << EventKey::CODE_BITS | key.code
    }

    #[inline]
    fn push_bucket(&mut self, idx: usize, word: u64) {
        let mut at = self.buckets[idx];
        if (at as usize).is_multiple_of(CHUNK) {
            at = self.new_chunk(idx, at);
        }
        self.chunks[at as usize / CHUNK].0[at as usize % CHUNK] = word;
        self.buckets[idx] = at + 1;
    }

    /// Adds a chunk to a bucket that has none, or none with room. Returns the position of its next
    /// event.
    fn new_chunk(&mut self, idx: usize, before: u32) -> u32 {
        self.occupied[idx / 64] |= 1 << (idx % 64);
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk([0; CHUNK]));
            self.chunks.len() as u32 - 1
        });
        self.chunks[number as usize].0[0] = before.into();
        number * CHUNK as u32 + 1
    }

    /// Moves a bucket's events to `current`, in order of insertion. From three events to a full
    /// chunk they are sorted by time. Most buckets have one event or two, and [`Self::order`] sorts
    /// these with fewer instructions.
    fn open_bucket(&mut self, idx: usize) {
        let at = std::mem::take(&mut self.buckets[idx]) as usize;
        if at == 0 {
            return;
        }
        self.occupied[idx / 64] &= !(1 << (idx % 64));
        let (number, n) = ((at - 1) / CHUNK, (at - 1) % CHUNK);
        let chunk = &self.chunks[number].0;
        match (chunk[0], n) {
            (0, ..=2) => self.current.extend_from_slice(&chunk[1..=2]),
            (0, _) => self.current.extend_from_slice(&sorted(chunk, n)),
            _ => return self.open_chunks(at),
        }
        // All are copied, and those not in use cut off: that is faster than copying a number of
        // events that the processor cannot predict.
        self.current.truncate(n);
        self.free.push(number as u32);
    }

    /// The same for a bucket with several chunks, of which the newest ends at `at`.
    #[inline(never)]
    fn open_chunks(&mut self, mut at: usize) {
        while at != 0 {
            let (number, n) = ((at - 1) / CHUNK, (at - 1) % CHUNK);
            let chunk = &self.chunks[number].0;
            self.current.extend(chunk[1..=n].iter().rev());
            self.free.push(number as u32);
            at = chunk[0] as usize;
        }
        self.current.reverse();
    }

    /// Takes the earliest event; of equal times the one of the least rank; of equal ranks the one
    /// pushed first.
    #[inline]
    pub fn pop(&mut self) -> Option<EventKey> {
        self.pop_before(EventLimit::END)
    }

    /// Returns the same for events before `limit`. Events from the limit on may be pushed later,
    /// and before those that are queued.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: EventLimit) -> Option<EventKey> {
        if self.head == self.current.len() && !self.advance(limit.time) {
            return None;
        }
        let key = self.key(self.current[self.head]);
        if key.time >= limit.time && (key.time > limit.time || rank(key.code) >= limit.rank) {
            return None;
        }
        self.head += 1;
        self.len -= 1;
        Some(key)
    }

    /// Returns the highest rank of the events popped so far that have the time of the last one.
    /// Calls take time for the events since the last call.
    #[cold]
    pub(crate) fn highest_rank(&mut self) -> u64 {
        let Some(&word) = self.current[..self.head].last() else { return 0 };
        let time = self.key(word).time;
        let (at, known, seen) = self.highest;
        let (known, seen) = if at == time { (known, seen) } else { (0, 0) };
        // Events of one time are in one bucket, which is kept until the next is opened.
        let new = self.current[seen..self.head].iter().rev().map(|&word| self.key(word));
        let simultaneous = new.take_while(|key| key.time == time);
        let rank = simultaneous.map(|key| rank(key.code)).fold(known, u64::max);
        self.highest = (time, rank, self.head);
        rank
    }

    /// Returns a time that is not later than any queued event, and at most a bucket earlier than
    /// the first; `None` if there is none.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if let Some(&word) = self.current.get(self.head) {
            return Some(self.key(word).time);
        }
        let start = |bucket: u64| Time::from_ps(bucket << self.shift);
        let first = || self.overflow.peek().map(|Reverse((time, ..))| *time);
        self.next_occupied().map(start).or_else(first)
    }

    /// Returns an event of the bucket being served.
    #[inline]
    fn key(&self, word: u64) -> EventKey {
        let time = Time::from_ps((self.cursor << self.shift) + within(word));
        EventKey { time, code: code(word) }
    }

    /// Returns the number of the bucket being served.
    #[inline]
    pub(crate) fn bucket(&self) -> u64 {
        self.cursor
    }

    /// Returns the newest events of the next bucket that holds some.
    pub(crate) fn next_bucket(&self) -> impl Iterator<Item = u64> + '_ {
        let at = self.next_occupied().map_or(0, |next| self.buckets[next as usize % BUCKETS]);
        let last = (at as usize).saturating_sub(1);
        self.chunks[last / CHUNK].0[1..=last % CHUNK].iter().map(|&word| code(word))
    }

    /// Returns the event `ahead` places after the one popped last, if it is in the same bucket.
    #[inline]
    pub fn peek_ahead(&self, ahead: usize) -> Option<u64> {
        let word = self.current.get(self.head + ahead)?;
        Some(code(*word))
    }

    /// Inserts into the bucket being served.
    #[inline]
    fn push_current(&mut self, key: EventKey) {
        let word = self.word(key);
        let is_later = |&&other: &&u64| rank(other) > rank(word);
        let later = self.current[self.head..].iter().rev().take_while(is_later).count();
        let at = self.current.len() - later;
        self.current.insert(at, word);
    }

    /// Orders the events of the bucket being served by time and rank. From three events to a full
    /// chunk they are sorted by time already.
    #[inline]
    fn order(&mut self) {
        if self.current.len() >= CHUNK {
            return self.current.sort_by_key(|&word| rank(word));
        }
        for at in 1..self.current.len() {
            if rank(self.current[at - 1]) > rank(self.current[at]) {
                self.sink(at);
            }
        }
    }

    /// Moves an event of the bucket being served before those that have higher ranks.
    #[inline(never)]
    fn sink(&mut self, mut at: usize) {
        let word = self.current[at];
        while at > 0 && rank(self.current[at - 1]) > rank(word) {
            self.current[at] = self.current[at - 1];
            at -= 1;
        }
        self.current[at] = word;
    }

    /// Opens the next bucket that holds events; false if there is none up to that of `latest`.
    fn advance(&mut self, latest: Time) -> bool {
        self.current.clear();
        self.head = 0;
        let next = match self.next_occupied() {
            Some(bucket) => bucket,
            None => match self.overflow.peek() {
                Some(Reverse((time, ..))) => time.as_ps() >> self.shift,
                None => return false,
            },
        };
        if next > latest.as_ps() >> self.shift {
            return false;
        }
        self.cursor = next;
        self.open_bucket(next as usize % BUCKETS);
        self.admit_overflow();
        self.order();
        true
    }

    /// Moves the events that the horizon has reached from the heap into the wheel. If some belong
    /// to the bucket being served, the wheel was empty, and they are popped in order.
    #[inline]
    fn admit_overflow(&mut self) {
        while let Some(&Reverse((time, _, code))) = self.overflow.peek() {
            let bucket = time.as_ps() >> self.shift;
            if bucket - self.cursor >= BUCKETS as u64 {
                return;
            }
            self.overflow.pop();
            let word = self.word(EventKey { time, code });
            if bucket == self.cursor {
                self.current.push(word);
                continue;
            }
            self.push_bucket(bucket as usize % BUCKETS, word);
        }
    }

    /// Returns the number of the first bucket after the cursor that holds events.
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.cursor as usize + 1) % BUCKETS;
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        if first != 0 {
            let idx = start / 64 * 64 + first.trailing_zeros() as usize;
            return Some(self.cursor + 1 + (idx - start) as u64);
        }
        for step in 1..=WORDS {
            let word = (start / 64 + step) % WORDS;
            if self.occupied[word] != 0 {
                let idx = word * 64 + self.occupied[word].trailing_zeros() as usize;
                let ahead = (idx + BUCKETS - start) % BUCKETS;
                return Some(self.cursor + 1 + ahead as u64);
            }
        }
        None
    }
}

/// Returns the code of an event in the wheel.
#[inline]
fn code(word: u64) -> u64 {
    word & ((1 << EventKey::CODE_BITS) - 1)
}

/// Returns the lower bits of an event's time.
#[inline]
fn within(word: u64) -> u64 {
    word >> EventKey::CODE_BITS
}

/// Returns the `n` events of a chunk, stably sorted by time, and after them words without meaning.
/// The processor could not predict the order of a few events. So each rank is counted without a
/// branch, over the whole chunk at once.
#[inline]
fn sorted(chunk: &[u64; CHUNK], n: usize) -> [u64; CHUNK] {
    let ranks = ranks(chunk, n);
    let mut sorted = [0; CHUNK];
    // The first word may have the last event's rank: then that overwrites it.
    for i in 0..CHUNK {
        sorted[usize::from(ranks[i]) % CHUNK] = chunk[i];
    }
    sorted
}

#[cfg(test)]
mod tests;
