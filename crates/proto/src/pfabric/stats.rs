//! Counters of hosts of pFabric.

use crate::toolkit::counters;

counters! {
    /// Counters of a host.
    pub struct PfabricStats {
        /// Retransmission timeouts.
        pub timeouts: u64,
        /// Probes sent.
        pub probes: u64,
    }
}
