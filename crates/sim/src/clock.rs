//! Host clocks that start apart and drift.
//!
//! An endpoint has the clock of its host only: every `now` that it receives and every deadline that
//! it returns is local. The simulator converts.

use rampmeter_types::{Purpose, Rng, Span, Time};

/// Maximum offset and drift of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct ClockSpec {
    /// A clock starts ahead of the simulator's by a uniform time up to this.
    pub offset_max: Span,
    /// A clock runs fast or slow by a uniform rate up to this many parts per million.
    pub drift_ppm_max: f64,
}

/// The clock of one host: local = now + offset + now * ppb / 10^9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct HostClock {
    offset: u64,
    ppb: i64,
}

impl HostClock {
    pub(crate) fn draw(spec: &ClockSpec, host: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed, u64::from(host), Purpose::Clock);
        let offset = (rng.uniform_unit() * spec.offset_max.as_ps() as f64) as u64;
        let ppb = ((rng.uniform_unit() * 2.0 - 1.0) * spec.drift_ppm_max * 1e3) as i64;
        Self { offset, ppb }
    }

    /// Returns the local reading at `now`.
    #[inline]
    pub(crate) fn local(self, now: Time) -> Time {
        if self == Self::default() {
            return now;
        }
        let ps = now.as_ps();
        let drift = (i128::from(ps) * i128::from(self.ppb)).div_euclid(1_000_000_000);
        Time::from_ps((i128::from(ps + self.offset) + drift) as u64)
    }

    /// Returns the first instant at which the clock reads `local` or later.
    #[inline]
    pub(crate) fn global(self, local: Time) -> Time {
        if self == Self::default() || local == Time::NEVER {
            return local;
        }
        let Some(elapsed) = local.as_ps().checked_sub(self.offset) else { return Time::ZERO };
        let per = i128::from(1_000_000_000 + self.ppb);
        let guess = (i128::from(elapsed) * 1_000_000_000).div_euclid(per) as u64;
        let mut instant = Time::from_ps(guess.saturating_sub(1));
        while self.local(instant) < local {
            instant += Span::from_ps(1);
        }
        instant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn global_is_the_first_instant_that_reads_local(
            offset in 0u64..1_000_000_000,
            ppb in -500_000i64..500_000,
            ps in 0u64..100_000_000_000_000,
        ) {
            let clock = HostClock { offset, ppb };
            let local = Time::from_ps(ps);
            let instant = clock.global(local);
            prop_assert!(clock.local(instant) >= local);
            if instant > Time::ZERO {
                let before = Time::from_ps(instant.as_ps() - 1);
                prop_assert!(clock.local(before) < local);
            }
        }
    }
}
