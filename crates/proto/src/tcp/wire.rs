//! TCP's packets.
//!
//! A header starts with a type byte; integers are big-endian. A connection carries messages one
//! way, so that a packet is either data or an acknowledgement. Sequence numbers count bytes modulo
//! 2^32: the SYN takes the first, the FIN the last (RFC 9293 §3.4). A segment has bytes of one
//! message, which its [`PayloadRef`](rampmeter_types::PayloadRef) names.

pub use rampmeter_types::wire::List;
use rampmeter_types::{headers, items};

/// Ranges in one acknowledgement: as many as fit next to timestamps (RFC 2018 §3).
pub const SACK_MAX: usize = 3;

items! {
    /// Bytes that have arrived above the cumulative acknowledgement (RFC 2018 §3).
    pub struct SackBlock {
        /// The sequence number of the first byte.
        start: u32 as "First byte",
        /// The sequence number after the last byte.
        end: u32 as "After the last byte",
    }
}

headers! {
    /// A TCP header.
    pub enum TcpHeader {
        /// Sender to receiver: opens a connection.
        1 Syn (request "syn", S to R) "connection {conn}, sequence number {seq}" {
            /// The connection's number among those of this pair, one direction.
            conn: u32 as "Connection, numbered among those of the pair",
            /// The initial sequence number.
            seq: u32 as "Sequence number",
            /// True if the sender supports ECN (RFC 3168 §6.1.1).
            ecn: bool as "ECN offered or accepted",
        },
        /// Receiver to sender: the connection is open.
        2 SynAck (ack "syn-ack", R to S) "connection {conn} is open, window {window}" {
            /// The connection.
            conn: u32,
            /// The next sequence number expected.
            ack: u32 as "Next sequence number expected",
            /// Bytes that the receiver takes from there on.
            window: u32 as "Window in bytes",
            /// True if both support ECN.
            ecn: bool,
        },
        /// Sender to receiver: a segment.
        3 Data (data "data", S to R) "connection {conn}, sequence number {seq}" {
            /// The connection.
            conn: u32,
            /// The sequence number of the first byte.
            seq: u32,
            /// The size in bytes of the message that the bytes are of.
            size: u64 as "Bytes of the message" [size at least 1],
            /// True if the sender has reduced its window after an echo (RFC 3168 §6.1.2).
            cwr: bool as "Congestion window reduced",
        },
        /// Sender to receiver: there is no more.
        4 Fin (control "fin", S to R) "connection {conn} ends at sequence number {seq}" {
            /// The connection.
            conn: u32,
            /// The sequence number of the FIN.
            seq: u32,
        },
        /// Receiver to sender: acknowledges bytes.
        5 Ack (ack "ack", R to S)
        "connection {conn}, all below {ack} has arrived, window {window}" {
            /// The connection.
            conn: u32,
            /// The next sequence number expected.
            ack: u32,
            /// Bytes that the receiver takes from there on.
            window: u32,
            /// True if a segment met congestion (RFC 3168 §6.1.3, RFC 8257 §3.2).
            ece: bool as "Congestion echo",
            /// Ranges that have arrived above. One that is not above reports a segment that has
            /// arrived twice (RFC 2883).
            sack: List<SackBlock, SACK_MAX> as "Arrived above",
        },
        /// Sender to receiver: the connection is aborted.
        6 Reset (control "reset", S to R) "connection {conn} is aborted" {
            /// The connection.
            conn: u32,
        },
        /// Receiver to sender: there is no such connection.
        7 Refused (control "refused", R to S) "connection {conn} does not exist" {
            /// The connection.
            conn: u32,
        },
        /// Receiver to sender: the connection has ended, everything had arrived. Answers segments
        /// that arrive after the FIN, so that no state is kept for them (RFC 9293's TIME-WAIT).
        8 Ended (control "ended", R to S) "connection {conn} has ended" {
            /// The connection.
            conn: u32,
        },
    }
}
