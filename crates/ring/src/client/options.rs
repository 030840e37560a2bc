//! Options of a port and of a message.

use std::time::Duration;

/// Resources that a port requests from its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Maximum number of messages in flight, 1 to 65 536. Of received messages, four times as many
    /// and at least 64 may be arriving or held.
    pub depth: u32,
    /// Bytes of the send arena: at least the longest message.
    pub send: u64,
    /// Bytes of the receive arena, for messages that arrive or are held: at least the longest
    /// message.
    pub receive: u64,
}

impl Default for PortConfig {
    /// 1 024 messages, 64 MiB in each direction. Memory that is never used costs nothing.
    fn default() -> Self {
        Self { depth: 1_024, send: 64 << 20, receive: 64 << 20 }
    }
}

/// Options of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Time until the message is needed at its receiver.
    pub deadline: Option<Duration>,
    /// Tenant that the message belongs to.
    pub tenant: u32,
}
