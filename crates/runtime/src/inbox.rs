//! Messages that are arriving.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId, Span, Time};

use crate::digest::ReceiveDigest;
use rampmeter_types::envelope::Fragment;

/// Message of which some bytes have arrived.
#[derive(Debug)]
pub(crate) struct PartialMessage<A> {
    pub(crate) service: u16,
    pub(crate) size: u32,
    /// Bytes that have arrived.
    pub(crate) received_bytes: u64,
    /// Digest of these bytes.
    pub(crate) digest: ReceiveDigest,
    pub(crate) assembly: A,
}

/// State of a fragment's message in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentState {
    /// No byte of it has arrived.
    New,
    /// The message is arriving with this number of bytes, and the fragment agrees with earlier
    /// ones.
    Arriving(u64),
    /// The fragment contradicts earlier ones.
    Conflict,
}

/// Reason for which a node refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// No application receives it, or it is too long.
    NoReceiver,
    /// Bytes of the message have changed.
    Corrupt,
}

/// Messages that this node has refused recently. Their endpoints have forgotten them, so the node
/// itself answers senders that have missed the refusal. Two generations are kept.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    recent: IdMap<(NodeId, MsgId), RefusedMessage>,
    older: IdMap<(NodeId, MsgId), RefusedMessage>,
    /// Beginning of the recent generation.
    since: Time,
    /// End of the latest refusal: packets cost no search after it.
    until: Time,
}

#[derive(Clone, Copy, Debug)]
struct RefusedMessage {
    reason: RefusalReason,
    /// Time of the latest note to the sender.
    noted_at: Time,
}

/// Maximum number of refused messages in a generation.
const REFUSALS_MAX: usize = 1 << 16;
/// Minimum time for which a refusal is remembered. Senders of deferred messages repeat themselves
/// after 4096 control round trips only, and may have missed it.
const REMEMBERED_MIN: Span = Span::from_us(60_000_000);
/// Minimum interval between two notes about one message.
const REFUSAL_EVERY: Span = Span::from_us(1_000);

impl Refusals {
    /// Records a refused message, for at least `lifetime` if there are not too many others.
    pub(crate) fn enter(
        &mut self,
        now: Time,
        message: (NodeId, MsgId),
        reason: RefusalReason,
        lifetime: Span,
    ) {
        let lifetime = lifetime.max(REMEMBERED_MIN);
        let age = now.saturating_since(self.since);
        if age > lifetime || self.recent.len() >= REFUSALS_MAX {
            let recent = std::mem::take(&mut self.recent);
            self.older = if age > lifetime * 2 { IdMap::default() } else { recent };
            self.since = now;
        }
        self.recent.insert(message, RefusedMessage { reason, noted_at: now });
        self.until = now.saturating_add(lifetime);
    }

    /// Returns the reason for which a message was refused, and whether to notify its sender again.
    #[inline]
    pub(crate) fn find(
        &mut self,
        now: Time,
        message: (NodeId, MsgId),
    ) -> Option<(RefusalReason, bool)> {
        if now > self.until {
            return None;
        }
        let refusal = match self.recent.get_mut(&message) {
            Some(refusal) => refusal,
            None => self.older.get_mut(&message)?,
        };
        let is_due = now.saturating_since(refusal.noted_at) >= REFUSAL_EVERY;
        if is_due {
            refusal.noted_at = now;
        }
        Some((refusal.reason, is_due))
    }

    /// Forgets the messages of a peer, which restarts its numbers.
    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        self.recent.retain(|(src, _), _| *src != peer);
        self.older.retain(|(src, _), _| *src != peer);
    }
}

/// Services without an application.
#[derive(Debug, Default)]
pub(crate) struct AbsentServices(IdMap<u16, ServiceAbsence>);

/// Times of the first and of the latest packet for an absent application.
#[derive(Clone, Copy, Debug)]
struct ServiceAbsence {
    since: Time,
    latest: Time,
}

/// Time that an application may take to attach: about the start-up time of programs. Messages to
/// its service are refused only after this time.
const ATTACH_TIMEOUT: Span = Span::from_us(2_000_000);

impl AbsentServices {
    /// Returns true if a service has had no application for too long. A pause in the packets to it
    /// restarts the time.
    pub(crate) fn has_timed_out(&mut self, now: Time, service: u16) -> bool {
        let absence = self.0.entry(service).or_insert(ServiceAbsence { since: now, latest: now });
        if now.saturating_since(absence.latest) > ATTACH_TIMEOUT {
            absence.since = now;
        }
        absence.latest = now;
        now.saturating_since(absence.since) > ATTACH_TIMEOUT
    }

    /// Returns true if a service whose messages are deferred has had no application for too long.
    pub(crate) fn has_expired(&mut self, now: Time, service: u16) -> bool {
        let absence = self.0.entry(service).or_insert(ServiceAbsence { since: now, latest: now });
        let is_over = now.saturating_since(absence.since) > ATTACH_TIMEOUT;
        if is_over {
            absence.latest = now;
        }
        is_over
    }

