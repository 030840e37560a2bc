//! Log: lines on standard error.
//!
//! # Design
//!
//! Standard error may be a full disk, a pipe whose reader has ended, or a pipe that nobody reads.
//! The problem: a synchronous writer then fails or blocks, and with it the threads of the node. One
//! forged packet could cause the line that stopped a node.
//!
//! Lines are therefore added to a queue of [`QUEUE`] lines, from which a thread writes them
//! (`tracing-appender`). If the queue is full, or a write fails, the line is dropped and counted.
//!
//! Outsiders can cause lines: with packets, connections and requests. Each place in the code may
//! log [`BURST`] lines at once, and one per [`REFILL_NS`] after that. Further lines are dropped and
//! counted. Lines of level `debug` and `trace`, which are off by default, are not limited.
//!
//! [`report`] adds a line with the counts, at most once a minute, and they are served to
//! Prometheus.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber, warn};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer as LineWriter;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::error::Error;
use crate::json::{Form, error_object};

/// Format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// Maximum number of lines that are not written yet.
const QUEUE: usize = 1_024;
/// Lines of one place in the code: maximum at once, and the interval in ns of those after that.
const BURST: u64 = 100;
const REFILL_NS: u64 = 1_000_000_000;
/// Interval in ns of reports of dropped lines.
const REPORT_NS: u64 = 60_000_000_000;
/// Maximum wait at the end of the process for lines that are not written.
const FLUSH: Duration = Duration::from_secs(1);

static LOG: OnceLock<Log> = OnceLock::new();

/// Counters of the log, and its writer.
#[derive(Debug)]
struct Log {
    format: LogFormat,
    writer: Queue,
    full: ErrorCounter,
    reported: Mutex<LossReport>,
}

/// Numbers of lines that were queued, handled by the thread, not written because of errors, and
/// dropped because one place caused too many.
static QUEUED: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static LIMITED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Default)]
struct LossReport {
    at_ns: u64,
    omitted: OmittedLines,
}

/// Lines that are missing in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OmittedLines {
    /// Lines that could not be written to standard error.
    pub(crate) dropped: u64,
    /// Lines beyond the limit of one place in the code.
    pub(crate) limited: u64,
}

/// Starts the log. RUST_LOG selects lines, by default from `info` on.
pub(crate) fn start(format: LogFormat) {
    let (queue, guard) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(QUEUE)
        .thread_name("log")
        .finish(StandardError);
    // Dropping the guard prints if the queue is full, and that print may fail. `flush` does its
    // work.
    std::mem::forget(guard);
    let full = queue.error_counter();
    let writer = Queue(queue);
    let log = Log { format, writer: writer.clone(), full, reported: Mutex::default() };
    if LOG.set(log).is_err() {
        return;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(
            io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        )
        .log_internal_errors(false)
        .with_writer(writer);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => registry.with(lines.with_filter(Limit::default())).init(),
        LogFormat::Json => registry.with(lines.json().with_filter(Limit::default())).init(),
    }
}

/// Writes the error that ends the command, for each setting of RUST_LOG. It is a line of text, an
/// object with the members of other log lines, or with `--json` an object of its own.
pub(crate) fn print_error(error: &Error, exit_code: u8, form: Form) {
    match LOG.get().map(|log| log.format) {
        _ if form == Form::Json => print(&error_object(error, exit_code).to_string()),
        Some(LogFormat::Json) => {
            let mut timestamp = String::new();
            let _ = SystemTime.format_time(&mut LineWriter::new(&mut timestamp));
            let fields = json!({ "message": error.to_string(), "code": error.code() });
            let line = json!({ "timestamp": timestamp, "level": "ERROR", "fields": fields });
            print(&line.to_string());
        }
        _ => print(&format!("rampd: {error} [{}]", error.code())),
    }
}

/// Writes a line unformatted.
fn print(line: &str) {
    if let Some(log) = LOG.get() {
        let _ = log.writer.clone().write_all(format!("{line}\n").as_bytes());
    }
}

