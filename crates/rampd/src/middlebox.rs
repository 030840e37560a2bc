//! `rampd middlebox`: a cable with faults, between two interfaces of one machine.
//!
//! Frames that are received at one interface are sent at the other; some are lost, duplicated or
//! delayed. It emulates network faults, under any transport, and needs CAP_NET_RAW and
//! CAP_NET_ADMIN. The interfaces should have no addresses.

#![allow(unsafe_code, reason = "packet sockets: no safe interface binds them to an interface")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use clap::Args;
use rampmeter_runtime::{Clock, ClockSource, Signals};
use rampmeter_types::{Purpose, Rng, Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::info;

use crate::args::parser;
use crate::error::{Error, InputError};
use crate::run::stop_signals;

/// Arguments of `rampd middlebox`.
#[derive(Debug, Args)]
#[command(after_help = "Example: 1 % loss and 5 % reordering between two virtual cables\n  \
                        rampd middlebox left right --loss 0.01 --reorder 0.05")]
pub(crate) struct MiddleboxArgs {
    /// One interface.
    left: String,
    /// The other interface.
    right: String,
    /// Probability that a frame is lost.
    #[arg(long, default_value_t = 0.0, value_parser = parser::<f64>("a number"))]
    loss: f64,
    /// Probability that a frame is duplicated.
    #[arg(long, default_value_t = 0.0, value_parser = parser::<f64>("a number"))]
    duplicate: f64,
    /// Probability that a frame is delayed, by up to the maximum delay.
    #[arg(long, default_value_t = 0.0, value_parser = parser::<f64>("a number"))]
    reorder: f64,
    /// Maximum delay of a frame in ms.
    #[arg(long, default_value_t = 2.0, value_parser = parser::<f64>("a number"))]
    delay_max_ms: f64,
    /// Seed of the random choices.
    #[arg(long, default_value_t = 1, value_parser = parser::<u64>("a whole number from 0"))]
    seed: u64,
}

/// Maximum length of a frame in bytes: many segments, with the header that the kernel prepends.
const FRAME_MAX: usize = 10 + 14 + 65_536;
/// Maximum number of frames of one iteration, in each direction.
const BATCH: usize = 64;
/// Maximum number of delayed frames; further frames are forwarded at once.
const HELD_MAX: usize = 4_096;
/// Maximum time for which an iteration waits for frames.
const WAIT: Span = Span::from_us(100_000);

/// Runs `rampd middlebox`.
pub(crate) fn run(args: &MiddleboxArgs) -> Result<(), Error> {
    for (name, value) in
        [("loss", args.loss), ("duplicate", args.duplicate), ("reorder", args.reorder)]
    {
        if !(0.0..=1.0).contains(&value) {
            let error = InputError::unexpected("0 to 1", value).at(format!("--{name}"));
            return Err(error.into());
        }
    }
    let delay_max = Span::from_ps((args.delay_max_ms.clamp(0.0, 1e6) * 1e9) as u64);
    let ends = [open("LEFT", &args.left)?, open("RIGHT", &args.right)?];
    let signals = stop_signals()?;
    let mut cable = Cable {
        args,
        delay_max,
        rng: Rng::new(args.seed, 0, Purpose::Fault),
        delayed: BinaryHeap::new(),
        number: 0,
        counts: Counts::default(),
    };
    info!(left = args.left, right = args.right, "forwarding between interfaces");
    cable.work(&ends, &signals)?;
    let Counts { n_forwarded, n_dropped, n_duplicated, n_delayed } = cable.counts;
    info!(n_forwarded, n_dropped, n_duplicated, n_delayed, "stopped forwarding");
    Ok(())
}

/// Counters of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    n_forwarded: u64,
    n_dropped: u64,
    n_duplicated: u64,
    n_delayed: u64,
}

/// A delayed frame: its time, its sequence number, the end at which it is sent, and its bytes.
type DelayedFrame = (Time, u64, usize, Vec<u8>);

struct Cable<'a> {
    args: &'a MiddleboxArgs,
    delay_max: Span,
    rng: Rng,
    delayed: BinaryHeap<Reverse<DelayedFrame>>,
    number: u64,
    counts: Counts,
}

