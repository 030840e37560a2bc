//! Changes of epoll entries by programs.

use std::sync::atomic::Ordering::SeqCst;

use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLEXCLUSIVE, c_int, epoll_event};

use crate::burst;
use crate::lock::lock;
use crate::sys::{self, SyscallResult};
use crate::table::{DescriptorKind, DescriptorState, TRACKED, entry};
use crate::watch::OUT;

/// Handles a program's change of an epoll entry; returns `None` if only the system has to handle
/// it.
pub(crate) fn control(
    epoll: c_int,
    op: c_int,
    fd: c_int,
    event: Option<epoll_event>,
) -> Option<SyscallResult> {
    if burst::kind(fd) == DescriptorKind::Other || !TRACKED.has(fd) {
        return None;
    }
    let entry = entry(fd)?;
    match (op, event) {
        (EPOLL_CTL_DEL, _) => {
            let _guard = lock();
            for watch in entry.watches.iter().filter(|watch| watch.is_of(epoll)) {
                watch.watch_connection(entry);
                watch.epoll.store(0, SeqCst);
            }
            Some(sys::epoll_ctl(epoll, op, fd, epoll_event { events: 0, u64: 0 }))
        }
        (EPOLL_CTL_ADD | EPOLL_CTL_MOD, Some(event)) => Some(enter(entry, epoll, op, fd, event)),
        _ => None,
    }
}

/// Registers a connection for events.
pub(super) fn enter(
    entry: &DescriptorState,
    epoll: c_int,
    op: c_int,
    fd: c_int,
    event: epoll_event,
) -> SyscallResult {
    // Before the lock: closing the gate may detect that there is no agent.
    let wants_out = event.events & OUT != 0 && event.events & EPOLLEXCLUSIVE as u32 == 0;
    let gate = if wants_out { burst::close_held_gate(fd) } else { None };
    let _guard = lock();
    let found = entry.watches.iter().find(|watch| watch.is_of(epoll));
    let watch = found.or_else(|| entry.watches.iter().find(|watch| !watch.is_used()));
    let (Some(watch), true) = (watch, gate.is_some()) else {
        let answer = sys::epoll_ctl(epoll, op, fd, event);
        if let (Some(watch), Ok(_)) = (watch, answer) {
            match found {
                Some(_) => watch.watch_connection(entry),
                // Entries of another process belong to that process.
                None => watch.is_diverted.store(0, SeqCst),
            }
            watch.set(epoll, event);
        }
        return answer;
    };
    let without = epoll_event { events: event.events & !OUT, u64: event.u64 };
    let answer = sys::epoll_ctl(epoll, op, fd, without);
    if let (Some(gate), Ok(_)) = (gate, answer) {
        if found.is_none() {
            watch.is_diverted.store(0, SeqCst);
        }
        watch.set(epoll, event);
        watch.enter_gate(entry, gate);
    }
    answer
}
