//! A run in windows: partitions of the network side by side, in one thread or in several.
//!
//! The problem: a run of many hosts uses one core, and its state does not fit into the cache.
//!
//! The simple way gives each thread a part of the network and lets it run until a packet comes from
//! another. Results then depend on the threads' speed, or threads exchange messages for each
//! event.
//!
//! The present way: a packet needs at least the delay of a link from one partition to another. So
//! partitions run alone in windows of that length (`topo::partitions`). Packets that cross wait in
//! mailboxes until the window ends. Simultaneous events are ordered by their kind and number, and
//! those of different partitions change nothing in common, so every host has the same inputs as
//! without partitions. Reports about messages are put into the order of the run at the end of each
//! window (`ledger::report`). Samples need all ports at one instant, and windows end there.
//!
//! Hazards: a run ends with the event that ends its last message, and a partition cannot know that
//! another has come to it. So windows stop before the last messages are submitted. They go on after
//! that only while some message has more bytes missing than its receiver's links can carry in a
//! window. The whole run does the rest. A message that fails may end a run all the same, which then
//! must be repeated undivided ([`Status::Overrun`]). State that partitions would share makes a run
//! whole: faults, pauses, flows that depend on others, and observers of packets
//! ([`Sim::division`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use rampmeter_types::{Bytes, MsgId, Rate, Time, Transport};

use super::{SAMPLE, SUBMIT, Sim, Status};
use crate::arrival::Arrival;
use crate::engine::EventLimit;
use crate::engine::event::{OTHER, event, rank};
use crate::fabric::PartitionPacket;
use crate::ledger::report::in_order;
use crate::ledger::{mark_violation, take_violation};
use crate::probe::Probe;
use crate::source::Source;
use crate::topo::Partitions;

/// Events that the whole run handles before it tries to be divided again.
const WHOLE_EVENTS: u64 = 1 << 14;
/// Windows before the last message for which a run is divided.
const WINDOWS_MIN: u64 = 16;
/// Maximum size in bytes of a packet that was in flight when a window began.
const PACKET_MAX: u64 = 1 << 16;

/// A division of a run into partitions.
#[derive(Clone, Debug)]
pub struct Partitioning {
    partitions: Partitions,
    n_threads: usize,
    /// The highest rate of a link, and the most links of a host.
    fastest: (Rate, u64),
}

/// A partition that runs.
struct Part<F: Transport, A, P> {
    sim: Box<Sim<F, A, P>>,
    /// Packets that have come from other partitions.
    mail: Vec<Vec<PartitionPacket<F::Header>>>,
}

type Parts<F, A, P> = Vec<Part<F, A, P>>;
/// Partitions that are to run up to a limit.
type Job<F, A, P> = (EventLimit, Parts<F, A, P>);
type Panic = Box<dyn Any + Send>;
/// Partitions after the window, or a panic and whether it is the ledger's.
type WindowResult<F, A, P> = Result<Parts<F, A, P>, (Panic, bool)>;

/// A thread that runs partitions.
struct Worker<F: Transport, A, P> {
    jobs: Sender<Job<F, A, P>>,
    done: Receiver<WindowResult<F, A, P>>,
}

/// State of a series of windows.
struct Windows<F: Transport, A, P> {
    /// Partitions by thread; that of partition `p` is `p % n_threads`.
    parts: Vec<Parts<F, A, P>>,
    sample_at: Option<Time>,
    /// The end of the last window.
    reached: EventLimit,
    /// A message that does not end soon.
    witness: Option<MsgId>,
    /// True if the last message has ended in a window.
    is_overrun: bool,
}

