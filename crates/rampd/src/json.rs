//! Results and errors of commands with `--json`: an object on one line, whose `schema` has a name
//! and a version (`docs/reference/json.md`).

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};

use crate::error::{Error, Fault, InputError};

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
        let (message, parts) = (error.to_string(), usage_error(error));
        let object = object_of_parts(message.trim_end(), "usage", exit_code, Some(&parts));
        let _ = writeln!(io::stderr(), "{object}");
    } else {
        let _ = error.print();
    }
    ExitCode::from(exit_code)
}

/// Returns the parts of an error of arguments.
fn usage_error(error: &clap::Error) -> Box<InputError> {
    let part = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let names = part(ContextKind::InvalidArg).unwrap_or_default();
    let names = names.split(", ").map(name_of).collect::<Vec<_>>().join(", ");
    let got = part(ContextKind::InvalidValue).filter(|got| !got.is_empty());
    let got = got.unwrap_or_else(|| "none".to_owned());
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let got = part(ContextKind::InvalidSubcommand).unwrap_or_default();
            InputError::unexpected("a command of rampd", got).at("COMMAND")
        }
        ErrorKind::UnknownArgument if names.starts_with('-') => {
            InputError::unexpected("a known option", &names).at(&names)
        }
        ErrorKind::UnknownArgument => InputError::unexpected("no further argument", names),
        ErrorKind::MissingRequiredArgument => InputError::unexpected("a value", "none").at(names),
        ErrorKind::TooManyValues => InputError::unexpected("no value", got).at(names),
        ErrorKind::InvalidValue => {
            let listed = part(ContextKind::ValidValue).filter(|values| !values.is_empty());
            let expected = listed.map_or("a value".to_owned(), |values| format!("one of {values}"));
            InputError::unexpected(expected, got).at(names)
        }
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string);
            let reason = reason.unwrap_or_default();
            match reason.strip_prefix("expected ") {
                Some(expected) => InputError::unexpected(expected, got).at(names),
                None => InputError::other(reason).at(names),
            }
        }
        _ => InputError::other("").at(names),
    }
}

/// Returns the name of an argument, without the name of its value: `--port <PORT>`, `<CONFIG>`.
fn name_of(arg: &str) -> &str {
    let name = arg.split_whitespace().next().unwrap_or_default();
    name.trim_end_matches("...").trim_matches(['<', '>'])
}

/// Returns the object of an error, with `null` for parts that it does not have.
pub(crate) fn error_object(error: &Error, exit_code: u8) -> Value {
    let parts = match error {
        Error::Input(parts) => Some(&**parts),
        Error::System(_) => None,
    };
    object_of_parts(&error.to_string(), error.code(), exit_code, parts)
}

/// Returns the object of an error of which `parts` are known.
fn object_of_parts(message: &str, code: &str, exit_code: u8, parts: Option<&InputError>) -> Value {
    let values = parts.and_then(|parts| match &parts.fault {
        Fault::Unexpected { expected, got } => Some((expected, got)),
        Fault::Other(_) => None,
    });
    let (expected, got) = values.unzip();
    json!({
        "schema": "rampd.error/1",
        "message": message,
        "exit_code": exit_code,
        "code": code,
        "file": parts.and_then(|parts| Some(parts.file.as_ref()?.to_string_lossy())),
        "line": parts.and_then(|parts| parts.line),
        "column": parts.and_then(|parts| parts.column),
        "key": parts.map(|parts| &parts.key).filter(|key| !key.is_empty()),
        "expected": expected,
        "got": got,
    })
}
