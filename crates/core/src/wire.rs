//! The wire codec: big-endian fields, checked lengths, errors instead of panics.

use thiserror::Error;

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
}

/// Writes big-endian fields to the front of a slice.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Writes raw bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if they do not fit.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<&mut Self, WireError> {
        let end = self.at + bytes.len();
        let got = self.out.len();
        let Some(field) = self.out.get_mut(self.at..end) else {
            return Err(WireError::Truncated { needed: end, got });
        };
        field.copy_from_slice(bytes);
        self.at = end;
        Ok(self)
    }

    /// Writes one byte. Errors as [`Writer::bytes`].
    pub fn u8(&mut self, value: u8) -> Result<&mut Self, WireError> {
        self.bytes(&[value])
    }

    /// Writes two bytes. Errors as [`Writer::bytes`].
    pub fn u16(&mut self, value: u16) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes four bytes. Errors as [`Writer::bytes`].
    pub fn u32(&mut self, value: u32) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes eight bytes. Errors as [`Writer::bytes`].
    pub fn u64(&mut self, value: u64) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Bytes written.
    pub fn written(&self) -> usize {
        self.at
    }
}

/// Reads big-endian fields from the front of a slice.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let end = self.at + N;
        let field = self.bytes.get(self.at..end).and_then(|f| f.first_chunk::<N>());
        let Some(field) = field else {
            return Err(WireError::Truncated { needed: end, got: self.bytes.len() });
        };
        self.at = end;
        Ok(*field)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`WireError::Truncated`] at the end of the bytes.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.take::<1>().map(|[b]| b)
    }

    /// Reads two bytes. Errors as [`Reader::u8`].
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_be_bytes)
    }

    /// Reads four bytes. Errors as [`Reader::u8`].
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads eight bytes. Errors as [`Reader::u8`].
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Bytes read.
    pub fn consumed(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip_in_big_endian() {
        let mut buffer = [0; 15];
        let mut writer = Writer::new(&mut buffer);
        writer.u8(1).unwrap().u16(2).unwrap().u32(3).unwrap().u64(4).unwrap();
        assert_eq!(writer.written(), 15);
        assert_eq!(buffer[..3], [1, 0, 2]);
        let mut reader = Reader::new(&buffer);
        assert_eq!(
            (reader.u8(), reader.u16(), reader.u32(), reader.u64()),
            (Ok(1), Ok(2), Ok(3), Ok(4))
        );
        assert_eq!(reader.u8(), Err(WireError::Truncated { needed: 16, got: 15 }));
    }

    #[test]
    fn a_short_buffer_is_an_error_that_names_both_lengths() {
        let error = Writer::new(&mut [0; 3]).u32(9).unwrap_err();
        assert_eq!(error.to_string(), "header needs 4 bytes, got 3");
    }
}
