//! Single-producer, single-consumer queues between two processes that do not trust one another.
//!
//! The problem: entries must pass from one process to another without a system call. The other
//! process may write anything into the shared memory at any time.
//!
//! The simple way reads both counters from the memory at each access, and wakes the other side
//! after each entry. The other side could then change this side's counter, and each entry would
//! cost a system call.
//!
//! The present way: head and tail count entries since the start and wrap at 2^32. Each side keeps a
//! private copy of its counter and publishes it. It reads the other's counter once and checks it. A
//! reader that is about to sleep sets the ring's flag and polls once more. A writer reads the flag
//! after it has written an entry. Both have a fence in between, so at least one sees the other's
//! write.
//!
//! Hazards: entries are copied word by word and may be inconsistent; their reader must validate
//! them.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::map::Memory;

/// Location of a ring in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingOffsets {
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) flag: usize,
    pub(crate) entries: usize,
    /// Entries, a power of two.
    pub(crate) capacity: u32,
}

impl RingOffsets {
    /// Returns the offset of a word of an entry.
    fn at(&self, n: u32, words: usize, word: usize) -> usize {
        let idx = (n & (self.capacity - 1)) as usize;
        self.entries + (idx * words + word) * 8
    }
}

/// The other side's counter is inconsistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptCounter;

/// Reason for which an entry was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// The reader has not read enough entries.
    Full,
    /// The reader's counter is inconsistent.
    Corrupt,
}

/// Writing side of a ring of entries of `N` words.
#[derive(Debug)]
pub(crate) struct Producer<const N: usize> {
    memory: Arc<Memory>,
    place: RingOffsets,
    tail: u32,
    /// Reader's counter when it was last read.
    head: u32,
}

impl<const N: usize> Producer<N> {
    pub(crate) fn new(memory: Arc<Memory>, place: RingOffsets) -> Self {
        Self { memory, place, tail: 0, head: 0 }
    }

    /// Writes an entry.
    pub(crate) fn push(&mut self, entry: [u64; N]) -> Result<(), PushError> {
        let RingOffsets { capacity, head, tail, .. } = self.place;
        if self.tail.wrapping_sub(self.head) >= capacity {
            self.head = self.memory.word(head).load(Ordering::Acquire);
            let n = self.tail.wrapping_sub(self.head);
            if n > capacity {
                // The last consistent view is restored.
                self.head = self.tail.wrapping_sub(capacity);
                return Err(PushError::Corrupt);
            }
            if n == capacity {
                return Err(PushError::Full);
            }
        }
        for (idx, word) in entry.into_iter().enumerate() {
            let at = self.place.at(self.tail, N, idx);
            self.memory.long(at).store(word, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        self.memory.word(tail).store(self.tail, Ordering::Release);
        Ok(())
    }

    /// Returns true if the reader sleeps and this is the first call to notice: then it must be
    /// woken.
    pub(crate) fn take_wake_request(&self) -> bool {
        fence(Ordering::SeqCst);
        let flag = self.memory.word(self.place.flag);
        flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::AcqRel) != 0
    }
}

/// Reading side of a ring of entries of `N` words.
#[derive(Debug)]
pub(crate) struct Consumer<const N: usize> {
    memory: Arc<Memory>,
    place: RingOffsets,
    head: u32,
    /// Writer's counter when it was last read.
    tail: u32,
}

impl<const N: usize> Consumer<N> {
    pub(crate) fn new(memory: Arc<Memory>, place: RingOffsets) -> Self {
        Self { memory, place, head: 0, tail: 0 }
    }

    /// Returns true if there is an entry.
    pub(crate) fn has_next(&mut self) -> Result<bool, CorruptCounter> {
        if self.head == self.tail {
            let tail = self.memory.word(self.place.tail).load(Ordering::Acquire);
            if tail.wrapping_sub(self.head) > self.place.capacity {
                return Err(CorruptCounter);
            }
            self.tail = tail;
        }
        Ok(self.head != self.tail)
    }

    /// Reads an entry.
    pub(crate) fn pop(&mut self) -> Result<Option<[u64; N]>, CorruptCounter> {
        if !self.has_next()? {
            return Ok(None);
        }
        let entry = std::array::from_fn(|idx| {
            let at = self.place.at(self.head, N, idx);
            self.memory.long(at).load(Ordering::Relaxed)
        });
        self.head = self.head.wrapping_add(1);
        self.memory.word(self.place.head).store(self.head, Ordering::Release);
        Ok(Some(entry))
    }

