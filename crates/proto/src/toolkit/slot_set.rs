//! Flows that may send, by slot, in no particular order.

/// A set of slots. Insertion, removal and lookup take constant time.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    slots: Vec<u32>,
    /// The place of each slot in `slots`; `u32::MAX` if it is not there.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Ready {
    /// Returns whether no flow may send.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the slot at a place; places run from zero.
    pub fn get(&self, place: usize) -> Option<u32> {
        self.slots.get(place).copied()
    }

    /// Enters a slot, unless it is there.
    pub fn insert(&mut self, slot: u32) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NOWHERE);
        }
        if self.places[slot as usize] == NOWHERE {
            self.places[slot as usize] = self.slots.len() as u32;
            self.slots.push(slot);
        }
    }

    /// Removes all slots.
    pub fn clear(&mut self) {
        for slot in self.slots.drain(..) {
            self.places[slot as usize] = NOWHERE;
        }
    }

    /// Removes a slot if it is there. The last slot takes its place.
    pub fn remove(&mut self, slot: u32) {
        let Some(place) = self.places.get_mut(slot as usize) else { return };
        let place = std::mem::replace(place, NOWHERE) as usize;
        if place == NOWHERE as usize {
            return;
        }
        self.slots.swap_remove(place);
        if let Some(&moved) = self.slots.get(place) {
            self.places[moved as usize] = place as u32;
        }
    }
}
