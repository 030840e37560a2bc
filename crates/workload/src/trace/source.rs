//! Sources of rows: files and imports of other simulators.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Options, RawRow, TraceError, contents};
use crate::graph::Round;

/// A file to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    /// The file's name in errors.
    pub(crate) name: &'a str,
    pub(crate) options: &'a Options,
    /// Number of hosts of the network; `None` if unknown.
    pub(crate) n_hosts: Option<u32>,
}

impl Source<'_> {
    /// Returns the text of the file.
    pub(crate) fn text(&self) -> Result<String, TraceError> {
        let wrong = |bytes: &[u8]| TraceError::Format {
            file: self.name.to_owned(),
            reason: format!("expected text, got {}", contents::binary(bytes)),
        };
        let bytes = self.bytes()?;
        if contents::has_control(&bytes) {
            return Err(wrong(&bytes));
        }
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.as_bytes()))?;
        Ok(contents::without_mark(&text).to_owned())
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, TraceError> {
        fs::read(self.path).map_err(|source| TraceError::Io { file: self.name.to_owned(), source })
    }
}

/// The rows of a file, and notes about omitted parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Import {
    pub(crate) rows: Vec<RawRow>,
    /// Rounds of collectives, whose nodes are rows.
    pub(crate) rounds: Vec<Round>,
    /// Sentences about omitted parts and likely mistakes.
    pub(crate) notes: Vec<String>,
    /// True if the rows are a graph even without dependencies.
    pub(crate) is_graph: bool,
    /// True if the format does not order its rows by arrival.
    pub(crate) is_unordered: bool,
    /// The file's names of columns, by the fields of rows.
    pub(crate) fields: BTreeMap<&'static str, String>,
}

impl From<Vec<RawRow>> for Import {
    fn from(rows: Vec<RawRow>) -> Self {
        Self { rows, ..Self::default() }
    }
}
