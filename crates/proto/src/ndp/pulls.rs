//! The pull queue of a receiver: which flow is pulled from next (NDP, section 3).

use std::collections::{BTreeSet, VecDeque};

use super::config::PullOrder;

/// Flows that have pulls to send, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct PullQueue {
    /// Round robin: slot, and the entry's number in `FlowPulls::entry`.
    round_robin: VecDeque<(u32, u32)>,
    /// Flows by missing packets, then by slot.
    shortest: BTreeSet<(u32, u32)>,
    entries: u32,
}

/// The pulls of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowPulls {
    /// Pulls that wait to be sent.
    pub(super) pulls: u32,
    /// Place in the queue.
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// The flow waits for no pull.
    #[default]
    Unqueued,
    /// The flow is in the round-robin queue, by the number of its entry.
    RoundRobin(u32),
    /// The flow is among flows with this many missing packets.
    ByMissing(u32),
}

impl PullQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.round_robin.is_empty() && self.shortest.is_empty()
    }

    /// Puts a flow with `missing` packets into the queue, or changes its place.
    pub(super) fn insert(
        &mut self,
        slot: u32,
        missing: u32,
        owed: &mut FlowPulls,
        order: PullOrder,
    ) {
        match (order, owed.place) {
            (PullOrder::Fair, Place::Unqueued) => {
                self.entries = self.entries.wrapping_add(1);
                owed.place = Place::RoundRobin(self.entries);
                self.round_robin.push_back((slot, self.entries));
            }
            (PullOrder::Fair, _) => {}
            (PullOrder::ShortestFirst, place) => {
                if let Place::ByMissing(before) = place {
                    self.shortest.remove(&(before, slot));
                }
                owed.place = Place::ByMissing(missing);
                self.shortest.insert((missing, slot));
            }
        }
    }

    /// Takes a flow out of the queue.
    pub(super) fn remove(&mut self, slot: u32, owed: &mut FlowPulls) {
        if let Place::ByMissing(before) = owed.place {
            self.shortest.remove(&(before, slot));
        }
        // An entry of the round-robin queue is stale from now on, as its number is not the flow's
        // any more.
        owed.place = Place::Unqueued;
    }

    /// Removes the flow that had `owed`.
    pub(super) fn forget(&mut self, slot: u32, owed: &FlowPulls) {
        if let Place::ByMissing(missing) = owed.place {
            self.shortest.remove(&(missing, slot));
        }
    }

    /// Returns the next flow, and removes it from the queue. `owed` finds the pulls of the flow in
    /// a slot.
    pub(super) fn pop<'a>(&mut self, owed: impl Fn(u32) -> Option<&'a FlowPulls>) -> Option<u32> {
        while let Some((slot, entry)) = self.round_robin.pop_front() {
            if owed(slot).is_some_and(|o| o.place == Place::RoundRobin(entry)) {
                return Some(slot);
            }
        }
        self.shortest.pop_first().map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(order: PullOrder, missing: &[u32]) -> (PullQueue, Vec<FlowPulls>) {
        let (mut queue, mut flows) =
            (PullQueue::default(), vec![FlowPulls::default(); missing.len()]);
        for (slot, &missing) in missing.iter().enumerate() {
            queue.insert(slot as u32, missing, &mut flows[slot], order);
        }
        (queue, flows)
    }

    fn drain(queue: &mut PullQueue, flows: &mut [FlowPulls]) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(slot) = queue.pop(|slot| flows.get(slot as usize)) {
            queue.remove(slot, &mut flows[slot as usize]);
            order.push(slot);
        }
        order
    }

    #[test]
    fn a_fair_queue_serves_flows_in_the_order_in_which_they_enter() {
        let (mut queue, mut flows) = queue(PullOrder::Fair, &[9, 1, 5]);
        // A flow that re-enters keeps its place; one that was removed loses it.
        queue.insert(0, 8, &mut flows[0], PullOrder::Fair);
        queue.remove(1, &mut flows[1]);
        queue.insert(1, 1, &mut flows[1], PullOrder::Fair);
        assert_eq!(drain(&mut queue, &mut flows), [0, 2, 1]);
        assert!(queue.is_empty());
    }

    #[test]
    fn flows_are_ordered_by_their_currently_missing_packets() {
        let (mut queue, mut flows) = queue(PullOrder::ShortestFirst, &[9, 1, 5]);
        queue.insert(0, 3, &mut flows[0], PullOrder::ShortestFirst);
        assert_eq!(drain(&mut queue, &mut flows), [1, 0, 2]);
        assert!(queue.is_empty());
    }
}
