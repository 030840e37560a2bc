//! Clocks of hosts.
//!
//! Protocols that work in rounds or slots need clocks that agree. On one machine the monotonic
//! clock is the same for all processes and namespaces. Between machines the time of day agrees as
//! well as NTP or PTP synchronise it. A node reads it once, when it starts, and then follows the
//! monotonic clock, so that its time never jumps.
//!
//! [`Time`] has a range of 213 days, less than the time since 1970. So a clock counts from a day
//! before its own start, and [`ClockOrigin`] is that instant. Endpoints use it to number rounds and
//! slots from 1970: nodes agree for any starting times.

use rampmeter_types::{ClockOrigin, Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};
use thiserror::Error;

/// Source of a node's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockSource {
    /// Time since the machine started: for nodes that share one machine.
    Monotonic,
    /// Time of day (UTC).
    #[default]
    TimeOfDay,
}

/// Clock of one node: monotonic, plus an offset that its source determines.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Offset from the monotonic clock in ns.
    shift_ns: i128,
    origin: ClockOrigin,
}

impl Clock {
    /// Starts a clock now.
    ///
    /// # Errors
    /// The machine has been up for longer than the clock's range.
    pub fn start(source: ClockSource) -> Result<Self, ClockError> {
        let up_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
        Self::start_at(up_ns, nanoseconds(clock_gettime(ClockId::Realtime)), source)
    }

    /// Starts a clock when the machine has been up for `up_ns`, at a time of day.
    fn start_at(up_ns: i128, day_ns: i128, source: ClockSource) -> Result<Self, ClockError> {
        match source {
            ClockSource::Monotonic if up_ns > LAST_NS => {
                Err(ClockError { days: (up_ns / DAY_NS) as u64 })
            }
            ClockSource::Monotonic => Ok(Self { shift_ns: 0, origin: ClockOrigin::default() }),
            ClockSource::TimeOfDay => {
                let origin_ns = u64::try_from(day_ns - BEFORE_NS).unwrap_or_default();
                let shift_ns = day_ns - i128::from(origin_ns) - up_ns;
                Ok(Self { shift_ns, origin: ClockOrigin::from_ns(origin_ns) })
            }
        }
    }

    /// Returns the instant from which the clock counts.
    pub fn origin(&self) -> ClockOrigin {
        self.origin
    }

    /// Returns true if the clock is about to reach the end of its range, at which it stops.
    pub fn is_near_end(now: Time) -> bool {
        i128::from(now.as_ps() / 1_000) >= LAST_NS - MARGIN_NS
    }

    /// Returns the time now.
    pub fn now(&self) -> Time {
        let ns = nanoseconds(clock_gettime(ClockId::Monotonic)) + self.shift_ns;
        Time::from_ps(ns.clamp(0, LAST_NS) as u64 * 1_000)
    }
}

/// Reason for which a clock cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this machine has been up for {days} days, but the clock supports at most 213")]
pub struct ClockError {
    /// Days for which the machine has been up.
    pub days: u64,
}

/// Last nanosecond in the range of [`Time`].
const LAST_NS: i128 = ((u64::MAX - 1) / 1_000) as i128;
/// Rest of a clock's range in ns at which its node must end.
const MARGIN_NS: i128 = 3_600 * 1_000_000_000;
/// Time from a clock's origin to its start in ns. Instants of peers whose clocks are behind by less
/// are in its range.
const BEFORE_NS: i128 = DAY_NS;
const DAY_NS: i128 = 86_400 * 1_000_000_000;

/// Converts `span` for system calls, rounded up to a nanosecond.
pub(crate) fn timespec(span: Span) -> Timespec {
    let ns = span.as_ps().div_ceil(1_000);
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Returns the time of day, in nanoseconds since 1970.
pub fn unix_time_ns() -> u64 {
    u64::try_from(nanoseconds(clock_gettime(ClockId::Realtime))).unwrap_or_default()
}

fn nanoseconds(at: Timespec) -> i128 {
    i128::from(at.tv_sec) * 1_000_000_000 + i128::from(at.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks that start years apart agree about the time since 1970.
    #[test]
    fn clocks_of_any_start_agree() {
        let since_1970_ps = |clock: Clock, up_ns: i128| {
            let at_ns = up_ns + clock.shift_ns;
            i128::from(clock.origin.as_ns()) * 1_000 + at_ns * 1_000
        };
        let start = |up_days, days| {
            let source = ClockSource::TimeOfDay;
            Clock::start_at(up_days * DAY_NS, days * DAY_NS, source).unwrap()
        };
        // 2024-01-01 is day 19723.
        let (before, after) = (start(10, 19_722), start(300, 19_724));
        // Two days later than the earlier of them.
        let now = 19_724 * DAY_NS * 1_000;
        assert_eq!(since_1970_ps(before, 12 * DAY_NS), now);
        assert_eq!(since_1970_ps(after, 300 * DAY_NS), now);
        let monotonic = Clock::start_at(5, 19_723 * DAY_NS, ClockSource::Monotonic).unwrap();
        assert_eq!(monotonic.origin(), ClockOrigin::default());
    }

    #[test]
    fn clocks_end_before_they_stand_still() {
        let at = |days: i128| Time::from_ps((days * DAY_NS) as u64 * 1_000);
        assert!(!Clock::is_near_end(at(213)));
        assert!(Clock::is_near_end(Time::from_ps(LAST_NS as u64 * 1_000)));
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
    fn time_of_day_starts_a_day_after_the_origin_and_never_decreases() {
        let clock = Clock::start(ClockSource::TimeOfDay).unwrap();
        let (a, b) = (clock.now(), clock.now());
        let day = Time::from_ps(DAY_NS as u64 * 1_000);
        assert!(day <= a && a <= b && b < day + Span::from_us(3_600_000_000));
    }
}