impl Cable<'_> {
    fn work(&mut self, ends: &[OwnedFd; 2], signals: &Signals) -> io::Result<()> {
        let clock = Clock::start(ClockSource::default()).map_err(io::Error::other)?;
        let mut frame = vec![0; FRAME_MAX];
        while !signals.is_stopping() {
            let now = clock.now();
            while self.delayed.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
                let Some(Reverse((_, _, to, bytes))) = self.delayed.pop() else { break };
                send(&ends[to], &bytes);
            }
            let mut is_idle = true;
            for from in 0..2 {
                for _ in 0..BATCH {
                    let Some(len) = receive(&ends[from], &mut frame)? else { break };
                    is_idle = false;
                    self.pass(now, &ends[1 - from], 1 - from, &frame[..len]);
                }
            }
            if is_idle {
                self.wait(ends, now)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, now: Time, end: &OwnedFd, to: usize, frame: &[u8]) {
        if self.rng.bernoulli(self.args.loss) {
            self.counts.n_dropped += 1;
            return;
        }
        self.counts.n_forwarded += 1;
        if self.rng.bernoulli(self.args.duplicate) {
            self.counts.n_duplicated += 1;
            send(end, frame);
        }
        if self.rng.bernoulli(self.args.reorder) && self.delayed.len() < HELD_MAX {
            self.counts.n_delayed += 1;
            self.number += 1;
            let delay = self.delay_max.scale_floor(self.rng.uniform_below(1_000) as u64, 1_000);
            self.delayed.push(Reverse((now + delay, self.number, to, frame.to_vec())));
        } else {
            send(end, frame);
        }
    }

    fn wait(&self, ends: &[OwnedFd; 2], now: Time) -> io::Result<()> {
        let next = self.delayed.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        let ns = next.saturating_since(now).min(WAIT).as_ps() / 1_000;
        let timeout = Timespec { tv_sec: 0, tv_nsec: ns as i64 };
        let mut fds = ends.each_ref().map(|end| PollFd::new(end, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens a socket that sends and receives whole frames of an interface, with any address. `arg` is
/// the argument that names it.
fn open(arg: &str, interface: &str) -> Result<OwnedFd, Error> {
    let failed = |action: &str| {
        let error = io::Error::last_os_error();
        Error::System(io::Error::new(error.kind(), format!("{interface}: {action}: {error}")))
    };
    let unknown = || InputError::unexpected("an interface", format!("{interface:?}")).at(arg);
    let name = CString::new(interface).map_err(|_| unknown())?;
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls; every pointer is to a live value of the length that is passed.
    unsafe {
        let index = libc::if_nametoindex(name.as_ptr());
        if index == 0 {
            return Err(unknown().into());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = libc::socket(libc::AF_PACKET, kind, protocol.into());
        if fd < 0 {
            return Err(failed("cannot open a packet socket (CAP_NET_RAW?)"));
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        if libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) != 0 {
            return Err(failed("cannot bind"));
        }
        let mut all: libc::packet_mreq = std::mem::zeroed();
        all.mr_ifindex = index as i32;
        all.mr_type = libc::PACKET_MR_PROMISC as u16;
        let yes: libc::c_int = 1;
        let set = |name, value: *const libc::c_void, len: usize| {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                name,
                value,
                len as libc::socklen_t,
            )
        };
        let promiscuous = (&raw const all).cast();
        if set(libc::PACKET_ADD_MEMBERSHIP, promiscuous, size_of::<libc::packet_mreq>()) != 0 {
            return Err(failed("cannot enable promiscuous mode"));
        }
        // A header before each frame describes the work that its sender offloads to the interface:
        // checksums, segmentation. It is forwarded with the frame, so that the next sender does
        // that work.
        if set(libc::PACKET_VNET_HDR, (&raw const yes).cast(), size_of::<libc::c_int>()) != 0 {
            return Err(failed("cannot enable headers for offloads (PACKET_VNET_HDR)"));
        }
        // Frames that this program itself sends must not be received.
        if set(libc::PACKET_IGNORE_OUTGOING, (&raw const yes).cast(), size_of::<libc::c_int>()) != 0
        {
            return Err(failed("cannot exclude outgoing frames (PACKET_IGNORE_OUTGOING)"));
        }
        Ok(socket)
    }
}

/// Returns the length of the next frame, if there is one.
fn receive(end: &OwnedFd, frame: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(end.as_fd(), &mut *frame) {
        Ok(len) => Ok(Some(len)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NETDOWN) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Sends a frame. It is lost if the interface is full or down, as on any cable.
fn send(end: &OwnedFd, frame: &[u8]) {
    let _ = rustix::io::write(end.as_fd(), frame);
}
