//! Links that several kinds of topologies have, and the checks that every topology passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::TopologyError;
use super::kinds::{delay, rate};
use super::routes::SharedRoutes;
use super::{Link, Node, Topology};
use rampmeter_types::wiring::Wiring;
use rampmeter_types::{Rate, Span};

/// Rates and delays that the builders of this module share.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkParameters {
    pub(super) access: Rate,
    pub(super) core: Rate,
    pub(super) propagation: Span,
    pub(super) switch_latency: Span,
    pub(super) host_latency: Span,
}

impl LinkParameters {
    /// Returns the wires of a plan. Rates of links of hosts and between switches are in Gbit/s.
    /// Propagation and processing of switches and hosts are in nanoseconds.
    ///
    /// # Errors
    /// A rate or delay is out of range.
    pub(super) fn new(
        access_gbps: f64,
        core_gbps: f64,
        propagation_ns: f64,
        switch_ns: f64,
        host_ns: f64,
    ) -> Result<Self, TopologyError> {
        Ok(Self {
            access: rate("access-gbps", access_gbps)?,
            core: rate("core-gbps", core_gbps)?,
            propagation: delay("propagation-ns", propagation_ns)?,
            switch_latency: delay("switch-ns", switch_ns)?,
            host_latency: delay("host-ns", host_ns)?,
        })
    }
}

/// Upper bound on hosts of topologies with racks of equal size.
const MAX_HOSTS: u64 = 262_144;
/// Upper bound on switches: identifiers and tables are sized for it.
pub(super) const MAX_NODES: u64 = 65_536;
/// Upper bound on links: events have that much room for the numbers of their two ports.
const MAX_LINKS: usize = 4_000_000;

pub(super) fn check_hosts(name: &'static str, got: u64) -> Result<u32, TopologyError> {
    if !(2..=MAX_HOSTS).contains(&got) {
        return Err(TopologyError::Count { name, expected: "2 to 262144", got });
    }
    Ok(got as u32)
}

pub(super) fn check_count(
    name: &'static str,
    got: u64,
    least: u64,
    expected: &'static str,
) -> Result<u32, TopologyError> {
    if got < least || got > MAX_NODES {
        return Err(TopologyError::Count { name, expected, got });
    }
    Ok(got as u32)
}

impl Topology {
    /// Checks `links` and numbers the levels.
    pub(super) fn check(
        n_hosts: u32,
        n_switches: u32,
        links: Vec<Link>,
        wires: &LinkParameters,
    ) -> Result<Self, TopologyError> {
        if links.len() > MAX_LINKS {
            let (name, expected, got) = ("links", "at most 4000000", links.len() as u64);
            return Err(TopologyError::Count { name, expected, got });
        }
        let mut host_links = vec![Vec::new(); n_hosts as usize];
        for (idx, link) in links.iter().enumerate() {
            if link.a == link.b {
                return Err(TopologyError::SameEnds { link: idx, node: link.a });
            }
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
                if let Node::Host(h) = end {
                    host_links[h as usize].push((idx, other));
                }
            }
        }
        let mut tors = Vec::with_capacity(n_hosts as usize);
        let mut joined = Vec::with_capacity(n_hosts as usize);
        for (host, ends) in (0..).zip(&host_links) {
            let own = switches_of(host, ends)?;
            tors.push(own[0]);
            joined.extend(own);
        }
        let levels = levels(n_switches, &joined, &links);
        let (host_latency, switch_latency) = (wires.host_latency, wires.switch_latency);
        let n_arbiters = 0;
        let wiring =
            Wiring { n_hosts, n_arbiters, levels, links, tors, host_latency, switch_latency };
        let topology =
            Self { wiring: Arc::new(wiring), cables: None, routes: SharedRoutes::default() };
        topology.check_joined(&host_links)?;
        Ok(topology)
    }

    /// Checks that all hosts can reach one another over switches, and that each switch can be
    /// reached. `ends` are the places and far ends of each host's links.
    fn check_joined(&self, ends: &[Vec<(usize, Node)>]) -> Result<(), TopologyError> {
        let parts = self.parts();
        let of = |host: usize| -> BTreeSet<u32> {
            let part = |(_, end): &(usize, Node)| match end {
                Node::Switch(switch) => Some(parts[*switch as usize]),
                Node::Host(_) | Node::Arbiter(_) => None,
            };
            ends[host].iter().filter_map(part).collect()
        };
        // Hosts with links to the same parts are alike.
        let mut first: BTreeMap<BTreeSet<u32>, u32> = BTreeMap::new();
        for host in 0..ends.len() {
            first.entry(of(host)).or_insert(host as u32);
        }
        for (i, (ours, &a)) in first.iter().enumerate() {
            if let Some((_, &b)) = first.iter().skip(i + 1).find(|(its, _)| its.is_disjoint(ours)) {
                let (a, b) = (a.min(b), a.max(b));
                return Err(match Self::are_joined_by_hosts(&first, a, b) {
                    true => TopologyError::Forwarding(a, b),
                    false => TopologyError::Disconnected(a, b),
                });
            }
        }
        let has_host = |part: &u32| first.keys().any(|parts| parts.contains(part));
        match parts.iter().position(|part| !has_host(part)) {
            Some(switch) => Err(TopologyError::UnreachableSwitch(switch as u32)),
            None => Ok(()),
        }
    }

    /// Returns true if two hosts could reach one another if hosts forwarded. `first` has a host for
    /// each set of parts that hosts have links to.
    fn are_joined_by_hosts(first: &BTreeMap<BTreeSet<u32>, u32>, a: u32, b: u32) -> bool {
        let of = |host: u32| first.iter().find(|(_, own)| **own == host).map(|(parts, _)| parts);
        let (Some(from), Some(to)) = (of(a), of(b)) else { return false };
        let mut reached = from.clone();
        loop {
            let before = reached.len();
            for parts in first.keys() {
                if !parts.is_disjoint(&reached) {
                    reached.extend(parts);
                }
            }
            if reached.len() == before {
                return !reached.is_disjoint(to);
            }
        }
    }

    /// Equal numbers for switches that are joined by links between switches.
    pub(super) fn parts(&self) -> Vec<u32> {
        let mut next = vec![Vec::new(); self.levels.len()];
        for link in &self.links {
            if let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) {
                next[a as usize].push(b);
                next[b as usize].push(a);
            }
        }
        let mut parts = vec![u32::MAX; next.len()];
        for start in 0..next.len() as u32 {
            let mut todo = vec![start];
            while let Some(switch) = todo.pop() {
                if parts[switch as usize] == u32::MAX {
                    parts[switch as usize] = start;
                    todo.extend(&next[switch as usize]);
                }
            }
        }
        parts
    }
}

