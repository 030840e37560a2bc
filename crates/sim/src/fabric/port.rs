//! An output port: the state of one direction of a link, and the queues in front of it.

use crate::engine::{Handle, Links, NIL, PacketPool};
use rampmeter_core::{Bytes, Header, Packet, Priority, Rate, Span, Time};

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
    /// The most that they ever took.
    pub(crate) queued_max: u32,
    /// The far end: hosts by number, then switches.
    pub(crate) to: u32,
    /// Bytes that may wait, if buffers are per port.
    pub(crate) buffer: u32,
    /// The switch whose buffer this port shares; one past the last switch at hosts.
    pub(crate) switch: u32,
    /// Bytes of headers and control packets among `queued`, if ports trim.
    pub(crate) headers: u32,
    /// Memory that a waiting packet takes at least.
    slot: u16,
    /// Packets of the header queue sent since the last data packet, if ports trim.
    turn: u8,
    /// A bit per priority that has packets waiting.
    pub(crate) waiting: u8,
    /// The tier that statistics count it in.
    pub(crate) tier: u8,
    /// False while its link is down.
    pub(crate) up: bool,
    /// True if a wake-up at `busy_until` is in the event queue.
    pub(crate) woken: bool,
    /// True if the link loses, duplicates or delays packets, or ever fails.
    pub(crate) faulty: bool,
    /// A bit per priority that the far end has paused.
    pub(crate) stopped: u8,
    /// Index of its thresholds in `Fabric::marking`.
    pub(crate) marking: u8,
}

/// The rest of a port: its queues, one list per priority, or a single one in order of arrival if
/// ports queue by rank.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Queues {
    head: [Handle; Priority::COUNT],
    tail: [Handle; Priority::COUNT],
}

/// Picoseconds a byte; zero if that is not whole.
fn ps_per_byte(rate: Rate) -> u32 {
    rate.exact_ps_per_byte().and_then(|ps| u32::try_from(ps).ok()).unwrap_or(0)
}

impl Port {
    pub(crate) fn new(
        rate: Rate,
        delay: Span,
        to: u32,
        switch: u32,
        tier: u8,
        (buffer, slot): (u32, u16),
    ) -> Self {
        Self {
            busy_until: Time::ZERO,
            delay,
            tx_bytes: 0,
            ps_per_byte: ps_per_byte(rate),
            queued: 0,
            queued_max: 0,
            to,
            buffer,
            switch,
            headers: 0,
            slot,
            turn: 0,
            waiting: 0,
            tier,
            up: true,
            woken: false,
            faulty: false,
            stopped: 0,
            marking: 0,
        }
    }

    /// Sends at another rate from the next packet on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.ps_per_byte = ps_per_byte(rate);
    }

    /// Memory that a packet of `bytes` takes while it waits.
    #[inline]
    pub(crate) fn taken_by(&self, bytes: u16) -> u32 {
        u32::from(bytes.max(self.slot))
    }

    /// Returns true if a packet is queued that may be sent.
    #[inline]
    pub(crate) fn has_sendable(&self) -> bool {
        self.waiting & !self.stopped != 0
    }

    /// Returns true if the far end has paused packets of `priority`.
    #[inline]
    pub(crate) fn stops(&self, priority: Priority) -> bool {
        self.stopped >> priority.get() & 1 != 0
    }

    /// Returns true if packets of the highest priority are queued.
    #[inline]
    pub(crate) fn highest_waits(&self) -> bool {
        self.waiting & 1 != 0
    }

    /// Time to send `bytes`; `rate` is consulted if picoseconds a byte are not whole.
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

    /// Appends a packet to the queue of its priority.
    #[inline]
    pub(crate) fn push<H: Copy>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        let packet = pool.get(handle);
        let (class, bytes) = (packet.priority.get() as usize, packet.wire_bytes);
        port.queued += port.taken_by(bytes);
        port.queued_max = port.queued_max.max(port.queued);
        port.waiting |= 1 << class;
        let last = std::mem::replace(&mut self.tail[class], handle);
        *pool.links(handle) = Links { next: NIL, prev: last };
        if last == NIL {
            self.head[class] = handle;
        } else {
            pool.links(last).next = handle;
        }
    }

    /// Takes the oldest packet of the highest priority; the port must have one waiting.
    #[inline]
    pub(crate) fn pop<H: Copy>(&mut self, port: &mut Port, pool: &mut PacketPool<H>) -> Handle {
        let class = port.waiting.trailing_zeros() as usize;
        let handle = self.head[class];
        let next = pool.links(handle).next;
        self.head[class] = next;
        if next == NIL {
            self.tail[class] = NIL;
            port.waiting &= !(1 << class);
        } else {
            pool.links(next).prev = NIL;
        }
        port.queued -= port.taken_by(pool.get(handle).wire_bytes);
        handle
    }

    /// Calls `of` with each packet.
    pub(crate) fn for_each<H: Copy>(&self, pool: &PacketPool<H>, mut of: impl FnMut(Handle)) {
        for head in self.head {
            let mut at = head;
            while at != NIL {
                of(at);
                at = pool.next(at);
            }
        }
    }

    /// Takes the newest packet of the lowest priority, if that is lower than `than`.
    pub(crate) fn pop_lowest<H: Copy>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        than: Priority,
    ) -> Option<Handle> {
        let class = 7usize.checked_sub(port.waiting.leading_zeros() as usize)?;
        if class <= than.get() as usize {
            return None;
        }
        let handle = self.tail[class];
        let before = pool.links(handle).prev;
        self.tail[class] = before;
        if before == NIL {
            self.head[class] = NIL;
            port.waiting &= !(1 << class);
        } else {
            pool.links(before).next = NIL;
        }
        port.queued -= port.taken_by(pool.get(handle).wire_bytes);
        Some(handle)
    }
}

