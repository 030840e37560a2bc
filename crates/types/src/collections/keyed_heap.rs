//! Heap whose entries have identifiers, so that keys can change and entries can be removed.

/// Positions of the entries of one or more [`KeyedHeap`]s. An identifier may be in one of them.
#[derive(Clone, Debug, Default)]
pub struct HeapPositions(Vec<u32>);

const ABSENT: u32 = u32::MAX;

impl HeapPositions {
    #[inline]
    fn get(&self, id: u32) -> Option<usize> {
        self.0.get(id as usize).filter(|&&place| place != ABSENT).map(|&place| place as usize)
    }

    #[inline]
    fn set(&mut self, id: u32, place: u32) {
        if self.0.len() <= id as usize {
            self.0.resize(id as usize + 1, ABSENT);
        }
        self.0[id as usize] = place;
    }
}

/// Binary heap with the lowest key first. Identifiers are slots of a slab: small and dense. Returns
/// the first entry in O(1) and changes any in O(log n).
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
    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry with the lowest key.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Returns the key of `id`; `None` if it is not in this heap.
    #[inline]
    pub fn get(&self, places: &HeapPositions, id: u32) -> Option<K> {
        self.position(places, id).map(|place| self.entries[place].0)
    }

    /// Returns the place of `id`. A place that belongs to another heap has another identifier here,
    /// or none.
    #[inline]
    fn position(&self, places: &HeapPositions, id: u32) -> Option<usize> {
        places.get(id).filter(|&place| self.entries.get(place).is_some_and(|entry| entry.1 == id))
    }

    /// Changes the key of `id`. Returns the previous key; `None` if it is not in this heap.
    #[inline]
    pub fn update_key(&mut self, places: &mut HeapPositions, id: u32, key: K) -> Option<K> {
        let place = self.position(places, id)?;
        let before = std::mem::replace(&mut self.entries[place].0, key);
        self.sift(places, place);
        Some(before)
    }

    /// Inserts `id`, which is in no other heap, or changes its key.
    #[inline]
    pub fn set(&mut self, places: &mut HeapPositions, id: u32, key: K) {
        if self.update_key(places, id, key).is_none() {
            let place = self.entries.len();
            self.entries.push((key, id));
            places.set(id, place as u32);
            self.sift(places, place);
        }
    }

    /// Removes `id`. Returns its key; `None` if it is not in this heap.
    pub fn remove(&mut self, places: &mut HeapPositions, id: u32) -> Option<K> {
        let place = self.position(places, id)?;
        places.set(id, ABSENT);
        let (key, _) = self.entries.swap_remove(place);
        if let Some(&(_, moved)) = self.entries.get(place) {
            places.set(moved, place as u32);
            self.sift(places, place);
        }
        Some(key)
    }

    /// Moves the entry at `place` to the position of its key.
    fn sift(&mut self, places: &mut HeapPositions, mut place: usize) {
        while place > 0 && self.entries[place] < self.entries[(place - 1) / 2] {
            self.swap(places, place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
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

    fn swap(&mut self, places: &mut HeapPositions, a: usize, b: usize) {
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
        /// Two heaps share their places; each behaves like a map.
        #[test]
        fn the_first_entry_has_the_lowest_key(
            steps in proptest::collection::vec(
                (0usize..2, 0u32..20, proptest::option::of(0u32..9)), 0..300,
            ),
        ) {
            let mut heaps = [KeyedHeap::default(), KeyedHeap::default()];
            let mut places = HeapPositions::default();
            let mut models = [BTreeMap::new(), BTreeMap::new()];
            for (which, id, key) in steps {
                match key {
                    Some(key) => {
                        let was = heaps[1 - which].remove(&mut places, id);
                        prop_assert_eq!(was, models[1 - which].remove(&id));
                        let before = models[which].insert(id, key);
                        if before.is_none() || key % 2 == 0 {
                            heaps[which].set(&mut places, id, key);
                        } else {
                            prop_assert_eq!(heaps[which].update_key(&mut places, id, key), before);
                        }
                    }
                    None => {
                        let was = heaps[which].remove(&mut places, id);
                        prop_assert_eq!(was, models[which].remove(&id));
                    }
                }
                for (heap, model) in heaps.iter().zip(&models) {
                    let first = model.iter().map(|(&id, &key)| (key, id)).min();
                    prop_assert_eq!(heap.first(), first);
                    prop_assert_eq!(heap.get(&places, id), model.get(&id).copied());
                    prop_assert_eq!(heap.len(), model.len());
                }
            }
        }
    }
}
