//! Checks whole messages before the endpoint is given the packet that completes them.
//!
//! A packet with which all bytes of a message would be here must make the digest right. If not, the
//! packet is a duplicate, which the endpoint knows ([`Endpoint::has_arrived`]) and which changes
//! nothing, or the message is corrupt. The endpoint never hears of a packet that would complete
//! such a message, so that it is not delivered and its sender is not told that it was.

use rampmeter_core::{Endpoint, MsgId, NodeId, Packet};

use super::State;
use crate::app::Applications;
use crate::digest::ArrivingDigest;
use crate::wire::{Fragment, Kind};

/// What a data packet brings of its message, if it is no duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brings {
    /// Some of it.
    Part,
    /// All that was missing.
    Rest,
}

impl Brings {
    /// What a packet brings with which there are `got` bytes of `size`.
    pub(super) fn of(got: u64, size: u32) -> Self {
        if got < size.into() { Self::Part } else { Self::Rest }
    }
}

/// The bytes that have arrived of a message are not those that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

impl<E: Endpoint, A: Applications> State<E, A> {
    /// Checks the message that a packet brings the rest of. Returns its digest with the packet, or
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

    /// Drops a message that has arrived otherwise than it was sent, and tells its sender.
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
