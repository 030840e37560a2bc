//! Outputs of an endpoint: control packets and events, in order.

use std::collections::VecDeque;

use rampmeter_types::packet::Marks;
use rampmeter_types::{Event, MsgId, NodeId, Packet, PayloadRef, Priority};

/// Maximum number of queued control packets with repetitions: more than any network needs at once.
pub(super) const BACKLOG: u32 = 1_024;

/// Control packets waiting for the interface, and events waiting for the driver.
#[derive(Clone, Debug)]
pub struct Output<H> {
    node: NodeId,
    control_bytes: u16,
    control: VecDeque<Packet<H>>,
    events: VecDeque<Event>,
}

impl<H> Output<H> {
    /// Returns an empty output of `node`, whose control packets take `control_bytes` on the wire.
    pub fn new(node: NodeId, control_bytes: u16) -> Self {
        Self { node, control_bytes, control: VecDeque::new(), events: VecDeque::new() }
    }

    /// Returns the host.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Queues a control packet about `msg`. All have the highest priority.
    pub fn send(&mut self, dst: NodeId, msg: MsgId, header: H) {
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

    /// Queues a control packet of another class.
    pub fn send_class(
        &mut self,
        dst: NodeId,
        msg: MsgId,
        header: H,
        class: Priority,
    ) -> &mut Packet<H> {
        self.send(dst, msg, header);
        let packet = self.control.back_mut().expect("a packet has just been queued");
        packet.priority = class;
        packet
    }

    /// Queues a control packet of another length on the wire.
    pub fn send_sized(&mut self, dst: NodeId, msg: MsgId, header: H, wire_bytes: u16) {
        self.send(dst, msg, header);
        if let Some(packet) = self.control.back_mut() {
            packet.wire_bytes = wire_bytes;
        }
    }

    /// Drops packets for a peer that has lost its state: it would take numbers of earlier flows for
    /// those of new ones.
    pub fn forget_peer(&mut self, peer: NodeId) {
        self.control.retain(|packet| packet.dst != peer);
    }

    /// Drops queued packets about a message of this host that is cancelled. `is_senders`
    /// distinguishes the headers of senders from those of receivers, whose messages may have the
    /// same number.
    pub fn cancel(&mut self, msg: MsgId, is_senders: impl Fn(&H) -> bool) {
        self.control.retain(|packet| packet.payload.msg != msg || !is_senders(&packet.header));
    }

    /// Queues an event.
    pub fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Returns the next control packet to send.
    pub fn next_control(&mut self) -> Option<Packet<H>> {
        self.control.pop_front()
    }

    /// Returns true if a control packet is queued.
    #[inline]
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Returns true if the queue of control packets is so long that a repetition would only
    /// lengthen it.
    #[inline]
    pub fn is_backlogged(&self) -> bool {
        self.control.len() > BACKLOG as usize
    }

    /// Returns the next event to report.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
