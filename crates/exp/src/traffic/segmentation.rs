//! Segmentation of messages into packets.

use rampmeter_core::Bytes;
use rampmeter_metrics::ideal::{Framing, LastPacket};

/// Segmentation of messages into packets by a transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmentation {
    /// Payload of a full packet.
    pub(crate) payload: Bytes,
    /// Headers on the wire; also the length of a control packet.
    pub(crate) header: Bytes,
    pub(crate) last: LastPacket,
    /// Control packets that a receiver sends for a full packet.
    pub(crate) reply: Bytes,
}

impl Segmentation {
    /// Returns the lengths of packets.
    pub(crate) fn framing(self) -> Framing {
        let Self { payload, header: ack, last, .. } = self;
        Framing { payload, wire: payload + ack, last, ack }
    }
}
