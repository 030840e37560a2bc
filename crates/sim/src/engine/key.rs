//! Keys of pending events.

use rampmeter_core::Time;

/// An event: when, and what for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    /// Time of the event.
    pub time: Time,
    /// Code of the event; below 2^[`EventKey::WHAT_BITS`].
    pub what: u64,
}

impl EventKey {
    /// Number of bits of an event's code.
    pub const WHAT_BITS: u32 = 52;
}
