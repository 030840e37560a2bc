//! Detection of packets that arrive in quick succession.
//!
//! A node that handles each packet as it arrives makes several system calls per packet, and answers
//! each with a datagram. Under load it is cheaper to batch packets first, as interfaces coalesce
//! interrupts. Requests that are answered one by one are too few for that, and are handled at once.

use rampmeter_types::{Span, Time};

/// Length of the period over which packets are counted.
const PERIOD: Span = Span::from_us(100);
/// Number of packets in a period that counts as many: a sixth of those that fill a link of 10
/// Gbit/s.
const PACKETS_MANY: usize = 16;
/// Number of packets below which an iteration has received all that had arrived.
const PACKETS_FEW: usize = 8;

/// Counts packets that arrive.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// End of the current period.
    period_end: Time,
    /// Packets of the period before, and of the current one.
    counts: [usize; 2],
    /// Packets of the latest iteration.
    latest: usize,
}

impl Arrivals {
    /// Counts the packets of an iteration.
    pub(super) fn count(&mut self, now: Time, n: usize) {
        if now >= self.period_end {
            let is_next = now < self.period_end + PERIOD;
            self.counts = [if is_next { self.counts[1] } else { 0 }, 0];
            self.period_end = now + PERIOD;
        }
        self.counts[1] += n;
        self.latest = n;
    }

    /// Returns true if packets arrive at a high rate.
    pub(super) fn are_many(&self) -> bool {
        self.counts[0].max(self.counts[1]) >= PACKETS_MANY
    }

    /// Returns true if packets arrive at a high rate, and the latest iteration has received all of
    /// them.
    pub(super) fn are_taken(&self) -> bool {
        self.are_many() && self.latest < PACKETS_FEW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn requests_one_by_one_are_few() {
        let mut arrivals = Arrivals::default();
        for us in (0..10_000).step_by(10) {
            arrivals.count(at(us), 1);
            assert!(!arrivals.are_many());
        }
    }

    #[test]
    fn load_is_high_until_a_period_without_packets_ends() {
        let mut arrivals = Arrivals::default();
        let mut is_taken_after = |us, n| {
            arrivals.count(at(us), n);
            (arrivals.are_many(), arrivals.are_taken())
        };
        assert_eq!(is_taken_after(1_000, 16), (true, false));
        assert_eq!(is_taken_after(1_050, 7), (true, true));
        assert_eq!(is_taken_after(1_150, 0), (true, true));
        assert_eq!(is_taken_after(1_250, 0), (false, false));
        assert_eq!(is_taken_after(1_260, 20), (true, false));
        assert_eq!(is_taken_after(1_500, 1), (false, false));
    }
}
