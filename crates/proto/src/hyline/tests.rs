//! Tests of Hyline's parts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{Bytes, DuplexRates, NodeId, Rate, Span, Time};

use super::paths::Paths;
use super::scheduler::PathScheduler;
use super::wire::SignalHeader;
use super::{HylineConfig, PathGrant};
use crate::central::remaining::RemainingLine;
use crate::central::{Arrival, Change, Control, FlowId, RemainingSize, Schedule};

fn gbps(n: u64) -> Rate {
    Rate::from_gbps(n)
}

/// Racks of `hosts` hosts; pods of `racks` racks.
fn plan(pods: u16, racks: u16, hosts: u16, (tor_uplinks, agg_uplinks): (u16, u16)) -> RegularPaths {
    let n_racks = pods * racks;
    RegularPaths {
        rack_of: (0..n_racks * hosts).map(|host| host / hosts).collect(),
        pod_of: (0..n_racks).map(|rack| rack / racks).collect(),
        tor_uplinks,
        agg_uplinks,
    }
}

/// Two racks of four hosts and two core switches; `core` is in Gbit/s, hosts have 10.
fn two_racks(core: u64) -> Paths {
    Paths::new(vec![DuplexRates::equal(gbps(10)); 8], gbps(core), Some(plan(1, 2, 4, (2, 1))))
}

pub(crate) fn new(core: u64) -> PathScheduler {
    PathScheduler::new(two_racks(core), vec![gbps(10); 8])
}

fn arrival(id: u64, src: u32, dst: u32, kb: u64) -> Arrival {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    Arrival { id: FlowId(id), src, dst, remaining: Bytes::new(kb * 1_000) }
}

/// Returns the flows with their paths; `None` for those that stop.
fn as_paths(changes: &[Change<PathGrant>]) -> Vec<(u64, Option<Option<u16>>)> {
    changes.iter().map(|change| (change.flow.0, change.grant.map(|grant| grant.path))).collect()
}

#[test]
fn a_flow_takes_its_access_links_and_those_of_its_path() {
    let paths =
        Paths::new(vec![DuplexRates::equal(gbps(10)); 8], gbps(10), Some(plan(2, 2, 2, (2, 3))));
    let links = |src, dst, path| paths.links(NodeId::new(src), NodeId::new(dst), path);
    let count = |src, dst| paths.count(NodeId::new(src), NodeId::new(dst));
    assert_eq!([count(0, 1), count(0, 2), count(0, 4)], [0, 2, 6]);
    // Hosts 8 pairs, racks 4 x 2, pods 2 x 2 x 3.
    assert_eq!(paths.n_links(), 2 * (8 + 8 + 12));
    assert_eq!(links(0, 1, None).all(), [0, 3]);
    assert_eq!(links(0, 2, Some(1)).all(), [0, 5, 2 * 9, 2 * 11 + 1]);
    // Path 5 is the second switch above the rack, and the third one above that.
    assert_eq!(links(0, 7, Some(5)).core(), [2 * 9, 2 * 15 + 1, 2 * 21, 2 * 27 + 1]);
    assert_eq!(paths.rate(&links(0, 1, None)), gbps(10));
}

#[test]
fn flows_use_different_paths_and_wait_without_a_free_one() {
    let mut scheduler = new(10);
    assert_eq!(as_paths(scheduler.arrive(arrival(1, 0, 4, 100))), [(1, Some(Some(0)))]);
    assert_eq!(as_paths(scheduler.arrive(arrival(2, 1, 5, 200))), [(2, Some(Some(1)))]);
    assert_eq!(as_paths(scheduler.arrive(arrival(3, 2, 6, 300))), []);
    // Within a rack nothing is missing; the way back is free.
    assert_eq!(as_paths(scheduler.arrive(arrival(4, 2, 3, 400))), [(4, Some(None))]);
    assert_eq!(as_paths(scheduler.arrive(arrival(5, 4, 0, 500))), [(5, Some(Some(0)))]);
    // The flow with the largest remaining size is stopped, and the other keeps its path.
    let shorter = scheduler.arrive(arrival(6, 3, 7, 50));
    assert_eq!(as_paths(shorter), [(2, None), (6, Some(Some(1)))]);
    assert_eq!(as_paths(scheduler.complete(FlowId(1))), [(2, Some(Some(0)))]);
}

