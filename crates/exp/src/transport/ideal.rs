//! The keys of the ideal.

use rampmeter_core::Bytes;
use rampmeter_proto::Padding;
use serde::{Deserialize, Serialize};

use super::Preset;

/// Keys of the ideal.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IdealSpec {
    /// Whose packets it is compared with.
    pub preset: Preset,
    /// Charged length of last packets.
    pub padding: Option<Padding>,
}

impl IdealSpec {
    /// Payload, headers and padding of its packets: those of the protocols it is compared with.
    pub(crate) fn framing(&self) -> (Bytes, Bytes, Padding) {
        let padding = self.padding.unwrap_or(match self.preset {
            Preset::Paper => Padding::Exact,
            Preset::Reference => Padding::Full,
        });
        (Bytes::new(1460), Bytes::new(40), padding)
    }
}
