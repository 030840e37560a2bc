//! Fastpod's packets.
//!
//! A header starts with a type byte; integers are big-endian. RTS and SCHD fit an Ethernet frame of
//! 64 bytes, of which 46 are payload; that bounds their lists.

pub use rampmeter_types::wire::List;
use rampmeter_types::{headers, items};

use crate::toolkit::{DataHeader, FlowKey};

/// Destinations in one RTS.
pub const DEMANDS_MAX: usize = 3;
/// Messages acknowledged in one RTS or SCHD.
pub const ACKS_MAX: usize = 3;
/// Destinations in one RTS of a core switch.
pub const CORE_DEMANDS_MAX: usize = 2;
/// Messages acknowledged in one RTS or SCHD of a core switch.
pub const RELAYS_MAX: usize = 2;
/// Bit in demands and SCHDs of hosts: the destination is the pod of the number without this bit.
pub const POD_FLAG: u16 = 1 << 15;
/// The destination of an SCHD that grants nothing.
pub const NO_DST: u16 = u16::MAX;
/// Slots that a report covers.
pub const REPORT_SLOTS: u64 = 64;

items! {
    /// Slots that a host has requested to one destination.
    pub struct Demand {
        /// The destination: a host, or a pod with 32768 added.
        dst: u16 as "Destination",
        /// Slots requested since the start of the incarnation.
        total: u32 as "Slots in all",
    }
}

items! {
    /// A message that has arrived.
    pub struct Ack {
        /// Source of the flow in an RTS, its destination in an SCHD.
        host: u16 as "Other end",
        /// Number among the flows of its pair, less whole multiples of 65536.
        flow: u16 as "Flow, numbered among those of the pair",
    }
}

items! {
    /// A message to a host of another pod that has arrived.
    pub struct Relay {
        /// Source of the flow, which must be notified.
        to: u16 as "Source",
        /// Destination of the flow.
        from: u16 as "Receiver",
        /// Number among the flows of its pair, less whole multiples of 65536.
        flow: u16 as "Flow, numbered among those of the pair",
    }
}

