//! Counters of a node.

/// Numbers of messages of a node by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages that are being sent.
    pub sending: usize,
    /// Messages that are queued until their receivers respond.
    pub queued: usize,
    /// Messages that are arriving.
    pub receiving: usize,
}

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

/// Lists fields of counters with their names and meanings.
macro_rules! entries {
    ($stats:expr, $($field:ident: $meaning:literal,)*) => {
        [$((stringify!($field), $meaning, $stats.$field)),*].into_iter()
    };
}

impl NodeStats {
    /// Returns every counter with its name and meaning, in the order above.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        entries! {
            self,
            packets_sent: "Datagrams sent",
            sent_bytes: "Bytes of datagrams sent",
            packets_received: "Datagrams received",
            received_bytes: "Bytes of datagrams received",
            payload_received_bytes: "New message bytes received",
            payload_duplicate_bytes: "Message bytes received again",
            messages_submitted: "Messages submitted",
            messages_completed: "Messages acknowledged by receivers",
            messages_failed: "Messages reported as failed",
            messages_delivered: "Messages delivered here",
            malformed_packets: "Datagrams that are no valid packets",
            oversized_packets: "Datagrams longer than the own network.mtu",
            unknown_sender_packets: "Packets of unknown senders",
            misdirected_packets: "Packets for other nodes",
            wrong_transport_packets: "Packets of other transports",
            stale_packets: "Packets of earlier incarnations",
            no_memory_packets: "Data packets of programs without memory",
            message_limit_packets: "Packets above a peer's message limit",
            unknown_incarnation_packets: "Packets for unknown peers",
            peer_restarts: "Restarts of peers",
            inconsistent_messages: "Messages with contradicting headers",
            corrupt_messages: "Messages with a wrong digest",
            mismatched_messages: "Messages of peers with other settings",
            datapath_dropped_packets: "Packets dropped by the datapath",
            too_long_packets: "Packets longer than the path MTU",
            checksum_error_packets: "Datagrams with a wrong checksum",
            unauthenticated_packets: "Datagrams that failed authentication",
            unknown_session_packets: "Datagrams of unknown sessions",
            replayed_packets: "Datagrams received again",
            handshakes: "Sessions established with peers",
            outdated_initiations: "Handshakes with an earlier time",
        }
    }
}
