//! Counters of a node.

/// Counters of a node since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Datagrams sent.
    pub packets_sent: u64,
    /// Bytes of these datagrams.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub packets_received: u64,
    /// Bytes of these datagrams.
    pub received_bytes: u64,
    /// Bytes of messages that arrived for the first time.
    pub payload_received_bytes: u64,
    /// Bytes of messages that arrived repeatedly.
    pub payload_duplicate_bytes: u64,
    /// Messages submitted.
    pub messages_submitted: u64,
    /// Messages acknowledged by their receivers.
    pub messages_completed: u64,
    /// Messages reported as failed.
    pub messages_failed: u64,
    /// Messages delivered to applications here.
    pub messages_delivered: u64,
    /// Datagrams that no node sends, including damaged frames.
    pub malformed_packets: u64,
    /// Datagrams longer than this node's `network.mtu`: their senders' is longer.
    pub oversized_packets: u64,
    /// Packets from nodes, or addresses, that are not in the configuration.
    pub unknown_sender_packets: u64,
    /// Packets for another node.
    pub misdirected_packets: u64,
    /// Packets of another transport: the configurations differ.
    pub wrong_transport_packets: u64,
    /// Packets of, or for, an earlier incarnation of their sender or of this node.
    pub stale_packets: u64,
    /// Data packets dropped because their application had no memory.
    pub no_memory_packets: u64,
    /// Packets of new messages dropped because their sender had
    /// [`ARRIVING_MAX`](crate::NodeConfig::ARRIVING_MAX) in flight.
    pub message_limit_packets: u64,
    /// Packets for peers whose incarnation was not known yet.
    pub unknown_incarnation_packets: u64,
    /// Peers that have restarted.
    pub peer_restarts: u64,
    /// Messages that the transport called complete with bytes missing: its headers and the envelope
    /// contradicted one another.
    pub inconsistent_messages: u64,
    /// Messages that arrived with changed bytes, and were dropped.
    pub corrupt_messages: u64,
    /// Messages that could not be reassembled, of peers with another `network.mtu` or transport.
    pub mismatched_messages: u64,
    /// Packets that the datapath dropped.
    pub datapath_dropped_packets: u64,
    /// Datapath drops of packets longer than the network carries.
    pub too_long_packets: u64,
    /// Datagrams with a wrong checksum, or none.
    pub checksum_error_packets: u64,
    /// Datagrams in a session of this node that the peer has not sealed, and handshakes of unknown
    /// senders.
    pub unauthenticated_packets: u64,
    /// Sealed datagrams of sessions that this node does not have: of an earlier incarnation, or
    /// late.
    pub unknown_session_packets: u64,
    /// Sealed datagrams that arrived again, or very late.
    pub replayed_packets: u64,
    /// Sessions established with peers.
    pub handshakes: u64,
    /// Initiations of a peer whose time is not later than that of the one before: its clock went
    /// back, or packets are replayed.
    pub outdated_initiations: u64,
}

impl NodeStats {
    /// Returns every counter with its name and meaning, in the order above.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        [
            ("packets_sent", "Datagrams sent", self.packets_sent),
            ("sent_bytes", "Bytes of datagrams sent", self.sent_bytes),
            ("packets_received", "Datagrams received", self.packets_received),
            ("received_bytes", "Bytes of datagrams received", self.received_bytes),
            ("payload_received_bytes", "New message bytes received", self.payload_received_bytes),
            (
                "payload_duplicate_bytes",
                "Message bytes received again",
                self.payload_duplicate_bytes,
            ),
            ("messages_submitted", "Messages submitted", self.messages_submitted),
            ("messages_completed", "Messages acknowledged by receivers", self.messages_completed),
            ("messages_failed", "Messages reported as failed", self.messages_failed),
            ("messages_delivered", "Messages delivered here", self.messages_delivered),
            ("malformed_packets", "Datagrams that are no valid packets", self.malformed_packets),
            (
                "oversized_packets",
                "Datagrams longer than the own network.mtu",
                self.oversized_packets,
            ),
            ("unknown_sender_packets", "Packets of unknown senders", self.unknown_sender_packets),
            ("misdirected_packets", "Packets for other nodes", self.misdirected_packets),
            (
                "wrong_transport_packets",
                "Packets of other transports",
                self.wrong_transport_packets,
            ),
            ("stale_packets", "Packets of earlier incarnations", self.stale_packets),
            (
                "no_memory_packets",
                "Data packets of programs without memory",
                self.no_memory_packets,
            ),
            (
                "message_limit_packets",
                "Packets above a peer's message limit",
                self.message_limit_packets,
            ),
            (
                "unknown_incarnation_packets",
                "Packets for unknown peers",
                self.unknown_incarnation_packets,
            ),
            ("peer_restarts", "Restarts of peers", self.peer_restarts),
            (
                "inconsistent_messages",
                "Messages with contradicting headers",
                self.inconsistent_messages,
            ),
            ("corrupt_messages", "Messages with a wrong digest", self.corrupt_messages),
            (
                "mismatched_messages",
                "Messages of peers with other settings",
                self.mismatched_messages,
            ),
            (
                "datapath_dropped_packets",
                "Packets dropped by the datapath",
                self.datapath_dropped_packets,
            ),
            ("too_long_packets", "Packets longer than the path MTU", self.too_long_packets),
            (
                "checksum_error_packets",
                "Datagrams with a wrong checksum",
                self.checksum_error_packets,
            ),
            (
                "unauthenticated_packets",
                "Datagrams that failed authentication",
                self.unauthenticated_packets,
            ),
            (
                "unknown_session_packets",
                "Datagrams of unknown sessions",
                self.unknown_session_packets,
            ),
            ("replayed_packets", "Datagrams received again", self.replayed_packets),
            ("handshakes", "Sessions established with peers", self.handshakes),
            ("outdated_initiations", "Handshakes with an earlier time", self.outdated_initiations),
        ]
        .into_iter()
    }
}
