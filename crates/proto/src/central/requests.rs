//! Messages between hosts and controllers about flows, seen from a host: requests and their
//! repetition, the numbers of orders, and fallback if no controller responds.
//!
//! [`CentralHost`](super::CentralHost) sends requests for messages that it sends by TCP itself,
//! [`CentralAgent`](super::CentralAgent) for data of other programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_types::{Bytes, MsgId, NodeId, Time};

use super::controller::Request;
use super::scheme::CentralScheme;
use super::settings::Settings;
use super::stats::HostStats;
use super::wire::{CentralHeader, Control};
use crate::toolkit::{Output, Timers};

/// A flow with requests to controllers; `F` is the state of its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestingFlow<F> {
    pub(super) flow: F,
    dst: NodeId,
    /// The highest number of an order that was received.
    last_order: u32,
    /// Remaining bytes on the wire in its last request.
    reported: u64,
    /// Time at which its request is repeated; its valid entry among the timers.
    due: Time,
}

/// The flows of a host with requests to controllers.
#[derive(Debug)]
pub(super) struct RequestingFlows<C: CentralScheme, F> {
    config: Arc<C::Config>,
    flows: BTreeMap<MsgId, RequestingFlow<F>>,
    pub(super) out: Output<CentralHeader<C::Orders>>,
    timers: Timers<MsgId>,
    /// Controller that receives the requests.
    controller: u32,
    /// Time of the first request that has no answer.
    unanswered: Option<Time>,
    /// True if the host works without a controller.
    has_fallen_back: bool,
    pub(super) stats: HostStats,
}

/// A request is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueRequest {
    pub(super) msg: MsgId,
    /// True if controllers have been unresponsive for too long: from now on the host works without
    /// them.
    pub(super) falls_back: bool,
}

impl<C: CentralScheme, F> RequestingFlows<C, F> {
    pub(super) fn new(config: Arc<C::Config>, node: NodeId) -> Self {
        Self {
            flows: BTreeMap::new(),
            out: Output::new(node, C::settings(&config).tcp.config.packet.header.get() as u16),
            timers: Timers::default(),
            controller: 0,
            unanswered: None,
            has_fallen_back: false,
            stats: HostStats::default(),
            config,
        }
    }

    fn settings(&self) -> &Settings {
        C::settings(&self.config)
    }

    /// Queues a message to a controller.
    fn send_control(&mut self, dst: NodeId, msg: MsgId, control: Control<C::Grant>) {
        self.out.send(dst, msg, CentralHeader::Order(control.into()));
    }

    fn controller(&self) -> NodeId {
        NodeId::new(self.settings().first_controller.get() + self.controller)
    }

    /// Returns true if the host works without a controller.
    pub(super) fn is_alone(&self) -> bool {
        self.has_fallen_back
    }

    pub(super) fn get(&self, msg: MsgId) -> Option<&F> {
        self.flows.get(&msg).map(|requesting| &requesting.flow)
    }

    pub(super) fn get_mut(&mut self, msg: MsgId) -> Option<&mut F> {
        self.flows.get_mut(&msg).map(|requesting| &mut requesting.flow)
    }

    /// Returns the number of flows.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns the flows by number.
    pub(super) fn flows(&self) -> impl Iterator<Item = (MsgId, &F)> {
        self.flows.iter().map(|(&msg, requesting)| (msg, &requesting.flow))
    }

    /// Enters a flow. Its first request is up to the owner.
    pub(super) fn insert(&mut self, msg: MsgId, dst: NodeId, flow: F) {
        let requesting = RequestingFlow { flow, dst, last_order: 0, reported: 0, due: Time::NEVER };
        self.flows.insert(msg, requesting);
    }

