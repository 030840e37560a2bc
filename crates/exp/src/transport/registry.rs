//! The transports that a plan may name.
//!
//! A [`Registry`] erases the types of transports: [`Registry::read`] finds one by name, once a run,
//! and everything behind `RunnableTransport::simulate` is compiled for that transport.

use std::fmt;

use rampmeter_proto::catalogue::{Builtin, Catalogue, Visitor, unknown};
use rampmeter_proto::coexistence::prefix_lower_key;
use rampmeter_proto::keys::{BadKey, TransportTable};
use rampmeter_proto::registered::RegisteredTransport;
use rampmeter_types::wire::WireFormat;
use toml::{Table, Value};

use super::erased::{RegistryEntry, TransportInfo};
use super::mixed::of_table;
use super::spec::TransportSpec;
use super::table::ReadTable;
use super::{coexisting, ideal, single};

/// The transports that a plan may name.
pub struct Registry {
    entries: Vec<RegistryEntry>,
}

impl Registry {
    /// Returns the transports of this repository.
    pub fn builtin() -> Self {
        Self { entries: vec![ideal::entry()] }.with_catalogue::<Builtin>()
    }

    /// Returns two transports, which tests of plans need, so that their build has no others.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self { entries: vec![ideal::entry()] }.with::<rampmeter_proto::tcp::DctcpTransport>()
    }

    /// Adds those of another catalogue.
    ///
    /// Panics if two have one name or one number: no plan or packet could distinguish them.
    #[must_use]
    pub fn with_catalogue<C: Catalogue>(mut self) -> Self {
        C::visit(&mut self);
        self
    }

    /// Adds one transport; see [`Registry::with_catalogue`].
    #[must_use]
    pub fn with<T: RegisteredTransport>(mut self) -> Self {
        self.transport::<T>();
        self
    }

    /// Returns all transports, in the order of registration.
    pub fn about(&self) -> Vec<TransportInfo> {
        let lower = |name: &str| {
            let of_name = self.entries.iter().filter(|entry| entry.name == name);
            of_name.filter_map(|entry| entry.lower).collect()
        };
        let about = self.single().map(|entry| (entry.about)());
        about.map(|about| TransportInfo { best_effort: lower(about.name), ..about }).collect()
    }

    /// Returns the packets of all transports that have some.
    pub fn wires(&self) -> Vec<WireFormat> {
        self.entries.iter().filter_map(|entry| (entry.wire)()).collect()
    }

    /// Reads the `transport` table, or the tables of several transports that share the network.
    ///
    /// # Errors
    /// A name or key is unknown, or a value cannot be used. Keys are those of the table,
    /// after its place if there are several.
    pub fn read(&self, value: &Value) -> Result<TransportSpec, BadKey> {
        let tables = match value {
            Value::Table(table) => {
                let read = self.read_table(table)?;
                if let Some(class) = read.table.class {
                    let expected = "several transports in the plan";
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
            Some(table) => Some(TransportTable::new(table).map_err(prefix_lower_key)?),
        };
        let name = table.name.as_str();
        let lower = lower.as_ref().map(|lower| lower.name.as_str());
        let is_wanted = |entry: &&RegistryEntry| entry.name == name && entry.lower == lower;
        let found = self.entries.iter().find(is_wanted);
        let Some(entry) = found else { return Err(self.unknown(name, lower)) };
        let keys = (entry.read)(&table)?;
        Ok(ReadTable { table, keys })
    }

    fn unknown(&self, name: &str, lower: Option<&str>) -> BadKey {
        let about = self.about();
        let names: Vec<&str> = about.iter().map(|about| about.name).collect();
        let found = about.iter().find(|about| about.name == name);
        unknown(name, lower, &names, found.map_or(&[], |about| &about.best_effort))
    }

    /// Entries of one transport.
    fn single(&self) -> impl Iterator<Item = &RegistryEntry> {
        self.entries.iter().filter(|entry| entry.lower.is_none())
    }

    fn add(&mut self, entry: RegistryEntry) {
        let number = |entry: &RegistryEntry| (entry.wire)().map(|wire| wire.id);
        let (name, id) = (entry.name, number(&entry));
        for known in self.entries.iter().filter(|known| known.lower == entry.lower) {
            let old = known.name;
            assert!(old != name, "two transports are called {name}");
            assert!(
                id.is_none() || number(known) != id,
                "{old} and {name} have the same number {id:?}"
            );
        }
        self.entries.push(entry);
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.single().map(|entry| entry.name)).finish()
    }
}

impl Visitor for Registry {
    fn transport<T: RegisteredTransport>(&mut self) {
        self.add(single::entry::<T>());
    }

    fn coexisting<A: RegisteredTransport, B: RegisteredTransport>(&mut self) {
        self.add(coexisting::entry::<A, B>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transport that is slow to describe, as all are.
    fn undescribed() -> RegistryEntry {
        RegistryEntry {
            name: "undescribed",
            lower: None,
            wire: || None,
            about: || panic!("a plan needs no description of the transports that it does not name"),
            read: |_| unreachable!("no plan names it"),
        }
    }

    #[test]
    fn a_transport_is_found_without_describing_others() {
        let entries = vec![undescribed(), ideal::entry()];
        let table = toml::toml! { name = "ideal" };
        assert!(Registry { entries }.read(&Value::Table(table)).is_ok());
    }
}
