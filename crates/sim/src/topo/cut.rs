//! Cuts of a topology: the maximum rates of groups of hosts to all others.

use std::collections::BTreeMap;

use rampmeter_types::fabric::Racks;
use rampmeter_types::{NodeId, Planes, Rate};

use super::{Link, Node, Topology};

/// A group of hosts, and the links by which they reach the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCut {
    /// Number of hosts.
    pub hosts: u32,
    /// The rate of all links out of the group together, in bits per second.
    pub bps: u64,
}

/// Data in one direction between some hosts and all others, and the links by which the control
/// packets for them return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnPath {
    /// The most data that hosts can send in that direction, in bits per second.
    pub data_bps: u64,
    /// Rate of the links in the other direction, in bits per second.
    pub back_bps: u64,
    /// The slowest of these links, and the end that sends there.
    pub link: (u32, Node),
    /// Number of these links.
    pub n_links: u32,
}

/// Rates at which some hosts send and receive.
#[derive(Clone, Copy, Debug, Default)]
struct HostRates {
    sends_bps: u64,
    receives_bps: u64,
}

impl HostRates {
    fn of_link(link: &Link, host: u32) -> Self {
        let host = Node::Host(host);
        Self { sends_bps: link.rate_from(host).as_bps(), receives_bps: link.rate_to(host).as_bps() }
    }

    fn add(&mut self, other: Self) {
        self.sends_bps += other.sends_bps;
        self.receives_bps += other.receives_bps;
    }
}

/// The links around some hosts, in both directions.
#[derive(Clone, Copy, Debug, Default)]
struct CutLinks {
    into_bps: u64,
    out_bps: u64,
    hosts: HostRates,
    n_links: u32,
    /// The slowest link out of the group, and into it, with the ends that send there.
    slowest_out: Option<(Rate, u32, Node)>,
    slowest_in: Option<(Rate, u32, Node)>,
}

impl CutLinks {
    /// Adds a link of which `inner` is the end in the group.
    fn add(&mut self, number: u32, link: &Link, inner: Node) {
        let outer = if link.a == inner { link.b } else { link.a };
        let slower = |known: Option<(Rate, u32, Node)>, rate: Rate, from: Node| {
            let new = (rate, number, from);
            Some(known.filter(|&(of, ..)| of <= rate).unwrap_or(new))
        };
        self.into_bps += link.rate_to(inner).as_bps();
        self.out_bps += link.rate_from(inner).as_bps();
        self.n_links += 1;
        self.slowest_out = slower(self.slowest_out, link.rate_from(inner), inner);
        self.slowest_in = slower(self.slowest_in, link.rate_to(inner), outer);
    }

    /// Returns the data into the group and out of it. `all` are the rates at which all hosts send
    /// and receive.
    fn return_paths(self, all: HostRates) -> impl Iterator<Item = ReturnPath> {
        let HostRates { sends_bps, receives_bps } = self.hosts;
        let from_others = all.sends_bps - sends_bps;
        let to_others = all.receives_bps - receives_bps;
        let n_links = self.n_links;
        let data_in = self.into_bps.min(receives_bps).min(from_others);
        let data_out = self.out_bps.min(sends_bps).min(to_others);
        let of = move |data_bps, back_bps, slowest: Option<(Rate, u32, Node)>| {
            let (_, number, from) = slowest?;
            Some(ReturnPath { data_bps, back_bps, link: (number, from), n_links })
        };
        [of(data_in, self.out_bps, self.slowest_out), of(data_out, self.into_bps, self.slowest_in)]
            .into_iter()
            .flatten()
    }
}

impl Topology {
    /// Returns the data into and out of each host, rack and pod, with the links by which control
    /// packets return. Planes of a host are apart. Empty if all links have one rate.
    pub fn return_paths(&self) -> Vec<ReturnPath> {
        if self.links.iter().all(|link| link.rate == link.rate_back) {
            return Vec::new();
        }
        let mut by_host = vec![HostRates::default(); self.n_hosts() as usize];
        let mut all = HostRates::default();
        for (host, link) in self.access() {
            let rates = HostRates::of_link(&link, host);
            by_host[host as usize].add(rates);
            all.add(rates);
        }
        let planes = self.pairs().planes();
        let mut borders: BTreeMap<(u32, usize), CutLinks> = BTreeMap::new();
        for (number, link) in (0..).zip(&self.links) {
            let (Node::Host(host), Node::Switch(switch)) = (link.a, link.b) else { continue };
            let of = |planes: &Planes| planes.plane_of_switch(NodeId::new(host), switch);
            let plane = planes.as_ref().and_then(of).unwrap_or(0);
            let border = borders.entry((host, plane)).or_default();
            border.add(number, link, link.a);
            border.hosts.add(HostRates::of_link(link, host));
        }
        let mut found: Vec<ReturnPath> =
            borders.into_values().flat_map(|border| border.return_paths(all)).collect();
        for group in self.host_groups() {
            let borders = self.borders_of(&group, &by_host);
            found.extend(borders.into_iter().flat_map(|border| border.return_paths(all)));
        }
        found
    }

