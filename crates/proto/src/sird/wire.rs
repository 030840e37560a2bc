//! SIRD's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::headers;

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// A SIRD header.
    pub enum SirdHeader {
        /// Sender to receiver: one packet of a message that needs no credit. Each carries all
        /// fields of the message, in case others are lost.
        1 Unscheduled (data "unscheduled data", S to R)
        "message {flow} of {size} bytes, packet {seq}" {
            /// The message's number among those of this pair.
            flow: u32 as "Message, numbered among those of the pair",
            /// Slot at the sender.
            tx_slot: u32 as "Slot at the sender",
            /// The packet's number in the message.
            seq: u32 as "Packet",
            /// The message's size in bytes.
            size: u64 as "Bytes of the message" [size at least 1],
            /// True if the sender holds more credit than its threshold.
            csn: bool as "Congested sender",
        },
        /// Sender to receiver: one packet that has credit.
        2 Data (data "data", S to R) "message slot {rx_slot}, packet {seq}" {
            /// The message's slot at the receiver.
            rx_slot: u32 as "Slot at the receiver",
            /// The packet's number in the message.
            seq: u32,
            /// True if the sender holds more credit than its threshold.
            csn: bool,
        },
        /// Sender to receiver: a message needs credit, or its sender has received nothing about it.
        3 Request (request "REQUEST", S to R) "message {flow} of {size} bytes" {
            /// The message's number among those of this pair.
            flow: u32,
            /// Slot at the sender.
            tx_slot: u32,
            /// The message's size in bytes.
            size: u64 [size at least 1],
        },
        /// Receiver to sender: send this packet.
        4 Credit (permission "CREDIT", R to S) "message slot {tx_slot}, packet {seq}" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
            /// The packet.
            seq: u32,
        },
        /// Sender to receiver: the packet has credit already, and waits behind others.
        5 Busy (control "BUSY", S to R) "message slot {rx_slot}" {
            /// The message's slot at the receiver.
            rx_slot: u32,
        },
        /// Receiver to sender: the whole message has arrived.
        6 Ack (ack "ACK", R to S) "message slot {tx_slot} is complete" {
            /// The message's slot at the sender.
            tx_slot: u32,
        },
        /// Receiver to sender: the message is registered. The answer to a request that is repeated.
        7 Known (ack "KNOWN", R to S) "message slot {tx_slot} is registered" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
        },
    }
}

impl DataHeader for SirdHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { rx_slot, seq, .. } => Some((FlowKey::Slot(rx_slot), seq)),
            Self::Unscheduled { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
