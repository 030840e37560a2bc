//! Processor cost of a UDP packet through io_uring, compared with `sendmmsg` and `recvmmsg`.
//!
//! `cargo run --release -p rampmeter-host-bench --bin io_uring [ROUNDS]`. One thread repeatedly
//! sends 64 datagrams of 1472 bytes on the loopback interface and receives them. It prints the
//! processor time per packet, both directions together. *Coalesced* packets are sent and received
//! 32 at a time (UDP_SEGMENT, UDP_GRO). The ring has its cheapest configuration: one issuer,
//! deferred task work, registered files and buffers, one receive for many packets into a ring of
//! buffers.

#![allow(clippy::print_stdout, reason = "it reports")]
#![allow(
    unsafe_code,
    reason = "system calls on arrays of messages, and memory that the kernel fills"
)]

mod mmsg;
mod ring;

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use rustix::time::{ClockId, clock_gettime};
use socket2::SockRef;

/// Bytes of a datagram in a 1500-byte packet.
const LEN: usize = 1_472;
/// Packets of a round, and of a coalesced send.
const ROUND: usize = 64;
const JOINED: usize = 32;
/// Maximum bytes of a received datagram, if packets arrive coalesced.
const JOINED_MAX: usize = 1 << 16;
/// Warm-up rounds before the measured ones.
const WARM_UP: usize = 200;

/// A way to send and receive a round of packets. Returns the number that arrived.
type Round = Box<dyn FnMut() -> io::Result<usize>>;

/// Two sockets, of which the first sends to the second.
struct Pair {
    tx: UdpSocket,
    rx: UdpSocket,
    /// Packets of a send.
    run: usize,
}

impl Pair {
    fn new(is_joined: bool) -> io::Result<Self> {
        let (tx, rx) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        tx.connect(rx.local_addr()?)?;
        rx.set_nonblocking(true)?;
        // A round has to fit.
        SockRef::from(&tx).set_send_buffer_size(4 << 20)?;
        SockRef::from(&rx).set_recv_buffer_size(4 << 20)?;
        if is_joined {
            set(&tx, libc::UDP_SEGMENT, LEN as i32)?;
            set(&rx, libc::UDP_GRO, 1)?;
        }
        Ok(Self { tx, rx, run: if is_joined { JOINED } else { 1 } })
    }

    fn sends(&self) -> usize {
        ROUND / self.run
    }

    fn bytes(&self) -> usize {
        self.run * LEN
    }
}

fn set(socket: &UdpSocket, name: i32, value: i32) -> io::Result<()> {
    let value: *const i32 = &raw const value;
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value has the length that is passed.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, name, value.cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the number of packets in a datagram of `bytes` bytes.
fn packets(bytes: usize) -> usize {
    bytes.div_ceil(LEN)
}

/// Returns the processor time of this process so far, including the system's, in ns.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn measure(name: &str, rounds: usize, mut round: Round) -> io::Result<()> {
    for _ in 0..WARM_UP {
        round()?;
    }
    let before = used();
    let mut arrived = 0;
    for _ in 0..rounds {
        arrived += round()?;
    }
    let sent = rounds * ROUND;
    println!("{name:34} {:6.0} ns", (used() - before) / sent as f64);
    if arrived < sent {
        println!("{:34} {} of {sent} packets were lost", "", sent - arrived);
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(4_000);
    for _ in 0..3 {
        for is_joined in [false, true] {
            let pair = || Pair::new(is_joined);
            let name = |how: &str| format!("{how}{}", if is_joined { ", joined" } else { "" });
            measure(&name("sendmmsg, recvmmsg"), rounds, mmsg::round(pair()?))?;
            measure(&name("io_uring"), rounds, ring::round(pair()?, ring::Memory::Copied)?)?;
            measure(
                &name("io_uring, zero copy"),
                rounds,
                ring::round(pair()?, ring::Memory::Registered)?,
            )?;
        }
    }
    Ok(())
}
