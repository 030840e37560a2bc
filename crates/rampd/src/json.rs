//! Results and errors of commands with `--json`: an object on one line, whose `schema` has a name
//! and a version (`docs/reference/json.md`).

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

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

/// Ends a command whose arguments are wrong, or that prints its help. With `--json` an error is an
/// object.
pub(crate) fn end_by_usage(error: &clap::Error) -> ExitCode {
    let is_json = std::env::args_os().any(|arg| arg == "--json");
    let exit_code = error.exit_code() as u8;
    if is_json && error.use_stderr() {
        let message = error.to_string();
        let object = object_of_parts(message.trim_end(), "usage", exit_code, Parts::default());
        let _ = writeln!(io::stderr(), "{object}");
    } else {
        let _ = error.print();
    }
    ExitCode::from(exit_code)
}

/// Returns the object of an error, with `null` for parts that it does not have.
pub(crate) fn error_object(error: &Error, exit_code: u8) -> Value {
    let parts = match error {
        Error::Config(ConfigError::Value { file, key, expected, got }) => Parts {
            file: Some(file.to_string_lossy()),
            key: Some(key),
            expected: Some(expected),
            got: Some(got),
            ..Parts::default()
        },
        Error::Config(ConfigError::Read { file, .. }) => {
            Parts { file: Some(file.to_string_lossy()), ..Parts::default() }
        }
        Error::Config(ConfigError::Syntax { file, error }) => {
            let (line, column) = error.place.unzip();
            let (expected, got) = error.fault.values().unzip();
            let (file, key) = (Some(file.to_string_lossy()), Some(&*error.key));
            Parts { file, line, column, key, expected, got }
        }
        Error::Input(error) => {
            let (expected, got) = error.fault.values().unzip();
            Parts {
                file: error.file.as_deref().map(Path::to_string_lossy),
                line: error.line.map(|line| line as usize),
                key: Some(&*error.key).filter(|key| !key.is_empty()),
                expected,
                got,
                ..Parts::default()
            }
        }
        Error::System(_) => Parts::default(),
    };
    object_of_parts(&error.to_string(), error.code(), exit_code, parts)
}

/// Parts of an error; `None` if it does not have one.
#[derive(Default)]
struct Parts<'a> {
    file: Option<Cow<'a, str>>,
    line: Option<usize>,
    column: Option<usize>,
    key: Option<&'a str>,
    expected: Option<&'a str>,
    got: Option<&'a str>,
}

/// Returns the object of an error.
fn object_of_parts(message: &str, code: &str, exit_code: u8, parts: Parts<'_>) -> Value {
    let Parts { file, line, column, key, expected, got } = parts;
    json!({
        "schema": "rampd.error/1",
        "message": message,
        "exit_code": exit_code,
        "code": code,
        "file": file,
        "line": line,
        "column": column,
        "key": key,
        "expected": expected,
        "got": got,
    })
}
