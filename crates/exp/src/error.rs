//! Errors of plans, and of runs whose results cannot be written.

use std::fmt;
use std::path::{Path, PathBuf};

use rampmeter_metrics::TableError;
use rampmeter_proto::keys::{BadKey, Choice};
use rampmeter_types::{NameError, without_os_error};
use rampmeter_workload::size::NAMES;
use rampmeter_workload::{SizeError, TraceError, WorkloadError};
use thiserror::Error;

/// Reason why a run has no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A folder or file could not be written.
    #[error("{}: {}", file.display(), without_os_error(source))]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl RunError {
    /// Returns the file and the error of the system, if it is one.
    pub fn system(&self) -> Option<(&Path, &std::io::Error)> {
        match self {
            Self::Table(TableError::Io { file, source }) => Some((Path::new(file), source)),
            Self::Io { file, source } => Some((file, source)),
            Self::Table(_) => None,
        }
    }
}

/// Returns the error of a file or folder that cannot be written.
pub(crate) fn io(file: &Path, source: std::io::Error) -> RunError {
    RunError::Io { file: file.to_owned(), source }
}

/// The error of a plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct PlanError {
    /// The kind of the error.
    pub code: PlanErrorCode,
    /// The file, or another name of the text.
    pub origin: String,
    /// The path to the key, such as `workload.parts[1].load`; empty if the error has none.
    pub key: String,
    /// The problem itself.
    pub problem: Problem,
    /// The place in the text of the plan.
    pub place: Option<Box<SourceLocation>>,
}

/// The kind of an error of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanErrorCode {
    /// The text is not TOML, or has an unknown key or a value of the wrong type.
    Syntax,
    /// A value is impossible, by itself or in combination with others.
    Value,
    /// A file that the plan names cannot be read.
    File,
}

impl PlanErrorCode {
    /// Returns the stable name of the code.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "plan-syntax",
            Self::Value => "plan-value",
            Self::File => "plan-file",
        }
    }
}

/// Expected instead of a file that cannot be read.
pub const READABLE: &str = "a file that can be read";

/// Reason why a plan is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A value other than the expected one.
    Unexpected {
        /// The values that are allowed.
        expected: String,
        /// The value that is there.
        got: String,
    },
    /// A value of a file that the plan names.
    InFile(Box<FileProblem>),
    /// A value that is none of a list of names.
    Unlisted(Box<UnlistedName>),
    /// A name that the decoder of TOML does not know, or a key that it lacks.
    Decoder(Box<DecoderProblem>),
    /// A message that contains an error of the operating system.
    System {
        /// The message.
        message: String,
        /// The message without the number of the error.
        reason: String,
    },
    /// A file that cannot be read, and why.
    Unreadable {
        /// The file.
        file: String,
        /// The reason of the operating system.
        got: String,
    },
    /// Any other problem, as a sentence.
    Other(String),
}

/// A value of another file than the plan, other than the expected one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProblem {
    /// The file; empty until its reader names it.
    pub file: String,
    /// The line or row, from 1.
    pub line: Option<u64>,
    /// The column in the line, from 1.
    pub column: Option<u64>,
    /// The field, key or item there; may be empty.
    pub item: String,
    /// The values that are allowed.
    pub expected: String,
    /// The value that is there.
    pub got: String,
    /// A remark after the value. May be empty.
    pub note: String,
}

impl FileProblem {
    /// Returns the problem as an error of a plan.
    fn boxed(self) -> Problem {
        Problem::InFile(Box::new(self))
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, item, expected, got, note } = self;
        match (&**file, line, column) {
            ("", None, _) => {}
            ("", Some(line), None) => write!(f, "line {line}: ")?,
            ("", Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (file, None, _) => write!(f, "{file}: ")?,
            (file, Some(line), None) => write!(f, "{file}:{line}: ")?,
            (file, Some(line), Some(column)) => write!(f, "{file}:{line}:{column}: ")?,
        }
        if !item.is_empty() {
            write!(f, "{item}: ")?;
        }
        write!(f, "expected {expected}, got {got}{note}")
    }
}

/// A value that is none of a list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedName {
    /// The names that are allowed.
    pub names: Vec<String>,
    /// The name that is there.
    pub name: String,
    /// The value that is there, as the plan has it: quoted if it is a text.
    pub got: String,
}

impl UnlistedName {
    /// Returns the values that are allowed.
    pub fn expected(&self) -> String {
        format!("one of {}", self.names.join(", "))
    }
}

/// A problem that the decoder of TOML found, with the parts of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoderProblem {
    /// The message of the decoder.
    pub message: String,
    /// The name that is unknown, or the key that is missing.
    pub cause: NameError,
    /// The place in another file than the plan, with a colon and a space. May be empty.
    pub before: String,
    /// A note about that file, which begins with a space. May be empty.
    pub after: String,
}

