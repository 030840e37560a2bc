//! Minimal loops, for the upper bound of a datapath's rate.

#![allow(unsafe_code, reason = "system calls, and frames of memory shared with the kernel")]

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

use rampmeter_runtime::datapath::xdp::{Steering, XdpMode};
use rampmeter_types::Time;
use rustix::net::{SendFlags, sockopt};
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab};
use xdp::socket::{XdpSocket, XdpSocketBuilder};
use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{RingConfigBuilder, Umem, WakableRings};

use crate::{BATCH, End, LONG, PORT};

/// Returns the stamp at the front of a datagram.
pub(crate) fn stamp(bytes: &[u8]) -> u64 {
    bytes.get(..8).map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("eight bytes")))
}

const HEADERS: usize = 42;
const FRAMES: u32 = 2_048;

/// An AF_XDP socket that sends frames with only lengths and stamps filled in.
pub(crate) struct BareXdp {
    _steering: Steering,
    socket: XdpSocket,
    rings: WakableRings,
    umem: Umem,
    headers: [u8; HEADERS],
    tx: HeapSlab,
    rx: HeapSlab,
}

// SAFETY: frames and rings point into mappings that move along and are not bound to a thread.
unsafe impl Send for BareXdp {}

impl BareXdp {
    pub(crate) fn open(local: Ipv4Addr, peer: Ipv4Addr) -> io::Result<Self> {
        let nic = NicIndex::lookup_by_name(c"eth0")?.ok_or(io::ErrorKind::NotFound)?;
        let config = UmemCfgBuilder {
            frame_size: FrameSize::TwoK,
            frame_count: FRAMES * 2,
            ..Default::default()
        };
        let mut umem = Umem::map(config.build().map_err(io::Error::other)?)?;
        let rings = RingConfigBuilder {
            rx_count: FRAMES,
            tx_count: FRAMES * 2,
            fill_count: FRAMES * 2,
            completion_count: FRAMES,
        };
        let rings = rings.build().map_err(io::Error::other)?;
        let mut builder = XdpSocketBuilder::new().map_err(io::Error::other)?;
        let built = builder.build_wakable_rings(&umem, rings).map_err(io::Error::other)?;
        let (mut rings, mut flags) = built;
        flags.force_copy();
        // SAFETY: the memory is dropped after the socket.
        unsafe { rings.fill_ring.enqueue(&mut umem, FRAMES as usize, false) }?;
        let socket = builder.bind(nic, 0, flags).map_err(io::Error::other)?;
        let local = SocketAddrV4::new(local, PORT);
        // SAFETY: the socket is open.
        let fd = unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) };
        sockopt::set_socket_send_buffer_size_force(fd, 4 << 20)?;
        let steering = Steering::attach(nic.0, XdpMode::Generic, local, &[(0, fd)])?;
        let mut headers = [0; HEADERS];
        headers[..6].fill(0xff);
        headers[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        headers[22..24].copy_from_slice(&[64, 17]);
        headers[26..30].copy_from_slice(&local.ip().octets());
        headers[30..34].copy_from_slice(&peer.octets());
        headers[34..36].copy_from_slice(&PORT.to_be_bytes());
        headers[36..38].copy_from_slice(&(PORT + 1).to_be_bytes());
        let [tx, rx] = [BATCH, BATCH].map(HeapSlab::with_capacity);
        Ok(Self { _steering: steering, socket, rings, umem, headers, tx, rx })
    }
}

