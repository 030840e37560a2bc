//! Functions that wait for descriptors.

#![allow(unsafe_code, reason = "functions of the C library")]

use libc::{
    c_int, c_void, epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval,
};

use super::{failed, number};
use crate::control;
use crate::ready::{self, SelectSets};
use crate::real::real;
use crate::sys::{self, SyscallResult};

/// Calls the C library's `ppoll`, so that threads may be cancelled while they wait.
fn ppoll_real(fds: &mut [pollfd], time: Option<u64>, signals: *const sigset_t) -> SyscallResult {
    let time = time.map(|ns| timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let time: *const timespec = time.as_ref().map_or(std::ptr::null(), |time| time);
    let (at, n) = (fds.as_mut_ptr(), fds.len() as nfds_t);
    let returned = real!(ppoll(
        at => *mut pollfd, n => nfds_t, time => *const timespec, signals => *const sigset_t
    ) -> c_int);
    usize::try_from(returned).map_err(|_| sys::errno())
}

/// Waits if a connection is held; returns `None` if the system may wait.
///
/// # Safety
/// As `poll` of the C library.
unsafe fn poll_held(
    at: *mut pollfd,
    n: nfds_t,
    time: Option<u64>,
    signals: *const sigset_t,
) -> Option<c_int> {
    if at.is_null() || n == 0 || n > 1 << 16 {
        return None;
    }
    // SAFETY: the caller has that many.
    let fds = unsafe { std::slice::from_raw_parts_mut(at, n as usize) };
    if !ready::has_scheduled_connection(fds) {
        return None;
    }
    let wait = &mut |fds: &mut [pollfd], time| ppoll_real(fds, time, signals);
    Some(number(ready::wait(fds, time, wait)))
}

fn from_timespec(time: *const timespec) -> Option<u64> {
    // SAFETY: null or the caller's.
    let time = unsafe { time.as_ref() }?;
    Some((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

/// # Safety
/// As `poll` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn poll(at: *mut pollfd, n: nfds_t, ms: c_int) -> c_int {
    let time = u64::try_from(ms).ok().map(|ms| ms * 1_000_000);
    // SAFETY: the caller's.
    unsafe { poll_held(at, n, time, std::ptr::null()) }
        .unwrap_or_else(|| real!(poll(at => *mut pollfd, n => nfds_t, ms => c_int) -> c_int))
}

/// # Safety
/// As `ppoll` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ppoll(
    at: *mut pollfd,
    n: nfds_t,
    time: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { poll_held(at, n, from_timespec(time), signals) }.unwrap_or_else(|| {
        real!(ppoll(
            at => *mut pollfd, n => nfds_t, time => *const timespec, signals => *const sigset_t
        ) -> c_int)
    })
}

/// `poll` of programs that were compiled with checks.
///
/// # Safety
/// As `poll` of the C library; there must be room for `n`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn __poll_chk(
    at: *mut pollfd,
    n: nfds_t,
    ms: c_int,
    room: size_t,
) -> c_int {
    let time = u64::try_from(ms).ok().map(|ms| ms * 1_000_000);
    let fits = (n as usize).saturating_mul(size_of::<pollfd>()) <= room;
    // SAFETY: the caller's.
    let held = if fits { unsafe { poll_held(at, n, time, std::ptr::null()) } } else { None };
    held.unwrap_or_else(|| {
        real!(__poll_chk(
            at => *mut pollfd, n => nfds_t, ms => c_int, room => size_t
        ) -> c_int)
    })
}

/// `ppoll` of programs that were compiled with checks.
///
/// # Safety
/// As `ppoll` of the C library; there must be room for `n`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn __ppoll_chk(
    at: *mut pollfd,
    n: nfds_t,
    time: *const timespec,
    signals: *const sigset_t,
    room: size_t,
) -> c_int {
    let fits = (n as usize).saturating_mul(size_of::<pollfd>()) <= room;
    // SAFETY: the caller's.
    let held = if fits { unsafe { poll_held(at, n, from_timespec(time), signals) } } else { None };
    held.unwrap_or_else(|| {
        real!(__ppoll_chk(
            at => *mut pollfd, n => nfds_t, time => *const timespec, signals => *const sigset_t,
            room => size_t
        ) -> c_int)
    })
}

/// Returns the sets of a `select`.
///
/// # Safety
/// Each is null or has room for `n` descriptors.
unsafe fn sets<'a>(
    n: usize,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
) -> SelectSets<'a> {
    let words = n.div_ceil(64);
    // SAFETY: sets are arrays of words of 64 bits here, and the caller vouches for their size.
    let of = |set: *mut fd_set| {
        (!set.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(set.cast(), words) })
    };
    SelectSets { read: of(read), write: of(write), except: of(except) }
}

/// # Safety
/// As `select` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn select(
    n: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    let count = usize::try_from(n).unwrap_or(0);
    // SAFETY: the caller's.
    let all = unsafe { sets(count, read, write, except) };
    // SAFETY: null or the caller's.
    let is_bad = unsafe { time.as_ref() }.is_some_and(|t| t.tv_sec < 0 || t.tv_usec < 0);
    if is_bad || !all.has_scheduled_connection(count) {
        return real!(select(
            n => c_int, read => *mut fd_set, write => *mut fd_set, except => *mut fd_set,
            time => *mut timeval
        ) -> c_int);
    }
    // SAFETY: null or the caller's.
    let given = unsafe { time.as_mut() };
    let ns = given.as_ref().map(|t| {
        let seconds = (t.tv_sec as u64).saturating_mul(1_000_000_000);
        seconds.saturating_add((t.tv_usec as u64).saturating_mul(1_000))
    });
    let until = ns.map(|ns| sys::now_ns().saturating_add(ns));
    let wait = &mut |fds: &mut [pollfd], time| ppoll_real(fds, time, std::ptr::null());
    let answer = all.wait(count, ns, wait);
    if let (Some(given), Some(until)) = (given, until) {
        // Linux returns the remaining time.
        let left = until.saturating_sub(sys::now_ns()) / 1_000;
        *given = timeval { tv_sec: (left / 1_000_000) as i64, tv_usec: (left % 1_000_000) as i64 };
    }
    number(answer)
}

/// # Safety
/// As `pselect` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn pselect(
    n: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    time: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    let count = usize::try_from(n).unwrap_or(0);
    // SAFETY: the caller's.
    let all = unsafe { sets(count, read, write, except) };
    if !all.has_scheduled_connection(count) {
        return real!(pselect(
            n => c_int, read => *mut fd_set, write => *mut fd_set, except => *mut fd_set,
            time => *const timespec, signals => *const sigset_t
        ) -> c_int);
    }
    let wait = &mut |fds: &mut [pollfd], time| ppoll_real(fds, time, signals);
    number(all.wait(count, from_timespec(time), wait))
}

/// # Safety
/// As `epoll_ctl` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn epoll_ctl(
    epoll: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: null or the caller's; it may be unaligned.
    let given = (!event.is_null()).then(|| unsafe { event.read_unaligned() });
    match control::control(epoll, op, fd, given) {
        Some(Ok(_)) => 0,
        Some(Err(error)) => failed(error),
        None => real!(epoll_ctl(
            epoll => c_int, op => c_int, fd => c_int, event => *mut epoll_event
        ) -> c_int),
    }
}

const _: () = assert!(size_of::<*mut c_void>() == 8);
