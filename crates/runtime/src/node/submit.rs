//! Messages that applications submit, and those for applications of the same node.

use std::cell::Cell;

use rampmeter_types::{Bytes, Endpoint, Message, MsgId, Time};

use super::state::{BATCH, NodeState};
use crate::app::{Applications, Failure, Outcome, Payload, Submission};
use crate::outbox::OutgoingMessage;
use crate::peer::QueuedMessage;
use crate::send_queues::QueueKey;

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Reads submissions of the applications, at most a batch; returns true if there were any. A
    /// message is queued until its receiver's incarnation is known.
    pub(super) fn take_submissions(&mut self, now: Time) -> bool {
        for n in 0..BATCH {
            let Some(submission) = self.apps.poll_submission() else { return n > 0 };
            self.stats.messages_submitted += 1;
            let Submission { app, ticket, dst, .. } = submission;
            let size = submission.payload.size();
            let failure = if self.is_stopping {
                Failure::Stopping
            } else if size == 0 || size > self.config.message_max as usize {
                Failure::BadSize
            } else if dst == self.config.node {
                self.deliver_here(submission);
                continue;
            } else if !self.peers.contains(dst) {
                Failure::UnknownPeer
            } else if self.peers.peer_incarnation(dst).is_none() {
                let bound = self
                    .endpoint
                    .latency_bound()
                    .and_then(|promise| promise.bound(Bytes::new(size as u64), submission.tenant));
                let bound_end = bound.map_or(Time::NEVER, |bound| now.saturating_add(bound));
                let queued_until = now.saturating_add(self.config.connect_timeout).min(bound_end);
                self.peers.wait(now, QueuedMessage { queued_until, bound_end, submission });
                continue;
            } else {
                self.submit(now, submission);
                continue;
            };
            self.finish(app, ticket, Outcome::Failed(failure));
        }
        true
    }

    /// Submits a message that was queued for its receiver.
    pub(super) fn submit_late(&mut self, now: Time, waiting: QueuedMessage<A::Payload>) {
        let QueuedMessage { bound_end, submission, .. } = waiting;
        let id = self.submit(now, submission);
        if bound_end < Time::NEVER {
            self.overdue.insert((bound_end, id));
        }
    }

    /// Fails messages whose bound ends before the endpoint's bound for them.
    pub(super) fn end_overdue(&mut self, now: Time) {
        while let Some(&(_, msg)) = self.overdue.first().filter(|(ends, _)| *ends <= now) {
            self.overdue.pop_first();
            if self.outbox.get(msg).is_some() {
                self.endpoint.cancel(now, msg);
                self.end_submission(msg, Outcome::Failed(Failure::Unreachable));
            }
        }
    }

    /// Submits queued messages that the window of their queue admits. They get a new number:
    /// endpoints that prefer the lower of two numbers prefer the message that they received first.
    pub(super) fn submit_queued(&mut self, now: Time) {
        let size = |message: &OutgoingMessage<A::Payload>| Bytes::new(message.size.into());
        while let Some(queued) = self.send_queues.next(|msg| self.outbox.get(msg).map(size)) {
            let Some(sending) = self.outbox.remove(queued) else { continue };
            sending.is_queued.set(false);
            sending.submitted_at.set(now);
            sending.progress_at.set(now);
            let id = self.outbox.insert(sending);
            let Some(message) = self.outbox.get(id).map(|sending| sending.message(id)) else {
                continue;
            };
            self.submit_to_endpoint(now, message);
        }
    }

    fn submit_to_endpoint(&mut self, now: Time, message: Message) {
        self.endpoint.submit(now, message);
        self.on_events(Failure::Unreachable);
    }

    /// Submits a message to the endpoint under a unique number, which is returned. The message is
    /// queued while the window of its queue is full, unless the endpoint promises a bound: that
    /// counts from the submission to the endpoint.
    fn submit(&mut self, now: Time, submission: Submission<A::Payload>) -> MsgId {
        let Submission { app, ticket, dst, service, deadline, tenant, payload } = submission;
        let size = payload.size() as u32;
        let id = self.outbox.insert(OutgoingMessage {
            app,
            ticket,
            dst,
            service,
            size,
            deadline,
            tenant,
            is_queued: Cell::new(false),
            is_begun: Cell::new(false),
            submitted_at: Cell::new(now),
            progress_at: Cell::new(now),
            digest: Cell::default(),
            payload,
        });
        let (key, size) = (QueueKey::new(dst, service, app, size), Bytes::new(size.into()));
        if self.endpoint.latency_bound().is_some() || self.send_queues.enter(now, key, id, size) {
            self.submit_to_endpoint(now, Message { id, dst, size, deadline, tenant });
        } else if let Some(message) = self.outbox.get(id) {
            message.is_queued.set(true);
        }
        id
    }

    /// Submits a message to the endpoint again, which has dropped its state with its receiver's
    /// earlier incarnation.
    pub(super) fn submit_again(&mut self, now: Time, sending: OutgoingMessage<A::Payload>) {
        let OutgoingMessage { app, ticket, dst, service, deadline, tenant, payload, .. } = sending;
        self.submit(now, Submission { app, ticket, dst, service, deadline, tenant, payload });
    }
}
