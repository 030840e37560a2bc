//! Tables of the causes of flows' times.

use std::borrow::Cow;

use crate::columns::rows;

rows! {
    /// Part of the time of a flow that was delivered: a row of `blame.parquet`. The parts of a flow
    /// sum to its `fct_ps`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BlameRow, BlameRows {
        /// Number of the flow.
        [""] flow: u64,
        /// Number of the part among those of the flow, in the order in which they began.
        [""] part: u32,
        /// Cause: permission, permission-in-flight, sender-link, serialisation, retransmission,
        /// loss, queueing, paused, cut-through, ordering, propagation or switching.
        [""] cause: Cow<'static, str>,
        /// Stage of the transport if the cause is a permission; for a loss its discovery: timeout
        /// of the sender, packet of the receiver, or open. Else empty.
        [""] stage: Cow<'static, str>,
        /// Tier of the ports, or that of the last drop if the cause is loss; may be empty.
        [""] tier: Cow<'static, str>,
        /// Duration of the part.
        ["ps"] time_ps: u64,
    }
}

rows! {
    /// Time for which a flow used the link that another one waited for: a row of
    /// `blockers.parquet`. The link is that of the sender for sender-link, that of the receiver for
    /// permission, and that of the port for queueing.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BlockerRow, BlockerRows {
        /// Number of the flow that waited.
        [""] flow: u64,
        /// Number of the part of its time, whose cause is permission, sender-link or queueing.
        [""] part: u32,
        /// Number of the flow that used the link; null for control packets together with all flows
        /// beyond the 16 that used it for longest.
        [""] blocker: Option<u64>,
        /// Time for which it used the link.
        ["ps"] time_ps: u64,
    }
}

rows! {
    /// The flow whose end let another one start: a row of `releases.parquet`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReleaseRow, ReleaseRows {
        /// Number of the flow that waited.
        [""] flow: u64,
        /// Number of the flow whose end was the last for which it waited.
        [""] after: u64,
        /// Time at which the sender was notified of that end. Until `arrival_ps` its plan had a
        /// computation, a pause, or think or service time.
        ["ps"] notified_ps: u64,
    }
}
