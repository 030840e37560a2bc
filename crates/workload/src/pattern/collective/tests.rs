//! Tests of the results of collectives, and of the bytes that they send.

use std::sync::Arc;

use rampmeter_types::{Bytes, Span, Time};

use super::{Algorithm, Collective, Demand, Operation};
use crate::graph::Graph;
use crate::pattern::HostSet;

const FIRST: u32 = 3;

fn collective(operation: Operation, algorithm: Algorithm, count: u32, size: u64) -> Collective {
    Collective {
        operation,
        algorithm,
        hosts: HostSet::Stride { first: FIRST, count, step: 1 },
        size: Bytes::new(size),
        chunks: 1,
        demand: Arc::new(Demand::Even),
        start: Time::from_ps(5),
        compute: Span::from_us(1),
        rounds: 1,
        pause: Span::ZERO,
        stream: 0,
    }
}

/// Returns every operation with every algorithm that it has, among `count` hosts.
fn all(count: u32, size: u64) -> Vec<Collective> {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, Pipeline, ReduceScatter};
    let operations = [AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, Pipeline];
    let each = operations.into_iter().flat_map(|operation| {
        let algorithms = operation.algorithms().iter();
        algorithms.map(move |&algorithm| collective(operation, algorithm, count, size))
    });
    let mut all: Vec<Collective> = each
        .filter(|c| c.algorithm != Algorithm::HalvingDoubling || count.is_power_of_two())
        .collect();
    let chunked = all.iter().filter(|c| c.algorithm.has_chunks());
    let chunked: Vec<Collective> = chunked.map(|c| Collective { chunks: 3, ..c.clone() }).collect();
    all.extend(chunked);
    all
}

/// Returns the contributions that each host has at the end, one bit for each host. A flow carries
/// the contribution of its source and those of its dependencies.
fn arrived(graph: &Graph, count: u32) -> Vec<u64> {
    let dependencies = graph.dependencies();
    let mut carried = vec![0u64; graph.len() as usize];
    let mut arrived: Vec<u64> = (0..count).map(|host| 1 << host).collect();
    for node in graph.topological_order() {
        let ends = graph.node(node);
        let own = 1u64 << (ends.src.get() - FIRST);
        let came = dependencies[node as usize].iter().map(|&from| carried[from as usize]);
        carried[node as usize] = came.fold(own, |all, from| all | from);
        arrived[(ends.dst.get() - FIRST) as usize] |= carried[node as usize];
    }
    arrived
}

/// Returns the bytes that each host sends, and receives.
fn sums(graph: &Graph, count: u32) -> (Vec<u64>, Vec<u64>) {
    let (mut sent, mut received) = (vec![0; count as usize], vec![0; count as usize]);
    for (_, flow) in graph.flows() {
        sent[(flow.src.get() - FIRST) as usize] += flow.size.get();
        received[(flow.dst.get() - FIRST) as usize] += flow.size.get();
    }
    (sent, received)
}

#[test]
fn broadcast_and_reduced_data_reach_every_host() {
    for count in 2..=17 {
        for collective in all(count, 1 << 20) {
            let graph = collective.graph(1);
            assert_eq!(graph.n_flows(), collective.n_flows(), "{collective:?}");
            assert!(graph.flows().all(|(_, flow)| flow.size > Bytes::ZERO));
            let everybody = (1u64 << count) - 1;
            let from_first =
                matches!(collective.operation, Operation::Broadcast | Operation::Pipeline);
            let needed = if from_first { 1 } else { everybody };
            let arrived = arrived(&graph, count);
            assert!(arrived.iter().all(|set| set & needed == needed), "{collective:?} {arrived:?}");
        }
    }
}

#[test]
fn a_round_moves_the_bytes_of_its_bus_factor() {
    let size: u64 = 17 << 20;
    for count in 2..=17 {
        for collective in all(count, size) {
            let (sent, received) = sums(&collective.graph(1), count);
            let least = collective.operation.bus_factor(count) * size as f64;
            // Division adds at most a byte per piece.
            let is_least = |bytes: &u64| (*bytes as f64 - least).abs() <= f64::from(count) * 6.0;
            match collective.algorithm {
                Algorithm::Ring | Algorithm::HalvingDoubling | Algorithm::Direct => {
                    assert!(sent.iter().chain(&received).all(is_least), "{collective:?} {sent:?}");
                }
                Algorithm::Chain => {
                    assert!(sent[..count as usize - 1].iter().all(|&bytes| bytes == size));
                    assert_eq!(sent[count as usize - 1], 0);
                }
                Algorithm::Tree => {
                    let ways = if collective.operation == Operation::AllReduce { 2 } else { 1 };
                    let total: u64 = sent.iter().sum();
                    assert_eq!(total, ways * u64::from(count - 1) * size, "{collective:?}");
                }
            }
        }
    }
}

