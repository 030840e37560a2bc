//! Cursors over the bytes of a header.

use super::WireError;

/// Writes big-endian fields to the front of a slice.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `out`.
    #[inline]
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Writes raw bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if they do not fit.
    #[inline]
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
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<&mut Self, WireError> {
        self.bytes(&[value])
    }

    /// Writes two bytes. Errors as [`Writer::bytes`].
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes four bytes. Errors as [`Writer::bytes`].
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes eight bytes. Errors as [`Writer::bytes`].
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<&mut Self, WireError> {
        self.bytes(&value.to_be_bytes())
    }

    /// Returns the number of bytes written.
    #[inline]
    pub fn position(&self) -> usize {
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
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline]
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
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.take::<1>().map(|[b]| b)
    }

    /// Reads two bytes. Errors as [`Reader::u8`].
    #[inline]
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_be_bytes)
    }

    /// Reads four bytes. Errors as [`Reader::u8`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads eight bytes. Errors as [`Reader::u8`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Returns the number of bytes read.
    #[inline]
    pub fn position(&self) -> usize {
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
        assert_eq!(writer.position(), 15);
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
