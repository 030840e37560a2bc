//! Flows that may send, by slot, in no particular order.

/// A set of slots. Insertion, removal and lookup take constant time.
#[derive(Clone, Debug, Default)]
pub struct SlotSet {
    slots: Vec<u32>,
    /// The place of each slot in `slots`; `u32::MAX` if it is not there.
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl SlotSet {
    /// Returns true if no flow may send.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the slot at a place; places run from zero.
    pub fn get(&self, place: usize) -> Option<u32> {
        self.slots.get(place).copied()
    }

    /// Enters a slot, unless it is there.
    pub fn insert(&mut self, slot: u32) {
        if self.positions.len() <= slot as usize {
            self.positions.resize(slot as usize + 1, ABSENT);
        }
        if self.positions[slot as usize] == ABSENT {
            self.positions[slot as usize] = self.slots.len() as u32;
            self.slots.push(slot);
        }
    }

    /// Removes all slots.
    pub fn clear(&mut self) {
        for slot in self.slots.drain(..) {
            self.positions[slot as usize] = ABSENT;
        }
    }

    /// Removes a slot if it is there. The last slot takes its place.
    pub fn remove(&mut self, slot: u32) {
        let Some(place) = self.positions.get_mut(slot as usize) else { return };
        let place = std::mem::replace(place, ABSENT) as usize;
        if place == ABSENT as usize {
            return;
        }
        self.slots.swap_remove(place);
        if let Some(&moved) = self.slots.get(place) {
            self.positions[moved as usize] = place as u32;
        }
    }
}
