//! Networks and paths.

use rampmeter_types::NodeId;
use rampmeter_types::fabric::LinksDown;

use super::super::network::*;
use super::{gbps, two_racks};

fn member(group: u32) -> LevelMember {
    LevelMember { group, up: Some(gbps(10)), down: Some(gbps(10)) }
}

#[test]
fn a_flow_uses_links_up_to_the_first_common_group() {
    let hosts = (0..8).map(|h| member(h / 2)).collect();
    let racks = (0..4).map(|r| member(r / 2)).collect();
    let network =
        Network::new(&[hosts, racks, vec![member(0); 2]], NarrowCorePolicy::Shrink).unwrap();
    let path = |src, dst| network.path(NodeId::new(src), NodeId::new(dst));
    let ways = |ups: [(usize, u32, u32); 3]| -> Vec<LinkId> {
        let link = |(level, src, dst)| {
            [network.up(level, src).unwrap(), network.down(level, dst).unwrap()]
        };
        ups.into_iter().flat_map(link).collect()
    };
    let all = ways([(0, 1, 6), (1, 0, 3), (2, 0, 1)]);
    assert_eq!(path(1, 6).links(), all);
    assert_eq!((path(1, 6).access(), path(1, 6).core()), (&all[..2], &all[2..]));
    // Within a pod, and within a rack.
    assert_eq!(path(1, 2).links(), &ways([(0, 1, 2), (1, 0, 1), (2, 0, 0)])[..4]);
    assert_eq!(path(1, 0).core(), &[]);
    assert!(network.up(2, 2).is_none() && network.down(3, 0).is_none());
}

#[test]
fn the_rate_is_the_least_of_the_path_and_none_if_a_link_is_down() {
    let mut network = two_racks();
    let path = network.path(NodeId::new(0), NodeId::new(4));
    assert_eq!(network.rate(&path), Some(gbps(10)));
    network.set_capacity(network.down(0, 4).unwrap(), Some(gbps(1)));
    assert_eq!(network.rate(&path), Some(gbps(1)));
    network.set_capacity(network.down(0, 4).unwrap(), None);
    assert_eq!(network.rate(&path), None);
}

/// Two pods of two racks of two hosts. A rack has two ways up, a pod four, of 10 Gbit/s each.
fn two_pods() -> Network {
    let of = |group, rate| LevelMember { group, up: Some(gbps(rate)), down: Some(gbps(rate)) };
    let hosts = (0..8).map(|host| of(host / 2, 10)).collect();
    let racks = (0..4).map(|rack| of(rack / 2, 20)).collect();
    let pods = vec![of(0, 40); 2];
    Network::new(&[hosts, racks, pods], NarrowCorePolicy::Shrink)
        .unwrap()
        .with_parallel_paths(&[2, 4])
}

#[test]
fn members_have_the_capacity_of_the_remaining_links() {
    let mut network = two_pods();
    let set = |network: &mut Network, down: &LinksDown| {
        let changed = network.degraded_capacities(down);
        changed.iter().for_each(|&(link, capacity)| network.set_capacity(link, capacity));
        changed.len()
    };
    let both = |network: &Network, level, member| {
        let links = [network.up(level, member).unwrap(), network.down(level, member).unwrap()];
        assert_eq!(network.capacity(links[0]), network.capacity(links[1]));
        network.capacity(links[0])
    };
    let mut down = LinksDown { racks: vec![(2, 1)], pods: vec![(1, 0, 1)] };
    assert_eq!(set(&mut network, &down), 4);
    assert_eq!(both(&network, 1, 2), Some(gbps(10)));
    assert_eq!(both(&network, 2, 1), Some(gbps(30)));
    assert_eq!(set(&mut network, &down), 0);
    // A second failure, repairs, and links that the network does not have.
    down = LinksDown { racks: vec![(2, 1), (2, 0), (99, 0)], pods: Vec::new() };
    assert_eq!(set(&mut network, &down), 4);
    assert_eq!(both(&network, 1, 2), Some(gbps(20)));
    down = LinksDown { racks: vec![(0, 0)], ..LinksDown::default() };
    assert_eq!(set(&mut network, &down), 2);
    assert_eq!(set(&mut network, &LinksDown::default()), 2);
    assert_eq!(network, two_pods());
}

#[test]
fn racks_without_known_links_keep_their_capacity() {
    let network = two_racks();
    let down = LinksDown { racks: vec![(0, 0)], pods: Vec::new() };
    assert_eq!(network.degraded_capacities(&down), []);
}

#[test]
fn levels_that_do_not_fit_together_are_refused_with_the_place() {
    let as_numbers = |levels: &[Vec<LevelMember>]| {
        Network::new(levels, NarrowCorePolicy::Shrink).unwrap_err().to_string()
    };
    assert_eq!(as_numbers(&[]), "levels: expected 1 to 4, got 0");
    assert_eq!(as_numbers(&[vec![]]), "level 0: expected 1 to 2^28 members, got 0");
    let hosts = vec![member(0), member(2)];
    assert_eq!(
        as_numbers(&[hosts, vec![member(0); 2]]),
        "member 1 of level 0: expected a group below 2, got 2"
    );
    let fast = LevelMember { up: rampmeter_types::Rate::from_bps(1 << 57), ..member(0) };
    assert_eq!(
        as_numbers(&[vec![fast]]),
        "member 0 of level 0: expected at most 72057594037927936 bit/s, got 144115188075855872"
    );
}
