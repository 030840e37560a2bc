//! Cutting messages into packets.

use rampmeter_core::packet::Marks;
use rampmeter_core::{Bytes, MsgId, NodeId, Packet, PayloadRef, Priority, Span};

use super::Padding;

/// Division of messages into packets by a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Payload of a full packet.
    pub payload: Bytes,
    /// Bytes of headers charged to each packet, and the length of a control packet.
    pub header: Bytes,
    /// Charged length of last packets.
    pub padding: Padding,
}

/// A message being sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage {
    /// Its sender.
    pub src: NodeId,
    /// Its receiver.
    pub dst: NodeId,
    /// The sender's number for it.
    pub msg: MsgId,
    /// Its length in bytes.
    pub size: u64,
}

impl Framing {
    /// Returns a full packet on the wire.
    pub fn full(&self) -> Bytes {
        self.payload + self.header
    }

    /// Packets of a message of `size`; at most `u32::MAX`.
    pub fn packets(&self, size: Bytes) -> u32 {
        u32::try_from(size.packets_ceil(self.payload)).unwrap_or(u32::MAX)
    }

    /// Returns the time that a link needs for the first `packets` of a message of `size`, given
    /// that of a full packet.
    pub fn link_time(&self, full: Span, size: Bytes, packets: u32) -> Span {
        let most = self.payload * u64::from(packets);
        let body = match self.padding {
            Padding::Full => most,
            Padding::Exact => most.min(size),
        };
        let bytes = body + self.header * u64::from(packets);
        full.scale_floor(bytes.get(), self.full().get())
    }

    /// Packet number `seq` of a message. Panics if the message is shorter.
    pub fn data<H>(
        &self,
        message: OutgoingMessage,
        seq: u32,
        priority: Priority,
        header: H,
    ) -> Packet<H> {
        let payload = self.payload.get();
        let offset = u64::from(seq) * payload;
        let len = payload.min(message.size - offset) as u16;
        Packet { priority, ..self.segment(message, (offset, len), header) }
    }

    /// Returns a packet of the highest class with `len` bytes of a message from `offset` on;
    /// without any it is as long as its header.
    pub fn segment<H>(
        &self,
        message: OutgoingMessage,
        (offset, len): (u64, u16),
        header: H,
    ) -> Packet<H> {
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

    #[test]
    fn a_link_carries_short_last_packets_in_less_time() {
        let (payload, header) = (Bytes::new(1_460), Bytes::new(40));
        let exact = Framing { payload, header, padding: Padding::Exact };
        let full = Framing { padding: Padding::Full, ..exact };
        let packet = Span::from_ns(1_500);
        for (size, packets, expected) in [(64, 1, 104), (1_460, 1, 1_500), (2_000, 2, 2_080)] {
            let size = Bytes::new(size);
            assert_eq!(exact.link_time(packet, size, packets), Span::from_ns(expected));
            assert_eq!(full.link_time(packet, size, packets), packet * u64::from(packets));
        }
        assert_eq!(exact.link_time(packet, Bytes::new(100_000), 3), packet * 3);
        assert_eq!(exact.link_time(packet, Bytes::new(100_000), 0), Span::ZERO);
    }
}
