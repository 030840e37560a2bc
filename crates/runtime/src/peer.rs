//! Peers: their addresses, and the incarnation of each with which this node communicates.
//!
//! The problem: a restarted node has lost its state. The simple way identifies a packet by its
//! nodes and its message number only. A retransmission of a message that an earlier incarnation
//! delivered is then accepted as new, and the message is delivered twice.
//!
//! The present way: each incarnation has a random number. A packet carries those of both ends, and
//! packets that do not match are dropped. A node accepts an incarnation only from the answer to a
//! hello, which repeats the hello's nonce and this node's own incarnation. So packets delayed since
//! an earlier incarnation prove nothing. Nodes may start in any order: messages are queued until
//! the receiver responds. A starting node sends hellos to all its peers, which send hellos back and
//! so receive its new incarnation.

mod hellos;
mod settings;
#[cfg(test)]
mod tests;
mod view;
mod views;

use std::collections::VecDeque;
use std::net::IpAddr;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::{NodeId, Rng, Span, Time};

pub use self::views::{PeerView, Traffic};
use crate::agreement::{Differences, SettingDigests};
use crate::app::Submission;
use crate::datapath::RailSet;
use crate::liveness::Liveness;
use crate::mtu::PathMtu;
use rampmeter_types::envelope::Incarnation;

/// State of a peer.
#[derive(Debug)]
pub(crate) struct Peer<P> {
    ip: Option<IpAddr>,
    incarnation: Option<Incarnation>,
    /// The hello that has not been answered.
    hello: Option<HelloState>,
    /// Messages that are queued until the peer responds, by the end of their patience.
    queued: VecDeque<QueuedMessage<P>>,
    traffic: Traffic,
    mtu: PathMtu,
    /// Networks of the peer, if there are several, and those whose answer to a probe of the path is
    /// awaited.
    liveness: Option<Box<Liveness>>,
    awaited_rails: RailSet,
    /// Packets of the node itself among those sent: hellos and answers.
    notes_sent: u64,
    /// Time of its latest packet. Of answers to hellos only those of ordinary length count.
    last_received_at: Option<Time>,
    /// Time of its latest greeting, and number of greetings in a row without an answer.
    hello_at: Time,
    unanswered: u32,
    /// Round trip of the latest hello that was sent once.
    rtt: Option<Span>,
    /// Settings of the peer, and those that differ from this node's, as far as it has sent them.
    settings: Option<SettingDigests>,
    differences: Differences,
    /// The transport that it runs, if its latest packet was of another than this node's.
    other_transport: Option<TransportId>,
    /// True if a handshake in its name had another key than this node expects.
    has_other_key: bool,
}

impl<P> Peer<P> {
    fn at(ip: Option<IpAddr>, datagram_max: usize, liveness: Option<Box<Liveness>>) -> Self {
        Self {
            ip,
            incarnation: None,
            hello: None,
            queued: VecDeque::new(),
            traffic: Traffic::default(),
            mtu: PathMtu::new(datagram_max),
            liveness,
            awaited_rails: RailSet::EMPTY,
            notes_sent: 0,
            last_received_at: None,
            hello_at: Time::ZERO,
            unanswered: 0,
            rtt: None,
            settings: None,
            differences: Differences::default(),
            other_transport: None,
            has_other_key: false,
        }
    }
}

impl<P> Peer<P> {
    /// Returns the networks in use; none if there is only one.
    fn up(&self) -> RailSet {
        self.liveness.as_ref().map_or(RailSet::EMPTY, |liveness| liveness.up())
    }

    /// Handles a change of the networks in use, which were `before`: the path is then another one.
    /// Returns true if they changed.
    fn on_judged(&mut self, now: Time, before: RailSet) -> bool {
        let has_changed = self.up() != before;
        if has_changed && self.incarnation.is_some() {
            self.probe_path(now);
        }
        has_changed
    }
}

/// Message that is queued until its peer responds.
#[derive(Debug)]
pub(crate) struct QueuedMessage<P> {
    /// End of its patience.
    pub(crate) queued_until: Time,
    /// End of its bound; [`Time::NEVER`] if it has none.
    pub(crate) bound_end: Time,
    pub(crate) submission: Submission<P>,
}

