//! Functions of the C library that this one interposes.
//!
//! The C library may unwind them to end threads. They have nothing to clean up then.

mod descriptors;
mod sandboxes;
mod sending;
mod waiting;

use libc::{c_int, ssize_t};

use crate::sys::{SyscallResult, set_errno};

/// Returns the result of a function that counts bytes.
fn bytes(answer: SyscallResult) -> ssize_t {
    match answer {
        Ok(n) => n as ssize_t,
        Err(error) => failed(error) as ssize_t,
    }
}

/// Returns the result of a function that counts descriptors.
fn number(answer: SyscallResult) -> c_int {
    match answer {
        Ok(n) => n as c_int,
        Err(error) => failed(error),
    }
}

fn failed(error: c_int) -> c_int {
    set_errno(error);
    -1
}
