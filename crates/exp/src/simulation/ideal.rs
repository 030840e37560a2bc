//! Running the ideal: flows through its scheduler, no packets.

use std::collections::HashMap;

use rampmeter_proto::ideal::{CoreCapacity, IdealScheduler, Job};
use rampmeter_sim::{Arrival, Counters, FlowRecord, Probe, Source};
use rampmeter_types::{Bytes, DuplexRates, MsgId, NodeId, Pairs, Planes, Rate, Span, Time};

use super::SimulationTask;
use super::clock::ProgressTimer;
use super::progress::Progress;
use super::status::{CompletedRun, RunStatus};
use crate::record::Recorder;
use crate::traffic::ideals::{FlowIdeals, Ideals};
use rampmeter_types::Segmentation;

/// Events between two reads of the clock.
const PACE_EVENTS: u64 = 256;

/// Flows in progress in an ideal network.
struct Run {
    segmentation: Segmentation,
    scheduler: IdealScheduler,
    links: LinkNumbers,
    /// State of each flow that is not complete.
    open: HashMap<u32, OpenFlow>,
    ideals: Ideals,
    counters: Counters,
}

/// Numbers of the planes of all hosts.
struct LinkNumbers {
    pairs: Pairs,
    planes: Option<Planes>,
    /// The rates at which hosts send and receive by each plane, by number.
    rates: Vec<DuplexRates>,
    /// The number of each host's first plane, and last the number of all.
    first_planes: Vec<u32>,
    /// The same of parts of planes.
    part_rates: Vec<DuplexRates>,
    first_parts: Vec<u32>,
}

impl LinkNumbers {
    fn new(pairs: &Pairs) -> Self {
        let planes = pairs.planes_and_parts();
        let count =
            |host: u32| planes.as_ref().map_or(1, |all| all.count(NodeId::new(host)) as u32);
        let mut first_planes = vec![0];
        for host in 0..pairs.n_hosts() {
            first_planes.push(first_planes[host as usize] + count(host));
        }
        let of_host = |host: NodeId| match &planes {
            None => vec![DuplexRates { tx: pairs.tx_rate(host), rx: pairs.rx_rate(host) }],
            Some(all) => (0..all.count(host)).map(|plane| all.rates(host, plane)).collect(),
        };
        let rates = (0..pairs.n_hosts()).map(NodeId::new).flat_map(of_host).collect();
        let (mut part_rates, mut first_parts) = (Vec::new(), Vec::new());
        for host in (0..pairs.n_hosts()).map(NodeId::new) {
            first_parts.push(part_rates.len() as u32);
            part_rates.extend(planes.iter().flat_map(|all| all.parts(host)));
        }
        Self { pairs: pairs.clone(), planes, rates, first_planes, part_rates, first_parts }
    }

    /// Returns the number of the part of a plane by which a host reaches another; `None` if it is
    /// all of it.
    fn part_of_pair(&self, host: NodeId, peer: NodeId) -> Option<u32> {
        let part = self.planes.as_ref()?.part_of(host, peer)?;
        Some(self.first_parts[host.idx()] + part as u32)
    }

    /// Returns the number of the plane by which a host reaches another.
    fn of_pair(&self, host: NodeId, peer: NodeId) -> u32 {
        let plane = self.planes.as_ref().map_or(0, |all| all.plane_to(host, peer) as u32);
        self.first_planes[host.idx()] + plane
    }

    /// Returns the rate at which planes of two hosts can carry messages from the one to the other,
    /// by the links that lead there.
    fn rate(&self, src: NodeId, dst: NodeId) -> Rate {
        let [from, to] = [(src, dst), (dst, src)].map(|(a, b)| self.of_pair(a, b) as usize);
        let of_planes = self.rates[from].tx.min(self.rates[to].rx);
        self.pairs.rate(src, dst).map_or(of_planes, |rate| rate.min(of_planes))
    }
}

struct OpenFlow {
    record: FlowRecord,
    service: Span,
}

/// Runs the task's flows through the ideal scheduler, over a core that limits them or a wide one.
pub(crate) fn simulate_ideal(task: SimulationTask<'_>, core: Option<CoreCapacity>) -> CompletedRun {
    let total = task.total_flows;
    let SimulationTask { sim, segmentation, mut source, recorder, observer, .. } = task;
    let rates = sim.topology.pairs();
    let links = LinkNumbers::new(&rates);
    let mut run = Run {
        segmentation,
        scheduler: IdealScheduler::new(links.rates.clone(), links.part_rates.clone(), core),
        links,
        open: HashMap::new(),
        ideals: Ideals::new(sim, segmentation),
        counters: Counters::default(),
    };
    let mut pace = ProgressTimer::new();
    let mut next = source.poll_arrival();
    let mut done = Vec::new();
    let (mut now, mut status) = (Time::ZERO, RunStatus::Finished);
    let mut deadline = Time::NEVER;
    loop {
        let completion = run.scheduler.next_completion();
        let release = source.next_release();
        let arrives = next.map_or(Time::NEVER, |arrival| arrival.at).min(release);
        let arrival = match next {
            _ if arrives >= completion => None,
            Some(arrival) if arrival.at <= release => {
                std::mem::replace(&mut next, source.poll_arrival())
            }
            _ => source.release(),
        };
        if arrival.is_none() && completion == Time::NEVER {
            break;
        }
        if arrival.is_none() && completion > deadline {
            (now, status) = (deadline, RunStatus::TimedOut);
            break;
        }
        run.counters.events += 1;
        if let Some(arrival) = arrival {
            now = arrival.at;
            run.submit(&arrival);
        } else {
            now = completion;
            run.scheduler.complete(now, &mut done);
            for id in done.drain(..) {
                run.complete(id, now, recorder, &mut source);
            }
        }
        if next.is_some() || source.next_release() < Time::NEVER {
            deadline = Time::NEVER;
        } else if arrival.is_some() {
            run.on_last_arrival(now);
            deadline = now.saturating_add(sim.drain);
        }
        let Counters { submitted, delivered, events, .. } = run.counters;
        let progress = Progress { submitted, delivered, total, now, hops: 0, events };
        if events.is_multiple_of(PACE_EVENTS) && pace.is_due() && !observer.on_progress(&progress) {
            status = RunStatus::Interrupted;
            break;
        }
    }
    run.end(now, recorder);
    while let Some(arrival) = source.take_withheld() {
        recorder.on_withheld(now, &arrival);
    }
    CompletedRun::new(status, run.counters, now)
}

