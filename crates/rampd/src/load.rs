//! `rampd load`: a node whose only application sends the messages of a table at their times.
//!
//! The testbed runs one on every host. All read the same table and keep to the rows that are
//! theirs; what each sees is a log with a line for every message that ended or arrived here. Times
//! are the monotonic clock's, which all namespaces of a machine share.
//!
//! A message carries its flow's number, and bytes that follow from its size and their place, which
//! are checked when they arrive. Messages are at least eight bytes long.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rampmeter_core::rng::mix;
use rampmeter_core::{NodeId, Span, TenantId, Time};
use rampmeter_proto::Catalogue;
use rampmeter_runtime::app::{Admission, Failure};
use rampmeter_runtime::{
    Applications, Assembly, Clock, ClockSource, Outcome, Payload, Signals, Submission, Ticket,
};
use serde::Deserialize;

use crate::config::Setup;
use crate::run::{Error, clock, run_host, stop_signals};
use crate::tcp;

/// Arguments of `rampd load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// The configuration file of this node.
    config: PathBuf,
    /// The table of messages: CSV with the columns flow, arrival_ps, src, dst, size_bytes.
    #[arg(long)]
    flows: PathBuf,
    /// Where the log goes.
    #[arg(long)]
    log: PathBuf,
    /// The monotonic clock's nanoseconds at which the table's time begins.
    #[arg(long)]
    start_ns: u64,
    /// How long after the last arrival messages may take before the load gives up.
    #[arg(long, default_value_t = 10_000.0)]
    drain_ms: f64,
    /// What carries the messages.
    #[arg(long, value_enum, default_value_t = Over::Udp)]
    over: Over,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Over {
    /// The transport of the configuration, over UDP.
    Udp,
    /// The kernel's TCP.
    Tcp,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct FlowRow {
    /// The flow's number in the whole table.
    pub(crate) flow: u32,
    /// When it is submitted, after the start.
    pub(crate) arrival_ps: u64,
    /// The sending host.
    pub(crate) src: u32,
    /// The receiving host.
    pub(crate) dst: u32,
    /// Its length.
    pub(crate) size_bytes: u64,
}

/// The shortest message: it must hold the flow's number.
pub(crate) const SIZE_MIN: u64 = 8;

impl FlowRow {
    /// Bytes that are sent for it.
    pub(crate) fn size(&self) -> u32 {
        self.size_bytes.max(SIZE_MIN) as u32
    }

    /// When it is submitted, on the clock of `start`.
    pub(crate) fn at(&self, start: Time) -> Time {
        start.saturating_add(Span::from_ps(self.arrival_ps))
    }
}

/// `rampd load`.
pub(crate) fn load<C: Catalogue>(args: &LoadArgs) -> Result<(), Error> {
    let setup = Setup::load::<C>(&args.config)?;
    if setup.clock != ClockSource::Monotonic {
        let file = args.config.display();
        let message = "node.clock: expected \"monotonic\" for a load, got \"time-of-day\"";
        return Err(Error::Input(format!("{file}: {message}")));
    }
    let all = read(&args.flows, setup.facts.n_hosts)?;
    let last = all.iter().map(|row| row.arrival_ps).max().unwrap_or(0);
    let start = Time::from_ps(args.start_ns.saturating_mul(1_000));
    let drain = Span::from_ps((args.drain_ms.max(0.0) * 1e9) as u64);
    let node = setup.id.get();
    let expected = all.iter().filter(|row| row.dst == node).count();
    let mine: Vec<FlowRow> = all.into_iter().filter(|row| row.src == node).collect();
    let timetable = Timetable { mine, start, expected };
    let ends = start + Span::from_ps(last) + drain;
    let log = Log::create(&args.log)?;
    let (signals, clock) = (stop_signals()?, clock(&setup)?);
    match args.over {
        Over::Udp => {
            let load = Load::new(timetable, log, clock, ends, signals.clone());
            run_host::<C, _>(&setup, clock, load, &signals)
        }
        Over::Tcp => tcp::run(&setup, timetable, log, clock, ends, &signals),
    }
}

/// What one host has to do.
#[derive(Debug)]
pub(crate) struct Timetable {
    /// Messages to send, by arrival.
    pub(crate) mine: Vec<FlowRow>,
    /// When the table's time begins.
    pub(crate) start: Time,
    /// Messages that will come here.
    pub(crate) expected: usize,
}

fn read(file: &Path, n_hosts: u32) -> Result<Vec<FlowRow>, Error> {
    let bad = |message: String| Error::Input(format!("{}: {message}", file.display()));
    let mut reader = csv::Reader::from_path(file).map_err(|e| bad(e.to_string()))?;
    let mut rows = Vec::new();
    for row in reader.deserialize() {
        let row: FlowRow = row.map_err(|e| bad(e.to_string()))?;
        if row.src >= n_hosts || row.dst >= n_hosts || row.src == row.dst {
            let FlowRow { flow, src, dst, .. } = row;
            let hosts = format!("two of {n_hosts} hosts");
            return Err(bad(format!("flow {flow}: expected {hosts}, got {src} and {dst}")));
        }
        if row.size_bytes > u64::from(rampmeter_runtime::NodeConfig::MESSAGE_MAX) {
            let FlowRow { flow, size_bytes, .. } = row;
            return Err(bad(format!("flow {flow}: expected at most 1 GiB, got {size_bytes}")));
        }
        rows.push(row);
    }
    rows.sort_by_key(|row| (row.arrival_ps, row.flow));
    Ok(rows)
}

/// What happened, a line each: `what,flow,time_ps` after the start of the table.
#[derive(Debug)]
pub(crate) struct Log(BufWriter<File>);

impl Log {
    fn create(file: &Path) -> io::Result<Self> {
        let create = || {
            let mut log = BufWriter::new(File::create(file)?);
            writeln!(log, "what,flow,time_ps")?;
            Ok(Self(log))
        };
        create().map_err(|error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.display()))
        })
    }

    /// Notes something. `what` is submitted, delivered, altered, completed, failed or done.
    pub(crate) fn note(&mut self, what: &str, flow: u32, at: Span) {
        // A full disk shows when the log is completed.
        let _ = writeln!(self.0, "{what},{flow},{}", at.as_ps());
    }

    /// Completes the log.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The application of a load.
