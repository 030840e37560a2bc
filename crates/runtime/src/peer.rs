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

mod settings;
#[cfg(test)]
mod tests;
mod views;

use std::collections::VecDeque;
use std::net::IpAddr;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::{NodeId, Rng, Span, Time};

pub use self::views::{PeerView, Traffic};
use crate::agreement::{Agreement, Differences};
use crate::app::{Failure, Submission};
use crate::datapath::{Rail, RailSet};
use crate::liveness::Liveness;
use crate::mtu::PathMtu;
use crate::wire::Incarnation;

/// First pause between hellos; each later one is twice as long, up to [`HELLO_MAX`].
const HELLO_MIN: Span = Span::from_us(5_000);
const HELLO_MAX: Span = Span::from_us(1_000_000);

/// Number of greetings of which at least one is sent to an unresponsive peer.
const SELDOM: u32 = 64;

/// Number of peers to which hellos are sent at once, and the interval to the next ones. All hellos
/// at once would delay the packets of others: a network may have thousands of nodes.
const GREETED: usize = 16;
const GREET_STEP: Span = Span::from_us(2_000);

/// State of a peer.
#[derive(Debug)]
pub(crate) struct Peer<P> {
    ip: Option<IpAddr>,
    life: Option<Incarnation>,
    /// The hello that has not been answered.
    hello: Option<Hello>,
    /// Messages that are queued until the peer responds, by the end of their patience.
    waiting: VecDeque<Waiting<P>>,
    traffic: Traffic,
    mtu: PathMtu,
    /// Its networks, if there are several, and those whose answer to a probe of the path is
    /// awaited.
    liveness: Option<Box<Liveness>>,
    awaited: RailSet,
    /// Packets of the node itself among those sent: hellos and answers.
    notes_sent: u64,
    /// Time at which the latest hello of ordinary length was answered.
    answered_at: Option<Time>,
    /// Time of its latest greeting, and number of greetings in a row without an answer.
    greeted_at: Time,
    unanswered: u32,
    /// Round trip of the latest hello that was sent once.
    rtt: Option<Span>,
    /// Its settings, and those that differ from this node's, as far as it has sent them.
    settings: Option<Agreement>,
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
            life: None,
            hello: None,
            waiting: VecDeque::new(),
            traffic: Traffic::default(),
            mtu: PathMtu::new(datagram_max),
            liveness,
            awaited: RailSet::EMPTY,
            notes_sent: 0,
            answered_at: None,
            greeted_at: Time::ZERO,
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
    /// Returns the time of the peer's latest packet, including answers to hellos.
    fn heard_at(&self) -> Option<Time> {
        self.traffic.heard_at.max(self.answered_at)
    }

    /// Returns the networks in use; none if there is only one.
    fn up(&self) -> RailSet {
        self.liveness.as_ref().map_or(RailSet::EMPTY, |liveness| liveness.up())
    }

    /// Handles a change of the networks in use, which were `before`: the path is then another one.
    /// Returns true if they changed.
    fn on_judged(&mut self, now: Time, before: RailSet) -> bool {
        let has_changed = self.up() != before;
        if has_changed && self.life.is_some() {
            self.probe_path(now);
        }
        has_changed
    }
}

/// Message that is queued until its peer responds.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    /// End of its patience.
    pub(crate) until: Time,
    /// End of its bound; [`Time::NEVER`] if it has none.
    pub(crate) ends: Time,
    pub(crate) submission: Submission<P>,
}

#[derive(Clone, Copy, Debug)]
struct Hello {
    nonce: u32,
    /// Time at which it is sent next, and the pause after that.
    at: Time,
    pause: Span,
    /// Remaining retransmissions while no message is queued.
    left: u32,
    /// Time at which it was sent first, and number of times.
    first_at: Time,
    n_sent: u32,
}

/// Hellos that are sent for a packet that could not be sent, or to confirm a new incarnation.
const REPEATS: u32 = 8;

