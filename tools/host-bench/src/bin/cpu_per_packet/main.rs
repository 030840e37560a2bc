//! Processor cost of a packet of 1500 bytes: whole nodes compared with the kernel's TCP and quinn's
//! QUIC, one way over virtual Ethernet.
//!
//! As root: `cargo run --release -p rampmeter-host-bench --bin cpu_per_packet
//! [ROUNDS [MIB [MBPS [ARM]]]]`. ARM selects TCP, quinn and the arms whose names contain it. In
//! each round the arms transfer MIB one after the other, each at its maximum rate. So other load on
//! the machine affects all of them. Only ratios within one run are meaningful. Nodes assume MBPS as
//! the link's rate, by default more than they reach. They sleep when they have nothing to do.
//!
//! The cost is the processor time, user and system, of the sending thread and of the receiving one,
//! each on a separate processor. The kernel charges its work for arriving packets to the running
//! thread: over virtual Ethernet that is the sender. So the sum of both sides is compared. The
//! column `machine` is the time that all processors were busy, from the kernel's coarser accounts.
//! It also includes time that is charged to no thread here, and all other load.
//!
//! A packet is 1448 bytes of payload for the program, as TCP carries in 1500. So headers, control
//! packets and retransmissions count as cost of the delivered bytes. `packets` and `frame` are
//! measured at the receiver's interface: volume in frames of 1514 bytes, and the mean length. No
//! arm sends longer frames on the link unless its name states so: the interfaces accept no
//! coalesced segments, so that the kernel segments them before.

#![allow(clippy::print_stdout, reason = "it reports")]

#[path = "../../../../../crates/runtime/tests/common/netns.rs"]
mod netns;
mod node;
mod offload;
mod quic;
mod tcp;

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;
use std::{fs, io, thread};

use netns::{DEVICE, Host, Net};
use rampmeter_proto::dcpim::DcpimHost;
use rampmeter_proto::phost::PhostHost;
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::datapath::xdp::{XdpConfig, XdpDatapath};
use rampmeter_runtime::{Clock, ClockSource};
use rampmeter_types::envelope::IPV4_UDP;
use rampmeter_types::envelope::Protection;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Maximum bytes of an IP packet.
const MTU: usize = 1_500;
/// Bytes of its datagram.
const DATAGRAM: usize = MTU - IPV4_UDP;
/// Bytes of its frame, as interfaces count them.
const FRAME: f64 = 1_514.0;
/// Bytes of a program that TCP carries in it.
const PAYLOAD: f64 = 1_448.0;
/// Bytes that programs write to a stream at once.
const CHUNK: usize = 64 << 10;
/// Bytes of buffers of UDP sockets, which nodes request too.
const SOCKET_BUFFER: usize = 4 << 20;
const PORT: u16 = 7_321;
/// Timeout of a transfer.
const LIMIT: Duration = Duration::from_secs(60);

/// Mode of passing packets to the kernel: one by one, or coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segments {
    Joined,
    Single,
}

/// Times of a transfer, in seconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    wall: f64,
    /// Processor time of each side.
    sender: f64,
    receiver: f64,
}

/// Runs both sides of a transfer, each on its host and on a separate processor.
fn both(
    net: &Net,
    send: impl FnOnce() -> io::Result<()> + Send,
    receive: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<Times> {
    let clock = Clock::start(ClockSource::Monotonic).map_err(io::Error::other)?;
    let [from, to] = [&net.hosts[0], &net.hosts[1]];
    let start = clock.now();
    let [sender, receiver] = thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let receiver = named("receiver").spawn_scoped(scope, || timed(to, 1, receive));
        let sender = named("sender").spawn_scoped(scope, || timed(from, 0, send));
        [sender, receiver].map(|side| side?.join().expect("no side panics"))
    });
    let wall = clock.now().saturating_since(start).as_ps() as f64 * 1e-12;
    Ok(Times { wall, sender: sender?, receiver: receiver? })
}

/// Runs one side; returns the processor time of its thread.
fn timed(host: &Host, cpu: usize, side: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    host.enter();
    let mut set = CpuSet::new();
    set.set(cpu);
    // On a machine with one processor, both share it.
    let _ = sched_setaffinity(None, &set);
    side()?;
    let at = clock_gettime(ClockId::ThreadCPUTime);
    Ok(at.tv_sec as f64 + at.tv_nsec as f64 * 1e-9)
}

fn expect_all(expected: u64, got: u64) -> io::Result<()> {
    let message = || format!("expected {expected} messages or bytes to arrive, got {got}");
    if got == expected { Ok(()) } else { Err(io::Error::other(message())) }
}

/// Transfers a number of bytes.
type Transfer<'a> = Box<dyn Fn(u64) -> io::Result<Times> + 'a>;

