//! Running the ideal: flows through its scheduler, no packets.

use std::collections::HashMap;

use rampmeter_core::{Bytes, FabricFacts, MsgId, Span, Time};
use rampmeter_metrics::ideal::LastPacket;
use rampmeter_proto::ideal::{IdealScheduler, Job};
use rampmeter_sim::{Arrival, Counters, FlowRecord, Probe};

use crate::cut::Cut;
use crate::ideals::Ideals;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::ran::{Ran, RunStatus};
use crate::record::Recorder;
use crate::simulate::Task;

/// Events between two looks at the clock.
const PACE_EVENTS: u64 = 256;

/// Flows under way in an ideal network.
struct Run<'a> {
    facts: &'a FabricFacts,
    cut: Cut,
    scheduler: IdealScheduler,
    /// What is known of each flow that is not complete.
    open: HashMap<u32, Open>,
    ideals: Ideals,
    counters: Counters,
}

struct Open {
    record: FlowRecord,
    service: Span,
}

/// Runs the task's flows through the ideal scheduler.
pub(crate) fn simulate_ideal(task: Task<'_>) -> Ran {
    let Task { sim, facts, cut, total_flows: total, arrivals, recorder, observer, .. } = task;
    let mut run = Run {
        facts,
        cut,
        scheduler: IdealScheduler::new(facts.n_hosts),
        open: HashMap::new(),
        ideals: Ideals::new(sim, cut),
        counters: Counters::default(),
    };
    let mut pace = Pace::new();
    let mut arrivals = arrivals.peekable();
    let mut done = Vec::new();
    let (mut now, mut status) = (Time::ZERO, RunStatus::Finished);
    let mut deadline = Time::NEVER;
    loop {
        let completion = run.scheduler.next_completion();
        let arrival = arrivals.next_if(|a| a.at < completion);
        if arrival.is_none() && completion == Time::NEVER {
            break;
        }
        if arrival.is_none() && completion > deadline {
            status = RunStatus::Censored;
            break;
        }
        run.counters.events += 1;
        if let Some(arrival) = arrival {
            now = arrival.at;
            run.submit(&arrival);
            if arrivals.peek().is_none() {
                run.on_last_arrival(now);
                deadline = now.saturating_add(sim.drain);
            }
        } else {
            now = completion;
            run.scheduler.complete(now, &mut done);
            for id in done.drain(..) {
                run.complete(id, now, recorder);
            }
        }
        let Counters { submitted, delivered, events, .. } = run.counters;
        let progress = Progress { submitted, delivered, total, now, hops: 0, events };
        if events.is_multiple_of(PACE_EVENTS) && pace.is_due() && !observer.on_progress(&progress) {
            status = RunStatus::Interrupted;
            break;
        }
    }
    let mut left: Vec<Open> = run.open.into_values().collect();
    left.sort_unstable_by_key(|open| open.record.id);
    left.iter().for_each(|open| recorder.on_flow(&open.record));
    Ran {
        status,
        counters: run.counters,
        hops: 0,
        end: now,
        tiers: vec![],
        transport: vec![],
        offered_packets: 0,
    }
}

impl Run<'_> {
    /// How long a message keeps its access links busy.
    fn service(&self, arrival: &Arrival) -> Span {
        let cut = self.cut;
        let (lanes, rate) = self.ideals.access(arrival.src, arrival.dst);
        // Each of several links carries its share.
        let size = match lanes {
            1 => arrival.size,
            _ => self.ideals.share(arrival.size, lanes),
        };
        let packets = size.packets_ceil(cut.payload);
        let before = Bytes::new((packets - 1) * cut.payload.get());
        let last = match cut.last {
            LastPacket::Padded => cut.payload,
            LastPacket::OwnSize => size - before,
        };
        rate.tx_time(cut.payload + cut.header) * (packets - 1) + rate.tx_time(last + cut.header)
    }

    fn submit(&mut self, arrival: &Arrival) {
        let id = self.counters.submitted as u32;
        let service = self.service(arrival);
        let record = FlowRecord::new(MsgId::new(id), arrival.at, arrival);
        let job = Job { id, src: arrival.src, dst: arrival.dst, service };
        self.scheduler.submit(arrival.at, job);
        self.open.insert(id, Open { record, service });
        self.counters.submitted += 1;
        self.counters.offered_bytes += arrival.size.get();
    }

    fn complete(&mut self, id: u32, served: Time, recorder: &mut Recorder) {
        let Some(Open { mut record, service }) = self.open.remove(&id) else { return };
        let [delivered, acked, _] = self.ideals.of(record.src, record.dst, record.size);
        record.delivered = Some(served + delivered.saturating_sub(service));
        record.completed = Some(served + acked.saturating_sub(service));
        record.sent = record.size;
        recorder.on_flow(&record);
        self.counters.delivered += 1;
        self.counters.fresh_bytes += record.size.get();
        self.counters.fresh_packets += record.size.packets_ceil(self.cut.payload);
    }

    /// What has been delivered by now, those under way counted by the service they have had.
    fn on_last_arrival(&mut self, now: Time) {
        let cut = self.cut;
        let packet = self.facts.access_rate.tx_time(cut.payload + cut.header);
        let packets = self.scheduler.served(now).div_floor(packet);
        self.counters.last_arrival = now;
        self.counters.fresh_packets_at_last_arrival = packets;
        self.counters.fresh_bytes_at_last_arrival = packets * cut.payload.get();
    }
}
