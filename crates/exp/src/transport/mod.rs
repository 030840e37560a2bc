//! The `transport` table: which protocol runs, and with which parameters.
//!
//! To add a protocol: a module with its keys, a variant of [`TransportSpec`] and of
//! [`ValidTransport`] with an arm in each method here, and a line in `run::simulate`.

mod cosy;
mod dcpim;
mod fastpass;
mod ideal;
mod pfabric;
mod phost;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::{Bytes, FabricFacts, Span};
use rampmeter_metrics::ideal::LastPacket;
use rampmeter_proto::cosy::Cosy;
use rampmeter_proto::dcpim::{Dcpim, DcpimConfig};
use rampmeter_proto::fastpass::{Fastpass, FastpassConfig, allocations_time};
use rampmeter_proto::pfabric::{Pfabric, PfabricConfig};
use rampmeter_proto::phost::{Phost, PhostConfig};
use rampmeter_proto::{ConfigError, Padding};
use rampmeter_sim::Topology;
use serde::{Deserialize, Serialize};

pub(crate) use cosy::CosySpec;
pub(crate) use dcpim::DcpimSpec;
pub(crate) use fastpass::FastpassSpec;
pub(crate) use ideal::IdealSpec;
pub(crate) use pfabric::PfabricSpec;
pub(crate) use phost::PhostSpec;

/// The `transport` table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum TransportSpec {
    /// dcPIM.
    Dcpim(DcpimSpec),
    /// pHost.
    Phost(PhostSpec),
    /// pFabric.
    Pfabric(PfabricSpec),
    /// Fastpass.
    Fastpass(FastpassSpec),
    /// cosy.
    Cosy(CosySpec),
    /// The ideal: no protocol, but what a clairvoyant scheduler would reach.
    Ideal(IdealSpec),
}

/// Which description of a protocol its defaults follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper.
    #[default]
    Paper,
    /// The authors' simulator.
    Reference,
}

