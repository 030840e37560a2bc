//! Bytes of a load's messages: generated at the sender, compared at the receiver.
//!
//! A message begins with its flow's number in eight bytes, the label. Each further byte follows
//! from the message's size and its position.

use rampmeter_runtime::{Assembly, Payload};
use rampmeter_types::rng::mix;

/// Minimum length of a message: it must hold the flow's number.
pub(crate) const SIZE_MIN: u64 = 8;

/// Bytes of a message, generated on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// Number of the flow.
    pub(crate) flow: u32,
    /// Length in bytes.
    pub(crate) size: u32,
}

impl Payload for Pattern {
    fn size(&self) -> usize {
        self.size as usize
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        fill(self.size, offset, out);
        let label = u64::from(self.flow).to_be_bytes();
        for (label, out) in label.iter().skip(offset).zip(out) {
            *out = *label;
        }
    }
}

/// A message whose bytes are compared as they arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedMessage {
    size: u32,
    label: [u8; SIZE_MIN as usize],
    is_good: bool,
}

impl CheckedMessage {
    /// Creates a message of `size` bytes, none of which has arrived.
    pub(crate) fn new(size: u32) -> Self {
        Self { size, label: [0; SIZE_MIN as usize], is_good: true }
    }

    /// Returns the flow's number of a received message, and true if all bytes are correct.
    pub(crate) fn verdict(&self) -> (u32, bool) {
        let flow = u64::from_be_bytes(self.label);
        (flow as u32, self.is_good && flow <= u32::MAX.into())
    }
}

impl Assembly for CheckedMessage {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (label, got) in self.label.iter_mut().skip(offset).zip(bytes) {
            *label = *got;
        }
        let labelled = self.label.len().saturating_sub(offset).min(bytes.len());
        let (offset, bytes) = (offset + labelled, &bytes[labelled..]);
        let mut pattern_bytes = [0; 2_048];
        for (at, part) in
            (offset..).step_by(pattern_bytes.len()).zip(bytes.chunks(pattern_bytes.len()))
        {
            fill(self.size, at, &mut pattern_bytes[..part.len()]);
            self.is_good &= pattern_bytes[..part.len()] == *part;
        }
    }
}

/// Fills in the bytes of a message of `size` from `offset` on, without its label.
fn fill(size: u32, offset: usize, out: &mut [u8]) {
    let word = |at: usize| mix(u64::from(size) << 32 ^ (at / 8) as u64).to_be_bytes();
    let skip = offset % 8;
    let head = out.len().min((8 - skip) % 8);
    let (first, rest) = out.split_at_mut(head);
    first.copy_from_slice(&word(offset)[skip..][..head]);
    for (at, part) in (offset + head..).step_by(8).zip(rest.chunks_mut(8)) {
        part.copy_from_slice(&word(at)[..part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(flow: u32, size: u32, cuts: &[usize], spoil: Option<usize>) -> CheckedMessage {
        let mut bytes = vec![0; size as usize];
        Pattern { flow, size }.copy_to(0, &mut bytes);
        if let Some(at) = spoil {
            bytes[at] ^= 1;
        }
        let mut message = CheckedMessage::new(size);
        let ends = cuts.iter().skip(1).copied().chain([bytes.len()]);
        let parts: Vec<_> = cuts.iter().copied().zip(ends).collect();
        for (from, to) in parts.into_iter().rev() {
            message.write(from, &bytes[from..to]);
        }
        message
    }

    #[test]
    fn a_message_cut_anywhere_is_recognised_and_every_changed_byte_is_noticed() {
        for cuts in [&[0][..], &[0, 3], &[0, 8, 9], &[0, 13, 2_500, 4_000]] {
            let good = arrive(77, 5_003, cuts, None);
            assert!(good.is_good && u64::from_be_bytes(good.label) == 77);
            for at in [8, 9, 2_499, 2_500, 5_002] {
                assert!(!arrive(77, 5_003, cuts, Some(at)).is_good, "byte {at}");
            }
        }
        assert_eq!(u64::from_be_bytes(arrive(9, 8, &[0], None).label), 9);
    }

    #[test]
    fn parts_of_a_message_are_those_of_the_whole() {
        let (pattern, mut whole) = (Pattern { flow: 5, size: 100 }, [0; 100]);
        pattern.copy_to(0, &mut whole);
        for from in 0..40 {
            for len in 0..40 {
                let mut part = vec![0; len];
                pattern.copy_to(from, &mut part);
                assert_eq!(part, whole[from..from + len]);
            }
        }
    }
}