#[derive(Debug)]
struct Load {
    timetable: Timetable,
    log: Log,
    clock: Clock,
    ends: Time,
    signals: Signals,
    next: usize,
    /// Messages under way, and those that are still to come here.
    under_way: BTreeMap<u64, u32>,
    missing: usize,
    is_done: bool,
}

impl Load {
    fn new(timetable: Timetable, log: Log, clock: Clock, ends: Time, signals: Signals) -> Self {
        let missing = timetable.expected;
        let (next, under_way, is_done) = (0, BTreeMap::new(), false);
        Self { timetable, log, clock, ends, signals, next, under_way, missing, is_done }
    }

    fn note(&mut self, what: &str, flow: u32) {
        let at = self.clock.now().saturating_since(self.timetable.start);
        self.log.note(what, flow, at);
    }

    /// Completes the log when all is done here. The node stays until the end, because other hosts
    /// may still wait for its answers; whoever kills it then loses nothing.
    fn stop_if_over(&mut self) {
        let sends = self.next < self.timetable.mine.len() || !self.under_way.is_empty();
        let is_done = !sends && self.missing == 0;
        if is_done && !self.is_done {
            self.is_done = true;
            self.note("done", 0);
            let _ = self.log.finish();
        }
        if self.clock.now() >= self.ends && !self.signals.is_stopping() {
            self.signals.stop();
        }
    }
}

impl Applications for Load {
    type Payload = Pattern;
    type Assembly = Checked;

    fn poll_submission(&mut self) -> Option<Submission<Pattern>> {
        self.stop_if_over();
        let row = *self.timetable.mine.get(self.next)?;
        if row.at(self.timetable.start) > self.clock.now() {
            return None;
        }
        self.next += 1;
        let ticket = Ticket(row.flow.into());
        self.under_way.insert(ticket.0, row.flow);
        self.note("submitted", row.flow);
        Some(Submission {
            app: 0,
            ticket,
            dst: NodeId::new(row.dst),
            service: 0,
            deadline: Time::NEVER,
            tenant: TenantId::default(),
            payload: Pattern { flow: row.flow, size: row.size() },
        })
    }

    fn next_submission(&self) -> Time {
        if self.signals.is_stopping() {
            return Time::NEVER;
        }
        let next = self.timetable.mine.get(self.next);
        next.map_or(self.ends, |row| row.at(self.timetable.start))
    }

