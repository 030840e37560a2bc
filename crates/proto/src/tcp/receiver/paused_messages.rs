//! Record of the messages that the driver does not accept yet.

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId};

use super::arrival::Arrival;
use super::incoming::IncomingConnection;

/// Place of a message: its connection, and the first byte in the stream that is not accepted.
type Place = (u32, u64);

/// The messages that are held.
#[derive(Debug, Default)]
pub(super) struct PausedMessages {
    /// Held messages by sender and number. The place is `None` until a segment of the message
    /// carries it.
    pub(super) places: IdMap<(NodeId, MsgId), Option<Place>>,
    /// Segment of the driver's last query whether its message was delivered. If it is not, and the
    /// driver has no space for it, [`Receiver::pause`](super::Receiver::pause) follows.
    pub(super) last_query: Option<Arrival>,
}

impl PausedMessages {
    #[inline]
    pub(super) fn contains(&self, src: NodeId, msg: MsgId) -> bool {
        !self.places.is_empty() && self.places.contains_key(&(src, msg))
    }

    pub(super) fn record_query(&mut self, arrival: &Arrival) {
        self.last_query = Some(*arrival);
    }

    pub(super) fn forget_connection(&mut self, incoming: &IncomingConnection) {
        for &msg in incoming.paused.values() {
            self.places.remove(&(incoming.src, msg));
        }
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.places.retain(|(src, _), _| *src != peer);
        self.last_query = None;
    }
}
