//! The endpoint: a source and a destination behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission, Protocol, Receipt,
    Rng, Time,
};

use super::config::Pfabric;
use super::sender::Sender;
use super::stats::PfabricStats;
use super::wire::PfabricHeader;
use crate::toolkit::{Ack, AckReceiver, Announcement, Output, sack_bits, sides};

/// pFabric at one host.
#[derive(Debug)]
pub struct PfabricHost {
    pfabric: Arc<Pfabric>,
    sender: Sender,
    receiver: AckReceiver,
    out: Output<PfabricHeader>,
    stats: PfabricStats,
}

impl PfabricHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> PfabricStats {
        self.stats
    }
}

impl Protocol for PfabricHost {
    type Header = PfabricHeader;
    type Config = Pfabric;

    sides! { wants_transmit, poll_event }

    fn new(config: Arc<Pfabric>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: AckReceiver::default(),
            out: Output::new(node, config.config.packet.header.get() as u16),
            stats: PfabricStats::default(),
            pfabric: config,
        }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        self.sender.submit(message, &self.pfabric);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<PfabricHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        let (flow, tx_slot, size, seq) = match packet.header {
            PfabricHeader::Data { flow, tx_slot, seq, size, .. } => {
                (flow, tx_slot, size, Some(seq))
            }
            PfabricHeader::Probe { flow, tx_slot, size, .. } => (flow, tx_slot, size, None),
            PfabricHeader::Ack { tx_slot, cumulative, sack } => {
                let ack = Ack { cumulative, sack, is_marked: false };
                self.sender.on_ack(now, tx_slot, msg, &ack, &self.pfabric, &mut self.out);
                return Receipt::Control;
            }
            PfabricHeader::Pause { is_paused } => {
                self.sender.set_paused(now, src, msg, is_paused, &self.pfabric);
                return Receipt::Control;
            }
        };
        let packets = self.pfabric.segmentation().packets(Bytes::new(size));
        let of = Announcement { src, msg, flow, tx_slot, packets };
        let (forget, out) = (self.pfabric.forget_timeout, &mut self.out);
        self.receiver.on_packet(now, of, seq, forget, out, |arrived| {
            if arrived.is_paused && seq.is_none() {
                return PfabricHeader::Pause { is_paused: true };
            }
            let (cumulative, sack) = (arrived.cumulative, arrived.received.map_or(0, sack_bits));
            PfabricHeader::Ack { tx_slot, cumulative, sack }
        })
    }

    fn handle_timeout(&mut self, now: Time) {
        self.sender.handle_timeout(now, &self.pfabric, &mut self.out, &mut self.stats);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<PfabricHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(now, &self.pfabric)
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.sender.deadline()
    }
}

impl Observation for PfabricHost {
    sides! { counters, gauges, message_counts }

    fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        self.sender.permission(msg, &self.pfabric)
    }
}

impl HostPolicy for PfabricHost {
    sides! { arriving, data, reconfigure(pfabric) }

    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.pause(src, msg);
        self.out.send(src, msg, PfabricHeader::Pause { is_paused: true });
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.resume(now, src, msg, self.pfabric.paused_probe_interval);
        self.out.send(src, msg, PfabricHeader::Pause { is_paused: false });
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.abandon_message(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
    }
}
