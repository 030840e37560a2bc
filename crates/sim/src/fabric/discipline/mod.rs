//! Queueing disciplines of ports: the order of their packets, and the one that is dropped when
//! memory is short.
//!
//! The problem: every queued packet is pushed and popped here, so a port must choose its next
//! packet and its victim within some ten instructions. Transports need different orders.
//!
//! The simple way puts a discipline behind a pointer, which costs a call for each packet. An `if`
//! for each discipline in the code of ports has no such cost. Then each new discipline is a change
//! in eight places.
//!
//! The present way: a discipline is a type in a separate file. The constant
//! [`QUEUEING`](rampmeter_types::SwitchProgram) names it at compile time. So the matches below
//! vanish, and code of other disciplines is not generated. All disciplines keep packets in the
//! lists of [`Queues`](super::port::Queues). Faults, pauses and the search for deadlocks walk these
//! lists. A discipline may have an index of them in addition, as [fair queueing](fair) has.
//!
//! Hazards: a packet that is queued or taken must pass [`PortQueue`], or memory, statistics and an
//! index disagree. Memory of the switch is accounted by the callers (`begin_wait`, `end_wait`).

mod classes;
mod fair;
mod queue;
mod ranks;
mod trimming;

use rampmeter_types::{Header, Queueing};

use crate::engine::Handle;
use classes::Classes;
pub(super) use fair::FairIndex;
use queue::Discipline;
pub(super) use queue::PortQueue;
use ranks::Ranks;
use trimming::Trimming;

/// Calls a function of the discipline with this name, or reads a constant of it.
macro_rules! of_discipline {
    ($queueing:expr, $item:ident $($arguments:tt)?) => {
        match $queueing {
            Queueing::Classes => Classes::$item $($arguments)?,
            Queueing::Trimming => Trimming::$item $($arguments)?,
            Queueing::Ranks => Ranks::$item $($arguments)?,
        }
    };
}

impl<H: Header> PortQueue<'_, H> {
    /// Queues a packet, for which there is memory.
    #[inline(always)]
    pub(super) fn push(self, queueing: Queueing, handle: Handle) {
        of_discipline!(queueing, push(self, handle));
    }

    /// Takes the packet to send next; the port has one that is not paused.
    #[inline(always)]
    pub(super) fn pop(self, queueing: Queueing) -> Handle {
        of_discipline!(queueing, pop(self))
    }

    /// Takes a packet that is dropped so that the packet `arriving` fits; `None` if that one is
    /// dropped.
    #[inline(always)]
    pub(super) fn choose_drop(self, queueing: Queueing, arriving: Handle) -> Option<Handle> {
        of_discipline!(queueing, choose_drop(self, arriving))
    }
}

/// Returns true if small packets of the highest priority may have their departure time at once.
pub(super) const fn is_express(queueing: Queueing) -> bool {
    of_discipline!(queueing, IS_EXPRESS)
}

/// Returns true if a pause stops all packets.
pub(super) const fn pauses_all(queueing: Queueing) -> bool {
    of_discipline!(queueing, PAUSES_ALL)
}

/// Returns true if a switch trims data packets that do not fit.
pub(super) const fn trims(queueing: Queueing) -> bool {
    of_discipline!(queueing, TRIMS)
}