#[test]
fn the_steps_of_a_ring_wait_for_each_other_and_then_compute() {
    let graph = collective(Operation::AllReduce, Algorithm::Ring, 4, 4_003).graph(1);
    let dependencies = graph.dependencies();
    for (number, flow) in graph.flows() {
        let (step, host) = (number / 4, flow.src.get() - FIRST);
        assert_eq!(flow.dst.get() - FIRST, (host + 1) % 4);
        if step == 0 {
            assert!(dependencies[number as usize].is_empty() && graph.delay(number) == Span::ZERO);
            assert_eq!(flow.arrival, Time::from_ps(5));
            continue;
        }
        // Its only dependency is the flow of the step before that its source received.
        assert_eq!(dependencies[number as usize], [(step - 1) * 4 + (host + 3) % 4]);
        let before = graph.node(dependencies[number as usize][0]);
        assert_eq!((before.dst, before.size), (flow.src, flow.size));
        assert_eq!(graph.delay(number), Span::from_us(1));
    }
}

#[test]
fn halving_sends_halves_and_doubling_doubles() {
    let graph = collective(Operation::AllReduce, Algorithm::HalvingDoubling, 8, 8_000).graph(1);
    let sizes: Vec<u64> = graph.flows().step_by(8).map(|(_, flow)| flow.size.get()).collect();
    assert_eq!(sizes, [4_000, 2_000, 1_000, 1_000, 2_000, 4_000]);
    let partners: Vec<u32> =
        graph.flows().step_by(8).map(|(_, flow)| flow.dst.get() - FIRST).collect();
    assert_eq!(partners, [4, 2, 1, 1, 2, 4]);
}

#[test]
fn a_host_takes_part_in_a_round_once_it_has_all_of_the_one_before() {
    for base in all(8, 1 << 20) {
        let pause = Span::from_us(7);
        let collective = Collective { rounds: 3, pause, ..base };
        let graph = collective.graph(1);
        assert_eq!(graph.n_flows(), collective.n_flows());
        let dependencies = graph.dependencies();
        let rounds = graph.rounds();
        assert_eq!(rounds.len(), 3);
        for pair in rounds.windows(2) {
            for node in pair[1].nodes.clone() {
                let host = graph.node(node).src;
                let gates: Vec<u32> = dependencies[node as usize]
                    .iter()
                    .copied()
                    .filter(|from| !pair[1].nodes.contains(from))
                    .collect();
                assert_eq!(gates.len(), 1, "{collective:?}");
                assert!(graph.is_computation(gates[0]) && graph.node(gates[0]).src == host);
                assert_eq!(graph.delay(gates[0]), pause);
                let waits = &dependencies[gates[0] as usize];
                let mut of_round = pair[0].nodes.clone().filter(|&n| !graph.is_computation(n));
                assert!(
                    of_round.all(|n| graph.node(n).dst != host || waits.contains(&n)),
                    "{collective:?}"
                );
                assert!(!waits.is_empty());
            }
        }
    }
}

#[test]
fn a_pipeline_computes_on_one_chunk_after_the_other() {
    let base = collective(Operation::Pipeline, Algorithm::Chain, 3, 10);
    let graph = Collective { chunks: 2, ..base }.graph(1);
    let text: Vec<String> = (0..graph.len())
        .map(|node| {
            let (from, to) = (graph.node(node).src.get(), graph.node(node).dst.get());
            let waits = &graph.dependencies()[node as usize];
            format!("{}-{} {} {waits:?}", from - FIRST, to - FIRST, graph.delay(node).as_ps())
        })
        .collect();
    let expected = [
        "0-0 1000000 []",
        "0-1 0 [0]",
        "1-1 1000000 [1]",
        "1-2 0 [2]",
        "0-0 1000000 [0]",
        "0-1 0 [4]",
        "1-1 1000000 [2, 5]",
        "1-2 0 [6]",
    ];
    assert_eq!(text, expected);
}

#[test]
fn an_uneven_all_to_all_follows_its_matrix_or_its_skew() {
    let base = collective(Operation::AllToAllV, Algorithm::Direct, 3, 0);
    let rows = vec![vec![9, 1, 0], vec![2, 9, 3], vec![0, 4, 9]];
    let demand = Arc::new(Demand::Matrix(rows));
    let matrix = Collective { demand, ..base.clone() };
    let graph = matrix.graph(1);
    let flows: Vec<(u32, u32, u64)> = graph
        .flows()
        .map(|(_, flow)| (flow.src.get() - FIRST, flow.dst.get() - FIRST, flow.size.get()))
        .collect();
    assert_eq!(flows, [(0, 1, 1), (1, 2, 3), (1, 0, 2), (2, 1, 4)]);
    assert_eq!(matrix.n_flows(), 4);
    assert_eq!(graph.rounds()[0].bytes, Bytes::new(5));
    let demand = Arc::new(Demand::Skew(1.0));
    let skewed = Collective { demand, size: Bytes::new(90_000), ..base };
    let (sent, received) = sums(&skewed.graph(1), 3);
    assert!(sent.iter().all(|&bytes| bytes.abs_diff(90_000) <= 2), "{sent:?}");
    assert!(received.iter().max() > received.iter().min());
    let of_seed_1 = skewed.graph(1);
    assert!((2..9).any(|seed| skewed.graph(seed) != of_seed_1), "ranks depend on the seed");
    assert_eq!(skewed.graph(1), skewed.graph(1));
}

#[test]
fn bus_factors_are_those_of_nccl_tests() {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
    let factors =
        [AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast].map(|o| o.bus_factor(8));
    assert_eq!(factors, [1.75, 0.875, 0.875, 0.875, 1.0]);
}
