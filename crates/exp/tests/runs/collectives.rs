//! Flows that wait for others, from the plan to the results.

use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, RunStatus, Summary, run};
use rampmeter_metrics::columns::read_rows;
use rampmeter_metrics::paths::PathRow;
use rampmeter_metrics::read_flows;
use rampmeter_metrics::row::{FlowColumns, Status};
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;
use rampmeter_types::{Bytes, NodeId, Purpose, Rate, Rng, Span, Time};
use rampmeter_workload::trace::write_graph_csv;
use rampmeter_workload::{Flow, Graph, GraphBuilder, WorkloadContext};

/// Returns a leaf-spine of `racks` racks of `hosts` hosts.
fn plan(racks: u32, hosts: u32, transport: &str, workload: &str, more: &str) -> String {
    format!(
        "seed = 3\n[topology]\nkind = \"leaf-spine\"\nracks = {racks}\nhosts-per-rack = {hosts}\n\
         spines = 4\n[transport]\nname = \"{transport}\"\n[workload]\npattern = \"collective\"\n\
         {workload}\n{more}"
    )
}

/// Returns the results of a plan: the summary, the rows of flows by number, and all bytes.
fn results(text: &str) -> (Summary, BTreeMap<u64, usize>, FlowColumns, Vec<Vec<u8>>) {
    let plan = Plan::from_toml(text, "plan", &Registry::builtin()).unwrap();
    let plan = plan.check("plan", Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut NullObserver).unwrap();
    let (flows, _) = read_flows(&out.path().join("flows.parquet")).unwrap();
    let by_number = flows.flow.iter().zip(0..).map(|(&number, row)| (number, row)).collect();
    let files = ["flows.parquet", "series.parquet", "summary.json"];
    let bytes = files.map(|name| std::fs::read(out.path().join(name)).unwrap()).to_vec();
    (summary, by_number, flows, bytes)
}