#[derive(Clone, Copy, Debug)]
struct HelloState {
    nonce: u32,
    /// Time at which it is sent next, and the pause after that.
    next_at: Time,
    pause: Span,
    /// Remaining retransmissions while no message is queued.
    remaining: u32,
    /// Time at which it was sent first, and number of times.
    first_at: Time,
    n_sent: u32,
}

/// Result of an answer to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloOutcome {
    /// None: it answers no hello of this node.
    Unmatched,
    /// The peer has the known incarnation.
    SameIncarnation,
    /// The peer has its first incarnation known to this node.
    FirstIncarnation,
    /// The peer has been restarted.
    Restarted,
}

/// All peers of a node.
#[derive(Debug)]
pub(crate) struct Peers<P> {
    peers: Vec<Option<Peer<P>>>,
    /// Number of times that each node was removed.
    n_removed: Vec<u32>,
    rng: Rng,
    /// Bytes of the longest datagram.
    datagram_max: usize,
    have_limits_changed: bool,
    /// Number of networks.
    n_rails: u8,
    have_rails_changed: bool,
    /// Time before which no hello or probe is due and no message's patience ends.
    next: Time,
}

impl<P> Peers<P> {
    /// Creates peers by node number, with their addresses if source addresses are checked; `None`
    /// if there is no such node.
    pub(crate) fn new(
        addresses: &[Option<Option<IpAddr>>],
        datagram_max: usize,
        n_rails: u8,
        rng: Rng,
    ) -> Self {
        let liveness = || liveness(n_rails, addresses.len());
        let peer = |ip| Peer::at(ip, datagram_max, liveness());
        let peers = addresses.iter().map(|of| of.map(peer)).collect();
        let n_removed = vec![0; addresses.len()];
        let (have_limits_changed, have_rails_changed, next) = (false, false, Time::NEVER);
        Self {
            peers,
            n_removed,
            rng,
            datagram_max,
            have_limits_changed,
            n_rails,
            have_rails_changed,
            next,
        }
    }

    /// Changes the nodes and their addresses. Returns the removed nodes, and the messages that
    /// waited for them.
    pub(crate) fn set(
        &mut self,
        now: Time,
        addresses: &[Option<Option<IpAddr>>],
    ) -> (Vec<NodeId>, Vec<Submission<P>>) {
        let (mut gone, mut waited) = (Vec::new(), Vec::new());
        let len = self.peers.len().max(addresses.len());
        self.peers.resize_with(len, || None);
        self.n_removed.resize(len, 0);
        for (idx, slot) in self.peers.iter_mut().enumerate() {
            match (addresses.get(idx).copied().flatten(), &mut *slot) {
                (None, None) => {}
                (None, Some(_)) => {
                    let waiting = slot.take().map(|peer| peer.queued).unwrap_or_default();
                    waited.extend(waiting.into_iter().map(|waiting| waiting.submission));
                    gone.push(NodeId::new(idx as u32));
                    self.n_removed[idx] = self.n_removed[idx].wrapping_add(1);
                }
                (Some(ip), Some(peer)) => {
                    peer.ip = ip;
                    if let Some(liveness) =
                        peer.liveness.as_mut().filter(|_| peer.incarnation.is_some())
                    {
                        liveness.restart(now, None);
                        self.next = self.next.min(now);
                    }
                }
                (Some(ip), None) => {
                    let liveness = liveness(self.n_rails, addresses.len());
                    *slot = Some(Peer::at(ip, self.datagram_max, liveness));
                }
            }
        }
        self.have_rails_changed = true;
        // A node that is added under an old number has no limit.
        self.have_limits_changed = true;
        (gone, waited)
    }

