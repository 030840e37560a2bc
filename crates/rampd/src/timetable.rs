//! What every load of a testbed has, whatever carries its messages: a part of the table, and a log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rampmeter_core::{Span, Time};
use rampmeter_runtime::NodeConfig;
use serde::Deserialize;

use crate::pattern::SIZE_MIN;
use crate::run::Error;

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

impl Timetable {
    /// Keeps the rows of `node`.
    pub(crate) fn new(all: Vec<FlowRow>, node: u32, start: Time) -> Self {
        let expected = all.iter().filter(|row| row.dst == node).count();
        let mine = all.into_iter().filter(|row| row.src == node).collect();
        Self { mine, start, expected }
    }
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

/// Reads the table: CSV with the columns of [`FlowRow`]. Returns its rows by arrival.
pub(crate) fn read(file: &Path, n_hosts: u32) -> Result<Vec<FlowRow>, Error> {
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
        if row.size_bytes > u64::from(NodeConfig::MESSAGE_MAX) {
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
    pub(crate) fn create(file: &Path) -> io::Result<Self> {
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
