//! The run loop: hosts, their interfaces and clocks, and the messages in progress.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_core::{
    Bytes, Endpoint, Event, Family, Header, Message, MsgId, NodeId, Packet, Purpose, Receipt, Rng,
    Span, Time,
};

use crate::clock::{ClockSpec, HostClock};
use crate::engine::{Key, Wheel};
use crate::fabric::{ARRIVE, Fabric, FabricConfig, FaultSpec, WAKE};
use crate::probe::{FlowRecord, Probe};
use crate::topo::Topology;

/// Kinds of events beside those of the fabric, and the mask that tells kinds apart.
const TIMER: u32 = 2 << 29;
const OTHER: u32 = 3 << 29;
const KIND: u32 = 7 << 29;
const SUBMIT: u32 = 0;
const SAMPLE: u32 = 1;
const OUTAGE: u32 = 2;

/// How many events ahead the memory of an arrival is loaded.
const AHEAD: usize = 3;

/// A message that an application submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Where.
    pub src: NodeId,
    /// For whom.
    pub dst: NodeId,
    /// How long it is.
    pub size: Bytes,
}

/// What a run needs beside the protocol's configuration and the arrivals.
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
    /// How long after the last arrival the run goes on for unfinished messages.
    pub drain: Span,
    /// How often [`Probe::on_sample`] is called.
    pub sample: Option<Span>,
    /// Encode and decode every packet that a host sends, and compare.
    pub paranoid: bool,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is more to do.
    Running,
    /// Every message has been delivered and confirmed, or has failed.
    Finished,
    /// The drain time is over; messages that were still under way have been recorded so.
    Censored,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events taken from the queue.
    pub events: u64,
    /// Messages submitted.
    pub submitted: u64,
    /// Messages delivered in full.
    pub delivered: u64,
    /// Messages that their sender reported as failed.
    pub failed: u64,
    /// Bytes submitted.
    pub offered_bytes: u64,
    /// Message bytes that reached their receiver for the first time.
    pub fresh_bytes: u64,
    /// Data packets that brought them.
    pub fresh_packets: u64,
    /// Message bytes that had been there before.
    pub duplicate_bytes: u64,
    /// When the last message was submitted.
    pub last_arrival: Time,
    /// `fresh_bytes` at that moment.
    pub fresh_bytes_at_last_arrival: u64,
    /// `fresh_packets` at that moment.
    pub fresh_packets_at_last_arrival: u64,
}

struct Flow {
    arrival: Time,
    src: NodeId,
    dst: NodeId,
    size: u64,
    fresh: u64,
    duplicate: u64,
    delivered: Option<Time>,
    completed: Option<Time>,
    failed: Option<Time>,
    recorded: bool,
}

struct Host<E> {
    endpoint: E,
    /// When the earliest timer event in the queue fires.
    timer_at: Time,
    clock: HostClock,
}

/// A simulation of family `F` under arrivals `A`, observed by `P`.
pub struct Sim<F: Family, A, P> {
    now: Time,
    wheel: Wheel,
    fabric: Fabric<F::Header, F::Hop>,
    hosts: Vec<Host<F::Host>>,
    arrivals: A,
    next: Option<Arrival>,
    /// Messages not yet recorded, and the number of the first of them.
    flows: VecDeque<Flow>,
    first_flow: u32,
    open: u64,
    counters: Counters,
    seed: u64,
    deadline: Time,
    drain: Span,
    sample: Option<Span>,
    paranoid: bool,
    probe: P,
}

