//! Types of header fields.

use super::{FieldEncoding, NumberBase, Reader, WireError, Writer};
use crate::units::Span;

/// Type of a header field.
///
/// The methods of the codec are called for every packet of a real host: they are small, static and
/// `#[inline]`.
pub trait Field: Copy {
    /// Form on the wire, for readers of the bytes.
    const FORM: FieldEncoding;

    /// Returns the bytes that [`Field::encode`] writes.
    fn wire_len(&self) -> usize;

    /// Writes the value.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if it does not fit.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError>;

    /// Reads the value of the field `name`. Never panics.
    ///
    /// # Errors
    /// [`WireError::Truncated`] at the end of the bytes, [`WireError::BadField`] for a value that
    /// is never sent.
    fn decode(r: &mut Reader<'_>, name: &'static str) -> Result<Self, WireError>;

    /// Returns an arbitrary value, for tests. `draw` returns random words.
    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self;

    /// Calls `visitor` with the value. A list reports the number of its items under `count`, then
    /// each field of each item under its name. All others have one value without a name.
    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64));
}

/// Returns an arbitrary number up to `largest`: often 0, the largest, or small, as mistakes show
/// there.
pub fn arbitrary_number(draw: &mut dyn FnMut() -> u64, largest: u64) -> u64 {
    let word = draw();
    match word >> 61 {
        0 => 0,
        1 => largest,
        2 => word & 7,
        _ => word & largest,
    }
}

macro_rules! integer_fields {
    ($($of:ident $bytes:literal)*) => {$(
        impl Field for $of {
            const FORM: FieldEncoding =
                FieldEncoding::Number { bytes: $bytes, base: NumberBase::Decimal };

            #[inline]
            fn wire_len(&self) -> usize {
                $bytes
            }

            #[inline]
            fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
                w.$of(*self)?;
                Ok(())
            }

            #[inline]
            fn decode(r: &mut Reader<'_>, _name: &'static str) -> Result<Self, WireError> {
                r.$of()
            }

            fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
                arbitrary_number(draw, $of::MAX.into()) as $of
            }

            fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                visit("", (*self).into());
            }
        }
    )*};
}
integer_fields!(u8 1 u16 2 u32 4 u64 8);

impl Field for bool {
    const FORM: FieldEncoding = FieldEncoding::Words { expected: "0 or 1", words: &["no", "yes"] };

    #[inline]
    fn wire_len(&self) -> usize {
        1
    }

    #[inline]
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        w.u8(u8::from(*self))?;
        Ok(())
    }

    #[inline]
    fn decode(r: &mut Reader<'_>, name: &'static str) -> Result<Self, WireError> {
        match r.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            got => {
                Err(WireError::BadField { field: name, expected: "0 or 1", got: u64::from(got) })
            }
        }
    }

    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
        draw() & 1 == 1
    }

    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64)) {
        visitor("", u64::from(*self));
    }
}

/// Picoseconds in eight bytes.
impl Field for Span {
    const FORM: FieldEncoding = u64::FORM;

    #[inline]
    fn wire_len(&self) -> usize {
        8
    }

    #[inline]
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        self.as_ps().encode(w)
    }

    #[inline]
    fn decode(r: &mut Reader<'_>, name: &'static str) -> Result<Self, WireError> {
        u64::decode(r, name).map(Self::from_ps)
    }

    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
        Self::from_ps(u64::arbitrary(draw))
    }

    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64)) {
        self.as_ps().visit(visitor);
    }
}
