//! System calls that bypass the C library's functions, which this library interposes.

#![allow(unsafe_code, reason = "system calls")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{c_int, c_long, c_void, epoll_event, msghdr, pollfd, timespec};

/// Result of a system call: a number, or an error number.
pub(crate) type SyscallResult = Result<usize, c_int>;

fn answer(returned: c_long) -> SyscallResult {
    usize::try_from(returned).map_err(|_| errno())
}

macro_rules! system {
    ($number:ident $(, $arg:expr)*) => {
        // SAFETY: each function below states why its arguments are valid.
        answer(unsafe { libc::syscall(libc::$number $(, $arg)*) })
    };
}

pub(crate) fn errno() -> c_int {
    // SAFETY: each thread has a separate location in the C library.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// Returns the monotonic clock in ns.
pub(crate) fn now_ns() -> u64 {
    let mut at = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a local value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut at) };
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

pub(crate) fn pid() -> i32 {
    system!(SYS_getpid).map_or(0, |pid| pid as i32)
}

pub(crate) fn yield_now() {
    let _ = system!(SYS_sched_yield);
}

/// Sends bytes without waiting; the signal of a broken connection is not raised if `is_quiet`.
///
/// # Safety
/// `bytes` must be those of a caller, `len` of them; the system checks them.
pub(crate) unsafe fn send(
    fd: c_int,
    bytes: *const c_void,
    len: usize,
    flags: c_int,
) -> SyscallResult {
    let flags = flags | libc::MSG_DONTWAIT;
    let null: *const c_void = std::ptr::null();
    system!(SYS_sendto, fd, bytes, len, flags, null, 0)
}

/// Sends a message without waiting.
///
/// # Safety
/// `message` must point to a message; the system checks its pointers.
pub(crate) unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> SyscallResult {
    system!(SYS_sendmsg, fd, message, flags | libc::MSG_DONTWAIT)
}

/// Copies from a file to a connection.
///
/// # Safety
/// `offset` must be null or that of a caller.
pub(crate) unsafe fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut i64,
    len: usize,
) -> SyscallResult {
    system!(SYS_sendfile, out, from, offset, len)
}

/// Waits for descriptors; without a limit if there is no time.
pub(crate) fn ppoll(fds: &mut [pollfd], nanoseconds: Option<u64>) -> SyscallResult {
    let time = nanoseconds.map(|ns| timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let time: *const timespec = time.as_ref().map_or(std::ptr::null(), |time| time);
    // The descriptors and the time outlive the call; no signals are blocked.
    system!(SYS_ppoll, fds.as_mut_ptr(), fds.len(), time, std::ptr::null::<c_void>(), 8usize)
}

/// Changes the events of an epoll entry; `event` is not used to remove a descriptor.
pub(crate) fn epoll_ctl(epoll: c_int, op: c_int, fd: c_int, event: epoll_event) -> SyscallResult {
    let mut event = event;
    // The event outlives the call.
    system!(SYS_epoll_ctl, epoll, op, fd, &raw mut event)
}

/// Returns the bytes of a TCP connection that its peer has not acknowledged.
pub(crate) fn outq(fd: c_int) -> SyscallResult {
    let mut bytes: c_int = 0;
    // The number is written to a local value.
    system!(SYS_ioctl, fd, libc::TIOCOUTQ, &raw mut bytes)?;
    Ok(bytes.max(0) as usize)
}

pub(crate) fn is_nonblocking(fd: c_int) -> bool {
    let flags = system!(SYS_fcntl, fd, libc::F_GETFL, 0);
    flags.is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}

/// Duplicates a descriptor to a number from `least` on, with close-on-exec.
pub(crate) fn dup_above(fd: c_int, least: c_int) -> Option<c_int> {
    system!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, least).ok().map(|fd| fd as c_int)
}

pub(crate) fn close(fd: c_int) {
    let _ = system!(SYS_close, fd);
}

/// Returns the maximum number of descriptors of the process.
pub(crate) fn fd_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a local value.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur
}

/// Returns the value of a socket's option, a number or a time; `None` if it does not have the
/// option.
pub(crate) fn option<T: Copy + Default>(fd: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as libc::socklen_t;
    // The value is written to a local one of that length. All types below are plain numbers.
    system!(SYS_getsockopt, fd, level, name, &raw mut value, &raw mut len).ok()?;
    Some(value)
}

pub(crate) fn set_option<T: Copy>(fd: c_int, level: c_int, name: c_int, value: T) {
    // The value outlives the call.
    let _ = system!(SYS_setsockopt, fd, level, name, &raw const value, size_of::<T>());
}

/// Returns both addresses of a connection; `None` if it is not connected.
pub(crate) fn addresses(fd: c_int) -> Option<(SocketAddr, SocketAddr)> {
    let address = |is_peer: bool| {
        let mut bytes = [0u8; 28];
        let mut len = bytes.len() as libc::socklen_t;
        let (bytes_at, len_at) = (bytes.as_mut_ptr(), &raw mut len);
        // Both are local, and the system respects the length.
        match is_peer {
            false => system!(SYS_getsockname, fd, bytes_at, len_at),
            true => system!(SYS_getpeername, fd, bytes_at, len_at),
        }
        .ok()?;
        address_of(&bytes)
    };
    Some((address(false)?, address(true)?))
}

/// Returns the address in a `sockaddr_in` or `sockaddr_in6`.
fn address_of(bytes: &[u8; 28]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let ip: IpAddr = match c_int::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]).into(),
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            IpAddr::from(Ipv6Addr::from(octets)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Blocks all signals of the thread; returns those that were blocked before.
pub(crate) fn block_signals() -> u64 {
    let (all, mut before) = (u64::MAX, 0u64);
    // Signal sets of the kernel have eight bytes.
    let how = libc::SIG_SETMASK;
    let _ = system!(SYS_rt_sigprocmask, how, &raw const all, &raw mut before, 8usize);
    before
}

pub(crate) fn restore_signals(before: u64) {
    let none: *mut u64 = std::ptr::null_mut();
    let how = libc::SIG_SETMASK;
    // As `block_signals`.
    let _ = system!(SYS_rt_sigprocmask, how, &raw const before, none, 8usize);
}

/// Returns true if calls are to be restarted after a signal, which is so if all handlers of the
/// process have `SA_RESTART`. The handler that has run cannot be determined.
pub(crate) fn restarts_calls() -> bool {
    (1..65).all(|signal| {
        // SAFETY: plain numbers and addresses, for which zeroes are values.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the action is only read, into a local value.
        let failed = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) } != 0;
        let is_handled = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        failed || !is_handled || action.sa_flags & libc::SA_RESTART != 0
    })
}

/// Maps zeroed memory until the process ends; returns null if there is none.
pub(crate) fn map_zeroed(bytes: usize) -> *mut c_void {
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, -1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the system chooses the address, so that nothing that is mapped is replaced.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
    if at == libc::MAP_FAILED { std::ptr::null_mut() } else { at }
}

/// Calls functions around every fork.
pub(crate) fn at_fork(
    before: unsafe extern "C" fn(),
    parent: unsafe extern "C" fn(),
    child: unsafe extern "C" fn(),
) {
    // SAFETY: the functions live as long as the library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}
