//! Requests and answers (Homa §3.1): an answer acknowledges its request.
//!
//! Messages of hosts have no names, so that pairs are found by order. A message for a host answers
//! the oldest message from it that is not answered yet. A message without an answer for
//! [`Homa::answer_timeout`](super::Homa::answer_timeout) is acknowledged like any other message.

use std::collections::VecDeque;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId, Time};

use crate::toolkit::Announcement;

/// The requests of one host, those that it has sent and those that it has to answer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Requests that have arrived and have no answer, by sender, oldest first.
    unanswered: IdMap<u32, VecDeque<Announcement>>,
    /// Time at which each of them, answered or not, must be acknowledged: in order.
    due: VecDeque<(Time, NodeId, u32)>,
    /// Requests sent that are neither answered nor acknowledged, by receiver and number: their
    /// slots.
    open: IdMap<(u32, u32), (u32, MsgId)>,
}

impl Requests {
    /// Requests sent that have no answer.
    pub(super) fn n_open(&self) -> usize {
        self.open.len()
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.due.front().map_or(Time::NEVER, |&(at, ..)| at)
    }

    /// Notes a request that is sent.
    pub(super) fn open(&mut self, dst: NodeId, flow: u32, slot: (u32, MsgId)) {
        self.open.insert((dst.get(), flow), slot);
    }

    /// Closes a request. Returns its slot, if it was open.
    pub(super) fn close(&mut self, dst: NodeId, flow: u32) -> Option<(u32, MsgId)> {
        self.open.remove(&(dst.get(), flow))
    }

    /// Handles a request. It is acknowledged at `until` if it has no answer by then.
    pub(super) fn on_request(&mut self, until: Time, announcement: Announcement) {
        self.unanswered.entry(announcement.src.get()).or_default().push_back(announcement);
        self.due.push_back((until, announcement.src, announcement.flow));
    }

    /// Returns the request that a message for `dst` answers.
    pub(super) fn take_answered(&mut self, dst: NodeId) -> Option<Announcement> {
        let unanswered_of = self.unanswered.get_mut(&dst.get())?;
        let of = unanswered_of.pop_front();
        if unanswered_of.is_empty() {
            self.unanswered.remove(&dst.get());
        }
        of
    }

    /// Returns a request that has waited for its answer for long enough.
    pub(super) fn next_due(&mut self, now: Time) -> Option<Announcement> {
        while self.deadline() <= now {
            let (_, src, flow) = self.due.pop_front()?;
            let Some(unanswered_of) = self.unanswered.get_mut(&src.get()) else { continue };
            if unanswered_of.front().is_some_and(|of| of.flow == flow) {
                return self.take_answered(src);
            }
        }
        None
    }

    /// Removes the requests of a host that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.unanswered.remove(&peer.get());
        self.due.retain(|&(_, src, _)| src != peer);
        self.open.retain(|&(dst, _), _| dst != peer.get());
    }
}
