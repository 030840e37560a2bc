//! Packets of transports whose receivers grant or credit all but the first ones of a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::keys::{BadKey, PacketSizes};
use crate::registered::{Deployment, Site};

/// Lengths of packets of Homa and SIRD. Their configurations flatten it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CreditPackets {
    /// Lengths of full packets.
    #[serde(flatten)]
    pub full: PacketSizes,
    /// Payload of a full unscheduled packet, which is as long on the wire as others; default:
    /// `payload-bytes`.
    #[serde(rename = "unscheduled-payload-bytes")]
    #[schemars(range(min = 1, max = 9_000))]
    pub unscheduled_payload: Option<u32>,
    /// Length of a grant, or a CREDIT of SIRD; default: the length of headers.
    #[schemars(range(min = 1, max = 1_500))]
    pub grant_bytes: Option<u32>,
    /// Length of an acknowledgement; default: the length of headers.
    #[schemars(range(min = 1, max = 1_500))]
    pub ack_bytes: Option<u32>,
}

impl CreditPackets {
    /// The packets of the public ns-2 port of SIRD's authors, whose acknowledgements are messages
    /// of 20 bytes.
    pub const NS2: Self = Self {
        full: PacketSizes::new(1_456, 82),
        unscheduled_payload: Some(1_442),
        grant_bytes: Some(84),
        ack_bytes: Some(116),
    };

    /// Returns the lengths at `site`. Unscheduled packets of real hosts are as others.
    pub(crate) fn at(self, site: &Site) -> Self {
        let unscheduled_payload = match site.deployment {
            Deployment::Network(_) => self.unscheduled_payload,
            Deployment::Hosts(_) => None,
        };
        Self { full: site.packet(self.full), unscheduled_payload, ..self }
    }

    /// Returns the payload of a full unscheduled packet, in bytes.
    ///
    /// # Errors
    /// It leaves no byte of a packet for headers.
    pub fn unscheduled_payload(self) -> Result<u64, BadKey> {
        let payload = self.unscheduled_payload.map_or(self.full.payload.get(), u64::from);
        let range = 1..=self.full.wire().get() - 1;
        let expected = "less than a full packet with its headers";
        check_range("unscheduled-payload-bytes", payload, range, expected)?;
        Ok(payload)
    }

    /// Returns the length of a grant.
    pub(crate) fn grant(self) -> u16 {
        self.control(self.grant_bytes)
    }

    /// Returns the length of an acknowledgement.
    pub(crate) fn ack(self) -> u16 {
        self.control(self.ack_bytes)
    }

    fn control(self, own: Option<u32>) -> u16 {
        own.unwrap_or(self.full.header.get() as u32) as u16
    }
}
