//! The keys of pHost.

use rampmeter_proto::Padding;
use rampmeter_proto::phost::PhostConfig;
use rampmeter_proto::phost::config::{
    DataPriority, FreeHold, FreeRepair, FreeTokens, Policy, Wake,
};
use serde::{Deserialize, Serialize};

use super::{Preset, transport_spec};

transport_spec! {
    /// Keys of the pHost transport. Each one that is left out has the preset's value.
    PhostSpec of PhostConfig {
        /// Who gets free tokens.
        free_for: FreeTokens,
        /// Life of a token at its source, in thousandths of a full packet's time.
        token_life_milli: u32,
        /// Whom both ends serve first.
        policy: Policy,
        /// Priorities of data packets.
        data_priority: DataPriority,
        /// Repair of packets of free tokens.
        free_repair: FreeRepair,
        /// Courtesy to announced free tokens.
        free_hold: FreeHold,
        /// Attention while there is no flow to serve.
        wake: Wake,
        /// Charged length of last packets.
        padding: Padding,
        /// Unanswered repetitions after which a flow fails.
        attempts_max: u32,
    } or derived {
        /// Free tokens of a flow.
        free_tokens: u32,
        /// Unanswered tokens above which a flow is downgraded.
        downgrade_threshold: u32,
        /// For how long, in full packet times.
        downgrade_packets: u32,
        /// The wait before missing packets are asked for again, in full packet times.
        resend_packets: u32,
    }
}
