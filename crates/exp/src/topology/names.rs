//! The names of nodes and ports in results: hosts `h0`, switches `s0`, arbiters `a0`; a port is
//! named by its two ends, `h0>s0`. The second of several links between two nodes is `h0>s0.2`.
//! Names in the plan or the topology's file take precedence.

use std::collections::BTreeMap;

use rampmeter_sim::topo::{Link, Node};
use rampmeter_sim::{Target, Topology, TopologySpec, topologies};
use rampmeter_workload::trace::HostNames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Problem;

/// A host or a switch in a plan: its name, such as `gpu0` or `h3`, or its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(untagged, expecting = "expected the name or the number of a node")]
pub enum NodeName {
    /// Number of the node.
    Number(u32),
    /// Name of the node.
    Name(String),
}

impl std::fmt::Display for NodeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// Returns the first `n` of some names, and dots if there are more.
pub(crate) fn sample(names: impl IntoIterator<Item = String>, n: usize) -> String {
    let mut names = names.into_iter();
    let mut first: Vec<String> = names.by_ref().take(n).collect();
    first.extend(names.next().map(|_| "...".to_owned()));
    first.join(", ")
}

/// The `names` table: the user's names of hosts and switches, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NamesSpec {
    /// Names of all hosts; `h0`, `h1`, ... if left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Names of all switches; `s0`, `s1`, ... if left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
}