headers! {
    /// A Fastpod header.
    pub enum FastpodHeader {
        /// Source to destination: one cell.
        1 Cell (data "cell", S to D) "flow {flow} of {size} bytes, cell {seq}" {
            /// The flow's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the source.
            tx_slot: u32 as "Slot at the sender",
            /// The cell's number in the flow.
            seq: u32 as "Cell",
            /// The flow's size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
        },
        /// Host to arbiter: requests slots, and acknowledges messages.
        2 Rts (request "rts", H to A) "slots in all: {demand:{total} to {dst}}" {
            /// The latest epoch that the host has received.
            epoch: u32 as "Epoch",
            /// Increases whenever the host restarts its totals.
            incarnation: u32 as "Incarnation of the demands",
            /// Number of RTSs with demands in this incarnation, including this one.
            number: u32 as "Number",
            /// Report of the host about the latest slot of which everything has arrived. Bits 0 to
            /// 5 are the lowest of its number. Bit 6 is set if the host sent by schedule, bit 7 if
            /// a scheduled packet arrived.
            seen: u8 as with_hex "Observations of the host in a slot",
            /// Totals by destination.
            demands as demand: List<Demand, DEMANDS_MAX> as "Demand",
            /// Messages to the host that have arrived.
            acks as ack: List<Ack, ACKS_MAX> as "Message that has arrived",
        },
        /// Arbiter to host: a slot given, and messages that have arrived.
        3 Schd (permission "schd", A to H) "slot {slot} to {dst}" {
            /// Grows whenever another arbiter takes over.
            epoch: u32,
            /// Time at which the arbiter sends the packet, in picoseconds by its clock.
            stamp: u64 as "Time of the arbiter in picoseconds",
            /// The number of the slot that is given, less whole multiples of 2^32.
            slot: u32 as "Slot",
            /// Destination of the slot: a host, or a pod with 32768 added; 65535 if none is given.
            dst: u16 as "Destination",
            /// The aggregation switch to send by, to another pod the core switch.
            agg: u8 as "Aggregation or core switch",
            /// The host's incarnation that the arbiter has.
            incarnation: u32,
            /// The latest RTS of it up to which all have been received.
            last_rts: u32 as "Latest RTS received",
            /// Slots given to it so far, this one included.
            granted: u32 as "Slots granted in all",
            /// Nonzero if the slot is for a probe, and not among those that were requested.
            probe: u8 as "The slot is for a probe",
            /// Messages of the host that have arrived.
            acks as ack: List<Ack, ACKS_MAX>,
        },
        /// Arbiter to the other: the sender grants slots.
        4 Watchdog (control "watchdog", A to A) "the arbiter of epoch {epoch} is alive" {
            /// Epoch of the arbiter.
            epoch: u32,
        },
        /// Core switch to arbiter: requests slots, and lists pods that the arbiter's hosts may send
        /// to by it.
        5 CoreRts (request "core-rts", C to A) "slots in all: {demand:{total} to {dst}}" {
            /// The latest epoch of the pod that the switch has received.
            epoch: u32,
            /// Increases whenever the switch restarts its totals.
            incarnation: u32,
            /// Number of RTSs with demands in this incarnation, including this one.
            number: u32,
            /// A bit for each pod, the lowest for the first: true if the switch has memory for
            /// cells to it.
            open: u32 as with_hex "Pods with free memory",
            /// Totals by host of the pod.
            demands as demand: List<Demand, CORE_DEMANDS_MAX>,
            /// Messages of hosts of the pod that have arrived in others.
            relays as relay: List<Relay, RELAYS_MAX> as "Message that has arrived elsewhere",
        },
        /// Arbiter to core switch: a slot given, and messages that have arrived in the pod.
        6 CoreSchd (permission "core-schd", A to C) "slot {slot} to {dst}" {
            /// Grows whenever another arbiter takes over.
            epoch: u32,
            /// Time at which the arbiter sends the packet, in picoseconds by its clock.
            stamp: u64,
            /// The number of the slot that is given, less whole multiples of 2^32.
            slot: u32,
            /// The host that the switch may send to in it; 65535 if none is given.
            dst: u16,
            /// The switch's incarnation that the arbiter has.
            incarnation: u32,
            /// The latest RTS of it up to which all have been received.
            last_rts: u32,
            /// Slots given to it so far, this one included.
            granted: u32,
            /// Messages to hosts of the pod that have arrived, for the pods of their sources.
            relays as relay: List<Relay, RELAYS_MAX>,
        },
        /// Host to arbiter: what it has seen of its slots, and messages that have arrived.
        7 Report (control "report", H to A) "slots up to {slot}: sent {sent}, received {received}" {
            /// The latest epoch that the host has received.
            epoch: u32,
            /// The latest slot of which all has arrived, less whole multiples of 2^32.
            slot: u32,
            /// The slots up to it in which the host sent by schedule, the latest in bit 0.
            sent: u64 as "Slots in which the host sent, latest in bit 0",
            /// The slots up to it in which something scheduled arrived, the latest in bit 0.
            received: u64 as "Slots in which something arrived, latest in bit 0",
            /// Messages to the host that have arrived.
            acks as ack: List<Ack, ACKS_MAX>,
        },
        /// Source to destination: a link that was broken works.
        8 Probe (control "probe", S to D) "the direction by {agg} works" {
            /// The latest epoch that the source has received.
            epoch: u32,
            /// The aggregation switch by which it arrived.
            agg: u8,
        },
        /// Destination to source: flow control pauses or resumes the message. Not in the paper,
        /// whose destinations always have credit.
        9 Pause (control "pause", D to S) "paused {is_paused}" {
            /// True if flow control pauses the message.
            is_paused: bool as "Paused by the receiver",
        },
        /// Source to destination: requests credit for a paused message.
        10 Request (request "request", S to D) "flow {flow} of {size} bytes" {
            /// The flow's number among those of this pair.
            flow: u32,
            /// Slot at the source.
            tx_slot: u32,
            /// The flow's size in bytes.
            size: u64 [size at least 1],
        },
    }
}

impl DataHeader for FastpodHeader {
    #[inline]
    fn flow(&self) -> Option<(FlowKey, u32)> {
        match *self {
            Self::Cell { flow, seq, .. } => Some((FlowKey::Number(flow), seq)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rampmeter_types::wire::{Formats, Header};
    use rampmeter_types::{Purpose, Rng};

    #[test]
    fn control_packets_fit_a_frame_of_64_bytes_and_return_from_the_wire() {
        let mut rng = Rng::new(1, 0, Purpose::Test);
        let mut longest = [0; 11];
        for code in 1..=10 {
            for _ in 0..2_000 {
                let header = FastpodHeader::arbitrary(code, &mut || rng.bits()).unwrap();
                let mut bytes = [0; 64];
                let len = header.encode(&mut bytes).unwrap();
                assert_eq!(FastpodHeader::decode(&bytes[..len]), Ok((header, len)));
                longest[usize::from(code)] = longest[usize::from(code)].max(len);
            }
        }
        assert_eq!(longest, [0, 21, 46, 46, 5, 43, 44, 38, 6, 2, 17]);
        // Bytes of payload of a frame of 64 bytes.
        assert!(longest[2..].iter().all(|&len| len <= 46));
    }
}
