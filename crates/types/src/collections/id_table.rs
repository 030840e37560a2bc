//! Values by identifier: a table for low numbers, a map for the others.
//!
//! A table by number is the fastest, but it grows with the highest number. In a network of N hosts
//! whose every host has one entry, such tables take N^2 / 2 entries. A map takes the memory of its
//! entries. Its lookups take more instructions, which counts in protocols that need several for a
//! packet. So the table ends at 256, and small networks need no map.

use super::IdMap;

/// Identifiers below this are in the table.
const DENSE_MAX: usize = 256;

/// Values by the number of a host, peer or tenant. Values that were never set are the default.
#[derive(Clone, Debug, Default)]
pub struct IdTable<T> {
    dense: Vec<T>,
    /// Boxed, since most hosts of small networks have none.
    others: Option<Box<IdMap<u32, T>>>,
}

impl<T: Default> IdTable<T> {
    /// Returns a value; `None` if it was never set.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        match self.dense.get(id as usize) {
            None if id as usize >= DENSE_MAX => self.others.as_ref()?.get(&id),
            value => value,
        }
    }

    /// Returns a value to be changed; `None` if it was never set.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        match self.dense.get_mut(id as usize) {
            None if id as usize >= DENSE_MAX => self.others.as_mut()?.get_mut(&id),
            value => value,
        }
    }

    /// Returns a value to be changed, which is the default if it was never set.
    #[inline]
    pub fn entry(&mut self, id: u32) -> &mut T {
        let place = id as usize;
        if place >= DENSE_MAX {
            return self.others.get_or_insert_default().entry(id).or_default();
        }
        if self.dense.len() <= place {
            self.dense.resize_with(place + 1, T::default);
        }
        &mut self.dense[place]
    }

    /// Sets a value to the default, without its memory if the number is a high one.
    #[inline]
    pub fn reset(&mut self, id: u32) {
        if let Some(value) = self.dense.get_mut(id as usize) {
            *value = T::default();
        } else if let Some(others) = &mut self.others {
            others.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_table_agrees_with_a_map(
            steps in proptest::collection::vec((200u32..300, 0u8..3, 1u32..100), 0..200),
        ) {
            let mut table = IdTable::default();
            let mut model = BTreeMap::new();
            for (id, step, value) in steps {
                match step {
                    0 => {
                        *table.entry(id) = value;
                        model.insert(id, value);
                    }
                    1 => {
                        table.reset(id);
                        model.remove(&id);
                    }
                    _ => {
                        if let Some(found) = table.get_mut(id) {
                            *found += value;
                            *model.entry(id).or_default() += value;
                        }
                    }
                }
                let found = table.get(id).copied().unwrap_or_default();
                prop_assert_eq!(found, model.get(&id).copied().unwrap_or_default());
            }
        }
    }

    /// The table takes the memory of the numbers in use, however high they are.
    #[test]
    fn high_numbers_take_no_places_of_the_table() {
        let mut table = IdTable::<u64>::default();
        *table.entry(u32::MAX) = 7;
        *table.entry(DENSE_MAX as u32) = 8;
        assert!(table.dense.is_empty());
        table.reset(u32::MAX);
        assert_eq!(table.others.as_ref().map(|others| others.len()), Some(1));
        assert_eq!((table.get(u32::MAX), table.get(DENSE_MAX as u32)), (None, Some(&8)));
    }
}