/// An arm of the measurement, and its results, one value per round.
struct Arm<'a> {
    name: &'static str,
    net: &'a Net,
    transfer: Transfer<'a>,
    packets: Vec<f64>,
    frames: Vec<f64>,
    gbps: Vec<f64>,
    /// Microseconds a packet.
    sender: Vec<f64>,
    receiver: Vec<f64>,
    both: Vec<f64>,
    machine: Vec<f64>,
}

impl<'a> Arm<'a> {
    fn new(
        name: &'static str,
        net: &'a Net,
        transfer: impl Fn(u64) -> io::Result<Times> + 'a,
    ) -> Self {
        let [packets, frames, gbps, sender, receiver, both, machine] = [const { Vec::new() }; 7];
        let transfer = Box::new(transfer);
        Self { name, net, transfer, packets, frames, gbps, sender, receiver, both, machine }
    }

    fn measure(&mut self, bytes: u64) -> io::Result<()> {
        let (arrived, busy) = (arrived(&self.net.hosts[1])?, busy_seconds()?);
        let times = (self.transfer)(bytes)
            .map_err(|error| io::Error::other(format!("{}: {error}", self.name)))?;
        let (arrived_then, busy_then) = (arrived, busy);
        let (arrived, busy) = (self::arrived(&self.net.hosts[1])?, busy_seconds()?);
        let [octets, frames] = [0, 1].map(|idx| (arrived[idx] - arrived_then[idx]) as f64);
        let us = |seconds: f64| seconds * 1e6 / (bytes as f64 / PAYLOAD);
        self.packets.push(octets / FRAME);
        self.frames.push(octets / frames);
        self.gbps.push(bytes as f64 * 8e-9 / times.wall);
        self.sender.push(us(times.sender));
        self.receiver.push(us(times.receiver));
        self.both.push(us(times.sender + times.receiver));
        self.machine.push(us(busy - busy_then));
        Ok(())
    }
}

/// Returns the bytes and frames that have arrived at the host's interface.
fn arrived(host: &Host) -> io::Result<[u64; 2]> {
    let text = host.within(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
    let numbers = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    let mut numbers = numbers.unwrap_or_default().split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(bytes)), Some(Ok(frames))) => Ok([bytes, frames]),
        _ => Err(io::Error::other(format!("/proc/net/dev: expected {DEVICE}, got {text}"))),
    }
}

/// Returns the busy time of all processors in seconds.
fn busy_seconds() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let ticks: Vec<f64> = text.split_whitespace().skip(1).take(7).flat_map(str::parse).collect();
    // user, nice, system, idle, waiting, interrupts, soft interrupts: in hundredths of a second.
    let busy = ticks.iter().enumerate().filter(|(idx, _)| !matches!(idx, 3 | 4));
    Ok(busy.map(|(_, ticks)| ticks).sum::<f64>() * 1e-2)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a line per arm: medians over rounds; the last columns are medians of the rounds' ratios.
