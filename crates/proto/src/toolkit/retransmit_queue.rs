//! Packets that a sender repeats for many flows: announcements without an answer, probes of held
//! messages. They are sent at intervals, so that those of 65 536 flows take a small part of a link
//! and not all of it.

use std::collections::VecDeque;

use rampmeter_types::{Bytes, FabricFacts, Span, Time};

/// Number of repetitions that may be sent at once, after a pause. So a host with few flows repeats
/// without delay.
const BURST: u64 = 32;

/// Intervals that follow a probe for a flow that its receiver holds back. The receiver reports when
/// it accepts data. A probe only shows that its receiver still runs, and recovers from losses.
const PAUSED_GAPS: u64 = 4;

/// Returns the interval between short packets that a host repeats. It is the time of four full
/// ones, so that they take a few percent of its link. A thousand take less time than a receiver
/// needs to forget an unresponsive sender ([`forget_after`](super::forget_after)).
pub fn retransmit_gap(facts: &FabricFacts) -> Span {
    let full = facts.access_rate.tx_time(Bytes::new(1_500));
    (full * 4).min(facts.control_rtt / 2).max(Span::from_ps(1))
}

/// Queue of flows, in order, by keys. Those that a receiver holds back follow all others.
#[derive(Clone, Debug)]
pub(crate) struct RetransmitQueue<K> {
    flows: VecDeque<K>,
    paused: VecDeque<K>,
    /// Time at which the next would be sent if all had been sent at intervals.
    regular_at: Time,
    /// Time at which the next may be sent.
    opens_at: Time,
}

impl<K> Default for RetransmitQueue<K> {
    fn default() -> Self {
        let (flows, paused) = (VecDeque::new(), VecDeque::new());
        Self { flows, paused, regular_at: Time::ZERO, opens_at: Time::ZERO }
    }
}

impl<K> RetransmitQueue<K> {
    pub(crate) fn push(&mut self, key: K, is_held: bool) {
        let queue = if is_held { &mut self.paused } else { &mut self.flows };
        queue.push_back(key);
    }

    /// Returns the time at which [`Self::pop`] has something.
    pub(crate) fn next_at(&self) -> Time {
        let is_empty = self.flows.is_empty() && self.paused.is_empty();
        if is_empty { Time::NEVER } else { self.opens_at }
    }

    /// Returns the flow whose turn it is. If it repeats itself, [`Self::count`] follows.
    pub(crate) fn pop(&mut self, now: Time) -> Option<K> {
        if self.opens_at > now {
            return None;
        }
        self.flows.pop_front().or_else(|| self.paused.pop_front())
    }

    /// A flow repeats itself now, and the next one at least `gap` later, but for a burst.
    pub(crate) fn count(&mut self, now: Time, gap: Span, is_held: bool) {
        let gaps = if is_held { PAUSED_GAPS } else { 1 };
        self.regular_at = self.regular_at.max(now).saturating_add(gap * gaps);
        self.opens_at = Time::from_ps(self.regular_at.as_ps().saturating_sub(gap.as_ps() * BURST));
    }

    /// Sends none before `at`.
    pub(crate) fn postpone(&mut self, at: Time) {
        self.opens_at = self.opens_at.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Span = Span::from_us(10);

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Returns all that may be sent at `now`. None is held.
    fn leave(repeats: &mut RetransmitQueue<u32>, now: Time) -> Vec<u32> {
        let mut left = Vec::new();
        while let Some(key) = repeats.pop(now) {
            repeats.count(now, GAP, false);
            left.push(key);
        }
        left
    }

    #[test]
    fn a_burst_is_sent_at_once_and_the_others_at_intervals() {
        let mut repeats = RetransmitQueue::default();
        (0..1_000).for_each(|key| repeats.push(key, false));
        let burst = leave(&mut repeats, at(1_000)).len();
        assert_eq!(burst as u64, BURST + 1);
        let mut left = burst;
        let mut last = at(1_000);
        while repeats.next_at() != Time::NEVER {
            let now = repeats.next_at();
            assert_eq!(now - last, GAP);
            (last, left) = (now, left + leave(&mut repeats, now).len());
        }
        assert_eq!(left, 1_000);
        // After a pause there is another burst.
        (0..1_000).for_each(|key| repeats.push(key, false));
        assert_eq!(leave(&mut repeats, last + GAP * 1_000).len(), burst);
    }

    #[test]
    fn held_flows_follow_all_others() {
        let mut repeats = RetransmitQueue::default();
        repeats.push(1, true);
        repeats.push(2, false);
        repeats.push(3, false);
        assert_eq!(leave(&mut repeats, at(0)), [2, 3, 1]);
    }

    #[test]
    fn held_flows_repeat_at_four_times_the_interval() {
        let mut repeats = RetransmitQueue::default();
        (0..1_000).for_each(|key| repeats.push(key, true));
        let mut n_requested = 0;
        while repeats.next_at() <= at(10_000) {
            let now = repeats.next_at();
            repeats.pop(now).expect("1000 flows wait");
            repeats.count(now, GAP, true);
            n_requested += 1;
        }
        // A thousand intervals, and those of the burst.
        assert_eq!(n_requested, (1_000 + BURST) / PAUSED_GAPS + 1);
    }

    #[test]
    fn nothing_is_sent_before_its_deferred_time() {
        let mut repeats = RetransmitQueue::default();
        repeats.push(1, false);
        repeats.postpone(at(5));
        assert!(leave(&mut repeats, at(4)).is_empty());
        assert_eq!(repeats.next_at(), at(5));
        assert_eq!(leave(&mut repeats, at(5)), [1]);
    }
}
