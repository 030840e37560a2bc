//! dcPIM's packets (§3.1, §3.2).
//!
//! A header starts with a type byte; integers are big-endian. The message of a packet is identified
//! by its [`PayloadRef`](rampmeter_types::PayloadRef), which every driver carries alongside the
//! header. So headers hold only the fields that dcPIM adds.

use rampmeter_types::{headers, layout};

use crate::toolkit::{DataHeader, FlowKey};

layout! {
    /// The step of a matching round that a message belongs to.
    pub enum Step {
        /// Receiver to sender: requests channels.
        7 Request (request "request", R to S),
        /// Sender to receiver: grants channels.
        8 Grant (permission "grant", S to R),
        /// Receiver to sender: accepts channels.
        9 Accept (permission "accept", R to S),
        /// Sender to receiver: releases channels that it cannot serve.
        10 Release (control "release", S to R),
    }

    /// A message of the matching phase.
    pub struct Match
    "{channels} channels in round {round} of phase {phase}, {remaining} remaining" {
        /// The step.
        step: Step,
        /// Channels requested, granted, accepted or released; never zero.
        channels: u8 as "Channels",
        /// Number of those that may start before their data phase.
        prompt: u8 as "Channels that may start early",
        /// The round, from zero.
        round: u8 as "Round",
        /// The matching phase, from zero.
        phase: u32 [channels at least 1, prompt at most channels],
        /// Packets that remain of the pair's smallest flow.
        remaining: u32,
        /// Time at which that flow was announced, in picoseconds since an instant that all hosts
        /// share, modulo 2^64: the tie-break.
        announced: u64 as "Flow announced (ps, receiver's clock)",
    }
}

headers! {
    /// A dcPIM header.
    pub enum DcpimHeader {
        /// Sender to receiver: a flow exists.
        1 Notification (request "notification", S to R)
        "flow {flow} of {size} bytes, flow slot {tx_slot}" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the sender.
            tx_slot: u32 as "Slot at the sender",
            /// Size in bytes.
            size: u64 as "Bytes of the flow",
            /// True if the sender requests an acknowledgement because none has arrived.
            is_retransmission: bool as "Retransmitted, to be answered" [size at least 1],
        },
        /// Receiver to sender: the notification has arrived.
        2 Ack (ack "ack", R to S) "flow slot {tx_slot} is registered" {
            /// The flow's slot at the sender.
            tx_slot: u32,
            /// True if the receiver has no credit for the message.
            is_paused: bool as "Paused by the receiver",
        },
        /// Sender to receiver: one packet that a token requested.
        3 Data (data "data", S to R) "flow slot {rx_slot}, packet {seq}, token {number}" {
            /// The flow's slot at the receiver, from the token.
            rx_slot: u32 as "Slot at the receiver",
            /// The packet's number in the flow.
            seq: u32 as "Packet",
            /// The token's number.
            number: u32 as "Number",
        },
        /// Receiver to sender: requests one packet.
        ///
        /// The fields are here, not in a separate type, so that the tag fits next to them and a
        /// header into 32 bytes.
        4 Token (permission "token", R to S)
        "flow slot {tx_slot}, packet {seq}, {remaining} remaining" {
            /// The flow's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
            /// The packet to send.
            seq: u32,
            /// Number of earlier tokens of the flow.
            number: u32,
            /// Every packet below has arrived.
            cumulative: u32 as "All packets below have arrived",
            /// The phase after which the token is void.
            phase: u32 as "Matching phase",
            /// Packets of the flow that have not arrived.
            remaining: u32 as "Packets remaining",
            /// Rank of the token, lower first: 2 and up for matched sources, 7 for prompt channels.
            rank: u8 as "Rank",
        },
        /// Sender to receiver: every packet of the flow has been sent.
        5 Finish (control "finish", S to R)
        "flow {flow}, flow slot {tx_slot}, all {packets} packets sent" {
            /// The flow.
            flow: u32,
            /// Slot at the sender.
            tx_slot: u32,
            /// Packets of the flow.
            packets: u32 as "Packets of the flow",
        },
        /// Receiver to sender: every packet of the flow has arrived.
        6 FinishAck (ack "finish ack", R to S) "flow slot {tx_slot} is complete" {
            /// The flow's slot at the sender.
            tx_slot: u32,
        },
        /// A step of the matching.
        7..=10 Match as Match,
        /// Sender to receiver: one packet of a short flow, sent without a token. It carries all
        /// fields of the notification, in case that is lost.
        11 Unscheduled (data "unscheduled data", S to R)
        "flow {flow} of {size} bytes, packet {seq}" {
            /// The flow.
            flow: u32,
            /// Slot at the sender.
            tx_slot: u32,
            /// The packet's number in the flow.
            seq: u32,
            /// The flow's size in bytes.
            size: u64 [size at least 1],
        },
    }
}

impl DataHeader for DcpimHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { rx_slot, seq, .. } => Some((FlowKey::Slot(rx_slot), seq)),
            Self::Unscheduled { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
