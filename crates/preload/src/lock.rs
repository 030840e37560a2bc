//! The library's only lock. It is held for a few system calls that do not wait.
//!
//! Signals are blocked meanwhile, so that no handler of the same thread waits for it. It is locked
//! around a fork, so that no thread that the child does not have holds it in the child.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

use crate::{sandbox, sys};

static TAKEN: AtomicBool = AtomicBool::new(false);
/// Signals that were blocked before, while a fork holds the lock.
static SIGNALS: AtomicU64 = AtomicU64::new(0);
static OWNER: AtomicI32 = AtomicI32::new(0);
static FORKS: AtomicU32 = AtomicU32::new(1);
static READY: AtomicBool = AtomicBool::new(false);

/// Holds the lock until it is dropped.
pub(crate) struct LockGuard(u64);

/// Waits for the lock.
pub(crate) fn lock() -> LockGuard {
    let signals = sys::block_signals();
    take();
    LockGuard(signals)
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        TAKEN.store(false, Release);
        sys::restore_signals(self.0);
    }
}

fn take() {
    while TAKEN.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
        sys::yield_now();
    }
}

/// Installs the counter of forks, once.
pub(crate) fn start() {
    if !READY.swap(true, SeqCst) {
        OWNER.store(sys::pid(), SeqCst);
        sys::at_fork(before_fork, after_fork, in_child);
    }
}

/// Returns true if this process owns its memory. It is false for the child of a `vfork`, which uses
/// its parent's memory until it executes a program. It is also false for a process that has
/// disabled system calls.
pub(crate) fn is_own_process() -> bool {
    !sandbox::is_on() && OWNER.load(SeqCst) == sys::pid()
}

/// Returns the number of forks from the first process to this one.
pub(crate) fn n_forks() -> u32 {
    FORKS.load(SeqCst)
}

extern "C" fn before_fork() {
    let signals = sys::block_signals();
    take();
    SIGNALS.store(signals, SeqCst);
}

extern "C" fn after_fork() {
    let signals = SIGNALS.load(SeqCst);
    TAKEN.store(false, Release);
    sys::restore_signals(signals);
}

extern "C" fn in_child() {
    OWNER.store(sys::pid(), SeqCst);
    FORKS.fetch_add(1, SeqCst);
    after_fork();
}
