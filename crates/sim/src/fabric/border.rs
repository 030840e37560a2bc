//! The border of a partition: packets that cross it, and the ports by which they leave.

use rampmeter_types::{Packet, Time};

use crate::engine::PacketTimes;

/// Packet in flight to another partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionPacket<H> {
    /// Time of its arrival.
    pub(crate) at: Time,
    /// Port that has sent it.
    pub(super) port: u32,
    pub(super) packet: Packet<H>,
    pub(super) times: PacketTimes,
}

/// Links by which packets leave a partition. A whole fabric has none, but may have partitions.
#[derive(Debug)]
pub(super) struct PartitionBoundary<H> {
    /// Partition that each port leads to, if that is another.
    pub(super) leads_to: Vec<Option<u16>>,
    /// Packets that have departed, by partition.
    pub(super) departed: Vec<Vec<PartitionPacket<H>>>,
    /// Packets in partitions of the fabric, when their counters were last added.
    pub(super) n_away: u64,
}

impl<H> PartitionBoundary<H> {
    /// The border of a whole fabric.
    pub(super) const NONE: Self = Self { leads_to: Vec::new(), departed: Vec::new(), n_away: 0 };
}
