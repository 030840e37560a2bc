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
mod combinators;
mod error;
mod field;
mod format;
mod header;
mod headers;
mod join;
mod kind;
mod list;
mod transport;

pub use bytes::{Reader, Writer};
pub use error::WireError;
pub use field::{Field, arbitrary_number};
pub use format::{
    Bound, FieldEncoding, FieldInfo, FieldLimit, Format, Formats, Layout, NumberBase, Rule,
    format_of,
};
pub use header::Header;
pub use join::{count, join};
pub use kind::PacketKind;
pub use list::{Item, List};
pub use transport::{Sample, Value, WireFormat};
