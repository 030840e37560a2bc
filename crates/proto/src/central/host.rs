//! The host layer (CAPTON §IV.C): which messages ask the controller, what its orders do to their
//! connections, and what happens when it is silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_core::packet::Marks;
use rampmeter_core::{Bytes, Endpoint, Event, Message, MsgId, NodeId, Packet, Receipt, Rng, Time};

use super::controller::Request;
use super::settings::Settings;
use super::wire::{CentralHeader, Control};
use super::{Central, Granted, HostStats};
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
    /// The path that the controller has chosen.
    path: Option<u16>,
}

/// One host.
#[derive(Debug)]
pub struct CentralHost<C: Central> {
    config: Arc<C::Config>,
    tcp: TcpHost,
    flows: BTreeMap<MsgId, Flow>,
    out: Output<CentralHeader<C::Orders>>,
    timers: Timers<MsgId>,
    /// Which controller requests go to.
    controller: u32,
    /// When the first request was sent that has no answer.
    unanswered: Option<Time>,
    /// Whether the host does without a controller.
    is_alone: bool,
    stats: HostStats,
}

impl<C: Central> CentralHost<C> {
    /// What has been counted so far.
    pub fn stats(&self) -> HostStats {
        self.stats
    }

    #[inline]
    fn settings(&self) -> &Settings {
        C::settings(&self.config)
    }

    fn controller(&self) -> NodeId {
        NodeId::new(self.settings().first_controller.get() + self.controller)
    }

    /// Queues a message to a controller.
    fn tell(&mut self, dst: NodeId, msg: MsgId, control: Control<C::Grant>) {
        self.out.send(dst, msg, CentralHeader::Order(control.into()));
    }

    /// What is left of a flow, in bytes on the wire.
    fn left(&self, flow: &Flow) -> u64 {
        let bytes = match flow.is_submitted {
            true => self.tcp.unacknowledged(flow.message.id).unwrap_or(0),
            false => flow.message.size.get(),
        };
        let tcp = &self.settings().tcp.config;
        let packets = Bytes::new(bytes).packets_ceil(tcp.payload);
        bytes + packets * tcp.header.get()
    }

    /// Sends a flow's request, and notes when it is to be repeated.
    fn request(&mut self, now: Time, msg: MsgId) {
        let Some(&flow) = self.flows.get(&msg) else { return };
        let Flow { message, heard, .. } = flow;
        let (number, dst, left) = (msg.get(), message.dst, self.left(&flow));
        let request = Request { number, dst, left: Bytes::new(left), heard };
        self.tell(self.controller(), msg, Control::Request(request));
        self.stats.requests += 1;
        self.unanswered.get_or_insert(now);
        if let Some(flow) = self.flows.get_mut(&msg) {
            flow.reported = left;
        }
        let settings = self.settings();
        let patience = if self.is_alone { settings.refresh } else { settings.repeat };
        self.wait(now + patience, msg);
    }

    fn wait(&mut self, due: Time, msg: MsgId) {
        if let Some(flow) = self.flows.get_mut(&msg) {
            flow.due = due;
            self.timers.push(due, msg);
        }
    }

    /// Hands a flow to TCP, if it has not got it, and says how fast it goes and by which path.
    fn send_at(&mut self, now: Time, msg: MsgId, grant: Grant, path: Option<u16>) {
        let Some(flow) = self.flows.get_mut(&msg) else { return };
        flow.path = path;
        if !std::mem::replace(&mut flow.is_submitted, true) {
            self.tcp.submit(now, flow.message);
        }
        self.tcp.grant(now, msg, grant);
    }

