//! NDP's ports (section 3.1): one queue of data packets, and one of headers and control packets,
//! which is the list of the highest class.

use rampmeter_types::{Header, Priority};

use super::classes::lowest_class;
use super::queue::{Discipline, PortQueue};
use crate::engine::Handle;

pub(super) struct Trimming;

impl Discipline for Trimming {
    const TRIMS: bool = true;

    #[inline(always)]
    fn push<H: Header>(at: PortQueue<'_, H>, handle: Handle) {
        let packet = at.pool.get(handle);
        let class = packet.priority;
        if class == Priority::HIGHEST {
            at.port.header_bytes += at.port.memory_of(packet.wire_bytes);
        }
        at.queues.append(usize::from(class.get()), at.port, at.pool, handle);
    }

    /// Takes the oldest packet of the header queue; of the other one after `ratio` headers, if it
    /// has any and the ratio is not zero.
    #[inline(always)]
    fn pop<H: Header>(at: PortQueue<'_, H>) -> Handle {
        let PortQueue { port, queues, pool, .. } = at;
        let ratio = at.config.trim.ratio;
        let both_wait = port.has_highest_queued() && port.queued_priorities != 1;
        if both_wait && ratio != 0 && port.headers_since_data >= ratio {
            port.headers_since_data = 0;
            let class = (port.queued_priorities & !1).trailing_zeros() as usize;
            return queues.take_first(class, port, pool);
        }
        port.headers_since_data =
            if both_wait { port.headers_since_data.saturating_add(1) } else { 0 };
        let is_header = port.has_highest_queued();
        let class = port.queued_priorities.trailing_zeros() as usize;
        let handle = queues.take_first(class, port, pool);
        if is_header {
            port.header_bytes -= port.memory_of(pool.get(handle).wire_bytes);
        }
        handle
    }

    fn choose_drop<H: Header>(_at: PortQueue<'_, H>, _arriving: Handle) -> Option<Handle> {
        None
    }
}

impl<H: Header> PortQueue<'_, H> {
    /// Takes the newest data packet, which is trimmed.
    pub(crate) fn take_newest_data(self) -> Option<Handle> {
        let class = lowest_class(self.port.queued_priorities).filter(|&class| class > 0)?;
        Some(self.queues.take_last(class, self.port, self.pool))
    }
}
