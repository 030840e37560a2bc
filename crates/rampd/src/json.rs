//! Results and errors of commands with `--json`: an object on one line, whose `schema` has a name
//! and a version (`docs/reference/json.md`).

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::config::ConfigError;
use crate::error::Error;

/// Form in which a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text for people.
    Text,
    /// An object on one line.
    Json,
}

impl Form {
    /// Prints the result of a command: `text`, or `object`.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(crate) fn print(self, text: &str, object: impl FnOnce() -> Value) -> io::Result<()> {
        match self {
            Self::Text => io::stdout().write_all(text.as_bytes()),
            Self::Json => writeln!(io::stdout(), "{}", object()),
        }
    }
}

/// Returns the object of an error, with `null` for parts that it does not have.
pub(crate) fn error_object(error: &Error, exit_code: u8) -> Value {
    let (file, key, expected, got) = match error {
        Error::Config(ConfigError::Value { file, key, expected, got }) => {
            (Some(file), Some(key), Some(expected), Some(got))
        }
        Error::Config(ConfigError::Read { file, .. } | ConfigError::Syntax { file, .. }) => {
            (Some(file), None, None, None)
        }
        Error::Input(_) | Error::System(_) => (None, None, None, None),
    };
    json!({
        "schema": "rampd.error/1",
        "message": error.to_string(),
        "exit_code": exit_code,
        "code": error.code(),
        "file": file,
        "key": key,
        "expected": expected,
        "got": got,
    })
}
