//! AF_XDP: packets to and from an interface's queue, without the kernel's network stack between.
//!
//! # Design
//!
//! *The problem.* A packet over a UDP socket crosses the whole stack on both sides, and so costs
//! twice what its bytes do.
//!
//! *The simple way* is a packet socket. It sees copies of all packets, the kernel still treats each
//! as its own, and answers those to a port without a socket with an error.
//!
//! *This way.* A program of a few instructions ([`Steering`]) at the interface takes IPv4 UDP
//! packets to this node's address and two ports out of the stack, and nothing else: ARP, ping and
//! other UDP stay the kernel's. They arrive in frames of memory that the process shares with the
//! kernel (`socket`), whose headers are ours to read and write (`frame`): a packet's class is its
//! DSCP, its marks the ECN bits, its path the source port. The next hop's link address comes from
//! the kernel's table of neighbours (`neighbour`). Everything is as the UDP datapath has it over
//! IPv4, so nodes with either speak to one another.
//!
//! Control goes first twice. Packets to send are submitted with those of the highest class in
//! front. Packets that arrive are taken out of the ring faster than they are handed over: those to
//! the control port are handed over at once, the others wait in the frames in which they came.
//!
//! The kernel copies each packet once each way (copy mode). That works on every interface; drivers
//! that share memory with the process would spare the copies.
//!
//! # What can go wrong
//!
//! - *Privileges.* Opening needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and for memory beyond
//!   `ulimit -l` also CAP_IPC_LOCK. The error says which.
//! - *Queues.* An interface with several queues chooses one for each packet, by a hash of addresses
//!   and ports. A socket sees one queue, so there is a socket for each; all packets leave by the
//!   first. Packets of a queue that is added later end in the kernel's sockets, which hold the ports
//!   and are never read.
//! - *Closing and opening.* The kernel lets go of a queue a moment after its socket is closed.
//!   Opening tries again for a second.
//! - *Link addresses* that are not known yet: packets are dropped and counted until the kernel has
//!   asked.
//! - *Firewalls.* Packets pass by the kernel's rules, both ways. There is no UDP checksum; what
//!   damages a packet between two links' own checks is not noticed.
//! - *Fragments and IP options* go to the kernel and are lost. No node sends them.

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

use rampmeter_core::envelope::{IPV4_UDP, LINK_OVERHEAD};
use rampmeter_core::{Priority, Span, Time};
use xdp::nic::NicIndex;

pub use self::bpf::{Attach, Steering};
use self::frame::{HEADERS, Headers, Mac, Varying};
use self::neighbour::Neighbours;
use self::netlink::Netlink;
use self::queue::Queue;
use self::socket::{Frame, Frames, Size, Xsk};
use super::{Arrived, Counts, Datapath, Route};

/// Queues of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queues {
    /// All that it has when the datapath is opened.
    #[default]
    All,
    /// The one with this number. Packets that come in at another are lost.
    One(u32),
}

/// What the AF_XDP datapath must be told.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// The interface that leads to all peers.
    pub interface: String,
    /// Which of its queues packets are taken from.
    pub queues: Queues,
    /// Where packets are taken from.
    pub attach: Attach,
    /// The address and port of this node. The port that follows is for data.
    pub local: SocketAddrV4,
    /// Addresses and ports of all nodes by number; `None` where there is none.
    pub peers: Vec<Option<SocketAddrV4>>,
    /// Largest IP packet that all links carry, at most 3826 bytes.
    pub mtu: usize,
    /// How many source ports packets are spread over.
    pub spray: u16,
    /// Packets that may have arrived and wait: a power of two, at least 64. Queues share them, but
    /// each has room for 256, or for all if those are fewer.
    pub rx_frames: u32,
    /// Packets that may wait to be sent: a power of two, at least 64.
    pub tx_frames: u32,
}

impl XdpConfig {
    /// The usual: all queues, 1500-byte packets, 16 source ports, 2048 frames each way (8
    /// MiB).
    pub fn new(
        interface: impl Into<String>,
        local: SocketAddrV4,
        peers: Vec<Option<SocketAddrV4>>,
    ) -> Self {
        Self {
            interface: interface.into(),
            queues: Queues::All,
            attach: Attach::default(),
            local,
            peers,
            mtu: 1_500,
            spray: 16,
            rx_frames: 2_048,
            tx_frames: 2_048,
        }
    }

