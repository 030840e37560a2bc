//! Errors of a configuration.

use std::fmt;
use std::path::PathBuf;

use rampmeter_types::{TypeError, without_os_error};
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
    #[error("{}: {error}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The place and the fault.
        error: Box<SyntaxError>,
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

/// A fault of a text of TOML, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Line and column, from 1; `None` for the text as a whole.
    pub(crate) place: Option<(usize, usize)>,
    /// Path of the key; may be empty.
    pub(crate) key: String,
    /// The fault.
    pub(crate) fault: Fault,
}

/// A fault of a configuration or of other input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An expected and an actual value.
    Value(TypeError),
    /// A message without values.
    Other(String),
}

impl Fault {
    /// Returns the expected and the actual value, if the fault has them.
    pub(crate) fn values(&self) -> Option<(&str, &str)> {
        match self {
            Self::Value(TypeError { expected, got }) => Some((expected, got)),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(TypeError { expected, got }) => {
                write!(f, "expected {expected}, got {got}")
            }
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.fault.fmt(f)
    }
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
