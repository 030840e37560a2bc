//! Pairs of hosts whose paths are alike.
//!
//! *Problem*: ideals, delays and warnings follow from the shortest paths between two hosts, and a
//! network of 131 072 hosts has 17 billion pairs.
//!
//! *Present way*: the nodes up to a level fall into groups that are joined among themselves: single
//! hosts, racks, pods. Two groups are twins if they have the same links inside, and links to the
//! same switches above, in the same order. Exchanging twins, node by node, maps the network onto
//! itself. So a pair has the paths of the pair that follows if each of its groups is exchanged for
//! its first twin. In a leaf-spine or a fat-tree few such pairs remain.
//!
//! *Hazards*: the argument needs whole links. It is void if some of them fail, and for paths to
//! arbiters.

use std::collections::{BTreeMap, BTreeSet};

use rampmeter_types::{Rate, Span};

use super::{Link, Node, Topology};

/// Groups of hosts that may be exchanged, by level.
#[derive(Clone, Debug)]
pub struct Symmetry {
    levels: Vec<TwinLevel>,
}

/// The groups of nodes that are joined by switches up to a level.
#[derive(Clone, Debug)]
struct TwinLevel {
    /// The group of each host, and its place among the group's hosts.
    of_host: Vec<(u32, u32)>,
    /// The hosts of each group, ascending.
    hosts: Vec<Vec<u32>>,
    /// The first two twins of each group, ascending; the second is the first without another.
    twins: Vec<[u32; 2]>,
}

/// A link of a group: its ends, rates and propagation.
type Wire = (End, End, Rate, Rate, Span);

/// An end of a link of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// A node of the group, by its place.
    Inside(u32),
    /// A switch above.
    Above(u32),
}

impl Topology {
    /// Returns the groups of hosts that may be exchanged.
    pub fn symmetry(&self) -> Symmetry {
        let top = self.levels.iter().copied().max().unwrap_or(1);
        // A network in which all nodes are joined is one group.
        Symmetry { levels: (0..top).map(|level| TwinLevel::new(self, level)).collect() }
    }

    /// Returns a pair of hosts for each class of pairs with equal paths, in the order of
    /// `kinds`: hosts with links to the same switches.
    pub(super) fn distinct_pairs(&self, kinds: &[Vec<u32>]) -> Vec<(u32, u32)> {
        let symmetry = self.symmetry();
        let firsts: BTreeSet<u32> = kinds
            .iter()
            .filter_map(|kind| kind.first())
            .map(|&host| symmetry.alone(host))
            .collect();
        let is_first = |host: &u32| firsts.contains(host);
        let mut known = BTreeSet::new();
        let mut pairs = Vec::new();
        for &src in kinds.iter().filter_map(|kind| kind.first()).filter(|host| is_first(host)) {
            for &dst in kinds.iter().filter_map(|kind| kind.iter().find(|&&dst| dst != src)) {
                if known.insert(symmetry.representative(src, dst)) {
                    pairs.push((src, dst));
                }
            }
        }
        pairs
    }
}

impl Symmetry {
    /// Returns the first pair of hosts with the paths of `src` and `dst`, in both directions.
    pub fn representative(&self, mut src: u32, mut dst: u32) -> (u32, u32) {
        for level in &self.levels {
            let first = level.twins[level.group(src)][0];
            (src, dst) = (level.exchanged(src, src, first), level.exchanged(dst, src, first));
            if level.group(dst) != level.group(src) {
                let twins = level.twins[level.group(dst)];
                let own = level.group(src) as u32;
                let free = twins.into_iter().find(|&twin| twin != own);
                dst = free.map_or(dst, |free| level.exchanged(dst, dst, free));
            }
        }
        (src, dst)
    }

    /// Returns the first host that a host may be exchanged for.
    fn alone(&self, host: u32) -> u32 {
        self.representative(host, host).0
    }
}

