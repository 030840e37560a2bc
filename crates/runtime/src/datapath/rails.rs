//! Several networks (rails) at once.
//!
//! A peer has an address on each network, and the node a datapath for each. [`Rails`] chooses the
//! network of each packet from [`Route::path`]: the remainder of the division by the number of
//! networks. The quotient is the path within the network, so that every pair of network and source
//! port is used. Transports that keep the packets of a message on one path keep them on one
//! network.
//!
//! The node detects which networks are up at each peer (`crate::liveness`) and sets them
//! ([`Datapath::set_rails`]). Packets of a network that is down are sent over those that are up;
//! all others stay on their network.
//!
//! [`Rails`] is below [`SecureDatapath`](super::secure::SecureDatapath): two nodes have one
//! session, whose packets may use any network. A node with one network has no [`Rails`], and no
//! additional cost.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use rampmeter_types::{NodeId, Time};

use super::{ArrivedPacket, Counts, Datapath, RAILS_MAX, Rail, RailSet, Report, Route};

/// State of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    up: RailSet,
    /// Datagrams and bytes sent over each network.
    sent: [(u64, u64); RAILS_MAX],
}

/// Datapath over several datapaths.
#[derive(Debug)]
pub struct Rails<D> {
    rails: Vec<D>,
    /// IP addresses by network and node.
    ips: Vec<Vec<Option<IpAddr>>>,
    peers: Vec<Peer>,
    /// Networks whose latest packets were refused by the system.
    failing: RailSet,
    drops: u64,
}

/// Bytes of the sender's number in the envelope.
const SRC_AT: std::ops::Range<usize> = 8..12;

impl<D: Datapath> Rails<D> {
    /// Combines one datapath for each network, with the addresses of all nodes on it.
    ///
    /// # Panics
    /// There is no datapath, or more than [`RAILS_MAX`].
    pub fn new(rails: Vec<(D, Vec<Option<SocketAddr>>)>) -> Self {
        let n = rails.len();
        assert!((1..=RAILS_MAX).contains(&n), "{n} rails");
        let (rails, addresses): (Vec<_>, Vec<_>) = rails.into_iter().unzip();
        let ips: Vec<_> = addresses.iter().map(|peers| ips_of(peers)).collect();
        let n_peers = ips.iter().map(Vec::len).max().unwrap_or(0);
        let peers = vec![Peer::default(); n_peers];
        Self { rails, ips, peers, failing: RailSet::EMPTY, drops: 0 }
    }

    fn push(
        &mut self,
        route: Route,
        whole: FragmentationPolicy,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        let n = self.rails.len() as u8;
        let Some(peer) = self.peers.get_mut(route.dst.idx()) else {
            self.drops += 1;
            return Ok(());
        };
        let (rail, path) = match route.rail {
            Rail::Exactly(rail) => (rail % n, route.path / u16::from(n)),
            Rail::Any => peer.up.choose(route.path, n),
        };
        let sent = &mut peer.sent[usize::from(rail)];
        let write = |out: &mut [u8]| {
            let len = write(out);
            *sent = (sent.0 + 1, sent.1 + len as u64);
            len
        };
        let (route, inner) = (Route { path, ..route }, &mut self.rails[usize::from(rail)]);
        let done = match whole {
            FragmentationPolicy::Preferred => inner.send(route, write),
            FragmentationPolicy::Required => inner.send_whole(route, write),
        };
        self.on_send_result(rail, done);
        Ok(())
    }

    /// Handles an error of a network. A network that refuses packets, such as one whose address was
    /// removed, must not stop the node.
    fn on_send_result(&mut self, rail: u8, done: io::Result<()>) {
        match done {
            Ok(()) => self.failing = self.failing.without(rail),
            Err(error) => {
                self.drops += 1;
                if !self.failing.contains(rail) {
                    tracing::warn!(code = "rail-failed", rail, %error, "network failed to send");
                }
                self.failing = self.failing.with(rail);
            }
        }
    }
}

/// Permission to fragment a datagram.
#[derive(Clone, Copy, Debug)]
enum FragmentationPolicy {
    Preferred,
    Required,
}

fn ips_of(peers: &[Option<SocketAddr>]) -> Vec<Option<IpAddr>> {
    peers.iter().map(|peer| peer.map(|addr| addr.ip())).collect()
}

/// Returns the first address of the peer whose address on a network is `from`. Returns `from`
/// itself if the sender that the datagram names has another address there.
fn first_address(
    ips: &[Vec<Option<IpAddr>>],
    rail: usize,
    from: Option<IpAddr>,
    bytes: &[u8],
) -> Option<IpAddr> {
    let src = bytes.get(SRC_AT).and_then(|field| field.try_into().ok()).map(u32::from_be_bytes);
    let on = |rail: usize| ips[rail].get(src? as usize).copied().flatten();
    if from.is_some() && on(rail) == from { on(0) } else { from }
}

impl<D: Datapath> Datapath for Rails<D> {
    fn datagram_max(&self) -> usize {
        self.rails.iter().map(D::datagram_max).min().unwrap_or(0)
    }

    fn overhead(&self) -> usize {
        self.rails.iter().map(D::overhead).max().unwrap_or(0)
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        self.push(route, FragmentationPolicy::Preferred, write)
    }

