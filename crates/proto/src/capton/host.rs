//! The host layer (§IV.C): which messages ask the controller, what its orders do to their
//! connections, and what happens when it is silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_core::{
    Bytes, Endpoint, Event, Message, MsgId, NodeId, Packet, Rate, Receipt, Rng, Time,
};

use super::CaptonStats;
use super::config::Capton;
use super::wire::{CaptonHeader, OrderHeader};
use crate::beside::with;
use crate::parts::{Output, Timers};
use crate::tcp::{Grant, TcpHost};

/// A message that is scheduled.
#[derive(Clone, Copy, Debug)]
struct Flow {
    message: Message,
    /// The highest number of an order that was heard.
    heard: u32,
    /// Whether TCP has the message.
    is_submitted: bool,
    /// What was left by its last request, in bytes on the wire.
    reported: u64,
    /// When its request is repeated; its valid entry among the timers.
    due: Time,
}

/// CAPTON at one host.
#[derive(Debug)]
pub struct CaptonHost {
    capton: Arc<Capton>,
    tcp: TcpHost,
    flows: BTreeMap<MsgId, Flow>,
    out: Output<CaptonHeader>,
    timers: Timers<MsgId>,
    /// Which controller requests go to.
    controller: u32,
    /// When the first request was sent that has no answer.
    unanswered: Option<Time>,
    /// Whether the host does without a controller.
    is_alone: bool,
    stats: CaptonStats,
}

impl CaptonHost {
    /// What has been counted so far.
    pub fn stats(&self) -> CaptonStats {
        self.stats
    }

    fn controller(&self) -> NodeId {
        NodeId::new(self.capton.first_controller.get() + self.controller)
    }

    /// What is left of a flow, in bytes on the wire.
    fn left(&self, flow: &Flow) -> u64 {
        let bytes = match flow.is_submitted {
            true => self.tcp.unacknowledged(flow.message.id).unwrap_or(0),
            false => flow.message.size.get(),
        };
        let packets = Bytes::new(bytes).packets_ceil(self.capton.config.payload);
        bytes + packets * self.capton.config.header.get()
    }

    /// Sends a flow's request, and notes when it is to be repeated.
    fn request(&mut self, now: Time, msg: MsgId) {
        let Some(&flow) = self.flows.get(&msg) else { return };
        let Flow { message, heard, .. } = flow;
        let (flow_number, dst, left) = (msg.get(), message.dst.get(), self.left(&flow));
        let request = OrderHeader::Request { flow: flow_number, dst, left, heard };
        self.out.send(self.controller(), msg, CaptonHeader::Order(request));
        self.stats.requests += 1;
        self.unanswered.get_or_insert(now);
        if let Some(flow) = self.flows.get_mut(&msg) {
            flow.reported = left;
        }
        let patience = if self.is_alone { self.capton.refresh } else { self.capton.repeat };
        self.wait(now + patience, msg);
    }

    fn wait(&mut self, due: Time, msg: MsgId) {
        if let Some(flow) = self.flows.get_mut(&msg) {
            flow.due = due;
            self.timers.push(due, msg);
        }
    }

    /// Hands a flow to TCP, if it has not got it, and says how fast it goes.
    fn send_at(&mut self, now: Time, msg: MsgId, grant: Grant) {
        let Some(flow) = self.flows.get_mut(&msg) else { return };
        if !std::mem::replace(&mut flow.is_submitted, true) {
            self.tcp.submit(now, flow.message);
        }
        self.tcp.grant(now, msg, grant);
    }

    /// A controller gives an order about a flow: a rate, or `None` to stop.
    fn on_order(&mut self, now: Time, src: NodeId, (flow, order): (u32, u32), rate: Option<Rate>) {
        let msg = MsgId::new(flow);
        (self.unanswered, self.is_alone) = (None, false);
        let refresh = self.capton.refresh;
        let Some(flow) = self.flows.get_mut(&msg) else {
            let done = CaptonHeader::Order(OrderHeader::Done { flow });
            self.out.send(src, msg, done);
            return;
        };
        let is_new = order > flow.heard;
        flow.heard = flow.heard.max(order);
        let due = flow.due;
        match rate {
            _ if !is_new => {}
            Some(rate) => self.send_at(now, msg, Grant::Rate(rate)),
            None => {
                self.tcp.grant(now, msg, Grant::Stopped);
                // The controller learns how much is really left, if it does not know. A receiver
                // that does not answer is asked for at leisure.
                if self.left(&self.flows[&msg]) != self.flows[&msg].reported {
                    self.request(now, msg);
                    return;
                }
            }
        }
        // The next request keeps its time, unless it is the repetition of one that is answered.
        if due <= now + self.capton.repeat {
            self.wait(now + refresh, msg);
        }
    }

