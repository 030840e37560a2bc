//! Epoll descriptors that connections are in.
//!
//! While a connection is held, epoll waits for its gate in place of `EPOLLOUT`, with the program's
//! own data. A one-shot entry (`EPOLLONESHOT`) is moved only when the program rearms it, since any
//! other change would rearm it.

use std::sync::atomic::Ordering::SeqCst;

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLEXCLUSIVE, EPOLLONESHOT, EPOLLOUT,
    c_int, epoll_event,
};

use crate::lock::{lock, n_forks};
use crate::sys::{self};
use crate::table::{DescriptorState, EpollWatch, entry};

pub(crate) const OUT: u32 = EPOLLOUT as u32;
const ONCE: u32 = EPOLLONESHOT as u32;
/// Flags that the gate's entry copies from the connection's.
const KEPT: u32 = EPOLLET as u32 | ONCE;

impl EpollWatch {
    /// Returns true if a program has registered the connection in this process.
    pub(super) fn is_of(&self, epoll: c_int) -> bool {
        self.epoll.load(SeqCst) == epoll + 1 && self.forks.load(SeqCst) == n_forks()
    }

    pub(super) fn is_used(&self) -> bool {
        self.epoll.load(SeqCst) != 0 && self.forks.load(SeqCst) == n_forks()
    }

    fn is_diverted(&self) -> bool {
        self.is_diverted.load(SeqCst) != 0
    }

    fn wants_out(&self) -> bool {
        let events = self.events.load(SeqCst);
        events & OUT != 0 && events & EPOLLEXCLUSIVE as u32 == 0
    }

    fn event(&self, events: u32) -> epoll_event {
        epoll_event { events, u64: self.data.load(SeqCst) }
    }

    pub(super) fn set(&self, epoll: c_int, event: epoll_event) {
        self.events.store(event.events, SeqCst);
        self.data.store(event.u64, SeqCst);
        self.forks.store(n_forks(), SeqCst);
        self.epoll.store(epoll + 1, SeqCst);
    }

    /// Adds the gate next to the connection.
    pub(super) fn enter_gate(&self, entry: &DescriptorState, gate: c_int) {
        let epoll = self.epoll.load(SeqCst) - 1;
        let event = self.event(OUT | self.events.load(SeqCst) & KEPT);
        if sys::epoll_ctl(epoll, EPOLL_CTL_ADD, gate, event) == Err(libc::EEXIST) {
            let _ = sys::epoll_ctl(epoll, EPOLL_CTL_MOD, gate, event);
        }
        if self.is_diverted.swap(1, SeqCst) == 0 {
            entry.n_diverted.fetch_add(1, SeqCst);
        }
    }

    /// Removes the gate.
    pub(super) fn watch_connection(&self, entry: &DescriptorState) {
        if self.is_diverted.swap(0, SeqCst) == 0 {
            return;
        }
        entry.n_diverted.fetch_sub(1, SeqCst);
        let (epoll, gate) = (self.epoll.load(SeqCst) - 1, entry.gate.load(SeqCst) - 1);
        let _ = sys::epoll_ctl(epoll, EPOLL_CTL_DEL, gate, self.event(0));
    }
}

/// Diverts epoll descriptors to the gate of a connection that is held, after the program has got
/// `EAGAIN`.
pub(crate) fn divert(fd: c_int, gate: c_int) {
    let Some(entry) = entry(fd) else { return };
    let is_due = |watch: &&EpollWatch| watch.is_used() && !watch.is_diverted() && watch.wants_out();
    if !entry.watches.iter().any(|watch| is_due(&watch)) {
        return;
    }
    let _guard = lock();
    for watch in entry.watches.iter().filter(is_due) {
        let events = watch.events.load(SeqCst);
        if events & ONCE != 0 {
            continue;
        }
        let epoll = watch.epoll.load(SeqCst) - 1;
        match sys::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, watch.event(events & !OUT)) {
            Ok(_) => watch.enter_gate(entry, gate),
            // The epoll descriptor is closed, or the number belongs to another connection.
            Err(_) => watch.epoll.store(0, SeqCst),
        }
    }
}

/// Restores the program's own events of a connection that is not held any more.
pub(crate) fn restore(fd: c_int) {
    if let Some(entry) = entry(fd)
        && entry.n_diverted.load(SeqCst) > 0
    {
        let _guard = lock();
        restore_locked(fd, entry);
    }
}

/// Does the same as [`restore`]; the lock must be held.
pub(crate) fn restore_locked(fd: c_int, entry: &DescriptorState) {
    for watch in entry.watches.iter().filter(|watch| watch.is_used() && watch.is_diverted()) {
        watch.watch_connection(entry);
        let events = watch.events.load(SeqCst);
        if events & ONCE == 0 {
            let epoll = watch.epoll.load(SeqCst) - 1;
            let _ = sys::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, watch.event(events));
        }
    }
}
