//! Batches of datagrams through `sendmmsg` and `recvmmsg`: no safe interface supports a class for
//! each message.

#![allow(unsafe_code, reason = "system calls on arrays of messages")]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use libc::{c_int, c_void, cmsghdr, iovec, mmsghdr, sockaddr_storage, socklen_t};
use rampmeter_types::NodeId;
use socket2::{SockAddr, Socket};

/// Buffer for two control messages of up to an int each, aligned for their headers.
type Ancillary = [u64; 6];

/// Maximum number and bytes of packets of a coalesced send, by the system's rules.
pub(super) const COALESCED_MAX: usize = 64;
const COALESCED_BYTES_MAX: usize = 65_507;

/// Makes packets longer than the path allows an error, without fragmentation.
pub(super) fn forbid_fragments(socket: &Socket, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    }
}

/// Permits fragmentation of packets longer than the path allows.
pub(super) fn allow_fragments(socket: &UdpSocket, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)
    } else {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT)
    }
}

/// Enables delivery of coalesced packets.
pub(super) fn enable_gro(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Requests the traffic class of the IP header with each packet.
pub(super) fn receive_traffic_class(socket: &UdpSocket, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        return set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    }
    // An IPv6 socket at the wildcard address receives IPv4 packets too, if the system permits it.
    let _ = set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)
}

fn set(socket: &impl AsRawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: `value` outlives the call and has the length that is passed.
    let result = unsafe {
        let value: *const c_int = &value;
        let len = size_of::<c_int>() as socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, name, value.cast::<c_void>(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Packet to be sent.
struct Slot {
    dst: NodeId,
    socket: usize,
    len: usize,
    addr: SockAddr,
    ancillary: Ancillary,
}

/// Packets that the system did not accept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DropCounts {
    pub(super) all: u64,
    /// Packets that were longer than the network carries.
    pub(super) too_long: u64,
}

/// Packets to send, each with its socket, address and class.
pub(super) struct TxBatch {
    slots: Vec<Slot>,
    buffers: Box<[u8]>,
    stride: usize,
    capacity: usize,
    /// Maximum number of packets that may be coalesced.
    coalesced_max: usize,
    /// Socket whose packets are not coalesced, if there is one.
    uncoalesced_socket: Option<usize>,
    /// Slots in the order of sending.
    order: Vec<usize>,
    /// Slots of the first packet of each message of the system call; its other packets follow.
    heads: Vec<usize>,
    iovecs: Vec<iovec>,
    headers: Vec<mmsghdr>,
}

// SAFETY: the pointers in `iovecs` and `headers` point into the batch itself, are set right before
// each system call and not used after it.
unsafe impl Send for TxBatch {}

impl std::fmt::Debug for TxBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TxBatch({} of {} packets)", self.slots.len(), self.capacity)
    }
}

