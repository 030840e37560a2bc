//! Functions that send.

#![allow(unsafe_code, reason = "functions of the C library")]

use libc::{
    MSG_DONTWAIT, MSG_FASTOPEN, MSG_NOSIGNAL, MSG_OOB, MSG_ZEROCOPY, c_int, c_uint, c_void, iovec,
    mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t,
};

use super::{bytes, failed};
use crate::burst;
use crate::real::real;
use crate::table::DescriptorKind;
use crate::transfer::{admit, transfer};
use crate::{sandbox, sys};

/// Flags of calls that are forwarded unchanged.
const SPECIAL: c_int = MSG_OOB | MSG_FASTOPEN | MSG_ZEROCOPY;
/// Maximum number of parts of a message that is copied.
const PARTS: usize = 1024;
/// Maximum bytes of a file that are written to a blocking connection at once: little more than it
/// accepts without waiting.
const FILE_PIECE: usize = 64 << 10;

/// Sends one run of bytes.
fn run(fd: c_int, at: *const c_void, len: usize, flags: c_int) -> Option<ssize_t> {
    if flags & SPECIAL != 0 {
        return None;
    }
    let mut piece = |done: usize, remaining: usize| {
        let no_signal = if done > 0 { MSG_NOSIGNAL } else { 0 };
        // SAFETY: the caller's bytes, from the first one that is not sent yet.
        unsafe { sys::send(fd, at.wrapping_byte_add(done), remaining, flags | no_signal) }
    };
    transfer(fd, len, flags & MSG_DONTWAIT != 0, &mut piece).map(bytes)
}

/// Sends a message of several parts.
///
/// # Safety
/// `message` must be valid, as for `sendmsg`.
unsafe fn parts(fd: c_int, message: *const msghdr, flags: c_int) -> Option<ssize_t> {
    if burst::kind(fd) != DescriptorKind::Scheduled || message.is_null() || flags & SPECIAL != 0 {
        return None;
    }
    // SAFETY: the caller vouches for it.
    let given = unsafe { &*message };
    let n = given.msg_iovlen;
    if n > PARTS || given.msg_iov.is_null() {
        return None;
    }
    // SAFETY: there are that many parts.
    let all = unsafe { std::slice::from_raw_parts(given.msg_iov, n) };
    let len = all.iter().fold(0usize, |sum, part| sum.saturating_add(part.iov_len));
    let dont_wait = flags & MSG_DONTWAIT != 0;
    if given.msg_controllen > 0 {
        // Ancillary data of the first byte must not be sent with later ones.
        return admit(fd, len, dont_wait).err().map(|error| failed(error) as ssize_t);
    }
    let mut copy = [iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS];
    let mut piece = |done: usize, _left: usize| {
        let (mut skip, mut n) = (done, 0);
        for part in all {
            if part.iov_len <= skip && skip > 0 {
                skip -= part.iov_len;
                continue;
            }
            let base = part.iov_base.wrapping_byte_add(skip);
            if let Some(slot) = copy.get_mut(n) {
                *slot = iovec { iov_base: base, iov_len: part.iov_len - skip };
                n += 1;
            }
            skip = 0;
        }
        // SAFETY: a copy of the caller's.
        let mut rest = unsafe { std::ptr::read(message) };
        (rest.msg_iov, rest.msg_iovlen) = (copy.as_mut_ptr(), n);
        let no_signal = if done > 0 { MSG_NOSIGNAL } else { 0 };
        // SAFETY: the remaining parts, which are the caller's.
        unsafe { sys::sendmsg(fd, &rest, flags | no_signal) }
    };
    transfer(fd, len, dont_wait, &mut piece).map(bytes)
}

/// # Safety
/// As `write` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn write(fd: c_int, at: *const c_void, len: size_t) -> ssize_t {
    run(fd, at, len, 0)
        .unwrap_or_else(|| real!(write(fd => c_int, at => *const c_void, len => size_t) -> ssize_t))
}

/// # Safety
/// As `send` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn send(
    fd: c_int,
    at: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    run(fd, at, len, flags).unwrap_or_else(
        || real!(send(fd => c_int, at => *const c_void, len => size_t, flags => c_int) -> ssize_t),
    )
}

/// # Safety
/// As `sendto` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    at: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    run(fd, at, len, flags).unwrap_or_else(|| {
        real!(sendto(
            fd => c_int, at => *const c_void, len => size_t, flags => c_int,
            to => *const sockaddr, to_len => socklen_t
        ) -> ssize_t)
    })
}

/// # Safety
/// As `writev` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn writev(fd: c_int, all: *const iovec, n: c_int) -> ssize_t {
    // SAFETY: plain numbers and addresses, for which zeroes are values.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (all.cast_mut(), n.max(0) as usize);
    // SAFETY: the parts are the caller's.
    unsafe { parts(fd, &message, 0) }
        .unwrap_or_else(|| real!(writev(fd => c_int, all => *const iovec, n => c_int) -> ssize_t))
}

/// # Safety
/// As `sendmsg` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the message is the caller's.
    unsafe { parts(fd, message, flags) }.unwrap_or_else(
        || real!(sendmsg(fd => c_int, message => *const msghdr, flags => c_int) -> ssize_t),
    )
}

/// # Safety
/// As `sendmmsg` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    n: c_uint,
    flags: c_int,
) -> c_int {
    if burst::kind(fd) != DescriptorKind::Scheduled {
        return real!(sendmmsg(
            fd => c_int, messages => *mut mmsghdr, n => c_uint, flags => c_int
        ) -> c_int);
    }
    for idx in 0..n {
        let at = messages.wrapping_add(idx as usize);
        // SAFETY: the caller has that many messages.
        let sent = unsafe { sendmsg(fd, &raw const (*at).msg_hdr, flags) };
        if sent < 0 {
            return if idx > 0 { idx as c_int } else { -1 };
        }
        // SAFETY: as above.
        unsafe { (*at).msg_len = sent as c_uint };
    }
    n as c_int
}

/// # Safety
/// As `sendfile` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    len: size_t,
) -> ssize_t {
    let dont_wait = !sandbox::is_on() && sys::is_nonblocking(out);
    let mut piece = |_done: usize, remaining: usize| {
        let most = if dont_wait { remaining } else { remaining.min(FILE_PIECE) };
        // SAFETY: the offset is the caller's.
        unsafe { sys::sendfile(out, from, offset, most) }
    };
    transfer(out, len, dont_wait, &mut piece).map(bytes).unwrap_or_else(|| {
        real!(sendfile(
            out => c_int, from => c_int, offset => *mut off_t, len => size_t
        ) -> ssize_t)
    })
}

/// # Safety
/// As `sendfile64` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    len: size_t,
) -> ssize_t {
    // SAFETY: the same function, if an offset has 64 bits.
    unsafe { sendfile(out, from, offset, len) }
}

/// # Safety
/// As `splice` of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_offset: *mut off_t,
    out: c_int,
    out_offset: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    // No pipe has a larger capacity.
    if let Err(error) = admit(out, len.min(1 << 20), flags & libc::SPLICE_F_NONBLOCK != 0) {
        return failed(error) as ssize_t;
    }
    real!(splice(
        from => c_int, from_offset => *mut off_t, out => c_int, out_offset => *mut off_t,
        len => size_t, flags => c_uint
    ) -> ssize_t)
}
