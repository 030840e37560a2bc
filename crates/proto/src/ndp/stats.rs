//! Counters of hosts of NDP.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct NdpStats {
        /// Pulls sent as a receiver in packets of their own.
        pub pulls: u64,
        /// Pulls sent as a receiver with an acknowledgement or a refusal.
        pub pulls_piggybacked: u64,
        /// Packets that arrived without their payload.
        pub trimmed: u64,
        /// Trimmed packets that returned to this sender.
        pub returned: u64,
        /// Packets that were neither acknowledged nor refused in time.
        pub timeouts: u64,
        /// Timers that expired without a lost packet: a pull did not arrive in time.
        pub pull_timeouts: u64,
    }
}
