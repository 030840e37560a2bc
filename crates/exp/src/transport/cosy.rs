//! The keys of cosy.

use rampmeter_core::{Bytes, FabricFacts, Span};
use rampmeter_proto::cosy::config::{BestEffort, PathFacts};
use rampmeter_proto::cosy::{Cosy, CosyConfig};
use rampmeter_proto::{ConfigError, Padding};
use rampmeter_sim::{Shape, Topology};
use serde::{Deserialize, Serialize};

use super::{Lower, TransportSpec, ValidTransport};

/// Keys of the cosy transport. Each one that is left out has the preset's value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CosySpec {
    /// Where defaults come from.
    pub preset: CosyPreset,
    /// Payload of a full packet.
    pub payload_bytes: Option<u64>,
    /// Bytes of headers charged to each packet.
    pub header_bytes: Option<u64>,
    /// The round trip of a small packet that the protocol is told, instead of the network's.
    pub control_rtt_us: Option<f64>,
    /// The same of a full packet.
    pub data_rtt_us: Option<f64>,
    /// Virtual links of a link, and slots of a host (K).
    pub slots: Option<u32>,
    /// Most slots that one message may have.
    pub slots_per_message: Option<u32>,
    /// How long a receiver holds a request that it cannot serve, in microseconds.
    pub hold_us: Option<f64>,
    /// Requests that the next rsvp is chosen among.
    pub choices: Option<u32>,
    /// The share of a link that data leaves to control packets, in thousandths.
    pub control_milli: Option<u32>,
    /// The transport, in lower classes, of all messages but the first tenant's: dcPIM or pHost.
    pub best_effort: Option<Box<TransportSpec>>,
    /// Charged length of last packets.
    pub padding: Option<Padding>,
}

/// Which design of the paper defaults follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CosyPreset {
    /// That of §3.3, with virtual links and slots.
    #[default]
    Paper,
    /// That of §3.2: one message at a time, and no waiting.
    Rsvp,
}

impl CosySpec {
    /// The configuration: the preset with these changes.
    pub fn config(&self) -> CosyConfig {
        let base = match self.preset {
            CosyPreset::Paper => CosyConfig::paper(),
            CosyPreset::Rsvp => CosyConfig::rsvp(),
        };
        let micros = |us: f64| Span::from_ps((us * 1e6).round() as u64);
        CosyConfig {
            slots: self.slots.unwrap_or(base.slots),
            slots_per_message: self.slots_per_message.or(base.slots_per_message),
            hold: self.hold_us.map(micros).or(base.hold),
            choices: self.choices.unwrap_or(base.choices),
            control_milli: self.control_milli.unwrap_or(base.control_milli),
            slack: base.slack,
            message_max: base.message_max,
            best_effort: match self.best_effort {
                Some(_) => BestEffort::Beside,
                None => BestEffort::None,
            },
            padding: self.padding.unwrap_or(base.padding),
            payload: self.payload_bytes.map_or(base.payload, Bytes::new),
            header: self.header_bytes.map_or(base.header, Bytes::new),
        }
    }

    pub(crate) fn on(
        &self,
        facts: &FabricFacts,
        topology: &Topology,
    ) -> Result<ValidTransport, ConfigError> {
        let cosy = self.cosy_on(facts, topology)?;
        let Some(lower) = &self.best_effort else { return Ok(ValidTransport::Cosy(cosy)) };
        let lower = match lower.on(facts, topology)? {
            ValidTransport::Dcpim(dcpim) => Lower::Dcpim(dcpim),
            ValidTransport::Phost(phost) => Lower::Phost(phost),
            _ => {
                let (key, expected) = ("best-effort", "dcpim or phost");
                return Err(ConfigError { key, expected, got: 0 });
            }
        };
        Ok(ValidTransport::Beside(cosy, Box::new(lower)))
    }

    /// The parameters between real hosts. Their switches do not take part, so slots at both ends
    /// are all that bounds queues: the bound is that of a network in which only hosts' links are
    /// full. Hosts that are not on their processor are granted a round trip each way.
    pub(crate) fn on_hosts(
        &self,
        facts: &FabricFacts,
        payload: Bytes,
        header: Bytes,
    ) -> Result<Cosy, ConfigError> {
        if self.best_effort.is_some() {
            let (key, expected) = ("best-effort", "left out between hosts");
            return Err(ConfigError { key, expected, got: 1 });
        }
        self.check_hold()?;
        let slack = Some(facts.control_rtt);
        let config = CosyConfig { payload, header, slack, ..self.config() };
        config.on(facts, PathFacts { switches: 3, ratio: 1, ports: 1, has_slower: false })
    }

    fn cosy_on(&self, facts: &FabricFacts, topology: &Topology) -> Result<Cosy, ConfigError> {
        self.check_hold()?;
        let Shape { switches, ratio, ports, has_slower } = topology.shape();
        self.config().on(facts, PathFacts { switches, ratio, ports, has_slower })
    }

    fn check_hold(&self) -> Result<(), ConfigError> {
        let us = self.hold_us.unwrap_or(0.0);
        if (0.0..=1e9).contains(&us) {
            return Ok(());
        }
        let (key, expected) = ("hold-us", "0 to 1000000000");
        Err(ConfigError { key, expected, got: us as u64 })
    }
}
