//! Headers of transports on a wire.

use super::error::WireError;
use super::kind::PacketKind;
use crate::fabric::Spray;

/// Packet header of a protocol, decoded. Small and `Copy`; the simulator moves it unencoded, the
/// host runtime encodes it.
pub trait Header: Copy + PartialEq + Send + std::fmt::Debug {
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
    fn name(&self) -> &'static str {
        "packet"
    }

    /// Returns the kind of packets of this type. [`headers!`](crate::headers) generates it from the
    /// table.
    fn kind(&self) -> PacketKind {
        PacketKind::Data
    }

    /// Calls `tell` with the fields by name, and with the parts of lists, as
    /// [`Formats::values`](super::Formats::values) does. [`headers!`](crate::headers) generates it
    /// from the table.
    fn fields(&self, _tell: &mut dyn FnMut(&'static str, &'static str, u64)) {}
}
