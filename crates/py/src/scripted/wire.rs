//! The packets. The Python class defines the meaning of the words.

use rampmeter_types::headers;

headers! {
    /// A header of the transport `python`.
    pub(crate) enum ScriptedHeader {
        /// Sender to receiver: one packet of a message.
        1 Data (data "data", S to R) "packet {index} of {packets}" {
            /// The packet's number in the message.
            index: u32 as "Packet",
            /// Packets of the message.
            packets: u32 as "Packets of the message" [packets at least 1],
            /// The first word of the class.
            a: u64 as "First word",
            /// The second word of the class.
            b: u64 as "Second word",
            /// The third word of the class.
            c: u64 as "Third word",
        },
        /// Either way: a packet without payload.
        2 Control (control "control", R to S) "words {a}, {b}, {c}" {
            /// The first word of the class.
            a: u64,
            /// The second word of the class.
            b: u64,
            /// The third word of the class.
            c: u64,
        },
    }
}
