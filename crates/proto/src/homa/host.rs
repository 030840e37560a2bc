//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, Gauge, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng,
    Time,
};

use super::config::{Exchange, Homa};
use super::receiver::{CompleteMessage, MessageDescription, Receiver};
use super::rpc::Requests;
use super::sender::{Grant, RpcContext, Sender};
use super::stats::HomaStats;
use super::wire::HomaHeader;
use crate::toolkit::{Announcement, FlowStatus, Output, sides};

/// Homa at one host.
#[derive(Debug)]
pub struct HomaHost {
    homa: Arc<Homa>,
    sender: Sender,
    receiver: Receiver,
    /// Open requests; empty unless messages are requests and answers.
    requests: Requests,
    out: Output<HomaHeader>,
    stats: HomaStats,
}

impl HomaHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> HomaStats {
        self.stats
    }

    /// Returns true if the host awaits more than
    /// [`incast_messages`](super::HomaConfig::incast_messages) messages. New ones must then be
    /// short at first.
    fn has_incast(&self) -> bool {
        let most = self.homa.config.incast_messages as usize;
        most > 0 && self.receiver.flows.len() + self.requests.n_open() > most
    }

    fn describe(
        &self,
        packet: &Packet<HomaHeader>,
        flow: u32,
        tx_slot: u32,
        size: u64,
        unscheduled: u32,
        answers: u32,
    ) -> MessageDescription {
        let packets = self.homa.segmentation.packets(Bytes::new(size));
        let announcement =
            Announcement { src: packet.src, msg: packet.payload.msg, flow, tx_slot, packets };
        MessageDescription { announcement, size, unscheduled, answers }
    }

    fn acknowledge(&mut self, announcement: &Announcement) {
        let (tx_slot, incast) = (announcement.tx_slot, self.has_incast());
        let ack = HomaHeader::Ack { tx_slot, incast };
        self.out.send_sized(announcement.src, announcement.msg, ack, self.homa.config.packet.ack());
    }

    fn on_data(&mut self, now: Time, packet: &Packet<HomaHeader>, slot: u32, seq: u32) -> Receipt {
        let Self { homa, receiver, out, .. } = self;
        let (receipt, whole) = receiver.on_packet(now, slot, seq, packet, homa, out);
        match whole {
            Some(CompleteMessage { announcement, answers: 0 })
                if self.homa.config.exchange == Exchange::Rpc =>
            {
                self.requests.on_request(now + self.homa.answer_timeout, announcement);
            }
            Some(CompleteMessage { announcement, .. }) => self.acknowledge(&announcement),
            None => {}
        }
        if receipt == Receipt::Fresh {
            self.grant(now);
        }
        receipt
    }

    fn grant(&mut self, now: Time) {
        let incast = self.has_incast();
        self.receiver.grant(now, incast, &self.homa, &mut self.out);
    }

    fn on_unscheduled(
        &mut self,
        now: Time,
        packet: &Packet<HomaHeader>,
        message: &MessageDescription,
        seq: u32,
    ) -> Receipt {
        if seq >= message.announcement.packets {
            return Receipt::Ignored;
        }
        let slot = match self.receiver.find(now, message, &self.homa) {
            Ok(slot) => slot,
            Err(FlowStatus::Delivered) => {
                self.acknowledge(&message.announcement);
                return Receipt::Duplicate;
            }
            Err(_) => return Receipt::Ignored,
        };
        if self.homa.is_droppable() {
            self.receiver.on_unscheduled(slot, seq, &self.homa, &mut self.out);
        }
        self.on_data(now, packet, slot, seq)
    }

    /// Handles an answer, which acknowledges its request.
    fn on_answer(&mut self, src: NodeId, answers: u32) {
        let Some(flow) = answers.checked_sub(1) else { return };
        if let Some((slot, msg)) = self.requests.close(src, flow) {
            self.sender.complete(slot, msg, &mut self.out);
        }
    }

    /// Closes a message that has ended and may have been a request.
    fn close(&mut self, over: Option<(NodeId, u32)>) {
        if let Some((dst, flow)) = over
            && self.homa.config.exchange == Exchange::Rpc
        {
            self.requests.close(dst, flow);
        }
    }

    fn on_probe(&mut self, now: Time, message: &MessageDescription, is_burst_over: bool) {
        match self.receiver.find(now, message, &self.homa) {
            Ok(slot) => {
                let Self { receiver, homa, out, .. } = self;
                receiver.on_probe(now, slot, is_burst_over, homa, out);
                self.grant(now);
            }
            Err(FlowStatus::Delivered) => self.acknowledge(&message.announcement),
            Err(_) => {}
        }
    }
}

