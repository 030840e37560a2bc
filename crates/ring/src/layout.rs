//! Layout of the memory that a node and an application share.
//!
//! | part | contents |
//! |---|---|
//! | page 0 | magic, version and sizes, for readers of a dump; the node never reads them |
//! | page 1 | heads, tails and sleep flags of the rings, 128 bytes apart |
//! | SQ | submissions: application to node, 64 bytes each |
//! | CQ | completions: node to application, 32 bytes each |
//! | RQ | releases of received messages: application to node, 8 bytes each |
//! | send arena | bytes of messages to send; the application allocates it |
//! | receive arena | bytes of messages received; the node allocates it |
//!
//! Every part starts a page. Both sides compute the layout from the same three numbers. The rings
//! cannot overflow: at most `depth` submissions have no completion that the application has read,
//! and at most `slots` messages arrive or are held. The CQ has entries for both.

use thiserror::Error;

use crate::map::Memory;
use crate::ring::RingOffsets;

/// First word of the memory, and of every handshake: `RMRING`.
pub(crate) const MAGIC: u64 = 0x0000_474e_4952_4d52;
/// Version of the layout and the handshake.
pub(crate) const VERSION: u32 = 3;

/// Words of 8 bytes in a submission, a completion and a release.
pub(crate) const SQ_WORDS: usize = 8;
pub(crate) const CQ_WORDS: usize = 4;
pub(crate) const RQ_WORDS: usize = 1;

const PAGE: u64 = 4_096;
/// Distance between counters: two cache lines, as the processor prefetches lines in pairs.
const COUNTER_DISTANCE: usize = 128;
/// Maximum number of messages that an application may have in flight.
pub(crate) const DEPTH_MAX: u32 = 1 << 16;
/// Maximum size of an arena in bytes, for any limit of the node.
pub(crate) const ARENA_MAX: u64 = 1 << 36;
/// Received messages that every application may hold, even with a smaller depth.
const SLOTS_MIN: u32 = 64;

/// Layout of one application's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(crate) depth: u32,
    pub(crate) slots: u32,
    pub(crate) sq: RingOffsets,
    pub(crate) cq: RingOffsets,
    pub(crate) rq: RingOffsets,
    pub(crate) send: Span,
    pub(crate) receive: Span,
    pub(crate) total: u64,
}

/// Part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// A number above the maximum of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Depth out of range.
    #[error("expected a depth of 1 to {DEPTH_MAX} messages, got {got}")]
    Depth {
        /// Requested depth.
        got: u32,
    },
    /// Arena larger than the maximum.
    #[error("expected at most {ARENA_MAX} bytes for messages, got {got}")]
    Arena {
        /// Bytes of the larger arena.
        got: u64,
    },
}

impl Span {
    /// Returns the offset in the memory of a piece of this part; `None` if the piece is not within
    /// the part.
    pub(crate) fn locate(&self, offset: u64, len: u64) -> Option<usize> {
        let is_within = offset.checked_add(len)? <= self.len;
        is_within.then(|| (self.offset + offset) as usize)
    }
}

impl Layout {
    /// Computes the layout for `depth` submissions in flight and arenas of `send` and `receive`
    /// bytes, which are rounded up to pages.
    ///
    /// # Errors
    /// A number above the maximum of all nodes.
    pub fn new(depth: u32, send: u64, receive: u64) -> Result<Self, LayoutError> {
        if depth == 0 || depth > DEPTH_MAX {
            return Err(LayoutError::Depth { got: depth });
        }
        if send > ARENA_MAX || receive > ARENA_MAX {
            return Err(LayoutError::Arena { got: send.max(receive) });
        }
        let slots = (4 * depth).max(SLOTS_MIN).next_power_of_two();
        let mut at = 2 * PAGE;
        let mut part = |len: u64| {
            let span = Span { offset: at, len: len.next_multiple_of(PAGE) };
            at += span.len;
            span
        };
        let mut n = 0;
        let mut place = |capacity: u32, words: usize| {
            let entries = part(u64::from(capacity) * 8 * words as u64).offset as usize;
            let line = |k: usize| PAGE as usize + (3 * n + k) * COUNTER_DISTANCE;
            let place =
                RingOffsets { head: line(0), tail: line(1), flag: line(2), entries, capacity };
            n += 1;
            place
        };
        let sq = place(depth.next_power_of_two(), SQ_WORDS);
        let cq = place((depth + slots).next_power_of_two(), CQ_WORDS);
        let rq = place(slots, RQ_WORDS);
        let (send, receive) = (part(send), part(receive));
        Ok(Self { depth, slots, sq, cq, rq, send, receive, total: at })
    }

    /// Returns the number of messages that may arrive, or be held by the application, at the same
    /// time.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the bytes of the whole memory.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Writes page 0.
    pub(crate) fn label(&self, memory: &Memory) {
        let words = [
            MAGIC,
            VERSION.into(),
            self.total,
            self.depth.into(),
            self.slots.into(),
            self.send.offset,
            self.send.len,
            self.receive.offset,
            self.receive.len,
        ];
        for (idx, word) in words.into_iter().enumerate() {
            memory.copy_in(8 * idx, &word.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn parts_of_a_layout_are_adjacent(
            depth in 1u32..=DEPTH_MAX,
            send in 0..=ARENA_MAX,
            receive in 0..=ARENA_MAX,
        ) {
            let layout = Layout::new(depth, send, receive).unwrap();
            let Layout { sq, cq, rq, .. } = layout;
            let words = |place: RingOffsets, n: usize| {
                (place.entries + place.capacity as usize * 8 * n) as u64
            };
            prop_assert_eq!(sq.entries as u64, 2 * PAGE);
            prop_assert!(words(sq, SQ_WORDS) <= cq.entries as u64);
            prop_assert!(words(cq, CQ_WORDS) <= rq.entries as u64);
            prop_assert!(words(rq, RQ_WORDS) <= layout.send.offset);
            prop_assert_eq!(layout.send.offset + layout.send.len, layout.receive.offset);
            prop_assert_eq!(layout.receive.offset + layout.receive.len, layout.total);
            prop_assert!(layout.send.len >= send && layout.receive.len >= receive);
            prop_assert!(sq.capacity >= depth && cq.capacity >= depth + layout.slots);
            prop_assert!(rq.capacity >= layout.slots && layout.total.is_multiple_of(PAGE));
        }

        #[test]
        fn located_pieces_are_within_their_part_of_the_memory(
            offset in any::<u64>(),
            len in any::<u64>(),
        ) {
            let span = Span { offset: 8_192, len: 4_096 };
            if let Some(at) = span.locate(offset, len) {
                prop_assert!(at >= 8_192 && at as u64 + len <= 12_288);
            }
        }
    }

    #[test]
    fn numbers_that_no_node_gives_are_refused() {
        let too_deep = LayoutError::Depth { got: DEPTH_MAX + 1 };
        assert_eq!(Layout::new(0, 1, 1), Err(LayoutError::Depth { got: 0 }));
        assert_eq!(Layout::new(DEPTH_MAX + 1, 1, 1), Err(too_deep));
        assert_eq!(Layout::new(1, u64::MAX, 0), Err(LayoutError::Arena { got: u64::MAX }));
    }
}
