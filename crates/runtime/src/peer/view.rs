//! Views of peers for users.

use rampmeter_types::envelope::Incarnation;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::{NodeId, Span, Time};

use crate::agreement::{Differences, SettingDigests};

/// Traffic exchanged with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent to it.
    pub packets_sent: u64,
    /// Bytes of these datagrams.
    pub sent_bytes: u64,
    /// Datagrams received from it that passed the checks of its incarnation.
    pub packets_received: u64,
    /// Bytes of these datagrams.
    pub received_bytes: u64,
}

/// View of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Number of the peer.
    pub node: NodeId,
    /// Incarnation, if it has responded.
    pub incarnation: Option<Incarnation>,
    /// Round trip of the latest hello, hosts included.
    pub rtt: Option<Span>,
    /// Time of the latest packet from it. Of answers to hellos only those of ordinary length count.
    pub last_received_at: Option<Time>,
    /// Traffic exchanged with it.
    pub traffic: Traffic,
    /// Maximum bytes of an IP packet that passes in one piece; `None` while all of the node's seem
    /// to.
    pub path_mtu: Option<usize>,
    /// Messages that are being sent to it.
    pub sending: usize,
    /// Messages that wait until it responds.
    pub queued: usize,
    /// Settings in which it differs.
    pub differences: Differences,
    /// Digests of its settings, if it has sent them.
    pub settings: Option<SettingDigests>,
    /// The transport that it runs, if its latest packet was of another than this node's.
    pub other_transport: Option<TransportId>,
    /// True if a handshake in its name had another key than this node expects.
    pub has_other_key: bool,
}
