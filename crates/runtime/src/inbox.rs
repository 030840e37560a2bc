//! Messages that are arriving.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_core::collections::IdMap;
use rampmeter_core::{MsgId, NodeId, Span, Time};

use crate::digest::ArrivingDigest;
use crate::wire::Fragment;

/// Message of which some bytes have arrived.
#[derive(Debug)]
pub(crate) struct Arriving<A> {
    pub(crate) service: u16,
    pub(crate) size: u32,
    /// Bytes that have arrived.
    pub(crate) got: u64,
    /// Digest of these bytes.
    pub(crate) digest: ArrivingDigest,
    pub(crate) assembly: A,
}

/// State of a fragment's message in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// None of it has arrived.
    New,
    /// It is arriving with this number of bytes, and the fragment agrees with earlier ones.
    Arriving(u64),
    /// The fragment contradicts earlier ones.
    Contradicts,
    /// It has arrived with changed bytes.
    Corrupt,
}

/// Services without an application.
#[derive(Debug, Default)]
pub(crate) struct Absences(IdMap<u16, Absence>);

/// Times of the first and of the latest packet for an absent application.
#[derive(Clone, Copy, Debug)]
struct Absence {
    since: Time,
    latest: Time,
}

/// Time that an application may take to attach: about the starting time of programs. Messages to
/// its service are not refused before.
const PATIENCE: Span = Span::from_us(2_000_000);

impl Absences {
    /// Returns true if a service has had no application for too long. A pause in the packets to it
    /// restarts the time.
    pub(crate) fn is_over(&mut self, now: Time, service: u16) -> bool {
        let absence = self.0.entry(service).or_insert(Absence { since: now, latest: now });
        if now.saturating_since(absence.latest) > PATIENCE {
            absence.since = now;
        }
        absence.latest = now;
        now.saturating_since(absence.since) > PATIENCE
    }

    /// Records that a service has an application.
    pub(crate) fn end(&mut self, service: u16) {
        if !self.0.is_empty() {
            self.0.remove(&service);
        }
    }
}

/// Messages that wait for memory of their application, by service, the one that has waited longest
/// first. The endpoint holds them back.
#[derive(Debug, Default)]
pub(crate) struct Held {
    services: BTreeMap<u16, VecDeque<(u64, HeldMessage)>>,
    /// Held messages, with their positions in a queue. Other entries of a queue are no longer held.
    numbers: IdMap<(NodeId, MsgId), u64>,
    next: u64,
}

/// Message that waits for memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldMessage {
    pub(crate) src: NodeId,
    pub(crate) msg: MsgId,
    pub(crate) service: u16,
    pub(crate) size: u32,
}

/// Maximum number of held messages; packets of further ones are dropped as they arrive.
const HELD_MAX: usize = 1 << 20;

impl Held {
    /// Adds a message, if it is not there already. Returns false if there are too many.
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

    /// Returns whether no message is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Takes from each service the message that has waited longest, if `has_room` for it. They are
    /// no longer held.
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

    /// Removes a message; returns whether it was there.
    pub(crate) fn remove(&mut self, src: NodeId, msg: MsgId) -> bool {
        self.numbers.remove(&(src, msg)).is_some()
    }

    /// Forgets the messages of a peer that has lost its state.
    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        self.numbers.retain(|(src, _), _| *src != peer);
    }
}

/// Messages that are arriving, by sender and its number.
#[derive(Debug)]
pub(crate) struct Inbox<A> {
    messages: IdMap<(NodeId, MsgId), Arriving<A>>,
    /// Messages that have arrived with changed bytes, until the endpoint forgets them: it must not
    /// receive the missing packets.
    corrupt: IdMap<(NodeId, MsgId), ()>,
}

impl<A> Inbox<A> {
    pub(crate) fn new() -> Self {
        Self { messages: IdMap::default(), corrupt: IdMap::default() }
    }

    pub(crate) fn find(&self, src: NodeId, msg: MsgId, fragment: &Fragment) -> Found {
        match self.messages.get(&(src, msg)) {
            None if self.corrupt.contains_key(&(src, msg)) => Found::Corrupt,
            None => Found::New,
            Some(m) if m.size == fragment.size && m.service == fragment.service => {
                Found::Arriving(m.got)
            }
            Some(_) => Found::Contradicts,
        }
    }

    /// Returns the digest of the bytes of a message that have arrived.
    pub(crate) fn digest(&self, src: NodeId, msg: MsgId) -> ArrivingDigest {
        self.messages.get(&(src, msg)).map(|m| m.digest).unwrap_or_default()
    }

    /// Drops a message that has arrived with changed bytes.
    pub(crate) fn spoil(&mut self, src: NodeId, msg: MsgId) {
        if self.messages.remove(&(src, msg)).is_some() {
            self.corrupt.insert((src, msg), ());
        }
    }

    /// Returns the message, created by `open` if this is its first packet.
    pub(crate) fn entry(
        &mut self,
        src: NodeId,
        msg: MsgId,
        fragment: &Fragment,
        open: impl FnOnce() -> A,
    ) -> &mut Arriving<A> {
        let Fragment { service, size, .. } = *fragment;
        self.messages.entry((src, msg)).or_insert_with(|| {
            let (digest, assembly) = (ArrivingDigest::default(), open());
            Arriving { service, size, got: 0, digest, assembly }
        })
    }

    /// Takes a message whose end the endpoint reports.
    pub(crate) fn take(&mut self, src: NodeId, msg: MsgId) -> Option<Arriving<A>> {
        self.corrupt.remove(&(src, msg));
        self.messages.remove(&(src, msg))
    }

    /// Returns the number of messages, including corrupt ones.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() + self.corrupt.len()
    }
}
