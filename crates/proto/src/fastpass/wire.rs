//! Fastpass's packets and their encoding.
//!
//! A header starts with a type byte; integers are big-endian. The message that a data packet is
//! about is named by its [`PayloadRef`](rampmeter_core::PayloadRef). `docs/protocols/fastpass.md`
//! has the table of formats. Requests and allocations hold lists; in memory these have room for the
//! longest, so that headers stay `Copy`, on the wire they are as long as they are.

use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{Header, WireError};

/// Destinations in one request (Fastpass §6 has 10).
pub const DEMANDS_MAX: usize = 10;
/// Slots in one allocation: those of a batch.
pub const SLOTS_MAX: usize = 16;

/// Slots that a host has asked for to one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The destination.
    pub dst: u16,
    /// Slots asked for since the start of the incarnation.
    pub total: u32,
}

/// A slot in which a host may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The destination.
    pub dst: u16,
    /// Slots after the first of the batch.
    pub offset: u8,
    /// The path, in networks where the arbiter chooses it.
    pub path: u8,
}

/// A short list in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<T, const N: usize> {
    items: [T; N],
    len: u8,
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self { items: [T::default(); N], len: 0 }
    }
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    /// Adds an item; false if there is no room.
    pub fn push(&mut self, item: T) -> bool {
        let Some(place) = self.items.get_mut(usize::from(self.len)) else { return false };
        *place = item;
        self.len += 1;
        true
    }

    /// The items.
    pub fn as_slice(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }
}

/// A Fastpass header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastpassHeader {
    /// Source to destination: one packet. It says all that there is to say of its flow.
    Data {
        /// The flow's number among those of this pair.
        flow: u32,
        /// Its slot at the source.
        tx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// The flow's size in bytes.
        size: u64,
    },
    /// Destination to source: what has arrived.
    Ack {
        /// The flow's slot at the source.
        tx_slot: u32,
        /// Every packet below has arrived.
        cumulative: u32,
        /// The packet that is acknowledged.
        seq: u32,
    },
    /// Host to arbiter: slots wanted.
    Request {
        /// Grows whenever the host starts its totals anew.
        incarnation: u32,
        /// Grows with every request of an incarnation.
        number: u32,
        /// Totals by destination.
        demands: List<Demand, DEMANDS_MAX>,
    },
    /// Arbiter to host: slots given.
    Allocation {
        /// The host's incarnation that the slots count for.
        incarnation: u32,
        /// The latest request of it that has been heard.
        heard: u32,
        /// Slots given to it so far, these included.
        given: u32,
        /// The number of the batch's first slot.
        first: u64,
        /// The slots.
        slots: List<Slot, SLOTS_MAX>,
    },
    /// Arbiter to host: I do not know what you have asked for in this incarnation, ask anew.
    Forgotten {
        /// The host's incarnation.
        incarnation: u32,
    },
    /// Arbiter to host: I am the standby, ask the other.
    Passive,
    /// Arbiter to its standby: I live.
    Watchdog,
    /// Host to arbiter, epochs: a flow has packets to send.
    Announce {
        /// The flow's slot at the source.
        tx_slot: u32,
        /// The destination.
        dst: u16,
        /// Packets that the destination has not acknowledged.
        remaining: u32,
        /// Grows with every announcement of the host.
        number: u32,
    },
    /// Arbiter to host, epochs: the flows that may send in the slots of an epoch, by their slots at
    /// the source; `u32::MAX` for none.
    Schedule {
        /// The flows.
        flows: List<u32, SLOTS_MAX>,
    },
}

impl FastpassHeader {
    const fn code(&self) -> u8 {
        match self {
            Self::Data { .. } => 1,
            Self::Ack { .. } => 2,
            Self::Request { .. } => 3,
            Self::Allocation { .. } => 4,
            Self::Forgotten { .. } => 5,
            Self::Passive => 6,
            Self::Watchdog => 7,
            Self::Announce { .. } => 8,
            Self::Schedule { .. } => 9,
        }
    }
}

