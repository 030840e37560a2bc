//! What a program asks of its node, for a port and for a message.

use std::time::Duration;

/// What a port asks its node for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Messages that may be under way, 1 to 65 536. Of messages received, four times as many and at
    /// least 64 may be arriving or held.
    pub depth: u32,
    /// Bytes for messages that are sent: at least the longest message.
    pub send: u64,
    /// Bytes for messages that arrive or are held: at least the longest message.
    pub receive: u64,
}

impl Default for PortConfig {
    /// 1 024 messages, 64 MiB each way, which cost what is used of them.
    fn default() -> Self {
        Self { depth: 1_024, send: 64 << 20, receive: 64 << 20 }
    }
}

/// What a message may say beside where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// In what time it is needed.
    pub deadline: Option<Duration>,
    /// Whom it belongs to.
    pub tenant: u32,
}
