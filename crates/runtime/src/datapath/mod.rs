//! How packets get from one node to another.

pub mod fault;
pub mod mem;
pub mod rails;
pub mod secure;
pub mod udp;
#[cfg(feature = "xdp")]
pub mod xdp;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Add;
use std::os::fd::BorrowedFd;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::packet::Marks;
use rampmeter_core::{NodeId, Priority, Time};

pub use self::rails::{RAILS_MAX, RailSet, Rails};

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// The datagram.
    pub bytes: &'a [u8],
    /// Where it came from, if the datapath knows. Where a peer has several addresses, its first one
    /// stands for all.
    pub from: Option<IpAddr>,
    /// Which of the node's networks it came by: less than [`Datapath::n_rails`].
    pub rail: u8,
    /// What the ECN bits of its IP header say: [`Marks::ECN_CAPABLE`] and [`Marks::CONGESTION`].
    pub marks: Marks,
}

/// Where a packet goes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The receiving node.
    pub dst: NodeId,
    /// Its class in the network.
    pub class: Priority,
    /// Which of several paths, if they can be told apart: any number.
    pub path: u16,
    /// Which of several networks.
    pub rail: Rail,
    /// Its marks, of which IP headers carry [`Marks::ECN_CAPABLE`] and [`Marks::CONGESTION`].
    pub marks: Marks,
}

impl Route {
    /// The traffic class byte of the packet's IP header: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.class.traffic_class() | self.marks.ecn()
    }
}

/// Which of several networks (rails) a packet takes. A datapath of one network takes that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rail {
    /// One of those that are up, chosen by [`Route::path`].
    #[default]
    Any,
    /// This one, whether it is up or not.
    Only(u8),
}

/// Carries packets between nodes, as well as it can: packets may be lost, doubled and reordered.
pub trait Datapath {
    /// Bytes of the largest datagram.
    fn datagram_max(&self) -> usize;

    /// Bytes that the network adds to a datagram, which the pace of sending must allow for.
    fn overhead(&self) -> usize;

    /// Takes a packet to send: `write` puts it into the buffer that it is given and says how long
    /// it is. The packet may wait until [`Datapath::flush`]. Where there is no room it is lost, as
    /// on any full queue.
    ///
    /// # Errors
    /// Those of the system that no later attempt would mend.
    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()>;

    /// As [`Datapath::send`], for a packet that may not be cut up whatever [`Datapath::set_limit`] says.
    ///
    /// # Errors
    /// As [`Datapath::send`].
    fn send_whole(
        &mut self,
        route: Route,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        self.send(route, write)
    }

    /// Datagrams to `peer` that are longer than so many bytes may be cut up on their way: the path does
    /// not carry them in one piece. `None` where it carries all. Without effect where the datapath cannot
    /// do that.
    ///
    /// # Errors
    /// As [`Datapath::send`].
    fn set_limit(&mut self, _peer: NodeId, _bytes: Option<usize>) -> io::Result<()> {
        Ok(())
    }

    /// Sends what has been taken.
    ///
    /// # Errors
    /// As [`Datapath::send`].
    fn flush(&mut self) -> io::Result<()>;

    /// Hands over packets that have arrived, those of the highest class first, at most a batch of
    /// them. Returns how many there were.
    ///
    /// # Errors
    /// Those of the system that no later attempt would mend.
    fn receive(&mut self, now: Time, each: impl FnMut(Arrived<'_>)) -> io::Result<usize>;

    /// Changes the addresses of all nodes on a network, by number. Returns false, and changes nothing,
    /// where the datapath can not do that while it is open.
    fn set_peers(&mut self, _rail: u8, _peers: &[Option<SocketAddr>]) -> bool {
        false
    }

    /// Over how many networks packets go.
    fn n_rails(&self) -> u8 {
        1
    }

    /// Packets to `peer` take these networks from now on; all of them where the set is empty.
    fn set_rails(&mut self, _peer: NodeId, _up: RailSet) {}

    /// Datagrams that have been sent to `peer` over a network, and their bytes. Only datapaths of
    /// several networks count them.
    fn sent_over(&self, _peer: NodeId, _rail: u8) -> (u64, u64) {
        (0, 0)
    }

    /// What becomes readable when packets arrive.
    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// When [`Datapath::receive`] wants to be called though nothing becomes readable.
    fn next_arrival(&self) -> Time {
        Time::NEVER
    }

    /// Returns the next thing that the datapath has found out about a peer.
    fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        None
    }

    /// What the datapath has counted.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// A fact about a peer that a datapath has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The system has refused a datagram of that many bytes to it because the path carries less.
    TooLong(usize),
    /// It runs another transport: handshakes with it fail.
    OtherTransport(TransportId),
    /// A handshake in its name has another key than this node expects.
    OtherKey,
}

/// Counters of a datapath since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that no node sends and that were dropped: damaged frames.
    pub malformed: u64,
    /// Datagrams that arrived and are longer than this node's: it has a shorter `mtu` than their
    /// sender.
    pub oversized: u64,
    /// Packets that the datapath had to drop.
    pub drops: u64,
    /// Packets that were longer than the network takes: `mtu` is too large.
    pub too_long: u64,
    /// Datagrams with a wrong checksum, or none.
    pub damaged: u64,
    /// Datagrams in a session of this node that the peer has not sealed, and handshakes of nobody that
    /// it knows.
    pub forged: u64,
    /// Sealed datagrams of sessions that this node does not have: of an earlier life, or late.
    pub strays: u64,
    /// Sealed datagrams that arrived again, or very late.
    pub replayed: u64,
    /// Sessions agreed upon with peers.
    pub handshakes: u64,
    /// Initiations of a peer whose time is not later than that of the one before.
    pub old_initiations: u64,
    /// Handshakes of peers that run another transport.
    pub wrong_transport: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            malformed: self.malformed + other.malformed,
            oversized: self.oversized + other.oversized,
            drops: self.drops + other.drops,
            too_long: self.too_long + other.too_long,
            damaged: self.damaged + other.damaged,
            forged: self.forged + other.forged,
            strays: self.strays + other.strays,
            replayed: self.replayed + other.replayed,
            handshakes: self.handshakes + other.handshakes,
            old_initiations: self.old_initiations + other.old_initiations,
            wrong_transport: self.wrong_transport + other.wrong_transport,
        }
    }
}
