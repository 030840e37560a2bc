//! The run loop: hosts, their interfaces and clocks, and the messages in progress.
//!
//! The problem: endpoints of real hosts and simulated ones are the same code. The loop must call
//! them as a node does, but for tens of millions of events a second.
//!
//! The simple way gives each host a queue for packets to send, and an event for each change.
//! Packets then wait in a queue that no protocol controls, and timers leave many events that mean
//! nothing.
//!
//! The present way: an event is an arrival, a wake-up of a port, a timer or a rare other event. An
//! input to an endpoint is followed by [`Sim::after_input`], which takes all of its outputs. An
//! interface that pulls requests a packet only when its link is idle, so the endpoint chooses at
//! the last moment. A host has one timer event, for its earliest deadline. An earlier deadline adds
//! another, and the later event is then ignored.
//!
//! Hazards: events of one instant have a fixed order (`engine`), on which results depend. A check
//! that adds or removes an event may change them. An endpoint that requests to transmit must be
//! polled, or it stops. Time never goes back, and arrivals must be in order. Hooks of probes are
//! constants, so that a run without them does not pay.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::{
    Message, MsgId, NodeId, Planes, Receipt, Span, SwitchProgram, Time, Transport,
};

use crate::blame::{Blame, PermissionInput};
use crate::clock::ClockSpec;
use crate::engine::event::{ARRIVE, OTHER, PFC, PROGRAM, READY, TIMER, WAKE, decode, event};
use crate::engine::{EventKey, EventLimit, Wheel};
use crate::fabric::{Fabric, FabricConfig, FaultSpec, Interface};
use crate::ledger::Ledger;
use crate::probe::{Direction, Probe};
use crate::source::Source;
use crate::topo::Topology;

mod ahead;
mod blame;
mod outages;
mod packets;
mod partition;
mod progress;
mod rails;
mod release;
mod setup;
mod stations;
mod view;
mod window_totals;
pub(crate) mod windows;
use super::arrival::Arrival;
use ahead::LookAhead;
use packets::{check_codec, check_receipt, departure_callback, observe};
use stations::{Station, Stations};
pub use window_totals::WindowTotals;

/// Events without a port.
const SUBMIT: u32 = 0;
const SAMPLE: u32 = 1;
const OUTAGE: u32 = 2;
const RELEASE: u32 = 3;
const PROGRESS: u32 = 4;

/// Parameters of a run, apart from the protocol's configuration and the arrivals.
#[derive(Clone, Debug)]
pub struct SimSpec {
    /// Nodes and links.
    pub topology: Topology,
    /// Buffers, spraying, switching.
    pub fabric: FabricConfig,
    /// Faults of links and switches.
    pub faults: FaultSpec,
    /// Host clocks.
    pub clocks: ClockSpec,
    /// The seed of every random stream.
    pub seed: u64,
    /// Time after the last arrival for which the run continues for unfinished messages.
    pub drain: Span,
    /// Interval between calls of [`Probe::on_sample`].
    pub sample: Option<Span>,
    /// Encode and decode every packet that a host sends, and compare.
    pub paranoid: bool,
}

impl SimSpec {
    /// Returns the planes of hosts, if hosts with several have an endpoint for each. Hosts whose
    /// interfaces queue have one endpoint, as have those with arbiters, which see hosts as one.
    pub fn planes(&self) -> Option<Planes> {
        let is_pulled = matches!(self.fabric.interface, Interface::Pull);
        let is_split = is_pulled && self.topology.n_arbiters() == 0;
        is_split.then(|| self.topology.pairs().planes())?
    }
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Events are left.
    Running,
    /// Every message has been delivered and confirmed, or has failed. Messages that wait for one
    /// that failed were never submitted.
    Finished,
    /// The run is divided, and partitions have gone past the event that ended its last message.
    Overrun,
    /// The drain time is over; messages still in flight have been recorded as unfinished.
    TimedOut,
}

