//! Start-time fair queueing within a class (Goyal, Vin, Cheng, SIGCOMM 1996, section 2).
//!
//! Flows that have packets at a port get equal shares of its link in bytes, for any length and
//! number of their packets. The aim is that of Demers, Keshav, Shenker (SIGCOMM 1989).
//!
//! # Design
//!
//! Round robin by packets favours flows with long packets, and deficit round robin (Shreedhar and
//! Varghese, SIGCOMM 1995) has bursts of a quantum. Here a packet gets a start tag when it arrives:
//! the virtual time of the class, or the finish tag of the flow's last packet if that is later. The
//! finish tag is the start tag and the packet's bytes. The packet with the lowest start tag is sent
//! next, and the virtual time is its tag. A flow is a message, as for ECMP.
//!
//! Without memory for all, a flow with a long queue would keep others out. A packet that does not
//! fit takes the memory of the newest packet of the flow that has the most bytes in its class
//! (McKenney, INFOCOM 1990; "buffer stealing" of Shreedhar and Varghese), if its own flow has less.
//!
//! Flows are kept by the tag of their first packet and by their bytes, so that a choice takes
//! logarithmic time. Flows without packets are forgotten when they outnumber those with packets,
//! and all flows are when the class is empty. So memory is bounded by queued packets. A flow that
//! is forgotten before the virtual time has passed its finish tag gains one packet.
//!
//! Hazards: every packet in a list of the class must be in its index, and no other.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rampmeter_types::{Packet, Priority};

use crate::engine::{Handle, PacketPool};

/// Source and number of a message.
type Flow = (u32, u32);

/// Start tag in bytes, and order of arrival, of a packet.
type Tag = (u64, u64);

/// Flows without packets whose state a class always keeps.
const IDLE_FLOWS: usize = 64;

/// Queued packets of the ports of a fabric by flow; empty if ports are not fair.
#[derive(Debug, Default)]
pub(crate) struct FairIndex {
    /// Classes of each port: port, then class.
    classes: Vec<FairClass>,
    n_arrived: u64,
}

/// The packets of one class of a port.
#[derive(Clone, Debug, Default)]
struct FairClass {
    /// Start tag of the last packet that was sent.
    virtual_time: u64,
    flows: HashMap<Flow, FairFlow>,
    /// Flows that have packets, by the tag of the first.
    by_tag: BTreeSet<(Tag, Flow)>,
    /// The same, by the bytes of their packets.
    by_bytes: BTreeSet<(u64, Flow)>,
}

/// A flow in a class of a port.
#[derive(Clone, Debug, Default)]
struct FairFlow {
    /// Finish tag of its last packet.
    finish: u64,
    /// Bytes of its queued packets.
    bytes: u64,
    packets: VecDeque<(Tag, Handle)>,
}

impl FairIndex {
    /// Returns the index of fair ports.
    pub(crate) fn new(n_ports: usize) -> Self {
        let classes = vec![FairClass::default(); n_ports * Priority::COUNT];
        Self { classes, n_arrived: 0 }
    }

    /// Returns true if ports are fair.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        !self.classes.is_empty()
    }

    fn class(&mut self, port: u32, class: usize) -> &mut FairClass {
        &mut self.classes[port as usize * Priority::COUNT + class]
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
        self.n_arrived += 1;
        let (packet, n_arrived) = (pool.get(handle), self.n_arrived);
        self.class(port, class).push(flow_of(packet), packet.wire_bytes.into(), n_arrived, handle);
    }

    /// Takes the packet of a class that is sent next.
    #[cold]
    pub(super) fn pop<H: Copy>(&mut self, port: u32, class: usize, pool: &PacketPool<H>) -> Handle {
        let own = self.class(port, class);
        let &((start, _), flow) = own.by_tag.first().expect("the class has a packet");
        own.virtual_time = start;
        own.take(flow, pool, VecDeque::pop_front).1
    }

    /// Takes the newest packet of a class, which is `handle`.
    #[cold]
    pub(super) fn remove_newest<H: Copy>(
        &mut self,
        port: u32,
        class: usize,
        pool: &PacketPool<H>,
        handle: Handle,
    ) {
        let taken = self.class(port, class).take_newest(flow_of(pool.get(handle)), pool);
        assert!(taken == handle, "port {port} took packet {taken} instead of {handle}");
    }

    /// Takes the newest packet of the flow with the most bytes, if the flow of the packet
    /// `arriving` has less with it.
    #[cold]
    pub(super) fn steal<H: Copy>(
        &mut self,
        port: u32,
        class: usize,
        pool: &PacketPool<H>,
        arriving: Handle,
    ) -> Option<Handle> {
        let (own, packet) = (self.class(port, class), pool.get(arriving));
        let &(most, longest) = own.by_bytes.last()?;
        let queued = own.flows.get(&flow_of(packet)).map_or(0, |flow| flow.bytes);
        (most > queued + u64::from(packet.wire_bytes)).then(|| own.take_newest(longest, pool))
    }
}

