//! AF_XDP socket with its memory and rings.
//!
//! The memory is divided into frames of equal size. Each of them is free, owned by the datapath, or
//! in one of four rings: fill, receive, transmit or completion. Frames for receiving and frames for
//! sending are distinguished by number, not by address. Each frame from the receive ring is
//! returned to the fill ring, and the number of frames for sending is limited. So neither direction
//! can starve the other.
//!
//! The kernel passes a frame on before it marks the frame's place in its previous ring as free. A
//! ring with one place per frame would therefore sometimes seem full; the fill and transmit rings
//! have two.

#![allow(unsafe_code, reason = "frames are lent by a library that does not know their lifetime")]

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{SendFlags, sockopt};
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab};
use xdp::socket::{SocketError, XdpSocket, XdpSocketBuilder};
use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{RingConfigBuilder, Umem, WakableRings};

/// Bytes of the kernel's send queue.
const SEND_BUFFER: usize = 4 << 20;
/// Bytes at the front of each frame that the kernel uses.
const KERNEL_BYTES: usize = xdp::libc::xdp::XDP_PACKET_HEADROOM as usize;
/// Maximum number of system calls in a row to send packets. One sends 32 packets unless the
/// interface is busy.
const KICKS: usize = 16;

/// A frame with a packet. It must be passed to [`Xsk::free`] or [`Xsk::submit`]; otherwise it
/// leaks.
#[must_use]
pub(super) struct Frame(xdp::Packet);

// SAFETY: the pointers in a frame point into the memory of its socket, and no other code has them.
// The memory lives as long as the datapath, which also owns the frame; it is not bound to a thread.
unsafe impl Send for Frame {}

impl Frame {
    /// Makes the packet shorter.
    pub(super) fn shorten_to(&mut self, len: usize) {
        let cut = self.0.len().saturating_sub(len) as i32;
        self.0.adjust_tail(-cut).expect("no more is cut than there is");
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Queue of frames, first in, first out.
pub(super) struct Frames(HeapSlab);

// SAFETY: as for [`Frame`].
unsafe impl Send for Frames {}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frames({})", self.len())
    }
}

impl Frames {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self(HeapSlab::with_capacity(capacity))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a frame. The queue must not be full.
    pub(super) fn push(&mut self, frame: Frame) {
        let refused = self.0.push_front(frame.0);
        assert!(refused.is_none(), "{} frames are as many as may wait", self.0.len());
    }

    pub(super) fn pop(&mut self) -> Option<Frame> {
        self.0.pop_back().map(Frame)
    }
}

/// Sizes of a socket's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketSizes {
    /// Maximum bytes of a packet with its Ethernet header.
    pub(super) packet_max: usize,
    /// Frames for receiving and for sending: powers of two. Without frames for sending, a socket
    /// sends nothing.
    pub(super) rx: u32,
    pub(super) tx: u32,
}

/// Socket at one queue of an interface.
pub(super) struct Xsk {
    // In the order in which they must be dropped: the kernel releases the memory with the socket.
    socket: XdpSocket,
    rings: WakableRings,
    umem: Umem,
    /// Frames that were freed after receiving and are not in the fill ring yet.
    rx_freed: usize,
    /// Number of frames that may still be allocated for sending.
    tx_free: usize,
    /// True if the kernel has not processed all of the transmit ring.
    is_behind: bool,
}

impl std::fmt::Debug for Xsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rx_freed, tx_free, is_behind, .. } = self;
        f.debug_struct("Xsk")
            .field("fd", &self.socket.as_raw_fd())
            .field("rx_freed", rx_freed)
            .field("tx_free", tx_free)
            .field("is_behind", is_behind)
            .finish_non_exhaustive()
    }
}

impl Xsk {
    /// Opens a socket at a queue, in copy mode.
    pub(super) fn open(interface: u32, queue: u32, size: SocketSizes) -> io::Result<Self> {
        let SocketSizes { packet_max, rx, tx } = size;
        let (frame_size, frame_bytes) = frame_size(packet_max)?;
        let config = UmemCfgBuilder { frame_size, frame_count: rx + tx, ..Default::default() };
        let config = config.build().map_err(io::Error::other)?;
        let mut umem = Umem::map(config)?;
        // The kernel requires a completion ring of each socket.
        let completion_count = tx.max(1);
        let rings =
            RingConfigBuilder { rx_count: rx, tx_count: tx, fill_count: rx, completion_count };
        let rings = rings.build().map_err(io::Error::other)?;
        let bytes = (rx + tx) as usize * frame_bytes;
        let explained = |error| explained(error, bytes);
        let mut builder = XdpSocketBuilder::new().map_err(explained)?;
        let (mut rings, mut flags) =
            builder.build_wakable_rings(&umem, rings).map_err(explained)?;
        flags.force_copy();
        // SAFETY: the memory is dropped after the socket.
        let filled = unsafe { rings.fill_ring.enqueue(&mut umem, rx as usize, false) }?;
        assert_eq!(filled, rx as usize, "the fill ring has room for all frames for receiving");
        let socket = builder.bind(NicIndex(interface), queue, flags).map_err(explained)?;
        let xsk = Self { socket, rings, umem, rx_freed: 0, tx_free: tx as usize, is_behind: false };
        // The default buffer holds less than a hundred packets. The system may refuse a larger one.
        let _ = sockopt::set_socket_send_buffer_size_force(xsk.fd(), SEND_BUFFER)
            .or_else(|_| sockopt::set_socket_send_buffer_size(xsk.fd(), SEND_BUFFER));
        Ok(xsk)
    }

