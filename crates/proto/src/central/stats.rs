//! Counters of hosts of transports with a controller.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct HostStats {
        /// Messages that were sent without a request.
        pub unscheduled: u64,
        /// Messages with a request to the controller.
        pub scheduled: u64,
        /// Requests sent, repetitions included.
        pub requests: u64,
        /// Times that the host began to do without a controller.
        pub fallbacks: u64,
    }
}