/// Waits until all lines are written, for at most a second.
pub(crate) fn flush() {
    let Some(log) = LOG.get() else { return };
    let step = Duration::from_millis(1);
    for _ in 0..FLUSH.as_millis() {
        let full = log.full.dropped_lines() as u64;
        if HANDLED.load(Ordering::SeqCst) + full >= QUEUED.load(Ordering::SeqCst) {
            return;
        }
        std::thread::sleep(step);
    }
}

/// Ends the process if any of its threads panics. A node without one of its threads would seem
/// alive but serve no application. A service manager restarts it.
pub(crate) fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        let trace = std::backtrace::Backtrace::capture();
        print(&format!("rampd: thread {name}: {panic}\n{trace}"));
        flush();
        std::process::exit(101);
    }));
}

/// Returns the numbers of dropped lines since the start.
pub(crate) fn omitted_lines() -> OmittedLines {
    let full = LOG.get().map_or(0, |log| log.full.dropped_lines() as u64);
    let dropped = full + FAILED.load(Ordering::Relaxed);
    OmittedLines { dropped, limited: LIMITED.load(Ordering::Relaxed) }
}

/// Logs the number of dropped lines, if it has grown and the latest report was a minute ago.
pub(crate) fn report() {
    let Some(log) = LOG.get() else { return };
    let (now_ns, omitted) = (monotonic_ns(), omitted_lines());
    {
        let mut reported = log.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = reported.at_ns > 0 && now_ns - reported.at_ns < REPORT_NS;
        if reported.omitted == omitted || is_recent {
            return;
        }
        *reported = LossReport { at_ns: now_ns, omitted };
    }
    let OmittedLines { dropped, limited } = omitted;
    warn!(
        code = "log-incomplete",
        dropped,
        limited,
        "log: dropped lines because standard error was blocked, or because one cause had too many"
    );
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Standard error. A line that cannot be written is counted, and is no error: the writing thread
/// continues.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if io::stderr().write_all(line).is_err() {
            FAILED.fetch_add(1, Ordering::Relaxed);
        }
        HANDLED.fetch_add(1, Ordering::SeqCst);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Queue of lines.
#[derive(Clone, Debug)]
struct Queue(NonBlocking);

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        QUEUED.fetch_add(1, Ordering::SeqCst);
        self.0.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Limits the lines of each place in the code.
#[derive(Debug, Default)]
struct Limit(Mutex<HashMap<Identifier, Bucket>>);

/// A token bucket in nanoseconds: a line costs [`REFILL_NS`] of them.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    remaining_ns: u64,
    at_ns: u64,
}

impl Bucket {
    fn new(now_ns: u64) -> Self {
        Self { remaining_ns: BURST * REFILL_NS, at_ns: now_ns }
    }

    /// Takes the tokens of a line; returns false if there are not enough.
    fn take(&mut self, now_ns: u64) -> bool {
        let more = now_ns.saturating_sub(self.at_ns);
        self.remaining_ns = self.remaining_ns.saturating_add(more).min(BURST * REFILL_NS);
        self.at_ns = now_ns;
        let is_left = self.remaining_ns >= REFILL_NS;
        if is_left {
            self.remaining_ns -= REFILL_NS;
        }
        is_left
    }
}

impl<S: Subscriber> Filter<S> for Limit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return true;
        }
        let now_ns = monotonic_ns();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(metadata.callsite()).or_insert_with(|| Bucket::new(now_ns));
        let may_log = bucket.take(now_ns);
        LIMITED.fetch_add(u64::from(!may_log), Ordering::Relaxed);
        may_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_logs_a_burst_and_then_a_line_a_second() {
        let mut bucket = Bucket::new(5);
        assert_eq!((0..1_000).filter(|_| bucket.take(5)).count() as u64, BURST);
        // 10 s in steps of 10 ms.
        let later = (1..=1_000).filter(|n| bucket.take(5 + n * 10_000_000)).count();
        assert_eq!(later, 10);
    }
}
