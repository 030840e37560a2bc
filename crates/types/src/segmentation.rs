//! Segmentation of messages into packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::Marks;
use crate::{Bytes, MsgId, NodeId, Packet, PayloadRef, Priority, Span};

/// Charging of data packets to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The last packet of a flow is as long as its payload and header.
    Exact,
    /// Every data packet is as long as a full one, as in the simulators of pHost and dcPIM.
    Full,
}

/// Segmentation of messages into packets by a transport. Both ends derive the packets of a message
/// from its size alone. Packets are numbered from zero, and all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Payload of a full packet.
    pub payload: Bytes,
    /// Bytes of headers charged to each packet, and the length of a control packet.
    pub header: Bytes,
    /// Charged length of last packets.
    pub padding: Padding,
    head: Head,
}

/// First packets of every message, which may carry another payload in a full packet. They end with
/// a fixed byte of the message, so the last of them may carry less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    packets: u32,
    /// Bytes of a message that they carry.
    bytes: u64,
    /// Payload of each.
    payload: u64,
}

/// A message being sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// The sender's number for it.
    pub msg: MsgId,
    /// Length in bytes.
    pub size: u64,
}

impl Segmentation {
    /// Returns a segmentation into packets of one payload.
    #[inline]
    pub const fn new(payload: Bytes, header: Bytes, padding: Padding) -> Self {
        let head = Head { packets: 0, bytes: 0, payload: payload.get() };
        Self { payload, header, padding, head }
    }

    /// Returns the segmentation in which packets of the first `bytes` of a message carry `payload`
    /// bytes. Full packets keep their length on the wire. If the payload is that of other packets,
    /// the first packets are all full.
    #[must_use]
    pub fn with_head(self, payload: u64, bytes: u64) -> Self {
        let packets = bytes.div_ceil(payload);
        let bytes = if payload == self.payload.get() { packets * payload } else { bytes };
        Self { head: Head { packets: packets as u32, bytes, payload }, ..self }
    }

    /// Returns the segmentation in which the first packets carry as much as others.
    #[must_use]
    pub fn without_head(self) -> Self {
        Self::new(self.payload, self.header, self.padding)
    }

    /// Returns true if the first packets of a message carry as much as others.
    pub fn is_even(&self) -> bool {
        self.head.payload == self.payload.get()
    }

    /// Returns the maximum number of first packets of a message.
    pub fn head_packets(&self) -> u32 {
        self.head.packets
    }

    /// Returns a full packet on the wire.
    #[inline]
    pub const fn full_wire_bytes(&self) -> Bytes {
        Bytes::new(self.payload.get() + self.header.get())
    }