impl DecoderProblem {
    /// Returns the values that are allowed, in the words of other errors.
    pub fn expected(&self) -> String {
        self.cause.expected(|_| "this key".to_owned())
    }
}

impl Problem {
    /// Returns the problem of a message that may contain an error of the operating system.
    pub(crate) fn system(message: String) -> Self {
        let reason = without_os_error(&message);
        if reason == message { Self::Other(message) } else { Self::System { message, reason } }
    }

    /// Returns the problem of an unexpected value. Long numbers have an exponent.
    pub(crate) fn unexpected(expected: impl ToString, got: impl ToString) -> Self {
        let got = got.to_string();
        let got = match got.parse::<f64>() {
            Ok(number) if got.len() > 24 => format!("{number:e}"),
            _ => got,
        };
        Self::Unexpected { expected: expected.to_string(), got }
    }

    /// Returns the problem of a line of another file than the plan.
    pub(crate) fn on_line(line: usize, expected: impl ToString, got: impl ToString) -> Self {
        Self::unexpected(expected, got).at(Some(line), "")
    }

    /// Returns the problem with its place in another file than the plan: the line, and the item
    /// there, which may be empty.
    pub(crate) fn at(self, line: Option<usize>, item: &str) -> Self {
        let line = line.map(|line| line as u64);
        let (expected, got) = match self {
            Self::InFile(mut problem) => {
                problem.line = problem.line.or(line);
                problem.item = match (item, &*problem.item) {
                    (item, "") => item.to_owned(),
                    ("", inner) => inner.to_owned(),
                    (item, inner) => format!("{item}: {inner}"),
                };
                return Self::InFile(problem);
            }
            Self::Unexpected { expected, got } => (expected, got),
            Self::Unlisted(name) => (name.expected(), name.got),
            other => {
                let line = line.map(|line| format!("line {line}"));
                let item = (!item.is_empty()).then(|| item.to_owned());
                return line.into_iter().chain(item).rev().fold(other, Self::after);
            }
        };
        FileProblem { line, item: item.to_owned(), expected, got, ..FileProblem::default() }.boxed()
    }

    /// Returns a problem that is more than two values, after a word for its place.
    fn after(self, place: String) -> Self {
        match self {
            Self::Decoder(mut problem) => {
                problem.before = format!("{place}: {}", problem.before);
                Self::Decoder(problem)
            }
            Self::System { message, reason } => {
                let [message, reason] = [message, reason].map(|text| format!("{place}: {text}"));
                Self::System { message, reason }
            }
            other => Self::Other(format!("{place}: {other}")),
        }
    }

    /// Returns the problem with a remark at its end.
    pub(crate) fn with_note(self, note: &str) -> Self {
        match self {
            Self::Decoder(mut problem) => {
                problem.after += note;
                Self::Decoder(problem)
            }
            Self::Unexpected { .. } | Self::Unlisted(_) => self.at(None, "").with_note(note),
            Self::InFile(mut problem) => {
                problem.note += note;
                Self::InFile(problem)
            }
            other => Self::Other(format!("{other}{note}")),
        }
    }

    /// Returns the problem as one of another file than the plan.
    pub(crate) fn in_other(self, file: &Path) -> Self {
        match self.at(None, "") {
            Self::InFile(mut problem) => {
                // The file that a plan names is named already.
                if problem.file.is_empty() {
                    problem.file = file.display().to_string();
                }
                Self::InFile(problem)
            }
            Self::Unreadable { file, got } => Self::Unreadable { file, got },
            other => other.after(file.display().to_string()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { expected, got } => write!(f, "expected {expected}, got {got}"),
            Self::InFile(problem) => problem.fmt(f),
            Self::Unlisted(name) => {
                write!(f, "expected {}, got {}", name.expected(), name.got)
            }
            Self::Decoder(problem) => {
                let DecoderProblem { message, before, after, .. } = &**problem;
                write!(f, "{before}{message}{after}")
            }
            Self::System { message, .. } => f.write_str(message),
            Self::Unreadable { file, got } => write!(f, "{file}: expected {READABLE}, got {got}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        Self::Other(message.to_owned())
    }
}

/// A place in the text of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, and the text of the line, if the value itself is wrong.
    pub column: Option<(usize, String)>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.before(), self.problem, self.after())
    }
}

impl PlanError {
    /// Returns the place of the error, with a colon and a space; empty if it has none.
    fn before(&self) -> String {
        let mut parts = Vec::new();
        if !self.origin.is_empty() {
            parts.push(self.origin.clone());
        }
        match self.place.as_deref() {
            Some(SourceLocation { line, column: Some((column, _)) }) => {
                parts.push(format!("line {line}, column {column}"));
            }
            Some(SourceLocation { line, column: None }) => parts.push(format!("line {line}")),
            None => {}
        }
        if !self.key.is_empty() {
            parts.push(self.key.clone());
        }
        parts.into_iter().map(|part| part + ": ").collect()
    }

