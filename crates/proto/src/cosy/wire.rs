//! cosy's packets.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_types::PayloadRef).

use rampmeter_types::wire::{Field, FieldEncoding, FieldInfo, List, Reader, Writer};
use rampmeter_types::{WireError, codes, headers};

use super::config::SWITCHES_MAX;

headers! {
    /// A cosy header.
    pub enum CosyHeader {
        /// Sender to receiver: requests a reservation for a message.
        1 Request (request "request", S to R) "flow {flow} of {size} bytes, flow slot {tx_slot}" {
            /// The message's number among those of this pair.
            flow: u32 as "Flow, numbered among those of the pair",
            /// Slot at the sender's endpoint.
            tx_slot: u32 as "Slot at the sender",
            /// Size in bytes.
            size: u64 as "Bytes of the flow" [size at least 1],
        },
        /// Receiver to sender: reserves a virtual link on every link that it takes.
        2 Rsvp (permission "rsvp", R to S, reserving)
        "flow slot {tx_slot} may send to slot {rx_slot}, virtual link {link}" {
            /// The message's slot at the sender's endpoint.
            tx_slot: u32,
            /// Random number that identifies the reservation (§4).
            seq: u32 as "Reservation",
            /// Maximum lifetime of the reservation, in microseconds.
            lease_us: u32 as "Lease (us)",
            /// The receiver's slot, of the K that it has.
            rx_slot: u16 as "Slot at the receiver",
            /// The virtual link that the packet is on.
            link: u16 as "Virtual link that the packet is on",
            /// True if the receiver does not retry: a reject is then sent to the sender too.
            last: bool as "Last of its kind",
            /// The return path.
            route: Route as "Port on the direction to the receiver",
        },
        /// Towards the receiver on the reserved path: the reservation ends.
        3 Release (control "release", to R on the reserved path)
        "slot {rx_slot}, virtual link {link}" {
            /// The reservation.
            seq: u32,
            /// The receiver's slot.
            rx_slot: u16,
            /// The virtual link that the packet is on.
            link: u16,
            /// The reason for its end.
            reason: ReleaseReason as "Reason",
            /// The path to the receiver.
            route: Route,
        },
        /// To the sender: the message is not admitted.
        4 Reject (control "reject", to S) "flow slot {tx_slot} is not admitted" {
            /// The message's slot at the sender's endpoint.
            tx_slot: u32,
        },
        /// Sender to receiver: a part of the message.
        5 Data (data "data", S to R on the reserved path)
        "slot {rx_slot}, packet {number} of the reservation" {
            /// The reservation.
            seq: u32,
            /// The packet's place among those of the reservation, from zero.
            number: u32 as "Number",
            /// The receiver's slot.
            rx_slot: u16,
            /// The virtual link that the packet is on.
            link: u16,
            /// True if it is the last of the reservation, and ends it.
            last: bool,
            /// The direction to the receiver.
            route: Route,
        },
        /// Receiver to sender: the whole message has arrived.
        6 Complete (control "complete", R to S) "flow slot {tx_slot} is complete" {
            /// The message's slot at the sender's endpoint.
            tx_slot: u32,
        },
        /// Receiver to sender: a packet did not arrive in time (§4).
        7 Failure (control "failure", R to S) "flow slot {tx_slot} has failed" {
            /// The message's slot at the sender's endpoint.
            tx_slot: u32,
        },
    }
}

codes! {
    /// The reason for the end of a reservation.
    pub enum ReleaseReason: 0 to 3 {
        /// A switch had no free virtual link: the paper's reject from a switch.
        0 Blocked "blocked",
        /// The sender has no slot, or no use for it: the paper's reject from a sender.
        1 Busy "busy",
        /// The sender has sent all: the paper's complete from a sender.
        2 Done "done",
        /// The sender has aborted the message.
        3 Failed "failed",
    }
}

/// The virtual link of a packet that has lost its reservation.
pub const NO_LINK: u16 = u16::MAX;

/// Route from a sender to a receiver: the ports of the switches by which the rsvp arrived, the
/// switch nearest the receiver first. Each switch removes its port from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Route {
    ports: [u16; SWITCHES_MAX],
    len: u8,
}

impl Route {
    /// Adds the port of the next switch from the receiver on; false if there is no room.
    pub fn push(&mut self, port: u16) -> bool {
        let Some(place) = self.ports.get_mut(usize::from(self.len)) else { return false };
        *place = port;
        self.len += 1;
        true
    }

    /// Returns the ports, that of the switch nearest the receiver first.
    pub fn ports(&self) -> &[u16] {
        &self.ports[..usize::from(self.len)]
    }

    /// Takes off the port of the switch nearest the sender.
    pub fn pop(&mut self) -> Option<u16> {
        self.len = self.len.checked_sub(1)?;
        Some(std::mem::take(&mut self.ports[usize::from(self.len)]))
    }
}

impl Field for Route {
    const FORM: FieldEncoding = FieldEncoding::List {
        max: SWITCHES_MAX as u8,
        items: &[FieldInfo::new("port", u16::FORM).with_label("Port")],
    };

    #[inline]
    fn wire_len(&self) -> usize {
        1 + 2 * usize::from(self.len)
    }

    #[inline]
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        w.u8(self.len)?;
        self.ports().iter().try_for_each(|&port| w.u16(port).map(|_| ()))
    }

    #[inline]
    fn decode(r: &mut Reader<'_>, _name: &'static str) -> Result<Self, WireError> {
        let (mut route, len) = (Self::default(), r.u8()?);
        for _ in 0..len {
            if !route.push(r.u16()?) {
                let (field, expected) = ("route length", "at most 5");
                return Err(WireError::BadField { field, expected, got: len.into() });
            }
        }
        Ok(route)
    }

    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
        let ports = <List<u16, SWITCHES_MAX>>::arbitrary(draw);
        let mut route = Self::default();
        ports.as_slice().iter().for_each(|&port| assert!(route.push(port)));
        route
    }

    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64)) {
        visitor("count", self.len.into());
        self.ports().iter().for_each(|&port| visitor("port", port.into()));
    }
}
