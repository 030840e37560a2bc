//! Start-time fair queueing within a class (Goyal, Vin, Cheng, SIGCOMM 1996, section 2; the aim is
//! that of Demers, Keshav, Shenker, SIGCOMM 1989): flows that have packets at a port get equal
//! shares of its link in bytes, whatever the length of their packets and the number of them.
//!
//! # Design
//!
//! Round robin by packets favours flows with long packets, and deficit round robin (Shreedhar and
//! Varghese, SIGCOMM 1995) has bursts of a quantum. Here a packet gets a start tag when it arrives:
//! the virtual time of the class, or the finish tag of the flow's last packet if that is later. The
//! finish tag is the start tag and the packet's bytes. The packet with the lowest start tag is sent
//! next, and the virtual time is its tag. A flow is a message, as for ECMP.
//!
//! Tags are kept in an index by order, so that a choice takes logarithmic time. A flow without
//! packets is forgotten once the virtual time has passed its finish tag, and all flows are when the
//! class is empty, so that memory is bounded by the packets that are queued.
//!
//! Hazards: every packet in a list of the class must be in its index, and no other. Packets that
//! are pushed out are removed from it, but the share that they had taken is not returned.

use std::collections::{BTreeSet, HashMap};

use rampmeter_core::{Packet, Priority};

use crate::engine::{Handle, PacketPool};

/// Source and number of a message.
type Flow = (u32, u32);

/// Packets of the ports of a fabric by their tags; empty if ports are not fair.
#[derive(Debug, Default)]
pub(in super::super) struct FairIndex {
    /// Classes of each port: port, then class.
    classes: Vec<FairClass>,
    /// Start tag and order of arrival of each queued packet, by handle.
    tags: Vec<Tag>,
    n_arrived: u64,
}

/// Start tag in bytes, and order of arrival, of a packet.
type Tag = (u64, u64);

/// The packets of one class of a port.
#[derive(Clone, Debug, Default)]
struct FairClass {
    /// Start tag of the last packet that was sent.
    virtual_time: u64,
    /// Finish tag of the last packet of each flow.
    finish: HashMap<Flow, u64>,
    queued: BTreeSet<(Tag, Handle)>,
}

impl FairIndex {
    /// Returns the index of fair ports.
    pub(in super::super) fn new(n_ports: usize) -> Self {
        let classes = vec![FairClass::default(); n_ports * Priority::COUNT];
        Self { classes, ..Self::default() }
    }

    /// Returns true if ports are fair.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Adds a packet that arrives at a port.
    #[cold]
    pub(super) fn push<H: Copy>(
        &mut self,
        port: u32,
        class: usize,
        pool: &PacketPool<H>,
        handle: Handle,
    ) {
        let packet = pool.get(handle);
        let own = &mut self.classes[port as usize * Priority::COUNT + class];
        if own.finish.len() > 2 * own.queued.len() + 8 {
            let now = own.virtual_time;
            own.finish.retain(|_, finish| *finish > now);
        }
        let finish = own.finish.entry(flow_of(packet)).or_default();
        let start = own.virtual_time.max(*finish);
        *finish = start + u64::from(packet.wire_bytes);
        self.n_arrived += 1;
        let tag = (start, self.n_arrived);
        own.queued.insert((tag, handle));
        let at = handle as usize;
        if self.tags.len() <= at {
            self.tags.resize(at + 1, (0, 0));
        }
        self.tags[at] = tag;
    }

    /// Takes the packet of a class that is sent next.
    #[cold]
    pub(super) fn pop(&mut self, port: u32, class: usize) -> Handle {
        let own = &mut self.classes[port as usize * Priority::COUNT + class];
        let ((start, _), handle) = own.queued.pop_first().expect("the class has a packet");
        own.virtual_time = start;
        own.forget_if_empty();
        handle
    }

