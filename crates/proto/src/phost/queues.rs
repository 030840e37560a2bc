//! Pending flows of slow sources, in one queue for each source.
//!
//! A slow source gets a token each packet time of its link ([`super::pacing`]). Suppose that each
//! of its n flows had a wake-up time. All would wake for each token of the source, and n - 1 would
//! be put back: n steps a token. Here a source has one wake-up time. Its queue is closed until
//! then, and its flows are skipped together. An open queue is represented by its first flow. With n
//! flows a token takes O(log n) steps, and so does a packet.

use std::collections::BTreeMap;

use rampmeter_types::collections::{HeapPositions, KeyedHeap, Slab};
use rampmeter_types::{NodeId, Time};

use crate::toolkit::Candidates;

/// Preference among the flows of a tenant: the policy's measure, then the announcement.
pub(super) type Key = (u64, u64);

/// Flows of one slow source.
#[derive(Debug)]
struct SourceQueue {
    src: NodeId,
    flows: Candidates<Key>,
    /// Instant of the source's next token.
    next: Time,
    /// True if that instant has arrived. A queue opens when it has a flow that may have a token.
    is_open: bool,
}

/// Flows of slow sources, by source.
#[derive(Debug, Default)]
pub(super) struct SourceQueues {
    numbers: BTreeMap<NodeId, u32>,
    queues: Slab<SourceQueue>,
    /// Open queues with a flow that may have a token, by the first such flow.
    open: KeyedHeap<(Key, u32)>,
    open_positions: HeapPositions,
    /// Queues by the instant at which they open or a flow's wait ends.
    timers: KeyedHeap<Time>,
    timer_positions: HeapPositions,
}

impl SourceQueues {
    /// Returns true if there is no flow.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the key and the slot of the first flow that may have a token.
    #[inline]
    pub(super) fn first(&self) -> Option<(Key, u32)> {
        self.open.first().map(|(flow, _)| flow)
    }

    /// Returns the instant at which [`Self::wake`] has something to do, or [`Time::NEVER`].
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |(at, _)| at)
    }

    /// Changes the flows of `src`, whose next token is due at `next`.
    pub(super) fn change<R>(
        &mut self,
        src: NodeId,
        next: Time,
        change: impl FnOnce(&mut Candidates<Key>) -> R,
    ) -> R {
        let Self { numbers, queues, .. } = self;
        let new = || SourceQueue { src, flows: Candidates::default(), next, is_open: false };
        let number = *numbers.entry(src).or_insert_with(|| queues.insert(new()));
        let queue = &mut queues[number];
        queue.next = next;
        let result = change(&mut queue.flows);
        self.update(number);
        result
    }

    /// Closes the queue of `src` until its next token is due.
    pub(super) fn close(&mut self, src: NodeId, next: Time) {
        let Some(&number) = self.numbers.get(&src) else { return };
        let queue = &mut self.queues[number];
        (queue.next, queue.is_open) = (next, false);
        self.update(number);
    }

    /// Opens the queues that are due. Calls `wake` for each queue in which a flow may be due.
    pub(super) fn wake(&mut self, now: Time, mut wake: impl FnMut(&mut Candidates<Key>)) {
        while let Some((at, number)) = self.timers.first()
            && at <= now
        {
            let queue = &mut self.queues[number];
            queue.is_open |= queue.next <= now;
            wake(&mut queue.flows);
            self.update(number);
        }
    }

    /// Enters a queue under its first flow and its next instant, or removes it if it is empty.
    fn update(&mut self, number: u32) {
        let &SourceQueue { src, ref flows, next, is_open } = &self.queues[number];
        let first = flows.first();
        let opens = if is_open || first.is_none() { Time::NEVER } else { next };
        let at = flows.deadline().min(opens);
        if flows.is_empty() {
            self.numbers.remove(&src);
            self.queues.remove(number);
        }
        match first.filter(|_| is_open) {
            Some(first) => self.open.set(&mut self.open_positions, number, first),
            None => {
                self.open.remove(&mut self.open_positions, number);
            }
        }
        if at == Time::NEVER {
            self.timers.remove(&mut self.timer_positions, number);
        } else {
            self.timers.set(&mut self.timer_positions, number, at);
        }
    }
}
