//! Kernel UDP: works everywhere, without privileges.
//!
//! A node receives on two ports, one for packets of the highest class and one for all others. So
//! control packets are read first however much data is queued. It sends from a set of source ports:
//! networks that choose among equal paths by a hash of addresses and ports spread packets with
//! different ports. The class of a packet is its DSCP, CS7 for the highest to CS0 for the lowest,
//! and its ECN bits are its marks.
//!
//! With [`UdpConfig::segment_offload`] successive packets of one path are passed to the kernel
//! coalesced, and the kernel or the interface segments them. They cross shaped links and links of
//! virtual machines in one piece.

mod sys;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rampmeter_types::envelope::{IPV4_UDP, IPV6_UDP, LINK_OVERHEAD};
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Time};
use socket2::{Domain, Protocol, Socket, Type};

use super::{ArrivedPacket, Counts, Datapath, Report, Route};
use sys::{RxBatch, TxBatch};

/// Configuration of the UDP datapath.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Address and port of this node. The next port is for data.
    pub local: SocketAddr,
    /// Addresses and ports of all nodes by number; `None` if there is no such node.
    pub peers: Vec<Option<SocketAddr>>,
    /// Maximum bytes of an IP packet on all links.
    pub mtu: usize,
    /// Number of source ports over which packets are spread.
    pub spray: usize,
    /// Bytes of each socket's buffers.
    pub buffer: usize,
    /// True if successive packets of one class and path to one node are passed to the system
    /// coalesced, and received so. If the system does not support that, they are sent one by one.
    pub segment_offload: bool,
}

impl UdpConfig {
    /// Recommended number of successive packets on the same path if packets are coalesced. It is
    /// enough to cost much less than single packets, and few enough to load paths evenly.
    pub const RUN: u16 = 32;

    /// Returns the default: 1500-byte packets, 16 source ports, 4 MiB buffers, packets one by one.
    pub fn new(local: SocketAddr, peers: Vec<Option<SocketAddr>>) -> Self {
        let (mtu, spray, buffer, segment_offload) = (1_500, 16, 4 << 20, false);
        Self { local, peers, mtu, spray, buffer, segment_offload }
    }
}

/// Packets of one batch, in each direction.
const BATCH: usize = 64;
/// Maximum number of coalesced packets that are received at once.
const COALESCED_BATCH: usize = 16;

/// Packets over UDP sockets.
#[derive(Debug)]
pub struct UdpDatapath {
    control: UdpSocket,
    data: UdpSocket,
    /// Sockets of the source ports, followed by the socket whose packets may be fragmented, if
    /// there is one.
    spray: Vec<UdpSocket>,
    n_spray: usize,
    /// Maximum bytes of a datagram that the path carries in one piece, by node.
    limits: Vec<Option<usize>>,
    /// Addresses for control and data of each node.
    peers: Vec<Option<(SocketAddr, SocketAddr)>>,
    mtu: usize,
    /// Bytes of each socket's buffers.
    buffer: usize,
    /// Bytes of the IP and UDP headers.
    headers: usize,
    tx: TxBatch,
    rx: RxBatch,
    drops: u64,
    too_long: u64,
    /// Peers to which the system has refused a datagram, and its length.
    refused: Vec<(NodeId, usize)>,
}

impl UdpDatapath {
    /// Opens the sockets.
    ///
    /// # Errors
    /// An address that is in use or not of this host, no more descriptors, or segment offload on a
    /// system without it. The message states which.
    pub fn open(config: &UdpConfig) -> io::Result<Self> {
        let too_high = || io::Error::new(io::ErrorKind::InvalidInput, "port must be below 65535");
        let (control, data) = two_ports(config.local).ok_or_else(too_high)?;
        let mut any_port = config.local;
        any_port.set_port(0);
        let bind = |addr| bind(addr, config.buffer);
        let n_spray = config.spray.max(1);
        let spray = (0..n_spray).map(|_| bind(any_port)).collect::<io::Result<_>>()?;
        let headers = if config.local.is_ipv4() { IPV4_UDP } else { IPV6_UDP };
        let datagram_max = config.mtu.saturating_sub(headers);
        let (control, data) = (bind(control)?, bind(data)?);
        sys::receive_traffic_class(&control, config.local.is_ipv4())?;
        sys::receive_traffic_class(&data, config.local.is_ipv4())?;
        let (tx, rx) = if config.segment_offload {
            sys::enable_gro(&control)?;
            sys::enable_gro(&data)?;
            let tx = TxBatch::new(BATCH, datagram_max, sys::COALESCED_MAX);
            (tx, RxBatch::with_gro(COALESCED_BATCH, datagram_max))
        } else {
            (TxBatch::new(BATCH, datagram_max, 1), RxBatch::new(BATCH, datagram_max))
        };
        Ok(Self {
            control,
            data,
            spray,
            n_spray,
            limits: Vec::new(),
            peers: config.peers.iter().map(|addr| addr.and_then(two_ports)).collect(),
            mtu: config.mtu,
            buffer: config.buffer,
            headers,
            tx,
            rx,
            drops: 0,
            too_long: 0,
            refused: Vec::new(),
        })
    }

