//! The central controller (CAPTON §IV.D): the flow register, the list of active flows, and
//! predicted completions around a scheduler.
//!
//! Hosts send requests to transmit and report when a flow is done. The controller sends orders:
//! GRANT with the grant, or STOP. It takes time, messages and nothing else, and its owner moves the
//! messages. After each input this is [`Controller::poll_order`] until `None`, then
//! [`Controller::poll_timeout`].
//!
//! The problem: flows that share a link slow each other down, and no host knows the others' flows.
//! Messages between hosts and controller may be lost, late or in another order, and both may crash.
//!
//! The simple way sends each decision once, and frees a flow's capacity when its host reports the
//! end. A lost order then stops a flow forever. A lost report keeps its capacity forever, and in
//! any case the links are idle for a round trip after each flow.
//!
//! The present way: the register has every flow that its host has requested and not ended. The
//! scheduler has the active ones. Capacity is given to others at the predicted completion, before
//! the report of the end. Every order has a number, and every request has the highest number
//! received. Each side repeats its messages until the other has answered. So a message may be lost
//! at any time.
//!
//! Hazards: a flow must be in the register while it is in the scheduler. An order's number must be
//! higher than all before, of an earlier controller too, or its host ignores it
//! (`a_new_controller_continues_with_higher_numbers`). A host that sends nothing must be forgotten,
//! or its flows hold capacity (`a_lost_or_unresponsive_host_is_forgotten`). Losses and crashes at
//! random are tested with both schedulers
//! (`captons_flows_complete_under_any_loss_without_leftover_state`,
//! `hylines_flows_complete_under_any_loss_without_leftover_state`).
//!
//! # Choices that the paper does not make
//!
//! * When the capacity of a flow is given to others: at its predicted completion (equation 3), or
//!   after a `grace` beyond it. Its last bytes and the GRANT of the next flow then travel at the
//!   same time.
//! * When a flow ends: when its host sends DONE. From its predicted completion until then it is
//!   kept as *ended*: it has no capacity.
//! * A flow with bytes remaining at its predicted completion: its host sends another request with
//!   its remaining size. The flow is then active, and as this size is small it is granted before
//!   most.
//! * DONE is lost: after `patience` the controller sends STOP to the host of an ended flow. It
//!   repeats this after twice as long each time, at most a `lease`. A host answers an order of a
//!   flow that it does not have with DONE.
//! * How remaining sizes are corrected: each request has the real remaining size. Hosts send
//!   further requests when they are stopped, and at times while they transmit. The size is taken as
//!   of now: it is too high by the bytes that were sent while the request was in flight.
//! * A request is lost, or its answer: the host repeats the request. It is answered with the
//!   present state, by the order that was given last.
//! * Orders overtake each other: each order of a flow has a number above the one before. A host
//!   ignores numbers up to the highest that it has received.
//! * Requests overtake each other: each request has the highest number received. One with a lower
//!   number than an earlier request is answered, and its size is ignored.
//! * The answer to a request that must wait: STOP, which shows the host that it is registered.
//! * A request that arrives after DONE: the flow is registered again; its host answers the order
//!   with DONE.
//! * A host that crashes: its owner calls [`Controller::forget`], or it sends nothing for a
//!   `lease`. Flows to it are ended by their sources.
//! * A controller that crashes: the next one starts with an empty register and enters flows from
//!   repeated requests. Its orders have numbers above those in the requests.
//! * Flows of a host without limit: a host has `flows_max` at most; further requests are not
//!   answered.
//!
//! # Duties of a host
//!
//! * Obey an order with a higher number than any before, and then send a request if it is a STOP.
//! * Repeat the request of each unfinished flow without a recent order, and send at least one
//!   message a `lease` while there are unfinished flows. Four times a lease is safe.
//! * Send DONE when a flow completes or is aborted, and for every order of a flow that it does not
//!   have.
//!
//! Sizes are bytes on the wire, as capacities are: hosts add headers.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{Bytes, NodeId, Span, Time};

use super::flow::{Arrival, Change, FlowId, Schedule};
use crate::toolkit::Timers;

