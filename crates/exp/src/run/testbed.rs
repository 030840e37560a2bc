//! Runs on real hosts: the same flows as in the simulator, and results in the same tables.
//!
//! [`prepare`] writes the table of flows that loads on hosts read; [`collect`] makes results of
//! their logs. A link of the testbed is a token bucket. It lets a packet pass whole if it has been
//! idle for long enough, while a real link takes the packet's time. Queues build up alike, so each
//! message lacks the time of one packet. [`collect`] adds that of its last.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rampmeter_metrics::FlowWriter;
use rampmeter_sim::{Arrival, Counters, FlowRecord, Probe};
use rampmeter_types::envelope::{HostPacket, IPV4_UDP, Protection};
use rampmeter_types::{Bytes, MsgId, Span, Time};
use rampmeter_workload::Flow;
use serde::Serialize;
use thiserror::Error;

use super::recorder;
use crate::error::{RunError, io};
use crate::plan::valid::ValidPlan;
use crate::results::Summary;
use crate::results::publish::{clear, publish};
use crate::simulation::clock::ElapsedTime;
use crate::simulation::status::{CompletedRun, RunStatus};
use crate::traffic::collective::{Rounds, latest_start};
use crate::traffic::ideals::Ideals;
use crate::traffic::rpc::CallTracker;

/// Facts of a plan for a run on hosts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HostRun {
    /// Flows in the table.
    pub flows: u64,
    /// Arrival of the last of them, or its earliest start if it waits for others.
    pub last_arrival_ps: u64,
    /// Unloaded round trip of a control packet.
    pub control_rtt_ps: u64,
    /// Unloaded round trip of a full packet.
    pub data_rtt_ps: u64,
    /// Arbiters that the transport has.
    pub arbiters: u32,
}

/// Reason why logs are no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// Results cannot be written, or logs cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A line of a log makes no sense.
    #[error("{}: line {line}: expected what,flow,time_ps, got {got:?}", file.display())]
    Line {
        /// The log.
        file: PathBuf,
        /// The line.
        line: usize,
        /// The text of the line.
        got: String,
    },
    /// A message arrived with other bytes than were sent, or twice.
    #[error("{}: flow {flow} was {fault}", file.display())]
    Broken {
        /// The log.
        file: PathBuf,
        /// The flow.
        flow: u64,
        /// The fault, such as `delivered twice`.
        fault: &'static str,
    },
}

/// Payload of a full packet between hosts, and all other bytes of the link that it takes, if links
/// carry IP packets of `mtu` bytes.
pub fn host_packet(mtu: usize) -> (usize, usize) {
    let HostPacket { payload, header } = HostPacket::new(mtu, IPV4_UDP, Protection::Checksum);
    (payload, header)
}

/// Writes the plan's flows to `table`, a trace in CSV: flow, arrival_ps, src, dst, size_bytes,
/// tenant, after, compute_ps.
///
/// # Errors
/// If the file cannot be written.
pub fn prepare(plan: &ValidPlan, table: &Path) -> Result<HostRun, RunError> {
    let seed = plan.plan().seed;
    let graph = plan.workload.graph(seed).unwrap_or_default();
    let dependencies = graph.dependencies();
    let waiting = (0..graph.len()).map(|number| {
        let after: Vec<String> = dependencies[number as usize].iter().map(u32::to_string).collect();
        (number, *graph.node(number), after.join(" "), graph.delay(number))
    });
    let others = (graph.len()..).zip(plan.workload.flows(seed));
    let others = others.map(|(number, flow)| (number, flow, String::new(), Span::ZERO));
    let mut text = b"flow,arrival_ps,src,dst,size_bytes,tenant,after,compute_ps\n".to_vec();
    let mut flows = graph.n_flows();
    let mut last_arrival = latest_start(&graph, &mut Ideals::new(&plan.sim, plan.segmentation));
    for (number, flow, after, delay) in waiting.chain(others) {
        let Flow { arrival, src, dst, size, tenant, .. } = flow;
        let (at, src, dst, size) = (arrival.as_ps(), src.get(), dst.get(), size.get());
        let (tenant, delay) = (tenant.get(), delay.as_ps());
        // Writing to memory does not fail.
        let _ = writeln!(text, "{number},{at},{src},{dst},{size},{tenant},{after},{delay}");
        flows += u64::from(number >= graph.len());
        last_arrival = last_arrival.max(arrival);
    }
    fs::write(table, text).map_err(|source| io(table, source))?;
    Ok(HostRun {
        flows,
        last_arrival_ps: last_arrival.as_ps(),
        control_rtt_ps: plan.facts.control_rtt.as_ps(),
        data_rtt_ps: plan.facts.data_rtt.as_ps(),
        arbiters: plan.transport.needs.arbiters.len() as u32,
    })
}

