//! Tables over time, which have a largest number of rows.

use std::path::PathBuf;

use rampmeter_metrics::TableError;
use rampmeter_metrics::columns::{Row, RowWriter};
use rampmeter_types::Time;

use crate::warning::{Warning, warning};

/// Largest number of rows in a table: some 2 GB.
const ROWS_MAX: u64 = 100_000_000;

/// A table whose rows are in the order of time. Rows beyond [`ROWS_MAX`] are omitted.
pub(crate) struct BoundedTable<R: Row> {
    file: PathBuf,
    /// Created with the first row.
    writer: Option<RowWriter<R>>,
    error: Option<TableError>,
    n_rows: u64,
    /// The rows of one instant, to which more may be added.
    instant: (Time, Vec<R>),
    /// The first instant that was omitted, as the table was full.
    omitted_since: Option<Time>,
}

impl<R: Row> BoundedTable<R> {
    /// Writes to `file`, which is created with the first row.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self {
            file,
            writer: None,
            error: None,
            n_rows: 0,
            instant: (Time::ZERO, Vec::new()),
            omitted_since: None,
        }
    }

    /// Creates the file now, so that a table without rows is written too.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn create(file: PathBuf) -> Result<Self, TableError> {
        let writer = Some(RowWriter::create(&file)?);
        Ok(Self { writer, ..Self::new(file) })
    }

    /// Adds a row of the instant `now`, which is not before that of any other row.
    pub(crate) fn add(&mut self, now: Time, row: R) {
        if now > self.instant.0 {
            self.write_instant();
        }
        self.instant.0 = now;
        self.instant.1.push(row);
    }

    /// Writes the rows that were added for one instant.
    fn write_instant(&mut self) {
        let (at, mut rows) = std::mem::take(&mut self.instant);
        self.push(at, &rows);
        rows.clear();
        self.instant.1 = rows;
    }

    /// Writes the rows of the instant `now`: all of them, or none if the table would be too long.
    pub(crate) fn push(&mut self, now: Time, rows: &[R]) {
        if self.error.is_some() || self.omitted_since.is_some() {
            return;
        }
        self.n_rows += rows.len() as u64;
        if self.n_rows > ROWS_MAX {
            self.omitted_since = Some(now);
        } else if let Err(error) = self.write(rows) {
            // The run continues to its end and then reports the error.
            self.writer = None;
            self.error = Some(error);
        }
    }

    fn write(&mut self, rows: &[R]) -> Result<(), TableError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RowWriter::create(&self.file)?),
        };
        rows.iter().try_for_each(|row| writer.push(row))
    }

    /// Completes the table, if there is one. Returns a warning if rows were omitted.
    ///
    /// # Errors
    /// If a row could not be written.
    pub(crate) fn finish(
        mut self,
        metadata: &[(String, String)],
    ) -> Result<Option<Warning>, TableError> {
        self.write_instant();
        match (self.error, self.writer) {
            (Some(error), _) => return Err(error),
            (None, Some(writer)) => writer.finish(metadata).map(|_| ())?,
            (None, None) => {}
        }
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        Ok(self.omitted_since.map(|from| {
            warning!(
                "limited-table",
                "{file} has {rows_max} rows at most, and none of {from_us:.3} us or later; raise \
                 run.rates-us",
                file = name,
                rows_max = ROWS_MAX,
                from_us = from.as_ps() as f64 * 1e-6,
            )
        }))
    }
}
