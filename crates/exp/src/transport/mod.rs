//! The `transport` table: which transport runs, and with which parameters.
//!
//! This module names no transport: a [`Registry`] holds those that plans may name.

mod ideal;
mod mixed;
mod registry;
mod two;

use std::fmt;
use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::{FabricNeeds, Spray};
use rampmeter_core::{FabricFacts, Pairs, Queueing, Rate};
use rampmeter_metrics::ideal::LastPacket;
use rampmeter_proto::keys::{BadKey, TransportTable};
use rampmeter_proto::transport::{Derived, Place, Site};
use rampmeter_proto::{Framing, Padding};
use rampmeter_sim::Topology;
use serde::{Serialize, Serializer};
use toml::{Table, Value};

pub use registry::{About, Registry};

use crate::cut::Cut;
use registry::{AnyKeys, Ready};

/// The `transport` table, or the tables of several transports that share the network.
#[derive(Clone)]
pub struct TransportSpec {
    name: String,
    /// At least one. The messages of tenant n belong to transport n.
    tables: Vec<ReadTable>,
}

/// A table that has been read.
#[derive(Clone)]
struct ReadTable {
    table: TransportTable,
    keys: Arc<dyn AnyKeys>,
}

/// A transport with its parameters for one network.
#[derive(Clone)]
pub(crate) struct ValidTransport {
    pub(crate) ready: Arc<dyn Ready>,
    /// Needs of the transport in the fabric of that network.
    pub(crate) needs: FabricNeeds,
}

/// Returns the path in a plan of a key of the `transport` table, or of one of several tables:
/// `transport.preset`, `transport[1].preset`.
pub(crate) fn key_of(key: &str) -> String {
    let point = if key.is_empty() || key.starts_with('[') { "" } else { "." };
    format!("transport{point}{key}")
}

impl TransportSpec {
    fn new(tables: Vec<ReadTable>) -> Self {
        let names: Vec<&str> = tables.iter().map(|read| read.table.name.as_str()).collect();
        Self { name: names.join("+"), tables }
    }

    /// The name of the transport; of several, their names joined by `+`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the transports, in the order of the tenants that use them.
    pub fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|read| read.table.name.as_str()).collect()
    }

    /// Returns the packets of each transport's messages.
    pub(crate) fn cuts(&self) -> Vec<Cut> {
        let cut = |table: &ReadTable| {
            let Framing { payload, header, padding } = table.keys.framing();
            let last = match padding {
                Padding::Exact => LastPacket::OwnSize,
                Padding::Full => LastPacket::Padded,
            };
            Cut { payload, header, last, reply: table.keys.reply_bytes() }
        };
        self.tables.iter().map(cut).collect()
    }

    /// Returns a sentence for each preset with constants of another network than `topology`.
    pub(crate) fn foreign_settings(&self, topology: &Topology) -> Vec<String> {
        let (slowest, fastest) = (topology.slowest_host(), topology.fastest_host());
        let sentence = |table: &ReadTable| {
            let setting = table.keys.setting()?;
            let own = Rate::from_gbps(setting.gbps);
            let payload = table.keys.framing().payload.get();
            let is_own_size = setting.payload.is_none_or(|of| of == payload);
            let of_size = setting.payload.map(|of| format!(" and packets of {of} bytes"));
            let gbps = |rate: Rate| rate.as_bps() as f64 / 1e9;
            let rates = match slowest == fastest {
                true => gbps(slowest).to_string(),
                false => format!("{} to {}", gbps(slowest), gbps(fastest)),
            };
            ((slowest, fastest) != (own, own) || !is_own_size).then(|| {
                format!(
                    "transport.preset: {} of {} has times and bytes recorded with hosts of {} \
                     Gbit/s{}, which do not follow from this network of {rates} Gbit/s and {payload} \
                     bytes",
                    setting.preset,
                    table.table.name,
                    setting.gbps,
                    of_size.unwrap_or_default()
                )
            })
        };
        self.tables.iter().filter_map(sentence).collect()
    }

    /// Returns the needs of the transport in a fabric, which is described as in the plan.
    ///
    /// # Errors
    /// Two transports that need different fabrics.
    pub(crate) fn needs(&self, facts: &FabricFacts) -> Result<FabricNeeds, BadKey> {
        let needs = |table: &ReadTable| table.keys.needs(&table.told(facts));
        match &self.tables[..] {
            [only] => Ok(needs(only)),
            several => mixed::merge(self.names().into_iter().zip(several.iter().map(needs))),
        }
    }

    /// Returns the queueing of the ports of its switches.
    pub(crate) fn queueing(&self) -> Queueing {
        self.tables[0].keys.queueing()
    }

    /// Checks the parameters and derives what follows from them at `site`. `spray` is the path
    /// choice that the plan names.
    pub(crate) fn configure(
        &self,
        site: &Site,
        spray: Option<Spray>,
    ) -> Result<ValidTransport, BadKey> {
        let needs = self.needs(&site.facts)?;
        let ready = match &self.tables[..] {
            [only] => only.keys.configure(&only.site(site))?,
            several => mixed::configure(several, site, spray)?,
        };
        Ok(ValidTransport { ready, needs })
    }

    /// The table, or a list of tables, with the values of all keys.
    pub fn value(&self) -> Value {
        match &self.tables[..] {
            [only] => only.table().into(),
            several => several.iter().map(ReadTable::table).collect::<Vec<_>>().into(),
        }
    }
}

impl ReadTable {
    /// Returns the facts that the plan gives the transport.
    fn told(&self, facts: &FabricFacts) -> FabricFacts {
        self.table.with_round_trips(facts)
    }

    /// Returns the site that the plan gives the transport: all pairs of hosts have round trips of
    /// the plan.
    fn site(&self, site: &Site) -> Site {
        let mut told = Site { facts: self.told(&site.facts), ..site.clone() };
        if let Place::Network(network) = &mut told.place
            && told.facts != site.facts
            && network.pairs.has_round_trips()
        {
            network.pairs = Arc::new(Pairs::clone(&network.pairs).with_round_trips(None));
        }
        told
    }

    fn table(&self) -> Table {
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

impl fmt::Debug for TransportSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl PartialEq for TransportSpec {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Serialize for TransportSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(to)
    }
}

impl ValidTransport {
    /// Its number in front of packets; `None` for those that have none.
    pub(crate) fn wire(&self) -> Option<TransportId> {
        self.ready.wire()
    }

    /// Returns the values derived from its parameters.
    pub(crate) fn describe(&self) -> Vec<Derived> {
        self.ready.describe()
    }
}

impl fmt::Debug for ValidTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.describe()).finish()
    }
}
