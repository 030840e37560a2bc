//! Partners, groups, phases and calls, from the plan to the results.

use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, RunStatus, Summary, run};
use rampmeter_metrics::read_flows;
use rampmeter_metrics::row::FlowColumns;
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;
use rampmeter_types::{Purpose, Rng};

/// Returns a fat-tree of 16 hosts.
fn plan(transport: &str, workload: &str) -> String {
    format!(
        "seed = 3\n[topology]\nkind = \"fat-tree\"\nk = 4\n[transport]\nname = \"{transport}\"\n\
         [workload]\n{workload}"
    )
}

fn results(text: &str) -> (Summary, FlowColumns) {
    let plan = Plan::from_toml(text, "plan", &Registry::builtin()).unwrap();
    let plan = plan.check("plan", Path::new(".")).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut NullObserver).unwrap();
    let (flows, _) = read_flows(&out.path().join("flows.parquet")).unwrap();
    (summary, flows)
}

/// Returns the delivery of the flow in a row.
fn end(flows: &FlowColumns, row: usize) -> u64 {
    flows.arrival_ps[row] + flows.fct_ps[row].unwrap()
}

#[test]
fn a_permutation_at_once_takes_the_time_of_its_links() {
    let (summary, flows) =
        results(&plan("ideal", "pattern = \"permutation\"\nsizes = { fixed = 2000000 }"));
    assert_eq!((summary.status, flows.flow.len()), (RunStatus::Finished, 16));
    // 2 MB x 1500 / 1460 at 100 Gbit/s, and some latency.
    for at in 0..16 {
        let fct = flows.fct_ps[at].unwrap();
        assert!((164_383_000..175_000_000).contains(&fct), "{fct}");
    }
}

#[test]
fn groups_at_a_distance_are_each_at_their_bound_after_groups_of_neighbours() {
    let part = "operation = \"all-to-all\"\nvector-bytes = 16000000\ngroup-size = 4\n";
    let workload = format!(
        "pattern = \"phases\"\n[[workload.parts]]\npattern = \"collective\"\n{part}\
         [[workload.parts]]\npattern = \"collective\"\n{part}group-step = 4\n"
    );
    let (summary, flows) = results(&plan("ideal", &workload));
    assert_eq!(summary.collectives.len(), 8);
    for (at, round) in summary.collectives.iter().enumerate() {
        let (phase, group) = (at as u32 / 4, at as u32 % 4);
        assert_eq!((round.tenant, round.hosts, round.flows), (phase, 4, 12));
        let expected = if phase == 0 { (4 * group, Some(1)) } else { (group, Some(4)) };
        assert_eq!((round.first_host, round.host_step), expected);
        // S (n - 1) / n at 100 Gbit/s, with headers.
        let bound = round.lower_bound_ps as f64 / 1e6;
        assert!((986.3..1000.0).contains(&bound), "{bound}");
        let over = round.lower_bound_ratio.unwrap();
        assert!((1.0..1.05).contains(&over), "phase {phase}: {over}");
    }
    let received = |host: u32| {
        let of_first = |&at: &usize| flows.dst[at] == host && flows.tenant[at] == 0;
        (0..flows.flow.len()).filter(of_first).map(|at| end(&flows, at)).max()
    };
    for at in (0..flows.flow.len()).filter(|&at| flows.tenant[at] == 1) {
        assert!(flows.arrival_ps[at] >= received(flows.src[at]).unwrap());
    }
}

/// The second part begins when half of the first has passed.
#[test]
fn a_mix_of_changing_load_has_no_warm_up_and_no_intervals() {
    let part = |keys| {
        format!("[[workload.parts]]\npattern = \"all-to-all\"\nsizes = \"web-search\"\n{keys}\n")
    };
    let mix = |second| {
        let parts = [part("load = 0.3"), part(second)].concat();
        format!("pattern = \"mix\"\nuntil-us = 4000\n{parts}")
    };
    let (changing, _) = results(&plan("dctcp", &mix("load = 0.3\nstart-us = 2000")));
    let (steady, _) = results(&plan("dctcp", &mix("load = 0.3")));
    let reason =
        "workload: parts of the workload begin or end at different times, so the run is one sample";
    let is_told = |summary: &Summary| summary.warnings.iter().any(|w| w.starts_with(reason));
    assert_eq!((changing.warmup.rule, changing.warmup.flows), ("none", 0));
    assert_eq!(steady.warmup.rule, "mser-5");
    assert!(is_told(&changing) && !is_told(&steady), "{:?}", changing.warnings);
    let interval = |summary: &Summary| summary.slowdown["delivered"].overall.unwrap().mean_ci;
    assert!(interval(&changing).is_none() && interval(&steady).is_some());
    let requested = plan("dctcp", &mix("load = 0.3\nstart-us = 2000"));
    let (requested, _) = results(&format!("{requested}[measure]\nwarmup-flows = \"mser-5\"\n"));
    assert!(requested.warnings.iter().any(|w| w.starts_with("measure.warmup-flows: parts of the")));
}

