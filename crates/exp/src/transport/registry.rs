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
use rampmeter_proto::beside::{Beside, Both, below};
use rampmeter_proto::catalogue::{Builtin, Catalogue, Visitor, unknown};
use rampmeter_proto::keys::{BadKey, KeyInfo, Keys, Setting, TransportTable, key_infos, values};
use rampmeter_proto::mixed::Member;
use rampmeter_proto::transport::{Assumptions, Derived, Peers, Place, Site, Slowed, Transport};
use serde::Serialize;
use toml::{Table, Value};

use super::ideal::IdealEntry;
use super::mixed::{MixedPart, of_table};
use super::{ReadTable, TransportSpec};
use crate::ran::Ran;
use crate::simulate::{Configs, Task, simulate_family};

/// The transports that a plan may name.
pub struct Registry {
    entries: Vec<Box<dyn Entry>>,
}

/// What documents and the Python package know of a transport.
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
    /// Whether it takes the round trips that every transport with packets takes.
    pub has_round_trips: bool,
    /// Transports that may run in lower classes.
    pub best_effort: Vec<&'static str>,
}

/// A transport whose type is erased.
pub(super) trait Entry: Send + Sync {
    fn about(&self) -> About;
    /// Its packets, if they have a format of their own.
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
    /// Its number in front of packets; `None` where packets have no format of their own.
    fn wire(&self) -> Option<TransportId>;
    /// Whether it sends packets at all.
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
    /// What follows from its parameters.
    fn describe(&self) -> Vec<Derived>;
    /// Runs a task. From here on every type is known.
    fn simulate(&self, task: Task<'_>) -> Ran;
}

impl Registry {
    /// The transports of this repository.
    pub fn builtin() -> Self {
        Self { entries: vec![Box::new(IdealEntry)] }.and::<Builtin>()
    }

    /// Adds those of another catalogue.
    ///
    /// Panics if two have one name or one number: no plan or packet could tell them apart.
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
            None => (entry.about().name, None) == wanted,
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
        let new = entry.about();
        for known in self.entries.iter().filter(|known| known.pair() == entry.pair()) {
            let old = known.about();
            assert!(old.name != new.name, "two transports are called {}", new.name);
            assert!(
                new.wire.is_none() || old.wire != new.wire,
                "{} and {} have the same number {:?}",
                old.name,
                new.name,
                new.wire
            );
        }
        self.entries.push(entry);
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.about().iter().map(|about| about.name)).finish()
    }
}

impl Visitor for Registry {
    fn transport<T: Transport>(&mut self) {
        self.add(Box::new(One::<T>(PhantomData)));
    }

    fn beside<A: Transport, B: Transport>(&mut self) {
        self.add(Box::new(Two::<A, B>(PhantomData)));
    }
}

/// A transport.
struct One<T>(PhantomData<fn() -> T>);

impl<T: Transport> Entry for One<T> {
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

struct OneKeys<T: Transport> {
    preset: String,
    keys: T::Keys,
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
struct Configured<F: Family> {
    configs: Configs<F::Config>,
    buffer_min: Bytes,
    derived: Vec<Derived>,
    wire: Option<TransportId>,
    assumptions: Assumptions,
    slowed: Option<Slowed>,
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

/// Two transports on one network.
struct Two<A, B>(PhantomData<fn() -> (A, B)>);

impl<A: Transport, B: Transport> Entry for Two<A, B> {
    fn about(&self) -> About {
        One::<A>(PhantomData).about()
    }

    fn read(&self, table: &TransportTable) -> Result<Arc<dyn AnyKeys>, BadKey> {
        let preset = table.preset_name::<A::Keys>().to_owned();
        let upper = OneKeys { preset, keys: table.keys()? };
        let lower_table = table.best_effort.clone().unwrap_or_default();
        let lower_table = TransportTable::new(&lower_table).map_err(below)?;
        let preset = lower_table.preset_name::<B::Keys>().to_owned();
        let lower = OneKeys { preset, keys: lower_table.keys().map_err(below)? };
        Ok(Arc::new(TwoKeys::<A, B> { upper, lower, lower_table }))
    }

    fn pair(&self) -> Option<(&'static str, &'static str)> {
        Some((A::NAME, B::NAME))
    }
}

struct TwoKeys<A: Transport, B: Transport> {
    upper: OneKeys<A>,
    lower: OneKeys<B>,
    /// What the plan tells the lower transport of the network.
    lower_table: TransportTable,
}

impl<A: Transport, B: Transport> AnyKeys for TwoKeys<A, B> {
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

    fn framing(&self) -> Framing {
        self.upper.framing()
    }

    fn needs(&self, facts: &FabricFacts) -> FabricNeeds {
        self.upper.needs(facts)
    }

    fn queueing(&self) -> Queueing {
        self.upper.queueing()
    }

    fn configure(&self, site: &Site) -> Result<Arc<dyn Ready>, BadKey> {
        let (upper, lower) = (self.upper.keys.clone(), self.lower.keys.clone());
        let both = Both::configure::<A, B>(
            upper,
            lower,
            site,
            self.lower_table.with_round_trips(&site.facts),
        )?;
        let derived = A::describe(&both.upper);
        let buffer_min = A::buffer_min(&both.upper).max(B::buffer_min(&both.lower));
        let buffer_min = buffer_min.max(self.framing().full()).max(self.lower.framing().full());
        let assumptions = A::assumptions(&both.upper, site).and(B::assumptions(&both.lower, site));
        let assumptions = Assumptions { one_rate: true, one_round_trip: true, ..assumptions };
        let (configs, wire) = (Configs { network: Arc::new(both), by_host: Vec::new() }, None);
        let configured = Configured::<Beside<A, B>> {
            configs,
            buffer_min,
            derived,
            wire,
            assumptions,
            slowed: None,
        };
        Ok(Arc::new(configured))
    }
}
