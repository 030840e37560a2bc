//! Descriptions of packets that `headers!` generates. Dissectors, documents and tests are made from
//! these tables.

use super::{Header, PacketKind, Reader, WireError, Writer};

/// Description of a packet type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// First byte of its header.
    pub code: u8,
    /// Name, as in "free data".
    pub name: &'static str,
    /// Kind.
    pub kind: PacketKind,
    /// Sender and receiver, as in "S to R".
    pub direction: &'static str,
    /// Documentation in Rust.
    pub docs: &'static str,
    /// Sentence that summarises it, with `{field}` for a field's value. Also:
    ///
    /// - `{field|ms left|forever}`: the value and the words after it, or the other words if the
    ///   value is the largest that fits the field;
    /// - `{list:{part} to {other}}`: the sentence of each item, or "none" without items.
    pub summary: &'static str,
    /// Fields after the type byte, in order.
    pub fields: &'static [FieldInfo],
    /// Rules on the values that are sent.
    pub rules: &'static [Rule],
}

/// A field of a header, or of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name in Rust and in errors.
    pub name: &'static str,
    /// Name in filters of captures; mostly the same.
    pub filter: &'static str,
    /// Label in captures; `None` if an earlier field of this name has the label.
    pub label: Option<&'static str>,
    /// Documentation in Rust.
    pub docs: &'static str,
    /// Form on the wire.
    pub form: FieldEncoding,
}

/// Form of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldEncoding {
    /// An integer.
    Number {
        /// Length in bytes.
        bytes: u8,
        /// Base in which it is shown.
        base: NumberBase,
    },
    /// A byte that stands for a word.
    Words {
        /// Valid bytes, as in "0 to 3".
        expected: &'static str,
        /// Word of each, from 0 on.
        words: &'static [&'static str],
    },
    /// A byte that counts items, and the items.
    List {
        /// Maximum number of items.
        max: u8,
        /// The fields of an item.
        items: &'static [FieldInfo],
    },
}

/// Base in which a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberBase {
    /// Decimal.
    Decimal,
    /// Hexadecimal: its bits matter.
    Hex,
}

/// Rule on the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The field.
    pub field: &'static str,
    /// Side of the limit on which its values are.
    pub bound: Bound,
    /// Limit, which itself is allowed.
    pub limit: FieldLimit,
    /// The rule in words, as in "at least 1".
    pub expected: &'static str,
}

/// A side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Lower limit.
    Min,
    /// Upper limit.
    Max,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldLimit {
    /// A number.
    Number(u64),
    /// The value of an earlier field.
    Field(&'static str),
}

/// Header with a description of its packets. [`headers!`](crate::headers) implements it.
pub trait Formats: Header + 'static {
    /// Descriptions of its packets.
    const FORMATS: &'static [Format];

    /// Returns the type byte.
    fn code(&self) -> u8;

    /// Returns an arbitrary header of a type, for tests; `None` if there is no such type. `draw`
    /// returns random words.
    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self>;

    /// Calls `visit` with every field's name in Rust and the values of
    /// [`Field::visit`](super::Field::visit).
    fn values(&self, visit: &mut dyn FnMut(&'static str, &'static str, u64));
}

/// Returns the description of a header's packet, by its type byte.
///
/// # Panics
/// If there is none. [`headers!`](crate::headers) makes one for each type.
pub fn format_of<H: Formats>(header: &H) -> &'static Format {
    let code = header.code();
    H::FORMATS.iter().find(|format| format.code == code).expect("a format for each type")
}

/// Part of a header that packets of several types share; [`layout!`](crate::layout) makes it. The
/// methods are those of [`Header`] and [`Formats`], without the type byte.
pub trait Layout: Copy {
    /// Descriptions of the packets that have this layout.
    const FORMATS: &'static [Format];

    /// Returns the type byte.
    fn code(&self) -> u8;

    /// Returns the bytes that [`Layout::encode`] writes.
    fn wire_len(&self) -> usize;

    /// Writes the fields.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if they do not fit.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError>;

    /// Reads the fields of a packet of a type.
    ///
    /// # Errors
    /// As [`Header::decode`].
    fn decode(code: u8, r: &mut Reader<'_>) -> Result<Self, WireError>;

    /// Returns arbitrary fields of a type, as [`Formats::arbitrary`] does.
    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self>;

    /// Calls `visit` with the fields, as [`Formats::values`] does.
    fn values(&self, visit: &mut dyn FnMut(&'static str, &'static str, u64));
}

impl FieldEncoding {
    /// Returns the bytes of the shortest value: of a list without items.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Number { bytes, .. } => bytes as usize,
            Self::Words { .. } | Self::List { .. } => 1,
        }
    }

    /// Returns the form of the first field of a list's items.
    ///
    /// # Panics
    /// If this is no list.
    pub const fn item_form(self) -> Self {
        match self {
            Self::List { items, .. } => items[0].form,
            _ => panic!("only lists have items"),
        }
    }
}

impl FieldInfo {
    /// Creates a field without label and documentation.
    pub const fn new(name: &'static str, form: FieldEncoding) -> Self {
        Self { name, filter: name, label: None, docs: "", form }
    }

    /// Returns the field with a label.
    #[must_use]
    pub const fn with_label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// Returns the field with documentation.
    #[must_use]
    pub const fn with_docs(mut self, docs: &'static str) -> Self {
        self.docs = docs;
        self
    }

    /// Returns the field with another name in filters.
    #[must_use]
    pub const fn with_filter(mut self, filter: &'static str) -> Self {
        self.filter = filter;
        self
    }

    /// Returns the field, a number shown in hexadecimal.
    #[must_use]
    pub const fn with_hex(mut self) -> Self {
        if let FieldEncoding::Number { bytes, .. } = self.form {
            self.form = FieldEncoding::Number { bytes, base: NumberBase::Hex };
        }
        self
    }

    /// Returns the field, a list whose items have these fields.
    #[must_use]
    pub const fn with_items(mut self, items: &'static [FieldInfo]) -> Self {
        if let FieldEncoding::List { max, .. } = self.form {
            self.form = FieldEncoding::List { max, items };
        }
        self
    }

    /// Returns the bytes of some fields, lists without their items.
    pub const fn bytes(fields: &[Self]) -> usize {
        let (mut at, mut bytes) = (0, 0);
        while at < fields.len() {
            bytes += fields[at].form.bytes();
            at += 1;
        }
        bytes
    }
}

impl Format {
    /// Returns the field of a name.
    pub fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the bytes of the header, including the type byte and lists without their items.
    pub const fn bytes(&self) -> usize {
        1 + FieldInfo::bytes(self.fields)
    }
}
