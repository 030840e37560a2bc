//! The endpoint: a source and a destination behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng,
    TenantId, Time,
};

use super::config::Phost;
use super::receiver::Receiver;
use super::sender::Sender;
use super::stats::PhostStats;
use super::wire::PhostHeader;
use crate::toolkit::{Announcement, Output, SizedFlow, sides};

/// pHost at one host.
#[derive(Debug)]
pub struct PhostHost {
    phost: Arc<Phost>,
    sender: Sender,
    receiver: Receiver,
    out: Output<PhostHeader>,
    stats: PhostStats,
}

impl PhostHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> PhostStats {
        self.stats
    }

    /// Returns the number of flows that the choice of tokens has looked at.
    #[cfg(test)]
    pub(super) fn n_examined(&self) -> u64 {
        self.receiver.n_examined()
    }

    fn announcement(
        &self,
        packet: &Packet<PhostHeader>,
        flow: u32,
        tx_slot: u32,
        size: u64,
    ) -> SizedFlow {
        let size = Bytes::new(size);
        let of = Announcement {
            src: packet.src,
            msg: packet.payload.msg,
            flow,
            tx_slot,
            packets: self.phost.segmentation().packets(size),
        };
        SizedFlow { announcement: of, size }
    }
}

impl Protocol for PhostHost {
    type Header = PhostHeader;
    type Config = Phost;

    sides! { poll_control, wants_transmit, poll_timeout, poll_event }

    fn new(config: Arc<Phost>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: Receiver::new(&config),
            out: Output::new(node, config.config.packet.header.get() as u16),
            stats: PhostStats::default(),
            phost: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, message, &self.phost, &mut self.out);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<PhostHeader>) -> Receipt {
        let msg = packet.payload.msg;
        match packet.header {
            PhostHeader::Data { rx_slot, seq, number } => {
                let (phost, out) = (&self.phost, &mut self.out);
                return self.receiver.on_data(now, packet, rx_slot, seq, number, phost, out);
            }
            PhostHeader::Token { .. } => {
                self.sender.on_token(now, msg, &packet.header);
            }
            PhostHeader::Free { flow, tx_slot, seq, size } => {
                let flow = self.announcement(packet, flow, tx_slot, size);
                return self.receiver.on_free(now, flow, seq, &self.phost, &mut self.out);
            }
            PhostHeader::Rts {
                flow,
                tx_slot,
                size,
                time_to_deadline,
                tenant,
                is_retransmission,
            } => {
                let of = self.announcement(packet, flow, tx_slot, size);
                let (deadline, tenant) =
                    (now.saturating_add(time_to_deadline), TenantId::new(tenant.into()));
                let (phost, out) = (&self.phost, &mut self.out);
                self.receiver.on_rts(now, of, deadline, tenant, is_retransmission, phost, out);
            }
            PhostHeader::Ack { tx_slot } => self.sender.on_ack(tx_slot, msg, &mut self.out),
            PhostHeader::RtsAck { tx_slot, is_paused } => {
                self.sender.on_response(now, tx_slot, msg, is_paused, &self.phost);
            }
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            self.receiver.handle_timeout(now, &self.phost, &mut self.out, &mut self.stats);
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &self.phost, &mut self.out, &mut self.stats);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<PhostHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(now, &self.phost, &mut self.stats)
    }
}

impl Observation for PhostHost {
    sides! { counters, permission, gauges, message_counts }
}

impl HostPolicy for PhostHost {
    sides! { arriving, data, reconfigure(phost) }

    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(src, msg, &self.phost);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.phost);
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.abandon(src, msg, &self.phost, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &self.phost, &mut self.out);
    }
}
