//! Pacer: limits the sending rate to the host's rate.

use rampmeter_types::{Bytes, Rate, Span, Time};

/// Paces by absolute instants, so that late wake-ups do not reduce the average rate: delays of up
/// to a burst are compensated for.
#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    burst: Span,
    idle_at: Time,
}

impl Pacer {
    /// Creates a pacer for a link of `rate`, on which at most `burst` bytes are sent at once.
    pub(crate) fn new(rate: Rate, burst: Bytes) -> Self {
        Self { rate, burst: rate.tx_time(burst), idle_at: Time::ZERO }
    }

    /// Changes the rate and the burst.
    pub(crate) fn set(&mut self, rate: Rate, burst: Bytes) {
        *self = Self { idle_at: self.idle_at, ..Self::new(rate, burst) };
    }

    /// Returns the time at which the next packet may be sent.
    pub(crate) fn free_at(&self) -> Time {
        self.idle_at
    }

    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.idle_at <= now
    }

    /// Returns the earliest time from which delays are compensated for.
    pub(crate) fn earliest(&self, now: Time) -> Time {
        Time::from_ps(now.as_ps().saturating_sub(self.burst.as_ps()))
    }

    /// Charges a packet that is sent.
    pub(crate) fn charge(&mut self, now: Time, bytes: usize) {
        self.idle_at =
            self.idle_at.max(self.earliest(now)) + self.rate.tx_time(Bytes::new(bytes as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wake_ups_are_made_up_for_and_idle_time_is_not() {
        // 1500 bytes take 120 us.
        let rate = Rate::from_bps(100_000_000).unwrap();
        let mut pacer = Pacer::new(rate, Bytes::new(3_000));
        let mut sent = 0;
        for late in 1..=1_000u64 {
            let now = Time::from_ps(late * 170_000_000);
            while pacer.is_free(now) {
                pacer.charge(now, 1_500);
                sent += 1;
            }
        }
        // 170 ms hold 1416 packets; the start adds a burst of 2 and the packet of the first
        // instant.
        assert!((1_416..=1_419).contains(&sent), "{sent}");
        let later = Time::from_ps(10 * 170_000_000_000);
        let burst = std::iter::from_fn(|| pacer.is_free(later).then(|| pacer.charge(later, 1_500)));
        assert_eq!(burst.count(), 3);
    }
}
