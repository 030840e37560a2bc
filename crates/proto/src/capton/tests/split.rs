//! The variant that splits rates.

use proptest::prelude::*;
use rampmeter_types::{Bytes, NodeId, Rate, Span, Time};

use super::super::figure6::{PendingFlow, schedule_by_figure6};
use super::super::network::Network;
use super::super::split::{MinShare, SplitScheduler, schedule_split};
use super::{any_network, flow, gbps, two_racks};
use crate::central::remaining::RemainingSize;
use crate::central::{Change, FlowId};

fn least(milli: u32) -> MinShare {
    MinShare::from_milli(milli).unwrap()
}

/// Returns the flows between the hosts of these numbers modulo the number of hosts.
fn pending(network: &Network, ends: &[(u32, u32, u64)]) -> Vec<PendingFlow> {
    let n = network.n_hosts();
    let pending = |&(src, away, bytes): &(u32, u32, u64)| PendingFlow {
        src: NodeId::new(src % n),
        dst: NodeId::new((src % n + 1 + away % (n - 1)) % n),
        remaining: RemainingSize::from_bytes(Bytes::new(bytes)),
    };
    ends.iter().map(pending).collect()
}

fn ends() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    proptest::collection::vec((0u32..100, 0u32..100, 0u64..2_000), 0..60)
}

proptest! {
    #[test]
    fn no_link_carries_too_much_and_a_flow_waits_only_for_its_least_share(
        network in any_network(),
        ends in ends(),
        milli in 1u32..=1_000,
    ) {
        let flows = pending(&network, &ends);
        let rates = schedule_split(&network, &flows, least(milli));
        let capacity = |link| network.capacity(link).map_or(0, Rate::as_bps);
        let mut free: Vec<i128> = network.links().map(|link| capacity(link).into()).collect();
        for (flow, rate) in flows.iter().zip(&rates) {
            for link in network.path(flow.src, flow.dst).links() {
                free[link.index()] -= i128::from(rate.map_or(0, Rate::as_bps));
            }
        }
        prop_assert!(free.iter().all(|&free| free >= 0), "overfull: {:?}", free);
        for (flow, rate) in flows.iter().zip(&rates) {
            let path = network.path(flow.src, flow.dst);
            let Some(whole) = network.rate(&path).map(|rate| i128::from(rate.as_bps())) else {
                prop_assert!(rate.is_none());
                continue;
            };
            let room = path.links().iter().map(|link| free[link.index()]).min().unwrap();
            match rate.map(|rate| i128::from(rate.as_bps())) {
                // The unused capacity of a flow's links is no more than it could not use.
                None => prop_assert!(room * 1_000 < whole * i128::from(milli)),
                Some(rate) => {
                    prop_assert!(rate * 1_000 >= whole * i128::from(milli) && rate <= whole);
                    prop_assert!(rate == whole || room == 0);
                }
            }
        }
    }

    #[test]
    fn with_the_whole_as_least_share_of_equal_links_it_is_figure_6(
        ends in ends(),
        core in 1u64..9,
    ) {
        let network = Network::leaf_spine(3, 4, gbps(10), gbps(10 * core)).unwrap();
        let flows = pending(&network, &ends);
        let split = schedule_split(&network, &flows, least(1_000));
        prop_assert_eq!(split, schedule_by_figure6(&network, &flows));
    }
}

fn changes(changes: &[Change<Rate>]) -> Vec<(u64, u64)> {
    let in_gbps = |rate: Option<Rate>| rate.map_or(0, |rate| rate.as_bps() / 1_000_000_000);
    changes.iter().map(|change| (change.flow.0, in_gbps(change.grant))).collect()
}

/// The core has 20 Gbit/s, and one destination an access link of 6.
#[test]
fn a_flow_uses_the_remaining_capacity_if_it_is_its_least_share() {
    let mut network = two_racks();
    network.set_capacity(network.down(0, 4).unwrap(), Some(gbps(6)));
    let mut scheduler = SplitScheduler::new(network, least(300));
    assert_eq!(changes(scheduler.arrive(flow(1, 0, 4, 10))), [(1, 6)]);
    // Source 0 has 4 Gbit/s to spare, and may have another flow.
    assert_eq!(changes(scheduler.arrive(flow(2, 0, 5, 20))), [(2, 4)]);
    assert_eq!(changes(scheduler.arrive(flow(3, 1, 6, 30))), [(3, 10)]);
    // The core is full.
    assert_eq!(changes(scheduler.arrive(flow(4, 2, 7, 40))), []);
    assert_eq!(changes(scheduler.complete(FlowId(3))), [(4, 10)]);
    assert_eq!(changes(scheduler.complete(FlowId(1))), [(2, 10)]);
    // 2 Gbit/s would be less than three tenths.
    let up = scheduler.network().up(1, 0).unwrap();
    assert_eq!(changes(scheduler.set_capacity(up, Some(gbps(12)))), [(4, 0)]);
    assert_eq!(changes(scheduler.correct(FlowId(2), Bytes::new(50_000))), [(2, 0), (4, 10)]);
}

#[test]
fn completions_are_predicted_from_remaining_bytes_at_each_rate() {
    let mut scheduler = SplitScheduler::new(two_racks(), least(100));
    let at_us = |us| Time::ZERO + Span::from_us(us);
    scheduler.arrive(flow(1, 0, 4, 125));
    assert_eq!(scheduler.next_completion(), Some((at_us(100), FlowId(1))));
    scheduler.advance(at_us(60));
    let access = scheduler.network().down(0, 4).unwrap();
    scheduler.set_capacity(access, Some(gbps(5)));
    assert_eq!(scheduler.remaining(FlowId(1)).unwrap().bytes_ceil(), Bytes::new(50_000));
    assert_eq!(scheduler.next_completion(), Some((at_us(140), FlowId(1))));
    assert_eq!(scheduler.rate(FlowId(1)), Some(gbps(5)));
}

#[test]
fn least_shares_are_from_a_thousandth_to_the_whole() {
    assert_eq!([0, 1_001].map(MinShare::from_milli), [None, None]);
    assert!([1, 1_000].map(MinShare::from_milli).iter().all(Option::is_some));
}
