//! An output port: the state of one direction of a link, and the lists of packets in front of it.
//! The [disciplines](super::discipline) decide about the order of packets.
//!
//! The problem: each packet reads and changes the state of a port at each hop. The state of all
//! ports of a large network does not fit into the processor's cache.
//!
//! The simple way is one structure with a growable queue for each priority. It takes several cache
//! lines, though most packets find the link idle and need one field of it. A queue in its own
//! memory cannot release a packet in its middle without moving others. Fair queueing and pFabric's
//! ranks remove such packets.
//!
//! The present way: [`Port`] has the fields that packets need at an idle link, in one cache line
//! (`the_hot_part_fills_one_cache_line`). [`Queues`] has the ends of the lists, in another line
//! that only queued packets touch. Packets are linked in both directions through the pool, so each
//! operation takes constant time and no memory of the port. `busy_until` is the state of the link:
//! a port without queued packets needs no event. A port with queued packets has one wake-up at a
//! time in the event queue (`has_wakeup`).
//!
//! Hazards: at `busy_until` the link counts as idle, but queued packets come first. So a packet
//! that arrives at this instant must not start while `has_wakeup` is set. A packet must not change
//! its length while it is in a list, or `queued` is wrong from then on: trimming takes it out
//! first. A `Port` with more than 64 bytes costs a second cache miss at each hop. Bits of
//! `queued_priorities` must agree with the lists, because `has_sendable` reads these bits alone.

use crate::engine::{Handle, Links, NIL, PacketPool};
use rampmeter_types::{Bytes, Priority, Rate, Span, Time};

/// The hot part of a port: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    /// Time at which the packet on the link will have been sent.
    pub(crate) busy_until: Time,
    /// Propagation, and processing at the far end.
    pub(crate) delay: Span,
    /// Bytes sent since the start.
    pub(crate) tx_bytes: u64,
    /// Picoseconds a byte; zero if that is not whole and `rate` must be used.
    ps_per_byte: u32,
    /// Memory that waiting packets take in bytes, without the packet on the link.
    pub(crate) queued: u32,
    /// Maximum of `queued` so far.
    pub(crate) queued_max: u32,
    /// The far end: hosts by number, then switches.
    pub(crate) far_end: u32,
    /// Bytes that may wait, if buffers are per port.
    pub(crate) buffer_max: u32,
    /// The switch whose buffer this port shares; one past the last switch at hosts.
    pub(crate) switch: u32,
    /// Bytes of headers and control packets among `queued`, if ports trim.
    pub(crate) header_bytes: u32,
    /// Memory that a waiting packet takes at least.
    buffer_cell: u16,
    /// Packets of the header queue sent since the last data packet, if ports trim.
    pub(super) headers_since_data: u8,
    /// A bit per priority that has packets waiting.
    pub(crate) queued_priorities: u8,
    /// The tier that statistics count it in.
    pub(crate) tier: u8,
    /// False while its link is down.
    pub(crate) is_up: bool,
    /// True if a wake-up at `busy_until` is in the event queue.
    pub(crate) has_wakeup: bool,
    /// True if the link loses, duplicates or delays packets, ever fails, or leads to another
    /// partition.
    pub(crate) is_irregular: bool,
    /// A bit per priority that the far end has paused.
    pub(crate) paused_priorities: u8,
    /// Index of its thresholds in `Fabric::marking`.
    pub(crate) marking: u8,
}

/// The rest of a port: its packets, one list per priority in order of arrival, or a single list.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Queues {
    pub(super) head: [Handle; Priority::COUNT],
    pub(super) tail: [Handle; Priority::COUNT],
}

/// Picoseconds a byte; zero if that is not whole.
fn ps_per_byte(rate: Rate) -> u32 {
    rate.exact_ps_per_byte().and_then(|ps| u32::try_from(ps).ok()).unwrap_or(0)
}

impl Port {
    pub(crate) fn new(
        rate: Rate,
        delay: Span,
        far_end: u32,
        switch: u32,
        tier: u8,
        buffer_max: u32,
        buffer_cell: u16,
    ) -> Self {
        Self {
            busy_until: Time::ZERO,
            delay,
            tx_bytes: 0,
            ps_per_byte: ps_per_byte(rate),
            queued: 0,
            queued_max: 0,
            far_end,
            buffer_max,
            switch,
            header_bytes: 0,
            buffer_cell,
            headers_since_data: 0,
            queued_priorities: 0,
            tier,
            is_up: true,
            has_wakeup: false,
            is_irregular: false,
            paused_priorities: 0,
            marking: 0,
        }
    }

