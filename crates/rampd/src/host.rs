//! The transport of a node: found by name in a catalogue, configured for real hosts.

use rampmeter_core::envelope::TransportId;
use rampmeter_core::{Bytes, FabricFacts};
use rampmeter_exp::Written;
use rampmeter_proto::catalogue::{Action, Catalogue, by_name, names};
use rampmeter_proto::keys::BadKey;
use rampmeter_proto::transport::{Derived, Place, Site, Transport};
use toml::Table;

/// The transport of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostTransport {
    /// The table of the configuration.
    pub(crate) written: Written,
    /// The network, as the transport is told.
    pub(crate) site: Site,
    /// Its number in front of packets.
    pub(crate) wire: TransportId,
    /// Central controllers that it needs.
    pub(crate) arbiters: u32,
    /// What follows from its parameters.
    pub(crate) derived: Vec<Derived>,
}

impl HostTransport {
    /// Reads a `transport` table for hosts whose packets are `payload` long and carry `header`
    /// bytes more.
    ///
    /// # Errors
    /// An unknown name or key, or a value that cannot be used between hosts.
    pub(crate) fn read<C: Catalogue>(
        table: &Table,
        facts: &FabricFacts,
        payload: Bytes,
        header: Bytes,
    ) -> Result<Self, BadKey> {
        let written = Written::new(table)?;
        for key in ["payload-bytes", "header-bytes"] {
            if let Some(value) = written.keys.get(key) {
                return Err(BadKey::new(key, "left out: hosts know it", value));
            }
        }
        if written.best_effort.is_some() {
            return Err(BadKey::new("best-effort", "left out between hosts", "a table"));
        }
        let name = written.name.clone();
        let facts = written.told(facts);
        let place = Place::Hosts { payload, header };
        let site = Site { facts, place, lower: None };
        by_name::<C, _>(&name, Configure { written, site }).unwrap_or_else(|| {
            let expected = format!("one of {}", names::<C>().join(", "));
            Err(BadKey::new("name", expected, format!("{name:?}")))
        })
    }

    /// The configuration of `T`, whose name this transport has.
    ///
    /// # Errors
    /// A value that cannot be used; [`HostTransport::read`] has found none.
    pub(crate) fn config<T: Transport>(&self) -> Result<T::Config, BadKey> {
        T::configure(self.written.keys()?, &self.site)
    }
}

struct Configure {
    written: Written,
    site: Site,
}

impl Action for Configure {
    type Output = Result<HostTransport, BadKey>;

    fn run<T: Transport>(self) -> Self::Output {
        let Self { written, site } = self;
        let keys: T::Keys = written.keys()?;
        let arbiters = T::needs(&keys, &site.facts).arbiters.len() as u32;
        let derived = T::describe(&T::configure(keys, &site)?);
        Ok(HostTransport { written, site, wire: T::WIRE, arbiters, derived })
    }
}
