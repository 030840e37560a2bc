//! pHost's packets and their encoding.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_core::PayloadRef). `docs/protocols/phost.md` has the table
//! of formats. To add a type: the enum, `code`, `wire_len`, `encode`, `decode`, that table, and the
//! strategy in `tests.rs`.

use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{Header, Span, WireError};

/// A pHost header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhostHeader {
    /// Source to destination: a flow exists (request to send).
    Rts {
        /// The flow's number among those of this pair.
        flow: u32,
        /// Its slot at the source.
        tx_slot: u32,
        /// Its size in bytes.
        size: u64,
        /// Time left until its deadline; 2^64 - 1 picoseconds without a deadline.
        time_left: Span,
        /// Its tenant.
        tenant: u16,
        /// True if the source asks for an answer because it has heard nothing.
        repeated: bool,
    },
    /// Destination to source: send one packet.
    Token {
        /// The flow's slot at the source.
        tx_slot: u32,
        /// Its slot at the destination.
        rx_slot: u32,
        /// The packet to send.
        seq: u32,
        /// How many tokens the flow had before, free ones included.
        number: u32,
        /// Packets of the flow that have not arrived.
        remaining: u32,
    },
    /// Source to destination: one packet that a free token paid for. It says what the RTS says, in
    /// case that is lost.
    Free {
        /// The flow.
        flow: u32,
        /// Its slot at the source.
        tx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// The flow's size in bytes.
        size: u64,
    },
    /// Source to destination: one packet that a token asked for.
    Data {
        /// The flow's slot at the destination, from the token.
        rx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// The token's number.
        number: u32,
    },
    /// Destination to source: the whole flow is here.
    Ack {
        /// The flow's slot at the source.
        tx_slot: u32,
    },
    /// Destination to source: the flow is known and its missing packets will get tokens. The answer
    /// to a repeated RTS.
    Heard {
        /// The flow's slot at the source.
        tx_slot: u32,
    },
}

impl PhostHeader {
    const fn code(&self) -> u8 {
        match self {
            Self::Rts { .. } => 1,
            Self::Token { .. } => 2,
            Self::Free { .. } => 3,
            Self::Data { .. } => 4,
            Self::Ack { .. } => 5,
            Self::Heard { .. } => 6,
        }
    }
}

impl Header for PhostHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Rts { .. } => 28,
            Self::Token { .. } => 21,
            Self::Free { .. } => 21,
            Self::Data { .. } => 13,
            Self::Ack { .. } | Self::Heard { .. } => 5,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        w.u8(self.code())?;
        match *self {
            Self::Rts { flow, tx_slot, size, time_left, tenant, repeated } => {
                w.u32(flow)?.u32(tx_slot)?.u64(size)?.u64(time_left.as_ps())?;
                w.u16(tenant)?.u8(u8::from(repeated))?;
            }
            Self::Token { tx_slot, rx_slot, seq, number, remaining } => {
                w.u32(tx_slot)?.u32(rx_slot)?.u32(seq)?.u32(number)?.u32(remaining)?;
            }
            Self::Free { flow, tx_slot, seq, size } => {
                w.u32(flow)?.u32(tx_slot)?.u32(seq)?.u64(size)?;
            }
            Self::Data { rx_slot, seq, number } => {
                w.u32(rx_slot)?.u32(seq)?.u32(number)?;
            }
            Self::Ack { tx_slot } | Self::Heard { tx_slot } => {
                w.u32(tx_slot)?;
            }
        }
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => {
                let (flow, tx_slot, size) = (r.u32()?, r.u32()?, some_bytes(r.u64()?)?);
                let time_left = Span::from_ps(r.u64()?);
                let tenant = r.u16()?;
                let repeated = match r.u8()? {
                    0 => false,
                    1 => true,
                    got => return Err(bad("repeated", "0 or 1", u64::from(got))),
                };
                Self::Rts { flow, tx_slot, size, time_left, tenant, repeated }
            }
            2 => Self::Token {
                tx_slot: r.u32()?,
                rx_slot: r.u32()?,
                seq: r.u32()?,
                number: r.u32()?,
                remaining: r.u32()?,
            },
            3 => Self::Free {
                flow: r.u32()?,
                tx_slot: r.u32()?,
                seq: r.u32()?,
                size: some_bytes(r.u64()?)?,
            },
            4 => Self::Data { rx_slot: r.u32()?, seq: r.u32()?, number: r.u32()? },
            5 => Self::Ack { tx_slot: r.u32()? },
            6 => Self::Heard { tx_slot: r.u32()? },
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }
}

fn some_bytes(size: u64) -> Result<u64, WireError> {
    if size == 0 { Err(bad("size", "at least 1", 0)) } else { Ok(size) }
}

fn bad(field: &'static str, expected: &'static str, got: u64) -> WireError {
    WireError::BadField { field, expected, got }
}
