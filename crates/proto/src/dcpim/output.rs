//! What an endpoint has to say: control packets and events, in order.

use std::collections::VecDeque;

use rampmeter_core::packet::Marks;
use rampmeter_core::{Event, MsgId, NodeId, Packet, PayloadRef, Priority};

use super::wire::DcpimHeader;

/// Control packets waiting for the interface, and events waiting for the driver.
#[derive(Debug)]
pub(super) struct Output {
    node: NodeId,
    control_bytes: u16,
    control: VecDeque<Packet<DcpimHeader>>,
    events: VecDeque<Event>,
}

impl Output {
    pub(super) fn new(node: NodeId, control_bytes: u16) -> Self {
        Self { node, control_bytes, control: VecDeque::new(), events: VecDeque::new() }
    }

    /// Queues a control packet about `msg`. All have the highest priority (§3).
    pub(super) fn send(&mut self, dst: NodeId, msg: MsgId, header: DcpimHeader) {
        self.control.push_back(Packet {
            header,
            payload: PayloadRef { msg, offset: 0, len: 0 },
            src: self.node,
            dst,
            wire_bytes: self.control_bytes,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        });
    }

    pub(super) fn say(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn next_control(&mut self) -> Option<Packet<DcpimHeader>> {
        self.control.pop_front()
    }

    pub(super) fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
