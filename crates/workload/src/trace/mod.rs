//! Traces: flows from files, checked before anything runs.
//!
//! A trace has the columns `arrival_ps` (or `arrival_ns`, `arrival_us`, `arrival_s`), `src`,
//! `dst` and `size_bytes`; a header or schema names them, in any order, among any others. Files
//! may also say how long each flow took and the least it could have taken (`fct_ps`,
//! `ideal_ps`); see [`read_reference`].

mod csv;
mod decimal;
mod number;
mod parquet;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use rampmeter_core::{Bytes, NodeId, Span, Time};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::csv::{write_csv, write_reference_csv};
pub(crate) use self::decimal::parse_ps;
pub use self::parquet::write_parquet;
use crate::flow::Flow;
use crate::import;

/// Why a file is not a trace for this network.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not of its format.
    #[error("{file}: {reason}")]
    Format {
        /// The file.
        file: String,
        /// What the format's reader or writer says.
        reason: String,
    },
    /// A column is missing.
    #[error("{file}: expected a column {expected}, got {got}")]
    Column {
        /// The file.
        file: String,
        /// The column, or what may stand for it.
        expected: String,
        /// The columns there are.
        got: String,
    },
    /// A field is wrong.
    #[error("{file}:{place}: {field}: expected {expected}, got {got}")]
    Field {
        /// The file.
        file: String,
        /// The line of a text file or the row of a table, from 1.
        place: u64,
        /// The field or column.
        field: &'static str,
        /// What is allowed there.
        expected: String,
        /// What is there.
        got: String,
    },
}

/// The formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Comma-separated values with a header, plain or, with the suffix `.gz`, compressed.
    Csv,
    /// An Apache Parquet table.
    Parquet,
    /// The output of YAPS, pHost's simulator, or of dcPIM's; see [`import::yaps`].
    Yaps,
    /// A connection matrix of htsim; see [`import::htsim`].
    Htsim,
    /// A flow file of the HPCC simulator; see [`import::hpcc`].
    Hpcc,
}

impl Format {
    /// The format that the name of `file` suggests: `.csv` and `.csv.gz`, `.parquet`, `.cm` of
    /// htsim. The others have no suffix of their own.
    pub fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?.to_ascii_lowercase();
        if name.ends_with(".csv") || name.ends_with(".csv.gz") {
            Some(Self::Csv)
        } else if name.ends_with(".parquet") {
            Some(Self::Parquet)
        } else if name.ends_with(".cm") {
            Some(Self::Htsim)
        } else {
            None
        }
    }
}

/// What to do with flows that are not in arrival order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Reject the file.
    #[default]
    Require,
    /// Sort them; flows that arrive together keep their order.
    Sort,
}

/// What a trace must satisfy, besides sizes above zero and no flow from a host to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Hosts are numbered below this.
    pub n_hosts: u32,
    /// What to do with flows out of order.
    pub order: Order,
}

/// A flow, and how it went in the run that the file is a record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The flow.
    pub flow: Flow,
    /// How long it took there; `None` if it did not finish or the file does not say.
    pub fct: Option<Span>,
    /// What that study takes as the least it could have taken, if the file says.
    pub ideal: Option<Span>,
}

/// A row as read, before it is checked, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRow {
    pub(crate) place: u64,
    pub(crate) arrival_ps: u64,
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) size_bytes: u64,
    pub(crate) fct_ps: Option<u64>,
    pub(crate) ideal_ps: Option<u64>,
}

/// Reads the flows of `file`.
///
/// # Errors
/// A file that cannot be read, is not of its format or fails a check; the message names file,
/// line or row, and column.
pub fn read(file: &Path, format: Format, check: Check) -> Result<Vec<Flow>, TraceError> {
    let rows = read_reference(file, format, check)?;
    Ok(rows.into_iter().map(|row| row.flow).collect())
}