impl NamesSpec {
    /// Returns true if there are no names.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.switches.is_empty()
    }

    /// Returns the name of a node.
    pub(crate) fn node(&self, node: Node) -> String {
        let own = match node {
            Node::Host(host) => self.hosts.get(host as usize),
            Node::Switch(switch) => self.switches.get(switch as usize),
            Node::Arbiter(_) => None,
        };
        own.cloned().unwrap_or_else(|| node.to_string())
    }

    /// Returns the name of the node that has the name `default` in networks without names: `h0`.
    pub(crate) fn custom_name(&self, default: &str) -> String {
        let number = || default.get(1..)?.parse::<u32>().ok();
        match (default.as_bytes().first(), number()) {
            (Some(b'h'), Some(number)) => self.node(Node::Host(number)),
            (Some(b's'), Some(number)) => self.node(Node::Switch(number)),
            _ => default.to_owned(),
        }
    }

    /// Returns the number of a host or an arbiter; arbiters are numbered after hosts.
    ///
    /// # Errors
    /// The values that were expected.
    pub(crate) fn station(&self, name: &NodeName, topology: &Topology) -> Result<u32, String> {
        let n_hosts = topology.n_hosts();
        self.number(name, n_hosts + topology.n_arbiters(), "host", |number| {
            match number.checked_sub(n_hosts) {
                Some(arbiter) => Node::Arbiter(arbiter),
                None => Node::Host(number),
            }
        })
    }

    /// Returns the number of a host.
    ///
    /// # Errors
    /// The values that were expected.
    pub(crate) fn host(&self, name: &NodeName, topology: &Topology) -> Result<u32, String> {
        self.number(name, topology.n_hosts(), "host", Node::Host)
    }

    /// Returns the number of a switch.
    ///
    /// # Errors
    /// The values that were expected.
    pub(crate) fn switch(&self, name: &NodeName, topology: &Topology) -> Result<u32, String> {
        self.number(name, topology.n_switches(), "switch", Node::Switch)
    }

    /// Returns the number below `count` of a node. `node` makes a node of a number.
    fn number(
        &self,
        name: &NodeName,
        count: u32,
        kind: &str,
        node: impl Fn(u32) -> Node,
    ) -> Result<u32, String> {
        let found = match name {
            NodeName::Number(number) => Some(*number).filter(|&number| number < count),
            NodeName::Name(name) => {
                let own = (0..count).find(|&number| self.node(node(number)) == *name);
                // A node may have the name that another one has in networks without names.
                own.or_else(|| (0..count).find(|&number| node(number).to_string() == *name))
            }
        };
        found.ok_or_else(|| match count {
            0 => format!("no {kind}, as there is none"),
            _ => {
                let (first, last) = (self.node(node(0)), self.node(node(count - 1)));
                format!("a number below {count} or a name, {first} to {last}")
            }
        })
    }

    /// Returns the name of the failing node or link.
    pub(crate) fn target(&self, topology: &Topology, target: Target) -> String {
        match target {
            Target::Link(link) => {
                let ends = topology.links()[link as usize];
                format!("{}-{}", self.node(ends.a), self.node(ends.b))
            }
            Target::Host(host) => self.node(Node::Host(host)),
            Target::Switch(switch) => self.node(Node::Switch(switch)),
            Target::Arbiter(arbiter) => self.node(Node::Arbiter(arbiter)),
        }
    }

    /// Returns the link between two named nodes; of several between the same ends `a-b#1` is the
    /// second. `None` if the name is none of such a link.
    pub(crate) fn link(&self, topology: &Topology, name: &str) -> Option<u32> {
        self.link_from(topology, name).map(|(number, _)| number).ok()
    }

    /// Returns the link between two named nodes, and true if its second end is named first.
    ///
    /// # Errors
    /// The expected values. It fails if no link has the name, or if links between several
    /// pairs of nodes have it, as `a-b-c` may. It fails too if the number after `#` is too large.
    pub(crate) fn link_from(&self, topology: &Topology, name: &str) -> Result<(u32, bool), String> {
        let (ends, which) = match name.rsplit_once('#') {
            Some((ends, which)) => (ends, which.parse::<usize>().ok()),
            None => (name, Some(0)),
        };
        let is = |a: &str, b: &str| {
            ends.strip_prefix(a).and_then(|rest| rest.strip_prefix('-')) == Some(b)
        };
        let find = |name: &dyn Fn(Node) -> String| -> Vec<(u32, bool)> {
            let turned = |(number, link): (u32, &Link)| {
                let (a, b) = (name(link.a), name(link.b));
                let is_there = is(&a, &b);
                (is_there || is(&b, &a)).then_some((number, !is_there))
            };
            (0..).zip(topology.links()).filter_map(turned).collect()
        };
        let own = find(&|node| self.node(node));
        let found = if own.is_empty() { find(&|node| node.to_string()) } else { own };
        let mut readings: BTreeMap<(Node, Node), u32> = BTreeMap::new();
        for &(number, is_turned) in &found {
            let link = topology.links()[number as usize];
            let ends = if is_turned { (link.b, link.a) } else { (link.a, link.b) };
            readings.entry(ends).or_insert(number);
        }
        if readings.len() > 1 {
            let reading = |(&(a, b), number): (&(Node, Node), &u32)| {
                format!("{} to {} ({number})", self.node(a), self.node(b))
            };
            let readings: Vec<String> = readings.iter().map(reading).collect();
            let readings = readings.join(" or ");
            return Err(format!("the number of one link, as the name may be {readings}"));
        }
        match which.and_then(|which| found.get(which)) {
            Some(&link) => Ok(link),
            None if found.is_empty() => {
                let n_links = topology.links().len() as u32;
                let names = (0..n_links).map(|link| self.target(topology, Target::Link(link)));
                Err(format!("the ends of a link of the topology ({})", sample(names, 3)))
            }
            None if found.len() == 1 => Err(format!("{ends}, as there is one such link")),
            None => Err(format!("{ends}#0 to {ends}#{}", found.len() - 1)),
        }
    }

    /// Returns the names for traces.
    pub(crate) fn host_names(&self) -> HostNames {
        let mut names = HostNames::default();
        for (host, name) in (0..).zip(&self.hosts) {
            names.insert(name, Some(host));
        }
        for name in &self.switches {
            names.insert(name, None);
        }
        names
    }

    /// Adds names of the switches of hosts that forward, if all nodes have names: `gpu0.switch`.
    pub(crate) fn add_forwarding(&mut self, spec: &TopologySpec, topology: &Topology) {
        let TopologySpec::Links(topologies::Links { hosts_forward: true, switches, .. }) = *spec
        else {
            return;
        };
        if self.is_empty() || self.switches.len() as u64 != switches {
            return;
        }
        // The link of such a host is after all others, in the order of the switches.
        for link in topology.links() {
            if let (Node::Host(_), Node::Switch(switch)) = (link.a, link.b)
                && u64::from(switch) >= switches
            {
                let name = format!("{}.switch", self.node(link.a));
                self.switches.push(name);
            }
        }
    }

    /// Checks that there is a name for each node, and none twice.
    pub(crate) fn check(&self, topology: &Topology) -> Result<(), (&'static str, Problem)> {
        let counts = [
            ("hosts", &self.hosts, topology.n_hosts()),
            ("switches", &self.switches, topology.n_switches()),
        ];
        for (key, names, n) in counts {
            if !names.is_empty() && names.len() != n as usize {
                return Err((key, Problem::unexpected(format!("{n} names"), names.len())));
            }
            let is_bad = |name: &&String| name.trim().is_empty() || name.contains(char::is_control);
            if let Some(name) = names.iter().find(is_bad) {
                let expected = "names with a letter or digit and no line breaks";
                return Err((key, Problem::unexpected(expected, format!("{name:?}"))));
            }
        }
        if self.is_empty() {
            return Ok(());
        }
        // Nodes without names of the user have others, such as `a0`, which count as well.
        let hosts = (0..topology.n_hosts()).map(Node::Host);
        let arbiters = (0..topology.n_arbiters()).map(Node::Arbiter);
        let switches = (0..topology.n_switches()).map(Node::Switch);
        let mut seen = std::collections::BTreeSet::new();
        for name in hosts.chain(arbiters).chain(switches).map(|node| self.node(node)) {
            if seen.contains(&name) {
                let key = if self.switches.contains(&name) { "switches" } else { "hosts" };
                return Err((
                    key,
                    Problem::unexpected("each name once", format!("{name:?} twice")),
                ));
            }
            seen.insert(name);
        }
        Ok(())
    }
}

