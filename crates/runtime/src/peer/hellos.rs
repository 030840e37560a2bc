//! Hellos: greetings, probes of networks and paths, and their answers.

use rampmeter_types::{NodeId, Span, Time};

use super::{HelloOutcome, HelloState, Peers, Traffic};
use crate::app::{Failure, Submission};
use crate::datapath::{Rail, RailSet};
use rampmeter_types::envelope::Incarnation;

/// First pause between hellos; each later one is twice as long, up to [`HELLO_MAX`].
const HELLO_MIN: Span = Span::from_us(5_000);
const HELLO_MAX: Span = Span::from_us(1_000_000);

/// Number of greetings of which at least one is sent to an unresponsive peer.
const RARE_HELLO_EVERY: u32 = 64;

/// Number of peers to which hellos are sent at once, and the interval to the next ones. All hellos
/// at once would delay the packets of others: a network may have thousands of nodes.
const HELLO_BURST: usize = 16;
const HELLO_STEP: Span = Span::from_us(2_000);

/// Hellos that are sent for a packet that could not be sent, or to confirm a new incarnation.
const HELLO_RETRANSMITS: u32 = 8;

impl<P> Peers<P> {
    /// Requests the incarnations of all peers except `node` itself.
    pub(crate) fn call_all(&mut self, now: Time, node: NodeId) {
        let others = (0..self.peers.len() as u32).map(NodeId::new).filter(|other| *other != node);
        for (n, other) in others.enumerate() {
            self.call_at(now, greets_at(now, n), other);
        }
    }

    /// Greets all peers except `node` itself. Those that do not answer are greeted increasingly
    /// rarely, as each sends hellos itself when it starts: every hello costs a key agreement.
    pub(crate) fn send_hellos(&mut self, now: Time, node: NodeId) {
        let mut n_called = 0;
        for other in (0..self.peers.len() as u32).map(NodeId::new) {
            let Some(peer) = self.get_mut(other).filter(|_| other != node) else { continue };
            let has_answered = peer.last_received_at.is_some_and(|at| at >= peer.hello_at);
            peer.unanswered = if has_answered { 0 } else { peer.unanswered.saturating_add(1) };
            let n = peer.unanswered;
            let at = greets_at(now, n_called);
            if n == 0 || n.is_power_of_two() || n.is_multiple_of(RARE_HELLO_EVERY) {
                self.call_at(now, at, other);
                n_called += 1;
            }
            if let Some(peer) = self.get_mut(other) {
                peer.hello_at = at;
            }
        }
    }

    /// Requests the peer's incarnation, unless a request is pending.
    pub(crate) fn call(&mut self, now: Time, node: NodeId) {
        self.call_at(now, now, node);
    }

    /// Requests the peer's incarnation from `first` on, unless a request is pending.
    fn call_at(&mut self, now: Time, first: Time, node: NodeId) {
        let nonce = self.rng.bits() as u32;
        let Some(peer) = self.get_mut(node) else { return };
        let is_over = peer.hello.is_none_or(|h| h.remaining == 0 && peer.queued.is_empty());
        if is_over {
            let (pause, remaining) = (HELLO_MIN, HELLO_RETRANSMITS);
            let (first_at, n_sent) = (first, 0);
            peer.hello =
                Some(HelloState { nonce, next_at: first, pause, remaining, first_at, n_sent });
        } else if let Some(hello) = &mut peer.hello {
            // The peer has sent something, or there is a message for it: a fast retry pays off.
            hello.remaining = HELLO_RETRANSMITS;
            hello.next_at = hello.next_at.min(now + HELLO_MIN);
            hello.pause = HELLO_MIN;
        }
        let at = peer.hello.map_or(Time::NEVER, |h| h.next_at);
        self.next = self.next.min(at);
    }

