//! Token bucket: limits the rate of computations with keys.

use rampmeter_types::{Span, Time};

/// A token bucket. A full one holds `most` tokens, and one token is added per `every`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    tokens: u64,
    capacity: u64,
    refill_interval: Span,
    /// Time up to which tokens have been added.
    refilled_at: Time,
}

impl TokenBucket {
    /// Returns a full bucket.
    pub(super) const fn new(refill_interval: Span, capacity: u64) -> Self {
        Self { tokens: capacity, capacity, refill_interval, refilled_at: Time::ZERO }
    }

    /// Takes a token; returns false if there is none.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let more = now.saturating_since(self.refilled_at).as_ps() / self.refill_interval.as_ps();
        self.tokens = self.tokens.saturating_add(more).min(self.capacity);
        self.refilled_at += self.refill_interval * more;
        let is_left = self.tokens > 0;
        self.tokens -= u64::from(is_left);
        is_left
    }

    /// Returns the time of the next token for an empty bucket; zero if there are tokens.
    pub(super) fn free_at(&self) -> Time {
        if self.tokens > 0 { Time::ZERO } else { self.refilled_at + self.refill_interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_limited_by_rate_and_burst() {
        let every = Span::from_us(1_000);
        let mut allowance = TokenBucket::new(every, 4);
        let start = Time::ZERO + every * 1_000;
        let taken = (0..10).filter(|_| allowance.take(start)).count();
        assert_eq!(taken, 4);
        assert_eq!(allowance.free_at(), start + every);
        // 100 ms in steps of 0.1 ms: one token a millisecond.
        let later = (1..=1_000).map(|n| start + Span::from_us(100) * n);
        assert_eq!(later.filter(|now| allowance.take(*now)).count(), 100);
    }
}
