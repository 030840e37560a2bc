//! A transport whose type is erased, in the three states before it runs: registered, read from a
//! table, and configured for a network.

use std::sync::Arc;

use rampmeter_proto::TransportRules;
use rampmeter_proto::keys::{BadKey, KeyInfo, Keys, Setting, TransportTable, values};
use rampmeter_proto::mixed::MemberTransport;
use rampmeter_proto::registered::{Assumptions, DerivedValue, SharedTime, Site};
use rampmeter_types::Segmentation;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Spray};
use rampmeter_types::wire::WireFormat;
use rampmeter_types::{Bytes, FabricFacts, Queueing, Wiring};
use serde::Serialize;
use toml::Table;

use crate::simulation::SimulationTask;
use crate::simulation::status::CompletedRun;

/// Description of a transport for documents and the Python package.
#[derive(Clone, Debug, Serialize)]
pub struct TransportInfo {
    /// Name in plans.
    pub name: &'static str,
    /// Name in text.
    pub title: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Number in front of packets; `None` for a transport without packets.
    pub wire: Option<u8>,
    /// Presets, the default first, each with the values of its keys.
    pub presets: Vec<(&'static str, Table)>,
    /// Keys of its table in plans.
    pub keys: Vec<KeyInfo>,
    /// Stages at which its messages wait for permission to send, with their meanings.
    pub stages: Vec<(&'static str, &'static str)>,
    /// Rules of the table that compares transports; empty if it has none.
    pub rules: TransportRules,
    /// True if it takes the round trips that every transport with packets takes.
    pub has_round_trips: bool,
    /// Transports that may run in lower classes.
    pub best_effort: Vec<&'static str>,
}

/// A transport that plans may name, or two on one network.
pub(super) struct RegistryEntry {
    /// Name in plans; of two transports on one network, that of the upper one.
    pub(super) name: &'static str,
    /// The lower transport, if there are two on one network.
    pub(super) lower: Option<&'static str>,
    /// Returns its packets, if they have a custom format.
    pub(super) wire: fn() -> Option<WireFormat>,
    /// Describes it for documents. The keys are read from a schema, which takes a while.
    pub(super) about: fn() -> TransportInfo,
    /// Reads its table.
    pub(super) read: fn(&TransportTable) -> Result<Arc<dyn ErasedKeys>, BadKey>,
}

/// The parameters of a transport whose type is erased.
pub(crate) trait ErasedKeys: Send + Sync {
    /// Returns the name of the preset, and the values of all keys.
    fn values(&self) -> (String, Table);
    /// Returns the network that constants of the preset are for, if it has any.
    fn setting(&self) -> Option<Setting> {
        None
    }
    fn segmentation(&self) -> Segmentation;
    /// Returns the control packets that a receiver sends for a full packet.
    fn reply_bytes(&self) -> Bytes;
    /// Returns the needs in a network with this wiring, of which arbiters are ignored.
    fn needs(&self, facts: &FabricFacts, wiring: Option<&Wiring>) -> FabricNeeds;
    fn queueing(&self) -> Queueing;
    fn configure(&self, site: &Site) -> Result<Arc<dyn RunnableTransport>, BadKey>;
    /// Configures it as transport `number` of several in one network, with its path choice and the
    /// offset of its packets' classes.
    fn member(
        &self,
        _number: u8,
        _site: &Site,
        _spray: Option<Spray>,
        _class: u8,
    ) -> Result<MixedPart, BadKey> {
        let expected = "a transport that can share the network with another";
        Err(BadKey::new("name", expected, "one that has no packets, or that shares it already"))
    }
}

/// A transport configured for one network.
pub(crate) trait RunnableTransport: Send + Sync {
    /// Returns the number in front of packets; `None` if packets have no custom format.
    fn wire(&self) -> Option<TransportId>;
    /// Returns true if it sends packets.
    fn has_packets(&self) -> bool {
        true
    }
    /// Returns the least packet memory of a port.
    fn buffer_min(&self) -> Bytes;
    /// Returns its assumptions about the network.
    fn assumptions(&self) -> Assumptions {
        Assumptions::default()
    }
    /// Returns the assumptions of each transport of several.
    fn each_assumptions(&self) -> Vec<Assumptions> {
        vec![self.assumptions()]
    }
    /// Returns a time that all hosts share and that fast hosts alone would have shorter.
    fn slowed(&self) -> Option<SharedTime> {
        None
    }
    /// Returns the values derived from its parameters.
    fn describe(&self) -> Vec<DerivedValue>;
    /// Runs a task. From here on every type is static.
    fn simulate(&self, task: SimulationTask<'_>) -> CompletedRun;
}

/// A transport that shares the network with others.
pub(crate) struct MixedPart {
    /// The transport with the parameters of the slowest hosts.
    pub(crate) network: MemberTransport,
    /// The transport with the parameters of single hosts, by number.
    pub(crate) by_host: Vec<Option<MemberTransport>>,
    /// The transport as if it were alone.
    pub(crate) standalone: Arc<dyn RunnableTransport>,
}

/// Returns the presets of a transport, the default first, each with the values of its keys.
pub(super) fn presets<K: Keys>() -> Vec<(&'static str, Table)> {
    K::PRESETS.iter().map(|(name, preset)| (*name, values(&preset()))).collect()
}