    /// Requests that the writer wakes this side from now on. [`Consumer::has_next`] must be called
    /// once more.
    pub(crate) fn arm(&self) {
        self.memory.word(self.place.flag).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Withdraws the request of [`Consumer::arm`].
    pub(crate) fn disarm(&self) {
        self.memory.word(self.place.flag).store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::thread;

    const PLACE: RingOffsets =
        RingOffsets { head: 0, tail: 128, flag: 256, entries: 384, capacity: 8 };

    fn ring() -> (Producer<3>, Consumer<3>, Arc<Memory>) {
        let memory = Arc::new(Memory::heap(4_096));
        let (for_producer, for_consumer) = (Arc::clone(&memory), Arc::clone(&memory));
        (Producer::new(for_producer, PLACE), Consumer::new(for_consumer, PLACE), memory)
    }

    #[test]
    fn a_full_ring_takes_no_more() {
        let (mut producer, mut consumer, _) = ring();
        for n in 0..8 {
            assert_eq!(producer.push([n; 3]), Ok(()));
        }
        assert_eq!(producer.push([8; 3]), Err(PushError::Full));
        assert_eq!(consumer.pop(), Ok(Some([0; 3])));
        assert_eq!(producer.push([8; 3]), Ok(()));
        for n in 1..=8 {
            assert_eq!(consumer.pop(), Ok(Some([n; 3])));
        }
        assert_eq!(consumer.pop(), Ok(None));
    }

    #[test]
    fn ring_counters_wrap_without_loss() {
        let (mut producer, mut consumer, memory) = ring();
        let start = u32::MAX - 2;
        (producer.tail, producer.head, consumer.head, consumer.tail) = (start, start, start, start);
        memory.word(PLACE.head).store(start, Ordering::Relaxed);
        memory.word(PLACE.tail).store(start, Ordering::Relaxed);
        for n in 0..20 {
            assert_eq!(producer.push([n; 3]), Ok(()));
            assert_eq!(consumer.pop(), Ok(Some([n; 3])));
        }
    }

    #[test]
    fn counters_that_make_no_sense_are_noticed() {
        let (mut producer, mut consumer, memory) = ring();
        memory.word(PLACE.tail).store(9, Ordering::Relaxed);
        assert_eq!(consumer.pop(), Err(CorruptCounter));
        memory.word(PLACE.tail).store(0, Ordering::Relaxed);
        for n in 0..8 {
            producer.push([n; 3]).unwrap();
        }
        memory.word(PLACE.head).store(9, Ordering::Relaxed);
        assert_eq!(producer.push([8; 3]), Err(PushError::Corrupt));
        memory.word(PLACE.head).store(u32::MAX, Ordering::Relaxed);
        assert_eq!(producer.push([8; 3]), Err(PushError::Corrupt));
    }

    #[test]
    fn a_sleeper_is_woken_once() {
        let (mut producer, consumer, _) = ring();
        assert!(!producer.take_wake_request());
        consumer.arm();
        producer.push([1; 3]).unwrap();
        assert!(producer.take_wake_request());
        assert!(!producer.take_wake_request());
        consumer.arm();
        consumer.disarm();
        assert!(!producer.take_wake_request());
    }

    /// Two threads, one of which sleeps whenever the queue is empty: every entry arrives in order
    /// with its checksum, and no wake-up is lost.
    #[test]
    fn two_threads_hand_over_every_entry_in_order() {
        const N: u64 = if cfg!(miri) { 300 } else { 2_000_000 };
        let check = |n: u64| [n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), !n];
        let (mut producer, mut consumer, _) = ring();
        let reader = thread::spawn(move || {
            let mut n = 0;
            while n < N {
                match consumer.pop().unwrap() {
                    Some(entry) => {
                        assert_eq!(entry, check(n));
                        n += 1;
                    }
                    None => {
                        consumer.arm();
                        if !consumer.has_next().unwrap() {
                            thread::park();
                        }
                        consumer.disarm();
                    }
                }
            }
        });
        let mut n = 0;
        while n < N {
            match producer.push(check(n)) {
                Ok(()) => {
                    n += 1;
                    if producer.take_wake_request() {
                        reader.thread().unpark();
                    }
                }
                Err(error) => {
                    assert_eq!(error, PushError::Full);
                    thread::yield_now();
                }
            }
        }
        reader.join().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_ring_is_a_bounded_queue(steps in prop::collection::vec(any::<Option<u64>>(), 0..200)) {
            let (mut producer, mut consumer, _) = ring();
            let mut model = VecDeque::new();
            for step in steps {
                match step {
                    Some(n) if model.len() < 8 => {
                        prop_assert_eq!(producer.push([n; 3]), Ok(()));
                        model.push_back([n; 3]);
                    }
                    Some(n) => prop_assert_eq!(producer.push([n; 3]), Err(PushError::Full)),
                    None => prop_assert_eq!(consumer.pop(), Ok(model.pop_front())),
                }
            }
        }

        /// Arbitrary writes of the other side cause no access outside and no panic.
        #[test]
        fn a_ring_with_arbitrary_memory_contents_does_not_panic(
            words in prop::collection::vec(any::<u64>(), 72),
            steps in prop::collection::vec((any::<bool>(), 0usize..72, any::<u64>()), 0..50),
        ) {
            let (mut producer, mut consumer, memory) = ring();
            for (idx, word) in words.into_iter().enumerate() {
                memory.long(8 * idx).store(word, Ordering::Relaxed);
            }
            for (is_push, at, word) in steps {
                memory.long(8 * at).store(word, Ordering::Relaxed);
                if is_push {
                    let _ = producer.push([word; 3]);
                } else {
                    let _ = consumer.pop();
                }
            }
        }
    }
}