/// Core links of 25 Gbit/s carry two flows. The fuller path is taken, so that one path has room for
/// others.
#[test]
fn faster_core_links_carry_several_flows() {
    let mut scheduler = new(25);
    let paths: Vec<_> = (0..4)
        .map(|n| as_paths(scheduler.arrive(arrival(n, n as u32, 4 + n as u32, 100))))
        .collect();
    let path = |flow, path| vec![(flow, Some(Some(path)))];
    assert_eq!(paths, [path(0, 0), path(1, 0), path(2, 1), path(3, 1)]);
}

#[test]
fn a_core_link_slower_than_an_access_link_limits_the_rate() {
    let mut scheduler = new(4);
    scheduler.arrive(arrival(1, 0, 4, 100));
    scheduler.arrive(arrival(2, 1, 2, 100));
    let rate = |id| scheduler.grant(FlowId(id)).unwrap().rate;
    assert_eq!((rate(1), rate(2)), (gbps(4), gbps(10)));
}

#[test]
fn sent_bytes_count_towards_the_next_completion() {
    let mut scheduler = new(10);
    scheduler.arrive(arrival(1, 0, 4, 125));
    let us = |us| Time::ZERO + Span::from_us(us);
    assert_eq!(scheduler.next_completion(), Some((us(100), FlowId(1))));
    scheduler.advance(us(90));
    assert_eq!(scheduler.remaining(FlowId(1)), Some(RemainingSize::from_bytes(Bytes::new(12_500))));
    assert_eq!(as_paths(scheduler.arrive(arrival(2, 0, 5, 25))), []);
    assert_eq!(as_paths(scheduler.correct(FlowId(1), Bytes::new(26_000))).len(), 2);
    assert_eq!(scheduler.next_completion(), Some((us(110), FlowId(2))));
}

/// 10 Gbit/s are taken of a link, and 5 are sent.
#[test]
fn a_window_delays_completions_and_nothing_else() {
    let mut scheduler = PathScheduler::new(two_racks(25), vec![gbps(5); 8]);
    scheduler.arrive(arrival(1, 0, 4, 125));
    let us = |us| Time::ZERO + Span::from_us(us);
    assert_eq!(scheduler.next_completion(), Some((us(200), FlowId(1))));
    scheduler.advance(us(80));
    assert_eq!(scheduler.remaining(FlowId(1)), Some(RemainingSize::from_bytes(Bytes::new(75_000))));
    let paths = [(2, 1, 5), (3, 2, 6)].map(|(id, src, dst)| {
        as_paths(scheduler.arrive(arrival(id, src, dst, 500)))[0].1.flatten()
    });
    assert_eq!(paths, [Some(0), Some(1)]);
}

#[test]
fn grants_and_stops_survive_conversion_to_signals() {
    let grants = [None, Some(None), Some(Some(3))];
    for path in grants {
        let grant = path.map(|path| PathGrant { rate: gbps(10), path });
        let control = Control::Order { number: 1, order: 2, grant };
        assert_eq!(Control::from(SignalHeader::from(control)), control);
    }
}