/// Returns the graph of a plan.
fn graph(text: &str) -> Graph {
    let plan = Plan::from_toml(text, "plan", &Registry::builtin()).unwrap();
    let context = WorkloadContext {
        n_hosts: plan.clone().check("plan", Path::new(".")).unwrap().facts().n_hosts,
        access_rate: Rate::from_gbps(100),
        host_rates: Vec::new(),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
        hosts_per_rack: None,
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let graph = plan.workload.validate(&context).unwrap().graph(plan.seed).unwrap();
    Graph::clone(&graph)
}

const RING: &str = "operation = \"all-reduce\"\nalgorithm = \"ring\"\nvector-bytes = 64000000";

#[test]
fn a_ring_of_64_hosts_takes_the_ideal_as_long_as_its_bound() {
    let (summary, ..) = results(&plan(4, 16, "ideal", RING, ""));
    let [round] = &summary.collectives[..] else { panic!("{:?}", summary.collectives) };
    assert_eq!((round.flows, round.delivered, round.bytes), (8_064, 8_064, 64_000_000));
    let over = round.lower_bound_ratio.unwrap();
    assert!((1.0..1.01).contains(&over), "{over}");
    // 126 steps of a million bytes: 685 packets at 100 Gbit/s, the last one of 1400 bytes. Each
    // step has two hops in a rack, or four between racks; 4 of 64 steps of a lap are between racks.
    let serving = 684 * 120_000 + (1_360 + 40) * 80;
    let (inside, between) = (120_000 + 2 * 650_000, 120_000 + 2 * 30_000 + 4 * 650_000);
    let laps = 126 * (serving + inside) + 8 * (between - inside);
    let took = round.completion_ps.unwrap();
    assert!(took.abs_diff(laps) < laps / 1_000, "{took} {laps}");
    let algorithm = round.algorithm_gbps.unwrap();
    assert!((algorithm - 64e6 * 8e3 / took as f64).abs() < 1e-9);
    assert!((round.bus_gbps.unwrap() - algorithm * 2.0 * 63.0 / 64.0).abs() < 1e-9);
    assert_eq!(summary.status, RunStatus::Finished);
}

/// Every operation with every algorithm among 8 hosts, two rounds of each.
const ALL: [&str; 13] = [
    "operation = \"all-reduce\"\nalgorithm = \"ring\"",
    "operation = \"all-reduce\"\nalgorithm = \"ring\"\nchunks = 3",
    "operation = \"all-reduce\"\nalgorithm = \"tree\"",
    "operation = \"all-reduce\"\nalgorithm = \"tree\"\nchunks = 8",
    "operation = \"all-reduce\"\nalgorithm = \"halving-doubling\"",
    "operation = \"all-gather\"",
    "operation = \"all-gather\"\nalgorithm = \"halving-doubling\"",
    "operation = \"reduce-scatter\"\ncompute-us = 3.5",
    "operation = \"broadcast\"\nchunks = 4",
    "operation = \"broadcast\"\nalgorithm = \"chain\"\nchunks = 4",
    "operation = \"all-to-all\"",
    "operation = \"all-to-all-v\"\nskew = 1.0",
    "operation = \"pipeline\"\nchunks = 5\ncompute-us = 20.0",
];

const TRANSPORTS: [&str; 6] = ["ideal", "dcpim", "phost", "pfabric", "fastpass", "cosy"];

/// Checks that every flow of `graph` has a row, and that it started when all its dependencies had
/// ended at its source, and computed. A flow with a dependency that never ended must not start.
fn assert_starts(graph: &Graph, rows: &BTreeMap<u64, usize>, flows: &FlowColumns, text: &str) {
    assert_eq!(rows.len() as u64, graph.n_flows(), "{text}");
    let dependencies = graph.dependencies();
    // Time at which each node starts or is done; none if a flow that it waits for never arrives.
    let mut known = vec![None; graph.len() as usize];
    for node in graph.topological_order() {
        let host = graph.node(node).src;
        let at = |&from: &u32| match rows.get(&u64::from(from)) {
            None => known[from as usize],
            Some(&row) => {
                let took = match graph.node(from).dst == host {
                    true => flows.fct_ps[row],
                    false => flows.acked_ps[row],
                };
                took.map(|took| flows.arrival_ps[row] + took)
            }
        };
        let latest = dependencies[node as usize]
            .iter()
            .map(at)
            .try_fold(graph.node(node).arrival.as_ps(), |latest, at| at.map(|at| latest.max(at)));
        known[node as usize] = latest.map(|at| at + graph.delay(node).as_ps());
        let Some(&row) = rows.get(&u64::from(node)) else { continue };
        match known[node as usize] {
            Some(at) => assert_eq!(flows.arrival_ps[row], at, "flow {node}\n{text}"),
            None => assert_eq!(flows.status[row], Status::NotStarted, "flow {node}\n{text}"),
        }
    }
}

#[test]
fn no_flow_starts_before_its_dependencies_arrive_and_are_computed() {
    for workload in ALL {
        let workload = format!(
            "{workload}\nvector-bytes = 400000\nrounds = 2\npause-us = 4.0\nstart-us = 1.0"
        );
        for transport in TRANSPORTS {
            let text = plan(2, 4, transport, &workload, "");
            let (summary, rows, flows, _) = results(&text);
            assert_starts(&graph(&text), &rows, &flows, &text);
            // Only cosy rejects messages that it cannot deliver in time.
            let lost = summary.flows.rejected + summary.flows.not_started;
            assert!(lost == 0 || transport == "cosy", "{:?}\n{text}", summary.flows);
            assert_eq!(summary.collectives.len(), 2);
            for round in &summary.collectives {
                assert_eq!(round.lower_bound_ratio.is_some(), round.delivered == round.flows);
                assert!(
                    round.lower_bound_ratio.is_none_or(|over| over >= 1.0),
                    "{round:?}\n{text}"
                );
            }
        }
    }
}

/// Returns a graph of `n` flows and computations of 8 hosts that wait for any before them whose end
/// their hosts detect.
fn random_graph(rng: &mut Rng, n: u32) -> Graph {
    let mut builder = GraphBuilder::default();
    let mut ends: Vec<[u32; 2]> = Vec::new();
    for number in 0..n {
        let (src, by) = (rng.uniform_below(8) as u32, rng.uniform_below(8) as u32);
        let dst = (src + by) % 8;
        let at = Time::from_ps(rng.uniform_below(50_000_000) as u64);
        let delay = Span::from_ps(1 + rng.uniform_below(3_000_000) as u64);
        let node = if by == 0 {
            builder.computation(NodeId::new(src), at, delay)
        } else {
            let size = Bytes::new(1 + rng.uniform_below(60_000) as u64);
            builder.flow(Flow::new(at, NodeId::new(src), NodeId::new(dst), size), delay)
        };
        let known: Vec<u32> =
            (0..number).filter(|&from| ends[from as usize].contains(&src)).collect();
        for _ in 0..rng.uniform_below(4).min(known.len()) {
            builder.wait(node, known[rng.uniform_below(known.len())]);
        }
        ends.push([src, dst]);
    }
    builder.build().unwrap()
}

#[test]
fn flows_of_any_graph_start_when_they_may_or_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("graph.csv");
    each_seed(here!(), "flows_of_any_graph_start_when_they_may_or_are_reported", 0..60, |seed| {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let graph = random_graph(&mut rng, 60);
        write_graph_csv(&file, &graph).unwrap();
        let transport = TRANSPORTS[rng.uniform_below(TRANSPORTS.len())];
        // A host's link fails in half of the runs, and is repaired in some.
        let mut more = String::new();
        if rng.bernoulli(0.5) && transport != "ideal" {
            let (link, from) = (rng.uniform_below(8), rng.uniform_below(100));
            let until = if rng.bernoulli(0.3) { ", until-us = 30000" } else { "" };
            more = format!("[faults]\noutages = [{{ link = {link}, from-us = {from}{until} }}]\n");
        }
        let text = format!(
            "seed = {seed}\n[topology]\nkind = \"leaf-spine\"\nracks = 2\nhosts-per-rack = 4\n\
             spines = 2\n[transport]\nname = \"{transport}\"\n[workload]\npattern = \"trace\"\n\
             file = \"{}\"\nsort = true\n{more}",
            file.display()
        );
        let (summary, rows, flows, bytes) = results(&text);
        assert_starts(&graph, &rows, &flows, &text);
        assert!(results(&text).3 == bytes, "another run differs\n{text}");
        let counts = &summary.flows;
        assert_eq!(counts.submitted + counts.not_started, graph.n_flows(), "{text}");
        let is_whole = counts.delivered == graph.n_flows();
        assert!(is_whole || !more.is_empty() || transport == "cosy", "{counts:?}\n{text}");
        let expected = if is_whole { RunStatus::Finished } else { RunStatus::Incomplete };
        assert_eq!(summary.status, expected, "{text}");
    });
}

