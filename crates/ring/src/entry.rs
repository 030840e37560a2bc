//! Entries of the rings.

pub use rampmeter_runtime::app::{Failure, Outcome};

use crate::layout::{CQ_WORDS, SQ_WORDS};

/// A message to send, as it is in the submission queue. Any words are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmissionEntry {
    pub(crate) ticket: u64,
    /// First byte within the send arena.
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) dst: u32,
    pub(crate) service: u16,
    pub(crate) tenant: u32,
    /// Deadline in nanoseconds of the machine's monotonic clock; `u64::MAX` if there is none.
    pub(crate) deadline_ns: u64,
}

impl SubmissionEntry {
    pub(crate) fn encode(&self) -> [u64; SQ_WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (target, owner) = (pair(self.size, self.dst), pair(self.service.into(), self.tenant));
        [self.ticket, self.offset, target, owner, self.deadline_ns, 0, 0, 0]
    }

    pub(crate) fn decode(
        [ticket, offset, target, owner, deadline_ns, ..]: [u64; SQ_WORDS],
    ) -> Self {
        let (size, dst) = (target as u32, (target >> 32) as u32);
        let (service, tenant) = (owner as u16, (owner >> 32) as u32);
        Self { ticket, offset, size, dst, service, tenant, deadline_ns }
    }
}

/// A completion, as it is in the completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionEntry {
    Finished {
        ticket: u64,
        outcome: Outcome,
    },
    /// A message has arrived. `uid` is the user of the sending program, if it is on this machine.
    Received {
        offset: u64,
        size: u32,
        from: u32,
        uid: Option<u32>,
    },
}

impl CompletionEntry {
    pub(crate) fn encode(&self) -> [u64; CQ_WORDS] {
        match *self {
            Self::Finished { ticket, outcome } => {
                let code = match outcome {
                    Outcome::Completed => 0,
                    Outcome::Failed(failure) => failure.code(),
                };
                [1, ticket, code.into(), 0]
            }
            Self::Received { offset, size, from, uid } => {
                // One more than the user's number, so that zero means no user.
                let sender = uid.map_or(0, |uid| u64::from(uid) + 1);
                [2, offset, u64::from(size) | u64::from(from) << 32, sender]
            }
        }
    }

    /// Decodes a completion; `None` if its words are invalid.
    pub(crate) fn decode([kind, word, more, sender]: [u64; CQ_WORDS]) -> Option<Self> {
        match kind {
            1 => {
                let outcome = match u32::try_from(more).ok()? {
                    0 => Outcome::Completed,
                    code => Outcome::Failed(Failure::from_code(code)?),
                };
                Some(Self::Finished { ticket: word, outcome })
            }
            2 => {
                let (size, from) = (more as u32, (more >> 32) as u32);
                let uid = match sender.checked_sub(1) {
                    None => None,
                    Some(uid) => Some(u32::try_from(uid).ok()?),
                };
                Some(Self::Received { offset: word, size, from, uid })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn ring_entries_survive_encoding(
            words in any::<[u64; 4]>(),
            a in any::<u32>(),
            b in any::<u32>(),
        ) {
            let [ticket, offset, deadline_ns, tenant] = words;
            let (service, tenant) = (a as u16, tenant as u32);
            let (size, dst) = (a, b);
            let entry =
                SubmissionEntry { ticket, offset, size, dst, service, tenant, deadline_ns };
            prop_assert_eq!(SubmissionEntry::decode(entry.encode()), entry);
            for uid in [None, Some(0), Some(a), Some(u32::MAX)] {
                let received = CompletionEntry::Received { offset, size: a, from: b, uid };
                prop_assert_eq!(CompletionEntry::decode(received.encode()), Some(received));
            }
            for code in 0..10 {
                let outcome = Failure::from_code(code).map_or(Outcome::Completed, Outcome::Failed);
                let finished = CompletionEntry::Finished { ticket, outcome };
                prop_assert_eq!(CompletionEntry::decode(finished.encode()), Some(finished));
            }
        }
    }
}
