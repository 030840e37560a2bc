//! Origins of clocks.
//!
//! Each host's clock has its own origin, since the range of [`Time`] is less than the time since
//! the year 1970. If hosts refer to rounds or slots, protocols number these from an instant that
//! all hosts share. That requires only the origin of a host's own clock, none of its peers.

use crate::units::{Span, Time};

/// Instant at which a clock shows [`Time::ZERO`], in nanoseconds since an instant that all nodes
/// share: 1970, or the start of their machine. Zero in simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOrigin(u64);

impl ClockOrigin {
    /// Returns an origin `ns` nanoseconds after the instant that all nodes share.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the instant that all nodes share.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    fn ps(self, at: Time) -> u128 {
        u128::from(self.0) * 1_000 + u128::from(at.as_ps())
    }

    /// Returns the number of the interval of `length` in which `at` is.
    pub fn interval(self, at: Time, length: Span) -> u64 {
        (self.ps(at) / u128::from(length.as_ps())) as u64
    }

    /// Returns the number of the first interval of `length` that starts at `at` or later.
    pub fn next_interval(self, at: Time, length: Span) -> u64 {
        self.ps(at).div_ceil(u128::from(length.as_ps())) as u64
    }

    /// Returns the start of an interval of `length`: [`Time::ZERO`] for one before the origin, and
    /// [`Time::NEVER`] for one beyond the clock's range.
    pub fn interval_start(self, number: u64, length: Span) -> Time {
        let since = u128::from(number) * u128::from(length.as_ps());
        let since = since.saturating_sub(self.ps(Time::ZERO));
        u64::try_from(since).map_or(Time::NEVER, Time::from_ps)
    }

    /// Returns the picoseconds from the shared instant to `at`, modulo 2^64. Stamps of hosts can be
    /// compared if they are less than 106 days apart: by their difference modulo 2^64.
    pub fn stamp(self, at: Time) -> u64 {
        self.ps(at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY_NS: u64 = 86_400 * 1_000_000_000;

    proptest! {
        /// Clocks with any origins number intervals identically, and agree on their starts.
        #[test]
        fn clocks_with_different_origins_agree(
            days in prop::array::uniform2(0u64..200),
            ahead_ps in 0u64..1_000_000_000_000_000,
            length_ps in 1_000u64..1_000_000_000,
        ) {
            // At the same instant, 20 200 days after 1970.
            let clocks = days.map(|days| {
                let at = Time::from_ps((200 - days) * DAY_NS * 1_000 + ahead_ps);
                (ClockOrigin::from_ns((20_000 + days) * DAY_NS), at)
            });
            let length = Span::from_ps(length_ps);
            let [a, b] = clocks.map(|(origin, at)| {
                let next = origin.next_interval(at, length);
                let start = origin.interval_start(next, length);
                assert!(start >= at && start < at + length);
                assert!(origin.interval_start(origin.interval(at, length), length) <= at);
                (next, start - at, origin.interval(at, length), origin.stamp(at))
            });
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn instants_outside_the_range_of_a_clock_saturate() {
        let origin = ClockOrigin::from_ns(20_000 * DAY_NS);
        assert_eq!(origin.interval_start(1, Span::from_us(1)), Time::ZERO);
        assert_eq!(origin.interval_start(u64::MAX, Span::from_us(1)), Time::NEVER);
    }
}
