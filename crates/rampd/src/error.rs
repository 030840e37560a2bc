//! Errors of the commands.
//!
//! Errors of input are data: the place, and the expected and the actual value. The line for people
//! and the object of `--json` are both made from them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rampmeter_proto::keys::BadKey;
use rampmeter_types::without_os_error;
use thiserror::Error;

/// Reason for which rampd ends.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// An argument, a configuration or another file is invalid.
    #[error("{0}")]
    Input(#[from] Box<InputError>),
    /// The system failed.
    #[error("{}", without_os_error(.0))]
    System(#[from] io::Error),
}

impl Error {
    /// Returns the stable name of the kind.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Input(error) => error.code.name(),
            Self::System(_) => "system-failed",
        }
    }

    /// Returns true if the input is at fault.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Input(_))
    }
}

impl From<BadKey> for Error {
    fn from(bad: BadKey) -> Self {
        Self::Input(bad.into())
    }
}

/// Kind of an error of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputErrorCode {
    /// An argument, or a file other than a configuration, is invalid, or files disagree.
    Input,
    /// A configuration, or a file of keys that it names, cannot be read.
    File,
    /// A configuration is not TOML, or has an unknown key or a value of the wrong type.
    Syntax,
    /// A value of a configuration is impossible.
    Value,
}

impl InputErrorCode {
    /// Returns the stable name.
    fn name(self) -> &'static str {
        match self {
            Self::Input => "bad-input",
            Self::File => "configuration-file",
            Self::Syntax => "configuration-syntax",
            Self::Value => "configuration-value",
        }
    }
}

/// Reason for which input is invalid: place, expected and actual value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputError {
    /// Kind of the error.
    pub(crate) code: InputErrorCode,
    /// The file; `None` for arguments.
    pub(crate) file: Option<PathBuf>,
    /// Line in the file, from 1.
    pub(crate) line: Option<u64>,
    /// Column in the line, in characters from 1.
    pub(crate) column: Option<u64>,
    /// Path of a key, name of a column of a table, or an option; empty if there is none.
    pub(crate) key: String,
    /// The fault there.
    pub(crate) fault: Fault,
}

/// A fault of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A value other than the expected one.
    Unexpected {
        /// Expected value.
        expected: String,
        /// Actual value.
        got: String,
    },
    /// Any other fault, as a text.
    Other(String),
}

impl InputError {
    /// Returns the error of an unexpected value.
    pub(crate) fn unexpected(expected: impl ToString, got: impl ToString) -> Box<Self> {
        Self::new(Fault::Unexpected { expected: expected.to_string(), got: got.to_string() })
    }

    /// Returns the error with a text that has no expected and actual value.
    pub(crate) fn other(text: impl ToString) -> Box<Self> {
        Self::new(Fault::Other(text.to_string()))
    }

    /// Returns the error of a file that cannot be read, or is not UTF-8.
    pub(crate) fn unreadable(error: &io::Error) -> Box<Self> {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::unexpected("text in UTF-8", "other bytes"),
            _ => Self::unexpected("a file that can be read", without_os_error(error)),
        }
    }

    /// Returns the error of a file or folder that cannot be written.
    pub(crate) fn unwritable(error: &io::Error) -> Box<Self> {
        Self::unexpected("a path that can be written", without_os_error(error))
    }

    /// Returns the error of a fault without a place.
    pub(crate) fn new(fault: Fault) -> Box<Self> {
        let (code, key) = (InputErrorCode::Input, String::new());
        Box::new(Self { code, file: None, line: None, column: None, key, fault })
    }

    /// Returns the error with a key, a column of a table or an option.
    pub(crate) fn at(mut self: Box<Self>, key: impl ToString) -> Box<Self> {
        self.key = key.to_string();
        self
    }

    /// Returns the error with a line, from 1.
    pub(crate) fn on_line(mut self: Box<Self>, line: u64) -> Box<Self> {
        self.line = Some(line);
        self
    }

    /// Returns the error with a column in its line, from 1.
    pub(crate) fn in_column(mut self: Box<Self>, column: u64) -> Box<Self> {
        self.column = Some(column);
        self
    }

    /// Returns the error with a file.
    pub(crate) fn in_file(mut self: Box<Self>, file: &Path) -> Box<Self> {
        self.file = Some(file.to_owned());
        self
    }

    /// Returns the error as one of another kind.
    pub(crate) fn with_code(mut self: Box<Self>, code: InputErrorCode) -> Box<Self> {
        self.code = code;
        self
    }
}

impl From<BadKey> for Box<InputError> {
    fn from(bad: BadKey) -> Self {
        let key = format!("transport.{}", bad.key);
        InputError::unexpected(bad.expected, bad.got).at(key).with_code(InputErrorCode::Value)
    }
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, fault, .. } = self;
        if let Some(file) = file {
            write!(f, "{}: ", file.display())?;
        }
        match (line, column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            (None, _) => {}
        }
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        match fault {
            Fault::Unexpected { expected, got } => write!(f, "expected {expected}, got {got}"),
            Fault::Other(text) => f.write_str(text),
        }
    }
}
