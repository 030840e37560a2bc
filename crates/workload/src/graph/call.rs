//! Calls of requests and responses.

/// A call, and its nodes in the graph: `fan` requests, then as many responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// First node.
    pub first: u32,
    /// Number of its servers.
    pub fan: u32,
}