impl TxBatch {
    /// Allocates `capacity` packets of up to `stride` bytes, of which up to `coalesced_max` may be
    /// coalesced.
    pub(super) fn new(capacity: usize, stride: usize, coalesced_max: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            buffers: vec![0; capacity * stride].into(),
            stride,
            capacity,
            coalesced_max,
            uncoalesced_socket: None,
            order: Vec::with_capacity(capacity),
            heads: Vec::with_capacity(capacity),
            iovecs: Vec::with_capacity(capacity),
            headers: Vec::with_capacity(capacity),
        }
    }

    /// Excludes the packets of this socket from coalescing.
    pub(super) fn disable_coalescing(&mut self, socket: usize) {
        self.uncoalesced_socket = Some(socket);
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.len() == self.capacity
    }

    /// Adds a packet, which `write` writes into its buffer. If it is longer than the limit in
    /// `cut`, it is sent by the other socket there. The batch must not be full.
    pub(super) fn push(
        &mut self,
        dst: NodeId,
        addr: SocketAddr,
        socket: usize,
        cut: Option<(usize, usize)>,
        class: u8,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let at = self.slots.len() * self.stride;
        let len = write(&mut self.buffers[at..at + self.stride]);
        assert!(len <= self.stride, "{len} bytes were written into {}", self.stride);
        let ancillary = class_message(addr.is_ipv4(), class);
        let socket = match cut {
            Some((bytes, other)) if len > bytes => other,
            _ => socket,
        };
        self.slots.push(Slot { dst, socket, len, addr: addr.into(), ancillary });
    }

    /// Sends all packets, those of one socket together and in order. Returns the number of dropped
    /// ones: the system's buffers were full, the network is down or carries only shorter packets.
    /// Calls `too_long` with the receiver and the length of the latter.
    pub(super) fn flush(
        &mut self,
        sockets: &[UdpSocket],
        mut too_long: impl FnMut(NodeId, usize),
    ) -> io::Result<DropCounts> {
        self.order.clear();
        self.order.extend(0..self.slots.len());
        self.order.sort_unstable_by_key(|&idx| (self.slots[idx].socket, idx));
        self.prepare();
        let mut dropped = DropCounts::default();
        let (mut from, mut n_done) = (0, 0);
        while from < self.heads.len() {
            let socket = self.slots[self.heads[from]].socket;
            let of_socket =
                self.heads[from..].iter().take_while(|&&i| self.slots[i].socket == socket);
            let n = of_socket.count();
            match send_some(&sockets[socket], &mut self.headers[from..from + n]) {
                Ok(sent) => {
                    let sent = &self.headers[from..from + sent];
                    n_done += sent.iter().map(|header| header.msg_hdr.msg_iovlen).sum::<usize>();
                    from += sent.len();
                }
                // The error belongs to the first message.
                Err(error) => {
                    let n_packets = self.headers[from].msg_hdr.msg_iovlen;
                    if n_packets > 1 && is_not_joinable(&error) {
                        // From now on one by one.
                        self.coalesced_max = 1;
                        self.order.drain(..n_done);
                        self.prepare();
                        (from, n_done) = (0, 0);
                        continue;
                    }
                    if is_fatal(&error) {
                        self.slots.clear();
                        return Err(error);
                    }
                    let n = n_packets as u64;
                    dropped.all += n;
                    if error.raw_os_error() == Some(libc::EMSGSIZE) {
                        dropped.too_long += n;
                        let Slot { dst, len, .. } = &self.slots[self.heads[from]];
                        too_long(*dst, *len);
                    }
                    n_done += n_packets;
                    from += 1;
                }
            }
        }
        self.slots.clear();
        Ok(dropped)
    }

    /// Prepares the arguments of the system call, in the order of sending.
    fn prepare(&mut self) {
        self.heads.clear();
        self.iovecs.clear();
        self.headers.clear();
        for &idx in &self.order {
            let base = self.buffers[idx * self.stride..].as_mut_ptr().cast::<c_void>();
            self.iovecs.push(iovec { iov_base: base, iov_len: self.slots[idx].len });
        }
        let mut at = 0;
        while at < self.order.len() {
            let (idx, n) = (self.order[at], self.segment_count(at));
            let slot = &mut self.slots[idx];
            // SAFETY: all-zero bytes are a valid header, with null pointers and zero lengths.
            let mut header: mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_controllen = CLASS_SPACE;
            if n > 1 {
                let len = slot.len as u16;
                let end =
                    put(&mut slot.ancillary, CLASS_SPACE, libc::SOL_UDP, libc::UDP_SEGMENT, len);
                header.msg_hdr.msg_controllen = end;
            }
            header.msg_hdr.msg_name = slot.addr.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = slot.addr.len();
            header.msg_hdr.msg_iov = self.iovecs[at..].as_mut_ptr();
            header.msg_hdr.msg_iovlen = n;
            header.msg_hdr.msg_control = slot.ancillary.as_mut_ptr().cast();
            self.headers.push(header);
            self.heads.push(idx);
            at += n;
        }
    }

    /// Returns the number of packets that are sent as one, from the `at`-th on. They have one
    /// socket, address, class and length, except that the last may be shorter.
    fn segment_count(&self, at: usize) -> usize {
        let waiting = || self.order[at..].iter().take(self.coalesced_max).map(|&i| &self.slots[i]);
        let Some(first) = waiting().next() else { return 0 };
        if self.uncoalesced_socket == Some(first.socket) {
            return 1;
        }
        let (mut n, mut bytes) = (0, 0);
        for slot in waiting() {
            let is_alike = slot.socket == first.socket
                && slot.addr == first.addr
                && slot.ancillary == first.ancillary;
            let is_no_longer = (1..=first.len).contains(&slot.len);
            if n > 0 && !(is_alike && is_no_longer && bytes + slot.len <= COALESCED_BYTES_MAX) {
                break;
            }
            n += 1;
            bytes += slot.len;
            if slot.len < first.len {
                break;
            }
        }
        n
    }
}

