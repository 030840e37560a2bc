//! One transport in the registry: its keys, and its configurations for the hosts of a network.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_proto::keys::{BadKey, Keys, Setting, key_infos, values};
use rampmeter_proto::mixed::MemberTransport;
use rampmeter_proto::registered::{
    Assumptions, Deployment, DerivedValue, Peers, RegisteredTransport, SharedTime, Site,
};
use rampmeter_types::Segmentation;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Spray};
use rampmeter_types::wire::WireFormat;
use rampmeter_types::{
    Bytes, DuplexRates, FabricFacts, NodeId, Queueing, SwitchProgram, Transport, Wiring,
};
use toml::Table;

use super::erased::{
    ErasedKeys, MixedPart, RegistryEntry, RunnableTransport, TransportInfo, presets,
};
use crate::simulation::status::CompletedRun;
use crate::simulation::{Configs, SimulationTask, simulate_transport};

/// Returns the entry of transport `T`.
pub(super) fn entry<T: RegisteredTransport>() -> RegistryEntry {
    RegistryEntry {
        name: T::NAME,
        lower: None,
        wire: || Some(WireFormat::describe::<T::Header>(T::WIRE, T::NAME, T::TITLE)),
        about: about::<T>,
        read: |table| {
            let preset = table.preset_name::<T::Keys>().to_owned();
            Ok(Arc::new(SingleKeys::<T> { preset, keys: table.keys()? }))
        },
    }
}

/// Describes transport `T`.
pub(super) fn about<T: RegisteredTransport>() -> TransportInfo {
    TransportInfo {
        name: T::NAME,
        title: T::TITLE,
        summary: T::SUMMARY,
        wire: Some(T::WIRE.0),
        presets: presets::<T::Keys>(),
        keys: key_infos::<T::Keys>(),
        stages: T::STAGES.iter().map(|stage| (stage.name, stage.meaning)).collect(),
        rules: T::RULES,
        has_round_trips: true,
        best_effort: Vec::new(),
    }
}

/// The keys of transport `T`, as read from a table.
pub(super) struct SingleKeys<T: RegisteredTransport> {
    pub(super) preset: String,
    pub(super) keys: T::Keys,
}

impl<T: RegisteredTransport> ErasedKeys for SingleKeys<T> {
    fn values(&self) -> (String, Table) {
        (self.preset.clone(), values(&self.keys))
    }

    fn setting(&self) -> Option<Setting> {
        T::Keys::SETTINGS.iter().find(|of| of.preset == self.preset).copied()
    }

    fn segmentation(&self) -> Segmentation {
        T::segmentation(&self.keys)
    }

    fn reply_bytes(&self) -> Bytes {
        T::reply_bytes(&self.keys)
    }

    fn needs(&self, facts: &FabricFacts, wiring: Option<&Wiring>) -> FabricNeeds {
        match wiring {
            Some(wiring) => T::network_needs(&self.keys, facts, wiring),
            None => T::needs(&self.keys, facts),
        }
    }

    fn queueing(&self) -> Queueing {
        T::SwitchProgram::QUEUEING
    }

    fn configure(&self, site: &Site) -> Result<Arc<dyn RunnableTransport>, BadKey> {
        Ok(Arc::new(self.configured(site)?))
    }

    fn member(
        &self,
        number: u8,
        site: &Site,
        spray: Option<Spray>,
        class: u8,
    ) -> Result<MixedPart, BadKey> {
        MemberTransport::check::<T>()?;
        let configured = self.configured(site)?;
        let member = |config: &Arc<T::Config>| {
            MemberTransport::new::<T>(number, Arc::clone(config), spray, class)
        };
        let Configs { network, by_host } = &configured.configs;
        Ok(MixedPart {
            network: member(network),
            by_host: by_host.iter().map(|config| config.as_ref().map(member)).collect(),
            standalone: Arc::new(configured),
        })
    }
}

/// Configurations of single hosts, by number.
type HostConfigs<C> = Vec<Option<Arc<C>>>;