/// A simulation of transport `F` under messages of the source `A`, observed by `P`.
pub struct Sim<F: Transport, A, P> {
    now: Time,
    wheel: Wheel,
    look_ahead: LookAhead,
    fabric: Fabric<F::Header, F::SwitchProgram>,
    /// Hosts, then arbiters.
    stations: Stations<F>,
    config: Arc<F::Config>,
    /// Interfaces below this pull packets, the others queue. Those that queue are all if the
    /// fabric's configuration demands it, or those of arbiters if any has several links.
    n_pull_hosts: u32,
    /// Interfaces below this pull by a single link that is never paused: all that pull, or none.
    /// None if a host has several links or if the fabric has pauses.
    n_pull_fast_hosts: u32,
    /// The source of messages; `None` in a partition.
    arrivals: Option<A>,
    next: Option<Arrival>,
    /// Messages after the next that have been taken from the source.
    ahead: VecDeque<Arrival>,
    /// Messages that partitions are to submit: in a run all, in a partition its own.
    assigned: VecDeque<(MsgId, Arrival)>,
    /// Time of the earliest event for messages that no longer wait.
    release_at: Time,
    ledger: Ledger,
    seed: u64,
    /// Events from here on are not dispatched.
    limit: EventLimit,
    grace: Span,
    sample: Option<Span>,
    /// Number of the event that was the last sample, and the transport's counters then.
    sampled: (u64, Vec<(&'static str, u64)>),
    paranoid: bool,
    probe: P,
    /// The causes of messages' times, if they are recorded.
    blame: Option<Box<Blame>>,
    /// Totals of the windows in which partitions ran.
    windows: WindowTotals,
}

/// Reason for which the loop of events stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The maximum number of events has been dispatched.
    Budget,
    /// All messages have ended.
    Settled,
    /// No event is left before the limit.
    Limit,
}

impl<F, A, P> Sim<F, A, P>
where
    F: Transport,
    A: Source,
    P: Probe,
{
    /// Runs until `budget` more events are done or the run is over.
    pub fn run(&mut self, budget: u64) -> Status {
        match self.dispatch_events(budget) {
            Stop::Budget => Status::Running,
            Stop::Settled => self.finish(Status::Finished),
            Stop::Limit => self.finish(Status::TimedOut),
        }
    }

    /// Dispatches events up to the limit, but not more than `budget`.
    #[inline(never)]
    fn dispatch_events(&mut self, budget: u64) -> Stop {
        let stop = self.ledger.counters.events.saturating_add(budget);
        while self.ledger.counters.events < stop {
            if self.ledger.is_settled() && !self.expects_arrivals() {
                return Stop::Settled;
            }
            let Some(key) = self.wheel.pop_before(self.limit) else { return Stop::Limit };
            assert!(key.time >= self.now, "seed {}: time goes back at {}", self.seed, self.now);
            self.now = key.time;
            self.look_ahead.request(&self.wheel, &self.fabric, &self.stations);
            self.ledger.counters.events += 1;
            if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
                self.dispatch_watched(key);
            } else {
                self.dispatch(key);
            }
        }
        Stop::Budget
    }

    /// Ends the run here and hands the probe back. Messages in flight are recorded as unfinished.
    pub fn into_probe(mut self) -> P {
        self.finish(Status::TimedOut);
        self.probe
    }

    /// Dispatches an event and shows its effects on ports to the probe.
    fn dispatch_watched(&mut self, key: EventKey) {
        self.fabric.watch.now = self.now;
        self.dispatch(key);
        if self.fabric.has_notes() {
            self.process_notes();
        }
    }

    #[inline]
    fn dispatch(&mut self, key: EventKey) {
        let (kind, number, handle) = decode(key.code);
        match kind {
            ARRIVE => {
                let arrived = self.fabric.arrive(number, handle, self.now, &mut self.wheel);
                if let Some(station) = arrived {
                    self.deliver(station, handle);
                }
            }
            WAKE if number < self.n_pull_fast_hosts => {
                self.fabric.ports[number as usize].has_wakeup = false;
                self.pull(number);
            }
            WAKE if self.n_pull_fast_hosts < self.n_pull_hosts
                && self.fabric.owner(number) < self.n_pull_hosts =>
            {
                self.wake_rail(number);
            }
            WAKE => {
                let Self { fabric, wheel, probe, ledger, now, .. } = self;
                let leaves = departure_callback(probe, ledger, *now, fabric.owner(number));
                fabric.on_link_idle(number, *now, wheel, leaves);
            }
            TIMER => self.fire(number, key.time),
            READY => self.fabric.resume_cut_through(number, handle, self.now, &mut self.wheel),
            PROGRAM if <F::SwitchProgram as SwitchProgram<F::Header>>::HAS_TIMERS => {
                self.fabric.program_timeout(number, self.now, &mut self.wheel);
            }
            PFC => self.fabric.on_pause(number, handle != 0, self.now, &mut self.wheel),
            _ => self.dispatch_other(number),
        }
    }