/// Times of a flow in logs, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct LogTimes {
    submitted: Option<u64>,
    delivered: Option<u64>,
    completed: Option<u64>,
    failed: Option<u64>,
}

/// Makes results of the logs of all hosts. `wall` is the duration of the run.
///
/// # Errors
/// If a log makes no sense or reports a broken message, or results cannot be written.
pub fn collect(
    plan: &ValidPlan,
    logs: &[PathBuf],
    wall: Duration,
    out: &Path,
) -> Result<Summary, CollectError> {
    let mut seen = BTreeMap::new();
    for log in logs {
        read_log(log, &mut seen)?;
    }
    clear(out)?;
    let writer = FlowWriter::create(&out.join("flows.parquet")).map_err(RunError::from)?;
    let mut recorder = recorder(plan, Some(writer));
    let mut counters = Counters::default();
    let (mut offered_packets, mut end) = (0, Time::ZERO);
    let mut arrived = Vec::new();
    let graph = plan.workload.graph(plan.plan().seed).unwrap_or_default();
    let (mut rounds, mut calls) = (Rounds::new(&graph), CallTracker::new(Arc::clone(&graph)));
    let mut withheld = Vec::new();
    for (number, mut flow) in plan.workload.numbered(plan.plan().seed) {
        let seen = seen.get(&u64::from(number)).copied().unwrap_or_default();
        if number < graph.len() {
            let Some(start) = seen.submitted else {
                let Flow { arrival: at, src, dst, size, tenant, .. } = flow;
                let number = Some(number);
                withheld.push(Arrival { number, tenant, ..Arrival::new(at, src, dst, size) });
                continue;
            };
            flow.arrival = Time::from_ps(start);
        }
        let record = record(plan, number, &flow, seen);
        rounds.on_start(number, flow.arrival);
        calls.on_start(number, flow.arrival);
        if let Some(at) = record.delivered {
            rounds.on_delivered(number, at);
            calls.on_delivered(number, at);
        }
        recorder.on_flow(&record);
        let packets = flow.size.packets_ceil(plan.segmentation.payload);
        offered_packets += packets;
        counters.submitted += 1;
        counters.offered_bytes += flow.size.get();
        counters.last_arrival = counters.last_arrival.max(flow.arrival);
        // A message whose confirmation was lost may have arrived and failed.
        counters.failed += u64::from(record.failed.is_some() && record.delivered.is_none());
        if let Some(at) = record.delivered {
            counters.delivered += 1;
            counters.fresh_bytes += flow.size.get();
            counters.fresh_packets += packets;
            arrived.push((at, flow.size.get(), packets));
            end = end.max(at);
        }
    }
    // The bytes of other flows that had arrived when arrivals stopped are unknown.
    for (_, bytes, packets) in arrived.iter().filter(|(at, ..)| *at <= counters.last_arrival) {
        counters.fresh_bytes_at_last_arrival += bytes;
        counters.fresh_packets_at_last_arrival += packets;
    }
    withheld.iter().for_each(|arrival| recorder.on_withheld(end, arrival));
    let is_finished = counters.delivered + counters.failed == counters.submitted;
    let status = if is_finished { RunStatus::Finished } else { RunStatus::TimedOut };
    let mut ideals = Ideals::new(&plan.sim, plan.segmentation);
    let (collectives, rpcs) = (rounds.results(&graph, &mut ideals), calls.results(&mut ideals));
    let run = CompletedRun::new(status, counters, end);
    let run = CompletedRun { collectives, rpcs, offered_packets, ..run };
    let elapsed = ElapsedTime { wall, cpu_seconds: None };
    Ok(publish(plan, recorder, None, &run, elapsed, out)?)
}

