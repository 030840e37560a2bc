//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_core::{Endpoint, Event, Message, MsgId, NodeId, Packet, Receipt, Rng, Time};

use super::HomaStats;
use super::config::Homa;
use super::receiver::{Described, Receiver, Whole};
use super::sender::{Grant, Relation, Sender};
use super::wire::HomaHeader;
use crate::parts::{Announcement, Found, Output};

/// Homa at one host.
#[derive(Debug)]
pub struct HomaHost {
    homa: Arc<Homa>,
    sender: Sender,
    receiver: Receiver,
    out: Output<HomaHeader>,
    stats: HomaStats,
}

impl HomaHost {
    /// What has been counted so far.
    pub fn stats(&self) -> HomaStats {
        self.stats
    }

    /// Whether the host awaits so many messages that new ones must be short at first.
    fn is_crowded(&self) -> bool {
        let most = self.homa.config.incast_messages as usize;
        most > 0 && self.receiver.flows.len() > most
    }

    fn described(
        &self,
        packet: &Packet<HomaHeader>,
        (flow, tx_slot): (u32, u32),
        size: u64,
        (unscheduled, answers): (u32, u32),
    ) -> Described {
        let packets = self.homa.cut.packets(size);
        let of = Announcement { src: packet.src, msg: packet.payload.msg, flow, tx_slot, packets };
        Described { of, size, unscheduled, answers }
    }

    fn acknowledge(&mut self, of: &Announcement) {
        let (tx_slot, crowded) = (of.tx_slot, self.is_crowded());
        let ack = HomaHeader::Ack { tx_slot, crowded };
        self.out.send_sized(of.src, of.msg, ack, self.homa.ack_bytes());
    }

    fn on_data(&mut self, now: Time, packet: &Packet<HomaHeader>, slot: u32, seq: u32) -> Receipt {
        let Self { homa, receiver, out, .. } = self;
        let (receipt, whole) = receiver.on_packet(now, (slot, seq), packet, homa, out);
        if let Some(Whole { of, .. }) = whole {
            self.acknowledge(&of);
        }
        if receipt == Receipt::Fresh {
            self.grant(now);
        }
        receipt
    }

    fn grant(&mut self, now: Time) {
        let crowded = self.is_crowded();
        self.receiver.grant(now, crowded, &self.homa, &mut self.out);
    }

    fn on_unscheduled(
        &mut self,
        now: Time,
        packet: &Packet<HomaHeader>,
        message: &Described,
        seq: u32,
    ) -> Receipt {
        if seq >= message.of.packets {
            return Receipt::Ignored;
        }
        let slot = match self.receiver.find(now, message, &self.homa) {
            Ok(slot) => slot,
            Err(Found::Over) => {
                self.acknowledge(&message.of);
                return Receipt::Duplicate;
            }
            Err(_) => return Receipt::Ignored,
        };
        if self.homa.is_droppable() {
            self.receiver.on_unscheduled((slot, seq), &self.homa, &mut self.out);
        }
        self.on_data(now, packet, slot, seq)
    }

    fn on_probe(&mut self, now: Time, message: &Described, is_burst_over: bool) {
        match self.receiver.find(now, message, &self.homa) {
            Ok(slot) => {
                let Self { receiver, homa, out, .. } = self;
                receiver.on_probe(now, slot, is_burst_over, homa, out);
                self.grant(now);
            }
            Err(Found::Over) => self.acknowledge(&message.of),
            Err(_) => {}
        }
    }
}

impl Endpoint for HomaHost {
    type Header = HomaHeader;
    type Config = Homa;

    fn new(config: Arc<Homa>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: Receiver::new(config.rate),
            out: Output::new(node, config.config.header.get() as u16),
            stats: HomaStats::default(),
            homa: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, &message, Relation::default(), &self.homa);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<HomaHeader>) -> Receipt {
        let msg = packet.payload.msg;
        match packet.header {
            HomaHeader::Data { rx_slot, seq } => {
                if !self.receiver.flows.hear(now, rx_slot, packet.src, msg) {
                    return Receipt::Duplicate;
                }
                return self.on_data(now, packet, rx_slot, seq);
            }
            HomaHeader::Unscheduled { flow, tx_slot, seq, size, unscheduled, answers, crowded } => {
                let message = self.described(packet, (flow, tx_slot), size, (unscheduled, answers));
                if crowded {
                    self.sender.on_crowded(packet.src, true);
                }
                return self.on_unscheduled(now, packet, &message, seq);
            }
            HomaHeader::Grant { tx_slot, rx_slot, credit, priority, crowded } => {
                let grant = Grant { rx_slot, credit, priority };
                self.sender.on_crowded(packet.src, crowded);
                self.sender.on_grant(now, (tx_slot, msg), grant, &self.homa);
            }
            HomaHeader::Resend { tx_slot, rx_slot, seq, count } => {
                let Self { sender, homa, out, .. } = self;
                sender.on_resend(now, (tx_slot, msg), (rx_slot, seq, count), homa, out);
            }
            HomaHeader::Busy { rx_slot } => {
                self.receiver.on_busy(now, rx_slot, packet, &self.homa);
            }
            HomaHeader::Ack { tx_slot, crowded } => {
                self.sender.on_crowded(packet.src, crowded);
                self.sender.complete((tx_slot, msg), &mut self.out);
            }
            HomaHeader::Probe { flow, tx_slot, size, unscheduled, answers, is_burst_over } => {
                let message = self.described(packet, (flow, tx_slot), size, (unscheduled, answers));
                self.on_probe(now, &message, is_burst_over);
            }
            HomaHeader::Known { tx_slot, rx_slot, is_burst_over } => {
                let Self { sender, homa, .. } = self;
                sender.on_known(now, (tx_slot, msg), rx_slot, is_burst_over, homa);
            }
            HomaHeader::Sack { tx_slot, seq } => {
                self.sender.on_sack(now, (tx_slot, msg), seq, &self.homa);
            }
        }
        Receipt::Control
    }

    fn has_delivered(&mut self, now: Time, packet: &Packet<HomaHeader>) -> bool {
        match packet.header {
            HomaHeader::Data { rx_slot, .. } => {
                !self.receiver.flows.hear(now, rx_slot, packet.src, packet.payload.msg)
            }
            HomaHeader::Unscheduled { flow, .. } => {
                self.receiver.flows.has_delivered(packet.src, flow)
            }
            _ => false,
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.stats().tell(each);
    }

    fn messages(&self) -> Option<(usize, usize)> {
        Some((self.sender.len(), self.receiver.flows.len()))
    }

    fn hold(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.hold(src, msg, &self.homa);
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.release(now, src, msg, &self.homa);
        self.grant(now);
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.receiver.flows.limit(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.receiver.flows.excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
        self.grant(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            let Self { receiver, homa, out, stats, .. } = self;
            receiver.handle_timeout(now, homa, out, stats);
            self.grant(now);
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &self.homa, &mut self.out, |_, _| {});
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
    fn wants_transmit(&self) -> bool {
        self.out.has_control() || self.sender.is_ready()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.receiver.deadline().min(self.sender.deadline())
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        self.out.next_event()
    }
}
