//! Counters of hosts of Fastpass.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct FastpassStats {
        /// Slots without a packet to send.
        pub slots_unused: u64,
        /// Slots that had begun when the host received them.
        pub late_slots: u64,
        /// Times that packets of a flow were assumed lost for lack of an acknowledgement.
        pub timeouts: u64,
        /// Requests to the arbiter that were repeated.
        pub control_retransmissions: u64,
        /// Number of restarts of the requests to the arbiter.
        pub resets: u64,
        /// Number of changes to the other arbiter because the current one was unresponsive.
        pub failovers: u64,
    }
}
