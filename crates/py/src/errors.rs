//! Errors of Python, with their parts as attributes.

use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use rampmeter_exp::{
    CollectError, ConvertError, FileProblem, InvariantViolation, PlanErrorCode, Problem, READABLE,
    RunError, ValidPlan,
};
use rampmeter_types::{NameError, Transport, without_os_error};

use crate::scripted::ScriptedTransport;
use crate::scripted::failure::{self, Failure};

create_exception!(rampmeter._core, PlanError, PyValueError, "A plan or trace that cannot be used.");
create_exception!(rampmeter._core, ResultError, PyOSError, "Results that cannot be written.");

create_exception!(
    rampmeter._core,
    InternalError,
    PyException,
    "An invariant of the simulator does not hold: a mistake in it, not in a plan."
);

create_exception!(
    rampmeter._core,
    EndpointError,
    PyException,
    "A Python endpoint raised an exception, or broke a rule that the ledger checks."
);

/// Code of errors of the operating system.
const FILE_ACCESS: &str = "file-access";

/// Returns an error of Python that has its message as problem, and neither a file nor a key.
pub(super) fn plan_error(error: impl ToString) -> PyErr {
    let problem = error.to_string();
    let raised = PlanError::new_err(problem.clone());
    let set = Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("code", PlanErrorCode::Value.name())?;
        value.setattr("problem", problem)
    });
    set.map_or_else(|error| error, |()| raised)
}

/// The attributes of `PlanError` and `ResultError`; `None` if an error does not have one.
pub(super) const ATTRIBUTES: [&str; 16] = [
    "code",
    "file",
    "key",
    "problem",
    "expected",
    "got",
    "line",
    "column",
    "data_file",
    "data_line",
    "_source",
    "_name",
    "_names",
    "_missing",
    "_before",
    "_after",
];

/// Returns an error of Python that has the parts of a plan's error as attributes.
pub(super) fn error_of_plan(error: &rampmeter_exp::PlanError) -> PyErr {
    let raised = PlanError::new_err(error.to_string());
    let (expected, got) = expected_and_got(&error.problem).unzip();
    let text = match &error.problem {
        Problem::System { reason, .. } => reason.clone(),
        problem => problem.to_string(),
    };
    let line = error.place.as_ref().map(|place| place.line);
    let column = error.place.as_ref().and_then(|place| place.column.as_ref());
    let set = Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("code", error.code.name())?;
        value.setattr("key", &error.key)?;
        value.setattr("problem", text)?;
        value.setattr("expected", expected)?;
        value.setattr("got", got)?;
        value.setattr("line", line)?;
        value.setattr("column", column.map(|(column, _)| *column))?;
        value.setattr("_source", column.map(|(_, text)| text))?;
        if let Problem::InFile(problem) = &error.problem {
            value.setattr("data_file", &problem.file)?;
            value.setattr("data_line", problem.line)?;
        }
        set_names(value, &error.problem)
    });
    set.map_or_else(|error| error, |()| raised)
}

/// Returns the values that are allowed and the one that is there.
fn expected_and_got(problem: &Problem) -> Option<(String, &str)> {
    match problem {
        Problem::Unexpected { expected, got } => Some((expected.clone(), got)),
        Problem::InFile(problem) => Some((problem.expected.clone(), &problem.got)),
        Problem::Unreadable { got, .. } => Some((READABLE.to_owned(), got)),
        Problem::Unlisted(name) => Some((name.expected(), &name.got)),
        Problem::Decoder(problem) => Some((problem.expected(), problem.cause.got())),
        Problem::System { .. } | Problem::Other(_) => None,
    }
}

/// Sets the attributes from which `rampmeter.text.decoder_errors` names the nearest name.
fn set_names(error: &Bound<'_, PyBaseException>, problem: &Problem) -> PyResult<()> {
    match problem {
        Problem::Unlisted(unlisted) => {
            error.setattr("_name", &unlisted.name)?;
            error.setattr("_names", &unlisted.names)
        }
        Problem::Decoder(problem) => {
            error.setattr("_before", &problem.before)?;
            error.setattr("_after", &problem.after)?;
            match &problem.cause {
                NameError::Unknown { name, names } => {
                    error.setattr("_name", name)?;
                    error.setattr("_names", names)
                }
                NameError::Missing { key } => error.setattr("_missing", key),
            }
        }
        _ => Ok(()),
    }
}

/// Returns the error of a run that has broken off.
pub(super) fn broken_error(py: Python<'_>, broken: &InvariantViolation, plan: &ValidPlan) -> PyErr {
    let seed = plan.plan().seed;
    if let Some(Failure { place, error }) = failure::take() {
        // As Python prints an exception: `ValueError: what is wrong`.
        let message = format!("with seed {seed}, {place}: {error}");
        let outer = EndpointError::new_err(message);
        outer.set_cause(py, Some(error));
        return outer;
    }
    if plan.plan().transport.name() == ScriptedTransport::NAME && broken.is_of_ledger {
        let rule = "a message must be delivered before it is completed";
        return EndpointError::new_err(format!("the ledger found: {} ({rule})", broken.message));
    }
    InternalError::new_err(format!(
        "internal error, with seed {seed}: {broken}; please report the plan"
    ))
}

/// Returns the error of results that could not be written, with its file and reason.
pub(super) fn run_error(error: &RunError) -> PyErr {
    match error.system() {
        Some((file, source)) => system_error(file, source),
        None => ResultError::new_err(error.to_string()),
    }
}

/// Returns an error of the operating system about a file.
fn system_error(file: &Path, source: &io::Error) -> PyErr {
    let reason = without_os_error(source);
    let raised = ResultError::new_err(format!("{}: {reason}", file.display()));
    let set = Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("code", FILE_ACCESS)?;
        value.setattr("file", file.display().to_string())?;
        value.setattr("problem", reason)?;
        value.setattr("errno", source.raw_os_error())
    });
    set.map_or_else(|error| error, |()| raised)
}

/// Returns the error of a file that cannot be converted: its place is in the source or the target.
pub(super) fn convert_error(error: &ConvertError) -> PyErr {
    let problem = match error {
        ConvertError::Io { file, source } => return system_error(file, source),
        ConvertError::Input(problem) => problem,
        other => return plan_error(other),
    };
    let raised = plan_error(problem);
    let (expected, got) = expected_and_got(problem).unzip();
    let set = Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("expected", expected)?;
        value.setattr("got", got)?;
        match problem {
            Problem::InFile(problem) => {
                let FileProblem { file, line, column, item, expected, got, note } = &**problem;
                value.setattr("file", (!file.is_empty()).then_some(file))?;
                value.setattr("line", line)?;
                value.setattr("column", column)?;
                value.setattr("key", item)?;
                value.setattr("problem", format!("expected {expected}, got {got}{note}"))
            }
            Problem::Unreadable { file, .. } => value.setattr("file", file),
            _ => Ok(()),
        }
    });
    set.map_or_else(|error| error, |()| raised)
}

/// Returns the error of the logs of a run on hosts, or of its results.
pub(super) fn collect_error(error: &CollectError) -> PyErr {
    match error {
        CollectError::Run(error) => run_error(error),
        other => ResultError::new_err(other.to_string()),
    }
}
