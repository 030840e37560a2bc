//! Counters of hosts of pHost.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct PhostStats {
        /// Tokens sent as a destination.
        pub tokens_sent: u64,
        /// Tokens sent for packets that had an earlier one. It expired at the source, or its
        /// data was assumed lost.
        pub tokens_reissued: u64,
        /// Tokens dropped as a source because they had expired, free ones included.
        pub tokens_expired: u64,
        /// Tokens not sent in favour of announced free tokens.
        pub tokens_withheld: u64,
        /// RTSs that were repeated for lack of a response.
        pub control_retransmissions: u64,
    }
}
