//! Events: kind, port or end, and packet, in the 52 bits of a key; and the order of simultaneous
//! ones.
//!
//! *Problem*: many events have equal times, as links have equal rates and transports have slots. If
//! the order of insertion decided between them, results would depend on how the engine works.
//!
//! *This way*: simultaneous events are ordered by kind, then by port or end. Two events of one kind
//! and one port are inserted in order by one place. Kinds follow one another as they do in a
//! switch: packets arrive before an idle link chooses among those that are queued.
//!
//! *Hazard*: of packets that arrive at once the one on the lowest port is first each time. A hash
//! of the time in the order would let links take turns. But then slowdowns would depend on the unit
//! of time.

use rampmeter_types::Time;

use super::handle::{HANDLE_BITS, HANDLES_END, Handle};
use super::key::EventKey;

/// A packet may be forwarded that was too early for its output link, which is faster than its input
/// link.
pub(crate) const READY: u64 = 0;
/// A packet is at the far end of a link.
pub(crate) const ARRIVE: u64 = 1 << KIND_SHIFT;
/// A pause, or the end of one, has reached a port: the packet's place is 1 for a pause.
pub(crate) const PFC: u64 = 2 << KIND_SHIFT;
/// The deadline of a switch's program.
pub(crate) const PROGRAM: u64 = 3 << KIND_SHIFT;
/// Event without a port: its number is the kind.
pub(crate) const OTHER: u64 = 4 << KIND_SHIFT;
/// An endpoint's deadline.
pub(crate) const TIMER: u64 = 5 << KIND_SHIFT;
/// A link falls idle.
pub(crate) const WAKE: u64 = 6 << KIND_SHIFT;

/// Exclusive upper bound of port numbers.
pub(crate) const PORTS_END: usize = 1 << NUMBER_BITS;

const KIND_SHIFT: u32 = EventKey::CODE_BITS - 3;
const NUMBER_BITS: u32 = KIND_SHIFT - HANDLE_BITS;

/// Returns an event that concerns a port or an end.
#[inline]
pub(crate) fn event(time: Time, kind: u64, number: u32) -> EventKey {
    EventKey { time, code: kind | u64::from(number) << HANDLE_BITS }
}

/// Returns an event that concerns a packet at a port.
#[inline]
pub(crate) fn packet_event(time: Time, kind: u64, number: u32, handle: Handle) -> EventKey {
    EventKey { time, code: kind | u64::from(number) << HANDLE_BITS | u64::from(handle) }
}

/// Returns the kind of an event, the number of its port or end, and its packet.
#[inline]
pub(crate) fn decode(code: u64) -> (u64, u32, Handle) {
    let kind = code >> KIND_SHIFT << KIND_SHIFT;
    let number = (code ^ kind) >> HANDLE_BITS;
    (kind, number as u32, (code % HANDLES_END as u64) as Handle)
}

/// Returns the rank of an event among those of the same time. Events of one kind and one port have
/// equal ranks. Bits of `code` above [`EventKey::CODE_BITS`] keep their places above all others.
#[inline]
pub(crate) fn rank(code: u64) -> u64 {
    code >> HANDLE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_an_order_and_then_ports() {
        let of = |kind, number, handle| rank(packet_event(Time::ZERO, kind, number, handle).code);
        let kinds = [READY, ARRIVE, PFC, PROGRAM, OTHER, TIMER, WAKE];
        assert!(kinds.windows(2).all(|two| of(two[0], 9, 0) < of(two[1], 4, 0)));
        assert!(of(ARRIVE, 4, 9) < of(ARRIVE, 9, 4));
        assert_eq!(of(ARRIVE, 4, 9), of(ARRIVE, 4, 4));
    }

    #[test]
    fn event_keys_hold_the_largest_port_and_packet_number() {
        let (number, handle) = (PORTS_END as u32 - 1, HANDLES_END as u32 - 1);
        let key = packet_event(Time::ZERO, READY, number, handle);
        assert_eq!(decode(key.code), (READY, number, handle));
        assert!(key.code < 1 << EventKey::CODE_BITS);
    }
}
