//! Messages that a driver holds back because it has no credit for them.

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId};

/// A set of messages, by sender and its number. Usually it is empty, and then a lookup costs a
/// comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageSet(IdMap<(NodeId, MsgId), ()>);

impl MessageSet {
    pub(crate) fn insert(&mut self, src: NodeId, msg: MsgId) {
        self.0.insert((src, msg), ());
    }

    #[inline]
    pub(crate) fn contains(&self, src: NodeId, msg: MsgId) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(src, msg))
    }

    /// Releases a message; returns true if it was held.
    pub(crate) fn remove(&mut self, src: NodeId, msg: MsgId) -> bool {
        self.0.remove(&(src, msg)).is_some()
    }

    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        self.0.retain(|(src, _), ()| *src != peer);
    }
}
