//! Counters of hosts of cosy.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct CosyStats {
        /// Rsvps sent as a receiver.
        pub requested: u64,
        /// Rsvps that returned because the network had no path.
        pub blocked: u64,
        /// Rsvps that returned because the sender had no slot or nothing to send.
        pub busy: u64,
        /// Requests rejected as a receiver, because no slot was free in time.
        pub requests_rejected: u64,
        /// Failures inferred as a receiver, from packets that did not arrive in time.
        pub failures: u64,
    }
}
