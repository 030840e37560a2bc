//! The packet: the fields that every fabric reads, the bytes of the message that it carries, and
//! the protocol's own header.

use crate::id::{MsgId, NodeId};

/// A traffic class, 0 the highest of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(u8);

impl Priority {
    /// Number of classes of a port.
    pub const COUNT: usize = 8;
    /// The highest class, used for control packets.
    pub const HIGHEST: Self = Self(0);
    /// The lowest class.
    pub const LOWEST: Self = Self(Self::COUNT as u8 - 1);

    /// Returns class `n`; numbers above the lowest class become the lowest.
    #[inline]
    pub const fn new(n: u8) -> Self {
        if n < Self::COUNT as u8 { Self(n) } else { Self::LOWEST }
    }

    /// Returns the number, 0 to 7.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the DSCP bits of an IP header's traffic class: CS7 for the highest class to CS0 for
    /// the lowest. [`Marks::ecn_bits`] returns the other two bits.
    #[inline]
    pub const fn traffic_class(self) -> u8 {
        (Self::LOWEST.0 - self.0) << 5
    }
}

/// Bytes of a message that a packet carries. The bytes themselves are in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PayloadRef {
    /// First byte within the message.
    pub offset: u64,
    /// The message, in the numbering of the sender's driver.
    pub msg: MsgId,
    /// Number of bytes; zero in a control packet.
    pub len: u16,
}

/// A packet. With a header of at most 32 bytes it fills one cache line in the simulator's slab. A
/// longer header extends into a second line, which ports do not read.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Packet<H> {
    /// The bytes carried.
    pub payload: PayloadRef,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Bytes charged to every link, headers included.
    pub wire_bytes: u16,
    /// Path entropy that the sending interface sets and multipath switches use.
    pub path: u16,
    /// The class in which ports queue it.
    pub priority: Priority,
    /// Marks that switches set; see [`Marks`].
    pub marks: Marks,
    /// Header of the protocol.
    pub header: H,
}

/// Marks that a fabric may set on a packet: congestion experienced and payload trimmed, and flags
/// of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u8);

impl Marks {
    /// No marks.
    pub const NONE: Self = Self(0);
    /// The sender reacts to congestion marks (ECN-capable transport).
    pub const ECN_CAPABLE: Self = Self(1);
    /// A queue exceeded its marking threshold (congestion experienced).
    pub const CONGESTION: Self = Self(2);
    /// A switch has trimmed the payload.
    pub const TRIMMED: Self = Self(4);
    /// The sender has chosen the path; interfaces and switches follow it.
    pub const ROUTED: Self = Self(8);
    /// The path is a [`SourceRoute`](crate::SourceRoute): each switch forwards by the port
    /// that it names, and reads no table. Set together with [`Marks::ROUTED`].
    pub const SOURCE_ROUTED: Self = Self(16);
    /// Sent without a schedule: switches without memory drop or truncate it for any other packet
    /// (selective dropping, Fastpod §3.3).
    pub const UNSCHEDULED: Self = Self(32);
    /// A trimmed packet that is being returned to its sender; source and destination are exchanged
    /// (NDP, section 3.2).
    pub const RETURNED: Self = Self(64);

    /// Returns these marks and `other`.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the marks after a queue over its threshold: adds [`Marks::CONGESTION`] if the sender
    /// is [`Marks::ECN_CAPABLE`].
    #[must_use]
    #[inline]
    pub const fn mark_congestion(self) -> Self {
        Self(self.0 | (self.0 & Self::ECN_CAPABLE.0) << 1)
    }

    /// Returns the ECN bits of an IP header's traffic class (RFC 3168 §5). They are 3 for
    /// congestion experienced, 2 for an ECN-capable sender (ECT(0)), and otherwise 0.
    #[inline]
    pub const fn ecn_bits(self) -> u8 {
        if self.contains(Self::CONGESTION) {
            3
        } else if self.contains(Self::ECN_CAPABLE) {
            2
        } else {
            0
        }
    }

    /// Returns the marks of a received IP header's traffic class: both ECT(0) and ECT(1) are
    /// [`Marks::ECN_CAPABLE`]; congestion experienced is that and [`Marks::CONGESTION`].
    #[inline]
    pub const fn from_traffic_class(byte: u8) -> Self {
        match byte & 3 {
            0 => Self::NONE,
            3 => Self::ECN_CAPABLE.union(Self::CONGESTION),
            _ => Self::ECN_CAPABLE,
        }
    }

    /// Returns true if all of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_a_32_byte_header_fills_one_cache_line_less_the_slab_link() {
        assert!(size_of::<Packet<[u32; 7]>>() <= 64);
    }

    #[test]
    fn ecn_bits_follow_the_marks_of_a_packet() {
        let capable = Marks::ECN_CAPABLE;
        for marks in [Marks::NONE, capable, capable.union(Marks::CONGESTION)] {
            for class in 0..8 {
                let byte = Priority::new(class).traffic_class() | marks.ecn_bits();
                assert_eq!(Marks::from_traffic_class(byte), marks);
            }
        }
        assert_eq!(Marks::from_traffic_class(1), capable);
        assert_eq!(Marks::NONE.mark_congestion(), Marks::NONE);
        assert_eq!(capable.mark_congestion(), capable.union(Marks::CONGESTION));
    }

    #[test]
    fn the_union_of_marks_contains_each_of_them() {
        let marks = Marks::ECN_CAPABLE.union(Marks::CONGESTION);
        assert!(marks.contains(Marks::CONGESTION) && !marks.contains(Marks::TRIMMED));
    }
}
