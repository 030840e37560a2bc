//! Fastpass's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message of a data packet is
//! identified by its [`PayloadRef`](rampmeter_types::PayloadRef). Requests and allocations hold
//! lists. In memory these have room for the longest, so that headers stay `Copy`. On the wire they
//! have only their elements.

pub use rampmeter_types::wire::List;
use rampmeter_types::{headers, items};

use crate::toolkit::{DataHeader, FlowKey};

/// Destinations in one request (Fastpass §6 has 10).
pub const DEMANDS_MAX: usize = 10;
/// Slots in one allocation: those of a batch.
pub const SLOTS_MAX: usize = 16;

items! {
    /// Slots that a host has requested to one destination.
    pub struct Demand {
        /// The destination.
        dst: u16 as "Destination",
        /// Slots requested since the start of the incarnation.
        total: u32 as "Slots in all",
    }
}

items! {
    /// A slot in which a host may send.
    pub struct Slot {
        /// The destination.
        dst: u16 as "Destination",
        /// Slots after the first of the batch.
        offset: u8 as "Slots after the first",
        /// The path, if the arbiter chooses it.
        path: u8 as "Path",
    }
}

headers! {
    /// A Fastpass header.
    pub enum FastpassHeader {
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
        },
        /// Destination to source: acknowledges packets.
        2 Ack (ack "ack", D to S)
        "flow slot {tx_slot}, packet {seq}, all below {cumulative} have arrived" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// Every packet below has arrived.
            cumulative: u32 as "All packets below have arrived",
            /// The packet that is acknowledged.
            seq: u32,
        },
        /// Host to arbiter: requests slots.
        3 Request (request "request", H to A) "slots in all: {demand:{total} to {dst}}" {
            /// Increases whenever the host restarts its totals.
            incarnation: u32 as "Incarnation of the demands",
            /// Grows with every request of an incarnation.
            number: u32 as "Number",
            /// Totals by destination.
            demands as demand: List<Demand, DEMANDS_MAX> as "Demand",
        },
        /// Arbiter to host: slots given.
        4 Allocation (permission "allocation", A to H)
        "from slot {first}: {slot:+{offset} to {dst}}" {
            /// The host's incarnation that the slots count for.
            incarnation: u32,
            /// The latest request of it that has been received.
            last_request: u32 as "Latest request received",
            /// Slots given to it so far, these included.
            granted: u32 as "Slots granted in all",
            /// The number of the batch's first slot.
            first: u64 as "First slot of the batch",
            /// The slots.
            slots as slot: List<Slot, SLOTS_MAX> as "Slot",
        },
        /// Arbiter to host: the requests of this incarnation are unknown, repeat them.
        5 Reset (control "arbiter reset", A to H)
        "repeat the demands of incarnation {incarnation}" {
            /// The host's incarnation.
            incarnation: u32,
        },
        /// Arbiter to host: this is the standby, send requests to the other.
        6 NotActive (control "not active", A to H) "use the other arbiter",
        /// Arbiter to its standby: the arbiter is active.
        7 Watchdog (control "watchdog", A to A) "the arbiter is alive",
        /// Host to arbiter, epochs: a flow has packets to send.
        8 Announce (request "announce", H to A)
        "flow slot {tx_slot} to {dst}, {remaining} remaining" {
            /// The flow's slot at the source.
            tx_slot: u32,
            /// The destination.
            dst: u16 as "Destination",
            /// Packets that the destination has not acknowledged.
            remaining: u32 as "Packets remaining",
            /// Grows with every announcement of the host.
            number: u32,
        },
        /// Arbiter to host, epochs: the flows that may send in the slots of an epoch, by their
        /// slots at the source; `u32::MAX` for none.
        9 Schedule (permission "schedule", A to H) "flow slots {schedule:{flow||none}}" {
            /// The flows.
            flows as schedule: List<u32, SLOTS_MAX>
                as "Slot of the epoch" of flow "Slot at the source",
        },
        /// Destination to source: flow control pauses or resumes the message. Not in the paper,
        /// whose destinations always have credit.
        10 Pause (control "pause", D to S)
        "paused {is_paused}" {
            /// True if flow control pauses the message.
            is_paused: bool as "Paused by the receiver",
        },
    }
}

impl DataHeader for FastpassHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Data { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}
