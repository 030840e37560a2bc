//! Messages that are being sent: their applications, and their bytes.

use std::cell::Cell;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{Bytes, Message, MsgId, NodeId, TenantId, Time};

use crate::app::Ticket;
use crate::digest::SendDigest;
use crate::send_queues::QueueKey;

/// A message that is being sent.
#[derive(Debug)]
pub(crate) struct OutgoingMessage<P> {
    pub(crate) app: u32,
    pub(crate) ticket: Ticket,
    pub(crate) dst: NodeId,
    pub(crate) service: u16,
    pub(crate) size: u32,
    pub(crate) deadline: Time,
    pub(crate) tenant: TenantId,
    /// True if the endpoint has not received it yet.
    pub(crate) is_queued: Cell<bool>,
    /// True if any of its bytes have been sent.
    pub(crate) is_begun: Cell<bool>,
    /// Time of its submission to the endpoint.
    pub(crate) submitted_at: Cell<Time>,
    /// Time of its submission to the endpoint, or at which bytes were sent for the first time.
    pub(crate) progress_at: Cell<Time>,
    /// Digest of the bytes sent.
    pub(crate) digest: Cell<SendDigest>,
    /// Bytes of the message.
    pub(crate) payload: P,
}

impl<P> OutgoingMessage<P> {
    /// Returns the message for the endpoint.
    pub(crate) fn message(&self, id: MsgId) -> Message {
        let &Self { dst, size, deadline, tenant, .. } = self;
        Message { id, dst, size: Bytes::new(size.into()), deadline, tenant }
    }

    /// Returns the key of its queue.
    pub(crate) fn queue(&self) -> QueueKey {
        QueueKey::new(self.dst, self.service, self.app, self.size)
    }
}

/// Messages that are being sent, by their numbers at the endpoint.
#[derive(Debug)]
pub(crate) struct Outbox<P> {
    messages: IdMap<MsgId, OutgoingMessage<P>>,
    next: u32,
    /// Number of messages to each node.
    n_by_node: IdMap<NodeId, usize>,
}

impl<P> Outbox<P> {
    pub(crate) fn new() -> Self {
        Self { messages: IdMap::default(), next: 0, n_by_node: IdMap::default() }
    }

    /// Adds a message under a unique number.
    pub(crate) fn insert(&mut self, message: OutgoingMessage<P>) -> MsgId {
        while self.messages.contains_key(&MsgId::new(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let id = MsgId::new(self.next);
        self.next = self.next.wrapping_add(1);
        *self.n_by_node.entry(message.dst).or_default() += 1;
        self.messages.insert(id, message);
        id
    }

    pub(crate) fn get(&self, id: MsgId) -> Option<&OutgoingMessage<P>> {
        self.messages.get(&id)
    }

    /// Removes and returns the messages to `dst` of which nothing has been sent and for which
    /// `may_go` returns true, in the order of their submission.
    pub(crate) fn take_unsent(
        &mut self,
        dst: NodeId,
        may_go: impl Fn(&OutgoingMessage<P>) -> bool,
    ) -> Vec<OutgoingMessage<P>> {
        let is_unbegun =
            |_: &MsgId, m: &mut OutgoingMessage<P>| m.dst == dst && !m.is_begun.get() && may_go(m);
        let mut taken: Vec<_> = self.messages.extract_if(is_unbegun).collect();
        if let Some(n) = self.n_by_node.get_mut(&dst) {
            *n -= taken.len();
        }
        taken.sort_unstable_by_key(|(id, _)| *id);
        taken.into_iter().map(|(_, message)| message).collect()
    }

    pub(crate) fn remove(&mut self, id: MsgId) -> Option<OutgoingMessage<P>> {
        let message = self.messages.remove(&id)?;
        if let Some(n) = self.n_by_node.get_mut(&message.dst) {
            *n -= 1;
        }
        Some(message)
    }

    /// Returns the numbers of the messages that `is_meant` selects, in ascending order.
    pub(crate) fn select(&self, is_meant: impl Fn(&OutgoingMessage<P>) -> bool) -> Vec<MsgId> {
        let mut found: Vec<_> =
            self.messages.iter().filter(|(_, m)| is_meant(m)).map(|(id, _)| *id).collect();
        found.sort_unstable();
        found
    }

    /// Returns the number of messages to `dst`.
    pub(crate) fn count_to(&self, dst: NodeId) -> usize {
        self.n_by_node.get(&dst).copied().unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Removes and returns all messages, in arbitrary order.
    pub(crate) fn take_all(&mut self) -> Vec<OutgoingMessage<P>> {
        self.n_by_node.clear();
        let mut all: Vec<_> = self.messages.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, message)| message).collect()
    }
}