#[test]
fn collectives_with_the_same_seed_give_the_same_bytes() {
    for transport in TRANSPORTS {
        let more = if transport == "ideal" { "" } else { "[faults]\nloss = 0.001\n" };
        let workload =
            "operation = \"all-to-all-v\"\nskew = 1.2\nvector-bytes = 900000\nrounds = 3";
        let text = plan(2, 4, transport, workload, more);
        let ((_, _, flows, once), (.., again)) = (results(&text), results(&text));
        assert!(once == again, "{transport}");
        assert_eq!(flows.len(), 3 * 56);
    }
}

#[test]
fn a_failed_flow_ends_the_run_and_its_dependents_are_reported() {
    for transport in ["dcpim", "phost", "pfabric", "fastpass", "cosy"] {
        for workload in [
            RING,
            "operation = \"all-reduce\"\nalgorithm = \"tree\"\nrounds = 2\n\
                                vector-bytes = 1000000",
        ] {
            // Host 3's link is down: flows through it fail, and nothing after that starts.
            let more = "[faults]\noutages = [{ link = 3, from-us = 0.0 }]\nrerouting-us = 0.0\n";
            let text = plan(2, 4, transport, workload, more);
            let graph = graph(&text);
            let (summary, rows, flows, _) = results(&text);
            assert_eq!(rows.len() as u64, graph.n_flows(), "{transport}");
            let counts = &summary.flows;
            assert!(counts.failed + counts.rejected > 0, "{transport}: {counts:?}");
            assert!(counts.not_started > 0, "{transport}: {counts:?}");
            assert_eq!(counts.submitted + counts.not_started, graph.n_flows());
            assert_eq!(summary.status, RunStatus::Incomplete, "{transport}");
            for round in &summary.collectives {
                assert!(round.completion_ps.is_none() && round.delivered < round.flows);
            }
            let dependencies = graph.dependencies();
            let status = |number: u32| rows.get(&u64::from(number)).map(|&row| flows.status[row]);
            for (number, _) in graph.flows() {
                let mut waits = dependencies[number as usize].iter();
                if status(number) == Some(Status::NotStarted) {
                    let is_late = |&from: &u32| status(from) != Some(Status::Delivered);
                    assert!(waits.any(is_late), "{transport}: flow {number} waits for nothing");
                } else {
                    let is_there = |&from: &u32| status(from) != Some(Status::NotStarted);
                    assert!(waits.all(is_there), "{transport}: flow {number}");
                }
            }
        }
    }
}

