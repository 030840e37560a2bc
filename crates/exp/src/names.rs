//! The names of nodes and ports in results: hosts `h0`, switches `s0`, arbiters `a0`; a port is
//! named by its two ends, `h0>s0`. The second of several links between two nodes is `h0>s0.2`.

use std::collections::BTreeMap;

use rampmeter_sim::fabric::Routes;
use rampmeter_sim::topo::Node;
use rampmeter_sim::{Target, Topology};

/// A port of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortName {
    /// The node that it belongs to: hosts, then arbiters, then switches.
    pub(crate) node: u32,
    /// Its link, by its place in the topology.
    pub(crate) link: u32,
    /// Its far end, with the number of the link if it is not the first: `s0`, `s0.2`.
    pub(crate) to: String,
}

/// The names of a network.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// By node: hosts, then arbiters, then switches.
    pub(crate) nodes: Vec<String>,
    /// By port, numbered as in the fabric.
    pub(crate) ports: Vec<PortName>,
    /// By link, by its place in the topology: its ends, as in `h0-s0`.
    pub(crate) links: Vec<String>,
    /// How many nodes are no switches.
    pub(crate) n_stations: u32,
}

impl Names {
    /// The names of `topology`.
    pub(crate) fn of(topology: &Topology) -> Self {
        let (n_hosts, n_arbiters) = (topology.n_hosts(), topology.n_arbiters());
        let n_stations = n_hosts + n_arbiters;
        let nodes = (0..n_hosts)
            .map(Node::Host)
            .chain((0..n_arbiters).map(Node::Arbiter))
            .chain((0..topology.n_switches()).map(Node::Switch));
        let nodes = nodes.map(|node| node.to_string()).collect();
        let number = |node| match node {
            Node::Host(host) => host,
            Node::Arbiter(arbiter) => n_hosts + arbiter,
            Node::Switch(switch) => n_stations + switch,
        };
        let n_links = topology.links().len() as u32;
        let links = (0..n_links).map(|link| topology.name(Target::Link(link))).collect();
        let mut names = Self { nodes, links, ports: Vec::new(), n_stations };
        let routes = Routes::new(topology, &|_| true);
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

    /// The name of a port.
    pub(crate) fn port(&self, port: u32) -> String {
        let PortName { node, to, .. } = &self.ports[port as usize];
        format!("{}>{to}", self.nodes[*node as usize])
    }

    /// Whether a port is the interface of a host or an arbiter.
    pub(crate) fn is_interface(&self, port: u32) -> bool {
        self.ports[port as usize].node < self.n_stations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rampmeter_sim::TopologySpec;

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
        let names = Names::of(&toml::from_str::<TopologySpec>(text).unwrap().build().unwrap());
        let ports: Vec<String> = (0..names.ports.len() as u32).map(|p| names.port(p)).collect();
        let of_hosts = ["h0>s0", "h1>s1"];
        let of_switches = ["s0>h0", "s0>s1", "s0>s1.2", "s1>s0", "s1>s0.2", "s1>h1"];
        assert_eq!(ports, [&of_hosts[..], &of_switches[..]].concat());
        let interfaces = (0..8).filter(|&port| names.is_interface(port));
        assert_eq!(interfaces.collect::<Vec<u32>>(), [0, 1]);
    }
}
