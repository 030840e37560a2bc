//! The hosts and arbiters of a run or of a partition, by their numbers in the network.

use std::ops::{Index, IndexMut};

use rampmeter_types::{Time, Transport};

use crate::clock::HostClock;
use crate::role::Role;

/// A host or an arbiter.
pub(super) struct Station<F: Transport> {
    pub(super) endpoint: Role<F::Host, F::Arbiter>,
    /// Time of the earliest timer event in the queue.
    pub(super) timer_at: Time,
    pub(super) clock: HostClock,
}

/// Hosts and arbiters with successive numbers.
pub(super) struct Stations<F: Transport> {
    first: u32,
    all: Vec<Station<F>>,
}

impl<F: Transport> Stations<F> {
    /// Creates stations whose first number is `first`.
    pub(super) fn new(first: u32, all: Vec<Station<F>>) -> Self {
        Self { first, all }
    }

    /// Returns the number of the first.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Returns the stations with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Station<F>)> {
        (self.first..).zip(&self.all)
    }

    /// Splits off those from the one numbered `first` on.
    pub(super) fn split_off(&mut self, first: u32) -> Self {
        Self { first, all: self.all.split_off((first - self.first) as usize) }
    }

    /// Appends stations, whose numbers follow.
    pub(super) fn append(&mut self, mut next: Self) {
        debug_assert_eq!(self.first as usize + self.all.len(), next.first as usize);
        self.all.append(&mut next.all);
    }
}

impl<F: Transport> Index<u32> for Stations<F> {
    type Output = Station<F>;

    #[inline]
    fn index(&self, number: u32) -> &Station<F> {
        &self.all[(number - self.first) as usize]
    }
}

impl<F: Transport> IndexMut<u32> for Stations<F> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Station<F> {
        &mut self.all[(number - self.first) as usize]
    }
}
