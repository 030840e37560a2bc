//! Groups, phases and calls: flows that depend on others.

use std::sync::Arc;

use rampmeter_types::{NodeId, Span};

use super::*;
use crate::graph::{Graph, Releases};

fn graph(text: &str) -> Arc<Graph> {
    plan(text).unwrap().graph(1).unwrap()
}

/// Runs a graph in a network in which the flows of `host` are slower by a factor of `slow`. Returns
/// the start and the end of each flow, in ns.
fn run(graph: &Arc<Graph>, slow: impl Fn(u32) -> u64) -> Vec<(u64, u64)> {
    let mut releases = Releases::new(Arc::clone(graph));
    let mut times = vec![(0, 0); graph.len() as usize];
    let mut ends = std::collections::BTreeSet::new();
    loop {
        while let Some((number, flow)) = releases.release() {
            let took = Span::from_ps(flow.size.get() * 1000 * slow(flow.src.get()));
            let end = flow.arrival + took;
            times[number as usize] = (flow.arrival.as_ps() / 1000, end.as_ps() / 1000);
            ends.insert((end, number));
        }
        let Some((end, number)) = ends.pop_first() else { break };
        releases.on_delivered(number, end);
        releases.on_completed(number, end);
    }
    assert!(releases.take_withheld().is_none());
    times
}

#[test]
fn groups_are_blocks_of_neighbours_or_of_strides() {
    let members = |keys: &str| -> Vec<Vec<u32>> {
        let text = format!(
            "pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 4096\n{keys}"
        );
        let graph = graph(&text);
        let of = |round: &crate::Round| round.hosts.iter().map(NodeId::get).collect();
        graph.rounds().iter().map(of).collect()
    };
    assert_eq!(members("group-size = 8"), [Vec::from_iter(0..8), Vec::from_iter(8..16)]);
    let strided = members("group-size = 4\ngroup-step = 4");
    assert_eq!(strided[1], [1, 5, 9, 13]);
    assert_eq!(strided.len(), 4);
    let both = members("group-size = 2\ngroup-step = 2\nhosts = [8, 7, 6, 5, 4, 3, 2, 1]");
    assert_eq!(both, [[8, 6], [7, 5], [4, 2], [3, 1]]);
    let error = plan(
        "pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 4096\ngroup-size = 6",
    );
    let expected = "group-size: expected groups of at least 2 that fill the 16 hosts in blocks of \
                    group-size * group-step, got 6 * 1";
    assert_eq!(error.unwrap_err(), expected);
}

const PHASES: &str = "pattern = 'phases'\nrounds = 2\npause-us = 1.0\n\
    [[parts]]\npattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 40\n\
    group-size = 4\n\
    [[parts]]\npattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 80\n\
    group-size = 4\ngroup-step = 4\n\
    [[parts]]\npattern = 'permutation'\nsizes = { fixed = 7 }\nstart-us = 2.0";

#[test]
fn a_host_begins_a_phase_when_it_has_finished_the_one_before() {
    let graph = graph(PHASES);
    assert_eq!(plan(PHASES).unwrap().total_flows(), Some(graph.n_flows()));
    let times = run(&graph, |host| 1 + u64::from(host == 5) * 100);
    // Flows by phase: the tenant, and the round of all phases by order.
    let mut phases: Vec<Vec<u32>> = Vec::new();
    for (number, flow) in graph.flows() {
        let is_new = phases.last().is_none_or(|phase| graph.node(phase[0]).tenant != flow.tenant);
        if is_new {
            phases.push(Vec::new());
        }
        phases.last_mut().unwrap().push(number);
    }
    assert_eq!(phases.len(), 6);
    let mut some_overlap = false;
    for pair in phases.windows(2) {
        for host in 0..16 {
            let of = |numbers: &[u32], end: fn(&Flow) -> NodeId| -> Vec<u32> {
                let is = |number: &u32| end(graph.node(*number)).get() == host;
                numbers.iter().copied().filter(is).collect()
            };
            let received = of(&pair[0], |flow| flow.dst);
            let finished = received.iter().map(|&number| times[number as usize].1).max().unwrap();
            let delay = if graph.node(pair[1][0]).tenant.get() == 2 { 3000 } else { 1000 };
            for number in of(&pair[1], |flow| flow.src) {
                assert!(times[number as usize].0 >= finished + delay, "host {host}");
            }
            let last = pair[0].iter().map(|&number| times[number as usize].1).max().unwrap();
            let begun = of(&pair[1], |flow| flow.src);
            some_overlap |= begun.iter().any(|&number| times[number as usize].0 < last);
        }
    }
    assert!(some_overlap, "there is no barrier");
    let rounds: Vec<(u32, u32, u32)> = graph
        .rounds()
        .iter()
        .map(|round| {
            let node = graph.node(round.nodes.start);
            (node.tenant.get(), round.number, round.hosts.host(0).get())
        })
        .collect();
    assert_eq!(rounds.len(), 16);
    assert_eq!(rounds[4..6], [(1, 0, 0), (1, 0, 1)]);
    assert_eq!(rounds[8], (0, 1, 0));
}