fn record(plan: &ValidPlan, number: u32, flow: &Flow, seen: LogTimes) -> FlowRecord {
    let packets = flow.size.packets_ceil(plan.segmentation.payload);
    let last = flow.size.get() - (packets - 1) * plan.segmentation.payload.get()
        + plan.segmentation.header.get();
    let link = plan.facts.access_rate.tx_time(Bytes::new(last));
    // Loads note times after the start of the table; a clock may be a tick behind an arrival.
    let time = |ps: Option<u64>| ps.map(|ps| (Time::from_ps(ps) + link).max(flow.arrival));
    let Flow { arrival, src, dst, size, tenant, .. } = *flow;
    FlowRecord {
        id: MsgId::new(number),
        number,
        src,
        dst,
        size,
        arrival,
        deadline: Time::NEVER,
        tenant,
        bound: None,
        delivered: time(seen.delivered),
        completed: time(seen.completed),
        failed: time(seen.failed),
        rejected: None,
        fresh_bytes: seen.delivered.map_or(Bytes::ZERO, |_| size),
        duplicate_bytes: Bytes::ZERO,
        first_byte: None,
        sent_bytes: Bytes::ZERO,
    }
}

/// Reads a log. Its last line may be cut off if the load was killed.
fn read_log(log: &Path, seen: &mut BTreeMap<u64, LogTimes>) -> Result<(), CollectError> {
    let text = fs::read_to_string(log).map_err(|source| io(log, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (idx, line) in whole.lines().enumerate().skip(1) {
        let bad =
            || CollectError::Line { file: log.to_owned(), line: idx + 1, got: line.to_owned() };
        let mut fields = line.split(',');
        let (Some(what), Some(flow), Some(at), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(bad());
        };
        let flow: u64 = flow.parse().map_err(|_| bad())?;
        let at: u64 = at.parse().map_err(|_| bad())?;
        let broken = |fault| CollectError::Broken { file: log.to_owned(), flow, fault };
        let of: &mut LogTimes = seen.entry(flow).or_default();
        match what {
            "delivered" if of.delivered.replace(at).is_some() => {
                return Err(broken("delivered twice"));
            }
            "completed" => of.completed = Some(at),
            "failed" => of.failed = Some(at),
            "altered" => return Err(broken("altered")),
            "submitted" => of.submitted = Some(at),
            "delivered" | "done" => {}
            _ => return Err(bad()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Result<BTreeMap<u64, LogTimes>, CollectError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("log.csv");
        fs::write(&file, text).expect("room for a log");
        let mut seen = BTreeMap::new();
        read_log(&file, &mut seen).map(|()| seen)
    }

    #[test]
    fn a_truncated_log_counts_up_to_its_last_complete_line() {
        let seen = log("what,flow,time_ps\ndelivered,3,500\ncompleted,3,700\ndeliv").unwrap();
        assert_eq!((seen[&3].delivered, seen[&3].completed), (Some(500), Some(700)));
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn errors_of_broken_messages_and_lines_name_the_place() {
        let has_line = |text: &str, end: &str| {
            let error = log(text).unwrap_err().to_string();
            assert!(error.ends_with(end), "{error}");
        };
        has_line("what,flow,time_ps\naltered,9,1\n", "flow 9 was altered");
        has_line("what,flow,time_ps\ndelivered,9,1\ndelivered,9,2\n", "flow 9 was delivered twice");
        has_line("h\nsent,1,2\n", "line 2: expected what,flow,time_ps, got \"sent,1,2\"");
        has_line("h\ndelivered,1\n", "line 2: expected what,flow,time_ps, got \"delivered,1\"");
    }
}