    fn finish(&mut self, _app: u32, ticket: Ticket, outcome: Outcome) {
        let Some(flow) = self.under_way.remove(&ticket.0) else { return };
        match outcome {
            Outcome::Completed => self.note("completed", flow),
            // What is under way when the load ends is unfinished, not failed.
            Outcome::Failed(Failure::Stopping) => {}
            Outcome::Failed(_) => self.note("failed", flow),
        }
        self.stop_if_over();
    }

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Accept
    }

    fn open(&mut self, _service: u16, size: u32) -> Checked {
        Checked { size, label: [0; SIZE_MIN as usize], is_good: true }
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, message: Checked) {
        self.missing = self.missing.saturating_sub(1);
        let flow = u64::from_be_bytes(message.label);
        let is_good = message.is_good && flow <= u32::MAX.into();
        self.note(if is_good { "delivered" } else { "altered" }, flow as u32);
        self.stop_if_over();
    }

    fn arm(&mut self) -> bool {
        self.next_submission() <= self.clock.now() && self.next < self.timetable.mine.len()
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.log.finish();
    }
}

/// The bytes of a message of `size` from `offset` on, but for its label.
fn fill(size: u32, offset: usize, out: &mut [u8]) {
    let word = |at: usize| mix(u64::from(size) << 32 ^ (at / 8) as u64).to_be_bytes();
    let skip = offset % 8;
    let head = out.len().min((8 - skip) % 8);
    let (first, rest) = out.split_at_mut(head);
    first.copy_from_slice(&word(offset)[skip..][..head]);
    for (at, part) in (offset + head..).step_by(8).zip(rest.chunks_mut(8)) {
        part.copy_from_slice(&word(at)[..part.len()]);
    }
}

/// The bytes of a message, made as they are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// The flow's number.
    pub(crate) flow: u32,
    /// Bytes.
    pub(crate) size: u32,
}

impl Payload for Pattern {
    fn size(&self) -> usize {
        self.size as usize
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        fill(self.size, offset, out);
        let label = u64::from(self.flow).to_be_bytes();
        for (label, out) in label.iter().skip(offset).zip(out) {
            *out = *label;
        }
    }
}

/// A message whose bytes are compared as they arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    size: u32,
    label: [u8; SIZE_MIN as usize],
    is_good: bool,
}

impl Assembly for Checked {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (label, got) in self.label.iter_mut().skip(offset).zip(bytes) {
            *label = *got;
        }
        let labelled = self.label.len().saturating_sub(offset).min(bytes.len());
        let (offset, bytes) = (offset + labelled, &bytes[labelled..]);
        let mut wanted = [0; 2_048];
        for (at, part) in (offset..).step_by(wanted.len()).zip(bytes.chunks(wanted.len())) {
            fill(self.size, at, &mut wanted[..part.len()]);
            self.is_good &= wanted[..part.len()] == *part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(flow: u32, size: u32, cuts: &[usize], spoil: Option<usize>) -> Checked {
        let mut bytes = vec![0; size as usize];
        Pattern { flow, size }.copy_to(0, &mut bytes);
        if let Some(at) = spoil {
            bytes[at] ^= 1;
        }
        let mut message = Checked { size, label: [0; 8], is_good: true };
        let ends = cuts.iter().skip(1).copied().chain([bytes.len()]);
        let parts: Vec<_> = cuts.iter().copied().zip(ends).collect();
        for (from, to) in parts.into_iter().rev() {
            message.write(from, &bytes[from..to]);
        }
        message
    }

    #[test]
    fn a_message_cut_anywhere_is_recognised_and_every_changed_byte_is_noticed() {
        for cuts in [&[0][..], &[0, 3], &[0, 8, 9], &[0, 13, 2_500, 4_000]] {
            let good = arrive(77, 5_003, cuts, None);
            assert!(good.is_good && u64::from_be_bytes(good.label) == 77);
            for at in [8, 9, 2_499, 2_500, 5_002] {
                assert!(!arrive(77, 5_003, cuts, Some(at)).is_good, "byte {at}");
            }
        }
        assert_eq!(u64::from_be_bytes(arrive(9, 8, &[0], None).label), 9);
    }

    #[test]
    fn parts_of_a_message_are_those_of_the_whole() {
        let (pattern, mut whole) = (Pattern { flow: 5, size: 100 }, [0; 100]);
        pattern.copy_to(0, &mut whole);
        for from in 0..40 {
            for len in 0..40 {
                let mut part = vec![0; len];
                pattern.copy_to(from, &mut part);
                assert_eq!(part, whole[from..from + len]);
            }
        }
    }
}