#[test]
fn a_phase_may_be_a_mix_and_hosts_that_have_none_pass_on() {
    let text = "pattern = 'phases'\n\
        [[parts]]\npattern = 'mix'\n\
        [[parts.parts]]\npattern = 'incast'\nfan = 1\nhub = 1\nflow-bytes = 5\n\
        peers = { first = 0, count = 1 }\n\
        [[parts.parts]]\npattern = 'incast'\nfan = 1\nhub = 3\nflow-bytes = 50\n\
        peers = { first = 2, count = 1 }\n\
        [[parts]]\npattern = 'stride'\nstride = 1\nsizes = { fixed = 9 }\nhosts = [0, 1, 3, 4]";
    let graph = graph(text);
    let times = run(&graph, |_| 1);
    let starts: Vec<(u32, u64)> =
        graph.flows().map(|(number, flow)| (flow.src.get(), times[number as usize].0)).collect();
    assert_eq!(starts, [(0, 0), (2, 0), (0, 5), (1, 5), (3, 50), (4, 0)]);
}

#[test]
fn wrong_phases_are_named() {
    for (text, message) in [
        ("pattern = 'phases'\nparts = []", "parts: expected at least one workload, got none"),
        (
            "pattern = 'phases'\nrounds = 0\n[[parts]]\npattern = 'dense'\nflow-bytes = 1",
            "rounds: expected at least 1, got 0",
        ),
        (
            "pattern = 'phases'\n[[parts]]\npattern = 'all-to-all'\nload = 0.1\nsizes = 'imc10'",
            "parts[0].flows: expected flows or until-us, for a pattern without an end, got neither",
        ),
    ] {
        assert_eq!(plan(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn a_client_thinks_between_calls_and_a_server_serves() {
    let text = "pattern = 'rpc'\nrequests = { fixed = 10 }\nresponses = { fixed = 20 }\ncalls = 3\n\
                clients = [4]\nservers = [0, 4, 9]\nfan = 2\nthink-us = 1.0\nservice-us = 2.0";
    let graph = graph(text);
    assert_eq!(plan(text).unwrap().total_flows(), Some(12));
    assert_eq!(graph.calls().len(), 3);
    let times = run(&graph, |host| if host == 9 { 3 } else { 1 });
    // A call: the request to server 9 lasts 30 ns, its response 60 ns, and the service 2 us.
    for (number, call) in (0..).zip(graph.calls()) {
        let begin = number * (30 + 2000 + 60) + number * 1000;
        let begin = begin - number * 20;
        let nodes = call.first..call.first + 4;
        let starts: Vec<u64> = nodes.clone().map(|node| times[node as usize].0 - begin).collect();
        assert_eq!(starts, [0, 0, 2010, 2010]);
        let mut servers: Vec<u32> = nodes.take(2).map(|node| graph.node(node).dst.get()).collect();
        servers.sort_unstable();
        assert_eq!(servers, [0, 9]);
    }
}

#[test]
fn clients_call_at_intervals_or_with_several_outstanding_calls() {
    let text = |keys: &str| {
        format!(
            "pattern = 'rpc'\nrequests = {{ fixed = 10 }}\nresponses = {{ fixed = 20 }}\n\
             calls = 4\nclients = [4]\nservers = [0]\n{keys}"
        )
    };
    let starts = |keys: &str| -> Vec<u64> {
        let graph = graph(&text(keys));
        let times = run(&graph, |_| 1);
        graph.calls().iter().map(|call| times[call.first as usize].0).collect()
    };
    assert_eq!(starts("concurrency = 2"), [0, 0, 30, 30]);
    assert_eq!(starts("interval-us = 5.0\nstart-us = 1.0"), [1000, 6000, 11_000, 16_000]);
    let drawn = starts("interval-us = 5.0\ntime-distribution = 'exponential'");
    assert!(drawn.is_sorted() && drawn[0] > 0 && drawn[3] != 15_000);
    for (keys, message) in [
        (
            "interval-us = 5.0\nthink-us = 1.0",
            "think-us: expected no value with interval-us, got 1",
        ),
        ("fan = 2", "fan: expected from 1 to 1, the servers of every client, got 2"),
        ("concurrency = 0", "concurrency: expected at least 1, got 0"),
    ] {
        assert_eq!(plan(&text(keys)).unwrap_err(), message);
    }
    let own = text("").replace("[0]", "[4]");
    assert_eq!(plan(&own).unwrap_err(), "servers: expected a host other than the client, got none");
}