/// A network of racks and spine switches, in one plane or in several. A rack has `rails` leaf
/// switches, and every host has a link to each leaf of its rack. Each plane has an equal number of
/// a rack's leaves and of the spines, all of them joined.
pub(super) struct TwoTiers {
    pub(super) racks: u32,
    pub(super) rails: u32,
    pub(super) planes: u32,
    pub(super) hosts_per_rack: u32,
    pub(super) spines: u32,
}

impl TwoTiers {
    pub(super) fn build(&self, wires: &LinkParameters) -> Result<Topology, TopologyError> {
        let Self { racks, rails, planes, hosts_per_rack, spines } = *self;
        let (n_hosts, leaves) = (racks * hosts_per_rack, racks * rails);
        let mut links = Vec::new();
        for host in 0..n_hosts {
            for rail in 0..rails {
                links.push(access(host, host / hosts_per_rack * rails + rail, wires));
            }
        }
        let of_plane = spines / planes;
        for leaf in 0..leaves {
            let plane = leaf % rails % planes;
            for spine in plane * of_plane..(plane + 1) * of_plane {
                links.push(trunk(leaf, leaves + spine, wires));
            }
        }
        Topology::check(n_hosts, leaves + spines, links, wires)
    }
}

pub(super) fn attach(n_hosts: u32, hosts_per_switch: u32, wires: &LinkParameters) -> Vec<Link> {
    (0..n_hosts).map(|host| access(host, host / hosts_per_switch, wires)).collect()
}

fn access(host: u32, switch: u32, wires: &LinkParameters) -> Link {
    let (a, b) = (Node::Host(host), Node::Switch(switch));
    Link::new(a, b, wires.access, wires.propagation)
}

/// Returns the switches of a host whose links lead to `ends`, in the order of its links.
fn switches_of(host: u32, ends: &[(usize, Node)]) -> Result<Vec<u32>, TopologyError> {
    let mut own = Vec::with_capacity(ends.len());
    for &(link, end) in ends {
        match end {
            Node::Switch(switch) => own.push(switch),
            Node::Host(other) | Node::Arbiter(other) => {
                return Err(TopologyError::HostToHost { link, host, other });
            }
        }
    }
    if own.is_empty() { Err(TopologyError::NoLink(host)) } else { Ok(own) }
}

pub(super) fn trunk(below: u32, above: u32, wires: &LinkParameters) -> Link {
    let (a, b) = (Node::Switch(below), Node::Switch(above));
    Link::new(a, b, wires.core, wires.propagation)
}

/// Returns the level of each switch: one more than its distance from the nearest switch with hosts.
fn levels(n_switches: u32, tors: &[u32], links: &[Link]) -> Vec<u8> {
    let mut levels = vec![0u8; n_switches as usize];
    let mut frontier: Vec<u32> = tors.to_vec();
    let mut level = 1;
    while !frontier.is_empty() {
        for &s in &frontier {
            if levels[s as usize] == 0 {
                levels[s as usize] = level;
            }
        }
        let mut next = Vec::new();
        for link in links {
            if let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) {
                for (from, to) in [(a, b), (b, a)] {
                    if levels[from as usize] == level && levels[to as usize] == 0 {
                        next.push(to);
                    }
                }
            }
        }
        frontier = next;
        level = level.saturating_add(1);
    }
    levels
}
