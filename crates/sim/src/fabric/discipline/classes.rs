//! Strict priority: the oldest packet of the highest class, or the one that
//! [fair queueing](super::fair) chooses in that class.

use rampmeter_types::Header;

use super::super::config::Overflow;
use super::queue::{Discipline, PortQueue};
use crate::engine::Handle;

pub(super) struct Classes;

impl Discipline for Classes {
    const IS_EXPRESS: bool = true;

    #[inline(always)]
    fn push<H: Header>(at: PortQueue<'_, H>, handle: Handle) {
        let class = usize::from(at.pool.get(handle).priority.get());
        if at.fair.is_on() {
            at.fair.push(at.number, class, at.pool, handle);
        }
        at.queues.append(class, at.port, at.pool, handle);
    }

    #[inline(always)]
    fn pop<H: Header>(at: PortQueue<'_, H>) -> Handle {
        let class = at.port.queued_priorities.trailing_zeros() as usize;
        if at.fair.is_on() {
            let handle = at.fair.pop(at.number, class, at.pool);
            at.queues.take(class, at.port, at.pool, handle);
            return handle;
        }
        at.queues.take_first(class, at.port, at.pool)
    }

    /// Takes the newest packet of the lowest class below that of the arriving packet, if the fabric
    /// pushes packets out. Otherwise fair queueing takes one of the longest flow of its class.
    fn choose_drop<H: Header>(at: PortQueue<'_, H>, arriving: Handle) -> Option<Handle> {
        let own = usize::from(at.pool.get(arriving).priority.get());
        let lowest = lowest_class(at.port.queued_priorities)?;
        if at.config.overflow == Overflow::PushOut && lowest > own {
            let handle = at.queues.take_last(lowest, at.port, at.pool);
            if at.fair.is_on() {
                at.fair.remove_newest(at.number, lowest, at.pool, handle);
            }
            return Some(handle);
        }
        if !at.fair.is_on() {
            return None;
        }
        let handle = at.fair.steal(at.number, own, at.pool, arriving)?;
        at.queues.take(own, at.port, at.pool, handle);
        Some(handle)
    }
}

/// Returns the lowest class of the bits of those that have packets.
pub(super) fn lowest_class(waiting: u8) -> Option<usize> {
    7usize.checked_sub(waiting.leading_zeros() as usize)
}