    /// Returns the links around each group of switches that has some of the hosts, and not all.
    fn borders_of(&self, group: &[u32], by_host: &[HostRates]) -> Vec<CutLinks> {
        let mut borders: BTreeMap<u32, (u32, CutLinks)> = BTreeMap::new();
        for (host, &rates) in (0..).zip(by_host) {
            let own = group[self.rack(host) as usize];
            let (n_hosts, border) = borders.entry(own).or_default();
            *n_hosts += 1;
            border.hosts.add(rates);
        }
        for (number, link) in (0..).zip(&self.links) {
            let (Some(a), Some(b)) = (self.group_of(group, link.a), self.group_of(group, link.b))
            else {
                continue;
            };
            for (own, inner) in [(a, link.a), (b, link.b)] {
                if let Some((_, border)) = borders.get_mut(&own).filter(|_| a != b) {
                    border.add(number, link, inner);
                }
            }
        }
        let is_part = |(n_hosts, _): &(u32, CutLinks)| *n_hosts < self.n_hosts();
        borders.into_values().filter(is_part).map(|(_, border)| border).collect()
    }

    /// Returns the groups of switches for cuts: each alone, and those that are joined below each
    /// level.
    fn host_groups(&self) -> impl Iterator<Item = Vec<u32>> {
        let top = self.levels.iter().copied().max().unwrap_or(1);
        let racks: Vec<u32> = (0..self.n_switches()).collect();
        std::iter::once(racks).chain((1..top).map(|level| self.joined_up_to(level)))
    }

    /// Returns the group of a node, that of its switch if it is a host; `None` for arbiters.
    fn group_of(&self, group: &[u32], node: Node) -> Option<u32> {
        match node {
            Node::Switch(switch) => Some(group[switch as usize]),
            Node::Host(host) => Some(group[self.rack(host) as usize]),
            Node::Arbiter(_) => None,
        }
    }

    /// Returns the cuts around the hosts of each rack, and around those that are joined below each
    /// level of switches: racks and pods. Groups of all hosts and equal cuts are omitted.
    pub fn host_cuts(&self) -> Vec<HostCut> {
        let groups = self.host_groups();
        let mut cuts: Vec<HostCut> = groups.flat_map(|group| self.cuts_of(&group)).collect();
        cuts.sort_unstable_by_key(|cut| (cut.hosts, cut.bps));
        cuts.dedup();
        cuts
    }

    /// Returns the racks of hosts, in the order of their switches.
    pub fn rack_uplinks(&self) -> Racks {
        let switches = self.racks();
        let rack = |switch: u32| switches.binary_search(&switch).expect("a rack's switch") as u16;
        let rack_of = (0..self.n_hosts()).map(|host| rack(self.rack(host))).collect();
        let (mut uplink_bps, mut downlink_bps) = (vec![0; switches.len()], vec![0; switches.len()]);
        for link in &self.links {
            let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { continue };
            for end in [a, b] {
                if let Ok(rack) = switches.binary_search(&end) {
                    uplink_bps[rack] += link.rate_from(Node::Switch(end)).as_bps();
                    downlink_bps[rack] += link.rate_to(Node::Switch(end)).as_bps();
                }
            }
        }
        Racks { rack_of, uplink_bps, downlink_bps }
    }

    /// Capacity of links between switches as a share of the hosts' sending capacity, in the
    /// narrowest [cut](Self::host_cuts); 1 with full bisection bandwidth.
    pub fn bisection_share(&self) -> f64 {
        let slowest =
            self.access().map(|(_, link)| link.rates().slowest.as_bps()).min().unwrap_or(1);
        let share = |HostCut { hosts, bps }: HostCut| {
            let fewer = hosts.min(self.n_hosts() - hosts);
            bps as f64 / (f64::from(fewer) * slowest as f64)
        };
        self.host_cuts().into_iter().map(share).fold(1.0, f64::min)
    }

    /// Returns the rate that the narrowest cut has for each of its hosts when all send across it;
    /// `None` with full bisection bandwidth.
    pub(super) fn narrowest_share(&self) -> Option<Rate> {
        let share = Some(self.bisection_share()).filter(|&share| share < 1.0)?;
        let bps = self.slowest_host().as_bps() as f64 * share;
        Rate::from_bps((bps as u64).max(1))
    }

