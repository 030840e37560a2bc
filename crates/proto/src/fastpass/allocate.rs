//! Time-slot allocation (Fastpass §3): the pairs of hosts that may send in each slot.
//!
//! The problem: in each slot a matching of sources and destinations is needed, maximal among the
//! pairs with demand. Those served least recently are first, which is max-min fair. The arbiter has
//! a batch's time for it.
//!
//! The simple way, one slot after the other, examines every pair with demand once a slot.
//!
//! The present way, as in the paper's pipeline, fills a batch of slots together. Each host has a
//! word with a bit for every slot in which it is free. A pair takes the first slot that is free at
//! both ends with one AND and one count of trailing zeros. A pair that has got a slot is queued
//! behind those that were served before that slot. A pair that finds no common slot is done with
//! this batch, because free slots only become fewer. So when the queue is empty every slot's
//! matching is maximal. [`Allocator::allocate_if`] allows the caller to refuse a pair a slot, if
//! it has no path for it.
//!
//! Hazards:
//!
//! * Free slots may only become fewer within a batch. A pair that has found none is not examined
//!   again, so a freed slot would stay empty (`every_slot_has_a_maximal_matching`).
//! * Slots must be given in the order of the queue, or pairs that share a host are not served in
//!   turn (`conflicting_pairs_are_served_round_robin`).
//! * A refused slot is given to nobody by this call. So a matching is maximal only among slots that
//!   the caller allows (`a_pair_that_is_refused_a_slot_gets_the_next_that_it_may_have`).
//! * A pair that becomes active is queued last, so a pair of short messages always waits for
//!   others. [`Allocator::with_history`] changes this and costs memory for each pair
//!   (`an_idle_pair_is_first_only_if_idle_time_is_recorded`).
//! * Removed demand leaves its place in the queue until the next pass
//!   (`a_source_that_withdraws_gets_nothing_more`).

use rampmeter_types::collections::IdMap;

/// Slots that are filled together (Fastpass §3.2 has 16).
pub const BATCH_MAX: u32 = 64;

/// One slot of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocation {
    /// The slot's place in its batch.
    pub slot: u8,
    /// The sending host.
    pub src: u16,
    /// The receiving host.
    pub dst: u16,
}

/// A pair of hosts with demand.
#[derive(Clone, Copy, Debug)]
struct Demand {
    src: u16,
    dst: u16,
    /// Slots still wanted.
    slots: u32,
    /// The slot that it was last given, counted from one; zero if none.
    last: u64,
}

/// The demands of all pairs, and who was served when.
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    batch: u32,
    demands: Vec<Demand>,
    /// Places in `demands` that are free.
    free_places: Vec<u32>,
    /// The place of each pair with demand, by source << 16 | destination.
    places: IdMap<u32, u32>,
    /// Places in the order in which they were last served, longest ago first.
    queue: Vec<u32>,
    /// Places by the slot of this batch that they were last served in.
    served: Vec<Vec<u32>>,
    /// Places that found no common slot in this batch.
    unserved: Vec<u32>,
    /// Free slots of each host as a source and as a destination.
    src_free: Vec<u64>,
    dst_free: Vec<u64>,
    /// Slots of all batches so far.
    filled: u64,
    /// The last slots of pairs without demand, if these are remembered.
    last: Option<IdMap<u32, u64>>,
    /// The first destination that may receive from several sources in a slot.
    shared: u32,
}

impl Allocator {
    /// Returns an allocator for `n_hosts` hosts, at most 65 536, that fills `batch` slots together,
    /// at most [`BATCH_MAX`].
    pub fn new(n_hosts: u32, batch: u32) -> Self {
        assert!((1..=BATCH_MAX).contains(&batch), "a batch of {batch} slots");
        assert!(n_hosts <= 1 << 16, "{n_hosts} hosts");
        Self {
            batch,
            demands: Vec::new(),
            free_places: Vec::new(),
            places: IdMap::default(),
            queue: Vec::new(),
            served: vec![Vec::new(); batch as usize],
            unserved: Vec::new(),
            src_free: vec![0; n_hosts as usize],
            dst_free: vec![0; n_hosts as usize],
            filled: 0,
            last: None,
            shared: n_hosts,
        }
    }

    /// Returns the same, but a pair that had no demand for a while precedes those that were served
    /// in the meantime. Without this, a pair that becomes active is queued last.
    #[must_use]
    pub fn with_history(self) -> Self {
        Self { last: Some(IdMap::default()), ..self }
    }

    /// Likewise, but each destination from `first` on is several hosts: any number of sources may
    /// send to one in a slot, if [`Allocator::allocate_if`] allows it.
    #[must_use]
    pub fn with_shared_destinations(self, first: u32) -> Self {
        Self { shared: first, ..self }
    }