    /// The controller has been silent for too long: congestion control takes over, and requests go
    /// to the other controller, if there is one.
    fn fall_back(&mut self, now: Time) {
        self.stats.fallbacks += u64::from(!self.is_alone);
        (self.is_alone, self.unanswered) = (true, Some(now));
        self.controller = (self.controller + 1) % self.capton.config.controllers;
        let all: Vec<MsgId> = self.flows.keys().copied().collect();
        all.into_iter().for_each(|msg| self.send_at(now, msg, Grant::Own));
    }

    /// A message is over for this host.
    fn end(&mut self, msg: MsgId) -> Option<Flow> {
        let flow = self.flows.remove(&msg)?;
        let done = CaptonHeader::Order(OrderHeader::Done { flow: msg.get() });
        self.out.send(self.controller(), msg, done);
        if self.flows.is_empty() {
            self.unanswered = None;
        }
        Some(flow)
    }
}

impl Endpoint for CaptonHost {
    type Header = CaptonHeader;
    type Config = Capton;

    fn new(config: Arc<Capton>, node: NodeId, rng: Rng, now: Time) -> Self {
        Self {
            tcp: TcpHost::new(Arc::clone(&config.tcp), node, rng, now),
            flows: BTreeMap::new(),
            out: Output::new(node, config.config.header.get() as u16),
            timers: Timers::default(),
            controller: 0,
            unanswered: None,
            is_alone: false,
            stats: CaptonStats::default(),
            capton: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let msg = message.id;
        if message.size <= self.capton.threshold {
            self.stats.unscheduled += 1;
            self.tcp.submit(now, message);
            self.tcp.grant(now, msg, Grant::Rate(self.capton.access));
            return;
        }
        self.stats.scheduled += 1;
        let flow = Flow { message, heard: 0, is_submitted: false, reported: 0, due: Time::NEVER };
        self.flows.insert(msg, flow);
        self.request(now, msg);
        if self.is_alone {
            self.send_at(now, msg, Grant::Own);
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.tcp.cancel(now, msg);
        let is_order = |header: &CaptonHeader| matches!(header, CaptonHeader::Order(_));
        self.out.cancel(msg, is_order);
        self.end(msg);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<CaptonHeader>) -> Receipt {
        let order = match packet.header {
            CaptonHeader::Tcp(header) => return self.tcp.handle_packet(now, &with(packet, header)),
            CaptonHeader::Order(order) => order,
        };
        // Only controllers give orders.
        if packet.src >= self.capton.first_controller {
            match order {
                OrderHeader::Grant { flow, order, rate } => {
                    let rate = Rate::from_bps(rate);
                    self.on_order(now, packet.src, (flow, order), rate);
                }
                OrderHeader::Stop { flow, order } => {
                    self.on_order(now, packet.src, (flow, order), None);
                }
                OrderHeader::Request { .. } | OrderHeader::Done { .. } => {}
            }
        }
        Receipt::Control
    }

    fn has_delivered(&mut self, now: Time, packet: &Packet<CaptonHeader>) -> bool {
        match packet.header {
            CaptonHeader::Tcp(header) => self.tcp.has_delivered(now, &with(packet, header)),
            CaptonHeader::Order(_) => false,
        }
    }

    fn hold(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.tcp.hold(now, src, msg);
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.tcp.release(now, src, msg);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.stats().tell(each);
        self.tcp.counters(each);
    }

    fn messages(&self) -> Option<(usize, usize)> {
        let waiting = self.flows.values().filter(|flow| !flow.is_submitted).count();
        self.tcp.messages().map(|(sent, arriving)| (sent + waiting, arriving))
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.tcp.limit_arriving(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.tcp.arriving_excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.tcp.forget_peer(now, peer);
        let is_waiting = |flow: &&Flow| flow.message.dst == peer && !flow.is_submitted;
        let waiting = self.flows.values().filter(is_waiting);
        let waiting: Vec<MsgId> = waiting.map(|flow| flow.message.id).collect();
        for msg in waiting {
            self.end(msg);
            self.out.say(Event::Failed { msg });
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.tcp.handle_timeout(now);
        while let Some((at, msg)) = self.timers.pop_due(now) {
            if self.flows.get(&msg).is_none_or(|flow| flow.due != at) {
                continue;
            }
            if self.unanswered.is_some_and(|since| now - since >= self.capton.fallback) {
                self.fall_back(now);
            }
            self.request(now, msg);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<CaptonHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        let packet = self.tcp.poll_transmit(now)?;
        Some(with(&packet, CaptonHeader::Tcp(packet.header)))
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        self.out.has_control() || self.tcp.wants_transmit()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.timers.next().min(self.tcp.poll_timeout())
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        let event = self.out.next_event().or_else(|| self.tcp.poll_event())?;
        if let Event::Completed { msg } | Event::Failed { msg } = event {
            self.end(msg);
        }
        Some(event)
    }
}
