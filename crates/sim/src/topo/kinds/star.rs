//! One switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, processing, propagation};
use crate::topo::build::{LinkParameters, attach, check_count};
use crate::topo::{Topology, TopologyError};

/// All hosts at one switch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Star {
    /// Hosts, 2 or more.
    #[schemars(range(min = 2, max = 65536))]
    pub hosts: u64,
    /// Rate of host links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub access_gbps: f64,
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

impl TopologyKind for Star {
    fn build(&self) -> Result<Topology, TopologyError> {
        let hosts = check_count("hosts", self.hosts, 2, "2 to 65536")?;
        let wires = LinkParameters::new(
            self.access_gbps,
            self.access_gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        Topology::check(hosts, 1, attach(hosts, hosts, &wires), &wires)
    }
}