/// Result of an answer to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// None: it answers no hello of this node.
    Nothing,
    /// The peer has the known incarnation.
    Same,
    /// The peer has its first incarnation known to this node.
    First,
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
                    let waiting = slot.take().map(|peer| peer.waiting).unwrap_or_default();
                    waited.extend(waiting.into_iter().map(|waiting| waiting.submission));
                    gone.push(NodeId::new(idx as u32));
                    self.n_removed[idx] = self.n_removed[idx].wrapping_add(1);
                }
                (Some(ip), Some(peer)) => {
                    peer.ip = ip;
                    if let Some(liveness) = peer.liveness.as_mut().filter(|_| peer.life.is_some()) {
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

    /// Requests the incarnations of all peers except `node` itself.
    pub(crate) fn call_all(&mut self, now: Time, node: NodeId) {
        let others = (0..self.peers.len() as u32).map(NodeId::new).filter(|other| *other != node);
        for (n, other) in others.enumerate() {
            self.call_at(now, greets_at(now, n), other);
        }
    }

    /// Greets all peers except `node` itself. Those that do not answer are greeted increasingly
    /// rarely, as each sends hellos itself when it starts: every hello costs a key agreement.
    pub(crate) fn greet_all(&mut self, now: Time, node: NodeId) {
        let mut n_called = 0;
        for other in (0..self.peers.len() as u32).map(NodeId::new) {
            let Some(peer) = self.get_mut(other).filter(|_| other != node) else { continue };
            let has_answered = peer.heard_at().is_some_and(|at| at >= peer.greeted_at);
            peer.unanswered = if has_answered { 0 } else { peer.unanswered.saturating_add(1) };
            let n = peer.unanswered;
            let at = greets_at(now, n_called);
            if n == 0 || n.is_power_of_two() || n.is_multiple_of(SELDOM) {
                self.call_at(now, at, other);
                n_called += 1;
            }
            if let Some(peer) = self.get_mut(other) {
                peer.greeted_at = at;
            }
        }
    }

    /// Returns the incarnation of this node in packets to and from `node`, whose first is `own`.
    ///
    /// A node that is removed and added again meets another incarnation. This node has forgotten
    /// which messages it sent and received, and its message numbers begin at zero again. In the
    /// same incarnation, the peer would treat these messages as delivered ones.
    pub(crate) fn own_life(&self, own: Incarnation, node: NodeId) -> Incarnation {
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
    pub(crate) fn is_from(&self, node: NodeId, from: Option<IpAddr>) -> bool {
        self.get(node).is_some_and(|p| p.ip.is_none() || from.is_none() || p.ip == from)
    }

    /// Returns the peer's incarnation, if it is known.
    pub(crate) fn life(&self, node: NodeId) -> Option<Incarnation> {
        self.get(node)?.life
    }

    /// Queues a message until the peer responds, or until its patience ends.
    pub(crate) fn wait(&mut self, now: Time, mut waiting: Waiting<P>) {
        let dst = waiting.submission.dst;
        if let Some(peer) = self.get_mut(dst) {
            if peer.other_transport.is_some() {
                waiting.until = waiting.until.min(now + settings::OTHER_TRANSPORT);
            }
            let until = waiting.until;
            let place = peer.waiting.partition_point(|other| other.until <= until);
            peer.waiting.insert(place, waiting);
            self.next = self.next.min(until);
        }
        self.call(now, dst);
    }

    /// Requests the peer's incarnation, unless a request is pending.
    pub(crate) fn call(&mut self, now: Time, node: NodeId) {
        self.call_at(now, now, node);
    }

    /// Requests the peer's incarnation from `first` on, unless a request is pending.
    fn call_at(&mut self, now: Time, first: Time, node: NodeId) {
        let nonce = self.rng.bits() as u32;
        let Some(peer) = self.get_mut(node) else { return };
        let is_over = peer.hello.is_none_or(|h| h.left == 0 && peer.waiting.is_empty());
        if is_over {
            let (pause, left) = (HELLO_MIN, REPEATS);
            let (first_at, n_sent) = (first, 0);
            peer.hello = Some(Hello { nonce, at: first, pause, left, first_at, n_sent });
        } else if let Some(hello) = &mut peer.hello {
            // The peer has sent something, or there is a message for it: a fast retry pays off.
            hello.left = REPEATS;
            hello.at = hello.at.min(now + HELLO_MIN);
            hello.pause = HELLO_MIN;
        }
        let at = peer.hello.map_or(Time::NEVER, |h| h.at);
        self.next = self.next.min(at);
    }

    /// Handles the peer's answer to a hello, on a network.
    pub(crate) fn on_here(
        &mut self,
        now: Time,
        (node, rail): (NodeId, u8),
        nonce: u32,
        life: Incarnation,
    ) -> Learned {
        let Some(peer) = self.get_mut(node) else { return Learned::Nothing };
        let (before, were_up) = (peer.mtu.limit(), peer.up());
        if peer.life == Some(life) && peer.mtu.is_probe(nonce) {
            peer.awaited = peer.awaited.without(rail);
            if peer.awaited.and(peer.up()).is_empty() {
                peer.mtu.on_answer(now, nonce);
            }
            let (deadline, limit) = (peer.mtu.deadline(), peer.mtu.limit());
            self.next = self.next.min(deadline);
            self.have_limits_changed |= limit != before;
            return Learned::Nothing;
        }
        if peer.life == Some(life)
            && let Some(liveness) = &mut peer.liveness
            && liveness.on_answer(nonce)
        {
            peer.answered_at = Some(now);
            let have_changed = peer.on_judged(now, were_up);
            let deadline = peer.mtu.deadline();
            self.have_rails_changed |= have_changed;
            self.next = self.next.min(deadline);
            return Learned::Nothing;
        }
        let Some(hello) = peer.hello.take_if(|h| h.nonce == nonce) else { return Learned::Nothing };
        peer.answered_at = Some(now);
        if hello.n_sent == 1 {
            peer.rtt = Some(now.saturating_since(hello.first_at));
        }
        let learned = match peer.life.replace(life) {
            None => Learned::First,
            Some(before) if before == life => Learned::Same,
            Some(_) => Learned::Restarted,
        };
        if learned != Learned::Same {
            peer.probe_path(now);
            if let Some(liveness) = &mut peer.liveness {
                liveness.restart(now, Some(rail));
            }
            let have_changed = peer.up() != were_up;
            self.have_rails_changed |= have_changed;
            self.next = self.next.min(now);
        }
        learned
    }

    /// Removes and returns the messages that were queued for the peer.
    pub(crate) fn take_waiting(&mut self, node: NodeId) -> VecDeque<Waiting<P>> {
        self.get_mut(node).map(|p| std::mem::take(&mut p.waiting)).unwrap_or_default()
    }

    /// Removes and returns all messages that are queued for peers.
    pub(crate) fn take_all_waiting(&mut self) -> Vec<Submission<P>> {
        let waiting = self.peers.iter_mut().flatten().flat_map(|peer| peer.waiting.drain(..));
        waiting.map(|waiting| waiting.submission).collect()
    }

    /// Returns the time of the next [`Peers::fire`].
    pub(crate) fn deadline(&self) -> Time {
        self.next
    }

    /// Calls `hello` for hellos that are due, with their network, and their minimum length if they
    /// probe the path. Calls `expired` with messages whose patience has ended, and the reason.
    pub(crate) fn fire(
        &mut self,
        now: Time,
        mut hello: impl FnMut((NodeId, Rail), u32, Option<usize>),
        mut expired: impl FnMut(Submission<P>, Failure),
    ) {
        if now < self.next {
            return;
        }
        self.next = Time::NEVER;
        let rng = &mut self.rng;
        for (idx, peer) in self.peers.iter_mut().enumerate() {
            let Some(peer) = peer else { continue };
            let node = NodeId::new(idx as u32);
            while let Some(waiting) = peer.waiting.pop_front() {
                if waiting.until > now {
                    self.next = self.next.min(waiting.until);
                    peer.waiting.push_front(waiting);
                    break;
                }
                let is_other = peer.other_transport.is_some();
                let failure = if is_other { Failure::Mismatch } else { Failure::Unreachable };
                expired(waiting.submission, failure);
            }
            if let Some(liveness) = &mut peer.liveness {
                let before = liveness.up();
                let Traffic { packets_sent, packets_received, .. } = peer.traffic;
                let exchanged = packets_sent.saturating_sub(peer.notes_sent) + packets_received;
                let each = |rail, nonce| hello((node, Rail::Only(rail)), nonce, None);
                liveness.poll(now, exchanged, || rng.bits() as u32, each);
                self.next = self.next.min(liveness.deadline());
                self.have_rails_changed |= peer.on_judged(now, before);
            }
            if peer.mtu.deadline() <= now {
                let (nonce, before) = (rng.bits() as u32, peer.mtu.limit());
                let is_awaited = peer.mtu.is_awaited();
                if let Some(len) = peer.mtu.poll(now, peer.heard_at(), nonce) {
                    peer.awaited = peer.up();
                    over(peer.awaited, |rail| hello((node, rail), nonce, Some(len)));
                    if is_awaited && peer.hello.is_none() {
                        // Its answer shows that the peer is there, and only the probe was lost.
                        let (nonce, pause) = (rng.bits() as u32, HELLO_MIN);
                        let (at, first_at, left, n_sent) = (now, now, 2, 0);
                        peer.hello = Some(Hello { nonce, at, pause, left, first_at, n_sent });
                    }
                }
                self.have_limits_changed |= peer.mtu.limit() != before;
            }
            self.next = self.next.min(peer.mtu.deadline());
            let Some(calling) = &mut peer.hello else { continue };
            if calling.at <= now {
                if calling.left == 0 && peer.waiting.is_empty() {
                    peer.hello = None;
                    continue;
                }
                let all = peer.liveness.as_ref().map_or(RailSet::EMPTY, |l| l.all());
                over(all, |rail| hello((node, rail), calling.nonce, None));
                if calling.n_sent == 0 {
                    calling.first_at = now;
                }
                calling.n_sent += 1;
                calling.left = calling.left.saturating_sub(1);
                calling.at = now + calling.pause;
                calling.pause = (calling.pause * 2).min(HELLO_MAX);
            }
            self.next = self.next.min(calling.at);
        }
    }

    /// Counts a datagram sent to `node`.
    pub(crate) fn on_sent(&mut self, node: NodeId, bytes: usize) {
        if let Some(peer) = self.get_mut(node) {
            peer.traffic.packets_sent += 1;
            peer.traffic.bytes_sent += bytes as u64;
        }
    }

    /// Counts the latest datagram to `node` as one of the node itself.
    pub(crate) fn on_note_sent(&mut self, node: NodeId) {
        if let Some(peer) = self.get_mut(node) {
            peer.notes_sent += 1;
        }
    }

    /// Handles a datagram of `node` that has arrived on a network.
    pub(crate) fn on_received(&mut self, now: Time, (node, rail): (NodeId, u8), bytes: usize) {
        let Some(peer) = self.get_mut(node) else { return };
        let Peer { traffic, liveness, other_transport, has_other_key, .. } = peer;
        (*other_transport, *has_other_key) = (None, false);
        traffic.packets_received += 1;
        traffic.bytes_received += bytes as u64;
        traffic.heard_at = Some(now);
        if let Some(liveness) = liveness {
            liveness.on_received(rail, bytes);
        }
    }

    /// Handles a datagram of `len` bytes to `node` that the system has refused.
    pub(crate) fn on_refused(&mut self, now: Time, node: NodeId, len: usize) {
        let Some(peer) = self.get_mut(node).filter(|peer| peer.life.is_some()) else { return };
        let before = peer.mtu.limit();
        peer.mtu.on_refused(now, len);
        let (deadline, limit) = (peer.mtu.deadline(), peer.mtu.limit());
        self.next = self.next.min(deadline);
        self.have_limits_changed |= limit != before;
    }
}

/// Returns the time at which the n-th of many peers is greeted.
fn greets_at(now: Time, n: usize) -> Time {
    now + GREET_STEP * (n / GREETED) as u64
}

/// Creates the state of the networks to one of `n_peers` peers, if there are several networks.
fn liveness(n_rails: u8, n_peers: usize) -> Option<Box<Liveness>> {
    (n_rails > 1).then(|| Box::new(Liveness::new(n_rails, n_peers)))
}

/// Sends on each of these networks, and on any if there are none.
fn over(rails: RailSet, mut send: impl FnMut(Rail)) {
    if rails.is_empty() {
        return send(Rail::Any);
    }
    rails.iter().for_each(|rail| send(Rail::Only(rail)));
}
