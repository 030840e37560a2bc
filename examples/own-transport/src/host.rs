//! The endpoint of a host: inputs change its state and queue outputs, `poll_*` hands them out.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_proto::toolkit::{AckReceiver, Announcement, OutgoingFlows, Output};
use rampmeter_types::{
    Bytes, Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Priority, Protocol,
    Receipt, Rng, Time,
};

use crate::config::Saw;
use crate::wire::SawHeader;

/// A message that is sent.
#[derive(Debug, Default)]
struct Turn {
    /// The packet in flight, or to be sent next.
    seq: u32,
    /// True if it waits for the link.
    is_waiting: bool,
}

/// Stop and wait at one host.
#[derive(Debug)]
pub struct SawHost {
    saw: Arc<Saw>,
    sending: OutgoingFlows<Turn>,
    /// Slots of messages whose packet waits for the link.
    waiting: VecDeque<u32>,
    receiver: AckReceiver,
    out: Output<SawHeader>,
    /// Packets retransmitted.
    repeats: u64,
}

impl SawHost {
    fn wait(&mut self, slot: u32) {
        let turn = &mut self.sending[slot].state;
        if !turn.is_waiting {
            turn.is_waiting = true;
            self.waiting.push_back(slot);
        }
    }

    fn end(&mut self, slot: u32) {
        self.sending.remove(slot);
        self.waiting.retain(|&waiting| waiting != slot);
    }

    fn on_ack(&mut self, msg: MsgId, slot: u32, next: u32) {
        let Some(flow) = self.sending.get_current(slot, msg) else { return };
        if next != flow.state.seq + 1 {
            return;
        }
        flow.state.seq = next;
        flow.retry.reset();
        if next == flow.packets {
            self.end(slot);
            self.out.push_event(Event::Completed { msg });
        } else {
            self.wait(slot);
        }
    }
}

impl Protocol for SawHost {
    type Header = SawHeader;
    type Config = Saw;

    fn new(saw: Arc<Saw>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sending: OutgoingFlows::new(node),
            waiting: VecDeque::new(),
            receiver: AckReceiver::default(),
            out: Output::new(node, saw.keys.packet.header.get() as u16),
            repeats: 0,
            saw,
        }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        let packets = self.saw.keys.segmentation().packets(message.size);
        let slot = self.sending.submit(&message, packets, Turn::default());
        self.wait(slot);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        if let Some(slot) = self.sending.slot(msg) {
            self.end(slot);
        }
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<SawHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        match packet.header {
            SawHeader::Ack { tx_slot, next } => {
                self.on_ack(msg, tx_slot, next);
                Receipt::Control
            }
            SawHeader::Data { flow, tx_slot, seq, size } => {
                let packets = self.saw.keys.segmentation().packets(Bytes::new(size));
                let of = Announcement { src, msg, flow, tx_slot, packets };
                let (forget, out) = (self.saw.forget, &mut self.out);
                self.receiver.on_packet(now, of, Some(seq), forget, out, |arrived| SawHeader::Ack {
                    tx_slot,
                    next: arrived.cumulative,
                })
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(slot) = self.sending.next_due(now) {
            let flow = &mut self.sending[slot];
            let msg = flow.msg;
            if flow.state.is_waiting {
                continue;
            }
            if flow.retry.attempt(now, &self.saw.attempt_limit) {
                self.repeats += 1;
                self.wait(slot);
            } else {
                self.end(slot);
                self.out.push_event(Event::Failed { msg });
            }
        }
    }

    /// Acknowledgements first, then one packet of the message that has waited longest.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<SawHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        let slot = self.waiting.pop_front()?;
        self.sending[slot].state.is_waiting = false;
        self.sending.start_timer(slot, now + self.saw.timeout);
        let flow = &self.sending[slot];
        let (seq, size) = (flow.state.seq, flow.size);
        let header = SawHeader::Data { flow: flow.flow, tx_slot: slot, seq, size };
        let segmentation = self.saw.keys.segmentation();
        Some(segmentation.data(self.sending.message(slot), seq, Priority::new(1), header))
    }

    fn wants_transmit(&self) -> bool {
        self.out.has_control() || !self.waiting.is_empty()
    }

    fn poll_timeout(&self) -> Time {
        self.sending.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.out.next_event()
    }
}

impl Observation for SawHost {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("repeats", self.repeats);
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        Some((self.sending.len(), self.receiver.flows.len()))
    }
}

impl HostPolicy for SawHost {
    fn touch_if_delivered(&mut self, _now: Time, packet: &Packet<SawHeader>) -> bool {
        let SawHeader::Data { flow, .. } = packet.header else { return false };
        self.receiver.flows.is_delivered(packet.src, flow)
    }

    fn is_duplicate(&mut self, packet: &Packet<SawHeader>) -> bool {
        let SawHeader::Data { flow, seq, .. } = packet.header else { return true };
        self.receiver.flows.has_received(packet.src, flow, seq)
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        let Self { sending, waiting, receiver, out, .. } = self;
        out.forget_peer(peer);
        sending.forget_peer(peer, out, |slot, _| waiting.retain(|&waiting| waiting != slot));
        receiver.forget_peer(peer, out);
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.receiver.flows.limit(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.receiver.flows.excess()
    }
}