impl End for BareXdp {
    fn send(&mut self, len: usize, stamp: u64) -> io::Result<()> {
        // SAFETY: the frame stays within `self`, which owns the memory.
        let Some(mut frame) = (unsafe { self.umem.alloc() }) else { return Ok(()) };
        frame.adjust_tail((HEADERS + len) as i32).map_err(io::Error::other)?;
        frame[..HEADERS].copy_from_slice(&self.headers);
        frame[HEADERS..HEADERS + 8].copy_from_slice(&stamp.to_ne_bytes());
        self.tx.push_front(frame);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the memory is dropped after the socket.
        unsafe { self.rings.tx_ring.as_mut().expect("it sends").send(&mut self.tx, false) }?;
        // SAFETY: the socket is open.
        let fd = unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) };
        while rustix::net::send(fd, &[], SendFlags::DONTWAIT) == Err(rustix::io::Errno::AGAIN) {}
        self.rings.completion_ring.dequeue(&mut self.umem, BATCH);
        Ok(())
    }

    fn receive(&mut self, _now: Time) -> io::Result<(usize, u64)> {
        let ring = self.rings.rx_ring.as_mut().expect("it receives");
        // SAFETY: the frames are returned before the memory is dropped.
        let n = unsafe { ring.recv(&self.umem, &mut self.rx) };
        let mut last = 0;
        while let Some(frame) = self.rx.pop_back() {
            last = stamp(&frame[HEADERS..]);
            self.umem.free_packet(frame);
        }
        if n > 0 {
            // SAFETY: the memory is dropped after the socket.
            unsafe { self.rings.fill_ring.enqueue(&mut self.umem, n, false) }?;
        }
        Ok((n, last))
    }
}

/// A UDP socket that sends datagrams to one address, without being connected to it.
pub(crate) struct BareUdp {
    socket: UdpSocket,
    tx: Batch,
    rx: Batch,
    waiting: usize,
}

/// Messages of a system call, and their buffers.
struct Batch {
    buffers: Vec<Box<[u8]>>,
    iovecs: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_in>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers point into boxes and vectors that are not reallocated and move along.
unsafe impl Send for Batch {}

impl Batch {
    /// Creates messages to `peer`, or from any address.
    fn new(peer: Ipv4Addr) -> Self {
        let mut buffers = vec![vec![0; LONG].into_boxed_slice(); BATCH];
        let iovec = |buffer: &mut Box<[u8]>| libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: LONG,
        };
        let mut iovecs: Vec<_> = buffers.iter_mut().map(iovec).collect();
        let name = libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: PORT.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(peer.octets()) },
            sin_zero: [0; 8],
        };
        let mut names = vec![name; BATCH];
        let header = |(iovec, name): (&mut libc::iovec, &mut libc::sockaddr_in)| {
            // SAFETY: all-zero bytes are a valid header.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (iovec, 1);
            header
        };
        let headers = iovecs.iter_mut().zip(&mut names).map(header).collect();
        Self { buffers, iovecs, names, headers }
    }
}

impl BareUdp {
    pub(crate) fn open(local: Ipv4Addr, peer: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((local, PORT))?;
        socket.set_nonblocking(true)?;
        let _ = sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        let _ = sockopt::set_socket_send_buffer_size(&socket, 4 << 20);
        Ok(Self { socket, tx: Batch::new(peer), rx: Batch::new(peer), waiting: 0 })
    }
}

impl End for BareUdp {
    fn send(&mut self, len: usize, stamp: u64) -> io::Result<()> {
        self.tx.buffers[self.waiting][..8].copy_from_slice(&stamp.to_ne_bytes());
        self.tx.iovecs[self.waiting].iov_len = len;
        self.waiting += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (fd, n) = (self.socket.as_raw_fd(), self.waiting as u32);
        // SAFETY: the headers point to live memory of the lengths in them.
        unsafe { libc::sendmmsg(fd, self.tx.headers.as_mut_ptr(), n, 0) };
        self.waiting = 0;
        Ok(())
    }

    fn receive(&mut self, _now: Time) -> io::Result<(usize, u64)> {
        let (fd, n, flags) = (self.socket.as_raw_fd(), BATCH as u32, libc::MSG_DONTWAIT);
        let headers = self.rx.headers.as_mut_ptr();
        // SAFETY: the headers point to live memory of the lengths in them.
        let got = unsafe { libc::recvmmsg(fd, headers, n, flags, std::ptr::null_mut()) };
        if got <= 0 {
            return Ok((0, 0));
        }
        debug_assert!(self.rx.names[0].sin_port == PORT.to_be());
        Ok((got as usize, stamp(&self.rx.buffers[got as usize - 1])))
    }
}
