//! A `transport` table of a plan, after it has been read.

use std::sync::Arc;

use rampmeter_proto::keys::TransportTable;
use rampmeter_proto::registered::{Deployment, Site};
use rampmeter_types::{FabricFacts, Pairs};
use toml::Table;

use super::erased::ErasedKeys;

/// A table that has been read.
#[derive(Clone)]
pub(super) struct ReadTable {
    pub(super) table: TransportTable,
    pub(super) keys: Arc<dyn ErasedKeys>,
}

impl ReadTable {
    /// Returns the facts that the plan gives the transport.
    pub(super) fn with_measured_rtts(&self, facts: &FabricFacts) -> FabricFacts {
        self.table.with_round_trips(facts)
    }

    /// Returns the site that the plan gives the transport: all pairs of hosts have round trips of
    /// the plan.
    pub(super) fn site(&self, site: &Site) -> Site {
        let mut measured = Site { facts: self.with_measured_rtts(&site.facts), ..site.clone() };
        if let Deployment::Network(network) = &mut measured.deployment
            && measured.facts != site.facts
            && network.pairs.has_round_trips()
        {
            network.pairs = Arc::new(Pairs::clone(&network.pairs).with_round_trips(None));
        }
        measured
    }

    pub(super) fn table(&self) -> Table {
        let (preset, keys) = self.keys.values();
        let TransportTable { ref name, control_rtt_us, data_rtt_us, class, .. } = self.table;
        let mut table = Table::new();
        table.insert("name".to_owned(), name.clone().into());
        table.insert("preset".to_owned(), preset.into());
        for (key, us) in [("control-rtt-us", control_rtt_us), ("data-rtt-us", data_rtt_us)] {
            table.extend(us.map(|us| (key.to_owned(), us.into())));
        }
        table.extend(class.map(|class| ("class".to_owned(), i64::from(class).into())));
        table.extend(keys);
        table
    }
}
