//! Homa's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::headers;

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// A Homa header.
    pub enum HomaHeader {
        /// Sender to receiver: one packet of the first round trip, which needs no grant. Each
        /// carries all fields of the message, in case others are lost.
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
            /// Number of packets sent without a grant.
            unscheduled: u32 as "Packets without a grant",
            /// The request that the message answers, by its number plus one; zero if it answers
            /// none.
            answers: u32 as "Request that it answers, plus one",
            /// True if the sender awaits too many messages, so that answers must be short at first.
            incast: bool as "Incast control",
        },
        /// Sender to receiver: one packet that was granted, or that is retransmitted.
        2 Data (data "data", S to R) "message slot {rx_slot}, packet {seq}" {
            /// The message's slot at the receiver.
            rx_slot: u32 as "Slot at the receiver",
            /// The packet's number in the message.
            seq: u32,
        },
        /// Receiver to sender: a grant of packets.
        3 Grant (permission "GRANT", R to S)
        "message slot {tx_slot}, {credit} packets, priority {priority}" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
            /// Packets granted since the message began; unscheduled ones do not count.
            credit: u32 as "Packets granted",
            /// The priority of their packets.
            priority: u8 as "Priority",
            /// True if the receiver awaits too many messages, so that new ones must be short at
            /// first.
            incast: bool,
        },
        /// Receiver to sender: packets that were expected have not arrived.
        4 Resend (control "RESEND", R to S) "message slot {tx_slot}, {count} packets from {seq}" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
            /// The first packet that is missing.
            seq: u32,
            /// Number of consecutive missing packets.
            count: u32 as "Packets missing",
        },
        /// Sender to receiver: the packets requested are behind those of shorter messages.
        5 Busy (control "BUSY", S to R) "message slot {rx_slot}" {
            /// The message's slot at the receiver.
            rx_slot: u32,
        },
        /// Receiver to sender: the whole message has arrived.
        6 Ack (ack "ACK", R to S) "message slot {tx_slot} is complete" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// True if the receiver awaits too many messages, so that new ones must be short at
            /// first.
            incast: bool,
        },
        /// Sender to receiver: a message exists, and its sender has received nothing about it; or,
        /// with droppable unscheduled packets, all of them have been sent.
        7 Probe (request "PROBE", S to R) "message {flow} of {size} bytes" {
            /// The message's number among those of this pair.
            flow: u32,
            /// Slot at the sender.
            tx_slot: u32,
            /// The message's size in bytes.
            size: u64 [size at least 1],
            /// Number of packets sent without a grant.
            unscheduled: u32,
            /// The request that the message answers, by its number plus one; zero if it answers
            /// none.
            answers: u32,
            /// True if those packets have been sent.
            is_burst_over: bool as "All unscheduled packets are sent",
        },
        /// Receiver to sender: the message is registered. The answer to a probe.
        8 Known (ack "KNOWN", R to S) "message slot {tx_slot} is registered" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Slot at the receiver.
            rx_slot: u32,
            /// True if unscheduled packets that have not arrived count as lost.
            is_burst_over: bool,
        },
        /// Receiver to sender: an unscheduled packet that switches may drop has arrived.
        9 Sack (ack "SACK", R to S) "message slot {tx_slot}, packet {seq} has arrived" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// The packet.
            seq: u32,
        },
    }
}

impl DataHeader for HomaHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { rx_slot, seq, .. } => Some((FlowKey::Slot(rx_slot), seq)),
            Self::Unscheduled { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
