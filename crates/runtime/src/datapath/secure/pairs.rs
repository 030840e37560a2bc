//! Handshakes and sessions with all peers.
//!
//! A pair of nodes has up to three sessions at an end. `current` is for sending. `next` is one that
//! the peer has begun and of which no packet has arrived: the peer may not have it yet. `previous`
//! decrypts packets that are in flight at a renewal.
//!
//! # Freshness
//!
//! An initiation carries the time of its sender's clock. A node accepts only later times than
//! before from a peer, so a recorded initiation is useless. A peer's clock may be set back between
//! two incarnations, for example without a battery, or if a snapshot of a virtual machine is
//! restored. Then its initiations cannot be distinguished from recorded ones. The node therefore
//! begins a handshake itself when it receives such an initiation, at most once per
//! [`REKEY_INTERVAL`]. The new incarnation has no record of times, and its response proves that it
//! is running now. An attacker who replays an initiation causes only that one handshake with the
//! true peer.
//!
//! # Limits
//!
//! | event | limit |
//! |---|---|
//! | answers without a cookie, of the node | [`ANSWER_INTERVAL`], [`ANSWER_BURST`] |
//! | answers with a cookie, of each peer | [`PROVEN_INTERVAL`], [`PROVEN_BURST`] |
//! | initiations sent, the earliest due first | [`INITIATION_INTERVAL`], [`INITIATION_BURST`] |
//! | handshakes for packets of unknown sessions, of each peer | [`REKEY_INTERVAL`] |
//! | datagrams queued until there is a session | [`QUEUED_MAX`] a peer, [`QUEUED_BYTES_MAX`] |

mod answers;

use std::collections::{BTreeSet, VecDeque};

use rampmeter_types::rng::mix;
use rampmeter_types::{NodeId, Span, Time};
use ring::rand::SystemRandom;

use super::cookie::{self, CODE, CookieMac, CookieStore};
use super::handshake::{self, HandshakeParties, InitiatorState};
use super::key_log::KeyLog;
use super::keys::{PrivateKey, PublicKey};
use super::session::{Session, SessionKeys};
use super::token_bucket::TokenBucket;
use crate::datapath::{Rail, Report, Route};
use rampmeter_types::envelope::{DatagramKind, Envelope, Incarnation, Protection, TransportId};

/// First pause between initiations; each later one is twice as long, up to [`PAUSE_MAX`].
const PAUSE_MIN: Span = Span::from_us(20_000);
const PAUSE_MAX: Span = Span::from_us(1_000_000);
/// Maximum number of initiations for a datagram.
const ATTEMPTS: u32 = 8;
/// Minimum interval of handshakes that packets without a session cause: any host can send such
/// packets.
const REKEY_INTERVAL: Span = Span::from_us(1_000_000);
/// Maximum number of datagrams to one peer that are queued until there is a session, and of bytes
/// of those to all peers.
const QUEUED_MAX: usize = 16;
const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Initiations that are answered without a cookie: the interval of the token bucket, and its size
/// in addition to one token per peer.
const ANSWER_INTERVAL: Span = Span::from_us(5_000);
const ANSWER_BURST: u64 = 32;
/// Initiations of a peer that are answered because they have a cookie. Any host that receives
/// packets at the address of a peer has its cookies. An answer costs 0.1 to 0.3 ms of processor
/// time.
const PROVEN_INTERVAL: Span = Span::from_us(100_000);
const PROVEN_BURST: u64 = 8;
/// Initiations that a node sends while many peers are unresponsive: 500 a second use 5 to 10 % of a
/// processor. A burst must not delay the packets of others by more than a few milliseconds.
const INITIATION_INTERVAL: Span = Span::from_us(2_000);
const INITIATION_BURST: u64 = 32;
/// Maximum number of queued reports, which the node reads.
const REPORTS_MAX: usize = 64;

/// Configuration of sealed datagrams.
#[derive(Clone, Debug)]
pub struct SealConfig {
    /// Number of this node.
    pub node: NodeId,
    /// Number of the protocol on the wire.
    pub transport: TransportId,
    /// Incarnation of the node.
    pub incarnation: Incarnation,
    /// Time of its start, in ns since 1970: later than all its earlier incarnations.
    pub started_ns: u64,
    /// Private key of the node.
    pub key: PrivateKey,
    /// Public keys by node number: the first is used, and the others are accepted too, while the
    /// peer changes its key. `None` if there is no such node.
    pub peers: Vec<Option<Vec<PublicKey>>>,
}