    /// Returns the group of each switch. Links between switches of `level` and below join groups.
    fn joined_up_to(&self, level: u8) -> Vec<u32> {
        let mut group: Vec<u32> = (0..self.n_switches()).collect();
        let is_below = |switch: u32| self.levels[switch as usize] <= level;
        loop {
            let mut is_stable = true;
            for link in &self.links {
                let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { continue };
                let (x, y) = (group[a as usize], group[b as usize]);
                if is_below(a) && is_below(b) && x != y {
                    (group[a as usize], group[b as usize]) = (x.min(y), x.min(y));
                    is_stable = false;
                }
            }
            if is_stable {
                return group;
            }
        }
    }

    /// Returns the cut around each group of switches that has some of the hosts, and not all.
    fn cuts_of(&self, group: &[u32]) -> Vec<HostCut> {
        let mut cuts: BTreeMap<u32, HostCut> = BTreeMap::new();
        for host in 0..self.n_hosts() {
            let own = group[self.rack(host) as usize];
            cuts.entry(own).or_insert(HostCut { hosts: 0, bps: 0 }).hosts += 1;
        }
        for link in &self.links {
            let (Some(a), Some(b)) = (self.group_of(group, link.a), self.group_of(group, link.b))
            else {
                continue;
            };
            for (end, rate) in [(a, link.rate), (b, link.rate_back)] {
                if let Some(cut) = cuts.get_mut(&end).filter(|_| a != b) {
                    cut.bps += rate.as_bps();
                }
            }
        }
        cuts.into_values().filter(|cut| cut.hosts < self.n_hosts()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::TopologySpec;

    fn cuts(text: &str) -> Vec<(u32, u64)> {
        let spec: TopologySpec = toml::from_str(text).unwrap();
        let cuts = spec.build().unwrap().host_cuts();
        cuts.iter().map(|cut| (cut.hosts, cut.bps / 1_000_000_000)).collect()
    }

    /// Returns the data in Gbit/s, returning control packets, and the name of the slowest link.
    fn return_paths(text: &str) -> Vec<(u64, u64, String)> {
        let spec: TopologySpec = toml::from_str(text).unwrap();
        let topology = spec.build().unwrap();
        let of = |found: super::ReturnPath| {
            let (link, from) = found.link;
            let name = format!("{} {from}", topology.name(crate::Target::Link(link)));
            (found.data_bps / 1_000_000_000, found.back_bps / 1_000_000_000, name)
        };
        topology.return_paths().into_iter().map(of).collect()
    }

    #[test]
    fn data_is_bounded_by_senders_and_receivers() {
        let text = "kind = 'links'\nhosts = 2\nswitches = 2\nlinks = [\
            { between = ['h0', 's0'], gbps = 10, gbps-back = 400 },\
            { between = ['h1', 's1'], gbps = 100 },\
            { between = ['s0', 's1'], gbps = 50, gbps-back = 5 }]";
        let of = |data, back, link: &str| (data, back, link.to_owned());
        assert_eq!(
            return_paths(text),
            [
                // Into h0, out of it, and the same of h1.
                of(100, 10, "h0-s0 h0"),
                of(10, 400, "h0-s0 s0"),
                of(10, 100, "h1-s1 h1"),
                of(100, 100, "h1-s1 s1"),
                // Into the rack of h0 and out of it; into the rack of h1 and out of it.
                of(5, 50, "s0-s1 s0"),
                of(10, 5, "s0-s1 s1"),
                of(10, 5, "s0-s1 s1"),
                of(5, 50, "s0-s1 s0"),
            ]
        );
        assert_eq!(
            return_paths("kind = 'leaf-spine'\nracks = 4\nhosts-per-rack = 8\nspines = 2"),
            []
        );
    }

    #[test]
    fn racks_of_a_leaf_spine_are_cut_at_their_uplinks() {
        let topology = "kind = 'leaf-spine'\nracks = 4\nhosts-per-rack = 8\nspines = 2";
        assert_eq!(cuts(topology), [(8, 800)]);
    }

    #[test]
    fn fat_trees_are_cut_at_racks_and_pods() {
        assert_eq!(cuts("kind = 'fat-tree'\nk = 4\ncore-gbps = 40"), [(2, 80), (4, 160)]);
    }

    #[test]
    fn a_dumbbell_is_cut_in_the_middle_and_a_star_nowhere() {
        assert_eq!(cuts("kind = 'dumbbell'\nhosts-per-side = 3\ncore-gbps = 10"), [(3, 10)]);
        assert_eq!(cuts("kind = 'star'\nhosts = 4"), []);
    }
}
