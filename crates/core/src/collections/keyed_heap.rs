//! A heap whose entries have identifiers, so that keys can change and entries can leave.

/// Positions of the entries of one or more [`KeyedHeap`]s. An identifier may be in one of them.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<u32>);

const NOWHERE: u32 = u32::MAX;

impl Places {
    #[inline]
    fn of(&self, id: u32) -> Option<usize> {
        self.0.get(id as usize).filter(|&&place| place != NOWHERE).map(|&place| place as usize)
    }

    #[inline]
    fn set(&mut self, id: u32, place: u32) {
        if self.0.len() <= id as usize {
            self.0.resize(id as usize + 1, NOWHERE);
        }
        self.0[id as usize] = place;
    }
}

/// A binary heap with the lowest key first. Identifiers are slots of a slab: small and dense.
/// Finds the first entry in O(1) and changes any in O(log n).
#[derive(Clone, Debug)]
pub struct KeyedHeap<K> {
    entries: Vec<(K, u32)>,
}

impl<K> Default for KeyedHeap<K> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord + Copy> KeyedHeap<K> {
    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with the lowest key.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Enters `id`, or changes its key.
    #[inline]
    pub fn set(&mut self, places: &mut Places, id: u32, key: K) {
        let place = places.of(id).unwrap_or(self.entries.len());
        if place == self.entries.len() {
            self.entries.push((key, id));
            places.set(id, place as u32);
        } else {
            self.entries[place].0 = key;
        }
        self.settle(places, place);
    }

    /// Changes the key of `id`, which is in this heap, to one that is not higher.
    #[inline]
    pub fn lower(&mut self, places: &mut Places, id: u32, key: K) {
        let Some(place) = places.of(id) else { return };
        debug_assert!(key <= self.entries[place].0);
        self.entries[place].0 = key;
        self.rise(places, place);
    }

    /// Removes `id`, which is in this heap or in none. Returns whether it was there.
    pub fn remove(&mut self, places: &mut Places, id: u32) -> bool {
        let Some(place) = places.of(id) else { return false };
        places.set(id, NOWHERE);
        self.entries.swap_remove(place);
        if let Some(&(_, moved)) = self.entries.get(place) {
            places.set(moved, place as u32);
            self.settle(places, place);
        }
        true
    }

    /// Moves the entry at `place` to where its key belongs.
    fn settle(&mut self, places: &mut Places, place: usize) {
        let mut place = self.rise(places, place);
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let Some(mut child) = self.entries.get(left).map(|_| left) else { return };
            if self.entries.get(right).is_some_and(|entry| *entry < self.entries[left]) {
                child = right;
            }
            if self.entries[place] <= self.entries[child] {
                return;
            }
            self.swap(places, place, child);
            place = child;
        }
    }

    /// Moves the entry at `place` towards the first as far as its key belongs. Returns where it is.
    #[inline]
    fn rise(&mut self, places: &mut Places, mut place: usize) -> usize {
        while place > 0 && self.entries[place] < self.entries[(place - 1) / 2] {
            self.swap(places, place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    fn swap(&mut self, places: &mut Places, a: usize, b: usize) {
        self.entries.swap(a, b);
        places.set(self.entries[a].1, a as u32);
        places.set(self.entries[b].1, b as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_entry_has_the_lowest_key(
            steps in proptest::collection::vec((0u32..20, proptest::option::of(0u32..9)), 0..300),
        ) {
            let (mut heap, mut places) = (KeyedHeap::default(), Places::default());
            let mut model = BTreeMap::new();
            for (id, key) in steps {
                match key {
                    Some(key) if model.get(&id).is_some_and(|&old| key <= old) => {
                        heap.lower(&mut places, id, key);
                        model.insert(id, key);
                    }
                    Some(key) => {
                        heap.set(&mut places, id, key);
                        model.insert(id, key);
                    }
                    None => {
                        prop_assert_eq!(heap.remove(&mut places, id), model.remove(&id).is_some());
                    }
                }
                prop_assert_eq!(heap.first(), model.iter().map(|(&id, &key)| (key, id)).min());
                prop_assert_eq!(heap.len(), model.len());
            }
        }
    }
}
