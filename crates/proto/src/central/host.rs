//! Host layer (CAPTON §IV.C): which messages send requests to the controller, the effect of its
//! orders on their connections, and fallback if it is unresponsive.

use std::collections::BTreeSet;
use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Event, Gauge, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission,
    Protocol, Receipt, Rng, Stage, Time,
};

use super::flow::FlowGrant;
use super::requests::{DueRequest, RequestingFlows};
use super::scheme::CentralScheme;
use super::settings::Settings;
use super::stats::HostStats;
use super::wire::{CentralHeader, Control};
use crate::coexistence::replace_header;
use crate::tcp::wire::TcpHeader;
use crate::tcp::{
    CONNECTION, CONTROLLER, Grant, HANDSHAKE, PACING, RECEIVE_WINDOW, TcpHost, WINDOW,
};

/// Stages at which messages wait for permission to send: those of TCP, and the controller.
pub(crate) const STAGES: &[&Stage] =
    &[CONTROLLER, HANDSHAKE, CONNECTION, RECEIVE_WINDOW, PACING, WINDOW];

/// A message that is scheduled.
#[derive(Clone, Copy, Debug)]
struct Flow {
    message: Message,
    /// True if TCP has the message.
    is_submitted: bool,
    /// The path that the controller has chosen.
    path: Option<u16>,
}

/// One host.
#[derive(Debug)]
pub struct CentralHost<C: CentralScheme> {
    config: Arc<C::Config>,
    tcp: TcpHost,
    requests: RequestingFlows<C, Flow>,
    /// Scheduled messages for which their receivers have no room. Controllers have no record of
    /// them, so that they take no capacity; TCP probes the receiver's window.
    blocked: BTreeSet<MsgId>,
}

impl<C: CentralScheme> CentralHost<C> {
    /// Returns the counters so far.
    pub fn stats(&self) -> HostStats {
        self.requests.stats
    }

    #[inline]
    fn settings(&self) -> &Settings {
        C::settings(&self.config)
    }

    /// Returns the remaining bytes of a flow on the wire.
    fn remaining_wire_bytes(&self, flow: &Flow) -> u64 {
        let bytes = match flow.is_submitted {
            true => self.tcp.unacknowledged(flow.message.id).unwrap_or(0),
            false => flow.message.size.get(),
        };
        let tcp = &self.settings().tcp.config;
        let packets = Bytes::new(bytes).packets_ceil(tcp.packet.payload);
        bytes + packets * tcp.packet.header.get()
    }

    /// Sends a flow's request.
    fn request(&mut self, now: Time, msg: MsgId) {
        let Some(flow) = self.requests.get(msg) else { return };
        let remaining = self.remaining_wire_bytes(flow);
        self.requests.request(now, msg, remaining);
    }

    /// Passes a flow to TCP, if TCP has not got it, and sets its rate and path.
    fn apply_grant(&mut self, now: Time, msg: MsgId, grant: Grant, path: Option<u16>) {
        let Some(flow) = self.requests.get_mut(msg) else { return };
        flow.path = path;
        if !std::mem::replace(&mut flow.is_submitted, true) {
            self.tcp.submit(now, flow.message);
        }
        self.tcp.grant(now, msg, grant);
    }

    /// Handles an acknowledgement: withdraws the request of a message if its receiver has no room,
    /// and repeats the request when there is space.
    fn check_window(&mut self, now: Time, msg: MsgId) {
        if self.requests.get(msg).is_none_or(|flow| !flow.is_submitted) {
            return;
        }
        let is_shut = self.tcp.is_window_closed(msg);
        if is_shut && self.blocked.insert(msg) {
            self.requests.withdraw(msg);
            if self.blocked.len() == self.requests.len() {
                self.requests.clear_unanswered();
            }
            self.tcp.grant(now, msg, Grant::CongestionControl);
        } else if !is_shut && self.blocked.remove(&msg) {
            if !self.requests.is_alone() {
                self.tcp.grant(now, msg, Grant::Stopped);
            }
            self.request(now, msg);
        }
    }

    /// Removes a message that has completed or failed.
    fn remove(&mut self, msg: MsgId) {
        self.requests.remove(msg);
        self.blocked.remove(&msg);
    }

    /// Handles an order of a controller about a flow: a grant, or `None` to stop.
    fn on_order(
        &mut self,
        now: Time,
        src: NodeId,
        number: u32,
        order: u32,
        grant: Option<C::Grant>,
    ) {
        let msg = MsgId::new(number);
        let Some(is_new) = self.requests.accept_order(src, number, order) else { return };
        if self.blocked.contains(&msg) {
            self.requests.withdraw(msg);
            return;
        }
        let mut remaining = None;
        match grant {
            _ if !is_new => {}
            Some(grant) => self.apply_grant(now, msg, Grant::Rate(grant.rate()), grant.path()),
            None => {
                self.tcp.grant(now, msg, Grant::Stopped);
                remaining = self.requests.get(msg).map(|flow| self.remaining_wire_bytes(flow));
            }
        }
        self.requests.on_order_applied(now, msg, remaining);
    }
}

