//! A link with the flows that use it and those that wait for it.

use std::collections::BTreeSet;
use std::ops::Bound;

use rampmeter_types::{Rate, Time};

use crate::central::remaining::{RemainingLine, RemainingSize};

/// A place in the order of figure 6: least remaining size first, then in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) remaining: RemainingSize,
    pub(super) arrival: u64,
}

impl Position {
    /// Position before every flow.
    pub(super) const FIRST: Self = Self { remaining: RemainingSize::MIN, arrival: 0 };
    /// Position after every flow.
    const LAST: Self = Self { remaining: RemainingSize::MAX, arrival: u64::MAX };
}

/// A granted flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GrantedFlow {
    pub(super) rate: Rate,
    pub(super) line: RemainingLine,
    pub(super) arrival: u64,
    pub(super) slot: u32,
}

impl GrantedFlow {
    #[inline]
    fn position(&self, now: Time) -> Position {
        Position { remaining: self.line.remaining(self.rate, now), arrival: self.arrival }
    }
}

/// A stopped flow. The order puts flows of one rate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoppedFlow {
    /// The rate that it would have; `None` if a link of its path is down.
    pub(super) rate: Option<Rate>,
    pub(super) position: Position,
    pub(super) slot: u32,
}

/// A virtual link, with its users and waiters.
///
/// The grant of a flow at some position depends on the capacity that flows before it use. That
/// capacity grows with the position. So of all users of one rate, those that fit are the first
/// ones. Of all waiters of one rate, the first is the first to fit.
#[derive(Debug)]
pub(super) struct Link {
    capacity: Option<Rate>,
    /// An access link has one user at most.
    is_access: bool,
    /// The rates of all users together, in bits per second.
    in_use: u64,
    /// Granted flows in order, so that users of one rate are adjacent, in the order of their
    /// positions.
    granted: Vec<GrantedFlow>,
    stopped: BTreeSet<StoppedFlow>,
}

impl Link {
    pub(super) fn new(capacity: Option<Rate>, is_access: bool) -> Self {
        Self { capacity, is_access, in_use: 0, granted: Vec::new(), stopped: BTreeSet::new() }
    }

    pub(super) fn set_capacity(&mut self, capacity: Option<Rate>) {
        self.capacity = capacity;
    }

    pub(super) fn add_granted(&mut self, user: GrantedFlow) {
        let place = self.granted.partition_point(|other| *other < user);
        self.granted.insert(place, user);
        self.in_use += user.rate.as_bps();
    }

    pub(super) fn remove_granted(&mut self, user: GrantedFlow) {
        let place = self.granted.binary_search(&user).expect("a granted flow uses its links");
        self.granted.remove(place);
        self.in_use -= user.rate.as_bps();
    }

    pub(super) fn add_stopped(&mut self, waiter: StoppedFlow) {
        self.stopped.insert(waiter);
    }

    pub(super) fn remove_stopped(&mut self, waiter: &StoppedFlow) {
        let was_there = self.stopped.remove(waiter);
        assert!(was_there, "{waiter:?} waits elsewhere");
    }

    /// Returns true if the users before `position` do not use the capacity for a flow of `rate`
    /// (figure 6, lines 5 and 13 to 16).
    #[inline]
    pub(super) fn has_capacity(&self, position: Position, rate: Rate, now: Time) -> bool {
        let Some(capacity) = self.capacity else { return false };
        if self.is_access {
            return self.granted.iter().all(|user| user.position(now) >= position);
        }
        let (rate, capacity) = (rate.as_bps(), capacity.as_bps());
        // With capacity next to all users the position does not matter.
        self.in_use + rate <= capacity
            || (rate <= capacity && self.in_use_before(position, now) + rate <= capacity)
    }

    /// Returns the capacity that users before `position` use, in bits per second.
    fn in_use_before(&self, position: Position, now: Time) -> u64 {
        let before =
            |class: &[GrantedFlow]| class.partition_point(|user| user.position(now) < position);
        self.classes().map(|class| class[0].rate.as_bps() * before(class) as u64).sum()
    }

    /// Returns the users of each rate, in the order of their positions.
    fn classes(&self) -> impl Iterator<Item = &[GrantedFlow]> {
        let mut rest = &self.granted[..];
        std::iter::from_fn(move || {
            let rate = rest.first()?.rate;
            let (class, later) = rest.split_at(rest.partition_point(|user| user.rate == rate));
            rest = later;
            Some(class)
        })
    }

    /// Calls `each` with the first user of each rate, after a position, that finds no capacity
    /// because of the users before it.
    #[inline]
    pub(super) fn find_excess(
        &self,
        after: Position,
        now: Time,
        mut each: impl FnMut(Position, u32),
    ) {
        let is_overfull = match self.is_access {
            true => self.granted.len() > 1,
            false => self.in_use > self.capacity.map_or(0, Rate::as_bps),
        };
        if !is_overfull {
            return;
        }
        for class in self.classes() {
            let later = &class[class.partition_point(|user| user.position(now) <= after)..];
            let fits = |user: &GrantedFlow| self.has_capacity(user.position(now), user.rate, now);
            if let Some(user) = later.get(later.partition_point(fits)) {
                each(user.position(now), user.slot);
            }
        }
    }

    /// Calls `each` with the first waiter of each rate, after a position, that finds capacity
    /// in addition to the users before it.
    #[inline]
    pub(super) fn find_capacity(
        &self,
        after: Position,
        now: Time,
        mut each: impl FnMut(Position, u32),
    ) {
        let mut class = self.stopped.first().map(|first| first.rate);
        while let Some(rate) = class {
            let from = StoppedFlow { rate, position: after, slot: u32::MAX };
            let next = self.stopped.range((Bound::Excluded(from), Bound::Unbounded)).next();
            class = match next {
                Some(waiter) if waiter.rate == rate => {
                    if rate.is_some_and(|rate| self.has_capacity(waiter.position, rate, now)) {
                        each(waiter.position, waiter.slot);
                    }
                    self.class_after(*waiter)
                }
                Some(waiter) => Some(waiter.rate),
                None => None,
            };
        }
    }

    /// Returns the rate of the waiters that follow those of the rate of `waiter`.
    #[inline]
    fn class_after(&self, waiter: StoppedFlow) -> Option<Option<Rate>> {
        // Mostly all have one rate.
        if self.stopped.last().is_some_and(|last| last.rate == waiter.rate) {
            return None;
        }
        let last = StoppedFlow { position: Position::LAST, ..waiter };
        let later = self.stopped.range((Bound::Excluded(last), Bound::Unbounded)).next();
        later.map(|other| other.rate)
    }
}
