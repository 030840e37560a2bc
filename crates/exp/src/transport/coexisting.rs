//! Two transports on one network in the registry: the lower one has the remaining classes.

use std::sync::Arc;

use rampmeter_proto::coexistence::{Coexisting, CoexistingConfig, prefix_lower_key};
use rampmeter_proto::keys::{BadKey, TransportTable};
use rampmeter_proto::registered::{Assumptions, RegisteredTransport, Site};
use rampmeter_types::Segmentation;
use rampmeter_types::fabric::FabricNeeds;
use rampmeter_types::{Bytes, FabricFacts, Queueing, Wiring};
use toml::Table;

use super::erased::{ErasedKeys, RegistryEntry, RunnableTransport};
use super::single::{ConfiguredTransport, SingleKeys, about};
use crate::simulation::Configs;

/// Returns the entry of transport `A` above transport `B`.
pub(super) fn entry<A: RegisteredTransport, B: RegisteredTransport>() -> RegistryEntry {
    RegistryEntry {
        name: A::NAME,
        lower: Some(B::NAME),
        wire: || None,
        about: about::<A>,
        read: read::<A, B>,
    }
}

fn read<A: RegisteredTransport, B: RegisteredTransport>(
    table: &TransportTable,
) -> Result<Arc<dyn ErasedKeys>, BadKey> {
    let preset = table.preset_name::<A::Keys>().to_owned();
    let upper = SingleKeys { preset, keys: table.keys()? };
    let lower_table = table.best_effort.clone().unwrap_or_default();
    let lower_table = TransportTable::new(&lower_table).map_err(prefix_lower_key)?;
    let preset = lower_table.preset_name::<B::Keys>().to_owned();
    let lower = SingleKeys { preset, keys: lower_table.keys().map_err(prefix_lower_key)? };
    Ok(Arc::new(PairKeys::<A, B> { upper, lower, lower_table }))
}

struct PairKeys<A: RegisteredTransport, B: RegisteredTransport> {
    upper: SingleKeys<A>,
    lower: SingleKeys<B>,
    /// Table of the lower transport, with the round trips that the plan gives.
    lower_table: TransportTable,
}

impl<A: RegisteredTransport, B: RegisteredTransport> ErasedKeys for PairKeys<A, B> {
    fn values(&self) -> (String, Table) {
        let (preset, mut table) = self.upper.values();
        let (lower_preset, lower) = self.lower.values();
        let mut inner = Table::new();
        inner.insert("name".to_owned(), B::NAME.into());
        inner.insert("preset".to_owned(), lower_preset.into());
        inner.extend(lower);
        table.insert("best-effort".to_owned(), inner.into());
        (preset, table)
    }

    fn segmentation(&self) -> Segmentation {
        self.upper.segmentation()
    }

    fn reply_bytes(&self) -> Bytes {
        self.upper.reply_bytes().max(self.lower.reply_bytes())
    }

    fn needs(&self, facts: &FabricFacts, wiring: Option<&Wiring>) -> FabricNeeds {
        self.upper.needs(facts, wiring)
    }

    fn queueing(&self) -> Queueing {
        self.upper.queueing()
    }

    fn configure(&self, site: &Site) -> Result<Arc<dyn RunnableTransport>, BadKey> {
        let (upper, lower) = (self.upper.keys.clone(), self.lower.keys.clone());
        let both = CoexistingConfig::configure::<A, B>(
            upper,
            lower,
            site,
            self.lower_table.with_round_trips(&site.facts),
        )?;
        let derived = A::describe(&both.upper);
        let buffer_min = A::buffer_min(&both.upper).max(B::buffer_min(&both.lower));
        let buffer_min = buffer_min
            .max(self.segmentation().full_wire_bytes())
            .max(self.lower.segmentation().full_wire_bytes());
        let assumptions =
            A::assumptions(&both.upper, site).union(B::assumptions(&both.lower, site));
        let assumptions = Assumptions { one_rate: true, one_round_trip: true, ..assumptions };
        let (configs, wire) = (Configs { network: Arc::new(both), by_host: Vec::new() }, None);
        let configured = ConfiguredTransport::<Coexisting<A, B>> {
            configs,
            buffer_min,
            derived,
            wire,
            assumptions,
            shared_time: None,
        };
        Ok(Arc::new(configured))
    }
}
