//! Programs that disable system calls: seccomp.
//!
//! A program that installs a filter allows the system calls that it makes itself. Those of this
//! library are not among them, and the system ends a process that makes one. So from then on all
//! functions are those of the C library, and connections of the process are no longer scheduled.
//!
//! Filters that are in force when a program starts, such as those of containers and of service
//! managers, permit the calls of this library. A filter that a program installs by
//! `syscall(SYS_seccomp, ...)` is not detected.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Returns true if the process has disabled system calls.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Acquire)
}

/// Records that the process is about to disable system calls.
pub(crate) fn begin() {
    IS_ON.store(true, Release);
}
