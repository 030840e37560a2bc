//! Datapaths, by which nodes send and receive packets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Add;
use std::os::fd::BorrowedFd;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Time};

/// Maximum number of networks of a node.
pub const RAILS_MAX: usize = 8;

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedPacket<'a> {
    /// Bytes of the datagram.
    pub bytes: &'a [u8],
    /// Source address, if the datapath reports it. If a peer has several addresses, this is its
    /// first one.
    pub from: Option<IpAddr>,
    /// Number of the node's network on which it arrived: less than [`Datapath::n_rails`].
    pub rail: u8,
    /// Marks from the ECN bits of its IP header: [`Marks::ECN_CAPABLE`] and [`Marks::CONGESTION`].
    pub marks: Marks,
}

/// Destination and path of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Receiving node.
    pub dst: NodeId,
    /// Class in the network.
    pub class: Priority,
    /// Choice among several paths, if they can be distinguished: any number.
    pub path: u16,
    /// Choice among several networks.
    pub rail: Rail,
    /// Marks, of which IP headers carry [`Marks::ECN_CAPABLE`] and [`Marks::CONGESTION`].
    pub marks: Marks,
}

impl Route {
    /// Returns the traffic class byte of the packet's IP header: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.class.traffic_class() | self.marks.ecn_bits()
    }
}

/// Choice among several networks (rails). A datapath of one network ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rail {
    /// Any network that is up, chosen by [`Route::path`].
    #[default]
    Any,
    /// The network of this number, up or down.
    Exactly(u8),
}

/// Best-effort transport of packets between nodes: packets may be lost, duplicated and reordered.
pub trait Datapath {
    /// Returns the maximum bytes of a datagram.
    fn datagram_max(&self) -> usize;

    /// Returns the bytes that the network adds to a datagram, for pacing.
    fn overhead(&self) -> usize;

    /// Queues a packet to send: `write` writes it into the buffer and returns its length. The
    /// packet may be queued until [`Datapath::flush`]. If the queue is full the packet is dropped.
    ///
    /// # Errors
    /// Errors of the system that no retry can fix.
    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()>;

    /// Sends like [`Datapath::send`] a packet that must not be fragmented, whatever
    /// [`Datapath::set_limit`] has set.
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

    /// Permits fragmentation of datagrams to `peer` of more than `bytes`, which the path does not
    /// carry in one piece. `None` if it carries all. Without effect if the datapath does not
    /// support it.
    ///
    /// # Errors
    /// As [`Datapath::send`].
    fn set_limit(&mut self, _peer: NodeId, _bytes: Option<usize>) -> io::Result<()> {
        Ok(())
    }

    /// Sends queued packets.
    ///
    /// # Errors
    /// As [`Datapath::send`].
    fn flush(&mut self) -> io::Result<()>;

    /// Calls `each` with packets that have arrived, those of the highest class first, at most a
    /// batch of them. Returns their number.
    ///
    /// # Errors
    /// Errors of the system that no retry can fix.
    fn receive(&mut self, now: Time, each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize>;

    /// Changes the addresses of all nodes on a network, by number. Returns false, and changes
    /// nothing, if the datapath does not support that while it is open.
    fn set_peers(&mut self, _rail: u8, _peers: &[Option<SocketAddr>]) -> bool {
        false
    }

    /// Returns the number of networks.
    fn n_rails(&self) -> u8 {
        1
    }

    /// Restricts packets to `peer` to these networks from now on; an empty set permits all.
    fn set_rails(&mut self, _peer: NodeId, _up: RailSet) {}

    /// Returns the datagrams sent to `peer` over a network, and their bytes. Only datapaths of
    /// several networks count them.
    fn sent_over(&self, _peer: NodeId, _rail: u8) -> (u64, u64) {
        (0, 0)
    }

    /// Returns descriptors that become readable when packets arrive.
    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Returns the time at which [`Datapath::receive`] must be called even if no descriptor becomes
    /// readable.
    fn next_arrival(&self) -> Time {
        Time::NEVER
    }

    /// Returns the next report of the datapath about a peer.
    fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        None
    }