    /// Returns the number of packets of a message of `size`, from one to `u32::MAX`.
    #[inline]
    pub fn packets(&self, size: Bytes) -> u32 {
        let packets = match size.get().checked_sub(self.head.bytes) {
            Some(rest) if self.head.packets == 0 => Bytes::new(rest).packets_ceil(self.payload),
            Some(rest) => u64::from(self.head.packets) + rest.div_ceil(self.payload.get()),
            None => size.packets_ceil(Bytes::new(self.head.payload)),
        };
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// Returns the offset of packet `seq` in its message.
    #[inline]
    pub fn offset(&self, seq: u32) -> u64 {
        match seq.checked_sub(self.head.packets) {
            None => u64::from(seq) * self.head.payload,
            Some(more) => self.head.bytes + u64::from(more) * self.payload.get(),
        }
    }

    /// Returns the bytes of a message of `size` from packet `seq` on.
    #[inline]
    pub fn remaining(&self, seq: u32, size: u64) -> u64 {
        size.saturating_sub(self.offset(seq))
    }

    /// Returns the payload of packet `seq` of a message of `size`; zero if there is no such packet.
    #[inline]
    pub fn payload_of(&self, seq: u32, size: u64) -> u64 {
        self.remaining(seq, size) - self.remaining(seq + 1, size)
    }

    /// Returns the length of packet `seq` of a message of `size` on the wire.
    #[inline]
    pub fn wire_bytes(&self, seq: u32, size: u64) -> u64 {
        let full_wire_bytes = self.full_wire_bytes().get();
        let most = if seq < self.head.packets { self.head.payload } else { self.payload.get() };
        match self.padding {
            Padding::Full => full_wire_bytes,
            Padding::Exact => self.payload_of(seq, size) + full_wire_bytes - most,
        }
    }

    /// Returns the length of the last packet of a message of `size` on the wire.
    #[inline]
    pub fn last_wire_bytes(&self, size: Bytes) -> Bytes {
        Bytes::new(self.wire_bytes(self.packets(size) - 1, size.get()))
    }

    /// Returns the length of all packets of a message of `size` on the wire.
    #[inline]
    pub fn message_wire_bytes(&self, size: Bytes) -> Bytes {
        Bytes::new(self.wire_bytes_of_first(size.get(), self.packets(size)))
    }

    /// Returns the length of the first `packets` of a message of `size` on the wire.
    pub fn wire_bytes_of_first(&self, size: u64, packets: u32) -> u64 {
        let head = packets.min(self.head.packets);
        let most =
            u64::from(head) * self.head.payload + u64::from(packets - head) * self.payload.get();
        let full = self.full_wire_bytes().get() * u64::from(packets);
        match self.padding {
            Padding::Full => full,
            Padding::Exact => self.offset(packets).min(size) + full - most,
        }
    }

    /// Returns the time that a link needs for the first `packets` of a message of `size`, given
    /// that of a full packet.
    pub fn link_time(&self, full: Span, size: Bytes, packets: u32) -> Span {
        full.scale_floor(
            self.wire_bytes_of_first(size.get(), packets),
            self.full_wire_bytes().get(),
        )
    }

    /// Returns packet number `seq` of a message, which must have it.
    #[inline]
    pub fn data<H>(
        &self,
        message: OutgoingMessage,
        seq: u32,
        priority: Priority,
        header: H,
    ) -> Packet<H> {
        let OutgoingMessage { src, dst, msg, size } = message;
        let len = self.payload_of(seq, size) as u16;
        Packet {
            header,
            payload: PayloadRef { msg, offset: self.offset(seq), len },
            src,
            dst,
            wire_bytes: self.wire_bytes(seq, size) as u16,
            path: 0,
            priority,
            marks: Marks::NONE,
        }
    }

    /// Returns a packet of the highest class with `len` bytes of a message from `offset` on;
    /// without any it is as long as its header.
    pub fn part<H>(&self, message: OutgoingMessage, offset: u64, len: u16, header: H) -> Packet<H> {
        let body = match self.padding {
            Padding::Full if len > 0 => self.payload.get() as u16,
            Padding::Full | Padding::Exact => len,
        };
        Packet {
            header,
            payload: PayloadRef { msg: message.msg, offset, len },
            src: message.src,
            dst: message.dst,
            wire_bytes: self.header.get() as u16 + body,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Bytes = Bytes::new(40);

    #[test]
    fn a_link_carries_short_last_packets_in_less_time() {
        let payload = Bytes::new(1_460);
        let exact = Segmentation::new(payload, HEADER, Padding::Exact);
        let full = Segmentation::new(payload, HEADER, Padding::Full);
        let packet = Span::from_ns(1_500);
        for (size, packets, expected) in [(64, 1, 104), (1_460, 1, 1_500), (2_000, 2, 2_080)] {
            let size = Bytes::new(size);
            assert_eq!(exact.link_time(packet, size, packets), Span::from_ns(expected));
            assert_eq!(full.link_time(packet, size, packets), packet * u64::from(packets));
        }
        assert_eq!(exact.link_time(packet, Bytes::new(100_000), 3), packet * 3);
        assert_eq!(exact.link_time(packet, Bytes::new(100_000), 0), Span::ZERO);
    }

    /// Homa's simulator sends 100 000 unscheduled bytes in packets of 1442, others of 1456, all of
    /// 1538 on the wire.
    #[test]
    fn first_packets_may_carry_less() {
        let cut = Segmentation::new(Bytes::new(1_456), Bytes::new(82), Padding::Exact)
            .with_head(1_442, 100_000);
        let size = 500_000;
        assert_eq!((cut.head_packets(), cut.packets(Bytes::new(size))), (70, 70 + 275));
        assert_eq!((cut.payload_of(69, size), cut.wire_bytes(69, size)), (502, 502 + 96));
        assert_eq!(
            (cut.offset(70), cut.payload_of(70, size), cut.wire_bytes(70, size)),
            (100_000, 1_456, 1_538)
        );
        assert_eq!(cut.wire_bytes(344, size), 400_000 - 274 * 1_456 + 82);
    }

    #[test]
    fn packets_cover_a_message_without_overlap() {
        let sizes = [1, 1_441, 1_442, 1_443, 9_700, 10_220, 99_999, 100_000, 100_001, 500_000];
        for (payload, first, bytes) in [(1_456, 1_442, 100_000), (1_460, 1_460, 9_700), (9, 5, 0)] {
            for padding in [Padding::Exact, Padding::Full] {
                let cut =
                    Segmentation::new(Bytes::new(payload), HEADER, padding).with_head(first, bytes);
                for size in sizes {
                    let packets = cut.packets(Bytes::new(size));
                    let (mut at, mut wire) = (0, 0);
                    for seq in 0..packets {
                        assert_eq!((cut.offset(seq), cut.remaining(seq, size)), (at, size - at));
                        assert!(cut.payload_of(seq, size) > 0, "{size}");
                        at += cut.payload_of(seq, size);
                        wire += cut.wire_bytes(seq, size);
                        assert_eq!(cut.wire_bytes_of_first(size, seq + 1), wire);
                    }
                    assert_eq!((at, cut.payload_of(packets, size)), (size, 0));
                }
            }
        }
    }
}
