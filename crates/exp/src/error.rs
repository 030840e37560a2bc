//! Why a run has no results.

use std::path::{Path, PathBuf};

use rampmeter_metrics::TableError;
use thiserror::Error;

/// Why a run has no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A folder or file could not be written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The error of a file or folder that cannot be written.
pub(crate) fn io(file: &Path, source: std::io::Error) -> RunError {
    RunError::Io { file: file.to_owned(), source }
}
