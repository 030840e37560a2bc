//! What `headers!` says of packets: the tables from which dissectors, documents and tests are made.

use super::{Header, Reader, WireError, Writer};

/// A packet of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first byte of its header.
    pub code: u8,
    /// Its name, as in "free data".
    pub name: &'static str,
    /// Whether it carries payload.
    pub kind: PacketKind,
    /// From whom to whom it goes, as in "S to R".
    pub way: &'static str,
    /// Its documentation in Rust.
    pub docs: &'static str,
    /// The sentence that summarises it, with `{field}` for a field's value. Also:
    ///
    /// - `{field|ms left|forever}`: the value and the words after it, or the other words where the
    ///   value is the largest that fits the field;
    /// - `{list:{part} to {other}}`: the sentence of each item, or "none" without items.
    pub summary: &'static str,
    /// The fields after the type byte, in order.
    pub fields: &'static [FieldInfo],
    /// What values are never sent.
    pub rules: &'static [Rule],
}

/// Whether packets carry payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// They carry none.
    Control,
    /// They carry a part of a message.
    Data,
}

/// A field of a header, or of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Its name in Rust and in errors.
    pub name: &'static str,
    /// Its name in filters of captures; mostly the same.
    pub filter: &'static str,
    /// What readers of captures see; `None` where an earlier field of this name has the label.
    pub label: Option<&'static str>,
    /// Its documentation in Rust.
    pub docs: &'static str,
    /// Its form.
    pub form: Form,
}

/// The form of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An integer.
    Number {
        /// Its length.
        bytes: u8,
        /// How it is shown.
        base: Base,
    },
    /// A byte that stands for a word.
    Words {
        /// The bytes that there are, as in "0 to 3".
        expected: &'static str,
        /// The word of each, from 0 on.
        words: &'static [&'static str],
    },
    /// A byte that counts items, and the items.
    List {
        /// How many there are at most.
        most: u8,
        /// The fields of an item.
        items: &'static [FieldInfo],
    },
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// As usual.
    Decimal,
    /// In hexadecimal digits: its bits matter.
    Hex,
}

/// A rule for the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The field.
    pub field: &'static str,
    /// On which side of the limit its values are.
    pub bound: Bound,
    /// The limit, which is allowed.
    pub limit: Limit,
    /// The rule in words, as in "at least 1".
    pub expected: &'static str,
}

/// A side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// At least the limit.
    Least,
    /// At most the limit.
    Most,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number.
    Number(u64),
    /// The value of an earlier field.
    Field(&'static str),
}

/// A header that says of what its packets are made. [`headers!`](crate::headers) implements it.
pub trait Formats: Header + 'static {
    /// Its packets.
    const FORMATS: &'static [Format];

    /// The type byte.
    fn code(&self) -> u8;

    /// An arbitrary header of a type, for tests; `None` if there is no such type. `draw` returns
    /// random words.
    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self>;

    /// Tells every field's name in Rust with what [`Field::tell`](super::Field::tell) tells of it.
    fn values(&self, tell: &mut dyn FnMut(&'static str, &'static str, u64));
}

/// The name of a header's packet, by its type byte.
pub fn name_of<H: Formats>(header: &H) -> &'static str {
    let code = header.code();
    let format = H::FORMATS.iter().find(|format| format.code == code);
    format.map_or("packet", |format| format.name)
}

/// A part of headers that packets of several types share; [`layout!`](crate::layout) makes it. The
/// methods are those of [`Header`] and [`Formats`], without the type byte.
pub trait Layout: Copy {
    /// The packets that have this layout.
    const FORMATS: &'static [Format];

    /// The type byte.
    fn code(&self) -> u8;

    /// Bytes that [`Layout::encode`] writes.
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

    /// Arbitrary fields of a type, as by [`Formats::arbitrary`].
    fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Self>;

    /// Tells the fields, as [`Formats::values`] does.
    fn values(&self, tell: &mut dyn FnMut(&'static str, &'static str, u64));
}

impl Form {
    /// Bytes of the shortest value: of a list without items.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Number { bytes, .. } => bytes as usize,
            Self::Words { .. } | Self::List { .. } => 1,
        }
    }

    /// The form of the first field of a list's items.
    ///
    /// # Panics
    /// If this is no list.
    pub const fn of_item(self) -> Self {
        match self {
            Self::List { items, .. } => items[0].form,
            _ => panic!("only lists have items"),
        }
    }
}

impl FieldInfo {
    /// A field without label and documentation.
    pub const fn new(name: &'static str, form: Form) -> Self {
        Self { name, filter: name, label: None, docs: "", form }
    }

    /// The same field with a label.
    #[must_use]
    pub const fn labelled(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// The same field with documentation.
    #[must_use]
    pub const fn documented(mut self, docs: &'static str) -> Self {
        self.docs = docs;
        self
    }

    /// The same field with another name in filters.
    #[must_use]
    pub const fn filtered(mut self, filter: &'static str) -> Self {
        self.filter = filter;
        self
    }

    /// The same field, a number shown in hexadecimal digits.
    #[must_use]
    pub const fn hex(mut self) -> Self {
        if let Form::Number { bytes, .. } = self.form {
            self.form = Form::Number { bytes, base: Base::Hex };
        }
        self
    }

    /// The same field, a list whose items have these fields.
    #[must_use]
    pub const fn with_items(mut self, items: &'static [FieldInfo]) -> Self {
        if let Form::List { most, .. } = self.form {
            self.form = Form::List { most, items };
        }
        self
    }

    /// Bytes of some fields, lists without their items.
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
    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Bytes of the header, type byte included; of lists without their items.
    pub const fn bytes(&self) -> usize {
        1 + FieldInfo::bytes(self.fields)
    }
}
