//! Batches of datagrams through `sendmmsg` and `recvmmsg`: what no safe interface offers with a
//! class for each message.

#![allow(unsafe_code, reason = "system calls on arrays of messages")]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use libc::{c_int, c_void, cmsghdr, iovec, mmsghdr, sockaddr_storage, socklen_t};
use socket2::{SockAddr, Socket};

/// Room for one control message that holds an int, aligned for its header.
type Ancillary = [u64; 4];

/// Packets longer than the path allows are an error, not fragments.
pub(super) fn forbid_fragments(socket: &Socket, is_v4: bool) -> io::Result<()> {
    let (level, name, value): (c_int, c_int, c_int) = if is_v4 {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    };
    // SAFETY: `value` outlives the call and has the length that is passed.
    let result = unsafe {
        let value: *const c_int = &value;
        let len = size_of::<c_int>() as socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, name, value.cast::<c_void>(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A packet that waits to be sent.
struct Slot {
    socket: usize,
    len: usize,
    addr: SockAddr,
    ancillary: Ancillary,
}

/// Packets to send, each with its socket, address and class.
pub(super) struct TxBatch {
    slots: Vec<Slot>,
    buffers: Box<[u8]>,
    stride: usize,
    capacity: usize,
    /// Of each slot in the order of sending.
    order: Vec<usize>,
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
    pub(super) fn new(capacity: usize, stride: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            buffers: vec![0; capacity * stride].into(),
            stride,
            capacity,
            order: Vec::with_capacity(capacity),
            iovecs: Vec::with_capacity(capacity),
            headers: Vec::with_capacity(capacity),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.len() == self.capacity
    }

    /// Adds a packet, which `write` puts into its buffer. There must be room.
    pub(super) fn push(
        &mut self,
        socket: usize,
        addr: SocketAddr,
        class: u8,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let at = self.slots.len() * self.stride;
        let len = write(&mut self.buffers[at..at + self.stride]);
        assert!(len <= self.stride, "{len} bytes were written into {}", self.stride);
        let ancillary = class_message(addr.is_ipv4(), class);
        self.slots.push(Slot { socket, len, addr: addr.into(), ancillary });
    }

    /// Sends all packets, those of one socket together and in order. Returns how many were dropped
    /// because the system's buffers were full or the network is down.
    pub(super) fn flush(&mut self, sockets: &[UdpSocket]) -> io::Result<u64> {
        self.order.clear();
        self.order.extend(0..self.slots.len());
        self.order.sort_unstable_by_key(|&idx| (self.slots[idx].socket, idx));
        self.prepare();
        let mut drops = 0;
        let mut from = 0;
        while from < self.order.len() {
            let socket = self.slots[self.order[from]].socket;
            let of_socket =
                self.order[from..].iter().take_while(|&&i| self.slots[i].socket == socket);
            let n = of_socket.count();
            match send_some(&sockets[socket], &mut self.headers[from..from + n]) {
                Ok(sent) => from += sent,
                Err(error) if is_fatal(&error) => {
                    self.slots.clear();
                    return Err(error);
                }
                // The error is the first packet's.
                Err(_) => {
                    drops += 1;
                    from += 1;
                }
            }
        }
        self.slots.clear();
        Ok(drops)
    }

    /// Sets up what the system call reads, in the order of sending.
    fn prepare(&mut self) {
        self.iovecs.clear();
        self.headers.clear();
        for &idx in &self.order {
            let base = self.buffers[idx * self.stride..].as_mut_ptr().cast::<c_void>();
            self.iovecs.push(iovec { iov_base: base, iov_len: self.slots[idx].len });
        }
        for (&idx, iov) in self.order.iter().zip(&mut self.iovecs) {
            let slot = &mut self.slots[idx];
            // SAFETY: all-zero bytes are a valid header, with null pointers and zero lengths.
            let mut header: mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_name = slot.addr.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = slot.addr.len();
            header.msg_hdr.msg_iov = iov;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = slot.ancillary.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<Ancillary>() - 8;
            self.headers.push(header);
        }
    }
}

/// The ancillary data that sets a packet's class.
fn class_message(is_v4: bool, class: u8) -> Ancillary {
    let mut space: Ancillary = [0; 4];
    let (level, name) = if is_v4 {
        (libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    // SAFETY: `space` has 32 bytes and is aligned to 8, as a header wants: 16 bytes of header and 4
    // of an int fit.
    unsafe {
        let header = space.as_mut_ptr().cast::<cmsghdr>();
        (*header).cmsg_level = level;
        (*header).cmsg_type = name;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(class.into());
    }
    space
}

fn send_some(socket: &UdpSocket, headers: &mut [mmsghdr]) -> io::Result<usize> {
    let n = headers.len() as u32;
    // SAFETY: the headers' pointers were set for this call and point to live memory of the lengths
    // that they give.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), n, 0) };
    if sent > 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

/// Errors that are neither a full buffer nor a network that is down.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL | libc::EAFNOSUPPORT)
    )
}

/// Buffers for packets that arrive.
pub(super) struct RxBatch {
    buffers: Box<[u8]>,
    stride: usize,
    names: Box<[sockaddr_storage]>,
    iovecs: Vec<iovec>,
    headers: Vec<mmsghdr>,
    malformed: u64,
}

// SAFETY: as for [`TxBatch`]; the boxes that are pointed to stay where they are.
unsafe impl Send for RxBatch {}

impl std::fmt::Debug for RxBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RxBatch({} packets)", self.headers.len())
    }
}

impl RxBatch {
    /// Room for `capacity` datagrams of up to `datagram_max` bytes.
    pub(super) fn new(capacity: usize, datagram_max: usize) -> Self {
        // One byte more shows datagrams that are too long.
        let stride = datagram_max + 1;
        // SAFETY: all-zero bytes are valid addresses and headers.
        let (names, header): (_, mmsghdr) = unsafe { (vec![zeroed(); capacity], zeroed()) };
        let mut batch = Self {
            buffers: vec![0; capacity * stride].into(),
            stride,
            names: names.into(),
            iovecs: Vec::with_capacity(capacity),
            headers: vec![header; capacity],
            malformed: 0,
        };
        for buffer in batch.buffers.chunks_exact_mut(stride) {
            batch.iovecs.push(iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: stride });
        }
        batch
    }

    /// Datagrams that were too long, or of no address.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Hands over what has arrived at `socket`, at most a batch; returns how much that was.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(&[u8], IpAddr),
    ) -> io::Result<usize> {
        for (idx, header) in self.headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut self.names[idx]).cast();
            header.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as socklen_t;
            header.msg_hdr.msg_iov = &raw mut self.iovecs[idx];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_flags = 0;
        }
        let n = self.headers.len() as u32;
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: names, buffers and headers are live and of the lengths that the headers give, and
        // nothing else refers to them during the call.
        let got = unsafe {
            let no_timeout = std::ptr::null_mut();
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), n, flags, no_timeout)
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            // An ICMP answer to an earlier packet says only that somebody is not there.
            let is_transient = matches!(
                error.raw_os_error(),
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOMEM)
            );
            return if is_transient { Ok(0) } else { Err(error) };
        }
        for idx in 0..got as usize {
            let len = self.headers[idx].msg_len as usize;
            let at = idx * self.stride;
            if let Some(from) = ip_of(&self.names[idx])
                && len < self.stride
            {
                each(&self.buffers[at..at + len], from);
            } else {
                self.malformed += 1;
            }
        }
        Ok(got as usize)
    }
}

fn ip_of(name: &sockaddr_storage) -> Option<IpAddr> {
    let name: *const sockaddr_storage = name;
    // SAFETY: the family says which address the system has written, and the storage is large enough
    // and aligned for any.
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
