//! The `transport` table: which transport runs, and with which parameters.
//!
//! This module knows no transport by name: a [`Registry`] holds those that plans may name.

mod ideal;
mod registry;
mod written;

use std::fmt;
use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::FabricNeeds;
use rampmeter_core::{FabricFacts, Queueing};
use rampmeter_metrics::ideal::LastPacket;
use rampmeter_proto::keys::BadKey;
use rampmeter_proto::transport::{Derived, Site};
use rampmeter_proto::{Framing, Padding};
use serde::{Serialize, Serializer};
use toml::Table;

pub use registry::{About, Registry};
pub use written::Written;

use crate::cut::Cut;
use registry::{AnyKeys, Ready};

/// A `transport` table that has been read.
#[derive(Clone)]
pub struct TransportSpec {
    written: Written,
    keys: Arc<dyn AnyKeys>,
}

/// A transport with its parameters for one network.
#[derive(Clone)]
pub(crate) struct ValidTransport {
    pub(crate) ready: Arc<dyn Ready>,
    /// What it needs of the fabric of that network.
    pub(crate) needs: FabricNeeds,
}

impl TransportSpec {
    /// The name of the transport.
    pub fn name(&self) -> &str {
        &self.written.name
    }

    pub(crate) fn cut(&self) -> Cut {
        let Framing { payload, header, padding } = self.keys.framing();
        let last = match padding {
            Padding::Exact => LastPacket::OwnSize,
            Padding::Full => LastPacket::Padded,
        };
        Cut { payload, header, last }
    }

    /// What the transport needs of a fabric, which is told as the plan tells it.
    pub(crate) fn needs(&self, facts: &FabricFacts) -> FabricNeeds {
        self.keys.needs(&self.written.told(facts))
    }

    /// How the ports of its switches queue.
    pub(crate) fn queueing(&self) -> Queueing {
        self.keys.queueing()
    }

    /// Checks the parameters and derives what follows from them at `site`.
    pub(crate) fn configure(&self, site: &Site) -> Result<ValidTransport, BadKey> {
        let facts = self.written.told(&site.facts);
        let site = Site { facts, ..site.clone() };
        Ok(ValidTransport { ready: self.keys.configure(&site)?, needs: self.keys.needs(&facts) })
    }

    /// The table with the values of all keys.
    pub fn table(&self) -> Table {
        let (preset, keys) = self.keys.values();
        let mut table = Table::new();
        table.insert("name".to_owned(), self.written.name.clone().into());
        table.insert("preset".to_owned(), preset.into());
        let Written { control_rtt_us, data_rtt_us, .. } = self.written;
        for (key, us) in [("control-rtt-us", control_rtt_us), ("data-rtt-us", data_rtt_us)] {
            table.extend(us.map(|us| (key.to_owned(), us.into())));
        }
        table.extend(keys);
        table
    }
}

impl fmt::Debug for TransportSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table())
    }
}

impl PartialEq for TransportSpec {
    fn eq(&self, other: &Self) -> bool {
        self.table() == other.table()
    }
}

impl Serialize for TransportSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.table().serialize(to)
    }
}

impl ValidTransport {
    /// Its number in front of packets; `None` for those that have none.
    pub(crate) fn wire(&self) -> Option<TransportId> {
        self.ready.wire()
    }

    /// What follows from its parameters.
    pub(crate) fn describe(&self) -> Vec<Derived> {
        self.ready.describe()
    }
}

impl fmt::Debug for ValidTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.describe()).finish()
    }
}
