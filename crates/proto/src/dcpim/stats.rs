//! Counters of hosts of dcPIM.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct DcpimStats {
        /// Tokens sent as a receiver.
        pub tokens_sent: u64,
        /// Tokens sent for packets that had an earlier one. It expired at the sender, or its
        /// data was assumed lost.
        pub tokens_reissued: u64,
        /// Tokens not sent in favour of announced short flows.
        pub tokens_withheld: u64,
        /// Tokens that a sender dropped because they had expired.
        pub tokens_expired: u64,
        /// Requests and grants that arrived after their stage.
        pub late_matching_messages: u64,
        /// Notifications and finishes that were repeated for lack of a response.
        pub control_retransmissions: u64,
    }
}
