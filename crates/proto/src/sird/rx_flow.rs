//! Messages that arrive, and their credit.

use rampmeter_types::Time;

use super::config::Sird;
use crate::toolkit::{ArrivingFlow, RetryTimer};

/// Order of messages: bytes that have not arrived, then age. Senders are ordered by their first
/// message, or round robin.
pub(super) type Key = (u64, u64);

/// A message's own part.
#[derive(Debug)]
pub(super) struct MessageProgress {
    /// Size in bytes.
    pub(super) size: u64,
    /// The first packet above all that may arrive.
    pub(super) next: u32,
    /// Bytes of these that have not arrived.
    pub(super) outstanding: u64,
    /// Number among all messages that have arrived.
    pub(super) age: u64,
    /// Number of its sender.
    pub(super) source: u32,
    /// Time at which the first missing packet got credit, or became the first, or its sender
    /// answered BUSY.
    pub(super) first_at: Time,
    pub(super) retry: RetryTimer,
}

pub(super) type RxFlow = ArrivingFlow<MessageProgress>;

impl RxFlow {
    /// Order of preference for credit: bytes that have not arrived, then age. `None` if it needs no
    /// credit.
    #[inline]
    pub(super) fn key(&self, sird: &Sird) -> Option<Key> {
        let is_credited = self.received.next_missing(self.state.next) >= self.announcement.packets;
        let missing =
            sird.segmentation(self.state.size).remaining(self.received.len(), self.state.size);
        (!is_credited).then_some((missing, self.state.age))
    }

    /// Gives credit to a packet, of which there is one. Returns it and its bytes on the wire.
    #[inline]
    pub(super) fn issue(&mut self, now: Time, sird: &Sird) -> (u32, u64) {
        let seq = self.received.next_missing(self.state.next);
        if seq == self.received.first_missing() {
            self.state.first_at = now;
        }
        let bytes = sird.segmentation(self.state.size).wire_bytes(seq, self.state.size);
        self.state.next = seq + 1;
        self.state.outstanding += bytes;
        (seq, bytes)
    }
}
