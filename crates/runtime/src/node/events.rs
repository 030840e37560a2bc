//! Events of the endpoint, and the end of every message.

use rampmeter_types::{Bytes, Endpoint, Event, MsgId};

use super::state::NodeState;
use crate::app::{Applications, Failure, Outcome, Submission, Ticket};
use rampmeter_types::envelope::DatagramKind;

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Handles the endpoint's events. `failure` is the reason for messages that it reports as
    /// failed.
    pub(super) fn on_events(&mut self, failure: Failure) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Delivered { src, msg } => {
                    let Some(arrived) = self.inbox.take(src, msg) else {
                        self.stats.inconsistent_messages += 1;
                        continue;
                    };
                    if arrived.received_bytes != u64::from(arrived.size) {
                        if self.peers.is_incompatible(src) {
                            self.stats.mismatched_messages += 1;
                        } else {
                            self.stats.inconsistent_messages += 1;
                        }
                        self.queue_note(
                            src,
                            self.peers.peer_incarnation(src),
                            DatagramKind::Corrupt { msg },
                        );
                        continue;
                    }
                    self.stats.messages_delivered += 1;
                    self.apps.deliver(src, arrived.service, arrived.assembly);
                }
                Event::Abandoned { src, msg } => {
                    drop(self.inbox.take(src, msg));
                    if self.deferred.remove(src, msg) {
                        self.endpoint.resume(self.endpoint_time, src, msg);
                    }
                }
                Event::Completed { msg } => self.end_submission(msg, Outcome::Completed),
                Event::Failed { msg } => self.end_submission(msg, Outcome::Failed(failure)),
                Event::Rejected { msg } => {
                    self.end_submission(msg, Outcome::Failed(Failure::Rejected))
                }
            }
        }
    }

    /// Ends a message that is being sent, if it has not ended yet. If its receiver is unresponsive
    /// or has other settings, the messages queued behind it fail too, unless others of their queue
    /// have completed.
    pub(super) fn end_submission(&mut self, msg: MsgId, outcome: Outcome) {
        let Some(message) = self.outbox.remove(msg) else { return };
        let (now, queue) = (self.endpoint_time, message.queue());
        if !message.is_queued.get() {
            let size = Bytes::new(message.size.into());
            let took = self.iteration_at.saturating_since(message.submitted_at.get());
            let took = (outcome == Outcome::Completed).then_some(took);
            self.send_queues.on_end(now, queue, size, took);
        }
        self.finish(message.app, message.ticket, outcome);
        if matches!(outcome, Outcome::Failed(Failure::Unreachable | Failure::Mismatch)) {
            for msg in self.send_queues.on_unreachable(now, queue) {
                let Some(message) = self.outbox.remove(msg) else { continue };
                self.finish(message.app, message.ticket, outcome);
            }
        }
    }

    /// Counts the end of a message, and reports it to its application.
    pub(super) fn finish(&mut self, app: u32, ticket: Ticket, outcome: Outcome) {
        match outcome {
            Outcome::Completed => self.stats.messages_completed += 1,
            Outcome::Failed(_) => self.stats.messages_failed += 1,
        }
        self.apps.finish(app, ticket, outcome);
    }

    /// Reports every message that is queued for its receiver or being sent as failed.
    pub(super) fn fail_all(&mut self) {
        for Submission { app, ticket, .. } in self.peers.take_all_waiting() {
            self.finish(app, ticket, Outcome::Failed(Failure::Stopping));
        }
        self.send_queues.clear();
        for (app, ticket) in self.local.take_all() {
            self.finish(app, ticket, Outcome::Failed(Failure::Stopping));
        }
        for message in self.outbox.take_all() {
            self.finish(message.app, message.ticket, Outcome::Failed(Failure::Stopping));
        }
    }
}