    /// Adds demand of a pair.
    pub fn request(&mut self, src: u16, dst: u16, slots: u32) {
        if slots == 0 {
            return;
        }
        let key = u32::from(src) << 16 | u32::from(dst);
        if let Some(&place) = self.places.get(&key) {
            let demand = &mut self.demands[place as usize];
            demand.slots = demand.slots.saturating_add(slots);
            return;
        }
        let last = self.last.as_ref().map_or(self.filled, |last| last.get(&key).map_or(0, |&n| n));
        let demand = Demand { src, dst, slots, last };
        let place = match self.free_places.pop() {
            Some(place) => {
                self.demands[place as usize] = demand;
                place
            }
            None => {
                self.demands.push(demand);
                self.demands.len() as u32 - 1
            }
        };
        self.places.insert(key, place);
        let before = |&other: &u32| self.demands[other as usize].last <= last;
        match self.last {
            Some(_) => self.queue.insert(self.queue.partition_point(before), place),
            None => self.queue.push(place),
        }
    }

    /// Forgets the demand of a source.
    pub fn withdraw(&mut self, src: u16) {
        // Pairs without demand are removed at the next pass over the queue.
        self.demands.iter_mut().filter(|d| d.src == src).for_each(|d| d.slots = 0);
    }

    /// Returns the number of slots that a pair still needs.
    pub fn demand(&self, src: u16, dst: u16) -> u32 {
        let key = u32::from(src) << 16 | u32::from(dst);
        self.places.get(&key).map_or(0, |&place| self.demands[place as usize].slots)
    }

    /// Fills the next batch and appends its allocations to `out`, in no particular order.
    pub fn allocate(&mut self, out: &mut Vec<Allocation>) {
        self.allocate_if(out, |_| true);
    }

    /// Likewise, but a pair is given only slots that `may` allows. It is called once for each slot
    /// in which both ends are free, and an allowed slot is given.
    pub fn allocate_if(
        &mut self,
        out: &mut Vec<Allocation>,
        mut may: impl FnMut(Allocation) -> bool,
    ) {
        let all = u64::MAX >> (BATCH_MAX - self.batch);
        self.src_free.fill(all);
        self.dst_free.fill(all);
        let mut queue = std::mem::take(&mut self.queue);
        for place in queue.drain(..) {
            self.serve(place, None, out, &mut may);
        }
        self.queue = queue;
        for slot in 0..self.batch as usize {
            let mut next = 0;
            // Pairs that are served in this slot or an earlier one are queued behind the others.
            while let Some(&place) = self.served[slot].get(next) {
                next += 1;
                self.serve(place, Some(slot), out, &mut may);
            }
            self.served[slot].clear();
        }
        // Those who got nothing have waited longest; the others follow in the order of their last
        // slot.
        let mut order = std::mem::take(&mut self.unserved);
        order.append(&mut self.queue);
        self.queue = order;
        self.filled += u64::from(self.batch);
    }

    /// Gives a pair that was last served in `after` of this batch, or before the batch, one slot.
    #[inline]
    fn serve(
        &mut self,
        place: u32,
        after: Option<usize>,
        out: &mut Vec<Allocation>,
        may: &mut impl FnMut(Allocation) -> bool,
    ) {
        let demand = &mut self.demands[place as usize];
        if demand.slots == 0 {
            let key = u32::from(demand.src) << 16 | u32::from(demand.dst);
            self.places.remove(&key);
            if let Some(last) = &mut self.last {
                last.insert(key, demand.last);
            }
            self.free_places.push(place);
            return;
        }
        let (src, dst) = (demand.src, demand.dst);
        let common = self.src_free[usize::from(src)] & self.dst_free[usize::from(dst)];
        let Some(given) = first_slot(common, src, dst, may) else {
            match after {
                None => self.unserved.push(place),
                Some(_) => self.queue.push(place),
            }
            return;
        };
        let slot = usize::from(given.slot);
        self.src_free[usize::from(src)] ^= 1 << slot;
        if u32::from(dst) < self.shared {
            self.dst_free[usize::from(dst)] ^= 1 << slot;
        }
        demand.slots -= 1;
        demand.last = self.filled + slot as u64 + 1;
        out.push(given);
        self.served[slot.max(after.unwrap_or(0))].push(place);
    }
}

/// Returns the first of the slots of a mask that a pair may have.
#[inline]
fn first_slot(
    mut slots: u64,
    src: u16,
    dst: u16,
    may: &mut impl FnMut(Allocation) -> bool,
) -> Option<Allocation> {
    while slots != 0 {
        let given = Allocation { slot: slots.trailing_zeros() as u8, src, dst };
        if may(given) {
            return Some(given);
        }
        slots &= slots - 1;
    }
    None
}
