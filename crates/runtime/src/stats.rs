//! Counters of a node.

/// Counters of a node since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Datagrams sent.
    pub packets_sent: u64,
    /// Bytes of these datagrams.
    pub bytes_sent: u64,
    /// Datagrams received.
    pub packets_received: u64,
    /// Bytes of these datagrams.
    pub bytes_received: u64,
    /// Bytes of messages that arrived for the first time.
    pub payload_received: u64,
    /// Bytes of messages that arrived repeatedly.
    pub payload_duplicate: u64,
    /// Messages submitted.
    pub messages_submitted: u64,
    /// Messages acknowledged by their receivers.
    pub messages_completed: u64,
    /// Messages reported as failed.
    pub messages_failed: u64,
    /// Messages delivered to applications here.
    pub messages_delivered: u64,
    /// Datagrams that no node sends, including damaged frames.
    pub malformed: u64,
    /// Datagrams longer than this node's `network.mtu`: their senders' is longer.
    pub oversized: u64,
    /// Packets from nodes, or addresses, that are not in the configuration.
    pub unknown_sender: u64,
    /// Packets for another node.
    pub misdirected: u64,
    /// Packets of another transport: the configurations differ.
    pub wrong_transport: u64,
    /// Packets of, or for, an earlier incarnation of their sender or of this node.
    pub stale: u64,
    /// Data packets dropped because their application had no memory.
    pub no_room: u64,
    /// Packets of new messages dropped because their sender had
    /// [`ARRIVING_MAX`](crate::NodeConfig::ARRIVING_MAX) in flight.
    pub arriving_excess: u64,
    /// Packets for peers whose incarnation was not known yet.
    pub unready: u64,
    /// Peers that have restarted.
    pub peer_restarts: u64,
    /// Messages that the transport called complete with bytes missing: its headers and the envelope
    /// contradicted one another.
    pub inconsistent: u64,
    /// Messages that arrived with changed bytes, and were dropped.
    pub corrupt: u64,
    /// Messages that could not be reassembled, of peers with another `network.mtu` or transport.
    pub mismatched: u64,
    /// Packets that the datapath dropped.
    pub datapath_drops: u64,
    /// Datapath drops of packets longer than the network carries.
    pub too_long: u64,
    /// Datagrams with a wrong checksum, or none.
    pub damaged: u64,
    /// Datagrams in a session of this node that the peer has not sealed, and handshakes of unknown
    /// senders.
    pub forged: u64,
    /// Sealed datagrams of sessions that this node does not have: of an earlier incarnation, or
    /// late.
    pub strays: u64,
    /// Sealed datagrams that arrived again, or very late.
    pub replayed: u64,
    /// Sessions established with peers.
    pub handshakes: u64,
    /// Initiations of a peer whose time is not later than that of the one before: its clock went
    /// back, or packets are replayed.
    pub old_initiations: u64,
}

impl NodeStats {
    /// Returns every counter with its name and meaning, in the order above.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        [
            ("packets_sent", "Datagrams sent", self.packets_sent),
            ("sent_bytes", "Bytes of datagrams sent", self.bytes_sent),
            ("packets_received", "Datagrams received", self.packets_received),
            ("received_bytes", "Bytes of datagrams received", self.bytes_received),
            ("payload_received_bytes", "New message bytes received", self.payload_received),
            ("payload_duplicate_bytes", "Message bytes received again", self.payload_duplicate),
            ("messages_submitted", "Messages submitted", self.messages_submitted),
            ("messages_completed", "Messages acknowledged by receivers", self.messages_completed),
            ("messages_failed", "Messages reported as failed", self.messages_failed),
            ("messages_delivered", "Messages delivered here", self.messages_delivered),
            ("malformed_packets", "Datagrams that are no valid packets", self.malformed),
            ("oversized_packets", "Datagrams longer than the own network.mtu", self.oversized),
            ("unknown_sender_packets", "Packets of unknown senders", self.unknown_sender),
            ("misdirected_packets", "Packets for other nodes", self.misdirected),
            ("wrong_transport_packets", "Packets of other transports", self.wrong_transport),
            ("stale_packets", "Packets of earlier incarnations", self.stale),
            ("no_memory_packets", "Data packets of programs without memory", self.no_room),
            ("message_limit_packets", "Packets above a peer's message limit", self.arriving_excess),
            ("unknown_incarnation_packets", "Packets for unknown peers", self.unready),
            ("peer_restarts", "Restarts of peers", self.peer_restarts),
            ("inconsistent_messages", "Messages with contradicting headers", self.inconsistent),
            ("corrupt_messages", "Messages with a wrong digest", self.corrupt),
            ("mismatched_messages", "Messages of peers with other settings", self.mismatched),
            ("datapath_dropped_packets", "Packets dropped by the datapath", self.datapath_drops),
            ("too_long_packets", "Packets longer than the path MTU", self.too_long),
            ("checksum_error_packets", "Datagrams with a wrong checksum", self.damaged),
            ("unauthenticated_packets", "Datagrams that failed authentication", self.forged),
            ("unknown_session_packets", "Datagrams of unknown sessions", self.strays),
            ("replayed_packets", "Datagrams received again", self.replayed),
            ("handshakes", "Sessions established with peers", self.handshakes),
            ("outdated_initiations", "Handshakes with an earlier time", self.old_initiations),
        ]
        .into_iter()
    }
}
