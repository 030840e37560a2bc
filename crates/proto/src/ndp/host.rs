//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng, Time,
};

use super::config::Ndp;
use super::receiver::{Arrival, Receiver};
use super::sender::Sender;
use super::stats::NdpStats;
use super::wire::NdpHeader;
use crate::toolkit::{Announcement, Output, sides};

/// NDP at one host.
#[derive(Debug)]
pub struct NdpHost {
    ndp: Arc<Ndp>,
    sender: Sender,
    receiver: Receiver,
    out: Output<NdpHeader>,
    stats: NdpStats,
}

impl NdpHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> NdpStats {
        self.stats
    }

    /// Handles a data packet that has arrived, or returned.
    #[inline]
    fn on_data(&mut self, now: Time, packet: &Packet<NdpHeader>) -> Receipt {
        let NdpHeader::Data { flow, tx_slot, seq, size } = packet.header else {
            return Receipt::Ignored;
        };
        let msg = packet.payload.msg;
        if packet.marks.contains(Marks::RETURNED) {
            self.sender.on_returned(tx_slot, msg, seq, &mut self.stats);
            return Receipt::Control;
        }
        let packets = self.ndp.segmentation().packets(Bytes::new(size));
        let announcement = Announcement { src: packet.src, msg, flow, tx_slot, packets };
        let is_trimmed = packet.marks.contains(Marks::TRIMMED);
        let arrival = Arrival { announcement, seq, path: packet.path, is_trimmed };
        self.receiver.on_data(now, arrival, &self.ndp, &mut self.out, &mut self.stats)
    }
}

impl Protocol for NdpHost {
    type Header = NdpHeader;
    type Config = Ndp;

    sides! { wants_transmit, poll_timeout, poll_event }

    fn new(config: Arc<Ndp>, node: NodeId, rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node, rng),
            receiver: Receiver::new(),
            out: Output::new(node, config.config.control.get() as u16),
            stats: NdpStats::default(),
            ndp: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, message, &self.ndp);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<NdpHeader>) -> Receipt {
        let msg = packet.payload.msg;
        match packet.header {
            NdpHeader::Data { .. } => return self.on_data(now, packet),
            NdpHeader::Ack { .. } | NdpHeader::Nack { .. } => {
                self.sender.on_answer(now, msg, &packet.header, &self.ndp, &mut self.out);
            }
            NdpHeader::Pull { tx_slot, pull } => {
                self.sender.on_pull(now, tx_slot, msg, pull, &self.ndp);
            }
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            self.receiver.handle_timeout(now, &self.ndp, &mut self.out, &mut self.stats);
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &self.ndp, &mut self.out, &mut self.stats);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<NdpHeader>> {
        self.out.next_control().or_else(|| self.sender.next_data(now, &self.ndp))
    }
}

impl Observation for NdpHost {
    sides! { counters, permission, gauges, message_counts }
}

impl HostPolicy for NdpHost {
    sides! { arriving, data, reconfigure(ndp) }

    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(src, msg);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.ndp);
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.abandon(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
    }
}