    /// Removes a packet that is pushed out.
    #[cold]
    pub(super) fn remove(&mut self, port: u32, class: usize, handle: Handle) {
        let own = &mut self.classes[port as usize * Priority::COUNT + class];
        let was_queued = own.queued.remove(&(self.tags[handle as usize], handle));
        assert!(was_queued, "a packet of port {port} was in no index");
        own.forget_if_empty();
    }
}

impl FairClass {
    fn forget_if_empty(&mut self) {
        if self.queued.is_empty() {
            self.finish.clear();
            self.virtual_time = 0;
        }
    }
}

#[allow(clippy::items_after_test_module, reason = "x")]
fn flow_of<H>(packet: &Packet<H>) -> Flow {
    (packet.src.get(), packet.payload.msg.get())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rampmeter_core::packet::{Marks, PayloadRef};
    use rampmeter_core::{MsgId, NodeId, Time};

    use super::*;

    const PORT: u32 = 2;
    const CLASS: usize = 5;

    fn arrive(index: &mut FairIndex, pool: &mut PacketPool<()>, src: u32, wire_bytes: u16) {
        let payload = PayloadRef { msg: MsgId::new(7), offset: 0, len: 0 };
        let packet = Packet {
            payload,
            src: NodeId::new(src),
            dst: NodeId::new(9),
            wire_bytes,
            path: 0,
            priority: Priority::new(CLASS as u8),
            marks: Marks::NONE,
            header: (),
        };
        let handle = pool.insert(packet, Time::ZERO);
        index.push(PORT, CLASS, pool, handle);
    }

    proptest! {
        /// Flows that always have packets are served within the longest packet of one another
        /// (Goyal et al., theorem 1: the sum of the longest packets of both).
        #[test]
        fn backlogged_flows_get_equal_bytes(lengths in prop::collection::vec(64..1500u16, 2..6)) {
            let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
            for (src, &bytes) in (0..).zip(&lengths) {
                (0..200).for_each(|_| arrive(&mut index, &mut pool, src, bytes));
            }
            let mut served = vec![0u64; lengths.len()];
            let n_flows = lengths.len() as u64;
            while served.iter().sum::<u64>() < n_flows * 200 * 64 {
                let packet = *pool.get(index.pop(PORT, CLASS));
                served[packet.src.get() as usize] += u64::from(packet.wire_bytes);
                let (least, most) = (served.iter().min(), served.iter().max());
                prop_assert!(most.unwrap() - least.unwrap() <= 2 * 1_500, "{served:?}");
            }
        }
    }

    #[test]
    fn a_flow_keeps_its_order_and_gains_nothing_by_waiting() {
        let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
        for _ in 0..4 {
            arrive(&mut index, &mut pool, 0, 1_000);
        }
        let first: Vec<_> = (0..2).map(|_| index.pop(PORT, CLASS)).collect();
        assert_eq!(first, [0, 1]);
        // A flow that was idle begins at the virtual time, 1000, not at zero.
        arrive(&mut index, &mut pool, 1, 1_000);
        arrive(&mut index, &mut pool, 1, 1_000);
        let rest: Vec<_> = (0..4).map(|_| index.pop(PORT, CLASS)).collect();
        assert_eq!(rest, [4, 2, 5, 3]);
    }

    #[test]
    fn memory_is_bounded_by_queued_packets() {
        let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
        for src in 0..10_000 {
            arrive(&mut index, &mut pool, src, 1_000);
            arrive(&mut index, &mut pool, 100_000 + src, 64);
            index.pop(PORT, CLASS);
            if src > 3 {
                index.pop(PORT, CLASS);
            }
        }
        let own = &index.classes[PORT as usize * Priority::COUNT + CLASS];
        assert!(own.queued.len() <= 10 && own.finish.len() <= 64, "{}", own.finish.len());
        while !own_is_empty(&index) {
            index.pop(PORT, CLASS);
        }
        assert!(index.classes.iter().all(|class| class.finish.is_empty()));
    }

    fn own_is_empty(index: &FairIndex) -> bool {
        index.classes.iter().all(|class| class.queued.is_empty())
    }
}
