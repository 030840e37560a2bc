//! Functions that this library interposes.

#![allow(unsafe_code, reason = "functions of the C library, found by name")]

use std::ffi::CStr;
use std::mem::transmute_copy;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use libc::{c_int, c_void};

/// Function that is resolved at its first call.
pub(crate) struct LibcFunction {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl LibcFunction {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(null_mut()) }
    }

    /// Returns the C library's function, as a function of the type `F`; `None` if the C library has
    /// none of that name.
    ///
    /// # Safety
    /// `F` must be a pointer to functions of that name's type.
    pub(crate) unsafe fn get<F: Copy>(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut found = self.found.load(Acquire);
        if found.is_null() {
            // SAFETY: the name ends with a zero byte.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.found.store(found, Release);
        }
        // SAFETY: the caller vouches for the type, whose size is a pointer's.
        (!found.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&found) })
    }
}

/// Calls the C library's function of that name; returns `ENOSYS` if there is none.
macro_rules! real {
    ($name:ident($($arg:expr => $kind:ty),*) -> $ret:ty) => {{
        static REAL: $crate::real::LibcFunction = $crate::real::LibcFunction::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        );
        type Function = unsafe extern "C-unwind" fn($($kind),*) -> $ret;
        // SAFETY: the type is that of the function in the C library's headers.
        match unsafe { REAL.get::<Function>() } {
            // SAFETY: the arguments are those of our caller, or as valid.
            Some(function) => unsafe { function($($arg),*) },
            None => $crate::real::missing() as $ret,
        }
    }};
}
pub(crate) use real;

pub(crate) fn missing() -> c_int {
    crate::sys::set_errno(libc::ENOSYS);
    -1
}
