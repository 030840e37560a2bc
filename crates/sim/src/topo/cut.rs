//! Cuts of a topology: what groups of hosts can send to all others at most.

use std::collections::BTreeMap;

use rampmeter_core::fabric::Racks;

use super::{Node, Topology};

/// Some hosts, and the links by which they reach the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCut {
    /// How many hosts.
    pub hosts: u32,
    /// The rate of all links out of the group together, in bits per second.
    pub bps: u64,
}

impl Topology {
    /// The cuts around the hosts of each rack, and around those that are joined below each level
    /// of switches: racks and pods. Groups of all hosts are left out, and equal cuts.
    pub fn host_cuts(&self) -> Vec<HostCut> {
        let top = self.levels.iter().copied().max().unwrap_or(1);
        let racks: Vec<u32> = (0..self.n_switches()).collect();
        let groups = std::iter::once(racks).chain((1..top).map(|level| self.joined_up_to(level)));
        let mut cuts: Vec<HostCut> = groups.flat_map(|groups| self.cuts_of(&groups)).collect();
        cuts.sort_unstable_by_key(|cut| (cut.hosts, cut.bps));
        cuts.dedup();
        cuts
    }

    /// The racks of hosts, in the order of their switches.
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

    /// Share of what hosts can send to one another that links between switches carry, in the
    /// narrowest [cut](Self::host_cuts); 1 with full bisection bandwidth.
    pub fn bisection_share(&self) -> f64 {
        let slowest = self.access().map(|(_, link)| link.rates().0.as_bps()).min().unwrap_or(1);
        let share = |HostCut { hosts, bps }: HostCut| {
            let fewer = hosts.min(self.n_hosts() - hosts);
            bps as f64 / (f64::from(fewer) * slowest as f64)
        };
        self.host_cuts().into_iter().map(share).fold(1.0, f64::min)
    }

    /// The group of each switch, where links between switches of `level` and below join groups.
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

    /// The cut around each group of switches that has some of the hosts, and not all.
    fn cuts_of(&self, group: &[u32]) -> Vec<HostCut> {
        let mut cuts: BTreeMap<u32, HostCut> = BTreeMap::new();
        for host in 0..self.n_hosts() {
            let own = group[self.rack(host) as usize];
            cuts.entry(own).or_insert(HostCut { hosts: 0, bps: 0 }).hosts += 1;
        }
        for link in &self.links {
            let of = |node| match node {
                Node::Switch(switch) => Some(group[switch as usize]),
                Node::Host(host) => Some(group[self.rack(host) as usize]),
                Node::Arbiter(_) => None,
            };
            let (Some(a), Some(b)) = (of(link.a), of(link.b)) else { continue };
            for (end, rate) in [(a, link.rate), (b, link.back)] {
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
