//! Errors of a configuration.

use std::path::PathBuf;

use rampmeter_types::without_os_error;
use thiserror::Error;

/// Reason for which a configuration is invalid: place, expected and actual value.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {}", file.display(), without_os_error(source))]
    Read {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a value of the wrong type.
    #[error("{}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line, column and fault.
        message: String,
    },
    /// A value is invalid.
    #[error("{}: {key}: expected {expected}, got {got}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// Path of the key.
        key: String,
        /// Expected value.
        expected: String,
        /// Actual value.
        got: String,
    },
}

impl ConfigError {
    /// Returns the stable name of the kind.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "configuration-file",
            Self::Syntax { .. } => "configuration-syntax",
            Self::Value { .. } => "configuration-value",
        }
    }
}
