//! The keys of pFabric.

use rampmeter_proto::Padding;
use rampmeter_proto::pfabric::PfabricConfig;
use rampmeter_proto::pfabric::config::Starving;
use serde::{Deserialize, Serialize};

use super::{Preset, transport_spec};

transport_spec! {
    /// Keys of the pFabric transport. Each one that is left out has the preset's value.
    PfabricSpec of PfabricConfig {
        /// First window in packets.
        window: u32,
        /// Largest window in packets.
        window_max: u32,
        /// Retransmission timeout in nanoseconds.
        rto_ns: u64,
        /// Timeouts in a row after which a flow starves.
        starving_after: u32,
        /// What it does then.
        starving: Starving,
        /// Charged length of last packets.
        padding: Padding,
        /// Timeouts in a row after which a flow fails.
        attempts_max: u32,
    } or derived {}
}