impl TwinLevel {
    fn new(topology: &Topology, level: u8) -> Self {
        let n_hosts = topology.n_hosts() as usize;
        let rank = |node: Node| match node {
            Node::Host(_) => Some(0),
            Node::Switch(switch) => Some(topology.levels[switch as usize]),
            Node::Arbiter(_) => None,
        };
        let number = |node: Node| match node {
            Node::Host(host) => host as usize,
            Node::Switch(switch) | Node::Arbiter(switch) => n_hosts + switch as usize,
        };
        let links = || {
            let ranked = topology.links().iter();
            ranked.filter_map(|link| Some((link, rank(link.a)? <= level, rank(link.b)? <= level)))
        };
        let mut groups = Groups::new(n_hosts + topology.n_switches() as usize);
        for (link, a_inside, b_inside) in links() {
            if a_inside && b_inside {
                groups.join(number(link.a), number(link.b));
            }
        }
        let (places, mut hosts) = groups.places(n_hosts);
        let mut wires: Vec<Vec<Wire>> = vec![Vec::new(); hosts.len()];
        for (link, a_inside, b_inside) in links() {
            let end = |node: Node, is_inside: bool| match is_inside {
                true => End::Inside(places[number(node)].1),
                false => End::Above(number(node) as u32),
            };
            let Link { rate, rate_back, propagation, .. } = *link;
            let wire = (end(link.a, a_inside), end(link.b, b_inside), rate, rate_back, propagation);
            let of = if a_inside { link.a } else { link.b };
            if a_inside || b_inside {
                wires[places[number(of)].0 as usize].push(wire);
            }
        }
        let twins = twins(wires, &hosts);
        hosts.iter_mut().for_each(Vec::shrink_to_fit);
        Self { of_host: places[..n_hosts].to_vec(), hosts, twins }
    }

    fn group(&self, host: u32) -> usize {
        self.of_host[host as usize].0 as usize
    }

    /// Returns the host at the place of `host` after the group of `member` and its twin `other`
    /// have been exchanged.
    fn exchanged(&self, host: u32, member: u32, other: u32) -> u32 {
        let (group, place) = self.of_host[host as usize];
        let own = self.of_host[member as usize].0;
        let to = match () {
            () if group == own => other,
            () if group == other => own,
            () => return host,
        };
        self.hosts[to as usize][place as usize]
    }
}

/// Returns the first two twins of each group with these links and hosts.
fn twins(wires: Vec<Vec<Wire>>, hosts: &[Vec<u32>]) -> Vec<[u32; 2]> {
    let mut known: BTreeMap<(usize, Vec<Wire>), usize> = BTreeMap::new();
    let mut firsts: Vec<[u32; 2]> = Vec::new();
    let class = |(wires, group): (Vec<Wire>, u32)| {
        let next = firsts.len();
        let class = *known.entry((hosts[group as usize].len(), wires)).or_insert(next);
        match firsts.get_mut(class) {
            None => firsts.push([group, group]),
            Some([first, second]) if first == second => *second = group,
            Some(_) => {}
        }
        class
    };
    let classes: Vec<usize> = wires.into_iter().zip(0..).map(class).collect();
    classes.into_iter().map(|class| firsts[class]).collect()
}

/// Groups of nodes that are joined.
struct Groups {
    /// A node of the same group with a lower number, or the node itself.
    lower: Vec<u32>,
}

impl Groups {
    fn new(n: usize) -> Self {
        Self { lower: (0..n as u32).collect() }
    }

