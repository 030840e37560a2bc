//! The table of the paths that flows took.

use std::borrow::Cow;

use crate::columns::rows;

rows! {
    /// How much of a flow took one path: a row of `paths.parquet`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PathRow, PathRows {
        /// The flow.
        [""] flow: u64,
        /// The nodes from host to host, as in `h0>s0>s4>s1>h17`.
        [""] path: Cow<'static, str>,
        /// Its data packets that arrived by this path, repeated ones too.
        [""] packets: u64,
        /// Message bytes in them.
        ["B"] bytes: u64,
    }
}