/// All peers of a node.
#[derive(Debug)]
pub(super) struct Pairs {
    node: NodeId,
    transport: TransportId,
    incarnation: Incarnation,
    key: PrivateKey,
    public: PublicKey,
    pairs: Vec<Pair>,
    cookies: CookieStore,
    rng: SystemRandom,
    /// Limit of answers without a cookie.
    answers: TokenBucket,
    /// Limit of initiations of this node.
    begins: TokenBucket,
    /// Times at which handshakes of this node are due, with their peers. Entries of handshakes that
    /// have ended are skipped.
    due: BTreeSet<(Time, u32)>,
    queued_bytes: usize,
    reports: VecDeque<(NodeId, Report)>,
    /// Messages of handshakes to send.
    messages: VecDeque<(NodeId, Rail, Vec<u8>)>,
    /// Datagrams whose session has been established.
    ready: VecDeque<(Route, Vec<u8>)>,
    /// Time of the latest initiation, in ns since 1970.
    stamp: u64,
    path: u16,
    handshakes: u64,
    outdated_initiations: u64,
    key_log: Option<KeyLog>,
}

/// Reason for which a node cannot use a message of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeRefusal {
    /// The packet belongs to no present handshake.
    Unexpected,
    /// The sender runs another transport.
    OtherTransport,
    /// No peer has sent it, or it was recorded.
    Forged,
}

#[derive(Debug)]
struct Pair {
    keys: Vec<PublicKey>,
    current: Option<Session>,
    previous: Option<Session>,
    next: Option<Session>,
    outgoing_handshake: Option<OutgoingHandshake>,
    /// Time of the latest initiation of the peer, by its clock.
    latest_initiation: u64,
    /// Limit of answers to initiations with a cookie.
    proven: TokenBucket,
    /// Earliest time of a handshake because of a packet without a session.
    rekey_at: Time,
    cookie: Option<(CookieMac, Time)>,
    queued: VecDeque<(Route, Vec<u8>)>,
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            current: None,
            previous: None,
            next: None,
            outgoing_handshake: None,
            latest_initiation: 0,
            proven: TokenBucket::new(PROVEN_INTERVAL, PROVEN_BURST),
            rekey_at: Time::ZERO,
            cookie: None,
            queued: VecDeque::new(),
        }
    }
}

/// A handshake that this node has begun.
#[derive(Debug)]
struct OutgoingHandshake {
    initiator: Option<InitiatorState>,
    id: u16,
    key: PublicKey,
    first_code: CookieMac,
    /// Time of the next initiation, and the pause after it.
    next_at: Time,
    pause: Span,
    attempts_remaining: u32,
}

impl Pairs {
    pub(super) fn new(config: SealConfig) -> Self {
        let SealConfig { node, transport, incarnation, started_ns, key, peers } = config;
        let public = key.public();
        let n_peers = peers.len() as u64;
        let mut pairs = Self {
            node,
            transport,
            incarnation,
            key,
            public,
            pairs: Vec::new(),
            cookies: CookieStore::new(),
            rng: SystemRandom::new(),
            answers: TokenBucket::new(ANSWER_INTERVAL, ANSWER_BURST + n_peers),
            begins: TokenBucket::new(INITIATION_INTERVAL, INITIATION_BURST),
            due: BTreeSet::new(),
            queued_bytes: 0,
            reports: VecDeque::new(),
            messages: VecDeque::new(),
            ready: VecDeque::new(),
            stamp: started_ns,
            path: 0,
            handshakes: 0,
            outdated_initiations: 0,
            key_log: None,
        };
        pairs.set_peers(peers);
        pairs
    }

    pub(super) fn log_keys(&mut self, key_log: KeyLog) {
        self.key_log = Some(key_log);
    }

    /// Handles the establishment of a session.
    fn on_agreed(&mut self, peer: NodeId, agreed: &SessionKeys) {
        self.handshakes += 1;
        if let Some(key_log) = &mut self.key_log
            && let Err(error) = key_log.log_session(self.node, peer, agreed)
        {
            tracing::warn!(code = "key-log-stopped", %error, "node.key-log: disabled");
            self.key_log = None;
        }
    }

    /// Changes the key of this node. Sessions continue.
    pub(super) fn set_key(&mut self, key: PrivateKey) {
        self.public = key.public();
        self.key = key;
    }

    pub(super) fn set_peers(&mut self, peers: Vec<Option<Vec<PublicKey>>>) {
        for gone in self.pairs.drain(self.pairs.len().min(peers.len())..) {
            self.queued_bytes -= bytes_of(&gone.queued);
        }
        self.pairs.resize_with(peers.len(), Pair::default);
        for (pair, keys) in self.pairs.iter_mut().zip(peers) {
            let keys = keys.unwrap_or_default();
            if pair.keys.iter().any(|key| !keys.contains(key)) {
                // The sessions may belong to the removed key.
                self.queued_bytes -= bytes_of(&pair.queued);
                let Pair { latest_initiation, proven, .. } = *pair;
                *pair = Pair { latest_initiation, proven, ..Pair::default() };
            }
            pair.keys = keys;
        }
    }