impl<F, A, P> Sim<F, A, P>
where
    F: Family,
    A: Iterator<Item = Arrival>,
    P: Probe,
{
    /// A simulation at time zero. Arrivals must come in order of time.
    pub fn new(spec: SimSpec, config: Arc<F::Config>, arrivals: A, probe: P) -> Self {
        let n_hosts = spec.topology.n_hosts();
        // Slots of about a nanosecond hold a few events each at 144 hosts; larger fabrics have
        // more events in the same time.
        let width = Span::from_ps((1024 * 144 / u64::from(n_hosts)).clamp(256, 4096));
        let host = |h: u32| {
            let clock = HostClock::draw(&spec.clocks, h, spec.seed);
            let rng = Rng::new(spec.seed, u64::from(h), Purpose::Endpoint);
            let node = NodeId::new(h);
            let now = clock.local(Time::ZERO);
            let endpoint = F::Host::new(Arc::clone(&config), node, rng, now);
            Host { endpoint, timer_at: Time::NEVER, clock }
        };
        let hosts = (0..n_hosts).map(host).collect();
        let mut sim = Self {
            now: Time::ZERO,
            wheel: Wheel::new(width),
            hosts,
            fabric: Fabric::new(spec.topology, spec.fabric, spec.faults, spec.seed),
            arrivals,
            next: None,
            flows: VecDeque::new(),
            first_flow: 0,
            open: 0,
            counters: Counters::default(),
            seed: spec.seed,
            deadline: Time::NEVER,
            drain: spec.drain,
            sample: spec.sample,
            paranoid: spec.paranoid,
            probe,
        };
        sim.fetch_arrival();
        sim.schedule_outage();
        if let Some(interval) = sim.sample {
            sim.push_other(Time::ZERO + interval, SAMPLE);
        }
        for h in 0..n_hosts {
            sim.drain(h);
        }
        sim
    }

    /// Runs until `budget` more events are done or the run is over.
    pub fn run(&mut self, budget: u64) -> Status {
        let stop = self.counters.events.saturating_add(budget);
        while self.counters.events < stop {
            if self.open == 0 && self.next.is_none() {
                return self.end(Status::Finished);
            }
            let Some(key) = self.wheel.pop() else { return self.end(Status::Censored) };
            if key.time > self.deadline {
                return self.end(Status::Censored);
            }
            assert!(key.time >= self.now, "seed {}: time goes back at {}", self.seed, self.now);
            self.now = key.time;
            if let Some(next) = self.wheel.upcoming(AHEAD)
                && next.what & KIND == ARRIVE
            {
                self.fabric.touch(next.what & !KIND, next.arg);
            }
            self.counters.events += 1;
            self.dispatch(key);
        }
        Status::Running
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Totals so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric<F::Header, F::Hop> {
        &self.fabric
    }

    /// The endpoint of `host`.
    pub fn endpoint(&self, host: u32) -> &F::Host {
        &self.hosts[host as usize].endpoint
    }

    /// The probe.
    pub fn probe(&self) -> &P {
        &self.probe
    }

    /// Ends the run here and hands the probe back. Messages under way are recorded as such.
    pub fn into_probe(mut self) -> P {
        self.end(Status::Censored);
        self.probe
    }

    #[inline]
    fn dispatch(&mut self, key: Key) {
        let number = key.what & !KIND;
        match key.what & KIND {
            ARRIVE => {
                let arrived = self.fabric.arrive(number, key.arg, self.now, &mut self.wheel);
                if let Some(host) = arrived {
                    self.deliver(host, key.arg);
                }
            }
            WAKE if number < self.hosts.len() as u32 => {
                self.fabric.ports[number as usize].woken = false;
                self.pull(number);
            }
            WAKE => self.fabric.wake(number, self.now, &mut self.wheel),
            TIMER => self.fire(number, key.time),
            _ => self.dispatch_other(number),
        }
    }

    fn dispatch_other(&mut self, what: u32) {
        match what {
            SUBMIT => self.submit(),
            SAMPLE => {
                self.probe.on_sample(self.now, &self.fabric);
                self.fabric.check_conservation();
                let interval = self.sample.expect("sampling events exist only with an interval");
                self.push_other(self.now + interval, SAMPLE);
            }
            _ => {
                self.fabric.apply_outages(self.now);
                self.schedule_outage();
            }
        }
    }

    #[inline]
    fn deliver(&mut self, host: u32, handle: u32) {
        let (packet, sent) = self.fabric.take(handle);
        let is_data = packet.payload.len > 0;
        if P::LATENCY {
            self.probe.on_deliver(self.now - sent, is_data);
        }
        let state = &mut self.hosts[host as usize];
        let receipt = state.endpoint.handle_packet(state.clock.local(self.now), &packet);
        match receipt {
            Receipt::Control => {}
            Receipt::Fresh => self.count_fresh(&packet),
            Receipt::Duplicate => {
                let bytes = u64::from(packet.payload.len);
                self.counters.duplicate_bytes += bytes;
                if let Some(flow) = self.flow(packet.payload.msg) {
                    flow.duplicate += bytes;
                }
            }
        }
        self.drain(host);
    }

    #[inline]
    fn count_fresh(&mut self, packet: &Packet<F::Header>) {
        let bytes = u64::from(packet.payload.len);
        self.counters.fresh_bytes += bytes;
        self.counters.fresh_packets += 1;
        let (seed, now) = (self.seed, self.now);
        let flow = self.flow(packet.payload.msg);
        let flow = flow.expect("fresh bytes belong to a message that is not over");
        flow.fresh += bytes;
        assert!(flow.fresh <= flow.size, "seed {seed}: a byte delivered twice at {now}");
    }

    #[inline]
    fn flow(&mut self, msg: MsgId) -> Option<&mut Flow> {
        let idx = msg.get().checked_sub(self.first_flow)?;
        self.flows.get_mut(idx as usize)
    }

    fn fire(&mut self, host: u32, at: Time) {
        let state = &mut self.hosts[host as usize];
        if state.timer_at != at {
            return;
        }
        state.timer_at = Time::NEVER;
        let local = state.clock.local(self.now);
        if state.endpoint.poll_timeout() <= local {
            state.endpoint.handle_timeout(local);
        }
        self.drain(host);
    }

    fn submit(&mut self) {
        let Some(arrival) = self.next.take() else { return };
        let id = MsgId::new(self.first_flow + self.flows.len() as u32);
        self.flows.push_back(Flow {
            arrival: self.now,
            src: arrival.src,
            dst: arrival.dst,
            size: arrival.size.get(),
            fresh: 0,
            duplicate: 0,
            delivered: None,
            completed: None,
            failed: None,
            recorded: false,
        });
        self.open += 1;
        self.counters.submitted += 1;
        self.counters.offered_bytes += arrival.size.get();
        let host = arrival.src.get();
        let state = &mut self.hosts[host as usize];
        let message = Message { id, dst: arrival.dst, size: arrival.size };
        state.endpoint.submit(state.clock.local(self.now), message);
        self.fetch_arrival();
        if self.next.is_none() {
            let counters = &mut self.counters;
            counters.last_arrival = self.now;
            counters.fresh_bytes_at_last_arrival = counters.fresh_bytes;
            counters.fresh_packets_at_last_arrival = counters.fresh_packets;
            self.deadline = self.now.saturating_add(self.drain);
        }
        self.drain(host);
    }

    fn fetch_arrival(&mut self) {
        self.next = self.arrivals.next();
        if let Some(arrival) = self.next {
            assert!(arrival.at >= self.now, "arrivals must be in order of time: {arrival:?}");
            self.push_other(arrival.at, SUBMIT);
        }
    }

    fn schedule_outage(&mut self) {
        if let Some(at) = self.fabric.next_outage() {
            self.push_other(at, OUTAGE);
        }
    }

    fn push_other(&mut self, time: Time, what: u32) {
        self.wheel.push(Key { time, what: OTHER | what, arg: 0 });
    }

    /// Takes everything that an endpoint has to say after an input.
    #[inline]
    fn drain(&mut self, host: u32) {
        while let Some(event) = self.hosts[host as usize].endpoint.poll_event() {
            self.handle_event(event);
        }
        if self.fabric.uplink_idle(host, self.now) {
            self.pull(host);
        } else {
            if self.hosts[host as usize].endpoint.wants_transmit() {
                self.fabric.wake_uplink(host, &mut self.wheel);
            }
            self.set_timer(host);
        }
    }

    /// The interface asks for a packet; its link is idle.
    #[inline]
    fn pull(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        if state.endpoint.wants_transmit() {
            let local = state.clock.local(self.now);
            if let Some(packet) = state.endpoint.poll_transmit(local) {
                if self.paranoid {
                    check_codec(&packet);
                }
                self.fabric.send(host, packet, self.now, &mut self.wheel);
                if self.hosts[host as usize].endpoint.wants_transmit() {
                    self.fabric.wake_uplink(host, &mut self.wheel);
                }
            }
        }
        self.set_timer(host);
    }

    #[inline]
    fn set_timer(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        let local = state.endpoint.poll_timeout();
        if local == Time::NEVER {
            return;
        }
        let at = state.clock.global(local).max(self.now);
        if at < state.timer_at {
            state.timer_at = at;
            self.wheel.push(Key { time: at, what: TIMER | host, arg: 0 });
        }
    }

    fn handle_event(&mut self, event: Event) {
        let (now, seed) = (self.now, self.seed);
        let (Event::Delivered { msg, .. } | Event::Completed { msg } | Event::Failed { msg }) =
            event;
        let flow = self.flow(msg);
        let flow = flow.unwrap_or_else(|| panic!("seed {seed}: {event:?} after its end at {now}"));
        match event {
            Event::Delivered { src, .. } => {
                assert!(flow.delivered.is_none(), "seed {seed}: {event:?} twice at {now}");
                assert!(
                    flow.fresh == flow.size && flow.src == src,
                    "seed {seed}: {event:?} with {} of {} bytes at {now}",
                    flow.fresh,
                    flow.size
                );
                flow.delivered = Some(now);
                self.counters.delivered += 1;
            }
            Event::Completed { .. } => {
                assert!(
                    flow.delivered.is_some() && flow.completed.is_none() && flow.failed.is_none(),
                    "seed {seed}: {event:?} out of turn at {now}"
                );
                flow.completed = Some(now);
                self.open -= 1;
            }
            Event::Failed { .. } => {
                assert!(
                    flow.completed.is_none() && flow.failed.is_none(),
                    "seed {seed}: {event:?} out of turn at {now}"
                );
                flow.failed = Some(now);
                self.counters.failed += 1;
                self.open -= 1;
            }
        }
        self.record(msg);
    }

    /// Hands a message that is over to the probe, and forgets those at the front.
    fn record(&mut self, msg: MsgId) {
        let idx = (msg.get() - self.first_flow) as usize;
        let flow = &mut self.flows[idx];
        // A failed message may still be delivered; it is recorded at the end.
        if flow.delivered.is_none() || (flow.completed.is_none() && flow.failed.is_none()) {
            return;
        }
        flow.recorded = true;
        self.probe.on_flow(&flow_record(msg, &self.flows[idx]));
        while self.flows.front().is_some_and(|f| f.recorded) {
            self.flows.pop_front();
            self.first_flow += 1;
        }
    }

    fn end(&mut self, status: Status) -> Status {
        self.fabric.check_conservation();
        for (i, flow) in self.flows.iter_mut().enumerate() {
            if !flow.recorded {
                flow.recorded = true;
                let msg = MsgId::new(self.first_flow + i as u32);
                self.probe.on_flow(&flow_record(msg, flow));
            }
        }
        status
    }
}

fn flow_record(id: MsgId, flow: &Flow) -> FlowRecord {
    FlowRecord {
        id,
        arrival: flow.arrival,
        src: flow.src,
        dst: flow.dst,
        size: Bytes::new(flow.size),
        delivered: flow.delivered,
        completed: flow.completed,
        failed: flow.failed,
        duplicate: Bytes::new(flow.duplicate),
    }
}

/// Paranoid mode: what the wire would carry is what the endpoint meant.
fn check_codec<H: Header>(packet: &Packet<H>) {
    let mut bytes = [0; 256];
    let header = &packet.header;
    let written = header.encode(&mut bytes).expect("headers are shorter than 256 bytes");
    assert_eq!(written, header.wire_len(), "wire_len of {header:?}");
    let (decoded, read) = H::decode(&bytes[..written]).expect("an encoded header decodes");
    assert_eq!((decoded, read), (*header, written), "codec round trip");
}
