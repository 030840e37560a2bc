//! Lists of limited length in headers.

use super::{Field, FieldEncoding, FieldInfo, Reader, WireError, Writer};

/// Short list in place. In memory it has space for `N` items, so that headers stay `Copy`; on the
/// wire it is a byte that counts the items, and the items.
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
    /// Adds an item; returns false if the list is full.
    pub fn push(&mut self, item: T) -> bool {
        let Some(place) = self.items.get_mut(usize::from(self.len)) else { return false };
        *place = item;
        self.len += 1;
        true
    }

    /// Returns the items.
    pub fn as_slice(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }
}

/// Item of a list on the wire: a type that [`items!`](crate::items) has made, or a number.
pub trait Item: Copy + Default {
    /// Fields, all of a fixed length. That of a number has no name.
    const FIELDS: &'static [FieldInfo];

    /// Writes the fields. Errors as [`Field::encode`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] if they do not fit.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError>;

    /// Reads the fields.
    ///
    /// # Errors
    /// As [`Field::decode`].
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError>;

    /// Returns arbitrary fields, as [`Field::arbitrary`] does.
    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self;

    /// Calls `visitor` with each field's name and value.
    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64));
}

macro_rules! integer_items {
    ($($of:ident)*) => {$(
        impl Item for $of {
            const FIELDS: &'static [FieldInfo] = &[FieldInfo::new("", $of::FORM)];

            #[inline]
            fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
                Field::encode(self, w)
            }

            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
                r.$of()
            }

            fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
                Field::arbitrary(draw)
            }

            fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                Field::visit(self, visit);
            }
        }
    )*};
}
integer_items!(u8 u16 u32 u64);

impl<T: Item, const N: usize> List<T, N> {
    const ITEM_BYTES: usize = {
        assert!(N <= u8::MAX as usize, "a byte counts the items of a list");
        FieldInfo::bytes(T::FIELDS)
    };
}

impl<T: Item, const N: usize> Field for List<T, N> {
    const FORM: FieldEncoding = FieldEncoding::List { max: N as u8, items: T::FIELDS };

    #[inline]
    fn wire_len(&self) -> usize {
        1 + Self::ITEM_BYTES * usize::from(self.len)
    }

    #[inline]
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        w.u8(self.len)?;
        self.as_slice().iter().try_for_each(|item| item.encode(w))
    }

    #[inline]
    fn decode(r: &mut Reader<'_>, _name: &'static str) -> Result<Self, WireError> {
        let len = r.u8()?;
        if usize::from(len) > N {
            let expected = "at most as many as fit";
            return Err(WireError::BadField { field: "length", expected, got: len.into() });
        }
        let mut list = Self::default();
        for _ in 0..len {
            list.push(T::decode(r)?);
        }
        Ok(list)
    }

    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
        let (mut list, len) = (Self::default(), draw() % (N as u64 + 1));
        for _ in 0..len {
            list.push(T::arbitrary(draw));
        }
        list
    }

    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64)) {
        visitor("count", self.len.into());
        self.as_slice().iter().for_each(|item| item.visit(visitor));
    }
}
