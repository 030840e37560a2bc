//! Time in integer picoseconds, bytes and rates, with exact serialisation times.
//!
//! No bare number crosses a function. All arithmetic is checked in debug builds and saturates or
//! panics as each method documents; rounding directions are in the names.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Picoseconds in one second.
pub const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// An instant: picoseconds since the start of a run. The range is 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A bit rate in bits per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Time {
    /// The start of a run.
    pub const ZERO: Self = Self(0);
    /// Later than every event; means "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the instant `ps` picoseconds after the start.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Returns the picoseconds since the start.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, for statistics and plots only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }

    /// Returns the time since `earlier`, zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns this instant plus `span`, at most [`Time::NEVER`].
    #[inline]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Creates a span of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// Creates a span of `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// Returns the picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the microseconds, for statistics and plots only.
    #[inline]
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the seconds, for statistics and plots only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }

    /// Returns this span times `numerator / denominator`, rounded down. The denominator must not be
    /// zero.
    #[inline]
    pub const fn scale_floor(self, numerator: u64, denominator: u64) -> Self {
        Self((self.0 as u128 * numerator as u128 / denominator as u128) as u64)
    }

    /// Returns the number of whole `unit`s in this span. The unit must not be zero.
    #[inline]
    pub const fn div_floor(self, unit: Self) -> u64 {
        self.0 / unit.0
    }

    /// Returns this span minus `other`, zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// Creates a size of `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// Returns the number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of units of `unit` bytes that hold these bytes, rounded up; at least one.
    #[inline]
    pub const fn packets_ceil(self, unit: Self) -> u64 {
        let packets = self.0.div_ceil(unit.0);
        if packets == 0 { 1 } else { packets }
    }
}

impl Rate {
    /// Creates a rate of `bps` bits per second; `None` for zero.
    #[inline]
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// Creates a rate of `gbps` gigabits per second. Panics on zero, so use it for constants.
    #[inline]
    pub const fn from_gbps(gbps: u64) -> Self {
        assert!(gbps > 0, "a rate must not be zero");
        Self(gbps * 1_000_000_000)
    }

    /// Returns the bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the time to send `bytes` on a link of this rate, rounded up to a picosecond. Exact
    /// for every rate that divides 8 * 10^12 bit/s, as 1, 10, 25, 40, 100 and 400 Gbit/s do.
    #[inline]
    pub const fn tx_time(self, bytes: Bytes) -> Span {
        const BITS_PS: u64 = 8 * PS_PER_SECOND;
        if let Some(bits_ps) = bytes.0.checked_mul(BITS_PS) {
            Span(bits_ps.div_ceil(self.0))
        } else {
            Span((bytes.0 as u128 * BITS_PS as u128).div_ceil(self.0 as u128) as u64)
        }
    }

    /// Returns the bytes that this rate carries in `span`, rounded down.
    #[inline]
    pub const fn bytes_floor(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / (8 * PS_PER_SECOND as u128)) as u64)
    }

    /// Returns the picoseconds per byte if that is a whole number: the fast path of
    /// [`Rate::tx_time`].
    #[inline]
    pub const fn exact_ps_per_byte(self) -> Option<u64> {
        if (8 * PS_PER_SECOND).is_multiple_of(self.0) {
            Some(8 * PS_PER_SECOND / self.0)
        } else {
            None
        }
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl fmt::Debug for Time {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER { f.write_str("never") } else { write!(f, "{}ps", self.0) }
    }
}

impl fmt::Debug for Span {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Debug for Bytes {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Debug for Rate {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s", self.0)
    }
}

impl fmt::Display for Time {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} us", self.0 as f64 / 1e6)
    }
}

impl fmt::Display for Span {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} us", self.as_us_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_packet_takes_120_ns_at_100g_and_30_ns_at_400g() {
        let packet = Bytes::new(1500);
        assert_eq!(Rate::from_gbps(100).tx_time(packet), Span::from_ns(120));
        assert_eq!(Rate::from_gbps(400).tx_time(packet), Span::from_ns(30));
    }

    #[test]
    fn huge_transfers_do_not_overflow() {
        let tera = Bytes::new(1 << 40);
        assert_eq!(Rate::from_gbps(1).tx_time(tera).as_ps(), (1u64 << 40) * 8_000);
    }

    proptest! {
        #[test]
        fn serialisation_rounds_up_by_less_than_a_picosecond(
            bytes in 1u64..100_000,
            bps in 1u64..u64::MAX / 16
        ) {
            let exact = u128::from(bytes) * 8 * u128::from(PS_PER_SECOND);
            let ps = u128::from(Rate::from_bps(bps).unwrap().tx_time(Bytes::new(bytes)).as_ps());
            prop_assert!(ps * u128::from(bps) >= exact);
            prop_assert!(ps == 0 || (ps - 1) * u128::from(bps) < exact);
        }

        #[test]
        fn bytes_floor_inverts_tx_time(bytes in 1u64..1_000_000, gbps in 1u64..800) {
            let rate = Rate::from_gbps(gbps);
            let back = rate.bytes_floor(rate.tx_time(Bytes::new(bytes))).get();
            prop_assert!(back >= bytes && back <= bytes + 1);
        }
    }
}
