//! AF_XDP: packets to and from an interface's queue, bypassing the kernel's network stack.
//!
//! # Design
//!
//! *The problem.* A packet over a UDP socket crosses the whole stack on both sides, and so costs
//! twice as much as its bytes.
//!
//! *The simple way* is a packet socket. It receives copies of all packets. The kernel still handles
//! each packet itself, and answers those to a port without a socket with an error.
//!
//! *This way.* A program of a few instructions ([`Steering`]) runs at the interface. It redirects
//! IPv4 UDP packets to this node's address and two ports around the stack. ARP, ping and other UDP
//! stay with the kernel. They arrive in frames of memory that the process shares with the kernel
//! (`socket`). The process reads and writes their headers (`frame`): a packet's class is its DSCP,
//! its marks the ECN bits, its path the source port. The next hop's link address is read from the
//! kernel's table of neighbours (`neighbour`). The format is that of the UDP datapath over IPv4, so
//! nodes with either can communicate.
//!
//! Control packets have priority twice. Packets to send are submitted with those of the highest
//! class first. Packets that arrive are removed from the ring faster than they are delivered. Those
//! to the control port are delivered at once; the others wait in their frames.
//!
//! The kernel copies each packet once in each direction (copy mode). That works on every interface;
//! drivers that share memory with the process would avoid the copies.
//!
//! # Failure modes
//!
//! - *Privileges.* Opening needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and for memory beyond
//!   `ulimit -l` also CAP_IPC_LOCK. The error states which.
//! - *Queues.* An interface with several queues chooses one for each packet, by a hash of addresses
//!   and ports. A socket receives from one queue, so there is a socket for each; all packets are
//!   sent by the first. Packets of a queue that is added later end in the kernel's sockets, which
//!   hold the ports and are never read.
//! - *Closing and opening.* The kernel releases a queue a moment after its socket is closed.
//!   Opening retries for a second.
//! - *Unresolved link addresses.* Packets are dropped and counted until the kernel has resolved
//!   them.
//! - *Firewalls.* Packets bypass the kernel's rules in both directions. There is no UDP checksum;
//!   damage between two links' own checks is not detected.
//! - *Fragments and IP options* stay with the kernel and are lost. No node sends them.

mod bpf;
mod frame;
mod neighbour;
mod netlink;
mod queue;
mod socket;

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use rampmeter_types::envelope::{IPV4_UDP, LINK_OVERHEAD};
use rampmeter_types::{Priority, Span, Time};
use xdp::nic::NicIndex;

pub use self::bpf::{Steering, XdpMode};
use self::frame::{FrameAddress, HEADERS, Headers, Mac, VariableFields};
use self::neighbour::Neighbours;
use self::netlink::Netlink;
use self::queue::Queue;
use self::socket::{Frame, Frames, SocketSizes, Xsk};
use super::{ArrivedPacket, Counts, Datapath, Route};

/// Queues of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queues {
    /// All queues at the time of opening.
    #[default]
    All,
    /// Queue of this number. Packets that arrive at another are lost.
    One(u32),
}

/// Configuration of the AF_XDP datapath.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// Interface through which all peers are reached.
    pub interface: String,
    /// Queues from which packets are received.
    pub queues: Queues,
    /// Place of the steering program.
    pub attach: XdpMode,
    /// Address and port of this node. The next port is for data.
    pub local: SocketAddrV4,
    /// Addresses and ports of all nodes by number; `None` if there is no such node.
    pub peers: Vec<Option<SocketAddrV4>>,
    /// Maximum bytes of an IP packet on all links, at most 3826.
    pub mtu: usize,
    /// Number of source ports over which packets are spread.
    pub spray: u16,
    /// Maximum number of packets that have arrived and are not delivered: at least 64, a power of
    /// two. Queues share them, but each has memory for 256, or for all if those are fewer.
    pub rx_frames: u32,
    /// Maximum number of packets to be sent: at least 64, a power of two.
    pub tx_frames: u32,
}

