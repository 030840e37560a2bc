//! What an event is: its kind, a port or an end, and a packet, in the 52 bits that a key has.

use rampmeter_core::Time;

use super::{Handle, Key};

/// A packet is at the far end of a link.
pub(crate) const ARRIVE: u64 = 0;
/// A link falls idle.
pub(crate) const WAKE: u64 = 1 << KIND_SHIFT;
/// An endpoint's deadline.
pub(crate) const TIMER: u64 = 2 << KIND_SHIFT;
/// Something that has no port: its number says what.
pub(crate) const OTHER: u64 = 3 << KIND_SHIFT;
/// A packet that was too early for its output link, which is faster than the one it came by.
pub(crate) const READY: u64 = 4 << KIND_SHIFT;
/// The deadline of a switch's program.
pub(crate) const PROGRAM: u64 = 5 << KIND_SHIFT;
/// A pause, or the end of one, has reached a port: the packet's place says which.
pub(crate) const PFC: u64 = 6 << KIND_SHIFT;

/// More ports than a fabric may have.
pub(crate) const PORTS_END: usize = 1 << (KIND_SHIFT - HANDLE_BITS);
/// The first number that no packet may have.
pub(crate) const HANDLES_END: usize = 1 << HANDLE_BITS;

const HANDLE_BITS: u32 = 28;
const KIND_SHIFT: u32 = Key::WHAT_BITS - 3;

/// An event that concerns a port or an end.
#[inline]
pub(crate) fn event(time: Time, kind: u64, number: u32) -> Key {
    Key { time, what: kind | u64::from(number) << HANDLE_BITS }
}

/// An event that concerns a packet at a port.
#[inline]
pub(crate) fn packet_event(time: Time, kind: u64, number: u32, handle: Handle) -> Key {
    Key { time, what: kind | u64::from(number) << HANDLE_BITS | u64::from(handle) }
}

/// The kind of an event, the number of its port or end, and its packet.
#[inline]
pub(crate) fn parts(what: u64) -> (u64, u32, Handle) {
    let kind = what >> KIND_SHIFT << KIND_SHIFT;
    let number = (what ^ kind) >> HANDLE_BITS;
    (kind, number as u32, (what % HANDLES_END as u64) as Handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_parts_fit() {
        let (number, handle) = (PORTS_END as u32 - 1, HANDLES_END as u32 - 1);
        let key = packet_event(Time::ZERO, READY, number, handle);
        assert_eq!(parts(key.what), (READY, number, handle));
        assert!(key.what < 1 << Key::WHAT_BITS);
    }
}
