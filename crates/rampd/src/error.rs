//! Errors of the commands.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rampmeter_proto::keys::BadKey;
use rampmeter_types::{TypeError, without_os_error};
use thiserror::Error;

use crate::config::{ConfigError, Fault};

/// Reason for which rampd ends.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// A configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An argument, or a file other than a configuration, is invalid.
    #[error(transparent)]
    Input(Box<InputError>),
    /// The system failed.
    #[error("{}", without_os_error(.0))]
    System(#[from] io::Error),
}

impl Error {
    /// Returns the stable name of the kind.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::Input(_) => "bad-input",
            Self::System(_) => "system-failed",
        }
    }

    /// Returns true if the input is at fault.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Config(_) | Self::Input(_))
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

impl From<BadKey> for Error {
    fn from(bad: BadKey) -> Self {
        InputError::unexpected(bad.expected, bad.got).at(bad.key).into()
    }
}

/// Input that is invalid: its place, and the fault.
#[derive(Debug)]
pub(crate) struct InputError {
    /// The file.
    pub(crate) file: Option<PathBuf>,
    /// Line of the file, from 1.
    pub(crate) line: Option<u64>,
    /// Option, key or item of the file; may be empty.
    pub(crate) key: String,
    /// The fault.
    pub(crate) fault: Fault,
}

impl InputError {
    /// Returns the error of an unexpected value.
    pub(crate) fn unexpected(expected: impl Into<String>, got: impl ToString) -> Self {
        Self::new(Fault::Value(TypeError { expected: expected.into(), got: got.to_string() }))
    }

    /// Returns the error with a message that has no values.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Fault::Other(message.into()))
    }

    /// Returns the error of a file that the system cannot read or write.
    pub(crate) fn of_file(file: &Path, error: &io::Error) -> Self {
        Self::other(without_os_error(error)).in_file(file)
    }

    fn new(fault: Fault) -> Self {
        Self { file: None, line: None, key: String::new(), fault }
    }

    /// Returns the error at an option, a key or an item.
    pub(crate) fn at(self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self }
    }

    /// Returns the error on a line.
    pub(crate) fn on_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Returns the error in a file.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key, fault } = self;
        if let Some(file) = file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(line) = line {
            write!(f, "line {line}: ")?;
        }
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        fault.fmt(f)
    }
}

impl std::error::Error for InputError {}