impl<F, A, P> Sim<F, A, P>
where
    F: Transport,
    A: Source + Send,
    P: Probe + Send,
{
    /// Returns the run's division into `n_partitions` that run in `n_threads`, or why it has none.
    pub fn division(
        &self,
        n_partitions: usize,
        n_threads: usize,
    ) -> Result<Partitioning, &'static str> {
        if let Some(why) = self.reason_for_one_thread() {
            return Err(why);
        }
        if self.probe.partition().is_none() {
            return Err("the run is observed as a whole");
        }
        let topology = self.fabric.topology();
        let partitions = Partitions::new(topology, n_partitions)
            .ok_or("the network has one rack, or links without delay")?;
        let rates = topology.links().iter().flat_map(|link| [link.rate, link.rate_back]);
        let rails = topology.rails().into_iter().max().unwrap_or(1);
        let fastest = (rates.max().expect("a network of racks has links"), rails as u64);
        Ok(Partitioning { n_threads: n_threads.clamp(1, partitions.len()), partitions, fastest })
    }

    /// The same as [`Sim::run`], with the same results, in windows. Returns [`Status::Overrun`] if
    /// the last message failed in a window: the results then are those of some more events.
    pub fn run_divided(&mut self, division: &Partitioning, budget: u64) -> Status {
        let stop = self.ledger.counters.events.saturating_add(budget);
        while self.ledger.counters.events < stop {
            if self.is_long(division) && self.run_windows(division, stop) {
                return Status::Overrun;
            }
            let left = stop.saturating_sub(self.ledger.counters.events);
            match self.run(left.min(WHOLE_EVENTS)) {
                Status::Running => {}
                ended => return ended,
            }
        }
        Status::Running
    }

    /// Returns true if the run does not end soon.
    fn is_long(&mut self, division: &Partitioning) -> bool {
        match self.next {
            Some(next) => {
                let windows = division.partitions.lookahead() * WINDOWS_MIN;
                self.has_later(next.at) || next.at > self.now + windows
            }
            None => self.ledger.longest_open().is_some_and(|msg| {
                let missing = self.ledger.missing(msg);
                missing.is_some_and(|(_, bytes)| bytes > division.window_bytes())
            }),
        }
    }

    /// Returns true if a message is submitted later than `at`, the time of the next one.
    fn has_later(&mut self, at: Time) -> bool {
        while self.ahead.back().is_none_or(|last| last.at <= at) {
            let Some(arrival) = self.arrivals.as_mut().and_then(Source::poll_arrival) else {
                return false;
            };
            self.ahead.push_back(arrival);
        }
        true
    }

    /// Runs windows as long as the run does not end soon, up to `stop` events. Returns true if it
    /// has ended in a window.
    fn run_windows(&mut self, division: &Partitioning, stop: u64) -> bool {
        let partitions = &division.partitions;
        let mut windows = Windows::new(self, division);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..division.n_threads).map(|_| Worker::start(scope)).collect();
            while self.ledger.counters.events < stop
                && !windows.is_overrun
                && let Some(limit) = self.next_limit(division, &mut windows)
            {
                windows.run(&workers, limit);
                self.close_window(division, &mut windows, limit);
            }
        });
        let Windows { parts, sample_at, is_overrun, .. } = windows;
        let mut parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.sort_by_key(|part| part.sim.stations.first());
        let (mut divided, mut mail) = (Vec::new(), Vec::new());
        for part in parts {
            divided.push(*part.sim);
            mail.extend(part.mail);
        }
        assert!(self.assigned.is_empty(), "seed {}: messages are not submitted", self.seed);
        self.merge_partitions(partitions, divided);
        for crossings in mail {
            self.fabric.admit_crossings(crossings, &mut self.wheel);
        }
        if let Some(Arrival { at, .. }) = self.next {
            self.push_other(at, SUBMIT);
        }
        if let Some(at) = sample_at {
            self.push_other(at, SAMPLE);
        }
        is_overrun
    }

    /// Returns the end of the next window, and assigns the messages that are submitted in it to
    /// partitions. Returns `None` if the next event is not one of a partition.
    fn next_limit(
        &mut self,
        division: &Partitioning,
        windows: &mut Windows<F, A, P>,
    ) -> Option<EventLimit> {
        let submitted_at = self.next.map(|next| next.at);
        let start = [windows.next_time(), submitted_at, windows.sample_at];
        let start = start.into_iter().flatten().min()?;
        let mut limit = EventLimit::before(start + division.partitions.lookahead()).min(self.limit);
        if let Some(at) = windows.sample_at {
            limit = limit.min(event_limit(at, SAMPLE));
        }
        if self.next.is_none() && !self.has_witness(division, windows) {
            return None;
        }
        while let Some(next) = self.next {
            let place = event_limit(next.at, SUBMIT);
            if place >= limit {
                break;
            }
            if !self.has_later(next.at) {
                limit = place;
                break;
            }
            self.assign(&next, division, windows);
            self.next = self.ahead.pop_front();
        }
        (limit > windows.reached).then_some(limit)
    }

    /// Assigns a message to the partition of its sender.
    fn assign(&mut self, next: &Arrival, division: &Partitioning, windows: &mut Windows<F, A, P>) {
        let own = division.partitions.of_station(next.src.get());
        for part in windows.parts.iter_mut().flatten() {
            let id = part.sim.ledger.expect(next);
            if division.partitions.of_station(part.sim.stations.first()) == own {
                part.sim.assigned.push_back((id, *next));
                part.sim.push_other(next.at, SUBMIT);
                self.assigned.push_back((id, *next));
            }
        }
    }

    /// Returns true if some message cannot end in the next window.
    fn has_witness(&mut self, division: &Partitioning, windows: &mut Windows<F, A, P>) -> bool {
        let is_long = |windows: &Windows<F, A, P>, msg: MsgId| {
            let Some((dst, _)) = self.ledger.missing(msg) else { return false };
            let partition = division.partitions.of_station(dst);
            let missing = windows.sim(partition).ledger.missing(msg);
            missing.is_some_and(|(_, bytes)| bytes > division.window_bytes())
        };
        if windows.witness.is_some_and(|msg| is_long(windows, msg)) {
            return true;
        }
        for number in 0..division.partitions.len() {
            let is_inside = |station| division.partitions.of_station(station) == number;
            self.ledger.take_bytes(&mut windows.sim_mut(number).ledger, is_inside);
        }
        windows.witness = self.ledger.longest_open();
        let ledger = &self.ledger;
        windows.witness.is_some_and(|msg| {
            ledger.missing(msg).is_some_and(|(_, bytes)| bytes > division.window_bytes())
        })
    }

    /// Delivers the packets that have left partitions, and collects the reports of partitions.
    fn close_window(
        &mut self,
        division: &Partitioning,
        windows: &mut Windows<F, A, P>,
        limit: EventLimit,
    ) {
        windows.reached = limit;
        windows.exchange(division.partitions.len());
        self.windows.windows += 1;
        let (mut reports, mut most) = (Vec::new(), 0);
        for part in windows.parts.iter_mut().flatten() {
            let events = part.sim.ledger.counters.events;
            most = most.max(events);
            self.windows.work += events;
            self.now = self.now.max(part.sim.now);
            self.ledger.add_totals(&mut part.sim.ledger);
            reports.extend(part.sim.ledger.take_reports());
        }
        self.windows.span += most;
        for report in in_order(reports) {
            let assigned = &mut self.assigned;
            let next = || assigned.pop_front().map(|(_, arrival)| arrival);
            if let Some(record) = self.ledger.on_report(report, next) {
                self.probe.on_flow(&record);
            }
        }
        for part in windows.parts.iter_mut().flatten() {
            part.sim.ledger.follow(&self.ledger);
        }
        windows.is_overrun = self.ledger.is_settled() && self.next.is_none();
        if windows.sample_at.is_some_and(|at| limit == event_limit(at, SAMPLE)) {
            self.sample_windows(division, windows, limit.time);
        }
    }

    /// Takes a sample of all partitions.
    fn sample_windows(
        &mut self,
        division: &Partitioning,
        windows: &mut Windows<F, A, P>,
        now: Time,
    ) {
        self.now = now;
        self.ledger.counters.events += 1;
        let crossing = windows.parts.iter().flatten().flat_map(|part| &part.mail).map(Vec::len);
        self.fabric.set_packets_away(crossing.sum::<usize>() as u64);
        for number in 0..division.partitions.len() {
            let part = windows.sim_mut(number);
            self.fabric.update(number, &division.partitions, &mut part.fabric);
        }
        let n = division.partitions.len();
        self.take_sample(|_| Self::counters_of(|| (0..n).map(|number| windows.sim(number))));
        windows.sample_at = self.sample.map(|interval| now + interval);
    }
}