#[test]
fn hyline_presets_are_in_range() {
    crate::keys::check_ranges(&HylineConfig::paper()).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(u32, u32, u64),
    Complete(usize),
    CompleteNext,
    Correct(usize, u64),
    Advance(Span),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u32..100, 0u32..100, 0u64..2_000).prop_map(|(a, b, n)| Step::Arrive(a, b, n)),
        2 => (0usize..100).prop_map(Step::Complete),
        3 => Just(Step::CompleteNext),
        2 => (0usize..100, 0u64..2_000).prop_map(|(n, left)| Step::Correct(n, left)),
        4 => (0u64..500).prop_map(|ns| Step::Advance(Span::from_ns(ns))),
    ];
    proptest::collection::vec(step, 1..80)
}

fn any_paths() -> impl Strategy<Value = Paths> {
    let rates = proptest::sample::select(vec![(10, 10), (10, 25), (10, 40), (10, 4), (25, 100)]);
    let shape = (1u16..4, 1u16..4, 1u16..5, (1u16..4, 1u16..3));
    let factor = proptest::sample::select(vec![1, 4]);
    let any = (shape, rates, factor, proptest::bool::weighted(0.9));
    any.prop_map(|(shape, (access, core), odd, has_plan)| {
        let (pods, racks, hosts, up) = shape;
        // A network has two hosts at least.
        let plan = plan(pods, racks, if pods * racks == 1 { hosts + 1 } else { hosts }, up);
        let n_hosts = plan.rack_of.len() as u32;
        let rate = |host| gbps(if host % 2 == 1 { odd * access } else { access });
        let hosts = 0..n_hosts;
        let hosts = hosts.map(|host| DuplexRates { tx: rate(host), rx: rate(host / 2) }).collect();
        Paths::new(hosts, gbps(core), has_plan.then_some(plan))
    })
}

/// Rate that windows allow: less than some links and more than others.
const PACE: Rate = Rate::from_gbps(7);

/// The flows that a scheduler has.
#[derive(Default)]
struct World {
    now: Time,
    arrivals: u64,
    flows: BTreeMap<FlowId, (NodeId, NodeId)>,
    /// Grants of hosts, from the changes that they received.
    ordered: BTreeMap<FlowId, PathGrant>,
}

impl World {
    fn step(&mut self, scheduler: &mut PathScheduler, step: &Step) -> Vec<Change<PathGrant>> {
        let pick = |n: usize| self.flows.keys().nth(n % self.flows.len().max(1)).copied();
        let changes = match *step {
            Step::Arrive(src, away, bytes) => {
                let n = scheduler.n_hosts();
                let (src, dst) = (src % n, (src % n + 1 + away % (n - 1)) % n);
                let (src, dst, id) = (NodeId::new(src), NodeId::new(dst), FlowId(self.arrivals));
                self.arrivals += 1;
                self.flows.insert(id, (src, dst));
                scheduler.arrive(Arrival { id, src, dst, remaining: Bytes::new(bytes) })
            }
            Step::Complete(n) => {
                let Some(id) = pick(n) else { return Vec::new() };
                self.flows.remove(&id);
                scheduler.complete(id)
            }
            Step::CompleteNext => {
                let Some((end, id)) = scheduler.next_completion() else { return Vec::new() };
                self.now = self.now.max(end);
                scheduler.advance(end);
                self.flows.remove(&id);
                scheduler.complete(id)
            }
            Step::Correct(n, bytes) => {
                let Some(id) = pick(n) else { return Vec::new() };
                scheduler.correct(id, Bytes::new(bytes))
            }
            Step::Advance(span) => {
                self.now += span;
                scheduler.advance(self.now);
                &[]
            }
        };
        changes.to_vec()
    }

    /// Returns the use of each link by the flows before a place in the order, and their number.
    fn used(
        &self,
        scheduler: &PathScheduler,
        before: Option<(RemainingSize, FlowId)>,
    ) -> Vec<(u64, u32)> {
        let mut used = vec![(0, 0); scheduler.paths().n_links()];
        for (&id, &(src, dst)) in &self.flows {
            let is_before = before.is_none_or(|at| (scheduler.remaining(id).unwrap(), id) < at);
            if let Some(PathGrant { rate, path }) = scheduler.grant(id).filter(|_| is_before) {
                for &link in scheduler.paths().links(src, dst, path).all() {
                    used[link as usize].0 += rate.as_bps();
                    used[link as usize].1 += 1;
                }
            }
        }
        used
    }

