//! The queued packets of a port, and the decisions of a discipline about them.

use rampmeter_types::Header;

use super::fair::FairIndex;
use crate::engine::{Handle, PacketPool};
use crate::fabric::config::FabricConfig;
use crate::fabric::port::{Port, Queues};

/// A queueing discipline.
pub(super) trait Discipline {
    /// True if small packets of the highest priority may have their departure time at once: no
    /// packet overtakes them in the queue.
    const IS_EXPRESS: bool = false;
    /// True if a pause stops all packets, because the lists are not by class.
    const PAUSES_ALL: bool = false;
    /// True if a switch trims data packets that do not fit.
    const TRIMS: bool = false;

    /// Queues a packet, for which there is memory.
    fn push<H: Header>(at: PortQueue<'_, H>, handle: Handle);

    /// Takes the packet to send next; the port has one that is not paused.
    fn pop<H: Header>(at: PortQueue<'_, H>) -> Handle;

    /// Takes a packet that is dropped so that the packet `arriving` fits; `None` if that one is
    /// dropped.
    fn choose_drop<H: Header>(at: PortQueue<'_, H>, arriving: Handle) -> Option<Handle>;
}

/// The queued packets of one port.
pub(crate) struct PortQueue<'a, H> {
    /// Number of the port.
    pub(crate) number: u32,
    pub(crate) port: &'a mut Port,
    pub(crate) queues: &'a mut Queues,
    pub(crate) pool: &'a mut PacketPool<H>,
    pub(crate) fair: &'a mut FairIndex,
    pub(crate) config: &'a FabricConfig,
}