impl<T: RegisteredTransport> SingleKeys<T> {
    fn configured(&self, site: &Site) -> Result<ConfiguredTransport<T>, BadKey> {
        let config = T::configure(self.keys.clone(), site)?;
        let derived = T::describe(&config);
        let buffer_min = T::buffer_min(&config).max(self.segmentation().full_wire_bytes());
        let assumptions = T::assumptions(&config, site);
        let shared_time = self.slowed(&config, site)?;
        let by_host = if assumptions.one_rate { Vec::new() } else { self.by_host(&config, site)? };
        let (configs, wire) = (Configs { network: Arc::new(config), by_host }, Some(T::WIRE));
        Ok(ConfiguredTransport { configs, buffer_min, derived, wire, assumptions, shared_time })
    }

    /// Returns the configurations of hosts with special peers. Their rate to a peer is not that of
    /// the slowest host, or their round trip may not be that of the network.
    fn by_host(&self, config: &T::Config, site: &Site) -> Result<HostConfigs<T::Config>, BadKey> {
        let Deployment::Network(network) = &site.deployment else { return Ok(Vec::new()) };
        let (slowest, pairs) = (site.facts.access_rate, &network.pairs);
        let mut by_host = Vec::new();
        // Hosts of the same rates have the same peers, unless these depend on the positions of
        // hosts.
        let depends = pairs.has_partial_pairs() || pairs.has_round_trips();
        let mut by_rates: BTreeMap<DuplexRates, Arc<T::Config>> = BTreeMap::new();
        for host in (0..pairs.n_hosts()).map(NodeId::new) {
            let rates = DuplexRates { tx: pairs.tx_rate(host), rx: pairs.rx_rate(host) };
            if rates.tx.max(rates.rx) == slowest && !depends {
                by_host.push(None);
                continue;
            }
            if let Some(own) = by_rates.get(&rates) {
                by_host.push(Some(Arc::clone(own)));
                continue;
            }
            let facts = FabricFacts { access_rate: rates.rx, ..site.facts };
            let own = T::configure(self.keys.clone(), &Site { facts, ..site.clone() })?;
            let peers = Peers::new(host, facts, Arc::clone(pairs));
            let own = Arc::new(T::adapt_to_peers(own, config, &peers));
            if !depends {
                by_rates.insert(rates, Arc::clone(&own));
            }
            by_host.push(Some(own));
        }
        Ok(by_host)
    }

    /// Returns a time that all hosts share and that the fastest hosts alone would have shorter.
    fn slowed(&self, config: &T::Config, site: &Site) -> Result<Option<SharedTime>, BadKey> {
        let Deployment::Network(network) = &site.deployment else { return Ok(None) };
        let access_rate = network.pairs.max_rate();
        if access_rate == site.facts.access_rate {
            return Ok(None);
        }
        let facts = FabricFacts { access_rate, ..site.facts };
        let own = T::configure(self.keys.clone(), &Site { facts, ..site.clone() })?;
        Ok(T::shared_time(&own, config))
    }
}

/// A transport with its parameters for one network.
pub(super) struct ConfiguredTransport<F: Transport> {
    pub(super) configs: Configs<F::Config>,
    pub(super) buffer_min: Bytes,
    pub(super) derived: Vec<DerivedValue>,
    pub(super) wire: Option<TransportId>,
    pub(super) assumptions: Assumptions,
    pub(super) shared_time: Option<SharedTime>,
}

impl<F: Transport> RunnableTransport for ConfiguredTransport<F> {
    fn wire(&self) -> Option<TransportId> {
        self.wire
    }

    fn buffer_min(&self) -> Bytes {
        self.buffer_min
    }

    fn assumptions(&self) -> Assumptions {
        self.assumptions
    }

    fn slowed(&self) -> Option<SharedTime> {
        self.shared_time
    }

    fn describe(&self) -> Vec<DerivedValue> {
        self.derived.clone()
    }

    fn simulate(&self, task: SimulationTask<'_>) -> CompletedRun {
        simulate_transport::<F>(task, &self.configs)
    }
}
