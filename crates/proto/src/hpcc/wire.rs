//! HPCC's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message of a packet is identified
//! by its [`PayloadRef`](rampmeter_types::PayloadRef). On the wire a list is a byte that counts its
//! items, and the items. Senders send that of a data packet empty, and switches fill it.

use rampmeter_types::headers;

pub use super::int::Records;

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// An HPCC header.
    pub enum HpccHeader {
        /// Source to destination: one packet. It carries the full description of its flow.
        1 Data (data "data", S to D) "flow {flow} of {size} bytes, packet {seq}" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the source.
            tx_slot: u32 as "Slot at the sender",
            /// The packet's number in the flow.
            seq: u32 as "Packet",
            /// The flow's size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
            /// The ports that it has passed, as one number.
            path: u16 as "Path",
            /// Telemetry record of each of them.
            records as record: Records as "Record",
        },
        /// Destination to source: acknowledges packets, and returns the telemetry of one.
        2 Ack (ack "ack", D to S)
        "flow slot {tx_slot}, all below packet {cumulative} have arrived" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// Every packet below has arrived.
            cumulative: u32 as "All packets below have arrived",
            /// Bit i is set if packet `cumulative + i` has arrived; bit 0 never is.
            sack: u64 as with_hex "Arrived from the cumulative packet on",
            /// True if the packets from `cumulative` on must be retransmitted (a NACK).
            is_go_back_n: bool as "Retransmit from there on",
            /// The ports that the packet has passed.
            path: u16,
            /// Telemetry record of each of them.
            records as record: Records as "Record",
        },
    }
}

impl DataHeader for HpccHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