#[test]
fn latencies_of_calls_are_those_of_their_flows() {
    let workload = "pattern = \"rpc\"\nrequests = { fixed = 300 }\nresponses = \"homa-w2\"\n\
                    calls = 40\nclients = [0, 5]\nfan = 2\nthink-us = 3\nservice-us = 2\n\
                    time-distribution = \"exponential\"\n";
    let (summary, flows) = results(&plan("homa", workload));
    let [calls] = &summary.rpcs[..] else { panic!("{:?}", summary.rpcs) };
    assert_eq!((calls.calls, calls.completed), (80, 80));
    let at: BTreeMap<u64, usize> = flows.flow.iter().zip(0..).map(|(&n, at)| (n, at)).collect();
    let numbers: Vec<u64> = at.keys().copied().collect();
    let mut latencies: Vec<u64> = numbers
        .chunks(4)
        .map(|call| {
            let [first, .., last] = [0, 1, 2, 3].map(|i| at[&call[i]]);
            let other = at[&call[2]];
            let end = end(&flows, last).max(end(&flows, other));
            assert_eq!(flows.src[first], flows.dst[last]);
            end - flows.arrival_ps[first]
        })
        .collect();
    latencies.sort_unstable();
    assert_eq!(calls.latency_p50_ps, Some(latencies[39]));
    assert_eq!(calls.latency_p99_ps, Some(latencies[79]));
    assert_eq!(calls.latency_max_ps, latencies.last().copied());
    let mean = latencies.iter().sum::<u64>() as f64 / 80.0;
    assert!((calls.latency_mean_ps.unwrap() as f64 - mean).abs() < 1.0);
    assert!(
        calls.slowdown_mean.unwrap() >= 1.0 && calls.lower_bound_mean_ps < calls.latency_mean_ps
    );
}

#[test]
fn a_call_that_is_alone_takes_its_bound() {
    let workload = "pattern = \"rpc\"\nrequests = { fixed = 300 }\nresponses = { fixed = 90000 }\n\
                    calls = 5\nclients = [0]\nservers = [15]\nthink-us = 30\nservice-us = 2\n";
    let (summary, _) = results(&plan("ideal", workload));
    assert_eq!(summary.rpcs[0].latency_max_ps, summary.rpcs[0].lower_bound_mean_ps);
}

/// A workload of the patterns that flows of phases may be made of.
fn workload(draw: &mut Rng, depth: u32, out: &mut String, path: &str) {
    let size = 1 + draw.uniform_below(60_000);
    let sizes = format!("sizes = {{ fixed = {size} }}\n");
    let kinds = if depth < 2 { 8 } else { 6 };
    match draw.uniform_below(kinds) {
        0 => {
            *out += &format!(
                "pattern = \"permutation\"\n{sizes}start-us = {}\n",
                draw.uniform_below(20)
            )
        }
        1 => {
            *out +=
                &format!("pattern = \"stride\"\nstride = {}\n{sizes}", 1 + draw.uniform_below(15))
        }
        2 => *out += &format!("pattern = \"bisection\"\n{sizes}hosts = [9, 2, \"h4\", 15]\n"),
        3 => {
            let hosts = "hosts = { first = 1, count = 5, step = 3 }\n";
            let on_off = ["", "on-us = 10\noff-us = 30\n"][draw.uniform_below(2)];
            *out +=
                &format!("pattern = \"all-to-all\"\n{sizes}{hosts}{on_off}load = 0.4\nflows = 9\n");
        }
        4 => {
            let operation =
                ["all-reduce", "all-gather", "broadcast", "all-to-all"][draw.uniform_below(4)];
            let step = [1, 4][draw.uniform_below(2)];
            *out += &format!(
                "pattern = \"collective\"\noperation = \"{operation}\"\nvector-bytes = {}\n\
                 group-size = 4\ngroup-step = {step}\nstart-us = {}\n",
                size + 16,
                draw.uniform_below(20),
            );
        }
        5 => {
            let pace =
                ["think-us = 5", "interval-us = 7", "concurrency = 3"][draw.uniform_below(3)];
            *out += &format!(
                "pattern = \"rpc\"\nrequests = {{ fixed = 90 }}\nresponses = {{ fixed = {size} }}\n\
                 calls = {}\nfan = {}\nclients = [3, 8]\n{pace}\n",
                1 + draw.uniform_below(4),
                1 + draw.uniform_below(3),
            );
        }
        kind => {
            let pattern = ["mix", "phases"][kind - 6];
            *out += &format!("pattern = \"{pattern}\"\n");
            if pattern == "phases" {
                *out += &format!(
                    "rounds = {}\npause-us = {}\n",
                    1 + draw.uniform_below(2),
                    draw.uniform_below(9)
                );
            }
            for _ in 0..=draw.uniform_below(3) {
                let path = format!("{path}.parts");
                *out += &format!("[[{path}]]\n");
                workload(draw, depth + 1, out, &path);
            }
        }
    }
}

#[test]
fn random_workloads_run_to_an_end_under_every_transport() {
    let registry = Registry::builtin();
    let transports = registry.about();
    each_seed(here!(), "random_workloads_run_to_an_end_under_every_transport", 0..200, |seed| {
        let mut draw = Rng::new(seed, 0, Purpose::Test);
        let mut text = String::new();
        workload(&mut draw, 0, &mut text, "workload");
        let transport = transports[draw.uniform_below(transports.len())].name;
        if ["fastpod", "cosy", "python"].contains(&transport) {
            return;
        }
        let (summary, flows) = results(&plan(transport, &text));
        assert_eq!(summary.status, RunStatus::Finished, "{transport}\n{text}");
        let numbers: std::collections::BTreeSet<u64> = flows.flow.iter().copied().collect();
        assert_eq!(numbers.len(), flows.flow.len(), "{text}");
        assert!(flows.fct_ps.iter().all(Option::is_some), "{transport}\n{text}");
        for round in &summary.collectives {
            assert!(round.lower_bound_ratio.is_none_or(|over| over >= 1.0), "{round:?}\n{text}");
        }
        for calls in &summary.rpcs {
            assert_eq!(calls.calls, calls.completed);
            assert!(calls.slowdown_mean.is_none_or(|over| over >= 1.0), "{calls:?}\n{text}");
        }
    });
}
