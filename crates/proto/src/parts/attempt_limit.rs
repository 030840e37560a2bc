//! Limits of a sender that keeps trying although nothing answers.
//!
//! A number of attempts alone is a bad limit. Attempts follow one another in round trips. So a peer
//! that stalls for half a second would fail every message if round trips are short. A time alone is
//! bad in simulations, whose time scales with the network. So both limits must be exceeded, and
//! simulations set the time to zero.

use rampmeter_core::{FabricFacts, Span};

/// Maximum number of attempts where the time decides.
const ATTEMPTS_MAX: u32 = 10_000;

/// Limits that must both be exceeded before a message fails for lack of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimit {
    /// Attempts without an answer.
    pub attempts: u32,
    /// Time since the first of these attempts.
    pub time: Span,
}

impl AttemptLimit {
    /// Combines `attempts-max` of a configuration with the patience of the site. Where there is a
    /// patience, it decides.
    pub fn new(attempts: u32, facts: &FabricFacts) -> Self {
        let time = facts.patience;
        let most = if time > Span::ZERO { ATTEMPTS_MAX } else { u32::MAX };
        Self { attempts: attempts.min(most), time }
    }

    /// Returns true if `attempts` without an answer, the first of them `elapsed` ago, are too many.
    pub fn is_over(&self, attempts: u32, elapsed: Span) -> bool {
        attempts > self.attempts && elapsed >= self.time
    }

    /// Interval to the attempt after number `attempts`: `interval`, doubled with each attempt
    /// beyond the limit, up to an eighth of the time. A peer that returns is found soon compared
    /// with its absence, and one that does not return costs few packets.
    pub fn interval(&self, interval: Span, attempts: u32) -> Span {
        let doublings = attempts.saturating_sub(self.attempts).min(16);
        (interval * (1 << doublings)).min(interval.max(self.time / 8))
    }

    /// Time after which a receiver may forget a flow of an unresponsive sender. `by_attempts` is
    /// that time if the number of attempts alone counts. A sender that keeps trying is never
    /// forgotten.
    pub fn forget_after(&self, by_attempts: Span) -> Span {
        by_attempts + (self.time + self.time / 8) * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: AttemptLimit = AttemptLimit { attempts: 24, time: Span::from_us(10_000_000) };
    const SIMULATED: AttemptLimit = AttemptLimit { attempts: 24, time: Span::ZERO };
    const INTERVAL: Span = Span::from_us(3_200);

    #[test]
    fn a_pause_of_half_a_second_is_survived_whatever_the_round_trip() {
        assert!(!HOST.is_over(u32::MAX, Span::from_us(9_999_999)));
        assert!(HOST.is_over(25, Span::from_us(10_000_000)));
        assert!(!HOST.is_over(24, Span::from_us(60_000_000)));
        assert!(SIMULATED.is_over(25, Span::ZERO) && !SIMULATED.is_over(24, Span::ZERO));
    }

    #[test]
    fn attempts_become_rare_and_stay_within_the_time() {
        assert_eq!(SIMULATED.interval(INTERVAL, 24), INTERVAL);
        let (mut elapsed, mut attempts) = (Span::ZERO, 0);
        while !HOST.is_over(attempts + 1, elapsed) {
            attempts += 1;
            elapsed += HOST.interval(INTERVAL, attempts);
        }
        assert!(attempts < 60, "{attempts} attempts");
        assert!(elapsed < HOST.forget_after(Span::ZERO) / 2, "{elapsed}");
    }
}
