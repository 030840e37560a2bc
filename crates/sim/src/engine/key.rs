//! Keys of pending events.

use rampmeter_types::Time;

/// An event: its time and its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    /// Time of the event.
    pub time: Time,
    /// Code of the event; below 2^[`EventKey::CODE_BITS`].
    pub code: u64,
}

/// A place in the order of events: those before it are earlier, or as early and of a lower
/// [rank](super::event::rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventLimit {
    /// Time of the place.
    pub(crate) time: Time,
    /// Rank among simultaneous events.
    pub(crate) rank: u64,
}

impl EventLimit {
    /// The place after all events.
    pub(crate) const END: Self = Self::after(Time::NEVER);

    /// Returns the place before all events of a time.
    pub(crate) const fn before(time: Time) -> Self {
        Self { time, rank: 0 }
    }

    /// Returns the place after all events of a time.
    pub(crate) const fn after(time: Time) -> Self {
        Self { time, rank: u64::MAX }
    }
}

impl EventKey {
    /// Number of bits of an event's code.
    pub const CODE_BITS: u32 = 52;
}
