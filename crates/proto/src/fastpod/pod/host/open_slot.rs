//! The slot that a host is in.

use rampmeter_types::Time;

use crate::fastpod::pod::requests::Grant;
use crate::fastpod::timing::Instant;

/// The slot that the host is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenSlot {
    pub(super) number: u64,
    /// The clock that holds for the whole slot, so that its packets stay apart.
    pub(super) offset: Instant,
    pub(super) grant: Option<Grant>,
    /// The destination of the slot's unscheduled cells, and when their message was submitted.
    pub(super) unscheduled_dst: Option<(u16, Time)>,
    pub(super) has_rts: bool,
    pub(super) next_cell: u16,
}
