//! The keys of packets, which every transport has.

use rampmeter_types::{Bytes, Padding, Segmentation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lengths of full packets. Configurations flatten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct PacketSizes {
    /// Payload of a full packet.
    #[serde(rename = "payload-bytes")]
    #[schemars(with = "u64", range(min = 1, max = 9_000))]
    pub payload: Bytes,
    /// Bytes of headers charged to each packet, and the length of a control packet without content
    /// and without a key of its own.
    #[serde(rename = "header-bytes")]
    #[schemars(with = "u64", range(min = 1, max = 1_000))]
    pub header: Bytes,
}

impl Default for PacketSizes {
    fn default() -> Self {
        Self::new(1_460, 40)
    }
}

impl PacketSizes {
    /// Returns the lengths of payload and headers, in bytes.
    pub const fn new(payload: u64, header: u64) -> Self {
        Self { payload: Bytes::new(payload), header: Bytes::new(header) }
    }

    /// Returns the length of a full packet on the wire.
    pub fn wire(self) -> Bytes {
        self.payload + self.header
    }

    /// Returns the segmentation of messages into such packets.
    pub const fn segmentation(self, padding: Padding) -> Segmentation {
        Segmentation::new(self.payload, self.header, padding)
    }
}
