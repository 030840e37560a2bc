//! Pool of packets: one slab, 64 bytes a packet, never moved.
//!
//! Ports hold packets in doubly linked lists of handles, so that queueing, dropping from the back
//! and forwarding touch no memory but the packet's links. The slot freed last is used first.

use rampmeter_types::{Packet, Time};

use super::handle::{HANDLES_END, Handle, NIL};
use super::prefetch::prefetch;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) next: Handle,
    pub(crate) previous: Handle,
}

/// Time at which a packet was sent by its host, and at which its last bit reaches the node it is
/// at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketTimes {
    pub(crate) sent: Time,
    pub(crate) tail: Time,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct AlignedPacket<H>(Packet<H>);

/// The slab of packets.
#[derive(Debug)]
pub struct PacketPool<H> {
    packets: Vec<AlignedPacket<H>>,
    links: Vec<Links>,
    stamps: Vec<PacketTimes>,
    free: Vec<Handle>,
}

impl<H: Copy> PacketPool<H> {
    /// Returns an empty pool.
    pub fn new() -> Self {
        Self { packets: Vec::new(), links: Vec::new(), stamps: Vec::new(), free: Vec::new() }
    }

    /// Stores a packet that its host sends at `sent`.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet<H>, sent: Time) -> Handle {
        let stamps = PacketTimes { sent, tail: sent };
        if let Some(handle) = self.free.pop() {
            self.packets[handle as usize] = AlignedPacket(packet);
            self.stamps[handle as usize] = stamps;
            return handle;
        }
        let handle = self.packets.len() as Handle;
        assert!(self.packets.len() < HANDLES_END, "{HANDLES_END} packets in flight");
        self.packets.push(AlignedPacket(packet));
        self.links.push(Links { next: NIL, previous: NIL });
        self.stamps.push(stamps);
        handle
    }

    /// Frees a packet's slot and returns the packet.
    #[inline]
    pub(crate) fn remove(&mut self, handle: Handle) -> Packet<H> {
        self.free.push(handle);
        self.packets[handle as usize].0
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Returns true if there is no packet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time at which a packet was sent by its host.
    pub(crate) fn sent(&self, handle: Handle) -> Time {
        self.stamps[handle as usize].sent
    }

    /// Returns the departure of the packet that was sent first; `None` if there is no packet.
    pub(crate) fn oldest(&self) -> Option<Time> {
        let mut is_live = vec![true; self.packets.len()];
        self.free.iter().for_each(|&handle| is_live[handle as usize] = false);
        let live = self.stamps.iter().zip(is_live).filter(|&(_, is_live)| is_live);
        live.map(|(stamps, _)| stamps.sent).min()
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &Packet<H> {
        &self.packets[handle as usize].0
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Packet<H> {
        &mut self.packets[handle as usize].0
    }

    /// Starts to load a packet, if there ever was one of this handle.
    #[inline]
    pub(crate) fn prefetch(&self, handle: Handle) {
        if let Some(packet) = self.packets.get(handle as usize) {
            prefetch(packet);
        }
    }

    /// Starts to load the times of a packet.
    #[inline]
    pub(crate) fn prefetch_stamps(&self, handle: Handle) {
        prefetch(&self.stamps[handle as usize]);
    }

    #[inline]
    pub(crate) fn links(&mut self, handle: Handle) -> &mut Links {
        &mut self.links[handle as usize]
    }

    /// Returns the packet behind another in its list.
    pub(crate) fn next(&self, handle: Handle) -> Handle {
        self.links[handle as usize].next
    }

    #[inline]
    pub(crate) fn stamps(&mut self, handle: Handle) -> &mut PacketTimes {
        &mut self.stamps[handle as usize]
    }
}

impl<H: Copy> Default for PacketPool<H> {
    fn default() -> Self {
        Self::new()
    }
}
