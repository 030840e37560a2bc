//! Connection to the agent.
//!
//! There is one at a time. A later one has a higher number, and state of an earlier one is invalid.
//! Forked processes share it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use libc::c_int;
use rampmeter_gate::{Region, SlotNote, default_socket};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};

use crate::table::OWN;
use crate::{lock, sys};

/// An agent that this process is attached to.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: u64,
    socket: OwnedFd,
    pub(crate) region: Region,
    /// True if the agent has ended, or is unresponsive.
    is_dead: AtomicBool,
    /// The agent's iterations when they were last read, and the time of their last change.
    beats: AtomicU64,
    last_beat_ns: AtomicU64,
}

/// Path of the agent's socket. It is read when the library is loaded, since programs such as nginx
/// clear their environment.
static SOCKET_PATH: OnceLock<PathBuf> = OnceLock::new();

#[used]
#[allow(unsafe_code, reason = "called when the library is loaded")]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        socket_path();
    }
    at_load
};

fn socket_path() -> &'static Path {
    SOCKET_PATH.get_or_init(default_socket)
}

static CURRENT: AtomicPtr<Link> = AtomicPtr::new(null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Time of the last attempt to reach the agent in ns, plus one.
static ATTEMPTED_NS: AtomicU64 = AtomicU64::new(0);
/// Time of the last attempt that has ended, in ns.
static ENDED_NS: AtomicU64 = AtomicU64::new(0);

/// Time between two attempts to reach the agent in ns.
const RETRY_NS: u64 = 1_000_000_000;
/// Timeout of the agent's answer in ns.
const ANSWER_NS: u64 = 500_000_000;
/// Interval in ns at which other threads check for the answer.
const PAUSE_NS: u64 = 100_000;

/// Returns the agent, if there is one. Otherwise retries once per [`RETRY_NS`].
pub(crate) fn link() -> Option<&'static Link> {
    if let Some(link) = current().filter(|link| !link.is_dead.load(SeqCst)) {
        return Some(link);
    }
    let (now, tried) = (sys::now_ns() + 1, ATTEMPTED_NS.load(SeqCst));
    if tried != 0 && now.saturating_sub(tried) < RETRY_NS {
        return await_attachment();
    }
    if ATTEMPTED_NS.compare_exchange(tried, now, SeqCst, SeqCst).is_err() {
        return await_attachment();
    }
    lock::start();
    if !lock::is_own_process() {
        ENDED_NS.store(now, SeqCst);
        return None;
    }
    let link = attach();
    print_state(link.is_some());
    if let Some(link) = link {
        CURRENT.store(Box::into_raw(Box::new(link)), SeqCst);
    }
    ENDED_NS.store(now, SeqCst);
    current().filter(|link| !link.is_dead.load(SeqCst))
}

/// Waits for the attempt of another thread, and returns its result. Without this wait the first
/// bursts of all threads but one would be sent unscheduled.
fn await_attachment() -> Option<&'static Link> {
    let tried = ATTEMPTED_NS.load(SeqCst);
    while ENDED_NS.load(SeqCst) != tried && sys::now_ns() < tried.saturating_add(ANSWER_NS) {
        let _ = sys::ppoll(&mut [], Some(PAUSE_NS));
    }
    current().filter(|link| !link.is_dead.load(SeqCst))
}

#[allow(unsafe_code, reason = "links are never freed")]
fn current() -> Option<&'static Link> {
    // SAFETY: null, or a box that is never freed.
    unsafe { CURRENT.load(SeqCst).as_ref() }
}

/// Prints the state of the agent if `RAMPMETER_CAPTON_VERBOSE` is set.
fn print_state(is_attached: bool) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if std::env::var_os("RAMPMETER_CAPTON_VERBOSE").is_some() && !REPORTED.swap(true, SeqCst) {
        let state = if is_attached { "attached to" } else { "no agent at" };
        let text = format!("rampmeter_capton: {state} {}\n", socket_path().display());
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    }
}