    /// Sends at another rate from the next packet on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.ps_per_byte = ps_per_byte(rate);
    }

    /// Memory that a packet of `bytes` takes while it waits.
    #[inline]
    pub(crate) fn memory_of(&self, bytes: u16) -> u32 {
        u32::from(bytes.max(self.buffer_cell))
    }

    /// Returns true if a packet is queued that may be sent.
    #[inline]
    pub(crate) fn has_sendable(&self) -> bool {
        self.queued_priorities & !self.paused_priorities != 0
    }

    /// Returns true if the far end has paused packets of `priority`.
    #[inline]
    pub(crate) fn is_paused(&self, priority: Priority) -> bool {
        self.paused_priorities >> priority.get() & 1 != 0
    }

    /// Returns true if packets of the highest priority are queued.
    #[inline]
    pub(crate) fn has_highest_queued(&self) -> bool {
        self.queued_priorities & 1 != 0
    }

    /// Returns the time to send `bytes`; `rate` is consulted if picoseconds a byte are not whole.
    #[inline]
    pub(crate) fn tx_time(&self, bytes: u16, rate: &[Rate], port: u32) -> Span {
        if self.ps_per_byte != 0 {
            return Span::from_ps(u64::from(bytes) * u64::from(self.ps_per_byte));
        }
        rate[port as usize].tx_time(Bytes::new(u64::from(bytes)))
    }
}

impl Queues {
    pub(crate) const EMPTY: Self =
        Self { head: [NIL; Priority::COUNT], tail: [NIL; Priority::COUNT] };

    /// Appends a packet to a list.
    #[inline]
    pub(super) fn append<H: Copy>(
        &mut self,
        class: usize,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        port.queued += port.memory_of(pool.get(handle).wire_bytes);
        port.queued_max = port.queued_max.max(port.queued);
        port.queued_priorities |= 1 << class;
        let last = std::mem::replace(&mut self.tail[class], handle);
        *pool.links(handle) = Links { next: NIL, previous: last };
        if last == NIL {
            self.head[class] = handle;
        } else {
            pool.links(last).next = handle;
        }
    }

    /// Takes the oldest packet of a list, which must have one.
    #[inline]
    pub(super) fn take_first<H: Copy>(
        &mut self,
        class: usize,
        port: &mut Port,
        pool: &mut PacketPool<H>,
    ) -> Handle {
        let handle = self.head[class];
        let next = pool.links(handle).next;
        self.head[class] = next;
        if next == NIL {
            self.tail[class] = NIL;
            port.queued_priorities &= !(1 << class);
        } else {
            pool.links(next).previous = NIL;
        }
        port.queued -= port.memory_of(pool.get(handle).wire_bytes);
        handle
    }

    /// Takes the newest packet of a list, which must have one.
    pub(super) fn take_last<H: Copy>(
        &mut self,
        class: usize,
        port: &mut Port,
        pool: &mut PacketPool<H>,
    ) -> Handle {
        let handle = self.tail[class];
        self.take(class, port, pool, handle);
        handle
    }

    /// Takes a packet out of the list that it is in.
    pub(super) fn take<H: Copy>(
        &mut self,
        class: usize,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        let Links { next, previous } = *pool.links(handle);
        match previous {
            NIL => self.head[class] = next,
            _ => pool.links(previous).next = next,
        }
        match next {
            NIL => self.tail[class] = previous,
            _ => pool.links(next).previous = previous,
        }
        if self.head[class] == NIL {
            port.queued_priorities &= !(1 << class);
        }
        port.queued -= port.memory_of(pool.get(handle).wire_bytes);
    }

    /// Calls `visit` with each packet.
    pub(crate) fn for_each<H: Copy>(&self, pool: &PacketPool<H>, mut visit: impl FnMut(Handle)) {
        for head in self.head {
            let mut at = head;
            while at != NIL {
                visit(at);
                at = pool.next(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_part_fills_one_cache_line() {
        assert_eq!((size_of::<Port>(), size_of::<Queues>()), (64, 64));
    }
}
