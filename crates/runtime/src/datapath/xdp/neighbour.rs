//! Link addresses of peers, as the kernel resolves them.
//!
//! Frames need the link address of the next hop. The kernel resolves it when it has a packet to
//! send there. So for an unknown peer an empty datagram is sent to the peer's discard port by way
//! of the kernel. A moment later its table has the answer. The kernel drops entries of neighbours
//! to which it sends nothing, so some peers are resolved again at each refresh. That also detects
//! replaced interfaces and changed routes. An address stays in use until a new one is resolved.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rampmeter_types::{Span, Time};

use super::frame::Mac;
use super::netlink::{Link, Netlink};

/// Interval of reads of the kernel's table while a peer's address is missing.
const READ_INTERVAL: Span = Span::from_us(10_000);
/// Interval of reads otherwise.
const REFRESH: Span = Span::from_us(5_000_000);
/// Number of peers that are resolved again at each refresh.
const REFRESH_BATCH: usize = 4;
/// Discard service: it sends no answer.
const DISCARD: u16 = 9;

/// Link addresses of all peers.
#[derive(Debug)]
pub(super) struct Neighbours {
    netlink: Netlink,
    link: Link,
    kernel: UdpSocket,
    /// Peers by number.
    peers: Vec<Option<Peer>>,
    next_read_at: Time,
    next_refresh: Time,
    /// Index of the peer that is resolved again next.
    next_index: usize,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    ip: Ipv4Addr,
    /// Next hop, if there is a route through the interface.
    hop: Option<Ipv4Addr>,
    mac: Option<Mac>,
}

impl Neighbours {
    /// Creates the table of peers by number, which are reached through `link`. `kernel` is any
    /// socket on the same network.
    ///
    /// # Errors
    /// A peer that is reached through another interface.
    pub(super) fn new(
        netlink: Netlink,
        link: Link,
        kernel: UdpSocket,
        peers: impl Iterator<Item = Option<Ipv4Addr>>,
    ) -> io::Result<Self> {
        let peers = peers.map(|ip| ip.map(|ip| Peer { ip, hop: None, mac: None })).collect();
        let (next_read_at, next_refresh) = (Time::ZERO, Time::ZERO);
        let mut this =
            Self { netlink, link, kernel, peers, next_read_at, next_refresh, next_index: 0 };
        for idx in 0..this.peers.len() {
            this.route(idx)?;
        }
        Ok(this)
    }

    /// Returns the link address for a peer's frames.
    pub(super) fn mac(&self, peer: usize) -> Option<Mac> {
        self.peers.get(peer)?.as_ref()?.mac
    }

    /// Returns the number of peers that have a route and no link address.
    pub(super) fn n_unknown(&self) -> usize {
        self.peers.iter().flatten().filter(|p| p.hop.is_some() && p.mac.is_none()).count()
    }

    /// Handles a dropped packet to a peer without link address: requests the address, unless it was
    /// requested a moment before. Returns true if addresses have changed.
    pub(super) fn request_address(&mut self, now: Time, peer: usize) -> bool {
        if now < self.next_read_at {
            return false;
        }
        self.next_read_at = now + READ_INTERVAL;
        // Without a route now, there may be one later.
        let _ = self.route(peer);
        let has_changed = self.read_table();
        if self.mac(peer).is_none() {
            self.trigger_resolution(peer);
        }
        has_changed
    }

    /// Reads the kernel's table if the interval is over. Returns true if addresses have changed.
    pub(super) fn refresh(&mut self, now: Time) -> bool {
        if now < self.next_refresh {
            return false;
        }
        self.next_refresh = now + REFRESH;
        for _ in 0..REFRESH_BATCH.min(self.peers.len()) {
            let _ = self.route(self.next_index);
            self.trigger_resolution(self.next_index);
            self.next_index = (self.next_index + 1) % self.peers.len();
        }
        self.read_table()
    }

    /// Makes the kernel resolve all unknown peers.
    pub(super) fn resolve_unknown(&mut self) {
        (0..self.peers.len())
            .filter(|&idx| self.mac(idx).is_none())
            .for_each(|idx| self.trigger_resolution(idx));
    }

    /// Reads the kernel's table. Returns true if addresses have changed.
    pub(super) fn read_table(&mut self) -> bool {
        let Ok(table) = self.netlink.neighbours(self.link.index) else { return false };
        let mut has_changed = false;
        for peer in self.peers.iter_mut().flatten() {
            let known = peer.hop.and_then(|hop| table.get(&hop));
            if let Some(&mac) = known
                && peer.mac != Some(mac)
            {
                peer.mac = Some(mac);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Requests the next hop to a peer. A missing route is no error: there may be one later.
    fn route(&mut self, peer: usize) -> io::Result<()> {
        let Some(Some(peer)) = self.peers.get_mut(peer) else { return Ok(()) };
        let Ok(hop) = self.netlink.hop(peer.ip) else { return Ok(()) };
        if hop.interface != self.link.index {
            let (ip, got, expected) = (peer.ip, hop.interface, self.link.index);
            let why = format!(
                "peer {ip} is reached through interface {got}, the datapath's is {expected}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        peer.hop = Some(hop.next);
        Ok(())
    }

    /// Makes the kernel send to a peer.
    fn trigger_resolution(&self, peer: usize) {
        if let Some(Some(Peer { ip, hop: Some(_), .. })) = self.peers.get(peer) {
            // A full buffer or a network that is down is no worse than a lost answer.
            let _ = self.kernel.send_to(&[], (*ip, DISCARD));
        }
    }
}
