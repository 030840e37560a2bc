//! Kinds of packets.

/// Kind of a packet. Only data has payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Packets with a part of a message.
    Data,
    /// Packets that report what has arrived.
    Ack,
    /// Packets that allow a sender to send: tokens, grants, credits, pulls.
    Permission,
    /// Packets that announce a message or request permission.
    Request,
    /// All others.
    Control,
}

impl PacketKind {
    /// Returns the name of the kind in timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "acknowledgement",
            Self::Permission => "permission",
            Self::Request => "request",
            Self::Control => "other control",
        }
    }
}
