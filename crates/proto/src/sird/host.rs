//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, Gauge, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng,
    Time,
};

use super::config::Sird;
use super::receiver::Receiver;
use super::sender::Sender;
use super::stats::SirdStats;
use super::wire::SirdHeader;
use crate::toolkit::{Announcement, FlowStatus, Output, sides};

/// SIRD at one host.
#[derive(Debug)]
pub struct SirdHost {
    sird: Arc<Sird>,
    sender: Sender,
    pub(super) receiver: Receiver,
    out: Output<SirdHeader>,
    stats: SirdStats,
}

impl SirdHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> SirdStats {
        self.stats
    }

    /// Returns the bytes of packets that have credit of receivers and have not been sent.
    pub fn credit(&self) -> u64 {
        self.sender.credit()
    }

    fn describe(
        &self,
        packet: &Packet<SirdHeader>,
        flow: u32,
        tx_slot: u32,
        size: u64,
    ) -> Announcement {
        let packets = self.sird.segmentation(size).packets(Bytes::new(size));
        Announcement { src: packet.src, msg: packet.payload.msg, flow, tx_slot, packets }
    }

    fn acknowledge(&mut self, announcement: &Announcement) {
        let ack = SirdHeader::Ack { tx_slot: announcement.tx_slot };
        self.out.send_sized(announcement.src, announcement.msg, ack, self.sird.config.packet.ack());
    }

    #[inline]
    fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<SirdHeader>,
        slot: u32,
        seq: u32,
        csn: bool,
    ) -> Receipt {
        let Self { sird, receiver, out, .. } = self;
        let (receipt, whole) = receiver.on_packet(now, slot, seq, csn, packet, sird, out);
        if let Some(of) = whole {
            self.acknowledge(&of);
        }
        if receipt == Receipt::Fresh {
            self.grant(now);
        }
        receipt
    }

    #[inline]
    fn grant(&mut self, now: Time) {
        self.receiver.grant(now, &self.sird, &mut self.out);
    }

    fn on_unscheduled(
        &mut self,
        now: Time,
        packet: &Packet<SirdHeader>,
        announcement: &Announcement,
        size: u64,
        seq: u32,
        csn: bool,
    ) -> Receipt {
        if seq >= announcement.packets {
            return Receipt::Ignored;
        }
        match self.receiver.find(now, announcement, size, false, &self.sird) {
            Ok((slot, _)) => self.on_data(now, packet, slot, seq, csn),
            Err(FlowStatus::Delivered) => {
                self.acknowledge(announcement);
                Receipt::Duplicate
            }
            Err(_) => Receipt::Ignored,
        }
    }

    fn on_request(&mut self, now: Time, announcement: &Announcement, size: u64) {
        match self.receiver.find(now, announcement, size, true, &self.sird) {
            Ok((_, true)) => self.grant(now),
            Ok((slot, false)) => {
                self.receiver.flows[slot].last_packet_at = now;
                let known = SirdHeader::Known { tx_slot: announcement.tx_slot, rx_slot: slot };
                self.out.send(announcement.src, announcement.msg, known);
            }
            Err(FlowStatus::Delivered) => self.acknowledge(announcement),
            Err(_) => {}
        }
    }
}

impl Protocol for SirdHost {
    type Header = SirdHeader;
    type Config = Sird;

    sides! { wants_transmit, poll_timeout, poll_event }

    fn new(config: Arc<Sird>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: Receiver::new(),
            out: Output::new(node, config.config.packet.full.header.get() as u16),
            stats: SirdStats::default(),
            sird: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, &message, &self.sird, &mut self.out);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<SirdHeader>) -> Receipt {
        let msg = packet.payload.msg;
        let Self { sird, sender, out, .. } = self;
        if packet.payload.len == 0 {
            self.receiver.on_control(packet.src, sird);
        }
        match packet.header {
            SirdHeader::Data { rx_slot, seq, csn } => {
                if !self.receiver.flows.refresh_sender(now, rx_slot, packet.src, msg) {
                    return Receipt::Duplicate;
                }
                return self.on_data(now, packet, rx_slot, seq, csn);
            }
            SirdHeader::Unscheduled { flow, tx_slot, seq, size, csn } => {
                let of = self.describe(packet, flow, tx_slot, size);
                return self.on_unscheduled(now, packet, &of, size, seq, csn);
            }
            SirdHeader::Request { flow, tx_slot, size } => {
                let of = self.describe(packet, flow, tx_slot, size);
                self.on_request(now, &of, size);
            }
            SirdHeader::Credit { tx_slot, rx_slot, seq } => {
                sender.on_credit(now, tx_slot, msg, rx_slot, seq, sird, out);
            }
            SirdHeader::Busy { rx_slot } => {
                self.receiver.on_busy(now, rx_slot, packet);
            }
            SirdHeader::Ack { tx_slot } => sender.complete(tx_slot, msg, out),
            SirdHeader::Known { tx_slot, .. } => sender.on_request_acked(now, tx_slot, msg, sird),
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            let Self { receiver, sird, out, stats, .. } = self;
            receiver.handle_timeout(now, sird, out, stats);
            receiver.grant(now, sird, out);
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &self.sird, &mut self.out);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<SirdHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(&self.sird, &mut self.stats)
    }
}

impl Observation for SirdHost {
    sides! { counters, permission, message_counts }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.sender.gauges(each);
        self.receiver.gauges(each);
    }
}

impl HostPolicy for SirdHost {
    sides! { arriving, data, reconfigure(sird) }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(src, msg, &self.sird, &mut self.stats);
        self.grant(now);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.sird);
        self.grant(now);
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.abandon(src, msg, &self.sird, &mut self.out);
        self.grant(now);
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &self.sird, &mut self.out);
        self.grant(now);
    }
}