impl Header for FastpassHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Data { .. } => 21,
            Self::Ack { .. } => 13,
            Self::Request { demands, .. } => 10 + 6 * demands.as_slice().len(),
            Self::Allocation { slots, .. } => 22 + 4 * slots.as_slice().len(),
            Self::Passive | Self::Watchdog => 1,
            Self::Forgotten { .. } => 5,
            Self::Announce { .. } => 15,
            Self::Schedule { flows } => 2 + 4 * flows.as_slice().len(),
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        w.u8(self.code())?;
        match self {
            Self::Data { flow, tx_slot, seq, size } => {
                w.u32(*flow)?.u32(*tx_slot)?.u32(*seq)?.u64(*size)?;
            }
            Self::Ack { tx_slot, cumulative, seq } => {
                w.u32(*tx_slot)?.u32(*cumulative)?.u32(*seq)?;
            }
            Self::Request { incarnation, number, demands } => {
                w.u32(*incarnation)?.u32(*number)?.u8(demands.len)?;
                for Demand { dst, total } in demands.as_slice() {
                    w.u16(*dst)?.u32(*total)?;
                }
            }
            Self::Allocation { incarnation, heard, given, first, slots } => {
                w.u32(*incarnation)?.u32(*heard)?.u32(*given)?.u64(*first)?.u8(slots.len)?;
                for Slot { dst, offset, path } in slots.as_slice() {
                    w.u16(*dst)?.u8(*offset)?.u8(*path)?;
                }
            }
            Self::Passive | Self::Watchdog => {}
            Self::Forgotten { incarnation } => {
                w.u32(*incarnation)?;
            }
            Self::Announce { tx_slot, dst, remaining, number } => {
                w.u32(*tx_slot)?.u16(*dst)?.u32(*remaining)?.u32(*number)?;
            }
            Self::Schedule { flows } => {
                w.u8(flows.len)?;
                for flow in flows.as_slice() {
                    w.u32(*flow)?;
                }
            }
        }
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => {
                let (flow, tx_slot, seq) = (r.u32()?, r.u32()?, r.u32()?);
                Self::Data { flow, tx_slot, seq, size: some_bytes(r.u64()?)? }
            }
            2 => Self::Ack { tx_slot: r.u32()?, cumulative: r.u32()?, seq: r.u32()? },
            3 => Self::Request {
                incarnation: r.u32()?,
                number: r.u32()?,
                demands: list(&mut r, |r| Ok(Demand { dst: r.u16()?, total: r.u32()? }))?,
            },
            4 => Self::Allocation {
                incarnation: r.u32()?,
                heard: r.u32()?,
                given: r.u32()?,
                first: r.u64()?,
                slots: list(&mut r, |r| {
                    Ok(Slot { dst: r.u16()?, offset: r.u8()?, path: r.u8()? })
                })?,
            },
            5 => Self::Forgotten { incarnation: r.u32()? },
            6 => Self::Passive,
            7 => Self::Watchdog,
            8 => Self::Announce {
                tx_slot: r.u32()?,
                dst: r.u16()?,
                remaining: r.u32()?,
                number: r.u32()?,
            },
            9 => Self::Schedule { flows: list(&mut r, |r| r.u32())? },
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }
}

fn list<'a, T: Copy + Default, const N: usize>(
    r: &mut Reader<'a>,
    item: impl Fn(&mut Reader<'a>) -> Result<T, WireError>,
) -> Result<List<T, N>, WireError> {
    let len = r.u8()?;
    if usize::from(len) > N {
        let expected = "at most as many as fit";
        return Err(WireError::BadField { field: "length", expected, got: len.into() });
    }
    let mut list = List::default();
    for _ in 0..len {
        list.push(item(r)?);
    }
    Ok(list)
}

fn some_bytes(size: u64) -> Result<u64, WireError> {
    match size {
        0 => Err(WireError::BadField { field: "size", expected: "at least 1", got: 0 }),
        _ => Ok(size),
    }
}
