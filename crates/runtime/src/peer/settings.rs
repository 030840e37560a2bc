//! Settings of peers, and those that differ from this node's.

use rampmeter_types::envelope::TransportId;
use rampmeter_types::{NodeId, Span, Time};

use super::{Peer, Peers};
use crate::agreement::{Differences, Setting, SettingDigests};

/// Time for which messages are queued for a peer that, by its latest packet, runs another
/// transport.
pub(super) const OTHER_TRANSPORT: Span = Span::from_us(1_000_000);

impl<P> Peer<P> {
    /// Returns the settings in which the peer differs.
    pub(super) fn differences(&self) -> Differences {
        match self.other_transport {
            None => self.differences,
            Some(_) => self.differences.with(Setting::Transport),
        }
    }

    /// Begins to probe the path, unless the peer does not accept packets of full length.
    pub(super) fn probe_path(&mut self, now: Time) {
        if self.differences.contains(Setting::Mtu) {
            self.mtu.suspend();
        } else {
            self.mtu.restart(now);
        }
    }
}

impl<P> Peers<P> {
    /// Returns true if `node` has a setting with which its messages cannot be reassembled here.
    pub(crate) fn is_incompatible(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|peer| peer.differences().is_incompatible())
    }

    /// Returns true if any peer has.
    pub(crate) fn are_any_incompatible(&self) -> bool {
        self.peers.iter().flatten().any(|peer| peer.differences().is_incompatible())
    }

    /// Returns true if packets of `node` have other lengths than here, or are of another transport.
    pub(crate) fn has_other_packets(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|peer| {
            peer.other_transport.is_some() || peer.differences.contains(Setting::Mtu)
        })
    }

    /// Records that the peer runs another transport, as a packet or a handshake of it shows.
    /// Messages that wait for it may do so for a short time: the packet may be older than an answer
    /// in flight.
    pub(crate) fn on_other_transport(&mut self, now: Time, node: NodeId, theirs: TransportId) {
        let Some(peer) = self.get_mut(node) else { return };
        let is_new = peer.other_transport.replace(theirs) != Some(theirs);
        if !is_new || peer.queued.is_empty() {
            return;
        }
        let ends = now + OTHER_TRANSPORT;
        for waiting in &mut peer.queued {
            waiting.queued_until = waiting.queued_until.min(ends);
        }
        self.next = self.next.min(ends);
    }

    /// Records a handshake in the name of the peer with another key. Anybody can send one, so
    /// messages continue to wait.
    pub(crate) fn on_other_key(&mut self, node: NodeId) {
        if let Some(peer) = self.get_mut(node) {
            peer.has_other_key = true;
        }
    }

    /// Records the settings of the peer, of which `differences` differ from this node's.
    pub(crate) fn on_settings(
        &mut self,
        now: Time,
        node: NodeId,
        settings: SettingDigests,
        differences: Differences,
    ) {
        let Some(peer) = self.get_mut(node) else { return };
        let had_another = peer.differences.contains(Setting::Mtu);
        (peer.settings, peer.differences) = (Some(settings), differences);
        peer.other_transport = None;
        if had_another != differences.contains(Setting::Mtu) && peer.incarnation.is_some() {
            peer.probe_path(now);
            let deadline = peer.mtu.deadline();
            self.next = self.next.min(deadline);
            self.have_limits_changed = true;
        }
    }
}