impl XdpConfig {
    /// Returns the default: all queues, 1500-byte packets, 16 source ports, 2048 frames in each
    /// direction (8 MiB).
    pub fn new(
        interface: impl Into<String>,
        local: SocketAddrV4,
        peers: Vec<Option<SocketAddrV4>>,
    ) -> Self {
        Self {
            interface: interface.into(),
            queues: Queues::All,
            attach: XdpMode::default(),
            local,
            peers,
            mtu: 1_500,
            spray: 16,
            rx_frames: 2_048,
            tx_frames: 2_048,
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// The first number that is invalid.
    fn check(&self) -> io::Result<()> {
        let bad = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if self.local.port() == u16::MAX || self.local.port() == 0 {
            return bad(format!("port must be within 1 and 65534, not {}", self.local.port()));
        }
        if self.mtu < HEADERS {
            return bad(format!("MTU must be at least {HEADERS}, not {}", self.mtu));
        }
        for (name, frames) in [("rx", self.rx_frames), ("tx", self.tx_frames)] {
            let is_good =
                frames.is_power_of_two() && (BATCH..=1 << 20).contains(&(frames as usize));
            if !is_good {
                return bad(format!("{name} frames must be a power of two from 64, not {frames}"));
            }
        }
        Ok(())
    }
}

/// Packets that are sent together, and data packets that are delivered together.
const BATCH: usize = 64;
/// Minimum number of packets for which each queue has memory, if there are as many.
const QUEUE_FRAMES: u32 = 256;
/// First source port: above the ports that servers use by default.
const FIRST_PORT: u16 = 49_152;
/// Number of attempts to open a resource that is not quite released, and the pause between them.
const ATTEMPTS_MAX: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum wait for link addresses at the start in ms.
const RESOLVE_MS_MAX: usize = 100;
/// Pause before the next attempt to send packets that the interface refused.
const BUSY_PAUSE: Span = Span::from_us(50);

/// Datapath over AF_XDP sockets.
pub struct XdpDatapath {
    // Dropped before the sockets, so that the map always has sockets while packets arrive.
    _steering: Steering,
    /// Queues, at least one; packets are sent by the first.
    queues: Vec<Queue>,
    /// Index of the queue whose data is delivered first the next time.
    first: usize,
    /// Socket of the data port, which is never read; the neighbours own the control port's.
    _reserved: UdpSocket,
    neighbours: Neighbours,
    mac: Mac,
    local: SocketAddrV4,
    /// Peers by number.
    peers: Vec<Option<Peer>>,
    mtu: usize,
    spray: u16,
    control: Frames,
    data: Frames,
    /// Buffer for packets without a frame.
    scratch: Vec<u8>,
    drops: u64,
    malformed: u64,
    now: Time,
}

#[derive(Debug)]
struct Peer {
    addr: SocketAddrV4,
    /// `None` until its link address is resolved.
    headers: Option<Headers>,
}

impl std::fmt::Debug for XdpDatapath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { local, queues, drops, .. } = self;
        write!(f, "XdpDatapath({local}, {queues:?}, {drops} packets dropped)")
    }
}

