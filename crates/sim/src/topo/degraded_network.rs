//! A network of which links and nodes are down, with the routes that switches have then.

use std::collections::{BTreeMap, BTreeSet};

use rampmeter_types::{Rate, Span};

use super::uneven_paths::{RepresentedPair, pairs_of};
use super::{FullLink, LinkChange, Node, Paths, Target, Topology};

/// Pairs of kinds of hosts up to which a degraded network is examined.
const PAIRS_MAX: usize = 4_096;

/// A topology in which some links and nodes are down.
#[derive(Clone, Debug)]
pub struct DegradedTopology {
    paths: Paths,
    /// The hosts that are up, by kind: those whose links and links that are down are alike.
    kinds: Vec<Vec<u32>>,
    is_up: Vec<bool>,
}

/// Hosts between which no path is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisconnectedHosts {
    /// A pair of them, sender first.
    pub ends: (u32, u32),
    /// Number of pairs, in both directions.
    pub pairs: u64,
}

impl Topology {
    /// Returns the topology after changes of its links, in their order.
    #[must_use]
    pub fn after<'a>(mut self, changes: impl Iterator<Item = &'a LinkChange>) -> Self {
        for change in changes {
            let link = &mut self.wiring_mut().links[change.link as usize];
            [link.rate, link.rate_back] = change.rates.unwrap_or([link.rate, link.rate_back]);
            link.propagation = change.propagation.unwrap_or(link.propagation);
        }
        self
    }

    /// Returns [`Topology::bisection_share`] while `down` is down.
    pub fn bisection_share_while(&self, down: &[Target]) -> f64 {
        let mut is_up = self.links_up(down).into_iter();
        let mut rest = self.clone();
        rest.wiring_mut().links.retain(|_| is_up.next().unwrap_or(true));
        rest.bisection_share()
    }

    /// Returns for each link if it is up while `down` is down.
    fn links_up(&self, down: &[Target]) -> Vec<bool> {
        let mut is_up = vec![true; self.links.len()];
        for &target in down {
            let of_node = match target {
                Target::Link(link) => {
                    is_up[link as usize] = false;
                    continue;
                }
                Target::Host(host) => Node::Host(host),
                Target::Switch(switch) => Node::Switch(switch),
                Target::Arbiter(arbiter) => Node::Arbiter(arbiter),
            };
            self.links_of(of_node).into_iter().for_each(|link| is_up[link as usize] = false);
        }
        is_up
    }

    /// Returns the topology while `down` is down; `None` if too many hosts differ.
    pub fn degraded(&self, down: &[Target]) -> Option<DegradedTopology> {
        let is_up = self.links_up(down);
        // Failed links of hosts: other end, rates and propagation.
        let mut lost: BTreeMap<u32, Vec<(Node, Rate, Rate, Span)>> = BTreeMap::new();
        for (link, _) in self.links.iter().zip(&is_up).filter(|(_, is_up)| !**is_up) {
            if let Node::Host(host) = link.a {
                let own = (link.b, link.rate, link.rate_back, link.propagation);
                lost.entry(host).or_default().push(own);
            }
        }
        lost.values_mut().for_each(|links| links.sort_unstable());
        let failed: BTreeSet<Target> = down.iter().copied().collect();
        let mut kinds = Vec::new();
        for kind in self.kinds_of_hosts() {
            let mut parts: BTreeMap<_, Vec<u32>> = BTreeMap::new();
            for host in kind.into_iter().filter(|&host| !failed.contains(&Target::Host(host))) {
                parts.entry(lost.get(&host)).or_default().push(host);
            }
            kinds.extend(parts.into_values());
        }
        if kinds.len() * kinds.len() > PAIRS_MAX {
            return None;
        }
        let paths = Paths::over_links(self.clone(), &|link| is_up[link as usize]);
        Some(DegradedTopology { paths, kinds, is_up })
    }
}

impl DegradedTopology {
    /// Returns the link that uniform traffic between all hosts fills first; `access` is the rate
    /// that loads count. Traffic that has no path is left out.
    pub fn first_saturated_link(&self, access: Rate) -> Option<FullLink> {
        let topology = self.paths.topology();
        let pairs = self.pairs().into_iter().filter(|pair| self.reaches(pair.src, pair.dst));
        topology.first_saturated_of(&self.paths, pairs, access)
    }

    /// Returns the hosts between which no path is left, `None` if all others reach one another.
    pub fn cut_off(&self) -> Option<DisconnectedHosts> {
        let mut found: Option<DisconnectedHosts> = None;
        for RepresentedPair { src, dst, n_src, n_dst } in self.pairs() {
            if !self.reaches(src, dst) {
                let more = (n_src * n_dst) as u64;
                let first = DisconnectedHosts { ends: (src, dst), pairs: 0 };
                found.get_or_insert(first).pairs += more;
            }
        }
        found
    }

    /// Returns a pair of hosts of each two kinds, and the number of hosts that each stands for.
    fn pairs(&self) -> Vec<RepresentedPair> {
        pairs_of(&self.kinds)
    }

    /// Returns true if a path is left, all of whose links are up.
    fn reaches(&self, src: u32, dst: u32) -> bool {
        let shares = self.paths.shares(src, dst);
        let arrives = shares.iter().any(|&(link, from, _)| {
            let link = &self.paths.topology().links[link as usize];
            (if link.a == from { link.b } else { link.a }) == Node::Host(dst)
        });
        arrives && shares.iter().all(|&(link, ..)| self.is_up[link as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::TopologySpec;

    fn leaf_spine(spines: u32) -> Topology {
        let text =
            format!("kind = 'leaf-spine'\nracks = 2\nhosts-per-rack = 4\nspines = {spines}\n");
        toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
    }

    /// Four hosts of 100 Gbit/s, of whose traffic four sevenths leave the rack.
    #[test]
    fn the_remaining_links_saturate_at_a_lower_load() {
        let topology = leaf_spine(2);
        let access = topology.slowest_host();
        let load = |down: &[Target]| {
            topology.degraded(down).unwrap().first_saturated_link(access).map(|full| full.load)
        };
        let uplink = topology.links_of(Node::Switch(2)).first().map(|&link| {
            let rate = topology.links[link as usize].rate;
            rate.as_bps() as f64 / access.as_bps() as f64
        });
        let expected = uplink.unwrap() / (4.0 * 4.0 / 7.0);
        let found = load(&[Target::Switch(3)]).unwrap();
        assert!((found - expected.min(1.0)).abs() < 1e-9, "{found}, {expected}");
        assert!(load(&[]).unwrap() >= found);
    }

    #[test]
    fn hosts_without_a_path_are_counted() {
        let two = leaf_spine(2);
        assert_eq!(two.degraded(&[Target::Switch(2)]).unwrap().cut_off(), None);
        let both = two.degraded(&[Target::Switch(2), Target::Switch(3)]).unwrap();
        assert_eq!(both.cut_off().map(|cut| cut.pairs), Some(2 * 4 * 4));
        let one = leaf_spine(1);
        assert_eq!(one.degraded(&[Target::Switch(2)]).unwrap().cut_off().unwrap().pairs, 32);
        // A rack's hosts do not reach one another either.
        let rack = one.degraded(&[Target::Switch(0)]).unwrap().cut_off().unwrap();
        assert_eq!(rack.pairs, 2 * 4 * 4 + 4 * 3);
        let link = one.links_of(Node::Host(0))[0];
        assert_eq!(one.degraded(&[Target::Link(link)]).unwrap().cut_off().unwrap().pairs, 14);
        assert_eq!(one.degraded(&[Target::Host(0)]).unwrap().cut_off(), None);
    }
}
