//! The functions of the C library that this one stands in front of.
//!
//! They may be unwound by the C library, which ends threads that way; nothing here has to be tidied
//! up then.

mod descriptors;
mod sandboxes;
mod sending;
mod waiting;

use libc::{c_int, ssize_t};

use crate::sys::{Answer, set_errno};

/// What a function returns that counts bytes.
fn bytes(answer: Answer) -> ssize_t {
    match answer {
        Ok(n) => n as ssize_t,
        Err(error) => failed(error) as ssize_t,
    }
}

/// What a function returns that counts descriptors.
fn number(answer: Answer) -> c_int {
    match answer {
        Ok(n) => n as c_int,
        Err(error) => failed(error),
    }
}

fn failed(error: c_int) -> c_int {
    set_errno(error);
    -1
}
