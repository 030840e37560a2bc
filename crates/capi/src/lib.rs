//! C interface for applications of a node: [`rampmeter_ring::Port`] behind ten functions. Their
//! header `include/rampmeter.h` and its comments are generated from this file.

#![allow(unsafe_code, reason = "pointers from C")]
#![allow(non_camel_case_types, reason = "the names are C's")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::time::Duration;

use rampmeter_ring::{
    Completion, Options, Outcome, Port, PortConfig, ReceivedMessage, Submission, SubmitError,
};
use rampmeter_types::NodeId;

/// A submitted message has completed or failed.
pub const RM_FINISHED: u32 = 1;
/// A message has arrived.
pub const RM_RECEIVED: u32 = 2;

/// The maximum number of messages or bytes is in flight: read events, then retry.
pub const RM_ERROR_FULL: c_int = -1;
/// The message is longer than the send arena.
pub const RM_ERROR_TOO_LONG: c_int = -2;
/// The node has died or has disconnected the program, and everything has been reported.
pub const RM_ERROR_NODE_GONE: c_int = -3;
/// There is no node, or it refuses the program.
pub const RM_ERROR_ATTACH: c_int = -4;
/// An argument is null that must not be.
pub const RM_ERROR_ARGUMENT: c_int = -5;

/// The receiver does not respond.
pub const RM_UNREACHABLE: u32 = 1;
/// The receiver was restarted after bytes of the message had been sent.
pub const RM_PEER_RESTARTED: u32 = 2;
/// No program there receives messages of this service or size.
pub const RM_REFUSED: u32 = 3;
/// No node has this number.
pub const RM_UNKNOWN_PEER: u32 = 4;
/// The message is empty or longer than the maximum.
pub const RM_BAD_SIZE: u32 = 5;
/// This machine's node is being stopped.
pub const RM_STOPPING: u32 = 6;
/// This machine's node has died, or has disconnected the program.
pub const RM_NODE_GONE: u32 = 7;
/// The transport, which promises a bound, does not accept the message now. None of it was sent.
pub const RM_REJECTED: u32 = 8;
/// The bytes that arrived differ from those sent, and were dropped.
pub const RM_CORRUPT: u32 = 9;
/// The receiver could not reassemble the message: its `network.mtu` or transport differs.
pub const RM_MISMATCH: u32 = 10;

/// A program's access to the node of its machine, for one service. Threads may share it.
pub struct rm_port(Port);

