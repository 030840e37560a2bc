//! The endpoint: a source and a destination behind one interface.

use std::sync::Arc;

use rampmeter_types::{
    HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng, Time,
};

use super::config::Hpcc;
use super::receiver::Receiver;
use super::sender::Sender;
use super::stats::HpccStats;
use super::wire::HpccHeader;
use crate::toolkit::{Output, sides};

/// HPCC at one host.
#[derive(Debug)]
pub struct HpccHost {
    hpcc: Arc<Hpcc>,
    sender: Sender,
    receiver: Receiver,
    out: Output<HpccHeader>,
    stats: HpccStats,
}

impl HpccHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> HpccStats {
        self.stats
    }

    /// Returns the window of a message that is being sent, in bytes.
    pub fn window(&self, msg: MsgId) -> Option<f64> {
        self.sender.window(msg)
    }
}

impl Protocol for HpccHost {
    type Header = HpccHeader;
    type Config = Hpcc;

    sides! { poll_control, wants_transmit, poll_event }

    fn new(config: Arc<Hpcc>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            sender: Sender::new(node),
            receiver: Receiver::default(),
            out: Output::new(node, config.segmentation().header.get() as u16),
            stats: HpccStats::default(),
            hpcc: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sender.submit(now, &message, &self.hpcc);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<HpccHeader>) -> Receipt {
        let (hpcc, out, stats) = (&self.hpcc, &mut self.out, &mut self.stats);
        match &packet.header {
            HpccHeader::Data { .. } => self.receiver.on_data(now, packet, hpcc, out, stats),
            ack => {
                self.sender.on_ack(now, packet.payload.msg, ack, hpcc, out, stats);
                Receipt::Control
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.sender.handle_timeout(now, &self.hpcc, &mut self.out, &mut self.stats);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<HpccHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(now, &self.hpcc)
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.sender.deadline()
    }
}

impl Observation for HpccHost {
    sides! { counters, permission, gauges, message_counts }
}

impl HostPolicy for HpccHost {
    sides! { arriving, data }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.abandon_message(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.flows.forget_peer(peer, &mut self.out, |_, _| {});
    }
}