impl Partitioning {
    /// Returns the number of partitions.
    pub fn n_partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Returns more bytes than the links of a host carry in a window.
    fn window_bytes(&self) -> Bytes {
        let (rate, links) = self.fastest;
        let bytes = rate.bytes_floor(self.partitions.lookahead()).get() + PACKET_MAX;
        Bytes::new(links * bytes)
    }
}

impl<F: Transport, A: Source, P: Probe> Windows<F, A, P> {
    /// Divides a run.
    fn new(run: &mut Sim<F, A, P>, division: &Partitioning) -> Self {
        let now = run.now;
        let (divided, sample_at) = run.divide(&division.partitions);
        let mut parts: Vec<Vec<_>> = (0..division.n_threads).map(|_| Vec::new()).collect();
        for (number, sim) in divided.into_iter().enumerate() {
            let part = Part { sim: Box::new(sim), mail: Vec::new() };
            parts[number % division.n_threads].push(part);
        }
        Self {
            parts,
            sample_at,
            reached: EventLimit::before(now),
            witness: None,
            is_overrun: false,
        }
    }

    fn sim(&self, partition: usize) -> &Sim<F, A, P> {
        let n_threads = self.parts.len();
        &self.parts[partition % n_threads][partition / n_threads].sim
    }

    fn sim_mut(&mut self, partition: usize) -> &mut Sim<F, A, P> {
        let n_threads = self.parts.len();
        &mut self.parts[partition % n_threads][partition / n_threads].sim
    }

