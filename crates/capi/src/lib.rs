//! Applications of a node that are written in C: [`rampmeter_ring::Port`] behind nine functions.
//! Their header is `include/rampmeter.h`, and what it says of them is said here.

#![allow(unsafe_code, reason = "pointers from C")]
#![allow(non_camel_case_types, reason = "the names are C's")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::time::Duration;

use rampmeter_core::NodeId;
use rampmeter_ring::{
    Completion, Options, Outcome, Port, PortConfig, Received, SubmitError, Submitted,
};

/// A message that was submitted is over.
pub const RM_FINISHED: u32 = 1;
/// A message has arrived.
pub const RM_RECEIVED: u32 = 2;

/// As much is under way as may be: take events, then try again.
pub const RM_ERROR_FULL: c_int = -1;
/// The message is longer than the send arena.
pub const RM_ERROR_TOO_LONG: c_int = -2;
/// The node has died or has sent the program away, and everything has been reported.
pub const RM_ERROR_NODE_GONE: c_int = -3;
/// There is no node, or it refuses.
pub const RM_ERROR_ATTACH: c_int = -4;
/// A null pointer where there must be none.
pub const RM_ERROR_ARGUMENT: c_int = -5;

/// The receiver does not answer.
pub const RM_UNREACHABLE: u32 = 1;
/// The receiver was started again after bytes of the message had left.
pub const RM_PEER_RESTARTED: u32 = 2;
/// No program takes messages of this service or size there.
pub const RM_REFUSED: u32 = 3;
/// No node has this number.
pub const RM_UNKNOWN_PEER: u32 = 4;
/// The message is empty or longer than nodes take.
pub const RM_BAD_SIZE: u32 = 5;
/// This machine's node is being stopped.
pub const RM_STOPPING: u32 = 6;
/// This machine's node has died, or has sent the program away.
pub const RM_NODE_GONE: u32 = 7;
/// The transport, which promises a bound, does not take the message now. Nothing of it was sent.
pub const RM_REJECTED: u32 = 8;
/// Other bytes have arrived than were sent, and were dropped.
pub const RM_CORRUPT: u32 = 9;
/// The receiver could not put the message together: it has another `network.mtu` or transport.
pub const RM_MISMATCH: u32 = 10;

/// A program's access to the node of its machine, for one service. Threads may share it.
pub struct rm_port(Port);

/// A message that has arrived.
pub struct rm_message(#[allow(dead_code, reason = "held until it is dropped")] Received);

/// What a port asks its node for.
#[repr(C)]
pub struct rm_config {
    /// Messages that may be under way, 1 to 65536.
    pub depth: u32,
    /// Bytes for messages that are sent.
    pub send: u64,
    /// Bytes for messages that arrive or are held.
    pub receive: u64,
}

/// What a message may say beside where it goes.
#[repr(C)]
pub struct rm_options {
    /// Nanoseconds in which it is needed, 0 if nobody says.
    pub deadline_ns: u64,
    /// Whom it belongs to, 0 if nobody says.
    pub tenant: u32,
}

/// The answer to a message that was submitted.
#[repr(C)]
pub struct rm_submitted {
    /// Its number, which the event that ends it has too.
    pub ticket: u64,
    /// Nanoseconds within which that event is there, 0 if the transport promises no bound: what
    /// `rm_bound` says of the message.
    pub bound_ns: u64,
}

/// What a port hears.
#[repr(C)]
pub struct rm_event {
    /// `RM_FINISHED` or `RM_RECEIVED`.
    pub kind: u32,
    /// Finished: 0 if the receiver has it, or why not, such as `RM_REFUSED`.
    pub failure: u32,
    /// Finished: the message's ticket.
    pub ticket: u64,
    /// Received: the sending node.
    pub source: u32,
    /// Received: the message, until it is released.
    pub bytes: *const u8,
    /// Received: its size.
    pub size: usize,
    /// Received: what to release.
    pub message: *mut rm_message,
    /// Received: the user of the sending program, or -1 where it is not of this node.
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

/// Attaches to the node whose socket is at `path`, to take the messages of `service`. `config` may
/// be null: 1024 messages, 64 MiB each way. Returns 0 and sets `port`, or `RM_ERROR_ATTACH`.
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
        return fail(RM_ERROR_ARGUMENT, "expected a path and where to put the port, got null");
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

/// Submits a copy of `size` bytes to `service` at node `dst`. Its outcome is told once, by an event
/// with the ticket that is put into `submitted`, within the bound that is put there.
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
        Ok(Submitted { ticket, bound }) => {
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

/// Nanoseconds within which the outcome of a message of `size` bytes is known, from when the node
/// takes it from the submission queue; a node that sleeps is woken to do so at once. 0 if the
/// transport promises no bound for messages of `tenant`. The node reports the outcome by then on
/// its clock. That it and the program must be on a processor to do their parts comes on top.
///
/// # Safety
/// `port` is attached, or null, which has no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_bound(port: *const rm_port, size: usize, tenant: u32) -> u64 {
    // SAFETY: the caller's promise.
    let port = unsafe { port.as_ref() };
    nanoseconds(port.and_then(|rm_port(port)| port.bound(size, tenant)))
}

/// A bound in C: 0 if there is none, and never 0 if there is one.
fn nanoseconds(bound: Option<Duration>) -> u64 {
    bound.map_or(0, |bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1))
}

/// Takes the next event, waiting for it for `timeout_ms`: 0 not to wait, negative for as long as
/// need be. Returns 1 and fills `event`, 0 if there is none, or `RM_ERROR_NODE_GONE`. A message
/// that is received takes room until it is released.
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
        return fail(RM_ERROR_ARGUMENT, "expected a port and where to put the event, got null");
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

/// From now on threads that wait stay awake for at most `most_ns` before they sleep, and offer the
/// processor to others meanwhile; how long they do follows from how soon events come. 100 000 unless
/// something else has been set, 0 for not at all.
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

/// Releases a message that was received; null is none. It may outlive its port.
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

/// A descriptor that becomes readable when there is an event, after `rm_arm` has answered 0. It is
/// the port's: do not read or close it.
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

/// Asks for the descriptor to become readable at the next event. Returns 1 if there may be one
/// already: take all with `rm_next`, then arm again. Otherwise 0.
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

/// Gives the service up; null is none. Messages under way go on; their outcomes are not reported.
///
/// # Safety
/// `port` is attached, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_close(port: *mut rm_port) {
    if !port.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(port) });
    }
}

/// What was wrong with the last call of this thread that returned an error. The text stays until
/// the next such call.
#[unsafe(no_mangle)]
pub extern "C" fn rm_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}