    /// Returns the text of the line, if the error has it.
    fn after(&self) -> String {
        match self.place.as_deref() {
            Some(SourceLocation { column: Some((_, text)), .. }) if !text.is_empty() => {
                format!(" (at: {text})")
            }
            _ => String::new(),
        }
    }

    /// Returns the error of another file than the plan as a problem of the plan.
    pub(crate) fn into_problem(self) -> Problem {
        match self.problem {
            Problem::Decoder(mut problem) => {
                let error = Self { problem: Problem::Other(String::new()), ..self };
                problem.before.insert_str(0, &error.before());
                problem.after += &error.after();
                Problem::Decoder(problem)
            }
            Problem::Unexpected { .. } | Problem::Unlisted(_) => {
                let after = self.after();
                let place = self.place.map(|place| *place);
                let line = place.as_ref().map(|place| place.line);
                let mut problem = self.problem.at(line, &self.key).with_note(&after);
                if let Problem::InFile(problem) = &mut problem {
                    let column = place.and_then(|place| place.column);
                    problem.column = column.map(|(column, _)| column as u64);
                }
                problem
            }
            _ => Problem::Other(self.to_string()),
        }
    }

    /// Returns the error of a value of the plan `origin`.
    pub(crate) fn value(origin: &str, key: &str, problem: Problem) -> Self {
        let code = match problem {
            Problem::Unreadable { .. } => PlanErrorCode::File,
            _ => PlanErrorCode::Value,
        };
        Self { code, origin: origin.to_owned(), key: key.to_owned(), problem, place: None }
    }

    /// Returns the error of a key of the transport.
    pub(crate) fn of_transport(origin: &str, bad: BadKey) -> Self {
        let BadKey { key, expected, got, choice } = bad;
        let problem = match choice {
            Some(choice) => {
                let Choice { names, name } = *choice;
                Problem::Unlisted(Box::new(UnlistedName { names, name, got }))
            }
            None => Problem::unexpected(expected, got),
        };
        Self::value(origin, &key_of(&key), problem)
    }

    /// Returns the error of the plan's workload.
    pub(crate) fn of_workload(origin: &str, error: WorkloadError) -> Self {
        let (key, problem) = match error {
            WorkloadError::Key { key, expected, got } => {
                (format!("workload.{key}"), Problem::unexpected(expected, got))
            }
            WorkloadError::Sizes { key, source } => (format!("workload.{key}"), of_sizes(source)),
            WorkloadError::Trace { key, source } => (format!("workload.{key}"), of_trace(*source)),
            other => ("workload".to_owned(), Problem::Other(other.to_string())),
        };
        Self::value(origin, &key, problem)
    }
}

fn of_sizes(error: SizeError) -> Problem {
    match error {
        SizeError::Point { place, expected, got } => {
            Problem::unexpected(expected, got).at(None, &place)
        }
        SizeError::Read { file, source } => unreadable(file, &source),
        SizeError::UnknownName { got } => {
            let names = NAMES.map(str::to_owned).to_vec();
            let quoted = format!("\"{got}\"");
            Problem::Unlisted(Box::new(UnlistedName { names, name: got, got: quoted }))
        }
        other => Problem::Other(other.to_string()),
    }
}

/// Returns the problem of a trace.
pub(crate) fn of_trace(error: TraceError) -> Problem {
    match error {
        TraceError::Io { file, source } => unreadable(file, &source),
        TraceError::Column { file, expected, got } => {
            Problem::unexpected(format!("a column {expected}"), got).in_other(Path::new(&file))
        }
        TraceError::Unknown { file, column, known } => {
            Problem::unexpected(format!("columns among {known}"), column).in_other(Path::new(&file))
        }
        TraceError::Field { file, place, field, expected, got } => {
            let (file, line) = (file.clone(), Some(place));
            FileProblem { file, line, item: field, expected, got, ..FileProblem::default() }.boxed()
        }
        other => Problem::system(other.to_string()),
    }
}

/// Returns the problem of a file that cannot be read.
pub(crate) fn unreadable(file: String, error: &std::io::Error) -> Problem {
    Problem::Unreadable { file, got: without_os_error(error) }
}

/// Returns the path in a plan of a key of the `transport` table, or of one of several tables:
/// `transport.preset`, `transport[1].preset`.
fn key_of(key: &str) -> String {
    let point = if key.is_empty() || key.starts_with('[') { "" } else { "." };
    format!("transport{point}{key}")
}
