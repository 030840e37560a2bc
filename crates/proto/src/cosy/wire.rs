//! cosy's packets and their encoding.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_core::PayloadRef). `docs/protocols/cosy.md` has the table
//! of formats. To add a type: the enum, `code`, `wire_len`, `encode`, `decode`, that table, and the
//! strategy in `tests.rs`.

use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{Header, WireError};

use super::config::SWITCHES_MAX;

/// A cosy header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CosyHeader {
    /// Sender to receiver: may this message be sent?
    Request {
        /// The message's number among those of this pair.
        flow: u32,
        /// Its slot at the sender's endpoint.
        tx_slot: u32,
        /// Its size in bytes.
        size: u64,
    },
    /// Receiver to sender: it may. Reserves a virtual link on every link that it takes.
    Rsvp {
        /// The message's slot at the sender's endpoint.
        tx_slot: u32,
        /// What the reservation is known by: a random number (§4).
        seq: u32,
        /// For how long it holds at most, in microseconds.
        lease_us: u32,
        /// The receiver's slot, of the K that it has.
        rx_slot: u16,
        /// The virtual link that the packet is on.
        link: u16,
        /// True if the message is not asked for again: a reject then goes to the sender too.
        last: bool,
        /// The way back.
        route: Route,
    },
    /// Towards the receiver on the reserved path: the reservation is over.
    Release {
        /// The reservation.
        seq: u32,
        /// The receiver's slot.
        rx_slot: u16,
        /// The virtual link that the packet is on.
        link: u16,
        /// Why.
        why: Why,
        /// The way to the receiver.
        route: Route,
    },
    /// To the sender: the message is not admitted.
    Reject {
        /// The message's slot at the sender's endpoint.
        tx_slot: u32,
    },
    /// Sender to receiver: a part of the message.
    Data {
        /// The reservation.
        seq: u32,
        /// The packet's place among those of the reservation, from zero.
        number: u32,
        /// The receiver's slot.
        rx_slot: u16,
        /// The virtual link that the packet is on.
        link: u16,
        /// True if it is the last of the reservation, which is over with it.
        last: bool,
        /// The way to the receiver.
        route: Route,
    },
    /// Receiver to sender: the whole message is here.
    Complete {
        /// The message's slot at the sender's endpoint.
        tx_slot: u32,
    },
    /// Receiver to sender: a packet did not come when it had to (§4).
    Failure {
        /// The message's slot at the sender's endpoint.
        tx_slot: u32,
    },
}

/// Why a reservation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A switch had no virtual link left: the paper's reject from a switch.
    Blocked,
    /// The sender has no slot, or no use for it: the paper's reject from a sender.
    Busy,
    /// The sender has sent what it had to: the paper's complete from a sender.
    Done,
    /// The sender has given the message up.
    Failed,
}

impl Why {
    const ALL: [Self; 4] = [Self::Blocked, Self::Busy, Self::Done, Self::Failed];
}

/// The virtual link of a packet that has lost its reservation.
pub const NO_LINK: u16 = u16::MAX;

/// The way from a sender to a receiver: the ports of the switches by which the rsvp came, the
/// switch nearest the receiver first. Each switch takes its port off the end.
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

    /// The ports, that of the switch nearest the receiver first.
    pub fn ports(&self) -> &[u16] {
        &self.ports[..usize::from(self.len)]
    }

    /// Takes off the port of the switch nearest the sender.
    pub fn pop(&mut self) -> Option<u16> {
        self.len = self.len.checked_sub(1)?;
        Some(std::mem::take(&mut self.ports[usize::from(self.len)]))
    }

    fn wire_len(&self) -> usize {
        1 + 2 * usize::from(self.len)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        w.u8(self.len)?;
        for &port in self.ports() {
            w.u16(port)?;
        }
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (mut route, len) = (Self::default(), r.u8()?);
        for _ in 0..len {
            if !route.push(r.u16()?) {
                return Err(bad("route length", "at most 5", len.into()));
            }
        }
        Ok(route)
    }
}

impl CosyHeader {
    const fn code(&self) -> u8 {
        match self {
            Self::Request { .. } => 1,
            Self::Rsvp { .. } => 2,
            Self::Release { .. } => 3,
            Self::Reject { .. } => 4,
            Self::Data { .. } => 5,
            Self::Complete { .. } => 6,
            Self::Failure { .. } => 7,
        }
    }
}

impl Header for CosyHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Request { .. } => 17,
            Self::Rsvp { route, .. } => 18 + route.wire_len(),
            Self::Release { route, .. } => 10 + route.wire_len(),
            Self::Data { route, .. } => 14 + route.wire_len(),
            Self::Reject { .. } | Self::Complete { .. } | Self::Failure { .. } => 5,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        w.u8(self.code())?;
        match *self {
            Self::Request { flow, tx_slot, size } => {
                w.u32(flow)?.u32(tx_slot)?.u64(size)?;
            }
            Self::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route } => {
                w.u32(tx_slot)?.u32(seq)?.u32(lease_us)?;
                w.u16(rx_slot)?.u16(link)?.u8(u8::from(last))?;
                route.encode(&mut w)?;
            }
            Self::Release { seq, rx_slot, link, why, route } => {
                w.u32(seq)?.u16(rx_slot)?.u16(link)?.u8(why as u8)?;
                route.encode(&mut w)?;
            }
            Self::Data { seq, number, rx_slot, link, last, route } => {
                w.u32(seq)?.u32(number)?.u16(rx_slot)?.u16(link)?.u8(u8::from(last))?;
                route.encode(&mut w)?;
            }
            Self::Reject { tx_slot } | Self::Complete { tx_slot } | Self::Failure { tx_slot } => {
                w.u32(tx_slot)?;
            }
        }
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => {
                let (flow, tx_slot, size) = (r.u32()?, r.u32()?, r.u64()?);
                if size == 0 {
                    return Err(bad("size", "at least 1", 0));
                }
                Self::Request { flow, tx_slot, size }
            }
            2 => Self::Rsvp {
                tx_slot: r.u32()?,
                seq: r.u32()?,
                lease_us: r.u32()?,
                rx_slot: r.u16()?,
                link: r.u16()?,
                last: flag("last", r.u8()?)?,
                route: Route::decode(&mut r)?,
            },
            3 => Self::Release {
                seq: r.u32()?,
                rx_slot: r.u16()?,
                link: r.u16()?,
                why: why(r.u8()?)?,
                route: Route::decode(&mut r)?,
            },
            4 => Self::Reject { tx_slot: r.u32()? },
            5 => Self::Data {
                seq: r.u32()?,
                number: r.u32()?,
                rx_slot: r.u16()?,
                link: r.u16()?,
                last: flag("last", r.u8()?)?,
                route: Route::decode(&mut r)?,
            },
            6 => Self::Complete { tx_slot: r.u32()? },
            7 => Self::Failure { tx_slot: r.u32()? },
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }
}

fn why(code: u8) -> Result<Why, WireError> {
    let known = Why::ALL.get(usize::from(code)).copied();
    known.ok_or_else(|| bad("why", "0 to 3", code.into()))
}

fn flag(field: &'static str, value: u8) -> Result<bool, WireError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad(field, "0 or 1", value.into())),
    }
}

fn bad(field: &'static str, expected: &'static str, got: u64) -> WireError {
    WireError::BadField { field, expected, got }
}
