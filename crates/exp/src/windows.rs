//! Windows and credits over time: rows of `windows.parquet`, if the transport reports any.

use std::path::PathBuf;

use rampmeter_core::{Gauge, NodeId, Time};
use rampmeter_metrics::TableError;
use rampmeter_metrics::columns::RowWriter;
use rampmeter_metrics::series::WindowSample;

use crate::rates::{ROWS_MAX, incomplete};

/// The recorder of windows.
pub(crate) struct Windows {
    file: PathBuf,
    /// Made when there is a first row.
    writer: Option<RowWriter<WindowSample>>,
    error: Option<TableError>,
    n_rows: u64,
    /// The first instant that was left out, as the table was full.
    left_out: Option<Time>,
}

impl Windows {
    /// Records to the table `file`.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, writer: None, error: None, n_rows: 0, left_out: None }
    }

    /// Takes a window or a credit that `host` has at `now`, of flow number `flow` if it is one's.
    pub(crate) fn on_gauge(
        &mut self,
        now: Time,
        (host, flow): (NodeId, Option<u32>),
        gauge: &Gauge,
    ) {
        if self.error.is_some() || self.left_out.is_some_and(|from| now >= from) {
            return;
        }
        self.n_rows += 1;
        if self.n_rows > ROWS_MAX {
            self.left_out = Some(now);
            return;
        }
        let row = WindowSample {
            time_ps: now.as_ps(),
            host: host.get(),
            peer: gauge.peer.get(),
            flow: flow.map(u64::from),
            name: gauge.name.into(),
            value: gauge.value,
        };
        if let Err(error) = self.push(&row) {
            // The run continues to its end, where the error is reported.
            self.writer = None;
            self.error = Some(error);
        }
    }

    fn push(&mut self, row: &WindowSample) -> Result<(), TableError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RowWriter::create(&self.file)?),
        };
        writer.push(row)
    }

    /// Completes the table, if there is one. Returns a warning if it has not all instants.
    ///
    /// # Errors
    /// If a row could not be written.
    pub(crate) fn finish(
        self,
        metadata: &[(String, String)],
    ) -> Result<Option<String>, TableError> {
        match (self.error, self.writer) {
            (Some(error), _) => return Err(error),
            (None, Some(writer)) => writer.finish(metadata).map(|_| ())?,
            (None, None) => {}
        }
        Ok(self.left_out.map(|from| incomplete("windows.parquet", from)))
    }
}