    /// Returns true if a path has capacity for a flow next to those before it.
    fn has_room(&self, scheduler: &PathScheduler, id: FlowId, path: Option<u16>) -> bool {
        let used = self.used(scheduler, Some((scheduler.remaining(id).unwrap(), id)));
        let (src, dst) = self.flows[&id];
        let links = scheduler.paths().links(src, dst, path);
        let rate = scheduler.paths().rate(&links).as_bps();
        links.access().iter().all(|&link| used[link as usize].1 == 0)
            && links.core().iter().all(|&link| {
                used[link as usize].0 + rate <= scheduler.paths().capacity(link).as_bps()
            })
    }

    fn check(&self, scheduler: &PathScheduler) -> Result<(), TestCaseError> {
        for (link, &(bps, flows)) in (0..).zip(&self.used(scheduler, None)) {
            let capacity = scheduler.paths().capacity(link).as_bps();
            prop_assert!(bps <= capacity, "link {} carries {}", link, bps);
            prop_assert!(link >= 2 * scheduler.n_hosts() || flows <= 1, "{} flows", flows);
        }
        for (&id, &(src, dst)) in &self.flows {
            let grant = scheduler.grant(id);
            prop_assert_eq!(self.ordered.get(&id).copied(), grant, "{:?} was told otherwise", id);
            let count = scheduler.paths().count(src, dst);
            let paths: Vec<Option<u16>> =
                if count == 0 { vec![None] } else { (0..count).map(Some).collect() };
            match grant {
                // Flows with smaller remaining sizes take every path, so that the outcome is
                // maximal too.
                None => {
                    let free = paths.iter().find(|&&path| self.has_room(scheduler, id, path));
                    prop_assert_eq!(free, None, "{:?} waits for nothing", id);
                }
                Some(grant) => {
                    prop_assert!(paths.contains(&grant.path), "{:?} of {}", grant, count);
                    let links = scheduler.paths().links(src, dst, grant.path);
                    prop_assert_eq!(grant.rate, scheduler.paths().rate(&links));
                }
            }
        }
        let ends = self.flows.keys().filter_map(|&id| {
            let speed = scheduler.grant(id)?.rate.min(PACE);
            Some(RemainingLine::new(scheduler.remaining(id)?, speed, self.now).end(speed))
        });
        prop_assert_eq!(scheduler.next_completion().map(|(end, _)| end), ends.min());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_link_carries_too_much_and_flows_wait_only_for_flows_with_less_left(
        paths in any_paths(),
        steps in steps(),
    ) {
        let mut scheduler = {
            let paces = vec![PACE; paths.n_hosts() as usize];
            PathScheduler::new(paths, paces)
        };
        let mut world = World::default();
        for step in &steps {
            let before = world.ordered.clone();
            let changes = world.step(&mut scheduler, step);
            prop_assert!(changes.is_sorted_by_key(|change| change.grant.is_some()));
            for Change { flow, grant } in changes {
                let before = match grant {
                    Some(grant) => world.ordered.insert(flow, grant),
                    None => world.ordered.remove(&flow),
                };
                prop_assert_ne!(before, grant, "{:?} is told nothing new", flow);
            }
            let flows = &world.flows;
            world.ordered.retain(|id, _| flows.contains_key(id));
            world.check(&scheduler)?;
            for (&id, after) in &world.ordered {
                if let Some(before) = before.get(&id).filter(|before| before.path != after.path) {
                    let has_room = world.has_room(&scheduler, id, before.path);
                    prop_assert!(!has_room, "{:?} left path {:?}", id, before.path);
                }
            }
        }
    }
}
