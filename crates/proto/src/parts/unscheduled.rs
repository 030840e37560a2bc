//! Packets that arrive at a receiver without its request, and wait at its link.

use rampmeter_core::{Bytes, Span, Time};

use super::Announcement;

/// A flow as its first packets describe it: also its length, on which the time of unscheduled
/// packets depends.
#[derive(Clone, Copy, Debug)]
pub struct SizedFlow {
    /// The flow.
    pub of: Announcement,
    /// Its length.
    pub size: Bytes,
}

/// Time at which a host's link has carried all announced unscheduled packets. Until then those that
/// are missing may wait at their sources or at the last port, so they are not taken for lost while
/// others of them arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unscheduled {
    until: Time,
    arrived: Time,
}

impl Unscheduled {
    /// Records that packets are announced which the link carries in `time`.
    pub fn announce(&mut self, now: Time, time: Span) {
        self.arrived = now;
        self.until = self.until.max(now) + time;
    }

    /// Records that an unscheduled packet has arrived.
    #[inline]
    pub fn see(&mut self, now: Time) {
        self.arrived = now;
    }

    /// Returns the time that the link needs for all announced packets and further ones, which take
    /// `time`.
    #[inline]
    pub fn left_with(&self, now: Time, time: Span) -> Span {
        self.until.saturating_since(now) + time
    }

    /// Returns the time at which the link has carried all announced packets.
    pub fn until(&self) -> Time {
        self.until
    }

    /// Returns the time until which missing packets may arrive. It ends early if none has arrived
    /// for `idle`.
    pub fn end(&self, idle: Span) -> Time {
        self.until.min(self.arrived + idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_packets_are_awaited_while_others_arrive() {
        let (at, idle) = (|us| Time::ZERO + Span::from_us(us), Span::from_us(5));
        let mut link = Unscheduled::default();
        assert_eq!(link.end(idle), at(0));
        link.announce(at(10), Span::from_us(3));
        assert_eq!(link.end(idle), at(13));
        link.announce(at(11), Span::from_us(20));
        assert_eq!(link.end(idle), at(16));
        assert_eq!(link.left_with(at(11), Span::from_us(4)), Span::from_us(26));
        link.see(at(27));
        assert_eq!(link.end(idle), at(32));
        link.see(at(30));
        assert_eq!(link.end(idle), at(33));
    }
}
