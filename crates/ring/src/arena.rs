//! Allocator of message memory: first fit over offsets. It touches no memory itself.
//!
//! First fit keeps allocations at low addresses, so that an arena far larger than the bytes in
//! flight costs no memory. There are never more free extents than allocated extents plus one.

/// Allocation unit in bytes: a cache line, so that messages share none.
pub(crate) const UNIT: u64 = 64;

/// Piece of an arena. It can be freed once only.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    start: u32,
    units: u32,
}

impl Extent {
    /// Returns the offset of the first byte within the arena.
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.start) * UNIT
    }

    fn end(&self) -> u32 {
        self.start + self.units
    }
}

/// Answer to a request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationFit {
    /// The message fits now.
    Now,
    /// The message fits after enough has been freed.
    Later,
    /// The arena is too small.
    Never,
}

/// Free extents of an arena: in order, and never adjacent.
#[derive(Debug)]
pub(crate) struct Arena {
    free: Vec<Extent>,
    units: u32,
}

impl Arena {
    /// Creates an arena of `bytes`, of which an incomplete last unit is not used.
    ///
    /// # Panics
    /// More than 2^32 - 1 units.
    pub(crate) fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT).expect("an arena has fewer than 2^32 units");
        let free = if units > 0 { vec![Extent { start: 0, units }] } else { Vec::new() };
        Self { free, units }
    }

    /// Returns the units for `bytes`; at least one, as an empty message has an address too.
    fn units(bytes: u64) -> u64 {
        bytes.div_ceil(UNIT).max(1)
    }

    fn find(&self, units: u64) -> Option<usize> {
        self.free.iter().position(|extent| u64::from(extent.units) >= units)
    }

    /// Returns if and when [`Arena::alloc`] can succeed.
    pub(crate) fn fit(&self, bytes: u64) -> AllocationFit {
        let units = Self::units(bytes);
        if units > self.units.into() {
            AllocationFit::Never
        } else if self.find(units).is_some() {
            AllocationFit::Now
        } else {
            AllocationFit::Later
        }
    }

    /// Allocates `bytes` at the lowest offset.
    pub(crate) fn alloc(&mut self, bytes: u64) -> Option<Extent> {
        let units = Self::units(bytes);
        let idx = self.find(units)?;
        let (units, extent) = (units as u32, &mut self.free[idx]);
        let start = extent.start;
        extent.start += units;
        extent.units -= units;
        if extent.units == 0 {
            self.free.remove(idx);
        }
        Some(Extent { start, units })
    }

    /// Frees an extent.
    ///
    /// # Panics
    /// Part of it is free already: it belongs to another arena.
    pub(crate) fn free(&mut self, extent: Extent) {
        let next = self.free.partition_point(|free| free.start < extent.start);
        let is_apart = self.free.get(next).is_none_or(|free| extent.end() <= free.start)
            && (next == 0 || self.free[next - 1].end() <= extent.start)
            && extent.end() <= self.units;
        assert!(is_apart, "{extent:?} is free already");
        let joins_before = next > 0 && self.free[next - 1].end() == extent.start;
        let joins_after = self.free.get(next).is_some_and(|free| free.start == extent.end());
        match (joins_before, joins_after) {
            (true, true) => {
                let after = self.free.remove(next);
                self.free[next - 1].units += extent.units + after.units;
            }
            (true, false) => self.free[next - 1].units += extent.units,
            (false, true) => {
                self.free[next].start = extent.start;
                self.free[next].units += extent.units;
            }
            (false, false) => self.free.insert(next, extent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference model: a flag for each unit, true if allocated.
    struct Model(Vec<bool>);

    impl Model {
        /// Returns the first run of free units that is long enough.
        fn first_fit(&self, units: usize) -> Option<usize> {
            (0..=self.0.len().checked_sub(units)?)
                .find(|&at| self.0[at..at + units].iter().all(|is_used| !is_used))
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Any sequence of allocations and frees matches a linear search in an array of units. No
        /// extents overlap, and after all frees the whole arena can be allocated in one piece.
        #[test]
        fn extents_are_allocated_first_fit(
            units in 1usize..200,
            steps in prop::collection::vec(
                (any::<bool>(), 0u64..2_000, any::<prop::sample::Index>()),
                0..200,
            ),
        ) {
            let mut arena = Arena::new(units as u64 * UNIT + 13);
            let mut model = Model(vec![false; units]);
            let mut held = Vec::new();
            for (is_alloc, size, which) in steps {
                if is_alloc {
                    let n = Arena::units(size) as usize;
                    let expected = model.first_fit(n);
                    let fit = match expected {
                        _ if n > units => AllocationFit::Never,
                        Some(_) => AllocationFit::Now,
                        None => AllocationFit::Later,
                    };
                    prop_assert_eq!(arena.fit(size), fit);
                    let got = arena.alloc(size);
                    prop_assert_eq!(got.as_ref().map(|e| e.start as usize), expected);
                    if let Some(extent) = got {
                        let (start, end) = (extent.start as usize, extent.end() as usize);
                        model.0[start..end].fill(true);
                        held.push(extent);
                    }
                } else if !held.is_empty() {
                    let extent = held.swap_remove(which.index(held.len()));
                    model.0[extent.start as usize..extent.end() as usize].fill(false);
                    arena.free(extent);
                }
            }
            held.into_iter().for_each(|extent| arena.free(extent));
            prop_assert_eq!(arena.alloc(units as u64 * UNIT).map(|e| e.start), Some(0));
        }
    }

    #[test]
    #[should_panic(expected = "is free already")]
    fn an_extent_of_another_arena_is_rejected() {
        let extent = Arena::new(64).alloc(1).unwrap();
        Arena::new(64).free(extent);
    }
}