    /// A controller gives an order about a flow: a grant, or `None` to stop.
    fn on_order(
        &mut self,
        now: Time,
        src: NodeId,
        (number, order): (u32, u32),
        grant: Option<C::Grant>,
    ) {
        let msg = MsgId::new(number);
        (self.unanswered, self.is_alone) = (None, false);
        let (refresh, repeat) = (self.settings().refresh, self.settings().repeat);
        let Some(flow) = self.flows.get_mut(&msg) else {
            self.tell(src, msg, Control::Done { number });
            return;
        };
        let is_new = order > flow.heard;
        flow.heard = flow.heard.max(order);
        let due = flow.due;
        match grant {
            _ if !is_new => {}
            Some(grant) => self.send_at(now, msg, Grant::Rate(grant.rate()), grant.path()),
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
        if due <= now + repeat {
            self.wait(now + refresh, msg);
        }
    }

    /// The controller has been silent for too long: congestion control takes over, and requests go
    /// to the other controller, if there is one.
    fn fall_back(&mut self, now: Time) {
        self.stats.fallbacks += u64::from(!self.is_alone);
        (self.is_alone, self.unanswered) = (true, Some(now));
        self.controller = (self.controller + 1) % self.settings().controllers;
        let all: Vec<MsgId> = self.flows.keys().copied().collect();
        all.into_iter().for_each(|msg| self.send_at(now, msg, Grant::Own, None));
    }

    /// A message is over for this host.
    fn end(&mut self, msg: MsgId) -> Option<Flow> {
        let flow = self.flows.remove(&msg)?;
        self.tell(self.controller(), msg, Control::Done { number: msg.get() });
        if self.flows.is_empty() {
            self.unanswered = None;
        }
        Some(flow)
    }
}

impl<C: Central> Endpoint for CentralHost<C> {
    type Header = CentralHeader<C::Orders>;
    type Config = C::Config;

    fn new(config: Arc<C::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        let tcp = &C::settings(&config).tcp;
        Self {
            tcp: TcpHost::new(Arc::clone(tcp), node, rng, now),
            flows: BTreeMap::new(),
            out: Output::new(node, tcp.config.header.get() as u16),
            timers: Timers::default(),
            controller: 0,
            unanswered: None,
            is_alone: false,
            stats: HostStats::default(),
            config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let msg = message.id;
        if message.size <= self.settings().threshold {
            self.stats.unscheduled += 1;
            self.tcp.submit(now, message);
            if let Some(rate) = self.settings().unscheduled {
                self.tcp.grant(now, msg, Grant::Rate(rate));
            }
            return;
        }
        self.stats.scheduled += 1;
        let due = Time::NEVER;
        let flow = Flow { message, heard: 0, is_submitted: false, reported: 0, due, path: None };
        self.flows.insert(msg, flow);
        self.request(now, msg);
        if self.is_alone {
            self.send_at(now, msg, Grant::Own, None);
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.tcp.cancel(now, msg);
        let is_order = |header: &Self::Header| matches!(header, CentralHeader::Order(_));
        self.out.cancel(msg, is_order);
        self.end(msg);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        let control = match packet.header {
            CentralHeader::Tcp(header) => {
                return self.tcp.handle_packet(now, &with(packet, header));
            }
            CentralHeader::Order(order) => order.into(),
        };
        // Only controllers give orders.
        if packet.src >= self.settings().first_controller
            && let Control::Order { number, order, grant } = control
        {
            self.on_order(now, packet.src, (number, order), grant);
        }
        Receipt::Control
    }

    fn has_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            CentralHeader::Tcp(header) => self.tcp.has_delivered(now, &with(packet, header)),
            CentralHeader::Order(_) => false,
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
            if self.unanswered.is_some_and(|since| now - since >= self.settings().fallback) {
                self.fall_back(now);
            }
            self.request(now, msg);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        let mut packet = self.tcp.poll_transmit(now)?;
        if C::Grant::HAS_PATH
            && packet.payload.len > 0
            && let Some(flow) = self.flows.get(&packet.payload.msg)
        {
            packet.priority = self.settings().scheduled_class;
            if let Some(path) = flow.path {
                packet.path = path;
                packet.marks = packet.marks.with(Marks::ROUTED);
            }
        }
        Some(with(&packet, CentralHeader::Tcp(packet.header)))
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
