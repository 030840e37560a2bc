//! Counters of hosts of Fastpod.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct FastpodStats {
        /// RTSs sent.
        pub rts_sent: u64,
        /// Cells sent without a schedule.
        pub cells_unscheduled: u64,
        /// Cells of messages that were sent before as a whole, and not acknowledged in time.
        pub cells_retransmitted: u64,
        /// Slots given to the host in which it sent no cell at its instant.
        pub slots_unused: u64,
        /// Slots that were over before the host used them.
        pub grants_expired: u64,
        /// Packets that the link could not take at their instant, and that were not sent.
        pub transmissions_missed: u64,
        /// Messages retransmitted for lack of an acknowledgement.
        pub timeouts: u64,
        /// Number of restarts of the requests to the arbiter.
        pub resets: u64,
        /// Times that another arbiter took over.
        pub takeovers: u64,
    }
}