/// A controller's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Time from the predicted completion of a flow until others get its capacity; zero in the
    /// paper.
    pub grace: Span,
    /// Time from then to the first query after DONE; from each query to the next it is twice
    /// as long. More than a round trip.
    pub query_timeout: Span,
    /// Time without a message after which a host with flows is forgotten.
    pub lease: Span,
    /// Flows that a host may have in the register.
    pub flows_max: u32,
}

/// A request to transmit (RT), the first or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The flow's number, unique among the unfinished flows of its source.
    pub number: u32,
    /// The receiving host.
    pub dst: NodeId,
    /// Remaining bytes on the wire.
    pub remaining: Bytes,
    /// The highest number of an order of this flow that the source has received; zero at first.
    pub acked_order: u32,
}

/// An order: GRANT or STOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<G> {
    /// The source of the flow, which receives the order.
    pub host: NodeId,
    /// The source's number of the flow.
    pub number: u32,
    /// The number of the order. It is that of an earlier order if this is a repetition.
    pub order: u32,
    /// Grant; `None` for STOP.
    pub grant: Option<G>,
}

/// Counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStats {
    /// GRANTs, without repetitions.
    pub grants: u64,
    /// STOPs, without repetitions.
    pub stops: u64,
    /// Orders that were repeated.
    pub control_retransmissions: u64,
    /// Flows that became active after their predicted completion.
    pub reactivated_flows: u64,
    /// Queries after DONE.
    pub queries: u64,
    /// Requests that were refused: hosts that do not exist, a flow with another destination than
    /// before, or too many flows.
    pub refused: u64,
    /// Hosts forgotten after a lease without a message.
    pub expired_leases: u64,
}

/// A flow in the register.
#[derive(Clone, Copy, Debug)]
struct Entry<G> {
    dst: NodeId,
    /// The number of the last order, of this controller or of an earlier one.
    order: u32,
    last_order: LastOrder<G>,
    /// The highest number in its requests: that of an order that its host has received.
    acked_order: u32,
    /// Time at which the host of an ended flow is queried. `None` for active flows, which are those
    /// of the scheduler.
    query_at: Option<Time>,
    /// Number of queries about it.
    n_queries: u8,
}

/// Queries after which the time to the next one no longer doubles.
const QUERIES_MAX: u8 = 16;

/// Content of the last order of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastOrder<G> {
    /// No order of this controller.
    None,
    /// GRANT, or STOP.
    Order(Option<G>),
}

#[derive(Clone, Copy, Debug)]
struct Host {
    /// Number of its flows in the register.
    flows: u32,
    /// Time of its last message.
    last_message_at: Time,
    /// True if an alarm for its lease is set.
    has_lease_timer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Query(FlowId),
    Lease(NodeId),
}

/// The controller.
#[derive(Debug)]
pub struct Controller<S: Schedule> {
    config: ControllerConfig,
    scheduler: S,
    register: BTreeMap<FlowId, Entry<S::Grant>>,
    hosts: Vec<Host>,
    timers: Timers<Timer>,
    orders: VecDeque<Order<S::Grant>>,
    stats: ControllerStats,
}

impl<S: Schedule> Controller<S> {
    /// Creates a controller without flows.
    pub fn new(scheduler: S, config: ControllerConfig) -> Self {
        let host = Host { flows: 0, last_message_at: Time::ZERO, has_lease_timer: false };
        Self {
            config,
            hosts: vec![host; scheduler.n_hosts() as usize],
            scheduler,
            register: BTreeMap::new(),
            timers: Timers::default(),
            orders: VecDeque::new(),
            stats: ControllerStats::default(),
        }
    }

    pub(crate) fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Returns the counters.
    pub fn stats(&self) -> ControllerStats {
        self.stats
    }

    /// Returns the flows in the register.
    pub fn flows(&self) -> usize {
        self.register.len()
    }