impl<C: CentralScheme> Protocol for CentralHost<C> {
    type Header = CentralHeader<C::Orders>;
    type Config = C::Config;

    fn new(config: Arc<C::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        let tcp = &C::settings(&config).tcp;
        Self {
            tcp: TcpHost::new(Arc::clone(tcp), node, rng, now),
            requests: RequestingFlows::new(Arc::clone(&config), node),
            blocked: BTreeSet::new(),
            config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let msg = message.id;
        if message.size <= self.settings().threshold {
            self.requests.stats.unscheduled += 1;
            self.tcp.submit(now, message);
            if let Some(rate) = self.settings().unscheduled {
                self.tcp.grant(now, msg, Grant::Rate(rate));
            }
            return;
        }
        self.requests.stats.scheduled += 1;
        let flow = Flow { message, is_submitted: false, path: None };
        self.requests.insert(msg, message.dst, flow);
        self.request(now, msg);
        if self.requests.is_alone() {
            self.apply_grant(now, msg, Grant::CongestionControl, None);
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.tcp.cancel(now, msg);
        let is_order = |header: &Self::Header| matches!(header, CentralHeader::Order(_));
        self.requests.out.cancel(msg, is_order);
        self.remove(msg);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        let control = match packet.header {
            CentralHeader::Tcp(header) => {
                let receipt = self.tcp.handle_packet(now, &replace_header(packet, header));
                if let TcpHeader::Ack { window, .. } = header
                    && (window == 0 || !self.blocked.is_empty())
                {
                    self.check_window(now, packet.payload.msg);
                }
                return receipt;
            }
            CentralHeader::Order(order) => order.into(),
        };
        // Only controllers give orders.
        if packet.src >= self.settings().first_controller
            && let Control::Order { number, order, grant } = control
        {
            self.on_order(now, packet.src, number, order, grant);
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        self.tcp.handle_timeout(now);
        while let Some(DueRequest { msg, falls_back }) = self.requests.poll_due(now) {
            if falls_back {
                // Congestion control takes over.
                let all: Vec<MsgId> = self.requests.flows().map(|(msg, _)| msg).collect();
                all.into_iter()
                    .for_each(|msg| self.apply_grant(now, msg, Grant::CongestionControl, None));
            }
            self.request(now, msg);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        if let Some(packet) = self.requests.out.next_control() {
            return Some(packet);
        }
        let mut packet = self.tcp.poll_transmit(now)?;
        if C::Grant::HAS_PATH
            && packet.payload.len > 0
            && let Some(flow) = self.requests.get(packet.payload.msg)
        {
            packet.priority = self.settings().scheduled_class;
            if let Some(path) = flow.path {
                packet.path = path;
                packet.marks = packet.marks.union(Marks::ROUTED);
            }
        }
        Some(replace_header(&packet, CentralHeader::Tcp(packet.header)))
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        self.requests.out.has_control() || self.tcp.wants_transmit()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.requests.next_due().min(self.tcp.poll_timeout())
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        let event = self.requests.out.next_event().or_else(|| self.tcp.poll_event())?;
        if let Event::Completed { msg } | Event::Failed { msg } = event {
            self.remove(msg);
        }
        Some(event)
    }
}

impl<C: CentralScheme> Observation for CentralHost<C> {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.stats().report(each);
        self.tcp.counters(each);
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.tcp.gauges(each);
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        let waiting = self.requests.flows().filter(|(_, flow)| !flow.is_submitted).count();
        self.tcp.message_counts().map(|(sent, arriving)| (sent + waiting, arriving))
    }

    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        match self.requests.get(msg) {
            Some(flow) if !flow.is_submitted => Some(Permission::Awaited(CONTROLLER)),
            _ => self.tcp.permission(now, msg),
        }
    }
}

impl<C: CentralScheme> HostPolicy for CentralHost<C> {
    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            CentralHeader::Tcp(header) => {
                self.tcp.touch_if_delivered(now, &replace_header(packet, header))
            }
            CentralHeader::Order(_) => false,
        }
    }

    fn is_duplicate(&mut self, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            CentralHeader::Tcp(header) => self.tcp.is_duplicate(&replace_header(packet, header)),
            CentralHeader::Order(_) => true,
        }
    }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.tcp.pause(now, src, msg);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.tcp.resume(now, src, msg);
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.tcp.limit_arriving(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.tcp.arriving_excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.requests.out.forget_peer(peer);
        self.tcp.forget_peer(now, peer);
        let is_waiting = |flow: &Flow| flow.message.dst == peer && !flow.is_submitted;
        let waiting = self.requests.flows().filter(|(_, flow)| is_waiting(flow));
        let waiting: Vec<MsgId> = waiting.map(|(msg, _)| msg).collect();
        for msg in waiting {
            self.remove(msg);
            self.requests.out.push_event(Event::Failed { msg });
        }
    }
}