/// Bytes of the ancillary data that sets a class.
// SAFETY: it only computes.
const CLASS_SPACE: usize = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) as usize };

/// Returns the ancillary data that sets a packet's class.
fn class_message(is_v4: bool, class: u8) -> Ancillary {
    let mut space: Ancillary = [0; 6];
    let (level, name) = if is_v4 {
        (libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    put(&mut space, 0, level, name, c_int::from(class));
    space
}

/// Writes a control message at an offset; returns the offset of its end.
fn put<T: Copy>(space: &mut Ancillary, at: usize, level: c_int, name: c_int, value: T) -> usize {
    // SAFETY: it only computes.
    let (len, end) = unsafe {
        let size = size_of::<T>() as u32;
        (libc::CMSG_LEN(size) as usize, at + libc::CMSG_SPACE(size) as usize)
    };
    assert!(end <= size_of::<Ancillary>(), "control messages of {end} bytes");
    // SAFETY: the message is within the space, which is aligned for its header, as is its end.
    unsafe {
        let header = space.as_mut_ptr().byte_add(at).cast::<cmsghdr>();
        (*header).cmsg_level = level;
        (*header).cmsg_type = name;
        (*header).cmsg_len = len;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    end
}

fn send_some(socket: &UdpSocket, headers: &mut [mmsghdr]) -> io::Result<usize> {
    let n = headers.len() as u32;
    // SAFETY: the headers' pointers were set for this call and point to live memory of their
    // lengths.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), n, 0) };
    if sent > 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

/// Returns true for errors of the node itself. All others concern one packet or a network: full
/// buffers, a link that is down, or no route from the node's address to a peer (`EINVAL`).
fn is_fatal(error: &io::Error) -> bool {
    let fatal = [libc::EBADF, libc::ENOTSOCK, libc::EFAULT, libc::EAFNOSUPPORT];
    error.raw_os_error().is_some_and(|code| fatal.contains(&code))
}

/// Returns true for errors of coalesced packets that the system cannot segment. Older systems
/// return `EINVAL` too if packets are longer than the path allows.
fn is_not_joinable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

/// Buffers for packets that arrive.
pub(super) struct RxBatch {
    buffers: Box<[u8]>,
    stride: usize,
    datagram_max: usize,
    ancillary: Box<[Ancillary]>,
    names: Box<[sockaddr_storage]>,
    iovecs: Vec<iovec>,
    headers: Vec<mmsghdr>,
    /// Number of headers to set before the next call.
    n_filled: usize,
    malformed: u64,
    oversized: u64,
}

// SAFETY: as for [`TxBatch`]; the boxes that are pointed to keep their address.
unsafe impl Send for RxBatch {}

impl std::fmt::Debug for RxBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RxBatch({} packets)", self.headers.len())
    }
}

impl RxBatch {
    /// Allocates buffers for `capacity` datagrams of up to `datagram_max` bytes.
    pub(super) fn new(capacity: usize, datagram_max: usize) -> Self {
        // One byte more detects datagrams that are too long.
        Self::with_stride(capacity, datagram_max, datagram_max + 1)
    }

    /// Allocates buffers for `capacity` datagrams of maximum coalesced length.
    pub(super) fn with_gro(capacity: usize, datagram_max: usize) -> Self {
        Self::with_stride(capacity, datagram_max, COALESCED_BYTES_MAX)
    }

    fn with_stride(capacity: usize, datagram_max: usize, stride: usize) -> Self {
        // SAFETY: all-zero bytes are valid addresses and headers.
        let (names, header): (_, mmsghdr) = unsafe { (vec![zeroed(); capacity], zeroed()) };
        let mut batch = Self {
            buffers: vec![0; capacity * stride].into(),
            stride,
            datagram_max,
            ancillary: vec![[0; 6]; capacity].into(),
            names: names.into(),
            iovecs: Vec::with_capacity(capacity),
            headers: vec![header; capacity],
            n_filled: capacity,
            malformed: 0,
            oversized: 0,
        };
        for buffer in batch.buffers.chunks_exact_mut(stride) {
            batch.iovecs.push(iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: stride });
        }
        batch
    }

    /// Returns the numbers of datagrams without an address, and of those that were too long.
    pub(super) fn drop_counts(&self) -> (u64, u64) {
        (self.malformed, self.oversized)
    }

    /// Calls `each` with the packets that have arrived at `socket`, at most a batch, with their
    /// addresses and traffic classes. Returns the number of packets.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(&[u8], IpAddr, u8),
    ) -> io::Result<usize> {
        // The system has changed the headers that it has filled.
        for (idx, header) in self.headers.iter_mut().enumerate().take(self.n_filled) {
            header.msg_hdr.msg_name = (&raw mut self.names[idx]).cast();
            header.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as socklen_t;
            header.msg_hdr.msg_iov = &raw mut self.iovecs[idx];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = self.ancillary[idx].as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<Ancillary>();
            header.msg_hdr.msg_flags = 0;
        }
        let n = self.headers.len() as u32;
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: names, buffers and headers are live and as long as the headers state, and no
        // other reference to them exists during the call.
        self.n_filled = 0;
        let got = unsafe {
            let no_timeout = std::ptr::null_mut();
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), n, flags, no_timeout)
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            // An ICMP error for an earlier packet means only that its receiver is unreachable.
            let is_transient = matches!(
                error.raw_os_error(),
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM)
            );
            return if is_transient { Ok(0) } else { Err(error) };
        }
        self.n_filled = got as usize;
        let mut n = 0;
        for idx in 0..self.n_filled {
            let len = self.headers[idx].msg_len as usize;
            let bytes = &self.buffers[idx * self.stride..][..len];
            let from = ip_of(&self.names[idx]);
            // A datagram that is not coalesced is whole even if it is empty.
            let (segment, class) = ancillary_of(&self.headers[idx]);
            let segment = segment.unwrap_or(len).max(1);
            n += len.div_ceil(segment).max(1);
            let mut rest = bytes;
            loop {
                let (part, later) = rest.split_at(segment.min(rest.len()));
                match from {
                    Some(from) if part.len() <= self.datagram_max => each(part, from, class),
                    Some(_) => self.oversized += 1,
                    None => self.malformed += 1,
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(n)
    }
}

/// Returns the ancillary data of a message: the length of its packets if they have arrived
/// coalesced, and their traffic class, zero if missing. Packets of different classes are not
/// coalesced.
fn ancillary_of(header: &mmsghdr) -> (Option<usize>, u8) {
    let (mut segment, mut class) = (None, 0);
    // SAFETY: the system has written whole control messages into the space that the header names.
    // Each has as many bytes as its type: one for IP_TOS, an int for the others.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&header.msg_hdr);
        while let Some(found) = message.as_ref() {
            let data = libc::CMSG_DATA(found);
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    segment = usize::try_from(data.cast::<c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => class = data.read(),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    class = data.cast::<c_int>().read_unaligned() as u8;
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&header.msg_hdr, found);
        }
    }
    (segment, class)
}

fn ip_of(name: &sockaddr_storage) -> Option<IpAddr> {
    let name: *const sockaddr_storage = name;
    // SAFETY: the family determines the type of the address that the system has written, and the
    // storage is large enough and aligned for any.
    unsafe {
        match c_int::from((*name).ss_family) {
            libc::AF_INET => {
                let addr = (*name.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(Ipv4Addr::from(u32::from_be(addr)).into())
            }
            libc::AF_INET6 => {
                let addr = (*name.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(Ipv6Addr::from(addr).into())
            }
            _ => None,
        }
    }
}