/// Ports that trim: the list of the highest class is the header queue.
impl Queues {
    /// Appends a packet to the queue of its priority.
    #[inline]
    pub(crate) fn push_trimming<H: Copy>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        let packet = pool.get(handle);
        if packet.priority == Priority::HIGHEST {
            port.headers += port.taken_by(packet.wire_bytes);
        }
        self.push(port, pool, handle);
    }

    /// Takes the oldest packet of the header queue; of the other one after `ratio` headers, if it
    /// has any and the ratio is not zero.
    #[inline]
    pub(crate) fn pop_by_turns<H: Copy>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        ratio: u8,
    ) -> Handle {
        let both_wait = port.highest_waits() && port.waiting != 1;
        if both_wait && ratio != 0 && port.turn >= ratio {
            port.turn = 0;
            // The header queue is out of sight for one packet.
            port.waiting &= !1;
            let handle = self.pop(port, pool);
            port.waiting |= 1;
            return handle;
        }
        port.turn = if both_wait { port.turn.saturating_add(1) } else { 0 };
        let is_header = port.highest_waits();
        let handle = self.pop(port, pool);
        if is_header {
            port.headers -= port.taken_by(pool.get(handle).wire_bytes);
        }
        handle
    }
}

/// Queueing by rank. All packets are in the list of the highest class, in order of arrival, and it
/// is searched. pFabric's buffers hold two dozen full packets (§4.2 searches them in hardware).
impl Queues {
    /// Appends a packet.
    pub(crate) fn push_ranked<H: Header>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        port.queued += port.taken_by(pool.get(handle).wire_bytes);
        port.queued_max = port.queued_max.max(port.queued);
        port.waiting = 1;
        let last = std::mem::replace(&mut self.tail[0], handle);
        *pool.links(handle) = Links { next: NIL, prev: last };
        if last == NIL {
            self.head[0] = handle;
        } else {
            pool.links(last).next = handle;
        }
    }

    /// Takes the earliest packet of the message whose packet has the lowest rank, the first of
    /// equals.
    pub(crate) fn pop_best<H: Header>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
    ) -> Handle {
        let mut best = self.head[0];
        let mut rank = pool.get(best).header.rank();
        let mut at = pool.links(best).next;
        while at != NIL {
            let its = pool.get(at).header.rank();
            if its < rank {
                (best, rank) = (at, its);
            }
            at = pool.links(at).next;
        }
        let flow = |p: &Packet<H>| (p.src, p.payload.msg, p.dst);
        let wanted = flow(pool.get(best));
        let mut at = self.head[0];
        while flow(pool.get(at)) != wanted {
            at = pool.links(at).next;
        }
        self.unlink_ranked(port, pool, at);
        at
    }

    /// Takes the packet of the highest rank above `than`, the newest of equals; `None` if there is
    /// none.
    pub(crate) fn pop_worst<H: Header>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        than: u32,
    ) -> Option<Handle> {
        let (mut worst, mut rank) = (NIL, than);
        let mut at = self.tail[0];
        while at != NIL {
            let its = pool.get(at).header.rank();
            if its > rank {
                (worst, rank) = (at, its);
            }
            at = pool.links(at).prev;
        }
        if worst == NIL {
            return None;
        }
        self.unlink_ranked(port, pool, worst);
        Some(worst)
    }

    fn unlink_ranked<H: Header>(
        &mut self,
        port: &mut Port,
        pool: &mut PacketPool<H>,
        handle: Handle,
    ) {
        let Links { next, prev } = *pool.links(handle);
        match prev {
            NIL => self.head[0] = next,
            _ => pool.links(prev).next = next,
        }
        match next {
            NIL => self.tail[0] = prev,
            _ => pool.links(next).prev = prev,
        }
        if self.head[0] == NIL {
            port.waiting = 0;
        }
        port.queued -= port.taken_by(pool.get(handle).wire_bytes);
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