    /// Queues a packet, which may be fragmented if it is longer than `limit`.
    fn push(
        &mut self,
        route: Route,
        limit: Option<usize>,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        let Some(addr) = self.address(route.dst, route.class) else {
            self.drops += 1;
            return Ok(());
        };
        let socket = usize::from(route.path) % self.n_spray;
        let cut = limit.map(|bytes| (bytes, self.n_spray));
        self.tx.push(route.dst, addr, socket, cut, route.traffic_class(), write);
        if self.tx.is_full() { self.flush() } else { Ok(()) }
    }

    fn address(&self, node: NodeId, class: Priority) -> Option<SocketAddr> {
        let &(control, data) = self.peers.get(node.idx())?.as_ref()?;
        Some(if class == Priority::HIGHEST { control } else { data })
    }
}

/// Returns the addresses for control and data of a node at `addr`; `None` if there is no next port.
fn two_ports(addr: SocketAddr) -> Option<(SocketAddr, SocketAddr)> {
    let data = SocketAddr::new(addr.ip(), addr.port().checked_add(1)?);
    Some((addr, data))
}

/// Opens a non-blocking socket at `addr` whose packets the kernel must not fragment.
fn bind(addr: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let open = || {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // The system may grant less; that is no reason not to start.
        let _ = socket.set_recv_buffer_size(buffer);
        let _ = socket.set_send_buffer_size(buffer);
        sys::forbid_fragments(&socket, addr.is_ipv4())?;
        socket.bind(&addr.into())?;
        Ok(socket.into())
    };
    open().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("cannot open UDP socket {addr}: {error}"))
    })
}

impl Datapath for UdpDatapath {
    fn datagram_max(&self) -> usize {
        self.mtu - self.headers
    }

    fn overhead(&self) -> usize {
        self.headers + LINK_OVERHEAD
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let limit = self.limits.get(route.dst.idx()).copied().flatten();
        self.push(route, limit, write)
    }

    fn send_whole(
        &mut self,
        route: Route,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        self.push(route, None, write)
    }

    fn set_limit(&mut self, peer: NodeId, bytes: Option<usize>) -> io::Result<()> {
        if self.limits.len() <= peer.idx() {
            self.limits.resize(peer.idx() + 1, None);
        }
        self.limits[peer.idx()] = None;
        if bytes.is_some() && self.spray.len() == self.n_spray {
            let mut any_port = self.control.local_addr()?;
            any_port.set_port(0);
            let open = || {
                let socket = bind(any_port, self.buffer)?;
                sys::allow_fragments(&socket, any_port.is_ipv4())?;
                io::Result::Ok(socket)
            };
            match open() {
                Ok(socket) => self.spray.push(socket),
                Err(error) => {
                    tracing::warn!(
                        code = "no-fragments",
                        %error,
                        "cannot fragment packets that are longer than a path carries"
                    );
                    return Ok(());
                }
            }
            self.tx.disable_coalescing(self.n_spray);
        }
        self.limits[peer.idx()] = bytes;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let refused = &mut self.refused;
        let dropped = self.tx.flush(&self.spray, |dst, len| {
            // One per peer suffices.
            if refused.iter().all(|(peer, _)| *peer != dst) {
                refused.push((dst, len));
            }
        })?;
        self.drops += dropped.all;
        self.too_long += dropped.too_long;
        Ok(())
    }

    fn receive(
        &mut self,
        _now: Time,
        mut each: impl FnMut(ArrivedPacket<'_>),
    ) -> io::Result<usize> {
        let mut n = 0;
        for socket in [&self.control, &self.data] {
            n += self.rx.receive(socket, |bytes, from: IpAddr, class| {
                let marks = Marks::from_traffic_class(class);
                each(ArrivedPacket { bytes, from: Some(from), rail: 0, marks });
            })?;
        }
        Ok(n)
    }

    fn set_peers(&mut self, rail: u8, peers: &[Option<SocketAddr>]) -> bool {
        if rail != 0 {
            return false;
        }
        self.peers = peers.iter().map(|addr| addr.and_then(two_ports)).collect();
        true
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.control.as_fd(), self.data.as_fd()]
    }

    fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        self.refused.pop().map(|(peer, len)| (peer, Report::TooLong(len)))
    }

    fn counts(&self) -> Counts {
        let (malformed_packets, oversized_packets) = self.rx.drop_counts();
        Counts {
            malformed_packets,
            oversized_packets,
            drops: self.drops,
            too_long_packets: self.too_long,
            ..Counts::default()
        }
    }
}