/// A port of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortName {
    /// The node that it belongs to: hosts, then arbiters, then switches.
    pub(crate) node: u32,
    /// Index of the link in the topology.
    pub(crate) link: u32,
    /// Far end, with the number of the link if it is not the first: `s0`, `s0.2`.
    pub(crate) to: String,
}

/// The names of a network.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Names of nodes: hosts, then arbiters, then switches.
    pub(crate) nodes: Vec<String>,
    /// Names of ports, numbered as in the fabric.
    pub(crate) ports: Vec<PortName>,
    /// Ends of links, as in `h0-s0`, by their index in the topology.
    pub(crate) links: Vec<String>,
    /// Number of nodes that are hosts or arbiters.
    pub(crate) n_stations: u32,
}

impl Names {
    /// Returns the names of `topology`, whose nodes the user calls by `own` names.
    pub(crate) fn new(topology: &Topology, own: &NamesSpec) -> Self {
        let (n_hosts, n_arbiters) = (topology.n_hosts(), topology.n_arbiters());
        let n_stations = n_hosts + n_arbiters;
        let nodes = (0..n_hosts)
            .map(Node::Host)
            .chain((0..n_arbiters).map(Node::Arbiter))
            .chain((0..topology.n_switches()).map(Node::Switch));
        let nodes = nodes.map(|node| own.node(node)).collect();
        let number = |node| match node {
            Node::Host(host) => host,
            Node::Arbiter(arbiter) => n_hosts + arbiter,
            Node::Switch(switch) => n_stations + switch,
        };
        let n_links = topology.links().len() as u32;
        let links = (0..n_links).map(|link| own.target(topology, Target::Link(link))).collect();
        let mut names = Self { nodes, links, ports: Vec::new(), n_stations };
        let routes = topology.routes();
        let mut seen: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for port in 0..routes.n_ports() as u32 {
            let (link, to) = routes.end(port);
            let ends = topology.links()[link as usize];
            let node = number(if ends.a == to { ends.b } else { ends.a });
            let count = seen.entry((node, number(to))).or_default();
            *count += 1;
            let to = &names.nodes[number(to) as usize];
            let to = if *count == 1 { to.clone() } else { format!("{to}.{count}") };
            names.ports.push(PortName { node, link, to });
        }
        names
    }

    /// Returns the name of a port.
    pub(crate) fn port(&self, port: u32) -> String {
        let PortName { node, to, .. } = &self.ports[port as usize];
        format!("{}>{to}", self.nodes[*node as usize])
    }