    /// Returns the counters of the datapath.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// Report of a datapath about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The system has refused a datagram of that many bytes to the peer because the path carries
    /// less.
    TooLong(usize),
    /// The peer runs another transport: handshakes with it fail.
    OtherTransport(TransportId),
    /// A handshake in its name has another key than this node expects.
    OtherKey,
}

/// Counters of a datapath since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dropped datagrams that no node sends: damaged frames.
    pub malformed_packets: u64,
    /// Received datagrams longer than this node's: its `mtu` is shorter than their sender's.
    pub oversized_packets: u64,
    /// Packets that the datapath had to drop.
    pub drops: u64,
    /// Packets longer than the network carries: `mtu` is too large.
    pub too_long_packets: u64,
    /// Datagrams with a wrong checksum, or none.
    pub checksum_error_packets: u64,
    /// Datagrams in a session of this node that the peer has not sealed, and handshakes of unknown
    /// senders.
    pub unauthenticated_packets: u64,
    /// Sealed datagrams of sessions that this node does not have: of an earlier incarnation, or
    /// late.
    pub unknown_session_packets: u64,
    /// Sealed datagrams that arrived again, or very late.
    pub replayed_packets: u64,
    /// Sessions established with peers.
    pub handshakes: u64,
    /// Initiations of a peer whose time is not later than that of the one before.
    pub outdated_initiations: u64,
    /// Handshakes of peers that run another transport.
    pub wrong_transport_packets: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            malformed_packets: self.malformed_packets + other.malformed_packets,
            oversized_packets: self.oversized_packets + other.oversized_packets,
            drops: self.drops + other.drops,
            too_long_packets: self.too_long_packets + other.too_long_packets,
            checksum_error_packets: self.checksum_error_packets + other.checksum_error_packets,
            unauthenticated_packets: self.unauthenticated_packets + other.unauthenticated_packets,
            unknown_session_packets: self.unknown_session_packets + other.unknown_session_packets,
            replayed_packets: self.replayed_packets + other.replayed_packets,
            handshakes: self.handshakes + other.handshakes,
            outdated_initiations: self.outdated_initiations + other.outdated_initiations,
            wrong_transport_packets: self.wrong_transport_packets + other.wrong_transport_packets,
        }
    }
}

/// Set of networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RailSet(pub(super) u8);

impl RailSet {
    /// Empty set.
    pub const EMPTY: Self = Self(0);

    /// Returns the first `n` networks, at most [`RAILS_MAX`].
    pub fn first(n: u8) -> Self {
        assert!(usize::from(n) <= RAILS_MAX, "{n} rails");
        Self(((1u16 << n) - 1) as u8)
    }

    /// Returns the set with `rail`.
    #[must_use]
    pub fn with(self, rail: u8) -> Self {
        Self(self.0 | 1 << rail)
    }

    /// Returns the set without `rail`.
    #[must_use]
    pub fn without(self, rail: u8) -> Self {
        Self(self.0 & !(1 << rail))
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if `rail` is in the set.
    pub fn contains(self, rail: u8) -> bool {
        self.0 >> rail & 1 == 1
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of networks in the set.
    pub fn len(self) -> u8 {
        self.0.count_ones() as u8
    }

    /// Iterates over the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..RAILS_MAX as u8).filter(move |rail| self.contains(*rail))
    }

    /// Returns the network, and the path within it, of a packet whose path is `path`, if of `n`
    /// networks these are up.
    pub fn choose(self, path: u16, n: u8) -> (u8, u16) {
        let (rail, within) = ((path % u16::from(n)) as u8, path / u16::from(n));
        if self.is_empty() || self.contains(rail) {
            return (rail, within);
        }
        let nth = usize::from(within) % usize::from(self.len());
        (self.iter().nth(nth).unwrap_or(rail), within)
    }
}