impl XdpDatapath {
    /// Opens the sockets, attaches the program, and requests the peers' link addresses.
    ///
    /// # Errors
    /// Missing privileges, or an address that is in use or not of this host. An interface or a
    /// queue that does not exist or is in use, or a peer that is reached through another interface.
    /// The message states which.
    pub fn open(config: &XdpConfig) -> io::Result<Self> {
        config.check()?;
        let &XdpConfig { local, attach, mtu, .. } = config;
        let mut netlink = Netlink::open()?;
        let link = netlink.link(&config.interface).map_err(|error| {
            let why = format!("interface {}: {error}", config.interface);
            io::Error::new(error.kind(), why)
        })?;
        if mtu > link.mtu {
            let why =
                format!("{} carries packets of {}, not {mtu} bytes", config.interface, link.mtu);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let numbers = queue_numbers(config, link.index)?;
        let data = SocketAddrV4::new(*local.ip(), local.port() + 1);
        let packet_max = mtu + frame::ETHERNET;
        let share = config.rx_frames / (numbers.len() as u32).next_power_of_two();
        let rx = share.max(QUEUE_FRAMES.min(config.rx_frames));
        let open = |&queue: &u32| {
            // Packets are sent by the first socket; the others need no memory for them.
            let tx = if queue == numbers[0] { config.tx_frames } else { 0 };
            Xsk::open(link.index, queue, SocketSizes { packet_max, rx, tx })
        };
        let (kernel, reserved, sockets, steering) = while_busy(|| {
            let (kernel, reserved) = (reserve(local)?, reserve(data)?);
            let sockets = numbers.iter().map(open).collect::<io::Result<Vec<_>>>()?;
            let by_queue: Vec<_> =
                numbers.iter().copied().zip(sockets.iter().map(Xsk::fd)).collect();
            let steering = Steering::attach(link.index, attach, local, &by_queue)?;
            Ok((kernel, reserved, sockets, steering))
        })?;
        let of_others = |addr: &Option<SocketAddrV4>| addr.filter(|a| a.ip() != local.ip());
        let ips = config.peers.iter().map(|addr| of_others(addr).map(|a| *a.ip()));
        let neighbours = Neighbours::new(netlink, link, kernel, ips)?;
        let has_two_ports = |a: &SocketAddrV4| a.port() < u16::MAX;
        let peer = |addr| Peer { addr, headers: None };
        let peers = config.peers.iter().map(|a| of_others(a).filter(has_two_ports).map(peer));
        let mut this = Self {
            _steering: steering,
            queues: sockets.into_iter().map(|xsk| Queue::new(xsk, rx as usize)).collect(),
            first: 0,
            _reserved: reserved,
            neighbours,
            mac: link.mac,
            local,
            peers: peers.collect(),
            mtu,
            spray: config.spray.clamp(1, u16::MAX - FIRST_PORT),
            control: Frames::with_capacity(BATCH),
            data: Frames::with_capacity(BATCH),
            scratch: vec![0; mtu - IPV4_UDP],
            drops: 0,
            malformed: 0,
            now: Time::ZERO,
        };
        this.resolve_peers();
        Ok(this)
    }

    /// Returns the number of packets for this node that the kernel dropped because its receive
    /// buffers were full.
    pub fn overflow(&self) -> u64 {
        self.queues.iter().map(|queue| queue.xsk.overflow()).sum()
    }

    /// Returns the number of peers whose link addresses are resolved.
    pub fn n_peers_resolved(&self) -> usize {
        self.peers.iter().flatten().filter(|p| p.headers.is_some()).count()
    }

    /// Requests the link addresses of all peers and waits a while for the answers.
    fn resolve_peers(&mut self) {
        self.neighbours.read_table();
        self.neighbours.resolve_unknown();
        for _ in 0..RESOLVE_MS_MAX {
            if self.neighbours.n_unknown() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
            self.neighbours.read_table();
        }
        self.renew();
    }

    /// Makes the headers of peers whose link addresses are resolved.
    fn renew(&mut self) {
        let from = FrameAddress { mac: self.mac, ip: *self.local.ip() };
        for (idx, peer) in self.peers.iter_mut().enumerate() {
            let Some(peer) = peer else { continue };
            let to = self.neighbours.mac(idx).map(|mac| FrameAddress { mac, ip: *peer.addr.ip() });
            peer.headers = to.map(|to| Headers::new(from, to));
        }
    }

    /// Returns true if packets to the peer can be sent. Otherwise requests its link address.
    fn can_reach(&mut self, peer: usize) -> bool {
        let Some(Some(Peer { headers, .. })) = self.peers.get(peer) else { return false };
        if headers.is_some() {
            return true;
        }
        if self.neighbours.request_address(self.now, peer) {
            self.renew();
        }
        matches!(self.peers.get(peer), Some(Some(Peer { headers: Some(_), .. })))
    }

    /// Returns a frame to write a packet into. Returns none if the interface is too far behind.
    fn frame(&mut self) -> io::Result<Option<Frame>> {
        let len = HEADERS + self.datagram_max();
        if let Some(frame) = self.out().take(len) {
            return Ok(Some(frame));
        }
        self.flush()?;
        Ok(self.out().take(len))
    }

    /// Returns the socket by which packets are sent.
    fn out(&mut self) -> &mut Xsk {
        &mut self.queues[0].xsk
    }
}

impl Datapath for XdpDatapath {
    fn datagram_max(&self) -> usize {
        self.mtu - IPV4_UDP
    }

