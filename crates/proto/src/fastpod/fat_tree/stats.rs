//! Counters of a core switch.

use crate::toolkit::counters;

counters! {
    /// Counters of a core switch.
    pub(super) struct CoreStats prefix "core_" {
        /// Cells taken in.
        pub(super) cells: u64,
        /// Maximum number of cells that it held, in total and for one pod.
        pub(super) cells_max: u64,
        pub(super) queue_max: u64,
        /// Cells for which there was no memory.
        pub(super) overflows: u64,
        /// Cells dropped because no arbiter answered.
        pub(super) cells_abandoned: u64,
        /// RTSs sent.
        pub(super) rts_sent: u64,
        /// Slots given in which no cell was sent.
        pub(super) slots_unused: u64,
        /// Number of restarts of the requests to an arbiter.
        pub(super) resets: u64,
        /// Acknowledgements relayed, and those dropped for lack of memory.
        pub(super) acks_relayed: u64,
        pub(super) acks_dropped: u64,
    }
}
