//! Groups of switches that are all joined (Kim, Dally, Scott, Abts: *Technology-Driven,
//! Highly-Scalable Dragonfly Topology*, ISCA 2008, section 3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, processing, propagation};
use crate::topo::build::{LinkParameters, attach, check_count, trunk};
use crate::topo::{Topology, TopologyError};

/// Groups of switches (Kim et al., ISCA 2008). Those of a group are all joined, and any two groups
/// by links between their switches.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Dragonfly {
    /// Switches of a group, 1 or more (the paper's a).
    #[schemars(range(min = 1, max = 1024))]
    pub switches_per_group: u64,
    /// Hosts at each switch, 1 or more (p).
    #[schemars(range(min = 1, max = 1024))]
    pub hosts_per_switch: u64,
    /// Links of each switch to other groups, 1 or more (h).
    #[schemars(range(min = 1, max = 1024))]
    pub global_links: u64,
    /// Groups, 2 to a h + 1, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
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

impl TopologyKind for Dragonfly {
    fn build(&self) -> Result<Topology, TopologyError> {
        let of = |name, got| match (1..=1024).contains(&got) {
            true => Ok(got as u32),
            false => Err(TopologyError::Count { name, expected: "1 to 1024", got }),
        };
        let switches = of("switches-per-group", self.switches_per_group)?;
        let hosts = of("hosts-per-switch", self.hosts_per_switch)?;
        let global = of("global-links", self.global_links)? * switches;
        let groups = self.groups.unwrap_or(u64::from(global) + 1);
        if !(2..=u64::from(global) + 1).contains(&groups) {
            let expected = "2 to switches-per-group x global-links + 1";
            return Err(TopologyError::Count { name: "groups", expected, got: groups });
        }
        let n_switches = groups * u64::from(switches);
        let n_switches = check_count("groups x switches-per-group", n_switches, 1, "1 to 65536")?;
        let n_hosts = u64::from(n_switches) * u64::from(hosts);
        let n_hosts = check_count("hosts of all groups", n_hosts, 2, "2 to 65536")?;
        let groups = groups as u32;
        let wires = LinkParameters::new(
            self.access_gbps,
            self.core_gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        let mut links = attach(n_hosts, hosts, &wires);
        for group in 0..groups {
            let first = group * switches;
            for a in 0..switches {
                links.extend((a + 1..switches).map(|b| trunk(first + a, first + b, &wires)));
            }
        }
        // Each pair of groups has equally many links. Those of a group are at its switches in turn.
        let per_pair = global / (groups - 1);
        let port = |from: u32, to: u32, link: u32| {
            let number = (to + groups - from - 1) % groups + link * (groups - 1);
            from * switches + number / self.global_links as u32
        };
        for a in 0..groups {
            for b in a + 1..groups {
                links.extend(
                    (0..per_pair).map(|link| trunk(port(a, b, link), port(b, a, link), &wires)),
                );
            }
        }
        Topology::check(n_hosts, n_switches, links, &wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.hosts_per_switch as u32)
    }

    fn hosts_per_pod(&self) -> Option<u32> {
        Some((self.hosts_per_switch * self.switches_per_group) as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::topo::{Node, TopologySpec};

    fn built(keys: &str) -> Result<Topology, TopologyError> {
        toml::from_str::<TopologySpec>(&format!("kind = \"dragonfly\"\n{keys}")).unwrap().build()
    }

    /// The example of the paper (figure 5): p = h = 2 and a = 4 give 9 groups and 72 hosts.
    #[test]
    fn the_example_of_the_paper_has_one_link_between_any_two_groups() {
        let keys = "switches-per-group = 4\nhosts-per-switch = 2\nglobal-links = 2";
        let network = built(keys).unwrap();
        assert_eq!((network.n_hosts(), network.n_switches()), (72, 36));
        let (mut ports, mut pairs) = (BTreeMap::new(), BTreeMap::new());
        for link in network.links() {
            if let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b)
                && a / 4 != b / 4
            {
                *ports.entry(a).or_insert(0) += 1;
                *ports.entry(b).or_insert(0) += 1;
                let (a, b) = (a / 4, b / 4);
                *pairs.entry((a.min(b), a.max(b))).or_insert(0) += 1;
            }
        }
        assert_eq!((ports.len(), pairs.len()), (36, 36));
        assert!(ports.values().all(|&links| links == 2), "{ports:?}");
        assert!(pairs.values().all(|&links| links == 1), "{pairs:?}");
    }

    #[test]
    fn fewer_groups_have_several_links_for_each_pair() {
        let keys = "switches-per-group = 4\nhosts-per-switch = 1\nglobal-links = 2\ngroups = 3";
        let between = |link: &&crate::topo::Link| match (link.a, link.b) {
            (Node::Switch(a), Node::Switch(b)) => a / 4 != b / 4,
            _ => false,
        };
        assert_eq!(built(keys).unwrap().links().iter().filter(between).count(), 12);
        let error = built(&keys.replace("groups = 3", "groups = 10")).unwrap_err().to_string();
        let expected = "groups: expected 2 to switches-per-group x global-links + 1, got 10";
        assert_eq!(error, expected);
    }
}
