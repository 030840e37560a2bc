//! The transports that a plan may name.
//!
//! A [`Registry`] erases the types of transports: [`Registry::read`] finds one by name, once a run,
//! and everything behind [`Ready::simulate`] is compiled for that transport.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::{FabricNeeds, Spray};
use rampmeter_core::wire::Wire;
use rampmeter_core::{Bytes, FabricFacts, Family, Hop, NodeId, Queueing, Rate};
use rampmeter_proto::Framing;
use rampmeter_proto::beside::below;
use rampmeter_proto::catalogue::{Builtin, Catalogue, Visitor, unknown};
use rampmeter_proto::keys::{BadKey, KeyInfo, Keys, Setting, TransportTable, key_infos, values};
use rampmeter_proto::mixed::Member;
use rampmeter_proto::transport::{Assumptions, Derived, Peers, Place, Site, Slowed, Transport};
use serde::Serialize;
use toml::{Table, Value};

use super::ideal::IdealEntry;
use super::mixed::{MixedPart, of_table};
use super::two::Two;
use super::{ReadTable, TransportSpec};
use crate::ran::Ran;
use crate::simulate::{Configs, Task, simulate_family};

/// The transports that a plan may name.
pub struct Registry {
    entries: Vec<Box<dyn Entry>>,
}

/// Description of a transport for documents and the Python package.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Its name in plans.
    pub name: &'static str,
    /// Its name in text.
    pub title: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its number in front of packets; `None` for one without packets.
    pub wire: Option<u8>,
    /// Its presets, the default first, each with the values of its keys.
    pub presets: Vec<(&'static str, Table)>,
    /// Its keys.
    pub keys: Vec<KeyInfo>,
    /// True if it takes the round trips that every transport with packets takes.
    pub has_round_trips: bool,
    /// Transports that may run in lower classes.
    pub best_effort: Vec<&'static str>,
}