    /// Dispatches rare events. It is not inlined, as the loop that takes events has few registers.
    #[inline(never)]
    fn dispatch_other(&mut self, code: u32) {
        match code {
            SUBMIT if self.arrivals.is_none() => self.submit_assigned(),
            SUBMIT => {
                let Some(arrival) = self.next.take() else { return };
                let host = self.submit(&arrival);
                self.fetch_arrival();
                self.after_submission(host);
            }
            RELEASE => self.submit_released(),
            SAMPLE => {
                self.take_sample(Self::transport_counters);
                let interval = self.sample.expect("sampling events exist only with an interval");
                self.push_other(self.now + interval, SAMPLE);
            }
            OUTAGE => self.apply_outages(),
            PROGRESS => self.report_progress(),
            other => unreachable!("there is no event {other}"),
        }
    }

    /// Shows the probe a sample, with the transport's `counters`. If the last event was a sample,
    /// too, nothing has changed that the counters or the check depend on.
    fn take_sample(&mut self, counters: impl FnOnce(&Self) -> Vec<(&'static str, u64)>) {
        self.probe.on_sample(self.now, &mut self.fabric, self.ledger.delivered());
        let events = self.ledger.counters.events;
        if events != self.sampled.0 + 1 {
            if P::COUNTERS {
                self.sampled.1 = counters(self);
            }
            self.fabric.check_conservation();
        }
        self.sampled.0 = events;
        if P::COUNTERS {
            self.probe.on_counters(self.now, &self.sampled.1);
        }
    }

    #[inline]
    fn deliver(&mut self, station: u32, handle: u32) {
        if P::LATENCY {
            let sent = self.fabric.pool.stamps(handle).sent;
            let is_data = self.fabric.pool.get(handle).payload.len > 0;
            self.probe.on_deliver(self.now - sent, is_data);
        }
        let packet = self.fabric.pool.get(handle);
        observe(&mut self.probe, &self.ledger, self.now, station, Direction::Received, packet);
        let state = &mut self.stations[station];
        let is_duplicate = self.paranoid.then(|| state.endpoint.is_duplicate(packet));
        let receipt = state.endpoint.handle_packet(state.clock.local(self.now), packet);
        if let Some(is_duplicate) = is_duplicate {
            check_receipt(packet, is_duplicate, receipt);
        }
        match receipt {
            Receipt::Control | Receipt::Ignored => {}
            Receipt::Fresh => {
                self.ledger.on_fresh(self.now, packet.payload);
                if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
                    self.blame_completion(handle);
                }
            }
            Receipt::Duplicate => {
                let instant = (self.now, self.wheel.highest_rank());
                self.ledger.on_duplicate(instant, packet.payload);
            }
        }
        if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
            self.note_response(station, handle);
        }
        self.fabric.remove_delivered(handle);
        self.after_input(station);
    }

    fn fire(&mut self, station: u32, at: Time) {
        let state = &mut self.stations[station];
        if state.timer_at != at {
            return;
        }
        state.timer_at = Time::NEVER;
        let local = state.clock.local(self.now);
        if state.endpoint.poll_timeout() <= local {
            let is_watched = <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED;
            let may_permit = is_watched && state.endpoint.permission_deadline() <= local;
            state.endpoint.handle_timeout(local);
            if may_permit {
                self.note_permissions(station, None, PermissionInput::Deadline);
            }
        }
        self.after_input(station);
    }

    /// Hands a message to its host, whose number is returned.
    fn submit(&mut self, arrival: &Arrival) -> u32 {
        let id = self.ledger.submit(self.now, arrival);
        self.hand_over(id, arrival)
    }

    /// Hands a message that the ledger has numbered to its host, whose number is returned.
    fn hand_over(&mut self, id: MsgId, arrival: &Arrival) -> u32 {
        let host = arrival.src.get();
        let state = &mut self.stations[host];
        let Arrival { dst, size, deadline, tenant, .. } = *arrival;
        let deadline = match deadline {
            Time::NEVER => Time::NEVER,
            at => state.clock.local(at),
        };
        let message = Message { id, dst, size, deadline, tenant };
        let bound = state.endpoint.latency_bound().and_then(|p| p.bound(size, tenant));
        self.ledger.set_bound((self.now, self.wheel.highest_rank()), id, bound);
        state.endpoint.submit(state.clock.local(self.now), message);
        if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
            self.blame_submission(id, arrival);
        }
        host
    }

    /// Called after a message has been submitted at `host` and the next arrival has been fetched.
    fn after_submission(&mut self, host: u32) {
        if !self.expects_arrivals() {
            self.ledger.on_last_arrival(self.now);
            self.limit = EventLimit::after(self.now.saturating_add(self.grace));
        }
        self.after_input(host);
    }

    fn fetch_arrival(&mut self) {
        let ahead = self.ahead.pop_front();
        self.next = ahead.or_else(|| self.arrivals.as_mut()?.poll_arrival());
        if let Some(arrival) = self.next {
            assert!(arrival.at >= self.now, "arrivals must be in order of time: {arrival:?}");
            self.push_other(arrival.at, SUBMIT);
        }
    }

    fn push_other(&mut self, time: Time, code: u32) {
        self.wheel.push(event(time, OTHER, code));
    }

    /// Takes all outputs of an endpoint after an input.
    #[inline]
    fn after_input(&mut self, station: u32) {
        while let Some(event) = self.stations[station].endpoint.poll_event() {
            if A::FEEDBACK {
                self.notify_source(event);
            }
            if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED {
                self.report_causes(event);
            }
            if let Some(record) = self.ledger.on_event((self.now, self.wheel.highest_rank()), event)
            {
                self.probe.on_flow(&record);
            }
        }
        if <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED && self.paranoid {
            self.check_permissions(station);
        }
        if P::PHASES && self.probe.wants_phases() {
            let endpoint = &self.stations[station].endpoint;
            let end = NodeId::new(station);
            self.probe.on_phases(self.now, end, |each| endpoint.phases(each));
        }
        if station >= self.n_pull_fast_hosts {
            return self.serve(station);
        }
        if self.fabric.uplink_idle(station, self.now) {
            self.pull(station);
        } else {
            if self.stations[station].endpoint.wants_transmit() {
                self.fabric.wake_uplink(station, self.now, &mut self.wheel);
            }
            self.set_timer(station);
        }
    }

    /// Requests a packet for the interface, whose link is idle.
    #[inline]
    fn pull(&mut self, station: u32) {
        self.note_due_permissions(station);
        let state = &mut self.stations[station];
        if state.endpoint.wants_transmit() {
            let local = state.clock.local(self.now);
            if let Some(packet) = state.endpoint.poll_transmit(local) {
                if self.paranoid {
                    check_codec(&packet);
                }
                let payload = packet.payload;
                self.ledger.on_sent(payload);
                let leaves = departure_callback(&mut self.probe, &self.ledger, self.now, station);
                self.fabric.inject(station, station, packet, self.now, &mut self.wheel, leaves);
                self.note_sent(station, payload, true);
                if self.stations[station].endpoint.wants_transmit() {
                    self.fabric.wake_uplink(station, self.now, &mut self.wheel);
                }
            }
        }
        self.set_timer(station);
    }

    #[inline]
    fn set_timer(&mut self, station: u32) {
        let state = &mut self.stations[station];
        let local = state.endpoint.poll_timeout();
        if local == Time::NEVER {
            return;
        }
        let at = state.clock.global(local).max(self.now);
        if at < state.timer_at {
            state.timer_at = at;
            self.wheel.push(event(at, TIMER, station));
        }
    }

    fn finish(&mut self, status: Status) -> Status {
        self.fabric.check_conservation();
        self.fabric.note_deadlocks(self.now);
        self.fabric.count_pauses(self.now);
        self.probe.on_end(self.now, &mut self.fabric);
        self.show_progress();
        for record in self.ledger.close_all() {
            self.probe.on_flow(&record);
        }
        if A::FEEDBACK
            && let Some(source) = &mut self.arrivals
        {
            while let Some(arrival) = source.take_withheld() {
                self.probe.on_withheld(self.now, &arrival);
            }
        }
        status
    }
}
