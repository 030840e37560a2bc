//! `rampd load`: a node whose only application sends the messages of a table at their times.
//!
//! The testbed runs one on every host. All read the same table and use only the rows of their host.
//! Each writes a log with a line for every message that ended or arrived here. Times are the
//! monotonic clock's, which all namespaces of a machine share. A message that depends on others is
//! sent once this host has received those, or has sent them and received their acknowledgements.
//!
//! Modules: [`pattern`](crate::pattern) has the content of messages,
//! [`timetable`](crate::timetable) the table and the log, and [`tcp`] the same load over TCP.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rampmeter_proto::Catalogue;
use rampmeter_runtime::app::{Admission, Failure};
use rampmeter_runtime::{Applications, Clock, ClockSource, Outcome, Signals, Submission, Ticket};
use rampmeter_types::{NodeId, Span, Time};
use tracing::error;

use crate::args::parser;
use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::pattern::{CheckedMessage, Pattern};
use crate::run::{clock, run_host, stop_signals};
use crate::tcp;
use crate::timetable::{Log, Timetable, read};

/// Arguments of `rampd load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Configuration file of this node.
    config: PathBuf,
    /// Table of messages: CSV with the columns flow, arrival_ps, src, dst, size_bytes, and
    /// optionally tenant, after (flows that this one waits for) and compute_ps.
    #[arg(long)]
    flows: PathBuf,
    /// File for the log.
    #[arg(long)]
    log: PathBuf,
    /// Monotonic time in nanoseconds at which the table's time begins.
    #[arg(long, value_parser = parser::<u64>("a whole number from 0"))]
    start_ns: u64,
    /// Time in ms after the last arrival after which the load is aborted.
    #[arg(long, default_value_t = 10_000.0, value_parser = parser::<f64>("a number"))]
    drain_ms: f64,
    /// Carrier of the messages.
    #[arg(long, value_enum, default_value_t = Carrier::Udp)]
    over: Carrier,
    #[command(flatten)]
    kernel: tcp::KernelTcpArgs,
}

/// Carrier of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Carrier {
    /// The transport of the configuration, over UDP.
    Udp,
    /// The kernel's TCP.
    Tcp,
}

/// Runs `rampd load`.
pub(crate) fn load<C: Catalogue>(args: &LoadArgs) -> Result<(), Error> {
    let setup = Setup::load::<C>(&args.config)?;
    if setup.clock != ClockSource::Monotonic {
        let error = InputError::unexpected("\"monotonic\" for a load", "\"time-of-day\"");
        return Err(error.at("node.clock").in_file(&args.config).into());
    }
    let table = read(&args.flows, setup.facts.n_hosts)?;
    let start = Time::from_ps(args.start_ns.saturating_mul(1_000));
    let drain = Span::from_ps((args.drain_ms.max(0.0) * 1e9) as u64);
    let timetable = Timetable::new(table, setup.id.get(), start);
    let log = Log::create(&args.log)?;
    let (signals, clock) = (stop_signals()?, clock(&setup)?);
    match args.over {
        Carrier::Udp => {
            let load = Load::new(timetable, log, clock, drain, signals.clone());
            run_host::<C, _, _>(&setup, clock, || Ok(load), &signals)
        }
        Carrier::Tcp => tcp::run(&setup, &args.kernel, timetable, log, clock, drain, &signals),
    }
}

/// Application of a load.
#[derive(Debug)]
struct Load {
    timetable: Timetable,
    log: Log,
    clock: Clock,
    drain: Span,
    ends_at: Time,
    signals: Signals,
    /// Messages in flight, and messages that are expected here.
    in_flight: BTreeMap<u64, u32>,
    missing: usize,
    is_done: bool,
}

impl Load {
    fn new(timetable: Timetable, log: Log, clock: Clock, drain: Span, signals: Signals) -> Self {
        let (missing, ends_at) = (timetable.expected, timetable.last_send.saturating_add(drain));
        let (in_flight, is_done) = (BTreeMap::new(), false);
        Self { timetable, log, clock, drain, ends_at, signals, in_flight, missing, is_done }
    }

    /// Writes the rest of the log of messages. A failure is in the daemon's log.
    fn finish_log(&mut self) {
        if let Err(error) = self.log.finish() {
            error!(%error, "the log of messages is incomplete");
        }
    }

    fn note(&mut self, event: &str, flow: u32) {
        let now = self.clock.now();
        self.log.log_event(event, flow, now.saturating_since(self.timetable.start));
        match event {
            "delivered" => self.timetable.on_delivered(flow, now),
            "completed" => self.timetable.on_completed(flow, now),
            _ => {}
        }
        if self.timetable.has_dependencies {
            // The duration of messages on which others depend is unknown.
            self.ends_at = self.ends_at.max(now.saturating_add(self.drain));
        }
    }

    /// Completes the log when all messages of this host have ended. The node runs until the end,
    /// because other hosts may still need its answers. The log is complete even if the process is
    /// killed then.
    fn stop_if_over(&mut self) {
        let sends = !self.timetable.is_sent() || !self.in_flight.is_empty();
        let is_done = !sends && self.missing == 0;
        if is_done && !self.is_done {
            self.is_done = true;
            self.note("done", 0);
            self.finish_log();
        }
        if self.clock.now() >= self.ends_at && !self.signals.is_stopping() {
            self.signals.stop();
        }
    }
}

impl Applications for Load {
    type Payload = Pattern;
    type Assembly = CheckedMessage;

    fn poll_submission(&mut self) -> Option<Submission<Pattern>> {
        self.stop_if_over();
        let row = self.timetable.take(self.clock.now())?;
        let ticket = Ticket(row.flow.into());
        self.in_flight.insert(ticket.0, row.flow);
        self.note("submitted", row.flow);
        Some(Submission {
            app: 0,
            ticket,
            dst: NodeId::new(row.dst),
            service: 0,
            deadline: Time::NEVER,
            tenant: row.tenant,
            payload: Pattern { flow: row.flow, size: row.size() },
        })
    }

    fn next_submission(&self) -> Time {
        if self.signals.is_stopping() {
            return Time::NEVER;
        }
        self.timetable.next().unwrap_or(self.ends_at)
    }

    fn finish(&mut self, _app: u32, ticket: Ticket, outcome: Outcome) {
        let Some(flow) = self.in_flight.remove(&ticket.0) else { return };
        match outcome {
            Outcome::Completed => self.note("completed", flow),
            // Messages in flight when the load ends are unfinished, not failed.
            Outcome::Failed(Failure::Stopping) => {}
            Outcome::Failed(_) => self.note("failed", flow),
        }
        self.stop_if_over();
    }

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Accept
    }

    fn open(&mut self, _service: u16, size: u32) -> CheckedMessage {
        CheckedMessage::new(size)
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, message: CheckedMessage) {
        self.missing = self.missing.saturating_sub(1);
        let (flow, is_good) = message.verdict();
        self.note(if is_good { "delivered" } else { "altered" }, flow);
        self.stop_if_over();
    }

    fn arm(&mut self) -> bool {
        self.timetable.next().is_some_and(|at| at <= self.clock.now())
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.finish_log();
    }
}
