//! Packets that arrive at a receiver without its request, and wait at its link.

use rampmeter_core::{Span, Time};

/// Time at which a host's link has carried all announced unscheduled packets. Until then those that
/// are missing may wait at the last port, so they are not taken for lost while packets arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unscheduled {
    until: Time,
    arrived: Time,
}

impl Unscheduled {
    /// Records that packets are announced which the link carries in `time`.
    pub fn announce(&mut self, now: Time, time: Span) {
        self.until = self.until.max(now) + time;
    }

    /// Records that a packet has arrived.
    #[inline]
    pub fn see(&mut self, now: Time) {
        self.arrived = now;
    }

    /// Returns the time until which missing packets may wait at the last port, `now` at the
    /// earliest. They do not if no packet has arrived for `idle`. The link is then looked at again
    /// after `idle`.
    pub fn may_wait_until(&self, now: Time, idle: Span) -> Time {
        match now.saturating_since(self.arrived) < idle {
            true => self.until.max(now).min(now + idle),
            false => now,
        }
    }

    /// Returns the time that the link still needs for all packets announced so far.
    #[inline]
    pub fn left(&self, now: Time) -> Span {
        self.until.saturating_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_all_announced_packets() {
        let (mut link, at) = (Unscheduled::default(), |us| Time::ZERO + Span::from_us(us));
        assert_eq!(link.left(at(5)), Span::ZERO);
        link.announce(at(10), Span::from_us(4));
        link.announce(at(11), Span::from_us(4));
        assert_eq!(link.left(at(12)), Span::from_us(6));
        link.announce(at(30), Span::from_us(4));
        assert_eq!(link.left(at(31)), Span::from_us(3));
    }

    #[test]
    fn packets_wait_while_others_arrive() {
        let (mut link, at) = (Unscheduled::default(), |us| Time::ZERO + Span::from_us(us));
        let idle = Span::from_us(5);
        link.announce(at(10), Span::from_us(20));
        link.see(at(12));
        assert_eq!(link.may_wait_until(at(13), idle), at(18));
        assert_eq!(link.may_wait_until(at(17), idle), at(17));
        link.see(at(28));
        assert_eq!(link.may_wait_until(at(28), idle), at(30));
        assert_eq!(link.may_wait_until(at(32), idle), at(32));
    }
}