impl Run {
    /// Returns the rate of a message's pair, and how long it takes at this rate.
    fn service(&self, arrival: &Arrival) -> (Rate, Span) {
        let wire = self.ideals.segmentation().message_wire_bytes(arrival.size);
        let [from, to] = self.ideals.rates(arrival.src, arrival.dst);
        let of_links = self.links.rate(arrival.src, arrival.dst);
        let rate = from.total.min(to.total).min(of_links);
        (rate, rate.tx_time(wire))
    }

    fn submit(&mut self, arrival: &Arrival) {
        let id = self.counters.submitted as u32;
        let (rate, service) = self.service(arrival);
        let record = FlowRecord::new(MsgId::new(id), arrival.at, arrival);
        let (src, dst) = (arrival.src, arrival.dst);
        let links = [self.links.of_pair(src, dst), self.links.of_pair(dst, src)];
        let parts = [self.links.part_of_pair(src, dst), self.links.part_of_pair(dst, src)];
        let job = Job { id, src, dst, links, parts, rate, service };
        self.scheduler.submit(arrival.at, job);
        self.open.insert(id, OpenFlow { record, service });
        self.counters.submitted += 1;
        self.counters.offered_bytes += arrival.size.get();
    }

    /// Flow `id` has been served. Others may wait for it: `source` is notified of its delivery at
    /// once, with the time at which it will be delivered.
    fn complete(
        &mut self,
        id: u32,
        served: Time,
        recorder: &mut Recorder,
        source: &mut impl Source,
    ) {
        let Some(OpenFlow { mut record, service }) = self.open.remove(&id) else { return };
        let FlowIdeals { delivered, acked, .. } =
            self.ideals.flow(record.src, record.dst, record.size);
        let (delivered, completed) =
            (served + delivered.saturating_sub(service), served + acked.saturating_sub(service));
        (record.delivered, record.completed) = (Some(delivered), Some(completed));
        (record.sent_bytes, record.fresh_bytes) = (record.size, record.size);
        recorder.on_flow(&record);
        source.on_delivered(record.number, delivered);
        source.on_completed(record.number, completed);
        self.counters.delivered += 1;
        self.counters.fresh_bytes += record.size.get();
        self.counters.fresh_packets += record.size.packets_ceil(self.segmentation.payload);
    }

    /// Records the flows that are not complete at the end. Their progress in bytes is their
    /// progress in service.
    fn end(&mut self, now: Time, recorder: &mut Recorder) {
        let mut left: Vec<(u32, Span)> = self.scheduler.remaining(now).collect();
        left.sort_unstable_by_key(|&(id, _)| id);
        for (id, remaining) in left {
            let Some(OpenFlow { mut record, service }) = self.open.remove(&id) else { continue };
            let bytes = share(record.size.get(), service, remaining);
            (record.sent_bytes, record.fresh_bytes) = (Bytes::new(bytes), Bytes::new(bytes));
            self.counters.fresh_bytes += bytes;
            recorder.on_flow(&record);
        }
    }

    /// Counts the bytes and packets delivered by `now`: those of complete flows, and shares of
    /// those in progress.
    fn on_last_arrival(&mut self, now: Time) {
        let (mut bytes, mut packets) = (self.counters.fresh_bytes, self.counters.fresh_packets);
        for (id, remaining) in self.scheduler.remaining(now) {
            let Some(OpenFlow { record, service }) = self.open.get(&id) else { continue };
            bytes += share(record.size.get(), *service, remaining);
            let n_packets = record.size.packets_ceil(self.segmentation.payload);
            packets += share(n_packets, *service, remaining);
        }
        self.counters.last_arrival = now;
        self.counters.fresh_packets_at_last_arrival = packets;
        self.counters.fresh_bytes_at_last_arrival = bytes;
    }
}

/// Returns the delivered share of bytes or packets of a service, given the remaining time.
fn share(total: u64, service: Span, remaining: Span) -> u64 {
    let served = u128::from((service - remaining).as_ps());
    (u128::from(total) * served / u128::from(service.as_ps()).max(1)) as u64
}
