//! Tests of CAPTON's parts.

mod controller;
mod figures;
mod model;
mod network;
mod scheduler;
mod split;

use rampmeter_types::{Bytes, NodeId, Rate};

use super::network::{LevelMember, NarrowCorePolicy, Network};
use crate::central::{Arrival, FlowId};
use proptest::prelude::*;

/// Returns a flow of `kb` kilobytes.
fn flow(id: u64, src: u32, dst: u32, kb: u64) -> Arrival {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    Arrival { id: FlowId(id), src, dst, remaining: Bytes::new(kb * 1_000) }
}

fn gbps(n: u64) -> Rate {
    Rate::from_gbps(n)
}

/// Two racks of four hosts, links of 10 Gbit/s, and 20 Gbit/s between the racks.
pub(crate) fn two_racks() -> Network {
    Network::leaf_spine(2, 4, gbps(10), gbps(20)).unwrap()
}

/// Returns a capacity: mostly that of most links, at times another, at times none.
fn capacity(usual: u64) -> impl Strategy<Value = Option<Rate>> {
    prop_oneof![
        6 => Just(Some(gbps(usual))),
        3 => proptest::sample::select(vec![1, 4, 10, 25, 40]).prop_map(|n| Some(gbps(n))),
        1 => Just(None),
    ]
}

fn level(members: usize, groups: u32, usual: u64) -> impl Strategy<Value = Vec<LevelMember>> {
    let member = (0..groups, capacity(usual), capacity(usual));
    let member = member.prop_map(|(group, up, down)| LevelMember { group, up, down });
    proptest::collection::vec(member, members)
}

/// One to three levels, with links of several capacities.
fn any_network() -> impl Strategy<Value = Network> {
    let narrow = proptest::sample::select(vec![NarrowCorePolicy::Refuse, NarrowCorePolicy::Shrink]);
    (2usize..12, 1usize..5, 1usize..3, 1usize..4, narrow).prop_flat_map(
        |(hosts, racks, pods, levels, narrow)| {
            let all =
                (level(hosts, racks as u32, 10), level(racks, pods as u32, 20), level(pods, 1, 40));
            all.prop_map(move |(hosts, racks, pods)| {
                Network::new(&[hosts, racks, pods][..levels], narrow).unwrap()
            })
        },
    )
}
