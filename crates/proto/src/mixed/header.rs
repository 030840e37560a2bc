//! Headers of several transports in one type.

use rampmeter_types::fabric::Spray;
use rampmeter_types::wire::{FieldEncoding, FieldInfo, Formats, PacketKind, Reader, Writer};
use rampmeter_types::{Header, WireError};

/// The encoded header of a packet of one of the transports.
#[derive(Clone, Copy, Debug)]
pub struct MixedHeader {
    /// The number of its transport.
    pub(super) member: u8,
    len: u8,
    spray: Option<Spray>,
    name: &'static str,
    kind: PacketKind,
    bytes: [u8; Self::LEN_MAX],
}

impl MixedHeader {
    /// Bytes of the longest header.
    pub const LEN_MAX: usize = 96;

    /// Returns the header of a packet of transport `member`.
    pub(super) fn from_header<H: Header>(member: u8, header: &H, spray: Option<Spray>) -> Self {
        let mut bytes = [0; Self::LEN_MAX];
        let len = header.encode(&mut bytes).expect("Member::check admits headers that have room");
        Self { member, len: len as u8, spray, name: header.name(), kind: header.kind(), bytes }
    }

    /// Returns the header in the type of its transport.
    pub(super) fn decode_as<H: Header>(&self) -> H {
        let (header, _) = H::decode(&self.bytes[..self.len.into()]).expect("a valid header");
        header
    }
}

/// Returns the bytes of the longest header of `H`.
pub(super) fn longest_header<H: Formats>() -> usize {
    fn length(fields: &[FieldInfo]) -> usize {
        let field = |field: &FieldInfo| match field.form {
            FieldEncoding::List { max, items } => 1 + usize::from(max) * length(items),
            form => form.bytes(),
        };
        fields.iter().map(field).sum()
    }
    H::FORMATS.iter().map(|format| 1 + length(format.fields)).max().unwrap_or(0)
}

impl PartialEq for MixedHeader {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |header: &Self| header.len.into();
        self.member == other.member && self.bytes[..bytes(self)] == other.bytes[..bytes(other)]
    }
}

impl Header for MixedHeader {
    fn wire_len(&self) -> usize {
        2 + usize::from(self.len)
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> PacketKind {
        self.kind
    }

    fn spray(&self) -> Option<Spray> {
        self.spray
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        w.u8(self.member)?;
        w.u8(self.len)?;
        for &byte in &self.bytes[..self.len.into()] {
            w.u8(byte)?;
        }
        Ok(self.wire_len())
    }

    fn decode(from: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(from);
        let (member, len) = (r.u8()?, r.u8()?);
        if usize::from(len) > Self::LEN_MAX {
            let expected = "at most the longest header";
            return Err(WireError::BadField { field: "len", expected, got: len.into() });
        }
        let mut bytes = [0; Self::LEN_MAX];
        for byte in &mut bytes[..len.into()] {
            *byte = r.u8()?;
        }
        let (name, kind) = ("packet", PacketKind::Data);
        let header = Self { member, len, spray: None, name, kind, bytes };
        Ok((header, header.wire_len()))
    }
}