/// Reads the flows of `file` with what it says about their completion. Errors as [`read`].
///
/// # Errors
/// As [`read`].
pub fn read_reference(
    file: &Path,
    format: Format,
    check: Check,
) -> Result<Vec<ReferenceRow>, TraceError> {
    let name = file.display().to_string();
    let (rows, order) = match format {
        Format::Csv => (csv::read(file, &name)?, check.order),
        Format::Parquet => (parquet::read(file, &name)?, check.order),
        // These simulators print flows as they finish.
        Format::Yaps => (import::yaps::parse(&name, &text(file, &name)?)?, Order::Sort),
        Format::Htsim => (import::htsim::parse(&name, &text(file, &name)?)?, Order::Sort),
        Format::Hpcc => (import::hpcc::parse(&name, &text(file, &name)?)?, check.order),
    };
    if rows.is_empty() {
        let reason = "expected at least one flow, got none".to_owned();
        return Err(TraceError::Format { file: name, reason });
    }
    checked(&name, rows, Check { order, ..check })
}

/// What stands for the column of arrivals, in errors.
const ARRIVAL_EXPECTED: &str = "arrival_ps (or arrival_ns, arrival_us, arrival_s)";
/// What an arrival may be, in errors.
const TIME_EXPECTED: &str = "a time from 0 to 2^63 ps";

/// The columns of `file` that a workload does not use, in their order. Formats without names of
/// columns have none.
///
/// # Errors
/// A file that cannot be read or is not of its format.
pub fn ignored_columns(file: &Path, format: Format) -> Result<Vec<String>, TraceError> {
    let name = file.display().to_string();
    let mut columns = match format {
        Format::Csv => csv::columns(file, &name)?,
        Format::Parquet => parquet::columns(file, &name)?,
        Format::Yaps | Format::Htsim | Format::Hpcc => Vec::new(),
    };
    let arrival = decimal::ARRIVAL_UNITS.iter().find(|(unit, _)| columns.iter().any(|c| c == unit));
    columns.retain(|column| {
        !COLUMNS.contains(&column.as_str()) && arrival.is_none_or(|(used, _)| column != used)
    });
    Ok(columns)
}

/// The columns of workloads beside that of arrivals.
const COLUMNS: [&str; 3] = ["src", "dst", "size_bytes"];

fn text(file: &Path, name: &str) -> Result<String, TraceError> {
    fs::read_to_string(file).map_err(|source| TraceError::Io { file: name.to_owned(), source })
}

/// Applies `check` to rows, in their order.
fn checked(file: &str, rows: Vec<RawRow>, check: Check) -> Result<Vec<ReferenceRow>, TraceError> {
    let mut before = 0;
    let mut flows = Vec::with_capacity(rows.len());
    for row in rows {
        let wrong = |field, expected, got: u64| {
            let (file, place, got) = (file.to_owned(), row.place, got.to_string());
            Err(TraceError::Field { file, place, field, expected, got })
        };
        let host = |id: u64| u32::try_from(id).ok().filter(|&id| id < check.n_hosts);
        let hosts = || format!("a host below {}", check.n_hosts);
        let Some(src) = host(row.src) else { return wrong("src", hosts(), row.src) };
        let Some(dst) = host(row.dst) else { return wrong("dst", hosts(), row.dst) };
        if src == dst {
            return wrong("dst", "a host other than src".to_owned(), row.dst);
        }
        if row.size_bytes == 0 {
            return wrong("size_bytes", "at least 1".to_owned(), 0);
        }
        if check.order == Order::Require && row.arrival_ps < before {
            return wrong(
                "arrival",
                format!("at least {before} ps, the one before"),
                row.arrival_ps,
            );
        }
        before = row.arrival_ps;
        flows.push(ReferenceRow {
            flow: Flow::new(
                Time::from_ps(row.arrival_ps),
                NodeId::new(src),
                NodeId::new(dst),
                Bytes::new(row.size_bytes),
            ),
            fct: row.fct_ps.map(Span::from_ps),
            ideal: row.ideal_ps.map(Span::from_ps),
        });
    }
    flows.sort_by_key(|row| row.flow.arrival);
    Ok(flows)
}
