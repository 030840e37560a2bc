//! Order by rank (pFabric §4.1, §4.2). All packets are in one list, in order of arrival, and it is
//! searched: pFabric's buffers hold two dozen full packets (§4.2 searches them in hardware).

use rampmeter_types::{Header, Packet};

use super::queue::{Discipline, PortQueue};
use crate::engine::{Handle, NIL};

/// The list that has all packets.
const LIST: usize = 0;

pub(super) struct Ranks;

impl Discipline for Ranks {
    const PAUSES_ALL: bool = true;

    fn push<H: Header>(at: PortQueue<'_, H>, handle: Handle) {
        at.queues.append(LIST, at.port, at.pool, handle);
    }

    /// Takes the earliest packet of the message whose packet has the lowest rank, the first of
    /// equals.
    fn pop<H: Header>(at: PortQueue<'_, H>) -> Handle {
        let PortQueue { port, queues, pool, .. } = at;
        let mut best = queues.head[LIST];
        let mut rank = pool.get(best).header.rank();
        let mut next = pool.links(best).next;
        while next != NIL {
            let its = pool.get(next).header.rank();
            if its < rank {
                (best, rank) = (next, its);
            }
            next = pool.links(next).next;
        }
        let flow = |p: &Packet<H>| (p.src, p.payload.msg, p.dst);
        let best_flow = flow(pool.get(best));
        let mut first = queues.head[LIST];
        while flow(pool.get(first)) != best_flow {
            first = pool.links(first).next;
        }
        queues.take(LIST, port, pool, first);
        first
    }

    /// Takes the packet of the highest rank above that of the arriving packet, the newest of
    /// equals.
    fn choose_drop<H: Header>(at: PortQueue<'_, H>, arriving: Handle) -> Option<Handle> {
        let PortQueue { port, queues, pool, .. } = at;
        let (mut worst, mut rank) = (NIL, pool.get(arriving).header.rank());
        let mut next = queues.tail[LIST];
        while next != NIL {
            let its = pool.get(next).header.rank();
            if its > rank {
                (worst, rank) = (next, its);
            }
            next = pool.links(next).previous;
        }
        if worst == NIL {
            return None;
        }
        queues.take(LIST, port, pool, worst);
        Some(worst)
    }
}
