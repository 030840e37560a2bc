//! The controller as an endpoint: it moves the messages of a [`Controller`].

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{
    Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng, Span,
    Time,
};

use super::controller::{Controller, Order};
use super::scheme::CentralScheme;
use super::wire::{CentralHeader, Control};
use crate::toolkit::{Output, sides};

/// The controller of a network, or its standby.
#[derive(Debug)]
pub struct CentralArbiter<C: CentralScheme> {
    controller: Controller<C::Schedule>,
    out: Output<CentralHeader<C::Orders>>,
    /// Orders that are being computed, and the times at which they are sent.
    computed: VecDeque<(Time, Order<C::Grant>)>,
    compute: Span,
}

impl<C: CentralScheme> CentralArbiter<C> {
    /// Takes the orders that follow from an input, and sends those that are computed.
    fn pump(&mut self, now: Time) {
        while let Some(order) = self.controller.poll_order() {
            self.computed.push_back((now + self.compute, order));
        }
        while self.computed.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, order)) = self.computed.pop_front()
        {
            let Order { host, number, order, grant } = order;
            let header = Control::Order { number, order, grant }.into();
            self.out.send(host, MsgId::new(number), CentralHeader::Order(header));
        }
    }
}

impl<C: CentralScheme> Protocol for CentralArbiter<C> {
    type Header = CentralHeader<C::Orders>;
    type Config = C::Config;

    fn new(config: Arc<C::Config>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        let settings = C::settings(&config);
        Self {
            controller: Controller::new(C::schedule(&config), settings.controller),
            out: Output::new(node, settings.tcp.config.packet.header.get() as u16),
            computed: VecDeque::new(),
            compute: settings.compute,
        }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        self.out.push_event(Event::Failed { msg: message.id });
    }

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        let src = packet.src;
        let CentralHeader::Order(header) = packet.header else { return Receipt::Ignored };
        match header.into() {
            Control::Request(request) => self.controller.handle_request(now, src, request),
            Control::Done { number } => self.controller.handle_done(now, src, number),
            Control::Order { .. } => return Receipt::Ignored,
        }
        self.pump(now);
        Receipt::Control
    }

    fn handle_links(&mut self, now: Time, down: &LinksDown) {
        self.controller.handle_links(now, down);
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.controller.handle_timeout(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<Self::Header>> {
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

impl<C: CentralScheme> Observation for CentralArbiter<C> {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let stats = self.controller.stats();
        let all = [
            ("grants", stats.grants),
            ("stops", stats.stops),
            ("reactivated_flows", stats.reactivated_flows),
        ];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}

impl<C: CentralScheme> HostPolicy for CentralArbiter<C> {
    sides! { no_data }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.controller.forget(now, peer);
        self.pump(now);
    }
}
