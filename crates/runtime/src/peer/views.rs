//! Views of peers: for the node's owner, and for its datapath.

use rampmeter_types::NodeId;

pub use super::view::{PeerView, Traffic};
use super::{Peer, Peers};
use crate::datapath::RailSet;
use crate::liveness::RailView;

impl<P> Peers<P> {
    /// Returns the views of all peers except `own`. `sending` returns the number of messages that
    /// are being sent to each; `headers` is the number of bytes of an IP packet that the node does
    /// not write.
    pub(crate) fn views(
        &self,
        own: NodeId,
        headers: usize,
        sending: impl Fn(NodeId) -> usize,
    ) -> impl Iterator<Item = PeerView> {
        let known = self.peers.iter().enumerate().filter_map(move |(idx, peer)| {
            let node = NodeId::new(idx as u32);
            Some((node, peer.as_ref().filter(|_| node != own)?))
        });
        known.map(move |(node, peer)| PeerView {
            node,
            incarnation: peer.incarnation,
            rtt: peer.rtt,
            last_received_at: peer.last_received_at,
            traffic: peer.traffic,
            path_mtu: peer.mtu.limit().map(|bytes| bytes + headers),
            sending: sending(node),
            queued: peer.queued.len(),
            differences: peer.differences(),
            settings: peer.settings,
            other_transport: peer.other_transport,
            has_other_key: peer.has_other_key,
        })
    }

    /// Returns true if [`Peers::limits`] has changed since the last call.
    pub(crate) fn take_limits_changed(&mut self) -> bool {
        std::mem::take(&mut self.have_limits_changed)
    }

    /// Returns the longest datagram that passes to each peer in one piece.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (NodeId, Option<usize>)> {
        let of = |(idx, peer): (usize, &Option<Peer<P>>)| {
            Some((NodeId::new(idx as u32), peer.as_ref()?.mtu.limit()))
        };
        self.peers.iter().enumerate().filter_map(of)
    }

    /// Returns true if [`Peers::rails`] has changed since the last call.
    pub(crate) fn take_rails_changed(&mut self) -> bool {
        std::mem::take(&mut self.have_rails_changed)
    }

    /// Returns the networks in use to each peer that has responded, if there are several.
    pub(crate) fn rails(&self) -> impl Iterator<Item = (NodeId, RailSet)> {
        let of = |(idx, peer): (usize, &Option<Peer<P>>)| {
            let peer = peer.as_ref().filter(|peer| peer.incarnation.is_some())?;
            Some((NodeId::new(idx as u32), peer.liveness.as_ref()?.up()))
        };
        self.peers.iter().enumerate().filter_map(of)
    }

    /// Returns the views of the networks to each peer except `own`.
    pub(crate) fn rail_views(&self, own: NodeId) -> impl Iterator<Item = RailView> {
        let of = move |(idx, peer): (usize, &'_ Option<Peer<P>>)| {
            let node = NodeId::new(idx as u32);
            let views = peer.as_ref().filter(|_| node != own)?.liveness.as_ref()?.views(node);
            Some(views.collect::<Vec<_>>())
        };
        self.peers.iter().enumerate().filter_map(of).flatten()
    }

    /// Returns the number of messages that wait for peers.
    pub(crate) fn n_waiting(&self) -> usize {
        self.peers.iter().flatten().map(|p| p.queued.len()).sum()
    }

    /// Returns the number of peers that have responded.
    pub(crate) fn n_responsive(&self) -> usize {
        self.peers.iter().flatten().filter(|p| p.incarnation.is_some()).count()
    }
}