    fn first(&mut self, node: usize) -> usize {
        let mut at = node;
        while self.lower[at] as usize != at {
            self.lower[at] = self.lower[self.lower[at] as usize];
            at = self.lower[at] as usize;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.lower[a.max(b)] = a.min(b) as u32;
    }

    /// Returns the group of each node with its place in it, and the hosts of each group: the nodes
    /// below `n_hosts`.
    fn places(mut self, n_hosts: usize) -> (Vec<(u32, u32)>, Vec<Vec<u32>>) {
        let mut of_first = vec![u32::MAX; self.lower.len()];
        let (mut sizes, mut hosts) = (Vec::new(), Vec::new());
        let mut places = Vec::with_capacity(self.lower.len());
        for node in 0..self.lower.len() {
            let first = self.first(node);
            if of_first[first] == u32::MAX {
                of_first[first] = sizes.len() as u32;
                sizes.push(0);
                hosts.push(Vec::new());
            }
            let group = of_first[first] as usize;
            places.push((group as u32, sizes[group]));
            sizes[group] += 1;
            if node < n_hosts {
                hosts[group].push(node as u32);
            }
        }
        (places, hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::{Paths, TopologySpec};

    fn built(spec: &str) -> Topology {
        toml::from_str::<TopologySpec>(spec).unwrap().build().unwrap()
    }

    /// Checks that pairs have the paths of their representatives, and returns the number of these.
    fn n_representatives(topology: &Topology) -> usize {
        let (symmetry, paths) = (topology.symmetry(), Paths::new(topology.clone()));
        let hosts = || 0..topology.n_hosts();
        let mut found = BTreeSet::new();
        for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))) {
            if src == dst {
                continue;
            }
            let (a, b) = symmetry.representative(src, dst);
            assert_ne!(a, b);
            assert_eq!(paths.links(src, dst), paths.links(a, b), "{src} {dst}: {a} {b}");
            assert_eq!(paths.links(dst, src), paths.links(b, a), "{dst} {src}: {b} {a}");
            found.insert((a, b));
        }
        found.len()
    }

    #[test]
    fn regular_networks_have_a_pair_for_each_distance() {
        for (spec, n) in [
            ("kind = 'star'\nhosts = 5", 1),
            ("kind = 'leaf-spine'\nracks = 4\nhosts-per-rack = 3\nspines = 2", 2),
            ("kind = 'leaf-spine'\nracks = 4\nhosts-per-rack = 3\nspines = 2\nrails = 2", 2),
            ("kind = 'fat-tree'\nk = 4", 3),
            ("kind = 'fat-tree'\nk = 6\npods = 2", 3),
        ] {
            let topology = built(spec);
            assert_eq!(n_representatives(&topology), n, "{spec}");
            let kinds = topology.kinds_of_hosts();
            assert_eq!(topology.distinct_pairs(&kinds).len(), n, "{spec}");
        }
    }

    /// The middle rack has one slower host, and the last rack a slower link to the second spine. So
    /// four hosts differ, and two of them have another host of their kind.
    #[test]
    fn hosts_and_racks_with_other_links_are_apart() {
        let access = (0..6).map(|host| {
            let gbps = if host == 3 { 10 } else { 100 };
            format!("{{ between = ['h{host}', 's{}'], gbps = {gbps} }}", host / 2)
        });
        let core = (0..6).map(|link| {
            let gbps = if link == 5 { 40 } else { 400 };
            format!("{{ between = ['s{}', 's{}'], gbps = {gbps} }}", link / 2, 3 + link % 2)
        });
        let links: Vec<String> = access.chain(core).collect();
        let spec =
            format!("kind = 'links'\nhosts = 6\nswitches = 5\nlinks = [{}]", links.join(", "));
        assert_eq!(n_representatives(&built(&spec)), 4 * 3 + 2);
    }

    #[test]
    fn pairs_of_irregular_networks_have_the_paths_of_their_representatives() {
        for spec in [
            "kind = 'dragonfly'\nswitches-per-group = 2\nhosts-per-switch = 2\nglobal-links = 1",
            "kind = 'dumbbell'\nhosts-per-side = 3",
            "kind = 'pod'\nk = 4\ncable-spread-ns = 50.0",
        ] {
            assert!(n_representatives(&built(spec)) > 0);
        }
    }
}