    /// Returns the incarnation of this node in packets to and from `node`, whose first is `own`.
    ///
    /// A node that is removed and added again meets another incarnation. This node has forgotten
    /// which messages it sent and received, and its message numbers begin at zero again. In the
    /// same incarnation, the peer would treat these messages as delivered ones.
    pub(crate) fn own_incarnation(&self, own: Incarnation, node: NodeId) -> Incarnation {
        let n_removed = self.n_removed.get(node.idx()).copied().unwrap_or(0);
        Incarnation::new(own.get().wrapping_add(n_removed))
    }

    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.get(node).is_some()
    }

    fn get(&self, node: NodeId) -> Option<&Peer<P>> {
        self.peers.get(node.idx())?.as_ref()
    }

    fn get_mut(&mut self, node: NodeId) -> Option<&mut Peer<P>> {
        self.peers.get_mut(node.idx())?.as_mut()
    }

    /// Returns true if packets of `node` may have this source address.
    pub(crate) fn has_source_address(&self, node: NodeId, from: Option<IpAddr>) -> bool {
        self.get(node).is_some_and(|p| p.ip.is_none() || from.is_none() || p.ip == from)
    }

    /// Returns the peer's incarnation, if it is known.
    pub(crate) fn peer_incarnation(&self, node: NodeId) -> Option<Incarnation> {
        self.get(node)?.incarnation
    }

    /// Queues a message until the peer responds, or until its patience ends.
    pub(crate) fn wait(&mut self, now: Time, mut waiting: QueuedMessage<P>) {
        let dst = waiting.submission.dst;
        if let Some(peer) = self.get_mut(dst) {
            if peer.other_transport.is_some() {
                waiting.queued_until = waiting.queued_until.min(now + settings::OTHER_TRANSPORT);
            }
            let until = waiting.queued_until;
            let place = peer.queued.partition_point(|other| other.queued_until <= until);
            peer.queued.insert(place, waiting);
            self.next = self.next.min(until);
        }
        self.call(now, dst);
    }

    /// Removes and returns the messages that were queued for the peer.
    pub(crate) fn take_waiting(&mut self, node: NodeId) -> VecDeque<QueuedMessage<P>> {
        self.get_mut(node).map(|p| std::mem::take(&mut p.queued)).unwrap_or_default()
    }

    /// Removes and returns all messages that are queued for peers.
    pub(crate) fn take_all_waiting(&mut self) -> Vec<Submission<P>> {
        let waiting = self.peers.iter_mut().flatten().flat_map(|peer| peer.queued.drain(..));
        waiting.map(|waiting| waiting.submission).collect()
    }

    /// Returns the time of the next [`Peers::fire`].
    pub(crate) fn deadline(&self) -> Time {
        self.next
    }

    /// Counts a datagram sent to `node`.
    pub(crate) fn on_sent(&mut self, node: NodeId, bytes: usize) {
        if let Some(peer) = self.get_mut(node) {
            peer.traffic.packets_sent += 1;
            peer.traffic.sent_bytes += bytes as u64;
        }
    }

    /// Counts the latest datagram to `node` as one of the node itself.
    pub(crate) fn on_note_sent(&mut self, node: NodeId) {
        if let Some(peer) = self.get_mut(node) {
            peer.notes_sent += 1;
        }
    }

    /// Handles a datagram of `node` that has arrived on a network.
    pub(crate) fn on_received(&mut self, now: Time, node: NodeId, rail: u8, bytes: usize) {
        let Some(peer) = self.get_mut(node) else { return };
        peer.last_received_at = Some(now);
        let Peer { traffic, liveness, other_transport, has_other_key, .. } = peer;
        (*other_transport, *has_other_key) = (None, false);
        traffic.packets_received += 1;
        traffic.received_bytes += bytes as u64;
        if let Some(liveness) = liveness {
            liveness.on_received(rail, bytes);
        }
    }

    /// Handles a datagram of `len` bytes to `node` that the system has refused.
    pub(crate) fn on_refused(&mut self, now: Time, node: NodeId, len: usize) {
        let Some(peer) = self.get_mut(node).filter(|peer| peer.incarnation.is_some()) else {
            return;
        };
        let before = peer.mtu.limit();
        peer.mtu.on_refused(now, len);
        let (deadline, limit) = (peer.mtu.deadline(), peer.mtu.limit());
        self.next = self.next.min(deadline);
        self.have_limits_changed |= limit != before;
    }
}

/// Creates the state of the networks to one of `n_peers` peers, if there are several networks.
fn liveness(n_rails: u8, n_peers: usize) -> Option<Box<Liveness>> {
    (n_rails > 1).then(|| Box::new(Liveness::new(n_rails, n_peers)))
}