/// A message that has arrived.
pub struct rm_message(#[allow(dead_code, reason = "held until it is dropped")] ReceivedMessage);

/// Resources that a port requests from its node.
#[repr(C)]
pub struct rm_config {
    /// Maximum number of messages in flight, 1 to 65536.
    pub depth: u32,
    /// Bytes of the send arena.
    pub send: u64,
    /// Bytes of the receive arena, for messages that arrive or are held.
    pub receive: u64,
}

/// Options of a message.
#[repr(C)]
pub struct rm_options {
    /// Nanoseconds until the message is needed at its receiver, 0 for no deadline.
    pub deadline_ns: u64,
    /// Tenant that the message belongs to, 0 for none.
    pub tenant: u32,
}

/// Result of a submission.
#[repr(C)]
pub struct rm_submitted {
    /// Number of the message, which is also in the event that reports its outcome.
    pub ticket: u64,
    /// Nanoseconds until that event at the latest, 0 if the transport promises no bound: the result
    /// of `rm_bound` for the message.
    pub bound_ns: u64,
}

/// Event of a port.
#[repr(C)]
pub struct rm_event {
    /// `RM_FINISHED` or `RM_RECEIVED`.
    pub kind: u32,
    /// Finished: 0 if the message was delivered, or the reason for the failure, such as
    /// `RM_REFUSED`.
    pub failure: u32,
    /// Finished: the ticket of the message.
    pub ticket: u64,
    /// Received: the sending node.
    pub source: u32,
    /// Received: the bytes of the message, valid until it is released.
    pub bytes: *const u8,
    /// Received: the number of bytes.
    pub size: usize,
    /// Received: the message to release.
    pub message: *mut rm_message,
    /// Received: the user of the sending program, or -1 if it is not of this node.
    pub uid: i64,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

fn fail(code: c_int, text: &str) -> c_int {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    ERROR.with(|error| *error.borrow_mut() = text);
    code
}

/// Attaches to the node whose socket is at `path`, to receive the messages of `service`. `config`
/// may be null: 1024 messages, 64 MiB in each direction. Returns 0 and sets `port`, or
/// `RM_ERROR_ATTACH`.
///
/// # Safety
/// `path` is a string; `config` is null or valid; `port` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_attach(
    path: *const c_char,
    service: u16,
    config: *const rm_config,
    port: *mut *mut rm_port,
) -> c_int {
    if path.is_null() || port.is_null() {
        return fail(RM_ERROR_ARGUMENT, "expected a path and a place for the port, got null");
    }
    // SAFETY: the caller's promise.
    let (path, config) = unsafe { (CStr::from_ptr(path), config.as_ref()) };
    let config = config.map_or_else(PortConfig::default, |c| PortConfig {
        depth: c.depth,
        send: c.send,
        receive: c.receive,
    });
    match Port::attach(OsStr::from_bytes(path.to_bytes()), service, config) {
        Ok(attached) => {
            // SAFETY: the caller's promise.
            unsafe { *port = Box::into_raw(Box::new(rm_port(attached))) };
            0
        }
        Err(error) => fail(RM_ERROR_ATTACH, &error.to_string()),
    }
}

/// Submits a copy of `size` bytes to `service` at node `dst`. Its outcome is reported once, by an
/// event with the ticket that is written to `submitted`, within the bound that is written there.
/// `submitted` may be null, as may `options`. Returns 0, or `RM_ERROR_FULL`, `RM_ERROR_TOO_LONG` or
/// `RM_ERROR_NODE_GONE`.
///
/// # Safety
/// `port` is attached; `bytes` has `size` bytes; `options` is null or valid; `submitted` is null or
/// may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_submit(
    port: *const rm_port,
    dst: u32,
    service: u16,
    bytes: *const c_void,
    size: usize,
    options: *const rm_options,
    submitted: *mut rm_submitted,
) -> c_int {
    // SAFETY: the caller's promise.
    let (port, options) = unsafe { (port.as_ref(), options.as_ref()) };
    let Some(rm_port(port)) = port.filter(|_| size == 0 || !bytes.is_null()) else {
        return fail(RM_ERROR_ARGUMENT, "expected a port and bytes, got null");
    };
    let bytes = match size {
        0 => &[][..],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) },
    };
    let options = options.map_or_else(Options::default, |o| Options {
        deadline: (o.deadline_ns > 0).then(|| Duration::from_nanos(o.deadline_ns)),
        tenant: o.tenant,
    });
    match port.submit_with(NodeId::new(dst), service, bytes, options) {
        Ok(Submission { ticket, bound }) => {
            if !submitted.is_null() {
                let answer = rm_submitted { ticket: ticket.0, bound_ns: nanoseconds(bound) };
                // SAFETY: the caller's promise.
                unsafe { submitted.write(answer) };
            }
            0
        }
        Err(error) => {
            let code = match error {
                SubmitError::Full { .. } | SubmitError::NoRoom { .. } => RM_ERROR_FULL,
                SubmitError::TooLong { .. } => RM_ERROR_TOO_LONG,
                SubmitError::NodeGone(_) => RM_ERROR_NODE_GONE,
            };
            fail(code, &error.to_string())
        }
    }
}

/// Returns the nanoseconds until the outcome of a message of `size` bytes is reported. They count
/// from when the node reads the message from the submission queue; a submission wakes a sleeping
/// node. Returns 0 if the transport promises no bound for messages of `tenant`. The node reports
/// the outcome by then on its clock. The time until node and program are scheduled on a processor
/// is not included.
///
/// # Safety
/// `port` is attached, or null, which has no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_bound(port: *const rm_port, size: usize, tenant: u32) -> u64 {
    // SAFETY: the caller's promise.
    let port = unsafe { port.as_ref() };
    nanoseconds(port.and_then(|rm_port(port)| port.bound(size, tenant)))
}

/// Converts a bound for C: 0 if there is none, and never 0 if there is one.
fn nanoseconds(bound: Option<Duration>) -> u64 {
    bound.map_or(0, |bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1))
}

