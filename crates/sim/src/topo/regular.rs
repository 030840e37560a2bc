//! Networks regular enough for a scheduler to choose paths by number.

use std::collections::BTreeSet;

use rampmeter_types::fabric::LinksDown;
pub use rampmeter_types::fabric::RegularPaths;

use super::{Link, Node, Topology};

impl Topology {
    /// The ways between racks, if they are regular: a packet whose sender has chosen path number p
    /// takes the same switches above from any rack.
    pub fn regular_paths(&self) -> Option<RegularPaths> {
        if self.rails().iter().any(|&rails| rails > 1) {
            return None;
        }
        let above = self.links_to_higher_levels()?;
        let above: Vec<Vec<u32>> =
            above.into_iter().map(|ways| ways.into_iter().map(|(_, to)| to).collect()).collect();
        let hosts = &self.tors[..self.n_hosts() as usize];
        let tors = self.racks();
        let rack = |tor: &u32| tors.binary_search(tor).map(|r| r as u16).ok();
        let rack_of: Vec<u16> = hosts.iter().map(rack).collect::<Option<_>>()?;
        let mut pods: Vec<&[u32]> = Vec::new();
        let mut pod_of = Vec::new();
        for &tor in &tors {
            let aggs = above[tor as usize].as_slice();
            let known = pods.iter().position(|&pod| pod == aggs);
            pod_of.push(known.unwrap_or(pods.len()) as u16);
            if known.is_none() {
                pods.push(aggs);
            }
        }
        let tor_up = pods[0].len();
        if tor_up == 0 {
            // A single rack has no ways to choose among.
            return (tors.len() == 1).then_some(RegularPaths {
                rack_of,
                pod_of,
                tor_uplinks: 1,
                agg_uplinks: 1,
            });
        }
        let cores = |pod: &[u32]| -> Vec<Vec<u32>> {
            pod.iter().map(|&agg| above[agg as usize].clone()).collect()
        };
        let first = cores(pods[0]);
        let agg_up = first[0].len();
        let is_regular = pods.iter().all(|pod| pod.len() == tor_up && cores(pod) == first)
            && first.iter().all(|up| up.len() == agg_up)
            && first.iter().flatten().all(|&core| above[core as usize].is_empty())
            && (agg_up > 0 || pods.len() == 1);
        let (tor_uplinks, agg_uplinks) = (tor_up as u16, (agg_up as u16).max(1));
        is_regular.then_some(RegularPaths { rack_of, pod_of, tor_uplinks, agg_uplinks })
    }

    /// Returns true if the network is regular and links of a tier are alike. Paths that failures
    /// open are then neither faster than the shortest ones, nor do they carry more.
    pub fn has_only_slower_detours(&self) -> bool {
        self.has_equal_ways() && self.has_equal_interfaces() && self.regular_paths().is_some()
    }

    /// Returns true if packets between some hosts have several paths.
    pub fn has_several_paths(&self) -> bool {
        let is_core = |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let parts: BTreeSet<u32> = self.parts().into_iter().collect();
        let n_core = self.links.iter().filter(is_core).count();
        // A forest has one path between any two nodes.
        n_core + parts.len() > self.levels.len() || self.rails().iter().any(|&rails| rails > 1)
    }

    /// Returns the links between switches that are down, as [`Topology::regular_paths`] numbers
    /// them; none if the network is not regular. `is_up` answers by link.
    pub(crate) fn links_down(&self, is_up: &dyn Fn(u32) -> bool) -> LinksDown {
        let mut down = LinksDown::default();
        let (Some(paths), Some(above)) = (self.regular_paths(), self.links_to_higher_levels())
        else {
            return down;
        };
        let ways = |switch: u32| above[switch as usize].iter().zip(0..);
        let mut pods_seen = 0;
        for (&tor, (rack, &pod)) in self.racks().iter().zip((0..).zip(&paths.pod_of)) {
            let failed = ways(tor).filter(|((link, _), _)| !is_up(*link));
            down.racks.extend(failed.map(|(_, way)| (rack, way)));
            if pod < pods_seen {
                continue;
            }
            pods_seen = pod + 1;
            for ((_, agg), place) in ways(tor) {
                let failed = ways(*agg).filter(|((link, _), _)| !is_up(*link));
                down.pods.extend(failed.map(|(_, way)| (pod, place, way)));
            }
        }
        down
    }
}

#[cfg(test)]
mod tests {
    use crate::topo::{Topology, TopologySpec};

    use super::LinksDown;

    /// Returns a network of a kind with some keys.
    fn built(kind: &str, keys: &str) -> Topology {
        let text = format!("kind = \"{kind}\"\n{keys}");
        toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
    }

    #[test]
    fn leaf_spines_and_fat_trees_are_regular_and_dumbbells_are_not() {
        let paths = built("leaf-spine", "racks = 3\nhosts-per-rack = 2\nspines = 5");
        let paths = paths.regular_paths().unwrap();
        assert_eq!((paths.tor_uplinks, paths.agg_uplinks), (5, 1));
        assert_eq!((paths.rack_of, paths.pod_of), (vec![0, 0, 1, 1, 2, 2], vec![0, 0, 0]));
        let paths = built("fat-tree", "k = 4").regular_paths().unwrap();
        assert_eq!((paths.tor_uplinks, paths.agg_uplinks), (2, 2));
        assert_eq!(paths.pod_of, [0, 0, 1, 1, 2, 2, 3, 3]);
        let star = built("star", "hosts = 4");
        assert_eq!(star.regular_paths().unwrap().tor_uplinks, 1);
        assert!(built("dumbbell", "hosts-per-side = 2").regular_paths().is_none());
    }

    /// A link of each tier of a fat-tree with four ports a switch.
    #[test]
    fn failed_links_are_reported_by_rack_and_pod() {
        let tree = built("fat-tree", "k = 4");
        let paths = tree.regular_paths().unwrap();
        let above = tree.links_to_higher_levels().unwrap();
        let tor = tree.racks()[5];
        let (_, agg) = above[tor as usize][1];
        let (way, _) = above[tor as usize][0];
        let (top, _) = above[agg as usize][1];
        let down = tree.links_down(&|link| ![way, top].contains(&link));
        let pod = paths.pod_of[5];
        assert_eq!((down.racks, down.pods), (vec![(5, 0)], vec![(pod, 1, 1)]));
        assert_eq!(tree.links_down(&|_| true), LinksDown::default());
        let dumbbell = built("dumbbell", "hosts-per-side = 2");
        assert_eq!(dumbbell.links_down(&|_| false), LinksDown::default());
    }
}
