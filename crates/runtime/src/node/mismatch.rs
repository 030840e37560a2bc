//! Messages to peers with other settings that make no progress for that reason.
//!
//! Design notes.
//!
//! 1. The problem: packets of a peer with a longer `network.mtu` are dropped unread, as they are
//!    longer than any packet of the receiver. The transport of the sender may retransmit forever,
//!    because short packets pass and are answered.
//! 2. A receiver that can read packets but not reassemble the message reports this
//!    ([`DatagramKind::Corrupt`](rampmeter_types::envelope::DatagramKind::Corrupt)), and the
//!    message fails at once. It cannot do so for dropped packets.
//! 3. So the sender watches messages to peers that differ in `network.mtu` or in the transport. It
//!    fails those of which no further byte has been sent for some time: [`STALL`], or
//!    [`NodeConfig::connect_timeout`](crate::NodeConfig::connect_timeout) if only the transport's
//!    parameters differ, with which most messages arrive.
//! 4. Hazard: a message that its receiver pauses for lack of memory fails as well.

use rampmeter_types::envelope::TransportId;
use rampmeter_types::{Endpoint, NodeId, Span, Time};

use super::state::NodeState;
use crate::app::{Applications, Failure, Outcome};

/// Time without progress after which a message to a peer with another `network.mtu` or transport
/// fails: several retransmission timeouts.
const STALL: Span = Span::from_us(2_000_000);
/// Interval at which messages to such peers are checked.
const CHECK_INTERVAL: Span = Span::from_us(250_000);

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Records that a peer runs another transport.
    pub(super) fn on_other_transport(&mut self, now: Time, peer: NodeId, theirs: TransportId) {
        self.peers.on_other_transport(now, peer, theirs);
        self.watch(now, peer);
    }

    /// Begins to watch messages to a peer if its settings require it.
    pub(super) fn watch(&mut self, now: Time, peer: NodeId) {
        if self.peers.is_incompatible(peer) {
            self.mismatch_at = self.mismatch_at.min(now + CHECK_INTERVAL);
        }
    }

    /// Fails messages without progress to peers with other settings.
    pub(super) fn end_mismatched(&mut self, now: Time) {
        if now < self.mismatch_at {
            return;
        }
        let connect_timeout = self.config.connect_timeout;
        let stall = |peer| match self.peers.is_incompatible(peer) {
            false => None,
            true if self.peers.has_other_packets(peer) => Some(STALL.min(connect_timeout)),
            true => Some(connect_timeout),
        };
        let is_stalled = |progress_at: Time, peer| {
            stall(peer).is_some_and(|stall| now.saturating_since(progress_at) >= stall)
        };
        let stalled =
            self.outbox.select(|m| !m.is_queued.get() && is_stalled(m.progress_at.get(), m.dst));
        for msg in stalled {
            self.endpoint.cancel(now, msg);
            self.end_submission(msg, Outcome::Failed(Failure::Mismatch));
        }
        let is_watching = self.peers.are_any_incompatible();
        self.mismatch_at = if is_watching { now + CHECK_INTERVAL } else { Time::NEVER };
    }
}
