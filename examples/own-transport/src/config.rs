//! Parameters, and the values derived from them on one network.

use rampmeter_proto::keys::{PacketSizes, Preset, check_ranges};
use rampmeter_proto::toolkit::{AttemptLimit, Padding, forget_after};
use rampmeter_proto::{BadKey, Keys, Segmentation};
use rampmeter_types::{FabricFacts, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The keys of the `transport` table. Names, ranges and documentation are the attributes of fields.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SawKeys {
    /// Retransmission timeout in microseconds; default: four round trips.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub timeout_us: Option<u64>,
    /// Timeouts of one packet after which its message fails.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
    /// Lengths of full packets. An acknowledgement is as long as headers.
    #[serde(flatten)]
    pub packet: PacketSizes,
}

impl Default for SawKeys {
    fn default() -> Self {
        Self { timeout_us: None, attempts_max: 200, packet: PacketSizes::default() }
    }
}

impl Keys for SawKeys {
    const PRESETS: &'static [Preset<Self>] = &[("textbook", SawKeys::default)];
}

/// The parameters on one network, checked. All endpoints of a run share them.
#[derive(Clone, Debug)]
pub struct Saw {
    /// The parameters.
    pub keys: SawKeys,
    /// Retransmission timeout.
    pub timeout: Span,
    /// Silence of a sender after which its receiver forgets the message.
    pub forget: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
}

impl SawKeys {
    /// Checks the parameters and derives the times.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts) -> Result<Saw, BadKey> {
        check_ranges(&self)?;
        let timeout = self.timeout_us.map_or(facts.data_rtt * 4, Span::from_us);
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let forget = attempt_limit.forget_timeout(forget_after(timeout, self.attempts_max));
        Ok(Saw { timeout, forget, attempt_limit, keys: self })
    }

    /// Returns the segmentation of messages into packets.
    pub fn segmentation(&self) -> Segmentation {
        self.packet.segmentation(Padding::Exact)
    }
}
