//! Flows of which the most preferred is served next, while others wait.

use rampmeter_types::Time;
use rampmeter_types::collections::{HeapPositions, KeyedHeap};

/// Flows by slot: those that may be served, with the lowest key first, and those that wait until an
/// instant. Several of these may share one [`HeapPositions`]; a flow is in one of them at most. A
/// lookup takes constant time, a change O(log n).
#[derive(Clone, Debug)]
pub struct Candidates<K> {
    ready: KeyedHeap<K>,
    waiting: KeyedHeap<Time>,
}

impl<K> Default for Candidates<K> {
    fn default() -> Self {
        Self { ready: KeyedHeap::default(), waiting: KeyedHeap::default() }
    }
}

impl<K: Ord + Copy> Candidates<K> {
    /// Returns true if there is no flow.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.waiting.is_empty()
    }

    /// Returns the key and the slot of the flow with the lowest key of those that may be served.
    /// Ties are resolved to the lowest slot.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.ready.first()
    }

    /// Returns the time at which the first wait ends; [`Time::NEVER`] if no flow waits.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.waiting.first().map_or(Time::NEVER, |(until, _)| until)
    }

    /// Returns the slot of a flow that need not wait any more. It waits on until the caller wakes
    /// it.
    #[inline]
    pub fn due(&self, now: Time) -> Option<u32> {
        self.waiting.first().filter(|&(until, _)| until <= now).map(|(_, slot)| slot)
    }

    /// Returns the key of the flow in `slot`, if it may be served.
    #[inline]
    pub fn key(&self, places: &HeapPositions, slot: u32) -> Option<K> {
        self.ready.get(places, slot)
    }

    /// Puts a flow among those that may be served. Returns the key that it had there before.
    #[inline]
    pub fn make_ready(&mut self, places: &mut HeapPositions, slot: u32, key: K) -> Option<K> {
        let before = self.ready.update_key(places, slot, key);
        if before.is_none() {
            self.waiting.remove(places, slot);
            self.ready.set(places, slot, key);
        }
        before
    }

    /// Makes a flow wait until an instant. Returns the key that it had among those that may be
    /// served.
    pub fn wait(&mut self, places: &mut HeapPositions, slot: u32, until: Time) -> Option<K> {
        let before = self.ready.remove(places, slot);
        self.waiting.set(places, slot, until);
        before
    }

    /// Drops a flow. Returns the key that it had among those that may be served.
    pub fn remove(&mut self, places: &mut HeapPositions, slot: u32) -> Option<K> {
        let before = self.ready.remove(places, slot);
        if before.is_none() {
            self.waiting.remove(places, slot);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Wake(u32),
        Wait(u64),
        Remove,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u32..9).prop_map(Step::Wake),
            (0u64..9).prop_map(Step::Wait),
            Just(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn the_lowest_key_is_first_and_waits_end_in_order(
            steps in proptest::collection::vec((0u32..12, step()), 0..200),
            now in 0u64..9,
        ) {
            let (mut candidates, mut places) = (Candidates::default(), HeapPositions::default());
            let (mut awake, mut waiting) = (BTreeMap::new(), BTreeMap::new());
            for (slot, step) in steps {
                waiting.remove(&slot);
                let before = awake.remove(&slot);
                let outcome = match step {
                    Step::Wake(key) => {
                        awake.insert(slot, key);
                        candidates.make_ready(&mut places, slot, key)
                    }
                    Step::Wait(until) => {
                        waiting.insert(slot, until);
                        candidates.wait(&mut places, slot, Time::from_ps(until))
                    }
                    Step::Remove => candidates.remove(&mut places, slot),
                };
                prop_assert_eq!(outcome, before);
                prop_assert_eq!(candidates.key(&places, slot), awake.get(&slot).copied());
            }
            let lowest = awake.iter().map(|(&slot, &key)| (key, slot)).min();
            prop_assert_eq!(candidates.first(), lowest);
            let next = waiting.iter().map(|(&slot, &until)| (until, slot)).min();
            let deadline = next.map_or(Time::NEVER, |(until, _)| Time::from_ps(until));
            prop_assert_eq!(candidates.deadline(), deadline);
            let due = next.filter(|&(until, _)| until <= now).map(|(_, slot)| slot);
            prop_assert_eq!(candidates.due(Time::from_ps(now)), due);
            prop_assert_eq!(candidates.is_empty(), awake.is_empty() && waiting.is_empty());
        }
    }
}
