//! Checks whole messages before the endpoint receives the packet that completes them.
//!
//! The digest must be correct when a packet completes the bytes of a message. Otherwise the packet
//! is a duplicate, which the endpoint detects ([`HostPolicy::is_duplicate`]) and ignores, or the
//! message is corrupt. The endpoint never receives a packet that would complete such a message, so
//! that it is neither delivered nor acknowledged.

use rampmeter_types::{Endpoint, MsgId, NodeId, Packet, Time};

use super::state::NodeState;
use crate::app::Applications;
use crate::digest::ReceiveDigest;
use crate::inbox::RefusalReason;
use rampmeter_types::envelope::Fragment;

/// Part of its message that a new data packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadShare {
    /// A part of the missing bytes.
    Part,
    /// All missing bytes.
    Rest,
}

impl PayloadShare {
    /// Returns the part for a packet with which `got` bytes of `size` have arrived.
    pub(super) fn new(got: u64, size: u32) -> Self {
        if got < size.into() { Self::Part } else { Self::Rest }
    }
}

/// The bytes of a message that have arrived differ from those that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CorruptMessage;

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Checks a message with the packet that completes it. Returns its digest with the packet, or
    /// `None` if the packet is a duplicate.
    pub(super) fn verify(
        &mut self,
        packet: &Packet<E::Header>,
        fragment: &Fragment,
        payload: &[u8],
    ) -> Result<Option<ReceiveDigest>, CorruptMessage> {
        let digest = self.inbox.digest(packet.src, packet.payload.msg).with(fragment, payload);
        if digest.matches(fragment.size) {
            Ok(Some(digest))
        } else if self.endpoint.is_duplicate(packet) {
            Ok(None)
        } else {
            Err(CorruptMessage)
        }
    }

    /// Notifies the sender of a message that its bytes have changed. If earlier packets of it have
    /// been placed, it is refused; otherwise a correct packet may still arrive.
    pub(super) fn on_corrupt(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if self.peers.is_incompatible(src) {
            self.stats.mismatched_messages += 1;
        } else {
            self.stats.corrupt_messages += 1;
        }
        if self.inbox.contains(src, msg) {
            self.refuse(now, src, msg, RefusalReason::Corrupt);
        } else {
            self.note_refusal(src, msg, RefusalReason::Corrupt);
        }
    }
}