    /// Returns the descriptor, which is readable when packets have arrived.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the socket's, which lives as long as the borrow.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }

    /// Removes packets from the receive ring, as many as fit into `into`. Returns their number.
    pub(super) fn receive(&mut self, into: &mut Frames) -> usize {
        let Some(ring) = &mut self.rings.rx_ring else { return 0 };
        // SAFETY: the frames stay within the datapath, which owns the memory.
        unsafe { ring.recv(&self.umem, &mut into.0) }
    }

    /// Frees a frame from [`Xsk::receive`].
    pub(super) fn free(&mut self, frame: Frame) {
        self.umem.free_packet(frame.0);
        self.rx_freed += 1;
    }

    /// Passes the freed frames to the kernel, to receive into.
    pub(super) fn refill(&mut self) -> io::Result<()> {
        if self.rx_freed > 0 {
            // In copy mode the kernel polls the ring by itself, and needs no wake-up. SAFETY: the
            // memory is dropped after the socket.
            let n = unsafe { self.rings.fill_ring.enqueue(&mut self.umem, self.rx_freed, false) }?;
            self.rx_freed -= n;
        }
        Ok(())
    }

    /// Allocates a frame of `len` bytes to write a packet into, if there is one.
    pub(super) fn take(&mut self, len: usize) -> Option<Frame> {
        if self.tx_free == 0 {
            self.reclaim();
        }
        if self.tx_free == 0 {
            return None;
        }
        // SAFETY: the frame stays within the datapath, which owns the memory.
        let mut frame = unsafe { self.umem.alloc() }?;
        frame.adjust_tail(len as i32).ok()?;
        self.tx_free -= 1;
        Some(Frame(frame))
    }

    /// Puts packets into the transmit ring. Returns the number that did not fit; they are dropped.
    pub(super) fn submit(&mut self, frames: &mut Frames) -> io::Result<u64> {
        let mut drops = 0;
        if let Some(ring) = &mut self.rings.tx_ring {
            // SAFETY: the memory is dropped after the socket.
            let n = unsafe { ring.send(&mut frames.0, false) }?;
            self.is_behind |= n > 0;
        }
        while let Some(frame) = frames.pop() {
            self.umem.free_packet(frame.0);
            self.tx_free += 1;
            drops += 1;
        }
        Ok(drops)
    }

    /// Makes the kernel send packets in the transmit ring, as far as it can now.
    pub(super) fn wake_kernel(&mut self) -> io::Result<()> {
        for _ in 0..KICKS {
            if !self.is_behind {
                break;
            }
            match rustix::net::send(self.fd(), &[], SendFlags::DONTWAIT) {
                Ok(_) => self.is_behind = false,
                Err(error) => {
                    let error = io::Error::from(error);
                    match error.raw_os_error() {
                        // A call sends a limited number of packets, then returns "again".
                        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                        // An interface that is down sends nothing; it may be up later.
                        Some(libc::ENETDOWN) => break,
                        _ => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if [`Xsk::wake_kernel`] should be called again.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Frees the frames of packets that have been sent.
    pub(super) fn reclaim(&mut self) {
        self.tx_free += self.rings.completion_ring.dequeue(&mut self.umem, u32::MAX as usize);
    }

    /// Returns the number of packets for the socket that the kernel had to drop.
    pub(super) fn overflow(&self) -> u64 {
        let Ok(n) = self.socket.statistics() else { return 0 };
        // Packets that were dropped for lack of a fill-ring entry are included in the first.
        n.rx_dropped + n.rx_ring_full
    }
}

/// Returns the size of frames that hold packets of `packet_max` bytes.
fn frame_size(packet_max: usize) -> io::Result<(FrameSize, usize)> {
    for (size, bytes) in [(FrameSize::TwoK, 2_048), (FrameSize::FourK, 4_096)] {
        if packet_max <= bytes - KERNEL_BYTES {
            return Ok((size, bytes));
        }
    }
    let max = 4_096 - KERNEL_BYTES - super::frame::ETHERNET;
    let why = format!("AF_XDP carries packets of up to {max} bytes; set a smaller MTU");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Adds the missing privilege to an error.
fn explained(error: SocketError, bytes: usize) -> io::Error {
    let (what, cause) = match &error {
        SocketError::SocketCreation(cause) => ("open an AF_XDP socket", cause),
        SocketError::SetSockOpt { inner, .. } => ("set up an AF_XDP socket", inner),
        SocketError::GetSockOpt { inner, .. } => ("query an AF_XDP socket", inner),
        SocketError::RingMap { inner, .. } => ("map a ring of an AF_XDP socket", inner),
        SocketError::Bind(cause) => ("bind the AF_XDP socket", cause),
    };
    let hint = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": CAP_NET_RAW is needed".to_owned(),
        Some(libc::EAFNOSUPPORT) => ": this kernel has no AF_XDP".to_owned(),
        Some(libc::ENOBUFS) => {
            format!(": {bytes} bytes must be locked; raise `ulimit -l` or give CAP_IPC_LOCK")
        }
        Some(libc::EBUSY) => ": another socket has the interface's queue".to_owned(),
        _ => String::new(),
    };
    io::Error::new(cause.kind(), format!("cannot {what}: {cause}{hint}"))
}
