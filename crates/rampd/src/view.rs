//! Snapshot of a node for its status and metrics.

use rampmeter_runtime::{MessageCounts, NodeStats, PeerView, RailView};
use rampmeter_types::NodeId;

/// Snapshot of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeView {
    pub(crate) stats: NodeStats,
    /// Numbers of messages that are being sent, that are queued for their receivers, and that
    /// arrive.
    pub(crate) messages: MessageCounts,
    pub(super) peers_known: usize,
    /// Counters of the transport, by name.
    pub(crate) transport: Vec<(&'static str, u64)>,
    pub(crate) peers: Vec<PeerView>,
    /// Networks to peers, if there are several.
    pub(crate) rails: Vec<RailView>,
    /// Per service: its number, messages that its program sends, and messages for it.
    pub(crate) services: Vec<(u16, u32, u32)>,
}

impl NodeView {
    /// Returns the view of a peer. Peers are in the order of their numbers.
    pub(crate) fn peer(&self, node: NodeId) -> Option<&PeerView> {
        let idx = self.peers.binary_search_by_key(&node, |peer| peer.node).ok()?;
        self.peers.get(idx)
    }

    /// Returns the view of a network to a peer.
    pub(crate) fn rail(&self, peer: NodeId, rail: u8) -> Option<&RailView> {
        self.rails_of(peer).iter().find(|view| view.rail == rail)
    }

    /// Returns the views of all networks to a peer.
    pub(crate) fn rails_of(&self, peer: NodeId) -> &[RailView] {
        let from = self.rails.partition_point(|rail| rail.peer < peer);
        let n = self.rails[from..].partition_point(|rail| rail.peer == peer);
        &self.rails[from..from + n]
    }
}