    fn overhead(&self) -> usize {
        IPV4_UDP + LINK_OVERHEAD
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let peer = route.dst.idx();
        let frame = if self.can_reach(peer) { self.frame()? } else { None };
        let (Some(mut frame), Some(Some(Peer { addr, headers: Some(headers) }))) =
            (frame, self.peers.get(peer))
        else {
            write(&mut self.scratch);
            self.drops += 1;
            return Ok(());
        };
        let len = write(&mut frame[HEADERS..]);
        assert!(HEADERS + len <= frame.len(), "{len} bytes were written into {}", self.mtu);
        let is_control = route.class == Priority::HIGHEST;
        let varying = VariableFields {
            traffic_class: route.traffic_class(),
            port_from: FIRST_PORT + route.path % self.spray,
            port_to: addr.port() + u16::from(!is_control),
            len,
        };
        headers.write(&mut frame, varying);
        frame.shorten_to(HEADERS + len);
        if is_control {
            self.control.push(frame)
        } else {
            self.data.push(frame)
        }
        if self.control.len() + self.data.len() < BATCH { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = &mut self.queues[0].xsk;
        self.drops += out.submit(&mut self.control)?;
        self.drops += out.submit(&mut self.data)?;
        out.wake_kernel()?;
        out.reclaim();
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        self.now = now;
        let (control, malformed) = (self.local.port(), &mut self.malformed);
        let mut n = 0;
        for queue in &mut self.queues {
            n += queue.take(control, malformed, &mut each);
        }
        // A batch of data in total. The first queue changes round-robin.
        let (mut left, n_queues) = (BATCH, self.queues.len());
        for at in self.first..self.first + n_queues {
            left -= self.queues[at % n_queues].deliver_queued(left, malformed, &mut each);
        }
        self.first = (self.first + 1) % n_queues;
        n += BATCH - left;
        for queue in &mut self.queues {
            queue.xsk.refill()?;
        }
        if self.neighbours.refresh(now) {
            self.renew();
        }
        if self.out().is_behind() { self.flush().map(|()| n) } else { Ok(n) }
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.queues.iter().map(|queue| queue.xsk.fd()).collect()
    }

    fn next_arrival(&self) -> Time {
        let is_waiting = self.queues.iter().any(Queue::is_waiting);
        match (is_waiting, self.queues[0].xsk.is_behind()) {
            (true, _) => self.now,
            (false, true) => self.now + BUSY_PAUSE,
            (false, false) => Time::NEVER,
        }
    }

    fn counts(&self) -> Counts {
        Counts { malformed_packets: self.malformed, drops: self.drops, ..Counts::default() }
    }
}

/// Reserves a port in the kernel, so that no other process can bind it. The kernel then sends no
/// ICMP errors for packets that bypass the program.
fn reserve(addr: SocketAddrV4) -> io::Result<UdpSocket> {
    let open = || {
        let socket = UdpSocket::bind(addr)?;
        socket.set_nonblocking(true)?;
        // The minimum that the system allows.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0);
        Ok(socket)
    };
    open().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("cannot reserve UDP port {addr}: {error}"))
    })
}

/// Retries an operation that fails because an earlier socket or program is not quite released. The
/// kernel releases them with a delay, and a starting process may hold copies of descriptors for a
/// moment.
fn while_busy<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match open() {
            Err(error) if is_busy(&error) => thread::sleep(PAUSE),
            result => return result,
        }
    }
    open()
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::AddrInUse)
}

/// Returns the queues from which packets are received, of those of the interface.
fn queue_numbers(config: &XdpConfig, interface: u32) -> io::Result<Vec<u32>> {
    let n = NicIndex(interface).queue_counts().map_or(1, |queues| queues.rx_count());
    match config.queues {
        Queues::All => Ok((0..n.max(1)).collect()),
        Queues::One(queue) if queue < n.max(1) => Ok(vec![queue]),
        Queues::One(queue) => {
            let why = format!("queue of {} must be below {n}, not {queue}", config.interface);
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}
