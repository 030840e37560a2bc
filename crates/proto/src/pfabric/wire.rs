//! pFabric's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::headers;

use crate::toolkit::{DataHeader, FlowKey};

headers! {
    /// A pFabric header.
    pub enum PfabricHeader {
        /// Source to destination: one packet. It carries the full description of its flow.
        1 Data (data "data", S to D)
        "flow {flow} of {size} bytes, packet {seq}, {remaining} remaining" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the source.
            tx_slot: u32 as "Slot at the sender",
            /// The packet's number in the flow.
            seq: u32 as "Packet",
            /// Packets of the flow that were not acknowledged when this one was sent: its rank.
            remaining: u32 as "Packets remaining",
            /// The flow's size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
        },
        /// Source to destination: requests an acknowledgement. Sent instead of data by flows that
        /// starve (§4.3).
        2 Probe (request "probe", S to D)
        "flow {flow} of {size} bytes, {remaining} remaining" {
            /// The flow.
            flow: u32,
            /// Slot at the source.
            tx_slot: u32,
            /// Rank: packets of the flow that were not acknowledged, or zero.
            remaining: u32,
            /// The flow's size in bytes.
            size: u64 [size at least 1],
        },
        /// Destination to source: acknowledges packets.
        3 Ack (ack "ack", D to S)
        "flow slot {tx_slot}, all below packet {cumulative} have arrived" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// Every packet below has arrived.
            cumulative: u32 as "All packets below have arrived",
            /// Bit i is set if packet `cumulative + i` has arrived; bit 0 never is.
            sack: u64 as with_hex "Arrived from the cumulative packet on",
        },
        /// Destination to source: flow control pauses or resumes the message. Not in the paper,
        /// whose receivers always have credit.
        4 Pause (control "pause", D to S)
        "paused {is_paused}" {
            /// True if flow control pauses the message.
            is_paused: bool as "Paused by the receiver",
        },
    }

    impl Header {
        /// The fewer packets remain the better; acknowledgements before all data (§4.3).
        #[inline]
        fn rank(&self) -> u32 {
            match self {
                Self::Data { remaining, .. } | Self::Probe { remaining, .. } => *remaining,
                Self::Ack { .. } | Self::Pause { .. } => 0,
            }
        }
    }
}

impl DataHeader for PfabricHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
