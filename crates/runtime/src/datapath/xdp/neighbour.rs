//! The link addresses of peers: the kernel finds them out, and this follows what it knows.
//!
//! Frames need the link address of the next hop. The kernel asks for it when it has a packet to
//! send there, so for a peer that it does not know an empty datagram is sent to the peer's discard
//! port by way of the kernel; a moment later its table has the answer. The kernel forgets
//! neighbours that it sends nothing to, so from time to time some peers are asked for again, which
//! also finds interfaces that have been replaced and routes that have changed. An address stays in
//! use until there is another.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rampmeter_core::{Span, Time};

use super::frame::Mac;
use super::netlink::{Link, Netlink};

/// Between two looks at the kernel's table while a peer's address is wanted.
const LOOK: Span = Span::from_us(10_000);
/// Between two looks otherwise.
const REFRESH: Span = Span::from_us(5_000_000);
/// Peers that are asked for at each refresh.
const REFRESHED: usize = 4;
/// The discard service: nobody answers.
const DISCARD: u16 = 9;

/// Link addresses of all peers.
#[derive(Debug)]
pub(super) struct Neighbours {
    netlink: Netlink,
    link: Link,
    kernel: UdpSocket,
    /// Peers by number.
    peers: Vec<Option<Peer>>,
    next_look: Time,
    next_refresh: Time,
    /// The peer that is asked for next.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    ip: Ipv4Addr,
    /// The next hop, if there is a route through the interface.
    hop: Option<Ipv4Addr>,
    mac: Option<Mac>,
}

impl Neighbours {
    /// Peers by number, which are reached through `link`. `kernel` is any socket on the same
    /// network.
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
        let (next_look, next_refresh) = (Time::ZERO, Time::ZERO);
        let mut this = Self { netlink, link, kernel, peers, next_look, next_refresh, turn: 0 };
        for idx in 0..this.peers.len() {
            this.route(idx)?;
        }
        Ok(this)
    }

    /// The address to send a peer's frames to.
    pub(super) fn mac(&self, peer: usize) -> Option<Mac> {
        self.peers.get(peer)?.as_ref()?.mac
    }

    /// How many peers have a route and no link address.
    pub(super) fn n_unknown(&self) -> usize {
        self.peers.iter().flatten().filter(|p| p.hop.is_some() && p.mac.is_none()).count()
    }

    /// A packet to a peer without link address was dropped: asks for it, if that has not just been
    /// done. True if addresses have changed.
    pub(super) fn want(&mut self, now: Time, peer: usize) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + LOOK;
        // Without a route now, there may be one later.
        let _ = self.route(peer);
        let has_changed = self.look();
        if self.mac(peer).is_none() {
            self.ask(peer);
        }
        has_changed
    }

    /// Follows what the kernel knows, when it is time to. True if addresses have changed.
    pub(super) fn refresh(&mut self, now: Time) -> bool {
        if now < self.next_refresh {
            return false;
        }
        self.next_refresh = now + REFRESH;
        for _ in 0..REFRESHED.min(self.peers.len()) {
            let _ = self.route(self.turn);
            self.ask(self.turn);
            self.turn = (self.turn + 1) % self.peers.len();
        }
        self.look()
    }

    /// Has the kernel ask for all peers that are not known.
    pub(super) fn ask_for_unknown(&mut self) {
        (0..self.peers.len()).filter(|&idx| self.mac(idx).is_none()).for_each(|idx| self.ask(idx));
    }

    /// Reads the kernel's table. True if addresses have changed.
    pub(super) fn look(&mut self) -> bool {
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

    /// Asks for the next hop to a peer. Having no route is no error: there may be one later.
    fn route(&mut self, peer: usize) -> io::Result<()> {
        let Some(Some(peer)) = self.peers.get_mut(peer) else { return Ok(()) };
        let Ok(hop) = self.netlink.hop(peer.ip) else { return Ok(()) };
        if hop.interface != self.link.index {
            let (ip, got, want) = (peer.ip, hop.interface, self.link.index);
            let why =
                format!("peer {ip} is reached through interface {got}, the datapath's is {want}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        peer.hop = Some(hop.next);
        Ok(())
    }

    /// Has the kernel send to a peer.
    fn ask(&self, peer: usize) {
        if let Some(Some(Peer { ip, hop: Some(_), .. })) = self.peers.get(peer) {
            // A full buffer or a network that is down is no worse than an answer that does not
            // come.
            let _ = self.kernel.send_to(&[], (*ip, DISCARD));
        }
    }
}
