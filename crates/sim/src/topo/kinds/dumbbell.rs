//! Two switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, processing, propagation};
use crate::topo::build::{LinkParameters, attach, check_count, trunk};
use crate::topo::{Topology, TopologyError};

/// Two switches with hosts and one link between them.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Dumbbell {
    /// Hosts on each side, 1 or more.
    #[schemars(range(min = 1, max = 32768))]
    pub hosts_per_side: u64,
    /// Rate of host links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub access_gbps: f64,
    /// Rate of the link in the middle.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub core_gbps: f64,
    /// Propagation of every link.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "propagation")]
    pub propagation_ns: f64,
    /// Processing in every switch.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub switch_ns: f64,
    /// Processing in every host.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub host_ns: f64,
}

impl TopologyKind for Dumbbell {
    fn build(&self) -> Result<Topology, TopologyError> {
        let side = check_count("hosts-per-side", self.hosts_per_side, 1, "1 to 32768")?;
        check_count("hosts", u64::from(side) * 2, 2, "2 to 65536")?;
        let wires = LinkParameters::new(
            self.access_gbps,
            self.core_gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        let mut links = attach(2 * side, side, &wires);
        links.push(trunk(0, 1, &wires));
        Topology::check(2 * side, 2, links, &wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.hosts_per_side as u32)
    }
}
