//! The packets. The table defines the type, its encoding, and its description for tools.

use rampmeter_types::headers;

headers! {
    /// A header of stop and wait.
    pub enum SawHeader {
        /// Sender to receiver: one packet.
        1 Data (data "data", S to R) "message {flow} of {size} bytes, packet {seq}" {
            /// The message's number among those of this pair of hosts.
            flow: u32 as "Message, numbered among those of the pair",
            /// The message's slot at the sender, which the answer repeats.
            tx_slot: u32 as "Slot at the sender",
            /// The packet's number in the message.
            seq: u32 as "Packet",
            /// The message's size in bytes.
            size: u64 as "Bytes of the message" [size at least 1],
        },
        /// Receiver to sender: the packet is here.
        2 Ack (control "ack", R to S)
        "message slot {tx_slot}, all below packet {next} have arrived" {
            /// The message's slot at the sender.
            tx_slot: u32,
            /// Every packet below has arrived.
            next: u32 as "All packets below have arrived",
        },
    }
}