    /// Returns true if a port is the interface of a host or an arbiter.
    pub(crate) fn is_interface(&self, port: u32) -> bool {
        self.ports[port as usize].node < self.n_stations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_by_their_ends_and_further_links_by_number() {
        let text = r#"
            kind = "links"
            hosts = 2
            switches = 2
            links = [
                { between = ["h0", "s0"] }, { between = ["s0", "s1"] },
                { between = ["s0", "s1"] }, { between = ["h1", "s1"] },
            ]
        "#;
        let topology = toml::from_str::<TopologySpec>(text).unwrap().build().unwrap();
        let names = Names::new(&topology, &NamesSpec::default());
        let ports: Vec<String> = (0..names.ports.len() as u32).map(|p| names.port(p)).collect();
        let of_hosts = ["h0>s0", "h1>s1"];
        let of_switches = ["s0>h0", "s0>s1", "s0>s1.2", "s1>s0", "s1>s0.2", "s1>h1"];
        assert_eq!(ports, [&of_hosts[..], &of_switches[..]].concat());
        let interfaces = (0..8).filter(|&port| names.is_interface(port));
        assert_eq!(interfaces.collect::<Vec<u32>>(), [0, 1]);
    }

    /// A node has the name that the user gave it, even if it is the default name of another node.
    #[test]
    fn custom_names_take_precedence_over_generated_names() {
        let text = r#"
            kind = "links"
            hosts = 3
            switches = 1
            links = [
                { between = ["h0", "s0"] }, { between = ["h1", "s0"] }, { between = ["h2", "s0"] },
            ]
        "#;
        let topology = toml::from_str::<TopologySpec>(text).unwrap().build().unwrap();
        let hosts = ["h2", "a-b", "a"].map(str::to_owned).to_vec();
        let names = NamesSpec { hosts, switches: vec!["b-c".to_owned()] };
        let host = |name: &str| names.host(&NodeName::Name(name.to_owned()), &topology);
        assert_eq!([host("h2"), host("h1"), host("a")], [Ok(0), Ok(1), Ok(2)]);
        assert_eq!(names.link(&topology, "h2-b-c"), Some(0));
        assert_eq!(names.link_from(&topology, "b-c-a-b"), Ok((1, true)));
        assert_eq!(names.link(&topology, "h2-s0"), Some(2));
        let switches = vec!["c".to_owned()];
        let hosts = ["a", "a-b", "b"].map(str::to_owned).to_vec();
        let one = NamesSpec { hosts: hosts.clone(), switches };
        assert_eq!(one.link(&topology, "a-b-c"), Some(1));
        let two = NamesSpec { hosts, switches: vec!["b-a".to_owned()] };
        assert_eq!(two.link(&topology, "a-b-a"), Some(0));
        let both = ["b-a", "b-a-b", "x"].map(str::to_owned).to_vec();
        let both = NamesSpec { hosts: both, switches: vec!["b".to_owned()] };
        assert_eq!(both.link(&topology, "b-a-b"), Some(0));
    }

    #[test]
    fn errors_of_unknown_link_names_list_the_known_ones() {
        let text = r#"
            kind = "links"
            hosts = 2
            switches = 2
            links = [
                { between = ["h0", "s0"] }, { between = ["h1", "s1"] },
                { between = ["s0", "s1"] }, { between = ["s0", "s1"] },
            ]
        "#;
        let topology = toml::from_str::<TopologySpec>(text).unwrap().build().unwrap();
        let list = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let names = NamesSpec { hosts: list(["a", "a-b"]), switches: list(["b-c", "c"]) };
        let wrong = |name: &str| names.link_from(&topology, name).unwrap_err();
        let expected = "the number of one link, as the name may be a to b-c (0) or a-b to c (1)";
        assert_eq!(wrong("a-b-c"), expected);
        let expected = "the ends of a link of the topology (a-b-c, a-b-c, b-c-c, ...)";
        assert_eq!(wrong("a-c"), expected);
        assert_eq!(wrong("b-c-c#2"), "b-c-c#0 to b-c-c#1");
        assert_eq!(wrong("b-c-c#x"), "b-c-c#0 to b-c-c#1");
        let plain = NamesSpec::default();
        let expected = "the ends of a link of the topology (h0-s0, h1-s1, s0-s1, ...)";
        assert_eq!(plain.link_from(&topology, "h0-s1").unwrap_err(), expected);
        let expected = "h0-s0, as there is one such link";
        assert_eq!(plain.link_from(&topology, "h0-s0#1").unwrap_err(), expected);
    }
}
