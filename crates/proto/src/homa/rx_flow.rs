//! Arriving messages and their grants.

use rampmeter_types::Time;

use super::config::{Grants, Homa};
use crate::toolkit::{ArrivingFlow, RetryTimer};

/// Preference among messages: bytes to grant, then age.
pub(super) type Key = (u64, u64);

/// A message's own part.
#[derive(Debug)]
pub(super) struct MessageProgress {
    /// Size in bytes.
    pub(super) size: u64,
    /// Packets that arrive without a grant.
    pub(super) unscheduled: u32,
    /// Bytes on the wire of packets that may be in flight.
    pub(super) in_flight: u64,
    /// Packets granted, and to be granted in all.
    pub(super) issued: u32,
    pub(super) goal: u32,
    /// Number among all messages that have arrived.
    pub(super) age: u64,
    /// Unscheduled packets that have not arrived are lost; or soon will be, as the probe has
    /// arrived.
    pub(super) is_burst_over: bool,
    pub(super) is_judged: bool,
    /// The request that it answers, plus one.
    pub(super) answers: u32,
    /// Timer of the receiver's next request for missing packets.
    pub(super) retry: RetryTimer,
    /// Time of its latest packet, or of the latest sign that its sender serves others first.
    pub(super) progress_at: Time,
    /// True if the receiver has requested retransmissions of its packets.
    pub(super) is_resend_requested: bool,
}

pub(super) type RxFlow = ArrivingFlow<MessageProgress>;

impl RxFlow {
    /// Returns its preference for grants; `None` if everything has been granted.
    #[inline]
    pub(super) fn key(&self, homa: &Homa) -> Option<Key> {
        let MessageProgress { goal, issued, size, age, .. } = self.state;
        let to_grant =
            || homa.segmentation.remaining(self.announcement.packets - (goal - issued), size);
        (issued < goal).then(|| (to_grant(), age))
    }

    /// Grants a packet or as many as may be in flight, of which there is at least one. Returns
    /// their bytes on the wire.
    #[inline]
    pub(super) fn issue(&mut self, homa: &Homa) -> u64 {
        let packets = self.announcement.packets;
        let state = &mut self.state;
        let before = state.in_flight;
        loop {
            // If some of them are lost, the next packet to arrive is not known.
            let seq = packets - (state.goal - state.issued);
            state.in_flight += homa.segmentation.wire_bytes(seq, state.size);
            state.issued += 1;
            if homa.config.grants == Grants::Packet
                || state.in_flight >= homa.window_from(self.announcement.src)
                || state.issued == state.goal
            {
                return state.in_flight - before;
            }
        }
    }
}
