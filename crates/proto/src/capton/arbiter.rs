//! The controller as an endpoint: it moves the messages of a [`Controller`].

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_core::{
    Bytes, Endpoint, Event, Message, MsgId, NodeId, Packet, Receipt, Rng, Span, Time,
};

use super::config::Capton;
use super::controller::{Controller, Order, Request};
use super::wire::{CaptonHeader, OrderHeader};
use crate::parts::Output;

/// The controller of a network, or its standby.
#[derive(Debug)]
pub struct CaptonArbiter {
    controller: Controller,
    out: Output<CaptonHeader>,
    /// Orders that are being computed, and when they leave.
    computed: VecDeque<(Time, Order)>,
    compute: Span,
}

impl CaptonArbiter {
    /// Takes the orders that follow from an input, and sends those that are computed.
    fn pump(&mut self, now: Time) {
        while let Some(order) = self.controller.poll_order() {
            self.computed.push_back((now + self.compute, order));
        }
        while self.computed.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, order)) = self.computed.pop_front()
        {
            let Order { host, number: flow, order, rate } = order;
            let header = match rate {
                Some(rate) => OrderHeader::Grant { flow, order, rate: rate.as_bps() },
                None => OrderHeader::Stop { flow, order },
            };
            self.out.send(host, MsgId::new(flow), CaptonHeader::Order(header));
        }
    }
}

impl Endpoint for CaptonArbiter {
    type Header = CaptonHeader;
    type Config = Capton;

    fn new(config: Arc<Capton>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            controller: Controller::new(config.network.clone(), config.controller),
            out: Output::new(node, config.config.header.get() as u16),
            computed: VecDeque::new(),
            compute: Span::from_ns(config.config.compute_ns),
        }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        self.out.say(Event::Failed { msg: message.id });
    }

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, now: Time, packet: &Packet<CaptonHeader>) -> Receipt {
        let src = packet.src;
        match packet.header {
            CaptonHeader::Order(OrderHeader::Request { flow, dst, left, heard }) => {
                let (dst, left) = (NodeId::new(dst), Bytes::new(left));
                let request = Request { number: flow, dst, left, heard };
                self.controller.handle_request(now, src, request);
            }
            CaptonHeader::Order(OrderHeader::Done { flow }) => {
                self.controller.handle_done(now, src, flow);
            }
            CaptonHeader::Order(_) | CaptonHeader::Tcp(_) => return Receipt::Ignored,
        }
        self.pump(now);
        Receipt::Control
    }

    fn has_delivered(&mut self, _now: Time, _packet: &Packet<CaptonHeader>) -> bool {
        false
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let stats = self.controller.stats();
        let all = [("grants", stats.grants), ("stops", stats.stops), ("late", stats.late)];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.controller.forget(now, peer);
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.controller.handle_timeout(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<CaptonHeader>> {
        self.out.next_control()
    }

    fn wants_transmit(&self) -> bool {
        self.out.has_control()
    }

    fn poll_timeout(&self) -> Time {
        let computed = self.computed.front().map_or(Time::NEVER, |(at, _)| *at);
        computed.min(self.controller.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.out.next_event()
    }
}
