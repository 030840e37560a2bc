//! Clocks of hosts.
//!
//! Protocols that work in rounds or slots want clocks that agree. On one machine the monotonic
//! clock is the same for all processes and namespaces. Between machines the time of day is, as far
//! as NTP or PTP make it so; a node reads it once, when it starts, and then follows the monotonic
//! clock, so that its time never jumps.

use rampmeter_core::{Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};
use thiserror::Error;

/// Where a node's time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockSource {
    /// Time since the machine started: for nodes that share one machine.
    Monotonic,
    /// Time of day since the latest first of January or July (UTC), so that 213 days, the range of
    /// [`Time`], leave a month to nodes that run across the change; those that start after it are
    /// out of step with them. [`Clock::epoch`] tells them apart, and nodes compare theirs.
    #[default]
    TimeOfDay,
}

/// Start of the half-year since which a clock counts, in days since 1970; `None` if it counts since
/// the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub Option<i64>);

impl Epoch {
    /// The epoch of a clock that starts now.
    pub fn now(source: ClockSource) -> Self {
        Self::at(nanoseconds(clock_gettime(ClockId::Realtime)), source)
    }

    fn at(day_ns: i128, source: ClockSource) -> Self {
        match source {
            ClockSource::Monotonic => Self(None),
            ClockSource::TimeOfDay => {
                let start_ns = day_ns - since_half_year_ns(day_ns);
                Self(Some((start_ns / DAY_NS) as i64))
            }
        }
    }
}

/// The clock of one node: monotonic, and shifted by what its source says.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds to add to the monotonic clock.
    shift_ns: i128,
    epoch: Epoch,
}

impl Clock {
    /// A clock that starts now.
    ///
    /// # Errors
    /// The machine has been up for too long to tell the time since then.
    pub fn start(source: ClockSource) -> Result<Self, ClockError> {
        let up_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
        Self::start_at(up_ns, nanoseconds(clock_gettime(ClockId::Realtime)), source)
    }

    /// A clock that starts when the machine has been up for `up_ns`, at a time of day.
    fn start_at(up_ns: i128, day_ns: i128, source: ClockSource) -> Result<Self, ClockError> {
        match source {
            ClockSource::Monotonic if up_ns > LAST_NS => {
                Err(ClockError { days: (up_ns / DAY_NS) as u64 })
            }
            ClockSource::Monotonic => Ok(Self { shift_ns: 0, epoch: Epoch(None) }),
            ClockSource::TimeOfDay => {
                let shift_ns = since_half_year_ns(day_ns) - up_ns;
                Ok(Self { shift_ns, epoch: Epoch::at(day_ns, source) })
            }
        }
    }

    /// Returns since when the clock counts. Clocks of nodes with different epochs are months apart.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns true if the clock is about to reach the end of its range, at which it stands still.
    pub fn is_over(now: Time) -> bool {
        i128::from(now.as_ps() / 1_000) >= LAST_NS - MARGIN_NS
    }

    /// The time now.
    pub fn now(&self) -> Time {
        let ns = nanoseconds(clock_gettime(ClockId::Monotonic)) + self.shift_ns;
        Time::from_ps(ns.clamp(0, LAST_NS) as u64 * 1_000)
    }
}

/// Why a clock cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this machine has been up for {days} days, and time since its start can be told for 213")]
pub struct ClockError {
    /// How long the machine has been up.
    pub days: u64,
}

/// The last nanosecond that [`Time`] can tell.
const LAST_NS: i128 = ((u64::MAX - 1) / 1_000) as i128;
/// Rest of a clock's range at which a node that has it must end.
const MARGIN_NS: i128 = 3_600 * 1_000_000_000;
const DAY_NS: i128 = 86_400 * 1_000_000_000;

/// `span` as the system's calls want it, rounded up to a nanosecond.
pub(crate) fn timespec(span: Span) -> Timespec {
    let ns = span.as_ps().div_ceil(1_000);
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// The time of day, in nanoseconds since 1970.
pub fn since_1970_ns() -> u64 {
    u64::try_from(nanoseconds(clock_gettime(ClockId::Realtime))).unwrap_or_default()
}

fn nanoseconds(at: Timespec) -> i128 {
    i128::from(at.tv_sec) * 1_000_000_000 + i128::from(at.tv_nsec)
}

/// Nanoseconds since the latest first of January or July, of a time of day since 1970.
fn since_half_year_ns(ns: i128) -> i128 {
    let day = ns.div_euclid(DAY_NS);
    let mut start = 0;
    for year in 1970.. {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for days in [if is_leap { 182 } else { 181 }, 184] {
            if start + days > day {
                return ns - start * DAY_NS;
            }
            start += days;
        }
    }
    unreachable!("a year is found for every day")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_years_begin_in_january_and_july() {
        let day = |n: i128| n * DAY_NS;
        // 2024-01-01 is day 19723, 2024-07-01 day 19905, 2025-07-01 day 20270.
        assert_eq!(since_half_year_ns(day(19_723)), 0);
        assert_eq!(since_half_year_ns(day(19_904)), day(181));
        assert_eq!(since_half_year_ns(day(19_905)), 0);
        assert_eq!(since_half_year_ns(day(20_270) + 5), 5);
    }

    /// Clocks that start on both sides of New Year have different epochs, and all others the same.
    #[test]
    fn epochs_tell_clocks_of_two_half_years_apart() {
        let start = |ns| Clock::start_at(5, ns, ClockSource::TimeOfDay).unwrap().epoch();
        let new_year = 19_723 * DAY_NS;
        assert_eq!(start(new_year - 1), Epoch(Some(19_723 - 184)));
        assert_eq!(start(new_year), Epoch(Some(19_723)));
        assert_eq!(start(new_year + 181 * DAY_NS), Epoch(Some(19_723)));
        let monotonic = Clock::start_at(5, new_year, ClockSource::Monotonic).unwrap();
        assert_eq!(monotonic.epoch(), Epoch(None));
    }

    #[test]
    fn clocks_end_before_they_stand_still() {
        let at = |days: i128| Time::from_ps((days * DAY_NS) as u64 * 1_000);
        assert!(!Clock::is_over(at(213)));
        assert!(Clock::is_over(Time::from_ps(LAST_NS as u64 * 1_000)));
    }

    #[test]
    fn a_machine_that_has_been_up_for_too_long_has_the_time_of_day_only() {
        let start = |days: i128, source| Clock::start_at(days * DAY_NS, 20_000 * DAY_NS, source);
        assert!(start(213, ClockSource::Monotonic).is_ok());
        let error = start(214, ClockSource::Monotonic).unwrap_err();
        assert!(error.to_string().contains("up for 214 days"), "{error}");
        assert!(start(10_000, ClockSource::TimeOfDay).is_ok());
    }

    #[test]
    fn time_of_day_stays_within_the_range_of_time_and_never_goes_back() {
        let clock = Clock::start(ClockSource::TimeOfDay).unwrap();
        let (a, b) = (clock.now(), clock.now());
        assert!(a <= b && b < Time::from_ps(185 * 86_400 * 1_000_000_000_000));
    }
}
