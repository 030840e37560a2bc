//! pHost's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::{Span, headers};

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// A pHost header.
    pub enum PhostHeader {
        /// Source to destination: a flow exists (request to send).
        1 Rts (request "RTS", S to D)
        "flow {flow} of {size} bytes, slot {tx_slot}, {time_to_deadline| ps left|no deadline}" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the source.
            tx_slot: u32 as "Slot at the sender",
            /// Size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
            /// Time to its deadline; 2^64 - 1 picoseconds without a deadline.
            time_to_deadline: Span as "Time to the deadline (ps)",
            /// Tenant of the flow.
            tenant: u16 as "Tenant",
            /// True if the source requests an answer because it has received nothing.
            is_retransmission: bool as "Retransmitted, to be answered",
        },
        /// Destination to source: send one packet.
        2 Token (permission "token", D to S)
        "flow slot {tx_slot}, packet {seq}, {remaining} remaining" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// Slot at the destination.
            rx_slot: u32 as "Slot at the receiver",
            /// The packet to send.
            seq: u32 as "Packet",
            /// Number of earlier tokens of the flow, including free ones.
            number: u32 as "Number",
            /// Packets of the flow that have not arrived.
            remaining: u32 as "Packets remaining",
        },
        /// Source to destination: one packet sent with a free token. It carries the content of the
        /// RTS, in case that is lost.
        3 Free (data "free data", S to D) "flow {flow} of {size} bytes, packet {seq}" {
            /// The flow.
            flow: u32,
            /// Slot at the source.
            tx_slot: u32,
            /// The packet's number in the flow.
            seq: u32,
            /// The flow's size in bytes.
            size: u64 [size at least 1],
        },
        /// Source to destination: one packet that a token requested.
        4 Data (data "data", S to D) "flow slot {rx_slot}, packet {seq}, token {number}" {
            /// The flow's slot at the destination, from the token.
            rx_slot: u32,
            /// The packet's number in the flow.
            seq: u32,
            /// The token's number.
            number: u32,
        },
        /// Destination to source: the whole flow has arrived.
        5 Ack (ack "ack", D to S) "flow slot {tx_slot} is complete" {
            /// The flow's slot at the source.
            tx_slot: u32,
        },
        /// Destination to source: the flow is registered, and its missing packets will get tokens.
        /// The answer to a repeated RTS.
        6 RtsAck (ack "RTS ack", D to S) "flow slot {tx_slot} is registered" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// True if the destination has no credit for the message.
            is_paused: bool as "Paused by the receiver",
        },
    }
}

impl DataHeader for PhostHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { rx_slot, seq, .. } => Some((FlowKey::Slot(rx_slot), seq)),
            Self::Free { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
