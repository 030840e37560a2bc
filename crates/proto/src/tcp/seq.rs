//! Sequence numbers, and sets of bytes by their place in the stream.
//!
//! Inside an endpoint the bytes of a connection are numbered from zero by 64 bits. The SYN is byte
//! 0, the first byte of data 1. Packets have the lower 32 bits, from a random start.

/// Number of consecutive packets that contradict the state of both ends, after which a connection
/// is aborted.
pub(super) const CONFLICTS_MAX: u32 = 3;

/// Returns the number that packets have for byte `offset`.
pub(super) fn wrap(offset: u64, initial: u32) -> u32 {
    initial.wrapping_add(offset as u32)
}

/// Returns the byte with sequence number `seq` that is nearest to byte `near`; `None` if that is
/// before the first.
pub(super) fn unwrap(seq: u32, initial: u32, near: u64) -> Option<u64> {
    let distance = seq.wrapping_sub(wrap(near, initial)).cast_signed();
    near.checked_add_signed(distance.into())
}

/// A range of bytes: from the first up to but without the second.
pub(super) type Range = (u64, u64);

/// Ranges of bytes that do not touch, the one that changed last first: the order in which
/// acknowledgements report them (RFC 2018 §4).
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<Range>);

impl Ranges {
    /// Adds a range and joins it with those that it touches.
    pub(super) fn insert(&mut self, (mut start, mut end): Range) {
        self.0.retain(|&(s, e)| {
            let is_apart = e < start || end < s;
            if !is_apart {
                (start, end) = (start.min(s), end.max(e));
            }
            is_apart
        });
        self.0.insert(0, (start, end));
    }

    /// Returns true if all of a range is in the set.
    pub(super) fn contains(&self, (start, end): Range) -> bool {
        self.0.iter().any(|&(s, e)| s <= start && end <= e)
    }

    /// Returns true if part of a range is in the set.
    pub(super) fn overlaps(&self, (start, end): Range) -> bool {
        self.0.iter().any(|&(s, e)| s < end && start < e)
    }

    /// Takes out the range that starts at `start`, if there is one, and returns its end.
    pub(super) fn take(&mut self, start: u64) -> Option<u64> {
        let place = self.0.iter().position(|&(s, _)| s == start)?;
        Some(self.0.remove(place).1)
    }

    /// Returns the ranges, the one that changed last first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range> {
        self.0.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn sequence_numbers_wrap_and_unwrap_to_the_same_offset() {
        let initial = u32::MAX - 10;
        assert_eq!(wrap(11, initial), 0);
        assert_eq!(unwrap(0, initial, 5), Some(11));
        assert_eq!(unwrap(initial, initial, 5), Some(0));
        assert_eq!(unwrap(initial.wrapping_sub(1), initial, 5), None);
    }

    proptest! {
        #[test]
        fn a_number_names_the_nearest_byte(
            initial: u32, near in 0u64..1 << 40, distance in -(1i64 << 31) + 1..1i64 << 31,
        ) {
            let expected = near.checked_add_signed(distance);
            if let Some(offset) = expected {
                prop_assert_eq!(unwrap(wrap(offset, initial), initial, near), expected);
            }
        }

        /// Against a set of single bytes.
        #[test]
        fn byte_ranges_contain_exactly_the_inserted_bytes(
            inserted in proptest::collection::vec((0u64..60, 1u64..12), 1..30),
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (start, len) in inserted {
                ranges.insert((start, start + len));
                bytes.extend(start..start + len);
                prop_assert!(ranges.iter().next().is_some_and(|(s, e)| s <= start && start < e));
                for byte in 0..80 {
                    prop_assert_eq!(ranges.overlaps((byte, byte + 1)), bytes.contains(&byte));
                }
            }
            let mut all: Vec<Range> = ranges.iter().collect();
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