    fn send_whole(
        &mut self,
        route: Route,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        self.push(route, FragmentationPolicy::Required, write)
    }

    fn set_limit(&mut self, peer: NodeId, bytes: Option<usize>) -> io::Result<()> {
        self.rails.iter_mut().try_for_each(|rail| rail.set_limit(peer, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        for rail in 0..self.rails.len() {
            if let Err(error) = self.rails[rail].flush() {
                self.on_send_result(rail as u8, Err(error));
            }
        }
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let (ips, mut n) = (&self.ips, 0);
        for (idx, rail) in self.rails.iter_mut().enumerate() {
            n += rail.receive(now, |arrived| {
                let from = first_address(ips, idx, arrived.from, arrived.bytes);
                each(ArrivedPacket { from, rail: idx as u8, ..arrived });
            })?;
        }
        Ok(n)
    }

    fn set_peers(&mut self, rail: u8, peers: &[Option<SocketAddr>]) -> bool {
        let idx = usize::from(rail);
        if !self.rails.get_mut(idx).is_some_and(|rail| rail.set_peers(0, peers)) {
            return false;
        }
        self.ips[idx] = ips_of(peers);
        let n_peers = self.peers.len().max(peers.len());
        self.peers.resize(n_peers, Peer::default());
        true
    }

    fn n_rails(&self) -> u8 {
        self.rails.len() as u8
    }

    fn set_rails(&mut self, peer: NodeId, up: RailSet) {
        if let Some(peer) = self.peers.get_mut(peer.idx()) {
            peer.up = up.intersection(RailSet::first(self.rails.len() as u8));
        }
    }

    fn sent_over(&self, peer: NodeId, rail: u8) -> (u64, u64) {
        let peer = self.peers.get(peer.idx());
        peer.and_then(|peer| peer.sent.get(usize::from(rail)).copied()).unwrap_or_default()
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.rails.iter().flat_map(D::wakers).collect()
    }

    fn next_arrival(&self) -> Time {
        self.rails.iter().map(D::next_arrival).min().unwrap_or(Time::NEVER)
    }

    fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        self.rails.iter_mut().find_map(D::poll_report)
    }

    fn counts(&self) -> Counts {
        let own = Counts { drops: self.drops, ..Counts::default() };
        self.rails.iter().map(D::counts).fold(own, |all, of| all + of)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A packet is sent over a network that is up, if there is one, and over its own if that is
        /// up.
        #[test]
        fn packets_take_networks_that_are_up(path: u16, n in 1..=8u8, bits: u8) {
            let up = RailSet(bits).intersection(RailSet::first(n));
            let (rail, within) = up.choose(path, n);
            prop_assert!(rail < n);
            prop_assert!(up.is_empty() || up.contains(rail));
            let own = (path % u16::from(n)) as u8;
            prop_assert!(rail == own || !up.contains(own));
            prop_assert_eq!(within, path / u16::from(n));
        }
    }

    /// Returns the pairs of network and source port that packets use, with the number of packets.
    fn shares(up: RailSet, n: u8, ports: u16) -> BTreeMap<(u8, u16), u32> {
        let mut shares = BTreeMap::new();
        for path in 0..=u16::MAX {
            let (rail, within) = up.choose(path, n);
            *shares.entry((rail, within % ports)).or_insert(0) += 1;
        }
        shares
    }

    #[test]
    fn every_pair_of_network_and_source_port_has_its_share() {
        for n in 1..=4 {
            for up in (1..1 << n).map(RailSet) {
                // An odd number of ports, so that the network of a packet does not determine its
                // port.
                let shares = shares(up, n, 7);
                assert_eq!(shares.len(), usize::from(up.len()) * 7, "{up:?} of {n}");
                let (least, most) = (shares.values().min(), shares.values().max());
                assert!(most.unwrap() - least.unwrap() <= most.unwrap() / 2 + 9, "{shares:?}");
            }
        }
        assert_eq!(shares(RailSet::first(2), 2, 16).len(), 32);
    }

    #[test]
    fn addresses_of_all_networks_are_those_of_the_peer() {
        let ip = |text: &str| -> Option<IpAddr> { Some(text.parse().unwrap()) };
        let ips = [[ip("10.0.0.1"), ip("10.0.0.2")], [ip("10.1.0.1"), ip("10.1.0.2")]];
        let ips = ips.map(Vec::from);
        let of = |rail, from, src: u32| {
            let mut bytes = [0; 28];
            bytes[SRC_AT].copy_from_slice(&src.to_be_bytes());
            first_address(&ips, rail, from, &bytes)
        };
        assert_eq!(of(1, ip("10.1.0.2"), 1), ip("10.0.0.2"));
        assert_eq!(of(0, ip("10.0.0.2"), 1), ip("10.0.0.2"));
        // A stranger, another node, and the address of another network.
        assert_eq!(of(1, ip("10.9.0.2"), 1), ip("10.9.0.2"));
        assert_eq!(of(1, ip("10.1.0.1"), 1), ip("10.1.0.1"));
        assert_eq!(of(0, ip("10.1.0.2"), 1), ip("10.1.0.2"));
        assert_eq!(of(0, ip("10.1.0.2"), 7), ip("10.1.0.2"));
        assert_eq!(first_address(&ips, 0, ip("10.0.0.1"), &[1; 5]), ip("10.0.0.1"));
    }
}
