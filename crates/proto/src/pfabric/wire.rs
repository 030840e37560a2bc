//! pFabric's packets and their encoding.
//!
//! A header starts with a type byte; integers are big-endian. The message that a packet is about is
//! named by its [`PayloadRef`](rampmeter_core::PayloadRef). `docs/protocols/pfabric.md` has the
//! table of formats.

use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{Header, WireError};

/// How many packets above the cumulative acknowledgement an acknowledgement tells of.
pub const SACK_BITS: u32 = 64;

/// A pFabric header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfabricHeader {
    /// Source to destination: one packet. It says all that there is to say of its flow.
    Data {
        /// The flow's number among those of this pair.
        flow: u32,
        /// Its slot at the source.
        tx_slot: u32,
        /// The packet's number in the flow.
        seq: u32,
        /// Packets of the flow that were not acknowledged when this one was sent: its rank.
        remaining: u32,
        /// The flow's size in bytes.
        size: u64,
    },
    /// Source to destination: what have you got? Sent instead of data by flows that starve (§4.3).
    Probe {
        /// The flow.
        flow: u32,
        /// Its slot at the source.
        tx_slot: u32,
        /// Packets of the flow that were not acknowledged: its rank.
        remaining: u32,
        /// The flow's size in bytes.
        size: u64,
    },
    /// Destination to source: what has arrived.
    Ack {
        /// The flow's slot at the source.
        tx_slot: u32,
        /// Every packet below has arrived.
        cumulative: u32,
        /// Bit i tells whether packet `cumulative + i` has arrived; bit 0 never does.
        sack: u64,
    },
}

impl Header for PfabricHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Data { .. } => 25,
            Self::Probe { .. } => 21,
            Self::Ack { .. } => 17,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        match *self {
            Self::Data { flow, tx_slot, seq, remaining, size } => {
                w.u8(1)?.u32(flow)?.u32(tx_slot)?.u32(seq)?.u32(remaining)?.u64(size)?;
            }
            Self::Probe { flow, tx_slot, remaining, size } => {
                w.u8(2)?.u32(flow)?.u32(tx_slot)?.u32(remaining)?.u64(size)?;
            }
            Self::Ack { tx_slot, cumulative, sack } => {
                w.u8(3)?.u32(tx_slot)?.u32(cumulative)?.u64(sack)?;
            }
        }
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => Self::Data {
                flow: r.u32()?,
                tx_slot: r.u32()?,
                seq: r.u32()?,
                remaining: r.u32()?,
                size: some_bytes(r.u64()?)?,
            },
            2 => Self::Probe {
                flow: r.u32()?,
                tx_slot: r.u32()?,
                remaining: r.u32()?,
                size: some_bytes(r.u64()?)?,
            },
            3 => Self::Ack { tx_slot: r.u32()?, cumulative: r.u32()?, sack: r.u64()? },
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }

    /// The fewer packets remain the better; acknowledgements and probes before all data (§4.3).
    #[inline]
    fn rank(&self) -> u32 {
        match self {
            Self::Data { remaining, .. } => *remaining,
            Self::Probe { .. } | Self::Ack { .. } => 0,
        }
    }
}

fn some_bytes(size: u64) -> Result<u64, WireError> {
    match size {
        0 => Err(WireError::BadField { field: "size", expected: "at least 1", got: 0 }),
        _ => Ok(size),
    }
}
