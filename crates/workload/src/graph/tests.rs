//! Graphs of any shape: their releases, and refused graphs.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_types::{Bytes, NodeId, Span, Time};

use super::{Graph, GraphBuilder, GraphError, Releases};
use crate::flow::Flow;

fn flow(arrival: u64, src: u32, dst: u32) -> Flow {
    Flow::new(Time::from_ps(arrival), NodeId::new(src), NodeId::new(dst), Bytes::new(1))
}

fn delay(ps: u64) -> Span {
    Span::from_ps(ps)
}

/// Returns a graph of flows and computations of `n_hosts`. Each row has an arrival, a source, an
/// offset of the destination (0 for a computation), a delay, and picks among previous rows.
fn graph_of(n_hosts: u32, rows: &[(u64, u32, u32, u64, Vec<usize>)]) -> Graph {
    let mut builder = GraphBuilder::default();
    for (number, (arrival, src, by, ps, picks)) in rows.iter().enumerate() {
        let src = src % n_hosts;
        let node = builder.flow(flow(*arrival, src, (src + by) % n_hosts), delay(*ps));
        for pick in picks.iter().filter(|_| number > 0) {
            let dependency = (pick % number) as u32;
            let (from, to) = builder.ends(dependency);
            if [from, to].contains(&NodeId::new(src)) {
                builder.wait(node, dependency);
            }
        }
    }
    builder.build().unwrap()
}

prop_compose! {
    fn any_graph()(
        n_hosts in 2..5u32,
        rows in prop::collection::vec(
            (0..1_000u64, 0..5u32, 0..5u32, 0..500u64, prop::collection::vec(0..60usize, 0..6)),
            1..60,
        ),
    ) -> Graph {
        graph_of(n_hosts, &rows)
    }
}

/// Event at a host, as a run reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Delivered(u32),
    Completed(u32),
}

/// Runs `graph`: a flow is delivered after `service` of its number, and its source is notified
/// after twice that time. Returns the start of each flow.
fn run(
    graph: &Arc<Graph>,
    service: impl Fn(u32) -> u64,
    parts: &mut [Releases],
) -> Vec<Option<Time>> {
    let mut started = vec![None; graph.len() as usize];
    let mut facts: BTreeMap<(Time, Fact), ()> = BTreeMap::new();
    let mut now = Time::ZERO;
    loop {
        let release = parts.iter().map(Releases::next_release).min().unwrap_or(Time::NEVER);
        let fact = facts.first_key_value().map(|((at, _), ())| *at);
        if release < Time::NEVER && fact.is_none_or(|at| release <= at) {
            let part = parts.iter_mut().find(|part| part.next_release() == release).unwrap();
            let (number, flow) = part.release().unwrap();
            assert!(release >= now && flow.arrival == release);
            assert!(started[number as usize].replace(release).is_none(), "{number} started twice");
            now = release;
            let took = delay(service(number));
            facts.insert((release + took, Fact::Delivered(number)), ());
            facts.insert((release + took + took, Fact::Completed(number)), ());
        } else if let Some(((at, fact), ())) = facts.pop_first() {
            now = at;
            for part in parts.iter_mut() {
                match fact {
                    Fact::Delivered(number) => part.on_delivered(number, at),
                    Fact::Completed(number) => part.on_completed(number, at),
                }
            }
        } else {
            return started;
        }
    }
}

/// Returns the start of each node by definition: the latest of its arrival and of its dependencies,
/// plus its delay.
fn expected(graph: &Graph, service: impl Fn(u32) -> u64) -> Vec<Time> {
    let dependencies = graph.dependencies();
    let mut starts = vec![Time::ZERO; graph.len() as usize];
    for node in graph.topological_order() {
        let host = graph.node(node).src;
        let known = |&dependency: &u32| {
            let start = starts[dependency as usize];
            let took = delay(service(dependency));
            match graph.node(dependency) {
                _ if graph.is_computation(dependency) => start,
                from if from.dst == host => start + took,
                _ => start + took + took,
            }
        };
        let earliest = graph.node(node).arrival;
        let latest = dependencies[node as usize].iter().map(known).fold(earliest, Time::max);
        starts[node as usize] = latest + graph.delay(node);
    }
    starts
}

