//! Cutting messages into packets whose first ones may carry less than the others.
//!
//! Every message is cut in the same way, however much of it is unscheduled, so that both ends agree
//! by its size alone.

/// Division of messages into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segmentation {
    /// Payload of each of the first packets.
    first: u64,
    /// Bytes of a message that are cut so, and how many packets they make.
    first_bytes: u64,
    first_packets: u32,
    /// Payload of all other packets.
    payload: u64,
    /// A full packet on the wire.
    full: u64,
}

impl Segmentation {
    /// The first `bytes` of a message are sent in packets of `first`, the others in packets of
    /// `payload`. If both are equal, the first packets are all full.
    pub(super) fn new(payload: u64, first: u64, bytes: u64, full: u64) -> Self {
        let first_packets = bytes.div_ceil(first);
        let first_bytes = if first == payload { first_packets * first } else { bytes };
        Self { first, first_bytes, first_packets: first_packets as u32, payload, full }
    }

    /// Returns true if the first packets carry as much as others.
    pub(super) fn is_even(&self) -> bool {
        self.first == self.payload
    }

    /// Returns the maximum number of packets of the first kind.
    pub(super) fn first_packets(&self) -> u32 {
        self.first_packets
    }

    /// Returns a full packet on the wire.
    #[inline]
    pub(super) fn full(&self) -> u64 {
        self.full
    }

    /// Packets of a message of `size`; at most `u32::MAX`.
    pub(super) fn packets(&self, size: u64) -> u32 {
        let more = size.saturating_sub(self.first_bytes).div_ceil(self.payload);
        let packets = size.min(self.first_bytes).div_ceil(self.first) + more;
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// Returns the offset of packet `seq` in its message if the message is long enough.
    #[inline]
    pub(super) fn offset(&self, seq: u32) -> u64 {
        match seq.checked_sub(self.first_packets) {
            None => u64::from(seq) * self.first,
            Some(more) => self.first_bytes + u64::from(more) * self.payload,
        }
    }

    /// Bytes of a message of `size` from packet `seq` on.
    #[inline]
    pub(super) fn left(&self, seq: u32, size: u64) -> u64 {
        size.saturating_sub(self.offset(seq))
    }

    /// Payload of packet `seq` of a message of `size`.
    #[inline]
    pub(super) fn len(&self, seq: u32, size: u64) -> u64 {
        self.left(seq, size) - self.left(seq + 1, size)
    }

    /// Packet `seq` of a message of `size` on the wire.
    #[inline]
    pub(super) fn wire(&self, seq: u32, size: u64) -> u64 {
        let payload = if seq < self.first_packets { self.first } else { self.payload };
        self.len(seq, size) + self.full - payload
    }
}
