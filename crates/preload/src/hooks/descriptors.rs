//! Functions that open, duplicate and close descriptors.

#![allow(unsafe_code, reason = "functions of the C library")]

use libc::{c_int, c_uint, sockaddr, socklen_t};

use super::failed;
use crate::burst::forget;
use crate::lock::is_own_process;
use crate::real::real;
use crate::table::{OWN, TRACKED};

/// Clears the state of a descriptor number that has just been reused.
fn renewed(fd: c_int) -> c_int {
    if fd >= 0 {
        forget(fd);
    }
    fd
}

/// Returns true if a descriptor belongs to this library. Programs may still close it.
fn is_own(fd: c_int) -> bool {
    OWN.has(fd) && is_own_process()
}

/// # Safety
/// As `socket` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn socket(family: c_int, kind: c_int, by: c_int) -> c_int {
    renewed(real!(socket(family => c_int, kind => c_int, by => c_int) -> c_int))
}

/// # Safety
/// As `accept` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn accept(
    fd: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    renewed(real!(accept(
        fd => c_int, from => *mut sockaddr, len => *mut socklen_t
    ) -> c_int))
}

/// # Safety
/// As `accept4` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    from: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    renewed(real!(accept4(
        fd => c_int, from => *mut sockaddr, len => *mut socklen_t, flags => c_int
    ) -> c_int))
}

/// # Safety
/// As `close` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_own(fd) {
        return failed(libc::EBADF);
    }
    if fd >= 0 {
        forget(fd);
    }
    real!(close(fd => c_int) -> c_int)
}

/// # Safety
/// As `dup` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    renewed(real!(dup(fd => c_int) -> c_int))
}

/// # Safety
/// As `dup2` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    if is_own(to) {
        return failed(libc::EBUSY);
    }
    if fd != to {
        forget(to);
    }
    real!(dup2(fd => c_int, to => c_int) -> c_int)
}

/// # Safety
/// As `dup3` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if is_own(to) {
        return failed(libc::EBUSY);
    }
    if fd != to {
        forget(to);
    }
    real!(dup3(fd => c_int, to => c_int, flags => c_int) -> c_int)
}

/// # Safety
/// As `close_range` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn close_range(
    first: c_uint,
    last: c_uint,
    flags: c_int,
) -> c_int {
    let call = |first: c_uint, last: c_uint| {
        real!(close_range(
            first => c_uint, last => c_uint, flags => c_int
        ) -> c_int)
    };
    let closes = flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0;
    if first > last || !closes || !is_own_process() {
        return call(first, last);
    }
    TRACKED.range(first, last).for_each(forget);
    let mut next = first;
    for own in OWN.range(first, last).map(|fd| fd as c_uint) {
        if own > next {
            let answer = call(next, own - 1);
            if answer < 0 {
                return answer;
            }
        }
        next = own + 1;
    }
    if next <= last { call(next, last) } else { 0 }
}

/// # Safety
/// As `closefrom` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: any arguments are valid.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}
