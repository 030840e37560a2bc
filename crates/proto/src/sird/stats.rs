//! Counters of hosts of SIRD.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct SirdStats {
        /// Packets whose credit a receiver took back, as they had not arrived.
        pub credits_reclaimed: u64,
        /// Data packets sent while the host had more credit than the threshold.
        pub congested: u64,
    }
}
