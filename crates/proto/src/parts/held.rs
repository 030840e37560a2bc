//! Messages that a driver holds back because it has no room for them.

use rampmeter_core::{MsgId, NodeId};

/// A small set of messages, by sender and its number. Mostly it is empty, and then asking costs a
/// comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Vec<(NodeId, MsgId)>);

impl Held {
    pub(crate) fn hold(&mut self, src: NodeId, msg: MsgId) {
        if !self.contains(src, msg) {
            self.0.push((src, msg));
        }
    }

    #[inline]
    pub(crate) fn contains(&self, src: NodeId, msg: MsgId) -> bool {
        !self.0.is_empty() && self.0.contains(&(src, msg))
    }

    /// Whether the message was held.
    pub(crate) fn release(&mut self, src: NodeId, msg: MsgId) -> bool {
        let place = self.0.iter().position(|&held| held == (src, msg));
        place.map(|place| self.0.swap_remove(place)).is_some()
    }

    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        self.0.retain(|(src, _)| *src != peer);
    }
}