    /// Returns the next message of a handshake, its receiver and its network: an answer is sent
    /// over the network of its request.
    pub(super) fn poll_message(&mut self) -> Option<(NodeId, Rail, Vec<u8>)> {
        self.messages.pop_front()
    }

    /// Returns the next datagram that was queued until there was a session.
    pub(super) fn poll_queued(&mut self) -> Option<(Route, Vec<u8>)> {
        self.ready.pop_front()
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.messages.is_empty() || !self.ready.is_empty()
    }

    /// Returns a path for a handshake message. Each message gets another path, so that not all
    /// attempts use a network that is down.
    pub(super) fn path(&mut self) -> u16 {
        self.path = self.path.wrapping_add(1);
        mix(self.path.into()) as u16
    }

    /// Returns the session to send with. Begins a handshake if the next session is due.
    pub(super) fn session(&mut self, now: Time, peer: NodeId) -> Option<&mut Session> {
        let pair = self.pairs.get_mut(peer.idx())?;
        let is_due = match &pair.current {
            Some(session) if session.is_alive(now) => session.is_due(now),
            _ => return None,
        };
        if is_due && pair.outgoing_handshake.is_none() {
            self.call(now, peer);
        }
        self.pairs[peer.idx()].current.as_mut()
    }

    /// Returns the next report about a peer.
    pub(super) fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        self.reports.pop_front()
    }

    /// Queues a datagram until there is a session; returns false if there are too many.
    pub(super) fn queue_datagram(&mut self, now: Time, route: Route, datagram: &[u8]) -> bool {
        let Some(pair) = self.pairs.get_mut(route.dst.idx()) else { return false };
        let bytes = self.queued_bytes + datagram.len();
        let is_kept = pair.queued.len() < QUEUED_MAX && bytes <= QUEUED_BYTES_MAX;
        if is_kept {
            pair.queued.push_back((route, datagram.to_vec()));
            self.queued_bytes = bytes;
        }
        self.call(now, route.dst);
        is_kept
    }

    /// Begins a handshake, or extends one.
    fn call(&mut self, now: Time, peer: NodeId) {
        let Some(pair) = self.pairs.get_mut(peer.idx()) else { return };
        let Some(&key) = pair.keys.first() else { return };
        match &mut pair.outgoing_handshake {
            Some(calling) => calling.attempts_remaining = ATTEMPTS,
            None => {
                pair.outgoing_handshake = Some(OutgoingHandshake {
                    initiator: None,
                    id: 0,
                    key,
                    first_code: [0; CODE],
                    next_at: now,
                    pause: PAUSE_MIN,
                    attempts_remaining: ATTEMPTS,
                });
                self.due.insert((now, peer.get()));
                self.fire(now);
            }
        }
    }

    /// Sends the initiations that are due, as far as [`INITIATION_INTERVAL`] allows.
    pub(super) fn fire(&mut self, now: Time) {
        while let Some(&(at, idx)) = self.due.first()
            && at <= now
        {
            let pair = self.pairs.get_mut(idx as usize);
            let calling = pair.and_then(|pair| pair.outgoing_handshake.as_mut());
            match calling.filter(|calling| calling.next_at == at) {
                // The handshake of this entry has ended.
                None => {}
                Some(OutgoingHandshake { attempts_remaining: 0, .. }) => {
                    self.abort_handshake(NodeId::new(idx))
                }
                Some(_) if !self.begins.take(now) => return,
                Some(_) => self.initiate(now, NodeId::new(idx)),
            }
            self.due.remove(&(at, idx));
        }
    }

    /// Ends a handshake that was not answered, and drops the datagrams that were queued for it.
    fn abort_handshake(&mut self, peer: NodeId) {
        let pair = &mut self.pairs[peer.idx()];
        pair.outgoing_handshake = None;
        self.queued_bytes -= bytes_of(&pair.queued);
        pair.queued = VecDeque::new();
    }

    /// Releases the datagrams that were queued until there was a session.
    fn release(&mut self, peer: NodeId) {
        let pair = &mut self.pairs[peer.idx()];
        self.queued_bytes -= bytes_of(&pair.queued);
        self.ready.append(&mut pair.queued);
    }

    /// Returns the time at which [`Pairs::fire`] must run; a queued message is due at once.
    pub(super) fn deadline(&self) -> Time {
        if self.has_queued() {
            return Time::ZERO;
        }
        let due = self.due.first().map_or(Time::NEVER, |(at, _)| *at);
        due.max(self.begins.free_at())
    }

    /// Sends an initiation, which replaces the one before.
    fn initiate(&mut self, now: Time, peer: NodeId) {
        let id = self.new_id(peer);
        let time = self.stamp();
        let ends =
            HandshakeParties { transport: self.transport, initiator: self.node, responder: peer };
        let pair = &mut self.pairs[peer.idx()];
        let Some(calling) = &mut pair.outgoing_handshake else { return };
        // A peer that changes its key has several: they are used round-robin.
        let turn = (ATTEMPTS - calling.attempts_remaining) as usize % pair.keys.len().max(1);
        calling.key = pair.keys.get(turn).copied().unwrap_or(calling.key);
        calling.attempts_remaining = calling.attempts_remaining.saturating_sub(1);
        calling.next_at = now + calling.pause;
        calling.pause = (calling.pause * 2).min(PAUSE_MAX);
        self.due.insert((calling.next_at, peer.get()));
        let Some((begun, noise)) = handshake::begin(&ends, &self.key, &calling.key, id, time)
        else {
            return;
        };
        (calling.initiator, calling.id) = (Some(begun), id);
        let (key, cookie) = (calling.key, pair.cookie);
        let mut message = self.message(peer, DatagramKind::Initiation { session: id }, &noise);
        let first = cookie::first_code(&key, &message);
        message.extend(first);
        let second = match cookie {
            Some((cookie, until)) if now < until => cookie::second_code(&cookie, &message),
            _ => [0; CODE],
        };
        message.extend(second);
        if let Some(calling) = &mut self.pairs[peer.idx()].outgoing_handshake {
            calling.first_code = first;
        }
        self.messages.push_back((peer, Rail::Any, message));
    }

    /// Returns an envelope with a body.
    fn message(&self, dst: NodeId, kind: DatagramKind, body: &[u8]) -> Vec<u8> {
        let envelope = Envelope {
            transport: self.transport,
            src: self.node,
            dst,
            src_incarnation: self.incarnation,
            dst_incarnation: None,
            kind,
            protection: Protection::Unprotected,
        };
        let mut message = vec![0; envelope.wire_len()];
        envelope.encode(&mut message).expect("room for the envelope");
        message.extend_from_slice(body);
        message
    }

    /// Returns a number that no session with the peer has.
    fn new_id(&self, peer: NodeId) -> u16 {
        let pair = &self.pairs[peer.idx()];
        let sessions = || [&pair.current, &pair.previous, &pair.next].into_iter().flatten();
        loop {
            let id = u16::from_ne_bytes(cookie::random(&self.rng));
            let is_called =
                pair.outgoing_handshake.as_ref().is_some_and(|calling| calling.id == id);
            if !is_called && sessions().all(|session| session.id != id) {
                return id;
            }
        }
    }

    /// Returns the time of an initiation: later than all before it, including those of earlier
    /// incarnations. The starts of incarnations are more nanoseconds apart than they have
    /// handshakes.
    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Returns the session of the peer with this number. If there is none, the ends have different
    /// sessions: begins a handshake, at a limited rate.
    pub(super) fn session_of(&mut self, now: Time, src: NodeId, id: u16) -> Option<&mut Session> {
        let pair = self.pairs.get_mut(src.idx()).filter(|_| src != self.node)?;
        let is_it = |session: &Session| session.id == id && session.is_alive(now);
        let Pair { current, next, previous, .. } = pair;
        if ![&*current, next, previous].into_iter().flatten().any(is_it) {
            if now >= pair.rekey_at {
                pair.rekey_at = now + REKEY_INTERVAL;
                self.call(now, src);
            }
            return None;
        }
        let Pair { current, next, previous, .. } = &mut self.pairs[src.idx()];
        [current, next, previous].into_iter().flatten().find(|session| session.id == id)
    }

    /// Handles a packet of the session that was opened: the peer has the session.
    pub(super) fn on_opened(&mut self, src: NodeId, id: u16) {
        let Some(pair) = self.pairs.get_mut(src.idx()) else { return };
        if pair.next.as_ref().is_some_and(|session| session.id == id) {
            pair.previous = std::mem::replace(&mut pair.current, pair.next.take());
            pair.outgoing_handshake = None;
            self.release(src);
        }
    }
}

/// Returns the bytes of queued datagrams.
fn bytes_of(kept: &VecDeque<(Route, Vec<u8>)>) -> usize {
    kept.iter().map(|(_, datagram)| datagram.len()).sum()
}

#[cfg(test)]
impl Pairs {
    pub(super) fn cookie_of(&self, peer: NodeId) -> Option<(CookieMac, Time)> {
        self.pairs[peer.idx()].cookie
    }

    pub(super) fn set_cookie(&mut self, peer: NodeId, cookie: (CookieMac, Time)) {
        self.pairs[peer.idx()].cookie = Some(cookie);
    }

    /// Returns the remaining attempts of each handshake that this node has begun.
    pub(super) fn attempts_left(&self) -> impl Iterator<Item = u32> {
        self.pairs
            .iter()
            .filter_map(|pair| Some(pair.outgoing_handshake.as_ref()?.attempts_remaining))
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }
}
