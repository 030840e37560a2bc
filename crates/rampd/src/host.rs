//! The transport of a node: looked up by name in a catalogue, and configured for real hosts.

use rampmeter_proto::catalogue::{Action, Catalogue, by_name};
use rampmeter_proto::coexistence::{CoexistingConfig, combine_wire_ids, prefix_lower_key};
use rampmeter_proto::keys::{BadKey, PacketSizes, TransportTable};
use rampmeter_proto::registered::{Deployment, DerivedValue, RegisteredTransport, Site};
use rampmeter_types::FabricFacts;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Need, Spray};
use toml::Table;

/// The transport of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostTransport {
    /// Table of the configuration.
    pub(crate) table: TransportTable,
    /// Table of the transport in lower classes, if there is one.
    lower: Option<TransportTable>,
    /// Facts of the network for the transport.
    pub(crate) site: Site,
    /// Number of the transport on the wire.
    pub(crate) wire: TransportId,
    /// Number of central controllers that it needs.
    pub(crate) arbiters: u32,
    /// Path choice of its packets; with a transport in lower classes, both use the upper one's.
    pub(crate) spray: Spray,
    /// Parameters derived from its keys.
    pub(crate) derived: Vec<DerivedValue>,
}

impl HostTransport {
    /// Reads a `transport` table for hosts with such packets.
    ///
    /// # Errors
    /// An unknown name or key, or a value that is invalid on hosts.
    pub(crate) fn read<C: Catalogue>(
        table: &Table,
        facts: &FabricFacts,
        packet: PacketSizes,
    ) -> Result<Self, BadKey> {
        let table = take_apart(table)?;
        let lower =
            table.best_effort.as_ref().map(|table| take_apart(table).map_err(prefix_lower_key));
        let lower = lower.transpose()?;
        let facts = table.with_round_trips(facts);
        let deployment = Deployment::Hosts(packet);
        let site = Site { facts, deployment, lower: None };
        let (name, lower_name) = (table.name.clone(), lower.as_ref().map(|l| l.name.clone()));
        let configure = Configure { table, lower, site };
        by_name::<C, _>(&name, lower_name.as_deref(), configure)?
    }

    /// Runs an action with the transport, or with both.
    ///
    /// # Errors
    /// A name that is not in `C`, which [`HostTransport::read`] has checked.
    pub(crate) fn find<C: Catalogue, A: Action>(&self, action: A) -> Result<A::Output, BadKey> {
        let lower = self.lower.as_ref().map(|lower| lower.name.as_str());
        by_name::<C, A>(&self.table.name, lower, action)
    }

    /// Returns the configuration of `T`, whose name this transport has.
    ///
    /// # Errors
    /// An invalid value, which [`HostTransport::read`] has checked.
    pub(crate) fn config<T: RegisteredTransport>(&self) -> Result<T::Config, BadKey> {
        T::configure(self.table.keys()?, &self.site)
    }

    /// Returns the configurations of `U` and, in lower classes, `L`, whose names these transports
    /// have.
    ///
    /// # Errors
    /// An invalid value, which [`HostTransport::read`] has checked.
    pub(crate) fn both<U: RegisteredTransport, L: RegisteredTransport>(
        &self,
    ) -> Result<CoexistingConfig<U::Config, L::Config>, BadKey> {
        both::<U, L>(&self.table, self.lower.as_ref(), &self.site)
    }
}

/// Splits the table of a transport.
fn take_apart(table: &Table) -> Result<TransportTable, BadKey> {
    let table = TransportTable::new(table)?;
    for key in ["payload-bytes", "header-bytes"] {
        if let Some(value) = table.keys.get(key) {
            return Err(BadKey::new(key, "no value, as hosts know it", value));
        }
    }
    Ok(table)
}

fn both<U: RegisteredTransport, L: RegisteredTransport>(
    upper: &TransportTable,
    lower: Option<&TransportTable>,
    site: &Site,
) -> Result<CoexistingConfig<U::Config, L::Config>, BadKey> {
    let lower = lower.ok_or_else(|| BadKey::new("best-effort", L::NAME, "none"))?;
    let (measured, keys) =
        (lower.with_round_trips(&site.facts), lower.keys().map_err(prefix_lower_key)?);
    CoexistingConfig::configure::<U, L>(upper.keys()?, keys, site, measured)
}

/// Returns the path choice that a transport is designed for.
fn preferred_spray(need: Need<Spray>) -> Spray {
    match need {
        Need::Prefer(spray) | Need::Require(spray) => spray,
        Need::Any => Spray::Random,
    }
}

struct Configure {
    table: TransportTable,
    lower: Option<TransportTable>,
    site: Site,
}

impl Action for Configure {
    type Output = Result<HostTransport, BadKey>;

    fn run<T: RegisteredTransport>(self) -> Self::Output {
        let Self { table, lower, site } = self;
        let keys: T::Keys = table.keys()?;
        let needs = T::needs(&keys, &site.facts);
        let (arbiters, spray) = (needs.arbiters.len() as u32, preferred_spray(needs.spray));
        let derived = T::describe(&T::configure(keys, &site)?);
        Ok(HostTransport { table, lower, site, wire: T::WIRE, arbiters, spray, derived })
    }

    fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(self) -> Self::Output {
        let Self { table, lower, site } = self;
        let both = both::<U, L>(&table, lower.as_ref(), &site)?;
        let expected = "a transport with a number below 8";
        let wire = combine_wire_ids(U::WIRE, L::WIRE)
            .ok_or_else(|| BadKey::new("best-effort.name", expected, L::NAME))?;
        let needs = U::needs(&table.keys()?, &site.facts);
        let (of_upper, spray) = (needs.arbiters.len() as u32, preferred_spray(needs.spray));
        let of_lower = lower.as_ref().map_or(Ok(0), |lower| {
            let keys: L::Keys = lower.keys().map_err(prefix_lower_key)?;
            Ok(L::needs(&keys, &site.facts).arbiters.len() as u32)
        });
        let arbiters = of_upper + of_lower?;
        let derived = U::describe(&both.upper);
        Ok(HostTransport { table, lower, site, wire, arbiters, spray, derived })
    }
}
