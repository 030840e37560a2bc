//! Tests of the allocation of slots.

use super::super::allocate::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Demands = Vec<(u16, u16, u32)>;

fn demands(n: u16) -> impl Strategy<Value = Demands> {
    proptest::collection::vec((0..n, 0..n, 1u32..40), 0..200)
}

proptest! {
    /// Fastpass §3.1: in each slot a matching, maximal among the pairs that still have demand;
    /// no pair gets more slots than it requested.
    #[test]
    fn every_slot_has_a_maximal_matching(
        n in 2u16..24,
        batch in 1u32..=64,
        seed in demands(24),
    ) {
        let mut allocator = Allocator::new(n.into(), batch);
        let mut demanded: BTreeMap<(u16, u16), u32> = BTreeMap::new();
        for (src, dst, slots) in seed {
            let (src, dst) = (src % n, dst % n);
            allocator.request(src, dst, slots);
            *demanded.entry((src, dst)).or_default() += slots;
        }
        for _ in 0..20 {
            let mut out = Vec::new();
            allocator.allocate(&mut out);
            let mut srcs: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); batch as usize];
            let mut dsts = srcs.clone();
            for a in &out {
                prop_assert!(srcs[usize::from(a.slot)].insert(a.src), "a source sends twice");
                prop_assert!(dsts[usize::from(a.slot)].insert(a.dst), "two to one destination");
                let left = demanded.get_mut(&(a.src, a.dst)).unwrap();
                prop_assert!(*left > 0, "more than was requested");
                *left -= 1;
            }
            for (&(src, dst), &left) in &demanded {
                prop_assert_eq!(allocator.demand(src, dst), left);
                for slot in 0..batch as usize {
                    let is_blocked = srcs[slot].contains(&src) || dsts[slot].contains(&dst);
                    prop_assert!(left == 0 || is_blocked, "slot {} is not maximal", slot);
                }
            }
        }
    }
}

/// Max-min fairness (§3.1): pairs that share a destination get turns, regardless of their
/// requests.
#[test]
fn conflicting_pairs_are_served_round_robin() {
    let mut allocator = Allocator::new(8, 16);
    for src in 1..5 {
        allocator.request(src, 0, 1_000 * u32::from(src));
    }
    let mut out = Vec::new();
    for _ in 0..10 {
        allocator.allocate(&mut out);
    }
    for src in 1..5 {
        assert_eq!(out.iter().filter(|a| a.src == src).count(), 40);
    }
    // The first batch has each source once in every four slots.
    let mut slots: Vec<u8> = out[..16].iter().filter(|a| a.src == 1).map(|a| a.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 4, 8, 12]);
}

/// A pair that the caller refuses gets no allocation in that slot; other pairs get it.
#[test]
fn a_pair_that_is_refused_a_slot_gets_the_next_that_it_may_have() {
    let mut allocator = Allocator::new(4, 4);
    allocator.request(0, 1, 2);
    allocator.request(2, 1, 4);
    let mut out = Vec::new();
    allocator.allocate_if(&mut out, |a| a.src != 0 || a.slot == 3);
    out.sort_unstable();
    let of = |src: u16| out.iter().filter(|a| a.src == src).map(|a| a.slot).collect::<Vec<_>>();
    assert_eq!((of(0), of(2)), (vec![3], vec![0, 1, 2]));
    assert_eq!((allocator.demand(0, 1), allocator.demand(2, 1)), (1, 1));
}

/// Destinations that represent several hosts take as many sources as the caller allows.
#[test]
fn several_sources_send_to_a_shared_destination() {
    let mut allocator = Allocator::new(6, 1).with_shared_destinations(5);
    (0..4).for_each(|src| allocator.request(src, 5, 1));
    (0..4).for_each(|src| allocator.request(src, 4, 1));
    let (mut out, mut room) = (Vec::new(), 2);
    allocator.allocate_if(&mut out, |a| {
        let may = a.dst != 5 || room > 0;
        room -= u32::from(may && a.dst == 5);
        may
    });
    let to = |dst: u16| out.iter().filter(|a| a.dst == dst).count();
    assert_eq!((to(5), to(4)), (2, 1));
}

/// Hosts 1 to 3 send to host 0; host 4 sends to it occasionally.
#[test]
fn an_idle_pair_is_first_only_if_idle_time_is_recorded() {
    let waits = |mut allocator: Allocator| {
        (1..4).for_each(|src| allocator.request(src, 0, 100));
        let mut next = || {
            let mut out = Vec::new();
            allocator.allocate(&mut out);
            assert_eq!(out.len(), 1);
            out[0].src
        };
        let warm: Vec<u16> = (0..6).map(|_| next()).collect();
        assert_eq!(warm, [1, 2, 3, 1, 2, 3]);
        let mut waits = Vec::new();
        for _ in 0..2 {
            allocator.request(4, 0, 1);
            let mut served = || {
                let mut out = Vec::new();
                allocator.allocate(&mut out);
                out[0].src
            };
            waits.push((0..).find(|_| served() == 4).unwrap());
            (0..6).for_each(|_| assert_ne!(served(), 4));
        }
        waits
    };
    assert_eq!(waits(Allocator::new(5, 1)), [3, 3]);
    assert_eq!(waits(Allocator::new(5, 1).with_history()), [0, 0]);
}

#[test]
fn a_source_that_withdraws_gets_nothing_more() {
    let mut allocator = Allocator::new(4, 16);
    allocator.request(1, 0, 100);
    allocator.request(2, 0, 100);
    allocator.withdraw(1);
    let mut out = Vec::new();
    allocator.allocate(&mut out);
    assert!(out.len() == 16 && out.iter().all(|a| a.src == 2));
    allocator.request(1, 0, 1);
    assert_eq!(allocator.demand(1, 0), 1);
}
