//! Set of sequence numbers that fills up from the bottom.
//!
//! Packets of a message arrive nearly in order. So the set is the first missing number (`base`) and
//! a bitmap in aligned blocks of 64. The block that holds `base` and its successor are inline. More
//! are allocated only if a number arrives more than 64 early: one for each block with such a
//! number, however far ahead it is.

use std::collections::BTreeMap;

const BITS: u32 = 64;

/// Set of sequence numbers 0, 1, 2, ...
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqSet {
    /// First missing number: every number below is in the set, this one is not.
    base: u32,
    /// Count of numbers above base in the set.
    n_above: u32,
    /// Bitmaps of the blocks base / 64 and base / 64 + 1.
    near_blocks: [u64; 2],
    /// Later blocks with at least one number, by block number.
    far_blocks: BTreeMap<u32, u64>,
}

impl SeqSet {
    /// Returns the smallest number that is not in the set.
    #[inline]
    pub fn first_missing(&self) -> u32 {
        self.base
    }

    /// Returns the count of numbers in the set.
    #[inline]
    pub fn len(&self) -> u32 {
        self.base + self.n_above
    }

    /// Returns true if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if `seq` is in the set.
    #[inline]
    pub fn contains(&self, seq: u32) -> bool {
        if seq < self.base {
            return true;
        }
        let block = (seq / BITS - self.base / BITS) as usize;
        let word = match block {
            0 | 1 => self.near_blocks[block],
            _ => self.far_blocks.get(&(seq / BITS)).copied().unwrap_or(0),
        };
        word >> (seq % BITS) & 1 == 1
    }

    /// Inserts `seq`; returns false if it was in the set.
    #[inline]
    pub fn insert(&mut self, seq: u32) -> bool {
        if seq < self.base {
            return false;
        }
        let block = (seq / BITS - self.base / BITS) as usize;
        let word = match block {
            0 | 1 => &mut self.near_blocks[block],
            _ => self.far_blocks.entry(seq / BITS).or_default(),
        };
        let bit = 1 << (seq % BITS);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.n_above += 1;
        if seq == self.base {
            self.advance();
        }
        true
    }

    /// Returns the smallest number at or above `from` that is not in the set.
    #[inline]
    pub fn next_missing(&self, from: u32) -> u32 {
        let mut seq = from.max(self.base);
        while self.contains(seq) {
            seq += 1;
        }
        seq
    }

    /// Inserts every number below `end`.
    pub fn insert_below(&mut self, end: u32) {
        while self.base < end {
            self.insert(self.base);
        }
    }

    fn remove_far_block(&mut self, block: u32) -> u64 {
        // Most sets never have a far block.
        if self.far_blocks.is_empty() { 0 } else { self.far_blocks.remove(&block).unwrap_or(0) }
    }

    /// Moves the base over the numbers in the set.
    fn advance(&mut self) {
        loop {
            let run = (!(self.near_blocks[0] >> (self.base % BITS))).trailing_zeros();
            // The shift inserts zeros, so a run ends at the block's end at the latest.
            let run = run.min(BITS - self.base % BITS);
            self.base += run;
            self.n_above -= run;
            if run == 0 || !self.base.is_multiple_of(BITS) {
                return;
            }
            self.near_blocks = [self.near_blocks[1], self.remove_far_block(self.base / BITS + 1)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn in_order_arrival_never_allocates() {
        let mut set = SeqSet::default();
        for seq in 0..10_000 {
            assert!(set.insert(seq));
        }
        assert_eq!((set.first_missing(), set.len(), set.far_blocks.len()), (10_000, 10_000, 0));
    }

    /// The maximum number needs one block, not those of all numbers below it.
    #[test]
    fn a_number_far_ahead_takes_one_block() {
        let mut set = SeqSet::default();
        assert!(set.insert(u32::MAX - 1) && set.insert(1 << 20) && !set.insert(1 << 20));
        assert!(set.contains(u32::MAX - 1) && !set.contains(u32::MAX));
        assert_eq!((set.far_blocks.len(), set.len(), set.first_missing()), (2, 2, 0));
        set.insert_below(100);
        assert_eq!((set.first_missing(), set.next_missing(1 << 20)), (100, (1 << 20) + 1));
    }

    proptest! {
        #[test]
        fn a_sequence_set_agrees_with_a_tree_set(
            seqs in proptest::collection::vec(0u32..400, 0..600),
        ) {
            let mut set = SeqSet::default();
            let mut model = BTreeSet::new();
            for seq in seqs {
                prop_assert_eq!(set.insert(seq), model.insert(seq));
                let first_missing = (0..).find(|s| !model.contains(s)).unwrap();
                prop_assert_eq!(set.first_missing(), first_missing);
                prop_assert_eq!(set.len() as usize, model.len());
                let next = (seq / 2..).find(|s| !model.contains(s)).unwrap();
                prop_assert_eq!(set.next_missing(seq / 2), next);
            }
            for seq in 0..450 {
                prop_assert_eq!(set.contains(seq), model.contains(&seq));
            }
        }
    }
}
