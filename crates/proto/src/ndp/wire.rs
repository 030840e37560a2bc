//! NDP's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::headers;

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// An NDP header.
    pub enum NdpHeader {
        /// Sender to receiver: one packet. Each carries all that a receiver needs, so any may
        /// arrive first. A switch may trim or return it.
        1 Data (data "data", S to D) "flow {flow} of {size} bytes, packet {seq}" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the sender.
            tx_slot: u32 as "Slot at the sender",
            /// The packet's number in the flow.
            seq: u32 as "Packet",
            /// The flow's size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
        },
        /// Receiver to sender: a packet has arrived.
        2 Ack (ack "ack", D to S)
        "flow slot {tx_slot}, packet {seq}, all below {cumulative}, pull {pull}" {
            /// The flow's slot at the sender.
            tx_slot: u32,
            /// The packet.
            seq: u32,
            /// Every packet below has arrived.
            cumulative: u32 as "All below have arrived",
            /// Packets that the receiver has pulled so far.
            pull: u32 as "Packets pulled",
            /// The path that the packet took.
            path: u16 as "Path",
        },
        /// Receiver to sender: a packet has arrived without its payload.
        3 Nack (ack "nack", D to S) "flow slot {tx_slot}, packet {seq}, pull {pull}" {
            /// The flow's slot at the sender.
            tx_slot: u32,
            /// The packet.
            seq: u32,
            /// Packets that the receiver has pulled so far.
            pull: u32,
            /// The path that the packet took.
            path: u16,
        },
        /// Receiver to sender: send until the sum of pulls reaches this number.
        4 Pull (permission "pull", D to S) "flow slot {tx_slot}, pull {pull}" {
            /// The flow's slot at the sender.
            tx_slot: u32,
            /// Packets that the receiver has pulled so far.
            pull: u32,
        },
    }
}

impl DataHeader for NdpHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
