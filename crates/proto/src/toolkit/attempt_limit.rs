//! Limits of a sender that keeps trying although nothing answers.
//!
//! A number of attempts alone is a bad limit. Attempts follow one another in round trips. So a peer
//! that stalls for half a second would fail every message if round trips are short. A time alone is
//! bad in simulations, whose time scales with the network. So both limits must be exceeded, and
//! simulations set the time to zero.

use rampmeter_types::{FabricFacts, Span};

/// Maximum number of attempts if the time is the limit.
const ATTEMPTS_MAX: u32 = 10_000;

/// The same of transports whose intervals double from the first attempt on.
const DOUBLING_MAX: u32 = 6;

/// Limits that must both be exceeded before a message fails for lack of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimit {
    /// Attempts without an answer.
    pub attempts: u32,
    /// Time since the first of these attempts.
    pub time: Span,
}

impl AttemptLimit {
    /// Combines `attempts-max` of a configuration with the patience of the site. If there is a
    /// patience, it decides.
    pub fn new(attempts: u32, facts: &FabricFacts) -> Self {
        let time = facts.abort_timeout_min;
        let most = if time > Span::ZERO { ATTEMPTS_MAX } else { u32::MAX };
        Self { attempts: attempts.min(most), time }
    }

    /// Combines them as [`AttemptLimit::new`], for intervals that double from the first attempt on.
    pub fn with_doubling(attempts: u32, facts: &FabricFacts) -> Self {
        let limit = Self::new(attempts, facts);
        let most = if limit.time > Span::ZERO { DOUBLING_MAX } else { u32::MAX };
        Self { attempts: limit.attempts.min(most), ..limit }
    }

    /// Returns an interval that has doubled from `first` on, up to an eighth of the time if there
    /// is one. So the time decides, not the interval to the last attempt.
    pub fn double_interval(&self, interval: Span, first: Span) -> Span {
        match self.time {
            Span::ZERO => interval,
            time => interval.min(first.max(time / 8)),
        }
    }

    /// Returns true if `attempts` without an answer, the first of them `elapsed` ago, are too many.
    pub fn is_exceeded(&self, attempts: u32, elapsed: Span) -> bool {
        attempts > self.attempts && elapsed >= self.time
    }

    /// Returns the interval to the attempt after number `attempts`: `interval`, doubled with each
    /// attempt beyond the limit, up to an eighth of the time. A peer that returns is found soon
    /// compared with its absence, and one that does not return costs few packets.
    pub fn interval(&self, interval: Span, attempts: u32) -> Span {
        let doublings = attempts.saturating_sub(self.attempts).min(16);
        (interval * (1 << doublings)).min(interval.max(self.time / 8))
    }

    /// Returns the time after which a receiver may forget a flow of an unresponsive sender.
    /// `by_attempts` is that time if the number of attempts alone counts. A sender that keeps
    /// trying is never forgotten.
    pub fn forget_timeout(&self, by_attempts: Span) -> Span {
        by_attempts + (self.time + self.time / 8) * 2
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_types::Rate;

    use super::*;

    const HOST: AttemptLimit = AttemptLimit { attempts: 24, time: Span::from_us(10_000_000) };
    const SIMULATED: AttemptLimit = AttemptLimit { attempts: 24, time: Span::ZERO };
    const INTERVAL: Span = Span::from_us(3_200);

    #[test]
    fn a_pause_of_half_a_second_is_survived_at_any_round_trip() {
        assert!(!HOST.is_exceeded(u32::MAX, Span::from_us(9_999_999)));
        assert!(HOST.is_exceeded(25, Span::from_us(10_000_000)));
        assert!(!HOST.is_exceeded(24, Span::from_us(60_000_000)));
        assert!(SIMULATED.is_exceeded(25, Span::ZERO) && !SIMULATED.is_exceeded(24, Span::ZERO));
    }

    #[test]
    fn intervals_that_double_end_soon_after_the_time() {
        let facts = |abort_timeout_min| FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            core_rate: None,
            data_rtt: Span::from_us(1_000),
            control_rtt: Span::from_us(500),
            abort_timeout_min,
        };
        assert_eq!(AttemptLimit::with_doubling(15, &facts(Span::ZERO)).attempts, 15);
        let limit = AttemptLimit::with_doubling(15, &facts(Span::from_us(2_000_000)));
        let (mut elapsed, mut attempts, first) = (Span::ZERO, 0, Span::from_us(64_000));
        while !limit.is_exceeded(attempts + 1, elapsed) {
            attempts += 1;
            elapsed += limit.double_interval(first * (1 << attempts.min(8)), first);
        }
        assert!(elapsed <= Span::from_us(2_250_000), "{elapsed}");
        assert_eq!(SIMULATED.double_interval(INTERVAL * 64, INTERVAL), INTERVAL * 64);
    }

    #[test]
    fn attempts_become_rare_and_stay_within_the_time() {
        assert_eq!(SIMULATED.interval(INTERVAL, 24), INTERVAL);
        let (mut elapsed, mut attempts) = (Span::ZERO, 0);
        while !HOST.is_exceeded(attempts + 1, elapsed) {
            attempts += 1;
            elapsed += HOST.interval(INTERVAL, attempts);
        }
        assert!(attempts < 60, "{attempts} attempts");
        assert!(elapsed < HOST.forget_timeout(Span::ZERO) / 2, "{elapsed}");
    }
}