/// A transport whose type is erased.
pub(super) trait Entry: Send + Sync {
    /// Its name in plans; of two transports on one network, that of the upper one.
    fn name(&self) -> &'static str;
    /// Description for documents. The keys are read from a schema, which takes a while.
    fn about(&self) -> About;
    /// Its packets, if they have a custom format.
    fn wire(&self) -> Option<Wire> {
        None
    }
    fn read(&self, table: &TransportTable) -> Result<Arc<dyn AnyKeys>, BadKey>;
    /// Upper and lower transport, where there are two on one network.
    fn pair(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// The parameters of a transport whose type is erased.
pub(crate) trait AnyKeys: Send + Sync {
    /// The name of the preset, and the values of all keys.
    fn values(&self) -> (String, Table);
    /// Returns the network that constants of the preset are for, if it has any.
    fn setting(&self) -> Option<Setting> {
        None
    }
    fn framing(&self) -> Framing;
    /// Returns the control packets that a receiver sends for a full packet.
    fn reply_bytes(&self) -> Bytes;
    fn needs(&self, facts: &FabricFacts) -> FabricNeeds;
    fn queueing(&self) -> Queueing;
    fn configure(&self, site: &Site) -> Result<Arc<dyn Ready>, BadKey>;
    /// Configures it as transport `number` of several in one network, with its path choice and what
    /// is added to the classes of its packets.
    fn member(
        &self,
        _number: u8,
        _site: &Site,
        _of_packets: (Option<Spray>, u8),
    ) -> Result<MixedPart, BadKey> {
        let expected = "a transport that can share the network with another";
        Err(BadKey::new("name", expected, "one that has no packets, or that shares it already"))
    }
}

/// A transport configured for one network.
pub(crate) trait Ready: Send + Sync {
    /// Its number in front of packets; `None` if packets have no custom format.
    fn wire(&self) -> Option<TransportId>;
    /// Returns whether it sends packets.
    fn has_packets(&self) -> bool {
        true
    }
    /// The least packet memory of a port.
    fn buffer_min(&self) -> Bytes;
    /// Returns what it assumes of the network.
    fn assumptions(&self) -> Assumptions {
        Assumptions::default()
    }
    /// Returns a time that all hosts share and that fast hosts alone would have shorter.
    fn slowed(&self) -> Option<Slowed> {
        None
    }
    /// Returns the values derived from its parameters.
    fn describe(&self) -> Vec<Derived>;
    /// Runs a task. From here on every type is static.
    fn simulate(&self, task: Task<'_>) -> Ran;
}

impl Registry {
    /// The transports of this repository.
    pub fn builtin() -> Self {
        Self { entries: vec![Box::new(IdealEntry)] }.and::<Builtin>()
    }

    /// Adds those of another catalogue.
    ///
    /// Panics if two have one name or one number: no plan or packet could distinguish them.
    #[must_use]
    pub fn and<C: Catalogue>(mut self) -> Self {
        C::visit(&mut self);
        self
    }

    /// Adds one transport; see [`Registry::and`].
    #[must_use]
    pub fn with<T: Transport>(mut self) -> Self {
        self.transport::<T>();
        self
    }

    /// All transports, in the order of registration.
    pub fn about(&self) -> Vec<About> {
        let single = self.entries.iter().filter(|entry| entry.pair().is_none());
        let lower = |name: &str| {
            let pairs = self.entries.iter().filter_map(|entry| entry.pair());
            pairs.filter(|(upper, _)| *upper == name).map(|(_, lower)| lower).collect()
        };
        let about = single.map(|entry| entry.about());
        about.map(|about| About { best_effort: lower(about.name), ..about }).collect()
    }

    /// The packets of all transports that have some.
    pub fn wires(&self) -> Vec<Wire> {
        self.entries.iter().filter_map(|entry| entry.wire()).collect()
    }

    /// Reads the `transport` table, or the tables of several transports that share the network.
    ///
    /// # Errors
    /// An unknown name or key, or a value that cannot be used; keys are those of the table, after
    /// its place if there are several.
    pub fn read(&self, value: &Value) -> Result<TransportSpec, BadKey> {
        let tables = match value {
            Value::Table(table) => {
                let read = self.read_table(table)?;
                if let Some(class) = read.table.class {
                    let expected = "this key where several transports share the network";
                    return Err(BadKey::new("class", expected, class));
                }
                vec![read]
            }
            Value::Array(tables) if tables.len() == 1 => {
                return self.read(&tables[0]).map_err(|bad| of_table(0, bad));
            }
            Value::Array(tables) if (1..=Self::MEMBERS_MAX).contains(&tables.len()) => {
                let read = |(number, table): (u8, &Value)| match table {
                    Value::Table(table) => {
                        self.read_table(table).map_err(|bad| of_table(number, bad))
                    }
                    other => Err(BadKey::new(&format!("[{number}]"), "a table", other)),
                };
                (0..).zip(tables).map(read).collect::<Result<_, _>>()?
            }
            Value::Array(tables) => {
                let expected = format!("1 to {} tables", Self::MEMBERS_MAX);
                return Err(BadKey::new("", expected, tables.len()));
            }
            other => return Err(BadKey::new("", "a table, or a list of tables", other)),
        };
        Ok(TransportSpec::new(tables))
    }

    /// The most transports that share a network.
    const MEMBERS_MAX: usize = 8;

    fn read_table(&self, table: &Table) -> Result<ReadTable, BadKey> {
        let table = TransportTable::new(table)?;
        let lower = match &table.best_effort {
            None => None,
            Some(table) => Some(TransportTable::new(table).map_err(below)?),
        };
        let wanted = (table.name.as_str(), lower.as_ref().map(|lower| lower.name.as_str()));
        let found = self.entries.iter().find(|entry| match entry.pair() {
            None => (entry.name(), None) == wanted,
            Some((upper, lower)) => (upper, Some(lower)) == wanted,
        });
        let Some(entry) = found else { return Err(self.unknown(wanted)) };
        let keys = entry.read(&table)?;
        Ok(ReadTable { table, keys })
    }

    fn unknown(&self, wanted: (&str, Option<&str>)) -> BadKey {
        let about = self.about();
        let names: Vec<&str> = about.iter().map(|about| about.name).collect();
        let found = about.iter().find(|about| about.name == wanted.0);
        unknown(wanted, &names, found.map_or(&[], |about| &about.best_effort))
    }

    fn add(&mut self, entry: Box<dyn Entry>) {
        let number = |entry: &dyn Entry| entry.wire().map(|wire| wire.id);
        let (name, id) = (entry.name(), number(&*entry));
        for known in self.entries.iter().filter(|known| known.pair() == entry.pair()) {
            let old = known.name();
            assert!(old != name, "two transports are called {name}");
            assert!(
                id.is_none() || number(&**known) != id,
                "{old} and {name} have the same number {id:?}"
            );
        }
        self.entries.push(entry);
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = self.entries.iter().filter(|entry| entry.pair().is_none());
        f.debug_list().entries(single.map(|entry| entry.name())).finish()
    }
}

impl Visitor for Registry {
    fn transport<T: Transport>(&mut self) {
        self.add(Box::new(One::<T>::new()));
    }

    fn beside<A: Transport, B: Transport>(&mut self) {
        self.add(Box::new(Two::<A, B>::new()));
    }
}

/// A transport.
pub(super) struct One<T>(PhantomData<fn() -> T>);

impl<T> One<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Transport> Entry for One<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn about(&self) -> About {
        About {
            name: T::NAME,
            title: T::TITLE,
            summary: T::SUMMARY,
            wire: Some(T::WIRE.0),
            presets: presets::<T::Keys>(),
            keys: key_infos::<T::Keys>(),
            has_round_trips: true,
            best_effort: Vec::new(),
        }
    }

    fn wire(&self) -> Option<Wire> {
        Some(Wire::of::<T::Header>(T::WIRE, T::NAME, T::TITLE))
    }

    fn read(&self, table: &TransportTable) -> Result<Arc<dyn AnyKeys>, BadKey> {
        let preset = table.preset_name::<T::Keys>().to_owned();
        Ok(Arc::new(OneKeys::<T> { preset, keys: table.keys()? }))
    }
}

pub(super) fn presets<K: Keys>() -> Vec<(&'static str, Table)> {
    K::PRESETS.iter().map(|(name, preset)| (*name, values(&preset()))).collect()
}

pub(super) struct OneKeys<T: Transport> {
    pub(super) preset: String,
    pub(super) keys: T::Keys,
}

impl<T: Transport> AnyKeys for OneKeys<T> {
    fn values(&self) -> (String, Table) {
        (self.preset.clone(), values(&self.keys))
    }

    fn setting(&self) -> Option<Setting> {
        T::Keys::SETTINGS.iter().find(|of| of.preset == self.preset).copied()
    }

    fn framing(&self) -> Framing {
        T::framing(&self.keys)
    }

    fn reply_bytes(&self) -> Bytes {
        T::reply_bytes(&self.keys)
    }

    fn needs(&self, facts: &FabricFacts) -> FabricNeeds {
        T::needs(&self.keys, facts)
    }

    fn queueing(&self) -> Queueing {
        T::Hop::QUEUEING
    }

    fn configure(&self, site: &Site) -> Result<Arc<dyn Ready>, BadKey> {
        Ok(Arc::new(self.configured(site)?))
    }

    fn member(
        &self,
        number: u8,
        site: &Site,
        of_packets: (Option<Spray>, u8),
    ) -> Result<MixedPart, BadKey> {
        Member::check::<T>()?;
        let configured = self.configured(site)?;
        let member =
            |config: &Arc<T::Config>| Member::new::<T>(number, Arc::clone(config), of_packets);
        let Configs { network, by_host } = &configured.configs;
        Ok(MixedPart {
            network: member(network),
            by_host: by_host.iter().map(|config| config.as_ref().map(member)).collect(),
            alone: Arc::new(configured),
        })
    }
}

/// Configurations of single hosts, by number.
type ByHost<C> = Vec<Option<Arc<C>>>;

impl<T: Transport> OneKeys<T> {
    fn configured(&self, site: &Site) -> Result<Configured<T>, BadKey> {
        let config = T::configure(self.keys.clone(), site)?;
        let derived = T::describe(&config);
        let buffer_min = T::buffer_min(&config).max(self.framing().full());
        let assumptions = T::assumptions(&config, site);
        let slowed = self.slowed(&config, site)?;
        let by_host = if assumptions.one_rate { Vec::new() } else { self.by_host(&config, site)? };
        let (configs, wire) = (Configs { network: Arc::new(config), by_host }, Some(T::WIRE));
        Ok(Configured { configs, buffer_min, derived, wire, assumptions, slowed })
    }

    /// Returns the configurations of hosts whose rate to a peer is not that of the slowest host, or
    /// whose round trip may not be that of the network.
    fn by_host(&self, config: &T::Config, site: &Site) -> Result<ByHost<T::Config>, BadKey> {
        let Place::Network(network) = &site.place else { return Ok(Vec::new()) };
        let (slowest, pairs) = (site.facts.access_rate, &network.pairs);
        let mut by_host = Vec::new();
        // Hosts of the same rates have the same peers, unless these depend on where the hosts are.
        let depends = pairs.has_partial_pairs() || pairs.has_round_trips();
        let mut by_rates: BTreeMap<(Rate, Rate), Arc<T::Config>> = BTreeMap::new();
        for host in (0..pairs.n_hosts()).map(NodeId::new) {
            let rates @ (sends, receives) = (pairs.sends(host), pairs.receives(host));
            if sends.max(receives) == slowest && !depends {
                by_host.push(None);
                continue;
            }
            if let Some(own) = by_rates.get(&rates) {
                by_host.push(Some(Arc::clone(own)));
                continue;
            }
            let facts = FabricFacts { access_rate: receives, ..site.facts };
            let own = T::configure(self.keys.clone(), &Site { facts, ..site.clone() })?;
            let peers = Peers::new(host, facts, Arc::clone(pairs));
            let own = Arc::new(T::among(own, config, &peers));
            if !depends {
                by_rates.insert(rates, Arc::clone(&own));
            }
            by_host.push(Some(own));
        }
        Ok(by_host)
    }

    /// Returns a time that all hosts share and that the fastest hosts alone would have shorter.
    fn slowed(&self, config: &T::Config, site: &Site) -> Result<Option<Slowed>, BadKey> {
        let Place::Network(network) = &site.place else { return Ok(None) };
        let access_rate = network.pairs.fastest();
        if access_rate == site.facts.access_rate {
            return Ok(None);
        }
        let facts = FabricFacts { access_rate, ..site.facts };
        let own = T::configure(self.keys.clone(), &Site { facts, ..site.clone() })?;
        Ok(T::slowed(&own, config))
    }
}

/// A family with its parameters for one network.
pub(super) struct Configured<F: Family> {
    pub(super) configs: Configs<F::Config>,
    pub(super) buffer_min: Bytes,
    pub(super) derived: Vec<Derived>,
    pub(super) wire: Option<TransportId>,
    pub(super) assumptions: Assumptions,
    pub(super) slowed: Option<Slowed>,
}

impl<F: Family> Ready for Configured<F> {
    fn wire(&self) -> Option<TransportId> {
        self.wire
    }

    fn buffer_min(&self) -> Bytes {
        self.buffer_min
    }

    fn assumptions(&self) -> Assumptions {
        self.assumptions
    }

    fn slowed(&self) -> Option<Slowed> {
        self.slowed
    }

    fn describe(&self) -> Vec<Derived> {
        self.derived.clone()
    }

    fn simulate(&self, task: Task<'_>) -> Ran {
        simulate_family::<F>(task, &self.configs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transport that is slow to describe, as all are.
    struct Undescribed;

    impl Entry for Undescribed {
        fn name(&self) -> &'static str {
            "undescribed"
        }

        fn about(&self) -> About {
            panic!("a plan needs no description of the transports that it does not name")
        }

        fn read(&self, _: &TransportTable) -> Result<Arc<dyn AnyKeys>, BadKey> {
            unreachable!("no plan names it")
        }
    }

    #[test]
    fn a_transport_is_found_without_describing_others() {
        let entries: Vec<Box<dyn Entry>> = vec![Box::new(Undescribed), Box::new(IdealEntry)];
        let table = toml::toml! { name = "ideal" };
        assert!(Registry { entries }.read(&Value::Table(table)).is_ok());
    }
}