/// The keys of a protocol as plans write them: those of its configuration, each of which has the
/// preset's value where it is left out. For those after `or derived` that may be `None`.
macro_rules! transport_spec {
    (
        $(#[$doc:meta])*
        $spec:ident of $config:ident {
            $($(#[$key_doc:meta])* $key:ident: $of:ty,)*
        } or derived {
            $($(#[$option_doc:meta])* $option:ident: $option_of:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $spec {
            /// Where defaults come from.
            pub preset: Preset,
            /// Payload of a full packet.
            pub payload_bytes: Option<u64>,
            /// Bytes of headers charged to each packet.
            pub header_bytes: Option<u64>,
            /// The round trip of a small packet that the protocol is told, instead of the
            /// network's.
            pub control_rtt_us: Option<f64>,
            /// The same of a full packet.
            pub data_rtt_us: Option<f64>,
            $($(#[$key_doc])* pub $key: Option<$of>,)*
            $($(#[$option_doc])* pub $option: Option<$option_of>,)*
        }

        impl $spec {
            /// The configuration: the preset with these changes.
            pub fn config(&self) -> $config {
                let base = match self.preset {
                    Preset::Paper => $config::paper(),
                    Preset::Reference => $config::reference(),
                };
                $config {
                    payload: self.payload_bytes.map_or(base.payload, rampmeter_core::Bytes::new),
                    header: self.header_bytes.map_or(base.header, rampmeter_core::Bytes::new),
                    $($key: self.$key.unwrap_or(base.$key),)*
                    $($option: self.$option.or(base.$option),)*
                }
            }
        }
    };
}
pub(crate) use transport_spec;

/// A protocol with its parameters for one fabric.
#[derive(Clone, Debug)]
pub enum ValidTransport {
    /// dcPIM.
    Dcpim(Dcpim),
    /// pHost.
    Phost(Phost),
    /// pFabric.
    Pfabric(Pfabric),
    /// Fastpass.
    Fastpass(Box<Fastpass>),
    /// cosy.
    Cosy(Cosy),
    /// cosy above another.
    Beside(Cosy, Box<Lower>),
    /// The ideal, which has no packets.
    Ideal,
}

/// What may run below cosy.
#[derive(Clone, Debug)]
pub enum Lower {
    /// dcPIM.
    Dcpim(Dcpim),
    /// pHost.
    Phost(Phost),
}

/// How a transport cuts messages into packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Payload of a full packet.
    pub(crate) payload: Bytes,
    /// Headers on the wire; also the length of a control packet.
    pub(crate) header: Bytes,
    pub(crate) last: LastPacket,
}

impl ValidTransport {
    /// Its number in front of packets; `None` for those that have none.
    pub fn wire_id(&self) -> Option<TransportId> {
        match self {
            Self::Dcpim(_) => Some(TransportId::DCPIM),
            Self::Phost(_) => Some(TransportId::PHOST),
            Self::Pfabric(_) => Some(TransportId::PFABRIC),
            Self::Fastpass(_) => Some(TransportId::FASTPASS),
            Self::Cosy(_) => Some(TransportId::COSY),
            Self::Beside(..) | Self::Ideal => None,
        }
    }
}

impl TransportSpec {
    pub(crate) fn cut(&self) -> Cut {
        let (payload, header, padding) = match self {
            Self::Dcpim(spec) => {
                let config = spec.config();
                (config.payload, config.header, config.padding)
            }
            Self::Phost(spec) => {
                let config = spec.config();
                (config.payload, config.header, config.padding)
            }
            Self::Pfabric(spec) => {
                let config = spec.config();
                (config.payload, config.header, config.padding)
            }
            Self::Fastpass(spec) => {
                let config = spec.config();
                (config.payload, config.header, config.padding)
            }
            Self::Cosy(spec) => {
                let config = spec.config();
                (config.payload, config.header, config.padding)
            }
            Self::Ideal(spec) => spec.framing(),
        };
        let last = match padding {
            Padding::Exact => LastPacket::OwnSize,
            Padding::Full => LastPacket::Padded,
        };
        Cut { payload, header, last }
    }

    /// The network with the transport's arbiters, if it has any.
    pub(crate) fn with_arbiters(&self, topology: Topology) -> Topology {
        match self {
            Self::Fastpass(spec) => spec.with_arbiters(topology),
            Self::Dcpim(_) | Self::Phost(_) | Self::Pfabric(_) | Self::Cosy(_) | Self::Ideal(_) => {
                topology
            }
        }
    }

    /// The round trips that the plan tells the protocol, in microseconds: `control`, `data`.
    pub(crate) fn told_rtts(&self) -> (Option<f64>, Option<f64>) {
        match self {
            Self::Dcpim(spec) => (spec.control_rtt_us, spec.data_rtt_us),
            Self::Phost(spec) => (spec.control_rtt_us, spec.data_rtt_us),
            Self::Pfabric(spec) => (spec.control_rtt_us, spec.data_rtt_us),
            Self::Fastpass(spec) => (spec.control_rtt_us, spec.data_rtt_us),
            Self::Cosy(spec) => (spec.control_rtt_us, spec.data_rtt_us),
            Self::Ideal(_) => (None, None),
        }
    }

    /// The lengths that the plan gives to packets.
    fn told_bytes(&self) -> [(&'static str, Option<u64>); 2] {
        let (payload, header) = match self {
            Self::Dcpim(spec) => (spec.payload_bytes, spec.header_bytes),
            Self::Phost(spec) => (spec.payload_bytes, spec.header_bytes),
            Self::Pfabric(spec) => (spec.payload_bytes, spec.header_bytes),
            Self::Fastpass(spec) => (spec.payload_bytes, spec.header_bytes),
            Self::Cosy(spec) => (spec.payload_bytes, spec.header_bytes),
            Self::Ideal(_) => (None, None),
        };
        [("payload-bytes", payload), ("header-bytes", header)]
    }

    /// What the protocol takes the fabric for: its facts, but for round trips that the plan gives.
    fn told(&self, facts: &FabricFacts) -> FabricFacts {
        let span = |us: f64| Span::from_ps((us * 1e6).round() as u64);
        let (control, data) = self.told_rtts();
        let control_rtt = control.map_or(facts.control_rtt, span);
        // What a full packet takes more than a small one is not a matter of guessing.
        let more = facts.data_rtt.saturating_sub(facts.control_rtt);
        let data_rtt = match (data, control) {
            (Some(us), _) => span(us),
            (None, Some(_)) => control_rtt + more,
            (None, None) => facts.data_rtt,
        };
        FabricFacts { control_rtt, data_rtt, ..*facts }
    }

    /// Checks the parameters and derives what follows from them on a fabric.
    pub(crate) fn on(
        &self,
        facts: &FabricFacts,
        topology: &Topology,
    ) -> Result<ValidTransport, ConfigError> {
        let facts = &self.told(facts);
        match self {
            Self::Dcpim(spec) => spec.config().on(facts).map(ValidTransport::Dcpim),
            Self::Phost(spec) => spec.config().on(facts).map(ValidTransport::Phost),
            Self::Pfabric(spec) => spec.config().on(facts).map(ValidTransport::Pfabric),
            Self::Fastpass(spec) => {
                spec.on(facts, topology).map(|config| ValidTransport::Fastpass(Box::new(config)))
            }
            Self::Cosy(spec) => spec.on(facts, topology),
            Self::Ideal(_) => Ok(ValidTransport::Ideal),
        }
    }

    /// The parameters between real hosts, whose packets are `payload` long and carry `header` bytes
    /// more. Arbiters are as fast as hosts, and choose no paths. `None` for the ideal.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn on_hosts(
        &self,
        facts: &FabricFacts,
        payload: Bytes,
        header: Bytes,
    ) -> Result<Option<ValidTransport>, ConfigError> {
        let (control, data) = self.told_rtts();
        for (key, rtt) in [("control-rtt-us", control), ("data-rtt-us", data)] {
            let us = rtt.unwrap_or(1.0);
            if !(1e-3..=1e8).contains(&us) {
                let expected = "0.001 to 100000000";
                return Err(ConfigError { key, expected, got: us as u64 });
            }
        }
        for (key, bytes) in self.told_bytes() {
            if let Some(got) = bytes {
                let expected = "left out: hosts know it";
                return Err(ConfigError { key, expected, got });
            }
        }
        let facts = &self.told(facts);
        let transport = match self {
            Self::Dcpim(spec) => {
                let config = DcpimConfig { payload, header, ..spec.config() };
                ValidTransport::Dcpim(config.on(facts)?)
            }
            Self::Phost(spec) => {
                let mut config = PhostConfig { payload, header, ..spec.config() };
                if spec.token_life_milli.is_none() {
                    // A host that was not on its processor when tokens came must find some alive.
                    let packet = facts.access_rate.tx_time(payload + header).as_ps();
                    let rtt = facts.control_rtt.as_ps().saturating_mul(1_000) / packet;
                    let rtt = u32::try_from(rtt).unwrap_or(u32::MAX);
                    config.token_life_milli = config.token_life_milli.max(rtt);
                }
                ValidTransport::Phost(config.on(facts)?)
            }
            Self::Pfabric(spec) => {
                let config = PfabricConfig { payload, header, ..spec.config() };
                ValidTransport::Pfabric(config.on(facts)?)
            }
            Self::Fastpass(spec) => {
                let config = FastpassConfig { payload, header, ..spec.config() };
                let time = allocations_time(facts.n_hosts, header.get(), facts.access_rate);
                ValidTransport::Fastpass(Box::new(config.on(facts, None, time)?))
            }
            Self::Cosy(spec) => ValidTransport::Cosy(spec.on_hosts(facts, payload, header)?),
            Self::Ideal(_) => return Ok(None),
        };
        Ok(Some(transport))
    }
}
