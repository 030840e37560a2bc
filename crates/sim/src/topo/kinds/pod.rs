//! A pod of a fat-tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, access, delay, processing, propagation, rate};
use crate::topo::build::LinkParameters;
use crate::topo::{Topology, TopologyError};

/// A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Pod {
    /// Ports a switch, even, 4 to 32.
    #[schemars(range(min = 2, max = 64))]
    pub k: u64,
    /// Rate of all links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub gbps: f64,
    /// Propagation of every link; of hosts' and arbiters' the least.
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
    /// By how much the propagation of hosts' and arbiters' links is longer at most.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default)]
    pub cable_spread_ns: f64,
}

impl Kind for Pod {
    fn build(&self) -> Result<Topology, TopologyError> {
        let k = self.k;
        if !(4..=32).contains(&k) || !k.is_multiple_of(2) {
            let expected = "an even number from 4 to 32";
            return Err(TopologyError::Count { name: "k", expected, got: k });
        }
        rate("gbps", self.gbps)?;
        let spread = delay("cable-spread-ns", self.cable_spread_ns)?;
        let wires = LinkParameters::new(
            self.gbps,
            self.gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        Topology::new_pod(k as u32, spread, &wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.k as u32 / 2)
    }
}
