//! How messages are cut into packets.

use rampmeter_core::Bytes;
use rampmeter_metrics::ideal::LastPacket;

/// How a transport cuts messages into packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Payload of a full packet.
    pub(crate) payload: Bytes,
    /// Headers on the wire; also the length of a control packet.
    pub(crate) header: Bytes,
    pub(crate) last: LastPacket,
}
