//! Exceptions of Python endpoints, which end a run.
//!
//! Between the endpoint and the start of the run no function can return an error. So the endpoint
//! stores the exception and unwinds. [`rampmeter_exp::catch_violation`] stops the unwinding at the
//! start of the run, and [`take`] returns the exception there.

use std::cell::RefCell;
use std::panic;

use pyo3::PyErr;
use rampmeter_types::{NodeId, Time};

/// An exception, and the call that raised it.
pub(crate) struct Failure {
    /// The call that failed, as in "host 3: on_packet at 12.5 us".
    pub(crate) place: String,
    pub(crate) error: PyErr,
}

thread_local! {
    static FAILURE: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Ends the run of this thread.
pub(super) fn end(node: NodeId, method: &str, now: Time, error: PyErr) -> ! {
    let us = now.as_ps() as f64 / 1e6;
    let place = format!("host {}: {method} at {us} us", node.get());
    FAILURE.set(Some(Failure { place, error }));
    panic::resume_unwind(Box::new("a Python endpoint has failed"))
}

/// Returns the exception that ended the last run of this thread, if one did.
pub(crate) fn take() -> Option<Failure> {
    FAILURE.take()
}