    /// Handles a request to transmit, or its repetition with the remaining bytes.
    pub fn handle_request(&mut self, now: Time, src: NodeId, request: Request) {
        self.scheduler.advance(now);
        let id = FlowId::new(src, request.number);
        let Some(before) = self.entry(now, id, &request) else {
            self.stats.refused += 1;
            return;
        };
        if request.acked_order >= before.acked_order {
            let entry = self.register.get_mut(&id).expect("a flow in the register");
            entry.acked_order = request.acked_order;
            if request.acked_order > before.order {
                // The host has orders of an earlier controller.
                (entry.order, entry.last_order) = (request.acked_order, LastOrder::None);
            }
            entry.query_at = None;
            let changes = match (self.scheduler.remaining(id), before.query_at) {
                (Some(_), _) => self.scheduler.correct(id, request.remaining),
                (None, requesting) => {
                    self.stats.reactivated_flows += u64::from(requesting.is_some());
                    let Request { dst, remaining, .. } = request;
                    self.scheduler.arrive(Arrival { id, src, dst, remaining })
                }
            };
            issue_all(&mut self.register, &mut self.orders, &mut self.stats, changes);
        }
        self.answer(id, before.order.max(request.acked_order));
    }

    /// Handles the end of a flow: completed, or aborted by its source.
    pub fn handle_done(&mut self, now: Time, src: NodeId, number: u32) {
        self.scheduler.advance(now);
        if let Some(host) = self.hosts.get_mut(src.idx()) {
            host.last_message_at = now;
            self.remove(FlowId::new(src, number));
        }
    }

    /// Forgets the flows of a host that has lost them.
    pub fn forget(&mut self, now: Time, host: NodeId) {
        self.scheduler.advance(now);
        let all = FlowId::new(host, 0)..=FlowId::new(host, u32::MAX);
        let ids: Vec<FlowId> = self.register.range(all).map(|(&id, _)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// Routing uses all links but these.
    pub fn handle_links(&mut self, now: Time, down: &LinksDown) {
        self.scheduler.advance(now);
        let changes = self.scheduler.set_links(down);
        issue_all(&mut self.register, &mut self.orders, &mut self.stats, &changes);
    }

    /// Handles another change of the scheduler's inputs: `change` applies it.
    pub(crate) fn reschedule(
        &mut self,
        now: Time,
        change: impl FnOnce(&mut S) -> &[Change<S::Grant>],
    ) {
        self.scheduler.advance(now);
        let changes = change(&mut self.scheduler);
        issue_all(&mut self.register, &mut self.orders, &mut self.stats, changes);
    }

    /// Handles deadlines that may have passed. Calls before the deadline change nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.scheduler.advance(now);
        while let Some((end, id)) = self.scheduler.next_completion()
            && end.saturating_add(self.config.grace) <= now
        {
            self.on_predicted_end(now, id);
        }
        while let Some((at, alarm)) = self.timers.pop_due(now) {
            match alarm {
                Timer::Query(id) => self.query_host(now, at, id),
                Timer::Lease(host) => self.check_lease(now, host),
            }
        }
    }

    /// Returns the time at which [`Controller::handle_timeout`] must be called; [`Time::NEVER`] for
    /// never.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        let end = self.scheduler.next_completion().map(|(end, _)| end);
        let end = end.map_or(Time::NEVER, |end| end.saturating_add(self.config.grace));
        end.min(self.timers.next())
    }

    /// Returns the next order to send.
    #[inline]
    pub fn poll_order(&mut self) -> Option<Order<S::Grant>> {
        self.orders.pop_front()
    }

    /// Returns the entry of a flow, which a first request makes; `None` if the request is refused.
    fn entry(&mut self, now: Time, id: FlowId, request: &Request) -> Option<Entry<S::Grant>> {
        let n_hosts = self.hosts.len();
        let host = self.hosts.get_mut(id.src().idx())?;
        if request.dst.idx() >= n_hosts || request.dst == id.src() {
            return None;
        }
        host.last_message_at = now;
        if let Some(&entry) = self.register.get(&id) {
            return (entry.dst == request.dst).then_some(entry);
        }
        if host.flows == self.config.flows_max {
            return None;
        }
        host.flows += 1;
        if !std::mem::replace(&mut host.has_lease_timer, true) {
            self.timers.push(now + self.config.lease, Timer::Lease(id.src()));
        }
        let (dst, order, acked_order) = (request.dst, request.acked_order, request.acked_order);
        let entry = Entry {
            dst,
            order,
            last_order: LastOrder::None,
            acked_order,
            query_at: None,
            n_queries: 0,
        };
        self.register.insert(id, entry);
        Some(entry)
    }

