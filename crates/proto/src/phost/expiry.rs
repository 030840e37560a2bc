//! Expired tokens of a flow at its destination, which count towards its downgrading (algorithm 2).

use std::collections::VecDeque;

use rampmeter_types::Time;

/// Expired tokens of a flow, by the time since they were sent.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// Times at which the tokens below a number expire, for those that have not.
    due: VecDeque<(Time, u32)>,
    /// Tokens below this number have expired or been answered.
    pub(super) expired_end: u32,
}

impl Expiry {
    /// Tokens below `end` expire at an instant, but not before earlier ones.
    pub(super) fn push(&mut self, at: Time, end: u32) {
        let earlier = self.due.back().map_or(Time::ZERO, |&(at, _)| at);
        self.due.push_back((at.max(earlier), end));
    }

    /// Returns the number of expired tokens from `seen` on.
    pub(super) fn expired(&mut self, now: Time, seen: u32) -> u32 {
        while let Some(&(at, end)) = self.due.front()
            && at <= now
        {
            self.due.pop_front();
            self.expired_end = end;
        }
        self.expired_end.saturating_sub(seen)
    }
}