#[test]
fn tracing_packets_changes_no_flow_and_no_metric() {
    let more = "[faults]\noutages = [{ link = 3, from-us = 20.0 }]\nrerouting-us = 0.0\n";
    let workload = "operation = \"all-reduce\"\nalgorithm = \"tree\"\nvector-bytes = 400000";
    let plain = plan(2, 4, "phost", workload, more);
    let text = format!("{plain}[run]\npaths = true\ncapture = \"run.pcapng\"\n");
    let checked = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let checked = checked.check("plan", Path::new(".")).unwrap();
    let out = tempfile::tempdir().unwrap();
    run(&checked, out.path(), &mut NullObserver).unwrap();
    let (_, rows, flows, _) = results(&plain);
    let (observed, _) = read_flows(&out.path().join("flows.parquet")).unwrap();
    assert_eq!(observed, flows);
    assert!(flows.status.contains(&Status::NotStarted));
    // A path leads from the flow's source to its destination.
    let (paths, _) = read_rows::<PathRow>(&out.path().join("paths.parquet")).unwrap();
    assert!(!paths.is_empty());
    for PathRow { flow, path, .. } in paths.rows() {
        let row = rows[&flow];
        let ends = (format!("h{}>", flows.src[row]), format!(">h{}", flows.dst[row]));
        assert!(path.starts_with(&ends.0) && path.ends_with(&ends.1), "flow {flow}: {path}");
    }
}

#[test]
fn ideals_and_bounds_are_those_of_the_hosts_own_links() {
    // Two fast hosts and two slow ones at one switch.
    let links: Vec<String> = [(0, 100, 200), (1, 100, 200), (2, 10, 200), (3, 10, 5000)]
        .map(|(host, gbps, ns)| {
            format!("{{ between = [\"h{host}\", \"s0\"], gbps = {gbps}, propagation-ns = {ns} }}")
        })
        .to_vec();
    let text = format!(
        "[topology]\nkind = \"links\"\nhosts = 4\nswitches = 1\nlinks = [{}]\nswitch-ns = 0\n\
         host-ns = 0\n[transport]\nname = \"ideal\"\n[workload]\npattern = \"collective\"\n\
         operation = \"broadcast\"\nalgorithm = \"chain\"\nvector-bytes = 1460\n",
        links.join(", ")
    );
    let (summary, rows, flows, _) = results(&text);
    // 1500 bytes over links of 100 and 10 Gbit/s.
    let (fast, slow) = (120_000, 1_200_000);
    let expected = [2 * fast + 400_000, fast + slow + 400_000, 2 * slow + 5_200_000];
    for (number, ps) in (0..).zip(expected) {
        assert_eq!(flows.ideal_ps[rows[&number]], ps, "flow {number}");
    }
    let round = &summary.collectives[0];
    assert_eq!(round.lower_bound_ps, expected.iter().sum::<u64>());
    assert_eq!(round.completion_ps, Some(round.lower_bound_ps));
}
