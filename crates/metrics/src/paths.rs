//! Table of the paths of flows.

use std::borrow::Cow;

use crate::columns::rows;

rows! {
    /// Packets of a flow that took one path: a row of `paths.parquet`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PathRow, PathRows {
        /// Number of the flow.
        [""] flow: u64,
        /// Nodes from host to host, as in `h0>s0>s4>s1>h17`.
        [""] path: Cow<'static, str>,
        /// Data packets of the flow that arrived by this path, including retransmitted ones.
        [""] packets: u64,
        /// Message bytes in them.
        ["B"] bytes: u64,
    }
}
