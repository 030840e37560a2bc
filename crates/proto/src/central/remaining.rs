//! Exact remaining bytes of a flow.
//!
//! Rounding a remaining size to bytes whenever it is queried could change the order of two flows
//! from one instant to the next. So sizes are counted in bits times picoseconds a second. A flow of
//! `r` bit/s sends `r` of these units in a picosecond, and equation 1 has no remainder.

use rampmeter_types::units::PS_PER_SECOND;
use rampmeter_types::{Bytes, Rate, Time};

/// Units of a byte.
const PER_BYTE: i128 = 8 * PS_PER_SECOND as i128;

/// The remaining size of a flow. Negative if the flow should have completed by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemainingSize(i128);

impl RemainingSize {
    /// Lower bound of the remaining size of any flow.
    pub(crate) const MIN: Self = Self(i128::MIN);
    /// Upper bound of the remaining size of any flow.
    pub(crate) const MAX: Self = Self(i128::MAX);

    /// Returns this many bytes.
    #[inline]
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes.get() as i128 * PER_BYTE)
    }

    /// Whole bytes, rounded up; none if the flow is overdue.
    #[cfg(test)]
    pub fn bytes_ceil(self) -> Bytes {
        let bytes = (self.0.max(0) + PER_BYTE - 1) / PER_BYTE;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// The remaining size of a flow while it transmits: a falling line, fixed by its value at time
/// zero.
///
/// Lines of one rate never cross, so that flows of one rate stay in the order of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemainingLine(i128);

impl RemainingLine {
    /// Returns the line of a flow that transmits from `now` on.
    #[inline]
    pub(crate) fn new(remaining: RemainingSize, rate: Rate, now: Time) -> Self {
        Self(remaining.0 + bits_sent(rate, now))
    }

    /// Returns the remaining bytes at `now` (equation 1).
    #[inline]
    pub(crate) fn remaining(self, rate: Rate, now: Time) -> RemainingSize {
        RemainingSize(self.0 - bits_sent(rate, now))
    }

    /// Returns the time at which nothing remains, rounded up to a picosecond (equations 2 and 3).
    #[inline]
    pub(crate) fn end(self, rate: Rate) -> Time {
        let ps = (self.0.max(0) as u128).div_ceil(rate.as_bps().into());
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

/// Returns the amount that a rate sends from time zero to `now`.
#[inline]
fn bits_sent(rate: Rate, now: Time) -> i128 {
    i128::from(rate.as_bps()) * i128::from(now.as_ps())
}