proptest! {
    #[test]
    fn every_flow_starts_when_its_dependencies_are_received_and_computed(
        graph in any_graph(),
        services in prop::collection::vec(0..300u64, 60),
    ) {
        let graph = Arc::new(graph);
        let service = |number: u32| services[number as usize];
        let started = run(&graph, service, &mut [Releases::new(Arc::clone(&graph))]);
        let expected = expected(&graph, service);
        for (number, _) in graph.flows() {
            prop_assert_eq!(started[number as usize], Some(expected[number as usize]));
        }
    }

    #[test]
    fn hosts_with_only_local_information_start_the_same_flows(
        graph in any_graph(),
        services in prop::collection::vec(0..300u64, 60),
    ) {
        let graph = Arc::new(graph);
        let service = |number: u32| services[number as usize];
        let mut parts: Vec<Releases> =
            (0..5).map(|host| Releases::for_host(Arc::clone(&graph), NodeId::new(host))).collect();
        let together = run(&graph, service, &mut [Releases::new(Arc::clone(&graph))]);
        prop_assert_eq!(run(&graph, service, &mut parts), together);
    }

    #[test]
    fn flows_that_depend_on_an_undelivered_one_are_withheld(
        graph in any_graph(), lost in 0..60u32,
    ) {
        let graph = Arc::new(graph);
        let mut releases = Releases::new(Arc::clone(&graph));
        let mut started = vec![false; graph.len() as usize];
        while let Some((number, flow)) = releases.release() {
            started[number as usize] = true;
            if number != lost {
                releases.on_delivered(number, flow.arrival);
                releases.on_completed(number, flow.arrival);
            }
        }
        while let Some((number, _)) = releases.take_withheld() {
            prop_assert!(!started[number as usize]);
            started[number as usize] = true;
        }
        // Each flow has been either started or withheld.
        prop_assert!(graph.flows().all(|(number, _)| started[number as usize]));
        prop_assert_eq!(releases.take_withheld(), None);
    }

    #[test]
    fn an_order_has_every_node_after_its_dependencies(graph in any_graph()) {
        let order = graph.topological_order();
        let mut place = vec![usize::MAX; graph.len() as usize];
        order.iter().enumerate().for_each(|(at, &node)| place[node as usize] = at);
        for (node, dependencies) in graph.dependencies().into_iter().enumerate() {
            prop_assert!(dependencies.iter().all(|&from| place[from as usize] < place[node]));
        }
    }
}

#[test]
fn a_flow_may_depend_only_on_flows_of_its_source() {
    let mut builder = GraphBuilder::default();
    let first = builder.flow(flow(0, 0, 1), delay(0));
    for (src, dst) in [(1, 2), (0, 2)] {
        let node = builder.flow(flow(0, src, dst), delay(0));
        builder.wait(node, first);
    }
    assert!(builder.clone().build().is_ok());
    let far = builder.flow(flow(0, 2, 1), delay(0));
    builder.wait(far, first);
    let error = builder.build().unwrap_err();
    assert_eq!(error, GraphError::Host { node: 3, host: 2, dependency: 0 });
    assert_eq!(
        error.to_string(),
        "flow 3 of host 2 waits for flow 0, which host 2 neither sends nor receives"
    );
}

#[test]
fn a_cycle_is_found_behind_and_before_others() {
    let mut builder = GraphBuilder::default();
    for _ in 0..6 {
        builder.flow(flow(0, 0, 1), delay(0));
    }
    // 0 -> 1 -> 4 -> 2 -> 1, and 5 after 4.
    for (dependency, node) in [(0, 1), (1, 4), (4, 2), (2, 1), (4, 5)] {
        builder.wait(node, dependency);
    }
    assert_eq!(builder.build().unwrap_err(), GraphError::Cycle { node: 1, dependency: 2 });
    let mut builder = GraphBuilder::default();
    builder.flow(flow(0, 0, 1), delay(0));
    builder.wait(0, 0);
    assert_eq!(builder.clone().build().unwrap_err(), GraphError::Cycle { node: 0, dependency: 0 });
    builder.wait(0, 7);
    assert_eq!(builder.build().unwrap_err(), GraphError::Unknown { node: 0, dependency: 7 });
}
