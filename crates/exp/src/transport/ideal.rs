//! The ideal in the registry: the times of a clairvoyant scheduler over the links.

use std::sync::Arc;

use rampmeter_proto::TransportRules;
use rampmeter_proto::ideal::{CoreCapacity, CoreModel, IdealConfig};
use rampmeter_proto::keys::{BadKey, TransportTable, key_infos, values};
use rampmeter_proto::registered::{Deployment, DerivedValue, Network, Site};
use rampmeter_types::Segmentation;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::FabricNeeds;
use rampmeter_types::{Bytes, FabricFacts, Queueing, Wiring};
use toml::Table;

use super::erased::{ErasedKeys, RegistryEntry, RunnableTransport, TransportInfo, presets};
use crate::simulation::SimulationTask;
use crate::simulation::ideal::simulate_ideal;
use crate::simulation::status::CompletedRun;

/// Returns the entry of the ideal.
pub(super) fn entry() -> RegistryEntry {
    RegistryEntry { name: NAME, lower: None, wire: || None, about, read }
}

const NAME: &str = "ideal";

fn about() -> TransportInfo {
    TransportInfo {
        name: NAME,
        title: "the ideal",
        summary: "Lower bound: a clairvoyant scheduler of all links, without a protocol.",
        wire: None,
        presets: presets::<IdealConfig>(),
        keys: key_infos::<IdealConfig>(),
        stages: Vec::new(),
        rules: TransportRules {
            decided_by: "a scheduler that knows all flows; a reference, not a protocol",
            host_state: "none",
            switch_functions: "none",
            after_loss: "there are no packets, so no losses",
        },
        has_round_trips: false,
        best_effort: Vec::new(),
    }
}

fn read(table: &TransportTable) -> Result<Arc<dyn ErasedKeys>, BadKey> {
    if let Some(us) = table.control_rtt_us.or(table.data_rtt_us) {
        return Err(BadKey::new("control-rtt-us", "no value, as the ideal has no packets", us));
    }
    let preset = table.preset_name::<IdealConfig>().to_owned();
    Ok(Arc::new(IdealKeys { preset, config: table.keys()? }))
}

struct IdealKeys {
    preset: String,
    config: IdealConfig,
}

impl ErasedKeys for IdealKeys {
    fn values(&self) -> (String, Table) {
        (self.preset.clone(), values(&self.config))
    }

    /// Returns the segmentation of the protocols that the ideal is compared with.
    fn segmentation(&self) -> Segmentation {
        let padding = self.config.padding;
        Segmentation::new(Bytes::new(1_460), Bytes::new(40), padding)
    }

    fn reply_bytes(&self) -> Bytes {
        Bytes::ZERO
    }

    fn needs(&self, _facts: &FabricFacts, _wiring: Option<&Wiring>) -> FabricNeeds {
        FabricNeeds::default()
    }

    fn queueing(&self) -> Queueing {
        Queueing::Classes
    }

    fn configure(&self, site: &Site) -> Result<Arc<dyn RunnableTransport>, BadKey> {
        let core = match (self.config.core_model, &site.deployment) {
            (CoreModel::Core, Deployment::Network(network)) => Some(core_of(network, &site.facts)?),
            _ => None,
        };
        Ok(Arc::new(Scheduler { core }))
    }
}

/// Returns the links between racks of a network.
fn core_of(network: &Network, facts: &FabricFacts) -> Result<CoreCapacity, BadKey> {
    let expected = "access for such a network";
    let refusal = |got: &str| BadKey::new("core-model", expected, got);
    if network.rails > 1 {
        return Err(refusal("core, and hosts with several links"));
    }
    let paths =
        network.paths.as_ref().ok_or_else(|| refusal("core, and racks that are not alike"))?;
    Ok(CoreCapacity::new(paths, network.fastest, facts.access_rate))
}

struct Scheduler {
    core: Option<CoreCapacity>,
}

impl RunnableTransport for Scheduler {
    fn wire(&self) -> Option<TransportId> {
        None
    }

    fn has_packets(&self) -> bool {
        false
    }

    fn buffer_min(&self) -> Bytes {
        Bytes::ZERO
    }

    fn describe(&self) -> Vec<DerivedValue> {
        Vec::new()
    }

    fn simulate(&self, task: SimulationTask<'_>) -> CompletedRun {
        simulate_ideal(task, self.core.clone())
    }
}
