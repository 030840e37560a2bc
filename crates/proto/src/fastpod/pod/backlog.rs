//! Queue of items that a later packet with space carries: acknowledgements of messages, each once.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash};

use rampmeter_types::collections::IdHasher;
use rampmeter_types::wire::List;

/// Maximum length of the queue. A message whose acknowledgement does not fit is retransmitted, and
/// acknowledged then.
pub(crate) const WAITING_MAX: usize = 4_096;

/// A queue that holds no item twice, and at most [`WAITING_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct Backlog<T> {
    waiting: VecDeque<T>,
    known: HashSet<T, BuildHasherDefault<IdHasher>>,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), known: HashSet::default() }
    }
}

impl<T: Copy + Default + Eq + Hash> Backlog<T> {
    /// Enters an item at the end. Returns true if it waits now: false if there is no room.
    pub(crate) fn push(&mut self, item: T) -> bool {
        if self.known.contains(&item) {
            return true;
        }
        let has_room = self.waiting.len() < WAITING_MAX;
        if has_room {
            self.known.insert(item);
            self.waiting.push_back(item);
        }
        has_room
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes as many as a packet has room for, those that have waited longest.
    pub(crate) fn take<const N: usize>(&mut self) -> List<T, N> {
        let mut list = List::default();
        while let Some(item) = self.waiting.front()
            && list.push(*item)
        {
            self.known.remove(item);
            self.waiting.pop_front();
        }
        list
    }

    /// Keeps those for which `is_kept` holds.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.known.retain(&is_kept);
        self.waiting.retain(is_kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fastpod::wire::Ack;

    proptest! {
        /// Against a list that is searched.
        #[test]
        fn items_are_removed_in_order_and_once(
            steps in prop::collection::vec((0u8..4, 0u16..40), 1..400),
        ) {
            let mut backlog = Backlog::<Ack>::default();
            let mut all: Vec<Ack> = Vec::new();
            for (step, flow) in steps {
                let ack = Ack { host: flow % 3, flow };
                match step {
                    0 | 1 => {
                        prop_assert!(backlog.push(ack));
                        if !all.contains(&ack) {
                            all.push(ack);
                        }
                    }
                    2 => {
                        let taken: List<Ack, 3> = backlog.take();
                        let n = all.len().min(3);
                        prop_assert_eq!(taken.as_slice(), all.drain(..n).collect::<Vec<_>>());
                    }
                    _ => {
                        backlog.retain(|ack| ack.host != flow % 3);
                        all.retain(|ack| ack.host != flow % 3);
                    }
                }
                prop_assert_eq!(backlog.is_empty(), all.is_empty());
            }
        }
    }

    #[test]
    fn the_backlog_has_a_maximum_length() {
        let mut backlog = Backlog::<Ack>::default();
        let ack = |n: usize| Ack { host: (n >> 16) as u16, flow: n as u16 };
        assert!((0..WAITING_MAX).all(|n| backlog.push(ack(n))));
        assert!(!backlog.push(ack(WAITING_MAX)) && backlog.push(ack(0)));
        let _: List<Ack, 1> = backlog.take();
        assert!(backlog.push(ack(WAITING_MAX)));
    }
}
