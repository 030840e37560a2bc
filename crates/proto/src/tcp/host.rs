//! The endpoint: a sender and a receiver behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng, Time,
};

use super::config::Tcp;
use super::connection::{Acknowledgement, Grant};
use super::receiver::Receiver;
use super::receiver::arrival::{Syn, parse_arrival};
use super::sender::Sender;
use super::stats::TcpStats;
use super::wire::TcpHeader;
use crate::toolkit::{Output, sides};

/// TCP at one host.
#[derive(Debug)]
pub struct TcpHost {
    tcp: Arc<Tcp>,
    sender: Sender,
    receiver: Receiver,
    out: Output<TcpHeader>,
    stats: TcpStats,
}

impl TcpHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> TcpStats {
        self.stats
    }

    /// Sets the sending rate of a message from now on.
    pub(crate) fn grant(&mut self, now: Time, msg: MsgId, grant: Grant) {
        self.sender.grant(now, msg, grant, &self.tcp);
    }

    /// Returns true if the receiver's window is closed for a message.
    pub(crate) fn is_window_closed(&self, msg: MsgId) -> bool {
        self.sender.is_window_closed(msg)
    }

    /// Returns the bytes of a message that are not acknowledged; `None` if it has ended.
    pub(crate) fn unacknowledged(&self, msg: MsgId) -> Option<u64> {
        self.sender.unacknowledged(msg)
    }
}

impl Protocol for TcpHost {
    type Header = TcpHeader;
    type Config = Tcp;

    sides! { wants_transmit, poll_timeout, poll_event }

    fn new(config: Arc<Tcp>, node: NodeId, rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node, rng),
            receiver: Receiver::default(),
            out: Output::new(node, config.config.packet.header.get() as u16),
            stats: TcpStats::default(),
            tcp: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, &message, &self.tcp, &mut self.out);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.sender.cancel(now, msg, &self.tcp, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<TcpHeader>) -> Receipt {
        let (src, msg, out) = (packet.src, packet.payload.msg, &mut self.out);
        match packet.header {
            TcpHeader::Data { .. } => {
                let Some(arrival) = parse_arrival(packet) else { return Receipt::Ignored };
                return self.receiver.on_data(now, &arrival, &self.tcp, out);
            }
            TcpHeader::Ack { conn, ack, window, ece, sack } => {
                let acknowledgement = Acknowledgement { ack, window, ece, sack: sack.as_slice() };
                let (tcp, stats) = (&self.tcp, &mut self.stats);
                self.sender.on_ack(now, src, conn, &acknowledgement, tcp, out, stats);
            }
            TcpHeader::Syn { conn, seq, ecn } => {
                let syn = Syn { src, msg, conn, seq, ecn };
                self.receiver.on_syn(now, syn, &self.tcp, out);
            }
            TcpHeader::SynAck { conn, ack, window, ecn } => {
                self.sender.on_syn_ack(now, src, conn, ack, window, ecn, &self.tcp);
            }
            TcpHeader::Fin { conn, seq } => {
                self.receiver.on_fin(now, src, conn, seq, msg, &self.tcp, out);
            }
            TcpHeader::Reset { conn } => self.receiver.on_reset(src, conn, out),
            TcpHeader::Refused { conn } => self.sender.on_refused(src, conn, out),
            TcpHeader::Ended { conn } => self.sender.on_ended(src, conn, out),
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        self.receiver.handle_timeout(now, &self.tcp, &mut self.out);
        self.sender.handle_timeout(now, &self.tcp, &mut self.out, &mut self.stats);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<TcpHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(now, &self.tcp)
    }
}

impl Observation for TcpHost {
    sides! { counters, permission, gauges }

    fn message_counts(&self) -> Option<(usize, usize)> {
        Some((self.sender.len(), self.receiver.len(&self.tcp)))
    }
}

impl HostPolicy for TcpHost {
    sides! { reconfigure(tcp) }

    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<TcpHeader>) -> bool {
        let Some(arrival) = parse_arrival(packet) else { return false };
        self.receiver.is_delivered(now, &arrival)
    }

    fn is_duplicate(&mut self, packet: &Packet<TcpHeader>) -> bool {
        parse_arrival(packet).is_none_or(|arrival| self.receiver.has_received(&arrival))
    }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(now, src, msg, &self.tcp, &mut self.out);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.tcp, &mut self.out);
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.receiver.limit(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.receiver.excess()
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
    }
}
