//! Ports of applications that are written in Python.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rampmeter_ring::{
    Completion, NodeGone, Options, Outcome, PortConfig, ReceivedMessage, Submission, SubmitError,
};
use rampmeter_types::NodeId;

create_exception!(rampmeter._core, AttachError, PyOSError, "There is no node, or it refuses.");
create_exception!(rampmeter._core, NodeGoneError, PyOSError, "The node is gone.");
create_exception!(rampmeter._core, FullError, PyOSError, "The window of messages is full.");

/// Maximum time for which a call waits before it checks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// An application's access to a node, for one service.
#[pyclass(frozen, module = "rampmeter._core")]
pub(crate) struct Port(Mutex<Option<Arc<rampmeter_ring::Port>>>);

/// Outcome of a message that was sent.
#[pyclass(frozen, get_all, module = "rampmeter._core", name = "Finished")]
pub(crate) struct SendOutcome {
    ticket: u64,
    failure: Option<&'static str>,
}

/// A message that has arrived.
#[pyclass(frozen, module = "rampmeter._core")]
pub(crate) struct Message {
    received: ReceivedMessage,
}

#[pymethods]
impl Message {
    /// Returns the sending node.
    #[getter]
    fn source(&self) -> u32 {
        self.received.from.get()
    }

    /// Returns the user of the sending program, if it is on this node.
    #[getter]
    fn uid(&self) -> Option<u32> {
        self.received.uid
    }

    /// Returns a copy of its bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.received.bytes())
    }

    fn __len__(&self) -> usize {
        self.received.bytes().len()
    }
}

fn gone(error: NodeGone) -> PyErr {
    NodeGoneError::new_err(error.to_string())
}

fn submit_error(error: SubmitError) -> PyErr {
    let text = error.to_string();
    match error {
        SubmitError::Full { .. } | SubmitError::NoRoom { .. } => FullError::new_err(text),
        SubmitError::TooLong { .. } => PyValueError::new_err(text),
        SubmitError::NodeGone(error) => gone(error),
    }
}

fn seconds(value: f64, name: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!("expected {name} of 0 seconds or more, got {value}"))
    })
}

fn object(py: Python<'_>, completion: Completion) -> PyResult<Py<PyAny>> {
    match completion {
        Completion::Finished { ticket, outcome } => {
            let failure = match outcome {
                Outcome::Completed => None,
                Outcome::Failed(failure) => Some(failure.name()),
            };
            Ok(Py::new(py, SendOutcome { ticket: ticket.0, failure })?.into_any())
        }
        Completion::Received(received) => Ok(Py::new(py, Message { received })?.into_any()),
    }
}

impl Port {
    fn port(&self) -> PyResult<Arc<rampmeter_ring::Port>> {
        let port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        port.clone().ok_or_else(|| PyValueError::new_err("the port is closed"))
    }
}

#[pymethods]
impl Port {
    /// Attaches to the node whose socket is at `path`.
    #[staticmethod]
    #[pyo3(signature = (path, service, *, depth, send, receive))]
    fn attach(
        py: Python<'_>,
        path: PathBuf,
        service: u16,
        depth: u32,
        send: u64,
        receive: u64,
    ) -> PyResult<Self> {
        let config = PortConfig { depth, send, receive };
        let port = py.detach(|| rampmeter_ring::Port::attach(path, service, config));
        let port = port.map_err(|error| AttachError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(Some(Arc::new(port)))))
    }

    /// Submits a copy of `data`; returns its ticket and its bound in seconds, if it has one.
    #[pyo3(signature = (dst, service, data, *, deadline=None, tenant=0))]
    fn submit(
        &self,
        py: Python<'_>,
        dst: u32,
        service: u16,
        data: PyBuffer<u8>,
        deadline: Option<f64>,
        tenant: u32,
    ) -> PyResult<(u64, Option<f64>)> {
        let deadline = deadline.map(|value| seconds(value, "a deadline")).transpose()?;
        let (port, options) = (self.port()?, Options { deadline, tenant });
        let mut buffer = port.alloc(data.item_count()).map_err(submit_error)?;
        data.copy_to_slice(py, buffer.bytes_mut())?;
        match port.submit_buffer(NodeId::new(dst), service, buffer, options) {
            Ok(Submission { ticket, bound }) => Ok((ticket.0, bound.map(|b| b.as_secs_f64()))),
            Err((error, _)) => Err(submit_error(error)),
        }
    }

    /// Returns the maximum time, in seconds, until the outcome of a message of `size` bytes is
    /// reported. Returns none if its tenant's messages have no bound.
    #[pyo3(signature = (size, *, tenant=0))]
    fn bound(&self, size: usize, tenant: u32) -> PyResult<Option<f64>> {
        Ok(self.port()?.bound(size, tenant).map(|bound| bound.as_secs_f64()))
    }

    /// Returns the next completion. Waits for it for at most `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    #[expect(clippy::disallowed_methods, reason = "how long a program waits is wall time")]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let start = Instant::now();
        let timeout = timeout.map(|value| seconds(value, "a timeout")).transpose()?;
        loop {
            let port = self.port()?;
            let left = timeout.map_or(SLICE, |t| t.saturating_sub(start.elapsed()).min(SLICE));
            let next = py.detach(|| port.wait_or_signal(left)).map_err(gone)?;
            if let Some(completion) = next {
                return object(py, completion).map(Some);
            }
            py.check_signals()?;
            if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                return Ok(None);
            }
        }
    }

    /// Returns the next completion, if there is one.
    fn try_next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.port()?.try_next().map_err(gone)?;
        next.map(|completion| object(py, completion)).transpose()
    }

    /// Sets the maximum time, in seconds, for which waiting threads poll before they sleep.
    fn set_busy_poll(&self, most: f64) -> PyResult<()> {
        self.port()?.set_busy_poll(seconds(most, "a time to stay awake")?);
        Ok(())
    }

    /// Requests that the descriptor becomes readable at the next completion; true if there is one.
    fn arm(&self) -> PyResult<bool> {
        Ok(self.port()?.arm())
    }

    /// Returns the descriptor.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.port()?.fd().as_raw_fd())
    }

    /// Closes the port and frees its service.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
