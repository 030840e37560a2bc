//! Conversion of arbitrary bytes to packets.

use rampmeter_runtime::wire::{DatagramKind, Fragment};
use rampmeter_types::MsgId;
use rampmeter_types::wire::{Formats, PacketKind};

/// Bytes that are read one after the other; zeros follow them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.u8(), self.u8(), self.u8(), self.u8()])
    }

    /// Returns a number up to `largest`, mostly a small one.
    fn small(&mut self, largest: u32) -> u32 {
        let n = match self.u8() {
            byte @ 0..200 => u32::from(byte % 8),
            200..220 => u32::from(self.u8()),
            220..240 => largest,
            _ => self.u32(),
        };
        n.min(largest)
    }

    /// Returns a word from which a field of a header is drawn: mostly small numbers, zero and the
    /// largest.
    fn word(&mut self) -> u64 {
        let byte = self.u8();
        let class = |class: u64, word: u64| class << 61 | (word & (u64::MAX >> 3));
        match byte {
            0..64 => class(0, 0),
            64..160 => class(2, byte.into()),
            160..184 => class(1, 0),
            184..216 => class(3, self.u8().into()),
            216..236 => class(3, u64::from(self.u8()) * 1_360),
            _ => class(3, u64::from(self.u32()) << (self.u8() % 32)),
        }
    }
}

/// A packet of a transport from which copies are made.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    code: u8,
    words: Vec<u64>,
    msg: u32,
    /// Position of a data packet, and the bytes of its payload.
    data: Option<(Fragment, usize)>,
    /// Fields that increase in each copy: the message, the offset, and words of the header.
    grows: u8,
}

const WORDS: usize = 24;
/// Maximum bytes of a message for which templates compute the digest.
const DIGESTED_MAX: u32 = 1 << 14;
static ONES: [u8; DIGESTED_MAX as usize] = [1; DIGESTED_MAX as usize];

impl Template {
    pub(crate) fn read<H: Formats>(input: &mut Input<'_>) -> Self {
        let choice = input.u8();
        let format = &H::FORMATS[usize::from(choice) % H::FORMATS.len()];
        // Sometimes a packet without payload gets one, or a data packet loses its payload.
        let has_payload = (format.kind == PacketKind::Data) != (choice >= 240);
        let words = (0..WORDS.min(format.fields.len() + 8)).map(|_| input.word()).collect();
        let (msg, grows) = (input.small(u32::MAX), input.u8());
        let data = has_payload.then(|| Self::fragment(input));
        Self { code: format.code, words, msg, data, grows }
    }

    fn fragment(input: &mut Input<'_>) -> (Fragment, usize) {
        let len = [1_360, 1_360, 1, 100, 1_000][usize::from(input.u8() % 5)];
        let size = match input.u8() {
            0..100 => len,
            100..150 => u32::from(input.u8()) * 1_360,
            150..200 => 1 << (input.u8() % 31),
            200..220 => 1 << 30,
            _ => input.u32(),
        };
        let offset = input.small(u32::MAX);
        let offset = if offset < 256 { offset * 1_360 } else { offset };
        let len = len.min(size.saturating_sub(offset)).max(1);
        let service = u16::from(input.u8() % 8) + if input.u8() < 250 { 2 } else { 0 };
        // Most packets at the end of a message have its digest: payloads are ones.
        let is_last = offset.checked_add(len) == Some(size) && size <= DIGESTED_MAX;
        let digest = match input.u8() {
            0..16 => Some(input.u32()),
            16..240 if is_last => Some(crc32c::crc32c(&ONES[..size as usize])),
            _ => None,
        };
        (Fragment { service, offset, size, digest }, len as usize)
    }

    fn grows(&self, bit: u8, n: u32) -> u32 {
        if self.grows >> bit & 1 == 1 { n } else { 0 }
    }

    /// Writes the copy with this number, its header and payload after `body`.
    pub(crate) fn write<H: Formats>(&self, n: u32, body: &mut Vec<u8>) -> Option<DatagramKind> {
        let mut at = 0;
        let mut draw = || {
            let word = self.words.get(at).copied().unwrap_or(0);
            at += 1;
            let more = if at <= 6 { self.grows(at as u8 - 1, n) } else { 0 };
            match more {
                0 => word,
                more if word >> 61 < 3 => 3 << 61 | u64::from(more),
                more => 3 << 61 | (word & (u64::MAX >> 3)).wrapping_add(more.into()),
            }
        };
        let header = H::arbitrary(self.code, &mut draw)?;
        body.resize(header.wire_len(), 0);
        header.encode(body).ok()?;
        let msg = MsgId::new(self.msg.wrapping_add(self.grows(6, n)));
        let Some((fragment, len)) = self.data else { return Some(DatagramKind::Control { msg }) };
        body.resize(body.len() + len, 1);
        let offset = fragment.offset.wrapping_add(self.grows(7, n).wrapping_mul(1_360));
        Some(DatagramKind::Data { msg, fragment: Fragment { offset, ..fragment } })
    }
}
