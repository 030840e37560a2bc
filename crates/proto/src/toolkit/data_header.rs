//! Flows of data packets, as their headers name them.

use rampmeter_types::{Packet, Time};

use super::arriving_flows::ArrivingFlows;

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
    /// Returns the result of `HostPolicy::touch_if_delivered`.
    pub fn touch_if_delivered<H: DataHeader>(&mut self, now: Time, packet: &Packet<H>) -> bool {
        match packet.header.flow() {
            Some((FlowKey::Slot(slot), _)) => {
                !self.refresh_sender(now, slot, packet.src, packet.payload.msg)
            }
            Some((FlowKey::Number(flow), _)) => self.is_delivered(packet.src, flow),
            None => false,
        }
    }

    /// Returns true for a data packet without new bytes, as
    /// [`HostPolicy::is_duplicate`](rampmeter_types::HostPolicy::is_duplicate).
    pub fn is_duplicate<H: DataHeader>(&mut self, packet: &Packet<H>) -> bool {
        match packet.header.flow() {
            Some((FlowKey::Slot(slot), seq)) => {
                self.has_received_in(slot, packet.src, packet.payload.msg, seq)
            }
            Some((FlowKey::Number(flow), seq)) => self.has_received(packet.src, flow, seq),
            None => true,
        }
    }
}
