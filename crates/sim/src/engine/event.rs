//! Events: kind, port or end, and packet, in the 52 bits of a key; and the order of simultaneous
//! ones.
//!
//! *Problem*: many events have equal times, as links have equal rates and transports have slots. If
//! the order of insertion decided between them, results would depend on how the engine works.
//!
//! *This way*: simultaneous events are ordered by kind, then by port or end. Two events of one kind
//! and one port come from one place, which inserts them in order. Kinds follow one another as they
//! do in a switch: packets arrive before an idle link chooses among those that are queued.
//!
//! *What can go wrong*: a fixed order of ports would prefer the same link at each tie. So numbers of
//! ports at which packets arrive are compared after an exclusive or with a hash of the time: of two
//! links each is first half of the time. Deadlines and idle links do not compete, and stay in the
//! order of memory.

use rampmeter_core::Time;

use super::{Handle, Key};

/// A packet may leave that was too early for its output link, which is faster than its input link.
pub(crate) const READY: u64 = 0;
/// A packet is at the far end of a link.
pub(crate) const ARRIVE: u64 = 1 << KIND_SHIFT;
/// A pause, or the end of one, has reached a port: the packet's place says which.
pub(crate) const PFC: u64 = 2 << KIND_SHIFT;
/// The deadline of a switch's program.
pub(crate) const PROGRAM: u64 = 3 << KIND_SHIFT;
/// Something that has no port: its number says what.
pub(crate) const OTHER: u64 = 4 << KIND_SHIFT;
/// An endpoint's deadline.
pub(crate) const TIMER: u64 = 5 << KIND_SHIFT;
/// A link falls idle.
pub(crate) const WAKE: u64 = 6 << KIND_SHIFT;

/// More ports than a fabric may have.
pub(crate) const PORTS_END: usize = 1 << NUMBER_BITS;
/// The first number that no packet may have.
pub(crate) const HANDLES_END: usize = 1 << HANDLE_BITS;

const HANDLE_BITS: u32 = 28;
const KIND_SHIFT: u32 = Key::WHAT_BITS - 3;
const NUMBER_BITS: u32 = KIND_SHIFT - HANDLE_BITS;

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

/// Returns the rank of an event among those of the same time. Events of one kind and one port have
/// equal ranks. Bits of `what` above [`Key::WHAT_BITS`] keep their places above all others.
#[inline]
pub(crate) fn rank(time: Time, what: u64) -> u64 {
    const KINDS: u64 = 7;
    let rank = what >> HANDLE_BITS;
    match what >> KIND_SHIFT & KINDS <= ARRIVE >> KIND_SHIFT {
        // The upper bits of a product depend on all bits of the time.
        true => rank ^ time.as_ps().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - NUMBER_BITS),
        false => rank,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_an_order_and_ports_take_turns() {
        let at = |ps, kind, number: u64| rank(Time::from_ps(ps), kind | number << HANDLE_BITS);
        let is_first = |ps| {
            let kinds = [READY, ARRIVE, PFC, PROGRAM, OTHER, TIMER, WAKE];
            assert!(kinds.windows(2).all(|two| at(ps, two[0], 9) < at(ps, two[1], 4)));
            at(ps, ARRIVE, 4) < at(ps, ARRIVE, 9)
        };
        let times = (0..1_000).map(|n| 12_000 * n);
        let first = times.filter(|&ps| is_first(ps)).count();
        assert!((400..600).contains(&first), "{first}");
    }

    #[test]
    fn the_largest_parts_fit() {
        let (number, handle) = (PORTS_END as u32 - 1, HANDLES_END as u32 - 1);
        let key = packet_event(Time::ZERO, READY, number, handle);
        assert_eq!(parts(key.what), (READY, number, handle));
        assert!(key.what < 1 << Key::WHAT_BITS);
    }
}
