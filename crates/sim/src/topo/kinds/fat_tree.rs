//! Three tiers of switches with equal numbers of ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, processing, propagation};
use crate::topo::build::{LinkParameters, attach, trunk};
use crate::topo::{Topology, TopologyError};

/// Three tiers of k-port switches, k^2/4 hosts in each pod.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct FatTree {
    /// Ports per switch, even, 2 or more.
    #[schemars(range(min = 2, max = 64))]
    pub k: u64,
    /// Pods, 2 to k; default: k.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u64>,
    /// Rate of host links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub access_gbps: f64,
    /// Rate of links between switches.
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

impl TopologyKind for FatTree {
    fn build(&self) -> Result<Topology, TopologyError> {
        let k = self.k;
        if !(2..=64).contains(&k) || !k.is_multiple_of(2) {
            let expected = "an even number from 2 to 64";
            return Err(TopologyError::Count { name: "k", expected, got: k });
        }
        let pods = self.pods.unwrap_or(k);
        if !(2..=k).contains(&pods) {
            let expected = "2 to k";
            return Err(TopologyError::Count { name: "pods", expected, got: pods });
        }
        let wires = LinkParameters::new(
            self.access_gbps,
            self.core_gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        fat_tree(k as u32, pods as u32, &wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.k as u32 / 2)
    }

    fn hosts_per_pod(&self) -> Option<u32> {
        Some((self.k * self.k / 4) as u32)
    }
}

/// Returns a fat-tree of three tiers of `k`-port switches. It has `pods` pods, `k` at most, of k/2
/// edge and k/2 aggregation switches with (k/2)^2 hosts each, and (k/2)^2 core switches.
fn fat_tree(k: u32, pods: u32, wires: &LinkParameters) -> Result<Topology, TopologyError> {
    let half = k / 2;
    let (n_edge, n_hosts) = (pods * half, pods * half * half);
    let mut links = attach(n_hosts, half, wires);
    for pod in 0..pods {
        for edge in 0..half {
            for agg in 0..half {
                links.push(trunk(pod * half + edge, n_edge + pod * half + agg, wires));
            }
        }
    }
    for pod in 0..pods {
        for agg in 0..half {
            for core in 0..half {
                let core = 2 * n_edge + agg * half + core;
                links.push(trunk(n_edge + pod * half + agg, core, wires));
            }
        }
    }
    Topology::check(n_hosts, 2 * n_edge + half * half, links, wires)
}