/// Returns the next event. Waits for `timeout_ms`: 0 does not wait, negative waits without a limit.
/// Returns 1 and fills `event`, 0 if there is none, or `RM_ERROR_NODE_GONE`. A received message
/// occupies memory until it is released.
///
/// # Safety
/// `port` is attached; `event` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_next(
    port: *const rm_port,
    timeout_ms: i64,
    event: *mut rm_event,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(rm_port(port)) = unsafe { port.as_ref() }.filter(|_| !event.is_null()) else {
        return fail(RM_ERROR_ARGUMENT, "expected a port and a place for the event, got null");
    };
    let next = match timeout_ms {
        0 => port.try_next(),
        _ => port.wait(u64::try_from(timeout_ms).ok().map(Duration::from_millis)),
    };
    let empty = rm_event {
        kind: 0,
        failure: 0,
        ticket: 0,
        source: 0,
        bytes: ptr::null(),
        size: 0,
        message: ptr::null_mut(),
        uid: -1,
    };
    let filled = match next {
        Err(error) => return fail(RM_ERROR_NODE_GONE, &error.to_string()),
        Ok(None) => return 0,
        Ok(Some(Completion::Finished { ticket, outcome })) => {
            let failure = match outcome {
                Outcome::Completed => 0,
                Outcome::Failed(failure) => failure.code(),
            };
            rm_event { kind: RM_FINISHED, failure, ticket: ticket.0, ..empty }
        }
        Ok(Some(Completion::Received(received))) => {
            let (source, bytes) = (received.from.get(), received.bytes());
            let (bytes, size) = (bytes.as_ptr(), bytes.len());
            let uid = received.uid.map_or(-1, i64::from);
            let message = Box::into_raw(Box::new(rm_message(received)));
            rm_event { kind: RM_RECEIVED, source, bytes, size, message, uid, ..empty }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { event.write(filled) };
    1
}

/// Sets the maximum duration for which waiting threads poll before they sleep; they yield the
/// processor meanwhile. The actual duration adapts to the intervals between events. 100 000 by
/// default; 0 disables polling.
///
/// # Safety
/// `port` is attached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_set_busy_poll(port: *const rm_port, most_ns: u64) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { port.as_ref() } {
        Some(rm_port(port)) => port.set_busy_poll(Duration::from_nanos(most_ns)),
        None => return fail(RM_ERROR_ARGUMENT, "expected a port, got null"),
    }
    0
}

/// Releases a received message; null is ignored. It may outlive its port.
///
/// # Safety
/// `message` is from an event and has not been released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_release(message: *mut rm_message) {
    if !message.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(message) });
    }
}

/// Returns a descriptor that becomes readable at the next event after `rm_arm` has returned 0. The
/// port owns it: do not read or close it.
///
/// # Safety
/// `port` is attached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_fd(port: *const rm_port) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { port.as_ref() } {
        Some(rm_port(port)) => port.fd().as_raw_fd(),
        None => fail(RM_ERROR_ARGUMENT, "expected a port, got null"),
    }
}

/// Requests that the descriptor becomes readable at the next event. Returns 1 if an event may be
/// pending: read all with `rm_next`, then arm again. Otherwise 0.
///
/// # Safety
/// `port` is attached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_arm(port: *const rm_port) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { port.as_ref() } {
        Some(rm_port(port)) => port.arm().into(),
        None => fail(RM_ERROR_ARGUMENT, "expected a port, got null"),
    }
}

/// Closes the port; null is ignored. Messages in flight continue; their outcomes are not reported.
///
/// # Safety
/// `port` is attached, and no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_close(port: *mut rm_port) {
    if !port.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(port) });
    }
}

/// Returns the meaning of the `failure` of an event, such as that of `RM_REFUSED`; never null.
#[unsafe(no_mangle)]
pub extern "C" fn rm_failure_text(failure: u32) -> *const c_char {
    let text = match failure {
        0 => c"delivered",
        RM_UNREACHABLE => c"the receiver does not respond",
        RM_PEER_RESTARTED => c"the receiver was restarted after bytes of the message had been sent",
        RM_REFUSED => c"no program there receives messages of this service or size",
        RM_UNKNOWN_PEER => c"no node has this number",
        RM_BAD_SIZE => c"the message is empty or longer than the maximum",
        RM_STOPPING => c"this machine's node is being stopped",
        RM_NODE_GONE => c"this machine's node has died, or has disconnected the program",
        RM_REJECTED => c"the transport, which promises a bound, does not accept the message now",
        RM_CORRUPT => c"the bytes that arrived differ from those sent, and were dropped",
        RM_MISMATCH => c"the receiver could not reassemble it; its mtu or transport differs",
        _ => c"the reason is of a later version",
    };
    text.as_ptr()
}

/// Returns the error of this thread's last call that failed. The text stays valid until the next
/// such call.
#[unsafe(no_mangle)]
pub extern "C" fn rm_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}