    /// Answers a request, unless the order with which it was answered has a number above `last`.
    fn answer(&mut self, id: FlowId, last: u32) {
        let entry = self.register.get_mut(&id).expect("a flow in the register");
        let grant = self.scheduler.grant(id);
        if entry.order > last {
            return;
        }
        if entry.last_order != LastOrder::Order(grant) {
            issue_order(id, entry, grant, &mut self.orders, &mut self.stats);
            return;
        }
        self.stats.control_retransmissions += 1;
        self.orders.push_back(Order { host: id.src(), number: id.number(), order: last, grant });
    }

    /// Handles the predicted completion of a flow.
    fn on_predicted_end(&mut self, now: Time, id: FlowId) {
        let at = now + self.config.query_timeout;
        let entry = self.register.get_mut(&id).expect("an active flow is in the register");
        (entry.query_at, entry.n_queries) = (Some(at), 0);
        self.timers.push(at, Timer::Query(id));
        let changes = self.scheduler.complete(id);
        issue_all(&mut self.register, &mut self.orders, &mut self.stats, changes);
    }

    /// Queries the host of an ended flow, unless its state has been received since.
    fn query_host(&mut self, now: Time, at: Time, id: FlowId) {
        let Some(entry) = self.register.get_mut(&id).filter(|entry| entry.query_at == Some(at))
        else {
            return;
        };
        entry.n_queries = entry.n_queries.saturating_add(1).min(QUERIES_MAX);
        let wait = self.config.query_timeout * (1 << entry.n_queries);
        let next = now + wait.min(self.config.lease);
        entry.query_at = Some(next);
        self.timers.push(next, Timer::Query(id));
        self.stats.queries += 1;
        issue_order(id, entry, None, &mut self.orders, &mut self.stats);
    }

    fn check_lease(&mut self, now: Time, src: NodeId) {
        let host = &mut self.hosts[src.idx()];
        let until = host.last_message_at + self.config.lease;
        host.has_lease_timer = host.flows > 0 && until > now;
        if host.has_lease_timer {
            self.timers.push(until, Timer::Lease(src));
        } else if host.flows > 0 {
            self.stats.expired_leases += 1;
            self.forget(now, src);
        }
    }

    fn remove(&mut self, id: FlowId) {
        if self.register.remove(&id).is_some() {
            self.hosts[id.src().idx()].flows -= 1;
            let changes = self.scheduler.complete(id);
            issue_all(&mut self.register, &mut self.orders, &mut self.stats, changes);
        }
    }
}

/// Gives an order about each flow that is granted something else from now on.
fn issue_all<G: Copy>(
    register: &mut BTreeMap<FlowId, Entry<G>>,
    orders: &mut VecDeque<Order<G>>,
    stats: &mut ControllerStats,
    changes: &[Change<G>],
) {
    for &Change { flow, grant } in changes {
        let entry = register.get_mut(&flow).expect("an active flow is in the register");
        issue_order(flow, entry, grant, orders, stats);
    }
}

/// Gives an order with the next number.
fn issue_order<G: Copy>(
    id: FlowId,
    entry: &mut Entry<G>,
    grant: Option<G>,
    orders: &mut VecDeque<Order<G>>,
    stats: &mut ControllerStats,
) {
    // Only a host that invents numbers reaches the last one. It then ignores its orders.
    entry.order = entry.order.saturating_add(1);
    entry.last_order = LastOrder::Order(grant);
    match grant {
        Some(_) => stats.grants += 1,
        None => stats.stops += 1,
    }
    orders.push_back(Order { host: id.src(), number: id.number(), order: entry.order, grant });
}
