//! Flows of data packets, as their headers name them.

use rampmeter_core::{Packet, Time};

use super::arriving::ArrivingFlows;

/// Name of a flow at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKey {
    /// The receiver's slot, which it has sent to the sender.
    Slot(u32),
    /// The flow's number among those of its sender.
    Number(u32),
}

/// Header of a transport whose receiver has [`ArrivingFlows`].
pub trait DataHeader {
    /// Returns the flow of a data packet, and the number of the packet in it. `None` for packets
    /// without data.
    fn flow(&self) -> Option<(FlowKey, u32)>;
}

impl<T> ArrivingFlows<T> {
    /// Returns the result of [`Endpoint::has_delivered`](rampmeter_core::Endpoint::has_delivered).
    pub fn has_delivered_packet<H: DataHeader>(&mut self, now: Time, packet: &Packet<H>) -> bool {
        match packet.header.flow() {
            Some((FlowKey::Slot(slot), _)) => !self.hear(now, slot, packet.src, packet.payload.msg),
            Some((FlowKey::Number(flow), _)) => self.has_delivered(packet.src, flow),
            None => false,
        }
    }

    /// Returns the result of [`Endpoint::has_arrived`](rampmeter_core::Endpoint::has_arrived).
    pub fn has_arrived_packet<H: DataHeader>(&mut self, packet: &Packet<H>) -> bool {
        match packet.header.flow() {
            Some((FlowKey::Slot(slot), seq)) => {
                self.has_arrived_in(slot, packet.src, packet.payload.msg, seq)
            }
            Some((FlowKey::Number(flow), seq)) => self.has_arrived(packet.src, flow, seq),
            None => true,
        }
    }
}
