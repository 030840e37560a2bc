//! The telemetry record of one port (§4.1, figure 7).
//!
//! The paper's record has 8 bytes: 24 bits of time, 20 of bytes sent, 16 of the queue, 4 of the
//! rate. This one has 14 and loses less. Time in units of 128 ps and bytes wrap at 2^32, after 0.55
//! s and 4 GB. Rates have 12 significant bits. Packets are charged for the paper's.

use rampmeter_types::wire::{Field, FieldInfo, Item, List, Reader, Writer};
use rampmeter_types::{Rate, Span, Time, WireError};

/// Switches that may write a record, at most (§4.1: five hops).
pub const HOPS_MAX: usize = 5;

/// The records of a path, the first switch's first.
pub type Records = List<Record, HOPS_MAX>;

/// Telemetry record that a port writes when a packet starts on its link. Halves of words keep the
/// header of a packet with five records within two cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record([u16; 7]);

/// A unit of time is 2^7 ps.
const TIME_SHIFT: u32 = 7;

impl Record {
    /// Returns the record of a port of `rate` that has sent `sent` bytes before the packet, and in
    /// which `queued` bytes wait behind it.
    #[inline]
    pub fn new(now: Time, sent: u64, queued: u32, rate: Rate) -> Self {
        let time = (now.as_ps() >> TIME_SHIFT) as u32;
        Self::from_fields(time, sent as u32, queued, encode_rate(rate.as_bps() / 1_000_000))
    }

    fn from_fields(time: u32, sent: u32, queued: u32, rate: u16) -> Self {
        let halves = |word: u32| [(word >> 16) as u16, word as u16];
        let ([a, b], [c, d], [e, f]) = (halves(time), halves(sent), halves(queued));
        Self([a, b, c, d, e, f, rate])
    }

    fn word(self, at: usize) -> u32 {
        u32::from(self.0[at]) << 16 | u32::from(self.0[at + 1])
    }

    /// Returns the bytes that waited.
    #[inline]
    pub fn queued(self) -> u32 {
        self.word(4)
    }

    /// Returns the bytes per picosecond that the link carries.
    #[inline]
    pub fn bytes_per_ps(self) -> f64 {
        let code = u32::from(self.0[6]);
        f64::from(code & 0xfff) * f64::from(1u32 << (code >> 12)) * 1.25e-7
    }

    /// Returns the bytes that the port has sent from `earlier` to this record.
    #[inline]
    pub fn sent_since(self, earlier: Self) -> u32 {
        self.word(2).wrapping_sub(earlier.word(2))
    }

    /// Returns the time from `earlier` to this record.
    #[inline]
    pub fn time_since(self, earlier: Self) -> Span {
        Span::from_ps(u64::from(self.word(0).wrapping_sub(earlier.word(0))) << TIME_SHIFT)
    }
}

/// Returns a number of Mbit/s as 12 bits and a power of two; exact for the usual rates of links.
#[inline]
fn encode_rate(mbps: u64) -> u16 {
    let mbps = mbps.clamp(1, 0xfff << 15);
    let power = (u64::BITS - mbps.leading_zeros()).saturating_sub(12);
    (power << 12) as u16 | (mbps >> power) as u16
}

impl Item for Record {
    const FIELDS: &'static [FieldInfo] = &[
        FieldInfo::new("time", u32::FORM).with_label("Time (128 ps)"),
        FieldInfo::new("sent", u32::FORM).with_label("Bytes sent before"),
        FieldInfo::new("queued", u32::FORM).with_label("Bytes waiting"),
        FieldInfo::new("rate", u16::FORM)
            .with_label("Rate: 12 bits of Mbit/s, times 2 to the first 4"),
    ];

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), WireError> {
        for at in [0, 2, 4] {
            w.u32(self.word(at))?;
        }
        w.u16(self.0[6])?;
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (time, sent, queued) = (r.u32()?, r.u32()?, r.u32()?);
        Ok(Self::from_fields(time, sent, queued, r.u16()?))
    }

    fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
        let mut half = || <u16 as Field>::arbitrary(draw);
        Self([half(), half(), half(), half(), half(), half(), half()])
    }

    fn visit(&self, visitor: &mut dyn FnMut(&'static str, u64)) {
        visitor("time", self.word(0).into());
        visitor("sent", self.word(2).into());
        visitor("queued", self.queued().into());
        visitor("rate", self.0[6].into());
    }
}
