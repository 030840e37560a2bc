//! Messages between applications of one node.
//!
//! The node copies such a message from the sender's memory to the receiver's. Copying 1 GB at once
//! blocked the node's thread for 6 s. Long messages are therefore copied in parts, round-robin, and
//! the node sends and receives packets between the parts.

use std::collections::VecDeque;

use rampmeter_types::Endpoint;

use super::state::NodeState;
use crate::app::{
    Admission, Applications, Assembly, Failure, Outcome, Payload, Submission, Ticket,
};

/// Messages of at most this length are copied at once.
const SHORT_MAX: usize = 16_384;
/// Bytes of long messages that are copied between two polls.
const COPIED_MAX: usize = 262_144;
/// Bytes of a long message that are copied before the next message's.
const PART_BYTES: usize = 65_536;

/// Long messages that are being copied.
#[derive(Debug)]
pub(super) struct LocalCopies<P, A>(VecDeque<LocalCopy<P, A>>);

/// A message that is being copied.
#[derive(Debug)]
struct LocalCopy<P, A> {
    app: u32,
    ticket: Ticket,
    service: u16,
    payload: P,
    assembly: A,
    n_copied: usize,
}

impl<P, A> Default for LocalCopies<P, A> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<P: Payload, A: Assembly> LocalCopies<P, A> {
    /// Returns the number of messages that are being copied.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes all messages. Returns the application and ticket of each.
    pub(super) fn take_all(&mut self) -> Vec<(u32, Ticket)> {
        self.0.drain(..).map(|copy| (copy.app, copy.ticket)).collect()
    }
}

impl<P: Payload, A: Assembly> LocalCopy<P, A> {
    /// Copies at most `max` bytes. Returns true if the message is complete.
    fn copy(&mut self, max: usize) -> bool {
        let mut part = [0; 4_096];
        let size = self.payload.size();
        let end = size.min(self.n_copied + max);
        while self.n_copied < end {
            let len = part.len().min(end - self.n_copied);
            self.payload.copy_to(self.n_copied, &mut part[..len]);
            self.assembly.write(self.n_copied, &part[..len]);
            self.n_copied += len;
        }
        self.n_copied == size
    }
}

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Delivers a message to an application of this node, or begins to.
    pub(super) fn deliver_here(&mut self, submission: Submission<A::Payload>) {
        let Submission { app, ticket, service, payload, .. } = submission;
        let size = payload.size();
        if self.apps.admission(service, size as u32) != Admission::Accept {
            return self.finish(app, ticket, Outcome::Failed(Failure::Refused));
        }
        let assembly = self.apps.open(service, size as u32);
        let mut copy = LocalCopy { app, ticket, service, payload, assembly, n_copied: 0 };
        if size <= SHORT_MAX && copy.copy(size) {
            self.complete_here(copy);
        } else {
            self.local.0.push_back(copy);
        }
    }

    /// Copies parts of long messages. Returns true if there are more.
    pub(super) fn copy_local(&mut self) -> bool {
        let mut n_left = COPIED_MAX;
        while n_left > 0
            && let Some(mut copy) = self.local.0.pop_front()
        {
            let max = n_left.min(PART_BYTES);
            n_left -= max;
            if copy.copy(max) {
                self.complete_here(copy);
            } else {
                self.local.0.push_back(copy);
            }
        }
        self.local.len() > 0
    }

    fn complete_here(&mut self, copy: LocalCopy<A::Payload, A::Assembly>) {
        let LocalCopy { app, ticket, service, assembly, .. } = copy;
        self.stats.messages_delivered += 1;
        self.apps.deliver_local(self.config.node, app, service, assembly);
        self.finish(app, ticket, Outcome::Completed);
    }
}
