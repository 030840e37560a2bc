//! Counters of hosts of TCP.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct TcpStats {
        /// Retransmission timeouts.
        pub timeouts: u64,
        /// Losses that were found without a timeout: once for all of a window.
        pub recoveries: u64,
        /// Probes of the end of a flight (RFC 8985 §7).
        pub probes: u64,
        /// Congestion echoes that counted: once a window (RFC 3168).
        pub echoes: u64,
    }
}
