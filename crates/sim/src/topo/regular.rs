//! Networks regular enough for a scheduler to choose paths by number.

pub use rampmeter_core::fabric::RegularPaths;

use super::{Node, Topology};

impl Topology {
    /// The ways between racks, if they are regular: a packet whose sender has chosen path number p
    /// takes the same switches above from any rack.
    pub fn regular_paths(&self) -> Option<RegularPaths> {
        if self.rails().iter().any(|&rails| rails > 1) {
            return None;
        }
        let mut above: Vec<Vec<u32>> = vec![Vec::new(); self.levels.len()];
        for link in &self.links {
            let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { continue };
            match self.levels[a as usize].cmp(&self.levels[b as usize]) {
                std::cmp::Ordering::Less => above[a as usize].push(b),
                std::cmp::Ordering::Greater => above[b as usize].push(a),
                std::cmp::Ordering::Equal => return None,
            }
        }
        let hosts = &self.tors[..self.n_hosts() as usize];
        let mut tors = hosts.to_vec();
        tors.sort_unstable();
        tors.dedup();
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
                tor_up: 1,
                agg_up: 1,
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
        let (tor_up, agg_up) = (tor_up as u16, (agg_up as u16).max(1));
        is_regular.then_some(RegularPaths { rack_of, pod_of, tor_up, agg_up })
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_core::{Rate, Span};

    use crate::topo::Topology;
    use crate::topo::build::Wires;

    const WIRES: Wires = Wires {
        access: Rate::from_gbps(10),
        core: Rate::from_gbps(40),
        propagation: Span::from_ns(200),
        switch_latency: Span::ZERO,
        host_latency: Span::ZERO,
    };

    #[test]
    fn leaf_spines_and_fat_trees_are_regular_and_dumbbells_are_not() {
        let paths = Topology::leaf_spine((3, 1), 2, 5, &WIRES).unwrap().regular_paths().unwrap();
        assert_eq!((paths.tor_up, paths.agg_up), (5, 1));
        assert_eq!((paths.rack_of, paths.pod_of), (vec![0, 0, 1, 1, 2, 2], vec![0, 0, 0]));
        let paths = Topology::fat_tree(4, &WIRES).unwrap().regular_paths().unwrap();
        assert_eq!((paths.tor_up, paths.agg_up), (2, 2));
        assert_eq!(paths.pod_of, [0, 0, 1, 1, 2, 2, 3, 3]);
        let star = Topology::star(4, &WIRES).unwrap();
        assert_eq!(star.regular_paths().unwrap().tor_up, 1);
        assert!(Topology::dumbbell(2, &WIRES).unwrap().regular_paths().is_none());
    }
}
