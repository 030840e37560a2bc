//! Tests of the choice of paths.

use super::super::allocate::Allocation;
use super::super::paths::Paths;
use proptest::prelude::*;
use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{Purpose, Rng};

fn choose(plan: &RegularPaths, slot: &[Allocation]) -> Vec<u16> {
    let mut paths = vec![0; slot.len()];
    Paths::default().choose(plan, slot, &mut paths);
    paths
}

/// Returns a matching of hosts, as a slot has.
fn matching(n: u16, seed: u64) -> Vec<Allocation> {
    let mut dsts: Vec<u16> = (0..n).collect();
    Rng::new(seed, 0, Purpose::Test).shuffle(&mut dsts);
    let pairs = (0..n).zip(dsts).filter(|(src, dst)| src != dst);
    pairs.map(|(src, dst)| Allocation { slot: 0, src, dst }).collect()
}

proptest! {
    /// §4: with as much capacity above racks as below, no link has more packets in a slot than
    /// it can carry.
    #[test]
    fn links_between_racks_are_never_overfull(seed in any::<u64>(), spines in 1u16..9) {
        let (racks, hosts) = (9u16, 16u16);
        let plan = RegularPaths {
            rack_of: (0..racks * hosts).map(|h| h / hosts).collect(),
            pod_of: vec![0; usize::from(racks)],
            tor_uplinks: spines,
            agg_uplinks: 1,
        };
        let slot = matching(racks * hosts, seed);
        let paths = choose(&plan, &slot);
        for rack in 0..racks {
            for spine in 0..spines {
                let on = |port: &dyn Fn(&Allocation) -> (u16, u16)| {
                    let between = |a: &&Allocation| a.src / hosts != a.dst / hosts;
                    let pairs = slot.iter().zip(&paths).filter(|(a, _)| between(a));
                    pairs.filter(|(a, p)| port(a).0 / hosts == rack && **p == spine).count()
                };
                let most = usize::from(hosts.div_ceil(spines));
                prop_assert!(on(&|a| (a.src, a.dst)) <= most);
                prop_assert!(on(&|a| (a.dst, a.src)) <= most);
            }
        }
    }

    /// A fat-tree of 8-port switches carries any matching with one packet a link.
    #[test]
    fn a_fat_tree_carries_any_matching_without_a_collision(seed in any::<u64>()) {
        let half = 4u16;
        let (n_racks, n_hosts) = (8 * half, 8 * half * half);
        let plan = RegularPaths {
            rack_of: (0..n_hosts).map(|h| h / half).collect(),
            pod_of: (0..n_racks).map(|r| r / half).collect(),
            tor_uplinks: half,
            agg_uplinks: half,
        };
        let slot = matching(n_hosts, seed);
        let paths = choose(&plan, &slot);
        let mut links = std::collections::BTreeSet::new();
        for (a, path) in slot.iter().zip(paths) {
            let (up, core) = (path % half, path / half);
            let rack = |h: u16| h / half;
            let pod = |h: u16| h / half / half;
            if rack(a.src) == rack(a.dst) {
                continue;
            }
            prop_assert!(links.insert(("tor-up", rack(a.src), up, 0)));
            prop_assert!(links.insert(("tor-down", rack(a.dst), up, 0)));
            if pod(a.src) != pod(a.dst) {
                prop_assert!(links.insert(("agg-up", pod(a.src), up, core)));
                prop_assert!(links.insert(("agg-down", pod(a.dst), up, core)));
            }
        }
    }
}