    /// Sends a flow's request with its remaining bytes on the wire, and schedules its repetition.
    pub(super) fn request(&mut self, now: Time, msg: MsgId, remaining: u64) {
        let controller = self.controller();
        let Some(requesting) = self.flows.get_mut(&msg) else { return };
        requesting.reported = remaining;
        let (number, remaining) = (msg.get(), Bytes::new(remaining));
        let request =
            Request { number, dst: requesting.dst, remaining, acked_order: requesting.last_order };
        self.send_control(controller, msg, Control::Request(request));
        self.stats.requests += 1;
        self.unanswered.get_or_insert(now);
        let patience = if self.has_fallen_back {
            self.settings().refresh_interval
        } else {
            self.settings().retransmit_after
        };
        self.schedule_timer(now + patience, msg);
    }

    fn schedule_timer(&mut self, due: Time, msg: MsgId) {
        if let Some(requesting) = self.flows.get_mut(&msg) {
            requesting.due = due;
            self.timers.push(due, msg);
        }
    }

    /// Takes an order of a controller. Returns true if it must be obeyed: no later one was received
    /// before. Returns `None` for a flow that has ended.
    /// [`RequestingFlows::on_order_applied`] must follow.
    pub(super) fn accept_order(&mut self, src: NodeId, flow: u32, order: u32) -> Option<bool> {
        (self.unanswered, self.has_fallen_back) = (None, false);
        let Some(requesting) = self.flows.get_mut(&MsgId::new(flow)) else {
            self.send_control(src, MsgId::new(flow), Control::Done { number: flow });
            return None;
        };
        let is_new = order > requesting.last_order;
        requesting.last_order = requesting.last_order.max(order);
        Some(is_new)
    }

    /// Handles a completed order; `remaining` is the remaining size if it was a STOP. The size is
    /// sent to the controller if it differs from the reported one. A receiver that does not answer
    /// is queried at a low rate.
    pub(super) fn on_order_applied(&mut self, now: Time, msg: MsgId, remaining: Option<u64>) {
        let Some(&RequestingFlow { due, reported, .. }) = self.flows.get(&msg) else { return };
        if let Some(remaining) = remaining.filter(|&remaining| remaining != reported) {
            self.request(now, msg, remaining);
        } else if due <= now + self.settings().retransmit_after {
            // The next request keeps its time, unless it is the repetition of one that is answered.
            self.schedule_timer(now + self.settings().refresh_interval, msg);
        }
    }

    /// Returns the next request that is due. To be followed by [`RequestingFlows::request`].
    pub(super) fn poll_due(&mut self, now: Time) -> Option<DueRequest> {
        while let Some((at, msg)) = self.timers.pop_due(now) {
            if self.flows.get(&msg).is_none_or(|requesting| requesting.due != at) {
                continue;
            }
            let fallback = self.settings().fallback;
            let falls_back = self.unanswered.is_some_and(|since| now - since >= fallback);
            if falls_back {
                self.fall_back(now);
            }
            return Some(DueRequest { msg, falls_back });
        }
        None
    }

    /// Sends future requests to the other controller, if there is one.
    fn fall_back(&mut self, now: Time) {
        self.stats.fallbacks += u64::from(!self.has_fallen_back);
        (self.has_fallen_back, self.unanswered) = (true, Some(now));
        self.controller = (self.controller + 1) % self.settings().controllers;
    }

    /// Removes a flow that has completed or failed.
    pub(super) fn remove(&mut self, msg: MsgId) -> Option<F> {
        let requesting = self.flows.remove(&msg)?;
        self.send_control(self.controller(), msg, Control::Done { number: msg.get() });
        if self.flows.is_empty() {
            self.unanswered = None;
        }
        Some(requesting.flow)
    }

    /// Withdraws the request of a flow until [`RequestingFlows::request`]: notifies the controller,
    /// and repeats nothing.
    pub(super) fn withdraw(&mut self, msg: MsgId) {
        let controller = self.controller();
        let Some(requesting) = self.flows.get_mut(&msg) else { return };
        requesting.due = Time::NEVER;
        self.send_control(controller, msg, Control::Done { number: msg.get() });
    }

    /// Notes that every request has been withdrawn, so that controllers may be unresponsive.
    pub(super) fn clear_unanswered(&mut self) {
        self.unanswered = None;
    }

    /// Returns the time at which [`RequestingFlows::poll_due`] has something.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        self.timers.next()
    }
}
