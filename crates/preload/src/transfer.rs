//! Sending piece by piece, and waiting in between as a blocking call does.

use libc::{
    EAGAIN, EINTR, POLLERR, POLLHUP, POLLOUT, SO_SNDTIMEO, SOL_SOCKET, c_int, pollfd, timeval,
};

use crate::burst::{self, SendPermission, SendRequest};
use crate::sys::{self, SyscallResult};
use crate::watch;

/// Interval in ns at which a waiting call checks the agent.
const POLL_NS: u64 = 1_000_000_000;

/// Deadline of a waiting call; `None` for never. It is not computed until the call waits.
#[derive(Clone, Copy, Debug)]
struct SendDeadline {
    fd: c_int,
    until: Option<Option<u64>>,
}

impl SendDeadline {
    fn until(&mut self) -> Option<u64> {
        let fd = self.fd;
        *self.until.get_or_insert_with(|| {
            let time: Time = sys::option(fd, SOL_SOCKET, SO_SNDTIMEO)?;
            let ns = time.seconds as u64 * 1_000_000_000 + time.micros as u64 * 1_000;
            (ns > 0).then(|| sys::now_ns().saturating_add(ns))
        })
    }
}

/// A `timeval`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Time {
    seconds: i64,
    micros: i64,
}

const _: () = assert!(size_of::<Time>() == size_of::<timeval>());

/// Sends `len` bytes on a connection. `piece` sends a part, without waiting; its arguments are the
/// bytes sent already and the remaining bytes. Returns `None` if the connection is not scheduled.
pub(crate) fn transfer(
    fd: c_int,
    len: usize,
    dont_wait: bool,
    piece: &mut dyn FnMut(usize, usize) -> SyscallResult,
) -> Option<SyscallResult> {
    let mut way = burst::request_permission(fd, SendRequest::New(len));
    if way == SendPermission::Free {
        return None;
    }
    let dont_wait = dont_wait || sys::is_nonblocking(fd);
    let mut deadline = SendDeadline { fd, until: None };
    let mut done = 0;
    let result = loop {
        let step = match way {
            SendPermission::Held => wait_for_gate(fd, dont_wait, &mut deadline),
            SendPermission::Open | SendPermission::Free => {
                watch::restore(fd);
                match piece(done, len - done) {
                    // The file has ended.
                    Ok(0) => {
                        burst::sent(fd, 0, 0);
                        break Ok(0);
                    }
                    Ok(sent) => {
                        done += sent.min(len - done);
                        burst::sent(fd, sent, len - done);
                        if done == len {
                            break Ok(0);
                        }
                        if dont_wait { Err(EAGAIN) } else { wait(fd, None, &mut deadline) }
                    }
                    Err(EAGAIN) if !dont_wait => wait(fd, None, &mut deadline),
                    Err(error) => Err(error),
                }
            }
        };
        if let Err(error) = step {
            break Err(error);
        }
        way = burst::request_permission(fd, SendRequest::Rest(len - done));
    };
    Some(if done > 0 { Ok(done) } else { result })
}

/// Waits until a connection may send, for calls that cannot be divided.
pub(crate) fn admit(fd: c_int, len: usize, dont_wait: bool) -> Result<(), c_int> {
    let mut request = SendRequest::New(len);
    let mut deadline = SendDeadline { fd, until: None };
    while burst::request_permission(fd, request) == SendPermission::Held {
        wait_for_gate(fd, dont_wait || sys::is_nonblocking(fd), &mut deadline)?;
        request = SendRequest::Rest(len);
    }
    watch::restore(fd);
    Ok(())
}

/// Handles a connection that is held.
fn wait_for_gate(fd: c_int, dont_wait: bool, deadline: &mut SendDeadline) -> Result<(), c_int> {
    match burst::close_held_gate(fd) {
        None => Ok(()),
        Some(gate) if dont_wait => {
            watch::divert(fd, gate);
            Err(EAGAIN)
        }
        Some(gate) => wait(fd, Some(gate), deadline),
    }
}

/// Waits for a gate, or for buffer space on the connection. Also returns if the connection has
/// failed, or after some time.
fn wait(fd: c_int, gate: Option<c_int>, deadline: &mut SendDeadline) -> Result<(), c_int> {
    let until = deadline.until();
    let left = until.map(|until| until.saturating_sub(sys::now_ns()));
    if left == Some(0) {
        return Err(EAGAIN);
    }
    let look = gate.is_some().then_some(POLL_NS);
    let time = match (left, look) {
        (Some(left), Some(look)) => Some(left.min(look)),
        (left, look) => left.or(look),
    };
    let of = |fd: c_int, events| pollfd { fd, events, revents: 0 };
    let connection = of(fd, if gate.is_some() { 0 } else { POLLOUT });
    // Negative numbers are ignored by the system.
    let agent = gate.and(burst::agent_fd()).unwrap_or(-1);
    let mut fds = [connection, of(gate.unwrap_or(-1), POLLOUT), of(agent, 0)];
    match sys::ppoll(&mut fds, time) {
        Err(EINTR) if sys::restarts_calls() => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            burst::check_agent();
            let has_failed = fds[0].revents & (POLLERR | POLLHUP) != 0 && gate.is_some();
            if has_failed { Err(failure(fd)) } else { Ok(()) }
        }
    }
}

/// Returns the error of a call whose connection failed while it was held.
fn failure(fd: c_int) -> c_int {
    let error = sys::option::<c_int>(fd, SOL_SOCKET, libc::SO_ERROR).unwrap_or(0);
    if error == 0 { libc::EPIPE } else { error }
}
