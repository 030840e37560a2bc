//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, HostPolicy, LatencyBound, Message, MsgId, NodeId, Observation, Packet, Protocol,
    Receipt, Rng, Time,
};

use super::config::Cosy;
use super::receiver::{Receiver, ReceiverContext};
use super::sender::{Reservation, Sender};
use super::stats::CosyStats;
use super::wire::CosyHeader;
use crate::toolkit::{Announcement, Output, sides};

/// cosy at one host.
#[derive(Clone, Debug)]
pub struct CosyHost {
    cosy: Arc<Cosy>,
    sender: Sender,
    receiver: Receiver,
    out: Output<CosyHeader>,
    stats: CosyStats,
}

impl CosyHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> CosyStats {
        self.stats
    }

    /// Returns true if there is no message and every slot is free.
    pub fn is_idle(&self) -> bool {
        self.sender.state() == (0, 0) && self.receiver.state() == (0, 0)
    }

    /// Returns the reservation, virtual link and route of each slot that sends.
    #[cfg(test)]
    pub(super) fn sending_slots(&self) -> Vec<(u32, u16, super::wire::Route)> {
        self.sender.sending_slots()
    }

    /// Makes future random choices depend on `rng` alone.
    #[cfg(test)]
    pub(super) fn reseed(&mut self, rng: Rng) {
        self.receiver.reseed(rng);
    }

    fn receive<T>(&mut self, with: impl FnOnce(&mut Receiver, &mut ReceiverContext<'_>) -> T) -> T {
        let Self { cosy, out, stats, receiver, .. } = self;
        with(receiver, &mut ReceiverContext { cosy, out, stats })
    }
}

impl Protocol for CosyHost {
    type Header = CosyHeader;
    type Config = Cosy;

    sides! { wants_transmit, poll_timeout, poll_event }

    fn new(config: Arc<Cosy>, node: NodeId, rng: Rng, _now: Time) -> Self {
        let slots = config.config.slots;
        Self {
            sender: Sender::new(node, slots),
            receiver: Receiver::new(slots, rng),
            out: Output::new(node, config.config.packet.header.get() as u16),
            stats: CosyStats::default(),
            cosy: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, message, &self.cosy, &mut self.out);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<CosyHeader>) -> Receipt {
        let msg = packet.payload.msg;
        match packet.header {
            CosyHeader::Data { seq, number, rx_slot, last, .. } => {
                return self.receive(|receiver, cx| {
                    receiver.on_data(now, packet, seq, number, rx_slot, last, cx)
                });
            }
            CosyHeader::Request { flow, tx_slot, size } => {
                let packets = self.cosy.segmentation().packets(Bytes::new(size));
                let of = Announcement { src: packet.src, msg, flow, tx_slot, packets };
                if size > self.cosy.config.message_max.get() {
                    self.out.send(packet.src, msg, CosyHeader::Reject { tx_slot });
                    return Receipt::Control;
                }
                self.receive(|receiver, cx| receiver.on_request(now, of, cx));
            }
            CosyHeader::Release { seq, rx_slot, reason, .. } => {
                self.receive(|receiver, cx| {
                    receiver.on_release(now, packet.src, seq, rx_slot, reason, cx)
                });
            }
            CosyHeader::Rsvp { tx_slot, seq, rx_slot, link, last, route, .. } => {
                let reservation = Reservation { seq, rx_slot, link, route };
                let (cosy, out) = (&self.cosy, &mut self.out);
                self.sender.on_rsvp(now, packet, tx_slot, reservation, last, cosy, out);
            }
            CosyHeader::Reject { tx_slot } => {
                self.sender.on_reject(tx_slot, packet, &mut self.out);
            }
            CosyHeader::Complete { tx_slot } => {
                self.sender.on_complete(tx_slot, packet, &mut self.out);
            }
            CosyHeader::Failure { tx_slot } => {
                self.sender.on_failure(tx_slot, packet, &mut self.out);
            }
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.receiver.deadline() <= now {
            self.receive(|receiver, cx| receiver.handle_timeout(now, cx));
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &mut self.out);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<CosyHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        let data = self.sender.next_data(now, &self.cosy, &mut self.out);
        data.or_else(|| self.out.next_control())
    }
}

impl Observation for CosyHost {
    sides! { counters, permission }

    fn latency_bound(&self) -> Option<LatencyBound> {
        Some(self.cosy.latency_bound())
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        // Slots stay in use for a while after the end of their message.
        let known = |(messages, slots): (usize, usize)| if messages > 0 { messages } else { slots };
        Some((known(self.sender.state()), known(self.receiver.state())))
    }
}

impl HostPolicy for CosyHost {
    sides! { arriving }

    fn touch_if_delivered(&mut self, _now: Time, packet: &Packet<CosyHeader>) -> bool {
        let CosyHeader::Data { seq, rx_slot, .. } = packet.header else { return false };
        !self.receiver.is_reserved(rx_slot, seq)
    }

    fn is_duplicate(&mut self, packet: &Packet<CosyHeader>) -> bool {
        let CosyHeader::Data { seq, number, rx_slot, .. } = packet.header else { return true };
        !self.receiver.is_expected(packet, seq, number, rx_slot, self.cosy.config.packet.payload)
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receive(|receiver, cx| receiver.abandon(src, msg, cx));
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receive(|receiver, cx| receiver.forget_peer(peer, cx));
    }
}
