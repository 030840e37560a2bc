//! Rows of traces, and errors in them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rampmeter_types::{Span, without_os_error};
use thiserror::Error;

use super::hosts::HostNames;
use crate::flow::Flow;

/// Reason why a file is not a trace for this network.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{file}: {}", without_os_error(source))]
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
        /// The reason, from the format's reader or writer.
        reason: String,
    },
    /// A column is missing.
    #[error("{file}: expected a column {expected}, got {got}")]
    Column {
        /// The file.
        file: String,
        /// The column, or those that may replace it.
        expected: String,
        /// The columns there are.
        got: String,
    },
    /// A column that traces do not have.
    #[error("{file}: expected columns among {known}, got {column}")]
    Unknown {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The columns that a trace may have.
        known: String,
    },
    /// A field is wrong.
    #[error("{file}:{place}: {field}: expected {expected}, got {got}")]
    Field {
        /// The file.
        file: String,
        /// The line of a text file or the row of a table, from 1.
        place: u64,
        /// The field or column.
        field: String,
        /// The values allowed there.
        expected: String,
        /// The value in the file.
        got: String,
    },
}

impl TraceError {
    /// Names the column of the file instead of the field of a row.
    pub(super) fn in_columns(self, fields: &BTreeMap<&'static str, String>) -> Self {
        match self {
            Self::Field { file, place, field, expected, got } => {
                let field = fields.get(&*field).cloned().unwrap_or(field);
                Self::Field { file, place, field, expected, got }
            }
            other => other,
        }
    }
}

/// A flow, and its times in the run that the file records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The flow.
    pub flow: Flow,
    /// Completion time there; `None` if the flow did not finish or the file does not have it.
    pub fct: Option<Span>,
    /// Minimum completion time by that study, if the file has it.
    pub ideal: Option<Span>,
}

/// A row as read, before it is checked, and its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct RawRow {
    pub(crate) place: u64,
    pub(crate) arrival_ps: u64,
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) size_bytes: u64,
    pub(crate) fct_ps: Option<u64>,
    pub(crate) ideal_ps: Option<u64>,
    pub(crate) extra: OptionalFields,
}

/// Optional columns of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalFields {
    pub(crate) flow: Option<u64>,
    pub(crate) after: Vec<u64>,
    pub(crate) compute_ps: u64,
    pub(crate) tenant: u64,
    pub(crate) deadline_ps: Option<u64>,
}

/// Settings of a file beyond its format.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the network's hosts, for files that use them.
    pub hosts: Option<HostNames>,
    /// The file's names of columns, by the names that [this module](super) lists.
    pub columns: BTreeMap<String, String>,
    /// The vector of an algorithm whose file has no sizes.
    pub vector_bytes: Option<u64>,
    /// The file with the groups of ranks that a trace names.
    pub groups: Option<PathBuf>,
}

/// The size of a flow, in errors.
pub(super) const SIZE_EXPECTED: &str = "a whole number of bytes, such as 2000000 or \"2MB\"";
