//! Wire codec: big-endian fields, checked lengths, errors instead of panics.
//!
//! A transport defines its packets once, as a table in [`headers!`](crate::headers). The macro
//! generates the header's enum, the codec ([`Header`]), and a description of every packet
//! ([`Formats`]). Tests, sample captures, the Wireshark dissector and the packet tables of
//! `docs/protocols` are made from the description.
//!
//! A type that a header holds implements [`Field`]. [`codes!`](crate::codes) makes one of a list of
//! code words, and [`items!`](crate::items) one that a [`List`] may hold.
//! [`layout!`](crate::layout) makes a layout that several packets share.

mod bytes;
pub mod check;
mod field;
mod format;
mod headers;
mod join;
mod list;
mod parts;
mod transport;

use thiserror::Error;

use crate::fabric::Spray;

pub use bytes::{Reader, Writer};
pub use field::{Field, number};
pub use format::{
    Base, Bound, FieldInfo, Form, Format, Formats, Layout, Limit, PacketKind, Rule, name_of,
};
pub use join::{count, join};
pub use list::{Item, List};
pub use transport::{Sample, Value, Wire};

/// Reason for which bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("header needs {needed} bytes, got {got}")]
    Truncated {
        /// Bytes up to the end of the field.
        needed: usize,
        /// Actual number of bytes.
        got: usize,
    },
    /// The type byte names no packet of this protocol.
    #[error("unknown packet type {0}")]
    UnknownType(u8),
    /// A field holds a value that the protocol never sends.
    #[error("field {field} must be {expected}, got {got}")]
    BadField {
        /// Name of the field in the protocol's page.
        field: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// Actual value.
        got: u64,
    },
}

/// Packet header of a protocol, decoded. Small and `Copy`; the simulator moves it unencoded, the
/// host runtime encodes it.
pub trait Header: Copy + PartialEq + std::fmt::Debug {
    /// Returns the bytes that [`Header::encode`] writes.
    fn wire_len(&self) -> usize;

    /// Writes the header to the front of `out` and returns the bytes written.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if `out` is shorter than [`Header::wire_len`].
    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError>;

    /// Reads a header from the front of `bytes`; returns it and the bytes read. Never panics.
    ///
    /// # Errors
    /// Anything that is not an encoding of a valid header.
    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError>;

    /// Returns the packet's rank if ports queue by rank ([`Queueing::Ranks`](crate::Queueing)),
    /// lowest first.
    fn rank(&self) -> u32 {
        0
    }

    /// Returns the path choice of the packet if it differs from the fabric's, as in networks of
    /// several transports. `None` by default.
    #[inline]
    fn spray(&self) -> Option<Spray> {
        None
    }

    /// Returns the name of packets of this type, as in "token". [`headers!`](crate::headers)
    /// generates it from the table.
    fn kind(&self) -> &'static str {
        "packet"
    }

    /// Calls `tell` with the fields by name, and with the parts of lists, as [`Formats::values`]
    /// does. [`headers!`](crate::headers) generates it from the table.
    fn fields(&self, _tell: &mut dyn FnMut(&'static str, &'static str, u64)) {}
}