impl Protocol for HomaHost {
    type Header = HomaHeader;
    type Config = Homa;

    sides! { wants_transmit, poll_event }

    fn new(config: Arc<Homa>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: Receiver::new(config.rate),
            requests: Requests::default(),
            out: Output::new(node, config.config.packet.full.header.get() as u16),
            stats: HomaStats::default(),
            homa: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        if self.homa.config.exchange == Exchange::Messages {
            self.sender.submit(now, &message, RpcContext::default(), &self.homa);
            return;
        }
        let answers = self.requests.take_answered(message.dst).map_or(0, |of| of.flow + 1);
        let relation = RpcContext { answers, has_incast: self.has_incast() };
        let (flow, slot) = self.sender.submit(now, &message, relation, &self.homa);
        if answers == 0 {
            self.requests.open(message.dst, flow, (slot, message.id));
        }
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        let over = self.sender.cancel(msg, &mut self.out);
        self.close(over);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<HomaHeader>) -> Receipt {
        let msg = packet.payload.msg;
        match packet.header {
            HomaHeader::Data { rx_slot, seq } => {
                if !self.receiver.flows.refresh_sender(now, rx_slot, packet.src, msg) {
                    return Receipt::Duplicate;
                }
                return self.on_data(now, packet, rx_slot, seq);
            }
            HomaHeader::Unscheduled { flow, tx_slot, seq, size, unscheduled, answers, incast } => {
                let message = self.describe(packet, flow, tx_slot, size, unscheduled, answers);
                if self.homa.config.exchange == Exchange::Rpc {
                    self.sender.on_incast(packet.src, incast);
                    self.on_answer(packet.src, answers);
                }
                return self.on_unscheduled(now, packet, &message, seq);
            }
            HomaHeader::Grant { tx_slot, rx_slot, credit, priority, incast } => {
                let grant = Grant { rx_slot, credit, priority };
                self.sender.on_incast(packet.src, incast);
                self.sender.on_grant(now, tx_slot, msg, grant, &self.homa);
            }
            HomaHeader::Resend { tx_slot, rx_slot, seq, count } => {
                let Self { sender, homa, out, .. } = self;
                let missing = seq..seq.saturating_add(count);
                sender.on_resend(now, tx_slot, msg, rx_slot, missing, homa, out);
            }
            HomaHeader::Busy { rx_slot } => {
                self.receiver.on_busy(now, rx_slot, packet, &self.homa);
            }
            HomaHeader::Ack { tx_slot, incast } => {
                self.sender.on_incast(packet.src, incast);
                let over = self.sender.complete(tx_slot, msg, &mut self.out);
                self.close(over);
            }
            HomaHeader::Probe { flow, tx_slot, size, unscheduled, answers, is_burst_over } => {
                let message = self.describe(packet, flow, tx_slot, size, unscheduled, answers);
                self.on_answer(packet.src, answers);
                self.on_probe(now, &message, is_burst_over);
            }
            HomaHeader::Known { tx_slot, rx_slot, is_burst_over } => {
                let Self { sender, homa, .. } = self;
                sender.on_request_acked(now, tx_slot, msg, rx_slot, is_burst_over, homa);
            }
            HomaHeader::Sack { tx_slot, seq } => {
                self.sender.on_sack(now, tx_slot, msg, seq, &self.homa);
            }
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            let Self { receiver, homa, out, stats, .. } = self;
            receiver.handle_timeout(now, homa, out, stats);
            self.grant(now);
        }
        if self.sender.deadline() <= now {
            let Self { sender, requests, homa, out, .. } = self;
            sender.handle_timeout(now, homa, out, |dst, flow| {
                requests.close(dst, flow);
            });
        }
        while let Some(of) = self.requests.next_due(now) {
            self.acknowledge(&of);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<HomaHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(&self.homa, &mut self.out)
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.receiver.deadline().min(self.sender.deadline()).min(self.requests.deadline())
    }
}

impl Observation for HomaHost {
    sides! { counters, permission, message_counts }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.sender.gauges(each);
        self.receiver.gauges(each);
    }
}

impl HostPolicy for HomaHost {
    sides! { arriving, data, reconfigure(homa) }

    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(src, msg, &self.homa);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.homa);
        self.grant(now);
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.abandon(src, msg, &mut self.out);
        self.grant(now);
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
        self.requests.forget_peer(peer);
        self.grant(now);
    }
}