    /// Records that a service has an application.
    pub(crate) fn end(&mut self, service: u16) {
        if !self.0.is_empty() {
            self.0.remove(&service);
        }
    }
}

/// Messages deferred until their application has memory or attaches, by service, the oldest first.
/// The endpoint pauses them.
#[derive(Debug, Default)]
pub(crate) struct DeferredMessages {
    services: BTreeMap<u16, VecDeque<(u64, HeldMessage)>>,
    /// Deferred messages, with their positions in a queue. Other entries of a queue are skipped.
    numbers: IdMap<(NodeId, MsgId), u64>,
    next: u64,
}

/// Message deferred until its application has memory or attaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldMessage {
    pub(crate) src: NodeId,
    pub(crate) msg: MsgId,
    pub(crate) service: u16,
    pub(crate) size: u32,
}

/// Maximum number of deferred messages; packets of further messages are dropped.
const HELD_MAX: usize = 1 << 20;

impl DeferredMessages {
    /// Adds a message, if it is not deferred already. Returns false if there are too many.
    pub(crate) fn enter(&mut self, message: HeldMessage) -> bool {
        let HeldMessage { src, msg, service, .. } = message;
        if self.numbers.contains_key(&(src, msg)) {
            return true;
        }
        if self.numbers.len() >= HELD_MAX {
            return false;
        }
        self.numbers.insert((src, msg), self.next);
        self.services.entry(service).or_default().push_back((self.next, message));
        self.next += 1;
        true
    }

    /// Returns true if no message is deferred.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Takes the oldest message of each service, if `has_room` for it. These messages are no longer
    /// deferred.
    pub(crate) fn take_first(
        &mut self,
        mut has_room: impl FnMut(&HeldMessage) -> bool,
    ) -> Vec<HeldMessage> {
        let mut taken = Vec::new();
        let Self { services, numbers, .. } = self;
        services.retain(|_, queue| {
            let is_held =
                |number: u64, m: &HeldMessage| numbers.get(&(m.src, m.msg)) == Some(&number);
            while queue.front().is_some_and(|(number, message)| !is_held(*number, message)) {
                queue.pop_front();
            }
            if queue.front().is_some_and(|(_, message)| has_room(message))
                && let Some((_, message)) = queue.pop_front()
            {
                numbers.remove(&(message.src, message.msg));
                taken.push(message);
            }
            !queue.is_empty()
        });
        taken
    }

    /// Removes a message; returns true if it was deferred.
    pub(crate) fn remove(&mut self, src: NodeId, msg: MsgId) -> bool {
        self.numbers.remove(&(src, msg)).is_some()
    }

    /// Removes the messages of a peer that has lost its state.
    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        self.numbers.retain(|(src, _), _| *src != peer);
    }
}

/// Messages that are arriving, by sender and its number.
#[derive(Debug)]
pub(crate) struct Inbox<A> {
    messages: IdMap<(NodeId, MsgId), PartialMessage<A>>,
}

impl<A> Inbox<A> {
    pub(crate) fn new() -> Self {
        Self { messages: IdMap::default() }
    }

    pub(crate) fn find(&self, src: NodeId, msg: MsgId, fragment: &Fragment) -> FragmentState {
        match self.messages.get(&(src, msg)) {
            None => FragmentState::New,
            Some(m) if m.size == fragment.size && m.service == fragment.service => {
                FragmentState::Arriving(m.received_bytes)
            }
            Some(_) => FragmentState::Conflict,
        }
    }

    /// Returns true if some of a message has arrived.
    pub(crate) fn contains(&self, src: NodeId, msg: MsgId) -> bool {
        self.messages.contains_key(&(src, msg))
    }

    /// Returns the digest of the bytes of a message that have arrived.
    pub(crate) fn digest(&self, src: NodeId, msg: MsgId) -> ReceiveDigest {
        self.messages.get(&(src, msg)).map(|m| m.digest).unwrap_or_default()
    }

    /// Returns the message, created by `open` if this is its first packet.
    pub(crate) fn entry(
        &mut self,
        src: NodeId,
        msg: MsgId,
        fragment: &Fragment,
        open: impl FnOnce() -> A,
    ) -> &mut PartialMessage<A> {
        let Fragment { service, size, .. } = *fragment;
        self.messages.entry((src, msg)).or_insert_with(|| {
            let (digest, assembly) = (ReceiveDigest::default(), open());
            PartialMessage { service, size, received_bytes: 0, digest, assembly }
        })
    }

    /// Removes and returns a message whose end the endpoint reports.
    pub(crate) fn take(&mut self, src: NodeId, msg: MsgId) -> Option<PartialMessage<A>> {
        self.messages.remove(&(src, msg))
    }

    /// Returns the number of messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}
