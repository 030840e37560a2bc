//! The `transport` table of a plan, and the transport that it configures in a network.

use std::fmt;
use std::sync::Arc;

use rampmeter_proto::keys::BadKey;
use rampmeter_proto::registered::{DerivedValue, Site};
use rampmeter_sim::Topology;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Spray};
use rampmeter_types::{FabricFacts, Queueing, Rate, Wiring};
use serde::{Serialize, Serializer};
use toml::Value;

use super::erased::RunnableTransport;
use super::mixed;
use super::table::ReadTable;
use crate::warning::{Warning, warning};
use rampmeter_types::Segmentation;

/// The `transport` table, or the tables of several transports that share the network.
#[derive(Clone)]
pub struct TransportSpec {
    name: String,
    /// Tables of transports, at least one. The messages of tenant n belong to transport n.
    tables: Vec<ReadTable>,
}

/// A transport with its parameters for one network.
#[derive(Clone)]
pub(crate) struct ValidTransport {
    pub(crate) ready: Arc<dyn RunnableTransport>,
    /// Needs of the transport in the fabric of that network.
    pub(crate) needs: FabricNeeds,
}

impl TransportSpec {
    pub(super) fn new(tables: Vec<ReadTable>) -> Self {
        let names: Vec<&str> = tables.iter().map(|read| read.table.name.as_str()).collect();
        Self { name: names.join("+"), tables }
    }

    /// Returns the name of the transport; of several, their names joined by `+`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the transports, in the order of the tenants that use them.
    pub fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|read| read.table.name.as_str()).collect()
    }

    /// Returns the packets of each transport's messages as ideals count them: all but the last are
    /// full.
    pub(crate) fn segmentations(&self) -> Vec<Segmentation> {
        self.tables.iter().map(|read| read.keys.segmentation().without_head()).collect()
    }

    /// Returns the maximum share of control packets that a receiver sends in the data it receives.
    pub(crate) fn reply_share(&self) -> f64 {
        let share = |read: &ReadTable| {
            let full = read.keys.segmentation().full_wire_bytes();
            read.keys.reply_bytes().get() as f64 / full.get() as f64
        };
        self.tables.iter().map(share).fold(0.0, f64::max)
    }

    /// Returns the names of the presets, in the order of the transports.
    pub(crate) fn presets(&self) -> Vec<String> {
        self.tables.iter().map(|read| read.keys.values().0).collect()
    }

    /// Returns a sentence for each preset of a simulator whose network differs from `topology`.
    pub(crate) fn foreign_settings(
        &self,
        topology: &Topology,
        facts: &FabricFacts,
    ) -> Vec<Warning> {
        let (slowest, fastest) = (topology.slowest_host(), topology.fastest_host());
        let sentence = |table: &ReadTable| {
            let setting = table.keys.setting()?;
            let own = Rate::from_gbps(setting.gbps);
            let payload = table.keys.segmentation().payload.get();
            let is_own_size = setting.payload.is_none_or(|of| of == payload);
            let of_size = setting.payload.map(|of| format!(" and packets of {of} bytes"));
            let gbps = |rate: Rate| rate.as_bps() as f64 / 1e9;
            let rates = match slowest == fastest {
                true => gbps(slowest).to_string(),
                false => format!("{} to {}", gbps(slowest), gbps(fastest)),
            };
            ((slowest, fastest) != (own, own) || !is_own_size).then(|| {
                warning!(
                    "foreign-preset",
                    "transport.preset: {preset} of {transport} is transcribed from a simulator \
                     with hosts of {preset_gbps} Gbit/s{of_size}, and its values and rules do not \
                     follow from this network of {rates} Gbit/s and {payload_bytes} bytes",
                    preset = setting.preset,
                    transport = &table.table.name,
                    preset_gbps = setting.gbps,
                    payload_bytes = payload;
                    of_size = of_size.unwrap_or_default(),
                    rates = rates,
                )
            })
        };
        let of_table = |table| sentence(table).or_else(|| foreign_window(table, facts));
        self.tables.iter().filter_map(of_table).collect()
    }

    /// Returns the needs of the transport in a fabric, which is described as in the plan.
    ///
    /// # Errors
    /// Two transports that need different fabrics.
    pub(crate) fn needs(
        &self,
        facts: &FabricFacts,
        wiring: &Wiring,
    ) -> Result<FabricNeeds, BadKey> {
        let needs = |table: &ReadTable| {
            let facts = table.with_measured_rtts(facts);
            table.keys.needs(&facts, Some(wiring)).limit_to_port_memory()
        };
        match &self.tables[..] {
            [only] => Ok(needs(only)),
            several => mixed::merge(self.names().into_iter().zip(several.iter().map(needs))),
        }
    }

    /// Returns the queueing of the ports of its switches.
    pub(crate) fn queueing(&self) -> Queueing {
        self.tables[0].keys.queueing()
    }

    /// Checks the parameters and derives values from them at `site`. `spray` is the path choice
    /// that the plan names, `needs` are those of the transport there.
    pub(crate) fn configure(
        &self,
        site: &Site,
        spray: Option<Spray>,
        needs: FabricNeeds,
    ) -> Result<ValidTransport, BadKey> {
        let ready = match &self.tables[..] {
            [only] => only.keys.configure(&only.site(site))?,
            several => mixed::configure(several, site, spray)?,
        };
        Ok(ValidTransport { ready, needs })
    }

    /// Returns the table, or a list of tables, with the values of all keys.
    pub fn value(&self) -> Value {
        match &self.tables[..] {
            [only] => only.table().into(),
            several => several.iter().map(ReadTable::table).collect::<Vec<_>>().into(),
        }
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
    /// Returns the number in front of packets; `None` for transports that have none.
    pub(crate) fn wire(&self) -> Option<TransportId> {
        self.ready.wire()
    }

    /// Returns the values derived from its parameters.
    pub(crate) fn describe(&self) -> Vec<DerivedValue> {
        self.ready.describe()
    }
}

impl fmt::Debug for ValidTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.describe()).finish()
    }
}

/// Ratio of a bandwidth-delay product to the window that constants assume from which a preset
/// belongs to another network.
const FOREIGN_RATIO: f64 = 3.0;

/// Returns a sentence if the preset of a table has windows in bytes that are far from a
/// bandwidth-delay product of the network.
fn foreign_window(table: &ReadTable, facts: &FabricFacts) -> Option<Warning> {
    let setting = table.keys.setting()?;
    let window = setting.window?;
    let own = facts.access_rate.as_bps() as f64 * facts.data_rtt.as_secs_f64() / 8.0;
    let ratio = own / window as f64;
    (!(1.0 / FOREIGN_RATIO..=FOREIGN_RATIO).contains(&ratio)).then(|| {
        warning!(
            "foreign-preset",
            "transport.preset: {preset} of {transport} has the windows of a simulator with about \
             {window_bytes} bytes in flight between two hosts, and this network has \
             {own_bytes:.0}, so that they hold messages back or fill queues",
            preset = setting.preset,
            transport = &table.table.name,
            window_bytes = window,
            own_bytes = own,
        )
    })
}
