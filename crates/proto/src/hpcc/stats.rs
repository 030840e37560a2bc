//! Counters of hosts of HPCC.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct HpccStats {
        /// Timeouts as a sender.
        pub timeouts: u64,
        /// NACKs sent as a receiver.
        pub nacks_sent: u64,
        /// Packets dropped as a receiver because an earlier one was missing (go-back-N).
        pub out_of_order_drops: u64,
        /// Acknowledgements of another path than that before, from which no rate follows.
        pub path_changes: u64,
    }
}
