//! The keys of dcPIM.

use rampmeter_core::Bytes;
use rampmeter_proto::Padding;
use rampmeter_proto::dcpim::DcpimConfig;
use rampmeter_proto::dcpim::config::{
    DataPriority, Demand, Handshake, IdleCapacity, Phases, Rounds, ShortFlows, TokenOrder,
    TokenWindow,
};
use serde::{Deserialize, Serialize};

use super::Preset;

/// Keys of the dcPIM transport. Each one that is left out has the preset's value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DcpimSpec {
    /// Where defaults come from.
    pub preset: Preset,
    /// Payload of a full packet.
    pub payload_bytes: Option<u64>,
    /// Bytes of headers charged to each packet.
    pub header_bytes: Option<u64>,
    /// The round trip of a small packet that the protocol is told, instead of the network's.
    pub control_rtt_us: Option<f64>,
    /// The same of a full packet.
    pub data_rtt_us: Option<f64>,
    /// Matching rounds, r.
    pub rounds: Option<u8>,
    /// Channels, k.
    pub channels: Option<u8>,
    /// Slack of a stage, beta.
    pub beta: Option<f64>,
    /// Whether the first round prefers the smallest flows.
    pub fct_round: Option<bool>,
    /// Largest flow that is sent without matching; one BDP if left out.
    pub short_flow_packets: Option<u32>,
    /// Stages of a phase.
    pub phases: Option<Phases>,
    /// Treatment of matching messages out of their round.
    pub round_view: Option<Rounds>,
    /// Use of capacity that the running phase leaves idle.
    pub idle_capacity: Option<IdleCapacity>,
    /// What requests ask for.
    pub demand: Option<Demand>,
    /// Announcement and end of flows.
    pub handshake: Option<Handshake>,
    /// Charged length of last packets.
    pub padding: Option<Padding>,
    /// Priorities of data packets.
    pub data_priority: Option<DataPriority>,
    /// Counting of tokens in flight.
    pub token_window: Option<TokenWindow>,
    /// Service at the sender.
    pub token_order: Option<TokenOrder>,
    /// Courtesy to announced short flows.
    pub short_flows: Option<ShortFlows>,
    /// Extra life of tokens, in packet times per channel.
    pub grace_packets: Option<u32>,
    /// Unanswered repetitions after which a flow fails.
    pub attempts_max: Option<u32>,
}

impl DcpimSpec {
    /// The configuration: the preset with these changes.
    pub fn config(&self) -> DcpimConfig {
        let base = match self.preset {
            Preset::Paper => DcpimConfig::paper(),
            Preset::Reference => DcpimConfig::reference(),
        };
        let beta_milli = self.beta.map(|b| (b * 1e3).round().clamp(0.0, 1e9) as u32);
        DcpimConfig {
            payload: self.payload_bytes.map_or(base.payload, Bytes::new),
            header: self.header_bytes.map_or(base.header, Bytes::new),
            rounds: self.rounds.unwrap_or(base.rounds),
            channels: self.channels.unwrap_or(base.channels),
            beta_milli: beta_milli.unwrap_or(base.beta_milli),
            fct_round: self.fct_round.unwrap_or(base.fct_round),
            short_flow_max: self.short_flow_packets.or(base.short_flow_max),
            phases: self.phases.unwrap_or(base.phases),
            round_view: self.round_view.unwrap_or(base.round_view),
            idle_capacity: self.idle_capacity.unwrap_or(base.idle_capacity),
            demand: self.demand.unwrap_or(base.demand),
            handshake: self.handshake.unwrap_or(base.handshake),
            padding: self.padding.unwrap_or(base.padding),
            data_priority: self.data_priority.unwrap_or(base.data_priority),
            token_window: self.token_window.unwrap_or(base.token_window),
            token_order: self.token_order.unwrap_or(base.token_order),
            short_flows: self.short_flows.unwrap_or(base.short_flows),
            grace_packets: self.grace_packets.unwrap_or(base.grace_packets),
            attempts_max: self.attempts_max.unwrap_or(base.attempts_max),
        }
    }
}
