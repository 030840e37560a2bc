//! Counters of hosts of Homa.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct HomaStats {
        /// RESENDs sent as a receiver.
        pub resends: u64,
    }
}
