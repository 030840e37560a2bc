//! Two tiers of switches, in one plane or in several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, core, is_one, one, processing, propagation};
use crate::topo::build::{LinkParameters, TwoTiers, check_count, check_hosts};
use crate::topo::{Topology, TopologyError};

/// Two tiers: every rack's switch is joined to every spine of its plane.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct LeafSpine {
    /// Racks, 1 or more.
    #[schemars(range(min = 1, max = 65536))]
    pub racks: u64,
    /// Hosts in each rack, 1 or more.
    #[schemars(range(min = 1, max = 65536))]
    pub hosts_per_rack: u64,
    /// Spine switches, 1 or more.
    #[schemars(range(min = 1, max = 65536))]
    pub spines: u64,
    /// Leaf switches of a rack, to each of which every host of it has a link.
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "one")]
    pub rails: u64,
    /// Networks that the spines are divided into, a divisor of `rails` and of `spines`. Each has
    /// equally many leaf switches of every rack and equally many spines.
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub planes: u64,
    /// Rate of host links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub access_gbps: f64,
    /// Rate of links between switches. Oversubscription is hosts_per_rack x access over
    /// spines x core.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "core")]
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

impl TopologyKind for LeafSpine {
    fn build(&self) -> Result<Topology, TopologyError> {
        let racks = check_count("racks", self.racks, 1, "1 to 65536")?;
        let per_rack = check_count("hosts-per-rack", self.hosts_per_rack, 1, "1 to 65536")?;
        let spines = check_count("spines", self.spines, 1, "1 to 65536")?;
        check_hosts("racks x hosts-per-rack", u64::from(racks) * u64::from(per_rack))?;
        if !(1..=64).contains(&self.rails) {
            let (name, expected) = ("rails", "1 to 64");
            return Err(TopologyError::Count { name, expected, got: self.rails });
        }
        check_count("racks x rails", u64::from(racks) * self.rails, 1, "1 to 65536")?;
        let divides = |n: u64| self.planes > 0 && n.is_multiple_of(self.planes);
        if !divides(self.rails) || !divides(self.spines) {
            let (name, expected) = ("planes", "a divisor of rails and of spines");
            return Err(TopologyError::Count { name, expected, got: self.planes });
        }
        let wires = LinkParameters::new(
            self.access_gbps,
            self.core_gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        let (rails, planes) = (self.rails as u32, self.planes as u32);
        TwoTiers { racks, rails, planes, hosts_per_rack: per_rack, spines }.build(&wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.hosts_per_rack as u32)
    }
}