impl FairClass {
    fn push(&mut self, flow: Flow, bytes: u64, n_arrived: u64, handle: Handle) {
        if self.flows.len() > 2 * self.by_tag.len() + IDLE_FLOWS {
            self.flows.retain(|_, flow| !flow.packets.is_empty());
        }
        let own = self.flows.entry(flow).or_default();
        let tag = (self.virtual_time.max(own.finish), n_arrived);
        self.by_bytes.remove(&(own.bytes, flow));
        own.finish = tag.0 + bytes;
        own.bytes += bytes;
        own.packets.push_back((tag, handle));
        if own.packets.len() == 1 {
            self.by_tag.insert((tag, flow));
        }
        self.by_bytes.insert((own.bytes, flow));
    }

    /// Takes the newest packet of a flow, which has one. The flow gets the share of it back.
    fn take_newest<H: Copy>(&mut self, flow: Flow, pool: &PacketPool<H>) -> Handle {
        let ((start, _), handle) = self.take(flow, pool, VecDeque::pop_back);
        if let Some(own) = self.flows.get_mut(&flow) {
            own.finish = start;
        }
        handle
    }

    /// Takes one of the packets of a flow, which has some.
    fn take<H: Copy>(
        &mut self,
        flow: Flow,
        pool: &PacketPool<H>,
        which: impl FnOnce(&mut VecDeque<(Tag, Handle)>) -> Option<(Tag, Handle)>,
    ) -> (Tag, Handle) {
        let own = self.flows.get_mut(&flow).expect("a flow with packets is known");
        let first = own.packets.front().map(|(tag, _)| *tag).expect("the flow has packets");
        let (tag, handle) = which(&mut own.packets).expect("the flow has packets");
        self.by_tag.remove(&(first, flow));
        self.by_bytes.remove(&(own.bytes, flow));
        own.bytes -= u64::from(pool.get(handle).wire_bytes);
        if let Some(&(next, _)) = own.packets.front() {
            self.by_tag.insert((next, flow));
            self.by_bytes.insert((own.bytes, flow));
        } else if self.by_tag.is_empty() {
            *self = Self::default();
        }
        (tag, handle)
    }
}

fn flow_of<H>(packet: &Packet<H>) -> Flow {
    (packet.src.get(), packet.payload.msg.get())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rampmeter_types::packet::{Marks, PayloadRef};
    use rampmeter_types::{MsgId, NodeId, Time};

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
        /// Served bytes of backlogged flows differ by at most the longest packet. Theorem 1 of
        /// Goyal et al. has the sum of the longest packets of both.
        #[test]
        fn backlogged_flows_get_equal_bytes(lengths in prop::collection::vec(64..1500u16, 2..6)) {
            let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
            for (src, &bytes) in (0..).zip(&lengths) {
                (0..200).for_each(|_| arrive(&mut index, &mut pool, src, bytes));
            }
            let mut served = vec![0u64; lengths.len()];
            let n_flows = lengths.len() as u64;
            while served.iter().sum::<u64>() < n_flows * 200 * 64 {
                let packet = *pool.get(index.pop(PORT, CLASS, &pool));
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
        let first: Vec<_> = (0..2).map(|_| index.pop(PORT, CLASS, &pool)).collect();
        assert_eq!(first, [0, 1]);
        // A flow that was idle begins at the virtual time, 1000, not at zero.
        arrive(&mut index, &mut pool, 1, 1_000);
        arrive(&mut index, &mut pool, 1, 1_000);
        let rest: Vec<_> = (0..4).map(|_| index.pop(PORT, CLASS, &pool)).collect();
        assert_eq!(rest, [4, 2, 5, 3]);
    }

    #[test]
    fn the_longest_queue_gives_its_newest_packet() {
        let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
        for src in [0, 1, 1, 1, 0] {
            arrive(&mut index, &mut pool, src, 1_000);
        }
        arrive(&mut index, &mut pool, 2, 1_000);
        // Flow 1 has 3000 bytes, and flow 2 would have 2000: then 2000 and 2000.
        for taken in [Some(3), None] {
            assert_eq!(index.steal(PORT, CLASS, &pool, 5), taken);
        }
        // The flow that gave a packet has its share back: its next one starts at 2000 again.
        arrive(&mut index, &mut pool, 1, 1_000);
        let order: Vec<_> = (0..6).map(|_| index.pop(PORT, CLASS, &pool)).collect();
        assert_eq!(order, [0, 1, 5, 2, 4, 6]);
        assert!(index.classes.iter().all(|class| class.flows.is_empty()));
    }

    #[test]
    fn the_memory_of_a_fair_queue_is_bounded_by_its_packets() {
        let (mut index, mut pool) = (FairIndex::new(4), PacketPool::new());
        for src in 0..10_000 {
            arrive(&mut index, &mut pool, src, 1_000);
            arrive(&mut index, &mut pool, 100_000 + src, 64);
            index.pop(PORT, CLASS, &pool);
            if src > 3 {
                index.pop(PORT, CLASS, &pool);
            }
        }
        let own = index.class(PORT, CLASS);
        assert!(
            own.by_tag.len() <= 10 && own.flows.len() <= 20 + IDLE_FLOWS,
            "{}",
            own.flows.len()
        );
    }
}
