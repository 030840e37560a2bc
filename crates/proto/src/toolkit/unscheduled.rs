//! Packets that arrive at a receiver without its request, and wait at its link.

use rampmeter_types::{Bytes, Span, Time};

use super::Announcement;

/// A flow as its first packets describe it: also its length, on which the time of unscheduled
/// packets depends.
#[derive(Clone, Copy, Debug)]
pub struct SizedFlow {
    /// The flow.
    pub announcement: Announcement,
    /// Length of the message.
    pub size: Bytes,
}

/// Time at which a host's link has carried all announced unscheduled packets. Until then those that
/// are missing may wait at their sources or at the last port, so they are not taken for lost while
/// others arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnscheduledTime {
    until: Time,
}

impl UnscheduledTime {
    /// Records that packets are announced which the link carries in `time`.
    pub fn announce(&mut self, now: Time, time: Span) {
        self.until = self.until.max(now) + time;
    }

    /// Returns the time that the link needs for all announced packets and further ones, which take
    /// `time`.
    #[inline]
    pub fn drain_time_with(&self, now: Time, time: Span) -> Span {
        self.until.saturating_since(now) + time
    }

    /// Returns the time at which the link has carried all announced packets.
    pub fn until(&self) -> Time {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_packets_follow_each_other_on_the_link() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut link = UnscheduledTime::default();
        assert_eq!(link.until(), at(0));
        link.announce(at(10), Span::from_us(3));
        link.announce(at(11), Span::from_us(20));
        assert_eq!(link.until(), at(33));
        assert_eq!(link.drain_time_with(at(11), Span::from_us(4)), Span::from_us(26));
        link.announce(at(40), Span::from_us(2));
        assert_eq!(link.until(), at(42));
        assert_eq!(link.drain_time_with(at(50), Span::from_us(4)), Span::from_us(4));
    }
}