    /// Returns a time that is not later than any event.
    fn next_time(&self) -> Option<Time> {
        let parts = || self.parts.iter().flatten();
        let events = parts().filter_map(|part| part.sim.wheel.next_time());
        let mail = parts().flat_map(|part| &part.mail).flatten().map(|crossing| crossing.at);
        events.chain(mail).min()
    }

    /// Delivers the packets that have left partitions.
    fn exchange(&mut self, count: usize) {
        for to in 0..count {
            let mail: Vec<_> = (0..count)
                .map(|from| self.sim_mut(from).fabric.take_left(to))
                .filter(|crossings| !crossings.is_empty())
                .collect();
            let n_threads = self.parts.len();
            self.parts[to % n_threads][to / n_threads].mail = mail;
        }
    }
}

impl<F, A, P> Windows<F, A, P>
where
    F: Transport,
    A: Source + Send,
    P: Probe + Send,
{
    /// Runs all partitions up to `limit`.
    fn run(&mut self, workers: &[Worker<F, A, P>], limit: EventLimit) {
        for (worker, parts) in workers.iter().zip(&mut self.parts[1..]) {
            let sent = worker.jobs.send((limit, std::mem::take(parts)));
            assert!(sent.is_ok(), "workers run until they panic");
        }
        for part in &mut self.parts[0] {
            part.run(limit);
        }
        for (worker, parts) in workers.iter().zip(&mut self.parts[1..]) {
            match worker.done.recv().expect("workers answer each job") {
                Ok(done) => *parts = done,
                Err((panic, is_violation)) => {
                    mark_violation(is_violation);
                    resume_unwind(panic);
                }
            }
        }
    }
}

impl<F: Transport, A: Source, P: Probe> Part<F, A, P> {
    /// Runs up to `limit`.
    fn run(&mut self, limit: EventLimit) {
        let Sim { fabric, wheel, .. } = &mut *self.sim;
        for crossings in self.mail.drain(..) {
            fabric.admit_crossings(crossings, wheel);
        }
        self.sim.limit = limit;
        self.sim.dispatch_events(u64::MAX);
    }
}

impl<F, A, P> Worker<F, A, P>
where
    F: Transport,
    A: Source + Send,
    P: Probe + Send,
{
    /// Starts a thread that ends with `scope`.
    fn start<'scope>(scope: &'scope Scope<'scope, '_>) -> Self
    where
        F: 'scope,
        A: 'scope,
        P: 'scope,
    {
        let (jobs, inbox) = channel::<Job<F, A, P>>();
        let (outbox, done) = channel();
        scope.spawn(move || {
            for (limit, mut parts) in inbox {
                let ran = catch_unwind(AssertUnwindSafe(|| {
                    parts.iter_mut().for_each(|part| part.run(limit));
                    parts
                }));
                let ran = ran.map_err(|panic| (panic, take_violation()));
                if outbox.send(ran).is_err() {
                    return;
                }
            }
        });
        Self { jobs, done }
    }
}

/// Returns the place of an event without a port.
fn event_limit(time: Time, code: u32) -> EventLimit {
    EventLimit { time, rank: rank(event(time, OTHER, code).code) }
}
