//! The wire codec: big-endian fields, checked lengths, errors instead of panics.
//!
//! A transport writes its packets once, as a table in [`headers!`](crate::headers). The macro makes
//! the header's enum of it, the codec ([`Header`]), and a description of every packet
//! ([`Formats`]). Tests, sample captures, the Wireshark dissector and the packet tables of
//! `docs/protocols` are made from the description.
//!
//! A type that a header holds implements [`Field`]. [`codes!`](crate::codes) makes one of a list of
//! code words, [`items!`](crate::items) one that a [`List`] may hold, [`layout!`](crate::layout) a
//! layout that several packets share.

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

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("header needs {needed} bytes, got {got}")]
    Truncated {
        /// Bytes up to the end of the field.
        needed: usize,
        /// Bytes there were.
        got: usize,
    },
    /// The type byte names no packet of this protocol.
    #[error("unknown packet type {0}")]
    UnknownType(u8),
    /// A field holds a value that the protocol never sends.
    #[error("field {field} must be {expected}, got {got}")]
    BadField {
        /// The field's name in the protocol's page.
        field: &'static str,
        /// What values are allowed.
        expected: &'static str,
        /// The value.
        got: u64,
    },
}

/// A protocol's packet header, decoded. Small and `Copy`; the simulator moves it as it is, the
/// host runtime encodes it.
pub trait Header: Copy + PartialEq + std::fmt::Debug {
    /// Bytes that [`Header::encode`] writes.
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

    /// The packet's place among others where ports queue by rank
    /// ([`Queueing::Ranks`](crate::Queueing)), lowest first.
    fn rank(&self) -> u32 {
        0
    }

    /// The path choice of the packet where that is not the fabric's, as in networks of several
    /// transports. `None` by default.
    #[inline]
    fn spray(&self) -> Option<Spray> {
        None
    }

    /// What packets of this type are called, as in "token".
    /// [`headers!`](crate::headers) takes it from the table.
    fn kind(&self) -> &'static str {
        "packet"
    }

    /// Tells the fields by name, and of lists their parts, as
    /// [`Formats::values`] does. [`headers!`](crate::headers) takes it from the table.
    fn fields(&self, _tell: &mut dyn FnMut(&'static str, &'static str, u64)) {}
}
