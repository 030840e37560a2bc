//! `poll` and `select`: a connection that is held is writable when its gate is.

use libc::{EINTR, POLLOUT, POLLWRBAND, POLLWRNORM, c_int, pollfd};

use crate::burst;
use crate::sys::{self, SyscallResult};
use crate::table::{DescriptorKind, TRACKED, entry};

const OUT: i16 = POLLOUT | POLLWRNORM | POLLWRBAND;
/// Number of descriptors for which no memory is allocated.
const INLINE_DESCRIPTORS: usize = 64;

/// Returns the gate of a connection that is held while the program waits to write to it.
fn gate(fd: c_int) -> Option<c_int> {
    let is_scheduled = TRACKED.has(fd) && entry(fd)?.kind() == DescriptorKind::Scheduled;
    if is_scheduled { burst::close_held_gate(fd) } else { None }
}

/// Returns true if any of the descriptors is a connection that may be held.
pub(crate) fn has_scheduled_connection(fds: &[pollfd]) -> bool {
    fds.iter().any(|of| of.events & OUT != 0 && gate(of.fd).is_some())
}

/// Waits as `poll` does, for at most `time` in nanoseconds. `wait` is the system's function.
pub(crate) fn wait(
    fds: &mut [pollfd],
    time: Option<u64>,
    wait: &mut dyn FnMut(&mut [pollfd], Option<u64>) -> SyscallResult,
) -> SyscallResult {
    let until = time.map(|time| sys::now_ns().saturating_add(time));
    let mut few = [pollfd { fd: -1, events: 0, revents: 0 }; 2 * INLINE_DESCRIPTORS];
    let mut many = Vec::new();
    let both = match few.get_mut(..2 * fds.len()) {
        Some(both) => both,
        None => {
            many.resize(2 * fds.len(), pollfd { fd: -1, events: 0, revents: 0 });
            &mut many[..]
        }
    };
    loop {
        let (connections, gates) = both.split_at_mut(fds.len());
        for ((of, connection), at) in fds.iter().zip(&mut *connections).zip(&mut *gates) {
            let gate = if of.events & OUT != 0 { gate(of.fd) } else { None };
            *connection = pollfd { fd: of.fd, events: of.events, revents: 0 };
            *at = pollfd { fd: gate.unwrap_or(-1), events: POLLOUT, revents: 0 };
            if gate.is_some() {
                connection.events &= !OUT;
            }
        }
        let left = until.map(|until| until.saturating_sub(sys::now_ns()));
        let answer = wait(both, left);
        let (connections, _) = both.split_at(fds.len());
        for (of, connection) in fds.iter_mut().zip(connections) {
            of.revents = connection.revents;
        }
        let n = fds.iter().filter(|of| of.revents != 0).count();
        match answer {
            Err(error) => return Err(error),
            Ok(0) => return Ok(0),
            // A gate has opened before the timeout: the connection is polled again.
            Ok(_) if n == 0 && left != Some(0) => {}
            Ok(_) => return Ok(n),
        }
    }
}

/// Sets of `select`, one bit a descriptor.
pub(crate) struct SelectSets<'a> {
    pub(crate) read: Option<&'a mut [u64]>,
    pub(crate) write: Option<&'a mut [u64]>,
    pub(crate) except: Option<&'a mut [u64]>,
}

fn has(set: Option<&[u64]>, fd: usize) -> bool {
    set.and_then(|words| words.get(fd / 64)).is_some_and(|word| word >> (fd % 64) & 1 == 1)
}

impl SelectSets<'_> {
    /// Returns true if a connection that may be held is in the write set, up to `n`.
    pub(crate) fn has_scheduled_connection(&self, n: usize) -> bool {
        let write = self.write.as_deref();
        (0..n).any(|fd| has(write, fd) && gate(fd as c_int).is_some())
    }

    /// Waits as `select` does.
    pub(crate) fn wait(
        self,
        n: usize,
        time: Option<u64>,
        wait: &mut dyn FnMut(&mut [pollfd], Option<u64>) -> SyscallResult,
    ) -> SyscallResult {
        let Self { read, write, except } = self;
        let requested = |fd: usize| {
            let bit = |set: &Option<&mut [u64]>, events| {
                if has(set.as_deref(), fd) { events } else { 0 }
            };
            bit(&read, libc::POLLIN) | bit(&write, POLLOUT) | bit(&except, libc::POLLPRI)
        };
        let all = (0..n).map(|fd| pollfd { fd: fd as c_int, events: requested(fd), revents: 0 });
        let mut fds: Vec<pollfd> = all.filter(|of| of.events != 0).collect();
        match self::wait(&mut fds, time, wait) {
            Err(EINTR) => return Err(EINTR),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        if fds.iter().any(|of| of.revents & libc::POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        let ends = libc::POLLERR | libc::POLLHUP;
        let mut n_ready = 0;
        let mut report = |set: Option<&mut [u64]>, events: i16, also: i16| {
            let Some(set) = set else { return };
            set.fill(0);
            for of in fds.iter().filter(|of| of.events & events != 0) {
                let (fd, is_ready) = (of.fd as usize, of.revents & (events | also) != 0);
                if let (Some(word), true) = (set.get_mut(fd / 64), is_ready) {
                    *word |= 1 << (fd % 64);
                    n_ready += 1;
                }
            }
        };
        report(read, libc::POLLIN, ends);
        report(write, POLLOUT, libc::POLLERR);
        report(except, libc::POLLPRI, 0);
        Ok(n_ready)
    }
}
