//! Host layer for programs with their own TCP (§IV.C): it sends requests to controllers for their
//! flows, and passes on the orders.
//!
//! The owner reports flows ([`CentralAgent::begin`], [`CentralAgent::update`],
//! [`CentralAgent::finish`]) and obeys the verdicts ([`CentralAgent::poll_permission`]). It submits
//! no messages.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::{
    Bytes, Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Rate, Receipt,
    Rng, Time,
};

use super::flow::FlowGrant;
use super::requests::{DueRequest, RequestingFlows};
use super::scheme::CentralScheme;
use super::settings::Settings;
use super::stats::HostStats;
use super::wire::{CentralHeader, Control};
use crate::toolkit::Output;

/// Verdict on a flow: the sending that it is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendPermission {
    /// Send at this rate, in bits on the wire.
    Rate(Rate),
    /// Wait.
    Stopped,
    /// Send as congestion control allows: there is no controller.
    Free,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Remaining bytes on the wire.
    remaining: u64,
    /// Remaining bytes in the last report to the controller, and the time of the report.
    last_report: (u64, Time),
    permission: SendPermission,
}

/// CAPTON at a host whose programs send by themselves.
#[derive(Debug)]
pub struct CentralAgent<C: CentralScheme> {
    config: Arc<C::Config>,
    requests: RequestingFlows<C, Flow>,
    permissions: VecDeque<(MsgId, SendPermission)>,
    next: u32,
}

impl<C: CentralScheme> CentralAgent<C> {
    /// Returns the counters so far.
    pub fn stats(&self) -> HostStats {
        self.requests.stats
    }

    /// Returns the flows that are not over.
    pub fn flows(&self) -> usize {
        self.requests.flows().count()
    }

    /// Returns the remaining size that is reported to a controller for a flow with `bytes`
    /// remaining bytes. It is greater by a constant, the same for all flows: the bytes sent while a
    /// GRANT and a DONE travel. Otherwise the controller would count short flows as late.
    fn reported_size(&self, bytes: Bytes) -> u64 {
        let settings = self.settings();
        let travel = settings
            .unscheduled
            .map_or(0, |rate| rate.bytes_floor(settings.retransmit_after / 2).get());
        self.on_wire(bytes) + travel
    }

    /// Returns the bytes on the wire of `bytes` of payload.
    fn on_wire(&self, bytes: Bytes) -> u64 {
        let tcp = &self.settings().tcp.config;
        bytes.get() + bytes.packets_ceil(tcp.packet.payload) * tcp.packet.header.get()
    }

    fn settings(&self) -> &Settings {
        C::settings(&self.config)
    }

    /// Begins a flow to which a program has given this many bytes; returns its number. The flow
    /// waits for its verdict.
    pub fn begin(&mut self, now: Time, dst: NodeId, bytes: Bytes) -> MsgId {
        let msg = MsgId::new(self.next);
        self.next = self.next.wrapping_add(1);
        let remaining = self.reported_size(bytes);
        let flow =
            Flow { remaining, last_report: (remaining, now), permission: SendPermission::Stopped };
        self.requests.stats.scheduled += 1;
        self.requests.insert(msg, dst, flow);
        self.requests.request(now, msg, remaining);
        if self.requests.is_alone() {
            self.decide(msg, SendPermission::Free);
        }
        msg
    }

    /// Updates the remaining bytes of a flow. The controller is notified if they are far more than
    /// it expects: it assumes that a flow with a grant sends at its rate.
    pub fn update(&mut self, now: Time, msg: MsgId, bytes: Bytes) {
        let remaining = self.reported_size(bytes);
        let slack = self.on_wire(self.settings().threshold);
        let repeat = self.settings().retransmit_after;
        let Some(flow) = self.requests.get_mut(msg) else { return };
        flow.remaining = remaining;
        let (reported, at) = flow.last_report;
        let since = now.saturating_since(at);
        let expected = match flow.permission {
            SendPermission::Rate(rate) => reported.saturating_sub(rate.bytes_floor(since).get()),
            SendPermission::Stopped | SendPermission::Free => reported,
        };
        if remaining > expected + slack.max(expected / 2) && since >= repeat {
            self.request(now, msg);
        }
    }

    /// Removes a flow that has completed or failed.
    pub fn finish(&mut self, msg: MsgId) {
        self.requests.remove(msg);
    }

    /// Returns the next flow that may do something else than before.
    pub fn poll_permission(&mut self) -> Option<(MsgId, SendPermission)> {
        self.permissions.pop_front()
    }

    fn decide(&mut self, msg: MsgId, verdict: SendPermission) {
        let Some(flow) = self.requests.get_mut(msg) else { return };
        flow.permission = verdict;
        self.permissions.push_back((msg, verdict));
    }

    fn request(&mut self, now: Time, msg: MsgId) {
        let Some(flow) = self.requests.get_mut(msg) else { return };
        flow.last_report = (flow.remaining, now);
        let remaining = flow.remaining;
        self.requests.request(now, msg, remaining);
    }

    fn on_order(&mut self, now: Time, src: NodeId, flow: u32, order: u32, rate: Option<Rate>) {
        let msg = MsgId::new(flow);
        let Some(is_new) = self.requests.accept_order(src, flow, order) else { return };
        if is_new {
            self.decide(msg, rate.map_or(SendPermission::Stopped, SendPermission::Rate));
        }
        let remaining = match rate {
            None if is_new => self.requests.get(msg).map(|flow| flow.remaining),
            _ => None,
        };
        if let (Some(remaining), Some(flow)) = (remaining, self.requests.get_mut(msg)) {
            flow.last_report = (remaining, now);
        }
        self.requests.on_order_applied(now, msg, remaining);
    }
}

impl<C: CentralScheme> Protocol for CentralAgent<C> {
    type Header = CentralHeader<C::Orders>;
    type Config = C::Config;

    fn new(config: Arc<C::Config>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        let requests = RequestingFlows::new(Arc::clone(&config), node);
        Self { config, requests, permissions: VecDeque::new(), next: 0 }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        self.requests.out.push_event(Event::Failed { msg: message.id });
    }

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        let CentralHeader::Order(order) = packet.header else { return Receipt::Ignored };
        if packet.src >= self.settings().first_controller
            && let Control::Order { number, order, grant } = order.into()
        {
            self.on_order(now, packet.src, number, order, grant.map(FlowGrant::rate));
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(DueRequest { msg, falls_back }) = self.requests.poll_due(now) {
            if falls_back {
                let all: Vec<MsgId> = self.requests.flows().map(|(msg, _)| msg).collect();
                all.into_iter().for_each(|msg| self.decide(msg, SendPermission::Free));
            }
            self.request(now, msg);
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<Self::Header>> {
        self.requests.out.next_control()
    }

    fn wants_transmit(&self) -> bool {
        self.requests.out.has_control()
    }

    fn poll_timeout(&self) -> Time {
        self.requests.next_due()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.requests.out.next_event()
    }
}

impl<C: CentralScheme> Observation for CentralAgent<C> {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.stats().report(each);
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        Some((self.flows(), 0))
    }
}

impl<C: CentralScheme> HostPolicy for CentralAgent<C> {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<Self::Header>) -> bool {
        false
    }

    fn is_duplicate(&mut self, _packet: &Packet<Self::Header>) -> bool {
        true
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        Output::forget_peer(&mut self.requests.out, peer);
    }
}