fn report(arms: &[Arm<'_>], tcp: usize, quinn: usize) {
    println!(
        "{:<28}{:>8}{:>7}{:>8}{:>9}{:>10}{:>7}{:>9}{:>8}{:>9}",
        "1500-byte packets",
        "packets",
        "frame",
        "Gbit/s",
        "sender",
        "receiver",
        "both",
        "machine",
        "/ TCP",
        "/ quinn",
    );
    println!("{:<51}{:>9}{:>10}{:>7}{:>9}", "", "us", "us", "us", "us");
    for arm in arms {
        let ratio = |to: &Arm<'_>| median(arm.both.iter().zip(&to.both).map(|(a, b)| a / b));
        let of = |values: &[f64]| median(values.iter().copied());
        println!(
            "{:<28}{:>8.0}{:>7.0}{:>8.2}{:>9.3}{:>10.3}{:>7.3}{:>9.3}{:>8.2}{:>9.2}",
            arm.name,
            of(&arm.packets),
            of(&arm.frames),
            of(&arm.gbps),
            of(&arm.sender),
            of(&arm.receiver),
            of(&arm.both),
            of(&arm.machine),
            ratio(&arms[tcp]),
            ratio(&arms[quinn]),
        );
    }
}

fn udp(net: &Net, host: usize, segments: Segments) -> io::Result<UdpDatapath> {
    let peers: Vec<_> = net.hosts.iter().map(|h| Some(SocketAddr::from((h.ip, PORT)))).collect();
    let config = UdpConfig::new(SocketAddr::from((net.hosts[host].ip, PORT)), peers);
    UdpDatapath::open(&match segments {
        Segments::Joined => UdpConfig { segment_offload: true, ..config },
        Segments::Single => config,
    })
}

fn xdp(net: &Net, host: usize) -> io::Result<XdpDatapath> {
    let peers = net.hosts.iter().map(|host| Some(SocketAddrV4::new(host.ip, PORT))).collect();
    let local = SocketAddrV4::new(net.hosts[host].ip, PORT);
    XdpDatapath::open(&XdpConfig::new(DEVICE, local, peers)).map_err(io::Error::other)
}

fn main() -> io::Result<()> {
    use Protection::{Checksum, Sealed};
    use Segments::{Joined, Single};
    let mut args = std::env::args().skip(1);
    let mut number = |or| args.next().map_or(Ok(or), |arg| arg.parse()).map_err(io::Error::other);
    let (rounds, mib, facts) = (number(9)?, number(256)?, node::facts(number(10_000)?));
    let named = args.next().unwrap_or_default();
    // If there is no first, the reason has been printed.
    let Some(net) = &Net::pair() else { return Ok(()) };
    let others = [Net::pair(), Net::pair(), Net::pair()];
    let [Some(tcp_net), Some(xdp_net), Some(long_net)] = &others else { return Ok(()) };
    offload::forbid_udp(net);
    offload::forbid_tcp(tcp_net)?;
    let dcpim_udp = |net, bytes, segments, protection| {
        let open = |host| udp(net, host, segments);
        node::transfer::<DcpimHost, _>(net, bytes, &facts, node::dcpim(&facts), protection, open)
    };
    let phost_udp = |net, bytes, segments, protection| {
        let open = |host| udp(net, host, segments);
        node::transfer::<PhostHost, _>(net, bytes, &facts, node::phost(&facts), protection, open)
    };
    let open_xdp = |host| xdp(xdp_net, host);
    let arms = [
        Arm::new("TCP", tcp_net, |bytes| tcp::transfer(tcp_net, bytes)),
        Arm::new("quinn", net, |bytes| quic::transfer(net, bytes, Joined)),
        Arm::new("quinn, packet by packet", net, |bytes| quic::transfer(net, bytes, Single)),
        Arm::new("dcPIM over UDP", net, |bytes| dcpim_udp(net, bytes, Single, Checksum)),
        Arm::new("pHost over UDP", net, |bytes| phost_udp(net, bytes, Single, Checksum)),
        Arm::new("dcPIM over UDP, encrypted", net, |bytes| dcpim_udp(net, bytes, Single, Sealed)),
        Arm::new("pHost over UDP, encrypted", net, |bytes| phost_udp(net, bytes, Single, Sealed)),
        Arm::new("dcPIM over UDP, joined", net, |bytes| dcpim_udp(net, bytes, Joined, Checksum)),
        Arm::new("pHost over UDP, joined", net, |bytes| phost_udp(net, bytes, Joined, Checksum)),
        Arm::new("dcPIM over UDP, joined, encrypted", net, |bytes| {
            dcpim_udp(net, bytes, Joined, Sealed)
        }),
        Arm::new("pHost over UDP, joined, encrypted", net, |bytes| {
            phost_udp(net, bytes, Joined, Sealed)
        }),
        Arm::new("dcPIM over AF_XDP", xdp_net, |bytes| {
            let protocol = node::dcpim(&facts);
            node::transfer::<DcpimHost, _>(xdp_net, bytes, &facts, protocol, Checksum, open_xdp)
        }),
        Arm::new("pHost over AF_XDP", xdp_net, |bytes| {
            let protocol = node::phost(&facts);
            node::transfer::<PhostHost, _>(xdp_net, bytes, &facts, protocol, Checksum, open_xdp)
        }),
        Arm::new("pHost over AF_XDP, encrypted", xdp_net, |bytes| {
            let protocol = node::phost(&facts);
            node::transfer::<PhostHost, _>(xdp_net, bytes, &facts, protocol, Sealed, open_xdp)
        }),
        Arm::new("64 KiB on the link: TCP", long_net, |bytes| tcp::transfer(long_net, bytes)),
        Arm::new("64 KiB on the link: quinn", long_net, |bytes| {
            quic::transfer(long_net, bytes, Joined)
        }),
        Arm::new("64 KiB on the link: dcPIM", long_net, |bytes| {
            dcpim_udp(long_net, bytes, Joined, Checksum)
        }),
        Arm::new("64 KiB on the link: pHost", long_net, |bytes| {
            phost_udp(long_net, bytes, Joined, Checksum)
        }),
    ];
    let is_chosen =
        |arm: &Arm<'_>| ["TCP", "quinn"].contains(&arm.name) || arm.name.contains(&named);
    let mut arms: Vec<_> = arms.into_iter().filter(is_chosen).collect();
    for _ in 0..rounds {
        arms.iter_mut().try_for_each(|arm| arm.measure(mib << 20))?;
    }
    report(&arms, 0, 1);
    Ok(())
}