fn attach() -> Option<Link> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    let kept = move_to_high_number(socket);
    let socket = kept.as_fd()?;
    connect(socket, &SocketAddrUnix::new(socket_path()).ok()?).ok()?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
    let mut fds = [libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 }];
    sys::ppoll(&mut fds, Some(ANSWER_NS)).ok()?;
    let memory = RawDescriptor::new(receive(socket)?);
    let region = Region::open(memory.as_fd()?).ok()?;
    let socket = kept.into_inner()?;
    let number = NUMBER.fetch_add(1, SeqCst) + 1;
    let (beats, last_beat_ns) =
        (AtomicU64::new(region.n_iterations()), AtomicU64::new(sys::now_ns()));
    OWN.set(raw(&socket), true);
    Some(Link { number, socket, region, is_dead: AtomicBool::new(false), beats, last_beat_ns })
}

/// Receives the memory that the agent sends.
fn receive(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut bytes = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags).ok()?;
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    })
}

fn raw(fd: &OwnedFd) -> c_int {
    std::os::fd::AsRawFd::as_raw_fd(fd)
}

/// Descriptor that is closed without this library's own `close`, which would lock.
#[derive(Debug)]
pub(crate) struct RawDescriptor(Option<OwnedFd>);

impl RawDescriptor {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(Some(fd))
    }

    pub(crate) fn into_inner(mut self) -> Option<OwnedFd> {
        self.0.take()
    }

    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for RawDescriptor {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            sys::close(fd.into_raw_fd());
        }
    }
}

/// Moves a descriptor to a high number, away from those that programs use.
#[allow(unsafe_code, reason = "a descriptor that has just been made")]
pub(crate) fn move_to_high_number(fd: OwnedFd) -> RawDescriptor {
    let least = (sys::fd_limit() / 2).clamp(64, 1 << 15) as c_int;
    match sys::dup_above(raw(&fd), least) {
        Some(kept) => {
            drop(RawDescriptor::new(fd));
            // SAFETY: no other code has it.
            RawDescriptor::new(unsafe { OwnedFd::from_raw_fd(kept) })
        }
        None => RawDescriptor::new(fd),
    }
}

/// Makes a descriptor the library's own, permanently.
pub(crate) fn register_own(fd: OwnedFd) -> c_int {
    let fd = fd.into_raw_fd();
    OWN.set(fd, true);
    fd
}

impl Link {
    /// Sends a note to the agent; returns false if this fails.
    pub(crate) fn notify(&self, note: SlotNote, gate: Option<BorrowedFd<'_>>) -> bool {
        let (bytes, fds) = (note.encode(), gate.as_slice());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = sendmsg(self.socket.as_fd(), &[IoSlice::new(&bytes)], &mut ancillary, flags);
        if sent.is_err() {
            self.is_dead.store(true, SeqCst);
        }
        sent.is_ok()
    }

    /// Returns the descriptor that hangs up when the agent ends.
    pub(crate) fn fd(&self) -> c_int {
        raw(&self.socket)
    }

    /// Checks the agent. The link has ended if the agent has ended, or has had no iteration for
    /// longer than its patience.
    pub(crate) fn check(&self) {
        let mut fds = [libc::pollfd { fd: self.fd(), events: 0, revents: 0 }];
        let has_ended = sys::ppoll(&mut fds, Some(0)).is_ok_and(|n| n > 0);
        let (beats, now) = (self.region.n_iterations(), sys::now_ns());
        if self.beats.load(SeqCst) != beats {
            // The order matters: a thread that reads the new iteration reads its time as well.
            self.last_beat_ns.store(now, SeqCst);
            self.beats.store(beats, SeqCst);
        }
        let silence = now.saturating_sub(self.last_beat_ns.load(SeqCst));
        if has_ended || silence > self.region.settings().timeout_ns {
            self.is_dead.store(true, SeqCst);
        }
    }
}