    /// Handles the peer's answer to a hello, on a network.
    pub(crate) fn on_hello_reply(
        &mut self,
        now: Time,
        node: NodeId,
        rail: u8,
        nonce: u32,
        peer_incarnation: Incarnation,
    ) -> HelloOutcome {
        let Some(peer) = self.get_mut(node) else { return HelloOutcome::Unmatched };
        let (before, were_up) = (peer.mtu.limit(), peer.up());
        if peer.incarnation == Some(peer_incarnation) && peer.mtu.is_probe(nonce) {
            peer.awaited_rails = peer.awaited_rails.without(rail);
            if peer.awaited_rails.intersection(peer.up()).is_empty() {
                peer.mtu.on_answer(now, nonce);
            }
            let (deadline, limit) = (peer.mtu.deadline(), peer.mtu.limit());
            self.next = self.next.min(deadline);
            self.have_limits_changed |= limit != before;
            return HelloOutcome::Unmatched;
        }
        if peer.incarnation == Some(peer_incarnation)
            && let Some(liveness) = &mut peer.liveness
            && liveness.on_answer(nonce)
        {
            peer.last_received_at = Some(now);
            let have_changed = peer.on_judged(now, were_up);
            let deadline = peer.mtu.deadline();
            self.have_rails_changed |= have_changed;
            self.next = self.next.min(deadline);
            return HelloOutcome::Unmatched;
        }
        let Some(hello) = peer.hello.take_if(|h| h.nonce == nonce) else {
            return HelloOutcome::Unmatched;
        };
        peer.last_received_at = Some(now);
        if hello.n_sent == 1 {
            peer.rtt = Some(now.saturating_since(hello.first_at));
        }
        let learned = match peer.incarnation.replace(peer_incarnation) {
            None => HelloOutcome::FirstIncarnation,
            Some(before) if before == peer_incarnation => HelloOutcome::SameIncarnation,
            Some(_) => HelloOutcome::Restarted,
        };
        if learned != HelloOutcome::SameIncarnation {
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
            while let Some(waiting) = peer.queued.pop_front() {
                if waiting.queued_until > now {
                    self.next = self.next.min(waiting.queued_until);
                    peer.queued.push_front(waiting);
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
                let each = |rail, nonce| hello((node, Rail::Exactly(rail)), nonce, None);
                liveness.poll(now, exchanged, || rng.bits() as u32, each);
                self.next = self.next.min(liveness.deadline());
                self.have_rails_changed |= peer.on_judged(now, before);
            }
            if peer.mtu.deadline() <= now {
                let (nonce, before) = (rng.bits() as u32, peer.mtu.limit());
                let is_awaited = peer.mtu.is_awaited();
                if let Some(len) = peer.mtu.poll(now, peer.last_received_at, nonce) {
                    peer.awaited_rails = peer.up();
                    over(peer.awaited_rails, |rail| hello((node, rail), nonce, Some(len)));
                    if is_awaited && peer.hello.is_none() {
                        // Its answer shows that the peer is there, and only the probe was lost.
                        let (nonce, pause) = (rng.bits() as u32, HELLO_MIN);
                        let (next_at, first_at, remaining, n_sent) = (now, now, 2, 0);
                        peer.hello =
                            Some(HelloState { nonce, next_at, pause, remaining, first_at, n_sent });
                    }
                }
                self.have_limits_changed |= peer.mtu.limit() != before;
            }
            self.next = self.next.min(peer.mtu.deadline());
            let Some(calling) = &mut peer.hello else { continue };
            if calling.next_at <= now {
                if calling.remaining == 0 && peer.queued.is_empty() {
                    peer.hello = None;
                    continue;
                }
                let all = peer.liveness.as_ref().map_or(RailSet::EMPTY, |l| l.all());
                over(all, |rail| hello((node, rail), calling.nonce, None));
                if calling.n_sent == 0 {
                    calling.first_at = now;
                }
                calling.n_sent += 1;
                calling.remaining = calling.remaining.saturating_sub(1);
                calling.next_at = now + calling.pause;
                calling.pause = (calling.pause * 2).min(HELLO_MAX);
            }
            self.next = self.next.min(calling.next_at);
        }
    }
}

/// Returns the time at which the n-th of many peers is greeted.
fn greets_at(now: Time, n: usize) -> Time {
    now + HELLO_STEP * (n / HELLO_BURST) as u64
}

/// Sends on each of these networks, and on any if there are none.
fn over(rails: RailSet, mut send: impl FnMut(Rail)) {
    if rails.is_empty() {
        return send(Rail::Any);
    }
    rails.iter().for_each(|rail| send(Rail::Exactly(rail)));
}
