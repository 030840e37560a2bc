//! Checks whole messages before the endpoint receives the packet that completes them.
//!
//! If a packet completes the bytes of a message, the digest must be correct. If it is not, the
//! packet is a duplicate, which the endpoint detects ([`Endpoint::has_arrived`]) and which changes
//! nothing, or the message is corrupt. The endpoint never receives a packet that would complete
//! such a message, so that it is neither delivered nor acknowledged.

use rampmeter_core::{Endpoint, MsgId, NodeId, Packet};

use super::State;
use crate::app::Applications;
use crate::digest::ArrivingDigest;
use crate::wire::{Fragment, Kind};

/// Part of its message that a data packet has, if it is no duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brings {
    /// Some of it.
    Part,
    /// All missing bytes.
    Rest,
}

impl Brings {
    /// Returns the part for a packet with which `got` bytes of `size` have arrived.
    pub(super) fn of(got: u64, size: u32) -> Self {
        if got < size.into() { Self::Part } else { Self::Rest }
    }
}

/// The bytes of a message that have arrived differ from those that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

impl<E: Endpoint, A: Applications> State<E, A> {
    /// Checks a message with the packet that completes it. Returns its digest with the packet, or
    /// nothing if the packet is a duplicate.
    pub(super) fn verify(
        &mut self,
        packet: &Packet<E::Header>,
        fragment: &Fragment,
        payload: &[u8],
    ) -> Result<Option<ArrivingDigest>, Corrupt> {
        let digest = self.inbox.digest(packet.src, packet.payload.msg).with(fragment, payload);
        if digest.is_right(fragment.size) {
            Ok(Some(digest))
        } else if self.endpoint.has_arrived(packet) {
            Ok(None)
        } else {
            Err(Corrupt)
        }
    }

    /// Drops a message that has arrived with changed bytes, and notifies its sender.
    pub(super) fn on_corrupt(&mut self, src: NodeId, msg: MsgId) {
        if self.peers.is_incompatible(src) {
            self.stats.mismatched += 1;
        } else {
            self.stats.corrupt += 1;
        }
        self.inbox.spoil(src, msg);
        self.note(src, self.peers.life(src), Kind::Corrupt { msg });
    }
}
