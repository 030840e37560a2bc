//! Keys of pending events.

use rampmeter_core::Time;

/// An event: when, and what for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    /// Time of the event.
    pub time: Time,
    /// Code of the event; below 2^[`EventKey::CODE_BITS`].
    pub code: u64,
}

impl EventKey {
    /// Number of bits of an event's code.
    pub const CODE_BITS: u32 = 52;
}
