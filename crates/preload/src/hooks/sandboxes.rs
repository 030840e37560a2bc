//! Functions by which a program disables system calls.

#![allow(unsafe_code, reason = "functions of the C library")]

use libc::{PR_SET_SECCOMP, c_int, c_ulong, c_void};

use crate::real::real;
use crate::sandbox;

/// # Safety
/// As `prctl` of the C library, which has up to four arguments. Missing ones are undefined in the C
/// library too.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    if option == PR_SET_SECCOMP {
        sandbox::begin();
    }
    real!(prctl(
        option => c_int, a => c_ulong, b => c_ulong, c => c_ulong, d => c_ulong
    ) -> c_int)
}

/// # Safety
/// As `seccomp_load` of libseccomp.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn seccomp_load(filter: *mut c_void) -> c_int {
    sandbox::begin();
    real!(seccomp_load(filter => *mut c_void) -> c_int)
}