    /// # Errors
    /// The first number that makes no sense.
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

/// Packets that are sent together, and data packets that are handed over together.
const BATCH: usize = 64;
/// Packets for which each queue has room, where there are so many.
const QUEUE_FRAMES: u32 = 256;
/// The first source port: of those that the kernel gives to nobody's servers.
const FIRST_PORT: u16 = 49_152;
/// Tries to open what has not quite been let go of, and the pause between them.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// Opening waits for link addresses at most so many milliseconds.
const ASKING_MS: usize = 100;
/// When to try again to send what the interface would not take.
const BUSY: Span = Span::from_us(50);

/// Packets over AF_XDP sockets.
pub struct XdpDatapath {
    // Detached before the sockets go, so that packets never meet a map without sockets.
    _steering: Steering,
    /// At least one, by which packets leave.
    queues: Vec<Queue>,
    /// The queue whose data is handed over first the next time.
    first: usize,
    /// The data port's socket, which nothing is read from; the control port's is the neighbours'.
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
    /// Where packets are written that have no frame.
    scratch: Vec<u8>,
    drops: u64,
    malformed: u64,
    now: Time,
}

#[derive(Debug)]
struct Peer {
    addr: SocketAddrV4,
    /// `None` until its link address is known.
    headers: Option<Headers>,
}

impl std::fmt::Debug for XdpDatapath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { local, queues, drops, .. } = self;
        write!(f, "XdpDatapath({local}, {queues:?}, {drops} packets dropped)")
    }
}

impl XdpDatapath {
    /// Opens the sockets, attaches the program, and asks for the peers' link addresses.
    ///
    /// # Errors
    /// Missing privileges, an address that is taken or not of this host, an interface or a queue
    /// that is not there or in use, or a peer that is reached otherwise. The message says which.
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
            // Packets leave by the first socket; the others need no room for them.
            let tx = if queue == numbers[0] { config.tx_frames } else { 0 };
            Xsk::open(link.index, queue, Size { packet_max, rx, tx })
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
        this.ask();
        Ok(this)
    }

    /// Packets for this node that the kernel had to drop because nobody took those before them.
    pub fn overflow(&self) -> u64 {
        self.queues.iter().map(|queue| queue.xsk.overflow()).sum()
    }

    /// How many peers' link addresses are known.
    pub fn n_peers_known(&self) -> usize {
        self.peers.iter().flatten().filter(|p| p.headers.is_some()).count()
    }

    /// Asks for the link addresses of all peers and waits a while for the answers.
    fn ask(&mut self) {
        self.neighbours.look();
        self.neighbours.ask_for_unknown();
        for _ in 0..ASKING_MS {
            if self.neighbours.n_unknown() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
            self.neighbours.look();
        }
        self.renew();
    }

    /// Makes the headers of peers whose link addresses are known.
    fn renew(&mut self) {
        let from = (self.mac, *self.local.ip());
        for (idx, peer) in self.peers.iter_mut().enumerate() {
            let Some(peer) = peer else { continue };
            let to = self.neighbours.mac(idx).map(|mac| (mac, *peer.addr.ip()));
            peer.headers = to.map(|to| Headers::new(from, to));
        }
    }

    /// Whether packets to the peer can be sent; if not, that is seen to.
    fn can_reach(&mut self, peer: usize) -> bool {
        let Some(Some(Peer { headers, .. })) = self.peers.get(peer) else { return false };
        if headers.is_some() {
            return true;
        }
        if self.neighbours.want(self.now, peer) {
            self.renew();
        }
        matches!(self.peers.get(peer), Some(Some(Peer { headers: Some(_), .. })))
    }

    /// A frame to write a packet into, if the interface is not too far behind.
    fn frame(&mut self) -> io::Result<Option<Frame>> {
        let len = HEADERS + self.datagram_max();
        if let Some(frame) = self.out().take(len) {
            return Ok(Some(frame));
        }
        self.flush()?;
        Ok(self.out().take(len))
    }

    /// The socket by which packets leave.
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
        let varying = Varying {
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
        out.kick()?;
        out.reclaim();
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(Arrived<'_>)) -> io::Result<usize> {
        self.now = now;
        let (control, malformed) = (self.local.port(), &mut self.malformed);
        let mut n = 0;
        for queue in &mut self.queues {
            n += queue.take(control, malformed, &mut each);
        }
        // A batch of data in all. The queues begin in turn.
        let (mut left, n_queues) = (BATCH, self.queues.len());
        for at in self.first..self.first + n_queues {
            left -= self.queues[at % n_queues].hand_over(left, malformed, &mut each);
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
            (false, true) => self.now + BUSY,
            (false, false) => Time::NEVER,
        }
    }

    fn counts(&self) -> Counts {
        Counts { malformed: self.malformed, drops: self.drops, ..Counts::default() }
    }
}

/// Holds a port of the kernel's, so that no other process has it and packets that come to it past
/// the program are not answered with errors.
fn reserve(addr: SocketAddrV4) -> io::Result<UdpSocket> {
    let open = || {
        let socket = UdpSocket::bind(addr)?;
        socket.set_nonblocking(true)?;
        // As little as the system allows.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0);
        Ok(socket)
    };
    open().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("cannot reserve UDP port {addr}: {error}"))
    })
}

/// Repeats what fails because an earlier socket or program has not quite gone: the kernel takes its
/// time, and a process that is being started may hold copies of descriptors for a moment.
fn while_busy<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
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

/// The queues that packets are taken from, of those that the interface has.
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
