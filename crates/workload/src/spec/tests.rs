//! Plans: every pattern, determinism, and invalid plans.

use std::path::Path;

use rampmeter_types::{Bytes, Rate, Time};

use super::{WorkloadContext, WorkloadSpec};
use crate::ValidWorkload;
use crate::flow::Flow;

mod partners;
mod periods;
mod waiting;

fn context() -> WorkloadContext {
    WorkloadContext {
        n_hosts: 16,
        access_rate: Rate::from_gbps(100),
        host_rates: Vec::new(),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
        hosts_per_rack: Some(4),
        hosts_per_pod: None,
        base_dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"),
    }
}

fn plan(text: &str) -> Result<ValidWorkload, String> {
    let spec: WorkloadSpec = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    spec.validate(&context()).map_err(|error| error.to_string())
}

fn flows(text: &str, seed: u64) -> Vec<Flow> {
    plan(text).unwrap().numbered(seed).map(|(_, flow)| flow).collect()
}

/// One plan of each pattern, and its number of flows.
const PLANS: [(&str, u64); 21] = [
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nflows = 500", 500),
    ("pattern = 'permutation'\nsizes = { fixed = 71540 }\nload = 0.5\nflows = 300", 300),
    (
        "pattern = 'rack-local'\nsizes = 'web-search'\nlocal-load = 0.4\nremote-load = 0.2\n\
         flows = 400",
        400,
    ),
    ("pattern = 'incast-overlay'\nsizes = 'imc10'\nload = 0.6\nfan-in = 8\nflows = 600", 600),
    ("pattern = 'incast'\nfan = 10\ntotal-bytes = 1000000\nrounds = 3\nperiod-us = 100", 30),
    ("pattern = 'outcast'\nfan = 4\nflow-bytes = 1460\nhub = 'h2'", 4),
    (
        "pattern = 'shuffle'\nsenders = { first = 0, count = 4 }\n\
         receivers = { first = 4, count = 4 }\nflow-bytes = 29200000",
        16,
    ),
    ("pattern = 'dense'\nflow-bytes = 131400000", 240),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 1048576", 480),
    (
        "pattern = 'skewed-all-to-all'\nhost-bytes = 1000000\nskew = 1.0\nrounds = 2\n\
         period-us = 5.0",
        480,
    ),
    ("pattern = 'trace'\nfile = 'incast.cm'", 3),
    ("pattern = 'trace'\nfile = 'flow.txt'\nformat = 'hpcc'\nflows = 1", 1),
    (
        "pattern = 'mix'\nflows = 700\n\
         [[parts]]\npattern = 'all-to-all'\nsizes = { cdf = 'sizes.txt', unit = 'packets' }\n\
         load = 0.3\nflows = 690\n\
         [[parts]]\npattern = 'incast'\nfan = 15\nflow-bytes = 125560\nstart-us = 1.0",
        700,
    ),
    (
        "pattern = 'mix'\nflows = 50\n\
         [[parts]]\npattern = 'permutation'\nsizes = 'homa-w4'\nload = 0.3",
        50,
    ),
    ("pattern = 'permutation'\nsizes = 'imc10'\nhosts = [3, 'h5', 9]", 3),
    ("pattern = 'bisection'\nsizes = 'imc10'\nrounds = 2\nperiod-us = 9.0", 32),
    ("pattern = 'stride'\nstride = 3\nsizes = 'imc10'\nload = 0.4\nflows = 20", 20),
    ("pattern = 'staggered'\nrack-share = 0.5\nsizes = 'imc10'", 16),
    (
        "pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.4\non-us = 5.0\noff-us = 9.0\n\
         hosts = { first = 1, count = 4, step = 3 }\nflows = 30",
        30,
    ),
    ("pattern = 'rpc'\nrequests = 'imc10'\nresponses = 'imc10'\ncalls = 2\nfan = 3", 192),
    (
        "pattern = 'phases'\n[[parts]]\npattern = 'permutation'\nsizes = 'imc10'\n\
         [[parts]]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.2\nflows = 40",
        56,
    ),
];

#[test]
fn every_pattern_gives_its_number_of_valid_flows_in_order() {
    for (text, n) in PLANS {
        let workload = plan(text).unwrap();
        assert_eq!(workload.total_flows(), Some(n), "{text}");
        let flows: Vec<Flow> = workload.numbered(1).map(|(_, flow)| flow).collect();
        assert_eq!(flows.len() as u64, n, "{text}");
        assert!(flows.is_sorted_by_key(|flow| flow.arrival), "{text}");
        for flow in flows {
            assert!(flow.src != flow.dst && flow.src.get() < 16 && flow.dst.get() < 16, "{text}");
            assert!(flow.size > Bytes::ZERO, "{text}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_others() {
    let fixed = ["outcast", "shuffle", "dense", "collective", "trace"];
    for (text, _) in PLANS {
        assert_eq!(flows(text, 5), flows(text, 5), "{text}");
        if !fixed.iter().any(|pattern| text.contains(pattern)) {
            assert_ne!(flows(text, 5), flows(text, 6), "{text}");
        }
    }
}

#[test]
fn a_time_limit_ends_the_flows_without_a_total() {
    let text = "pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nuntil-us = 1000.0";
    assert_eq!(plan(text).unwrap().total_flows(), None);
    let flows = flows(text, 1);
    let until = Time::from_ps(1_000_000_000);
    assert!(flows.len() > 400 && flows.iter().all(|flow| flow.arrival < until));
    let trace = plan("pattern = 'trace'\nfile = 'incast.cm'\nuntil-us = 5.0").unwrap();
    assert_eq!((trace.total_flows(), trace.flows(0).count()), (Some(2), 2));
}

#[test]
fn the_load_of_a_part_does_not_move_the_flows_of_another() {
    let text = |load: f64| {
        format!(
            "pattern = 'rack-local'\nsizes = {{ fixed = 1460 }}\nlocal-load = {load}\n\
             remote-load = 0.2\nuntil-us = 50.0"
        )
    };
    let remote = |load| -> Vec<Flow> {
        let all = flows(&text(load), 3).into_iter();
        all.filter(|flow| flow.src.get() / 4 != flow.dst.get() / 4).collect()
    };
    assert_eq!(remote(0.4), remote(0.0));
}

#[test]
fn means_are_those_of_the_patterns() {
    let mean = |idx: usize| plan(PLANS[idx].0).unwrap().mean_bytes();
    assert_eq!(mean(1), Some(71_540.0));
    assert_eq!(mean(4), Some(100_000.0));
    assert_eq!(mean(8), None);
    assert_eq!(mean(10), Some(4_004_000.0 / 3.0));
    assert_eq!(mean(12), None);
    // Loads 0.6 of 195 357 B and 0.02 of 125 560 B.
    let flows = 0.6 / (133.80625 * 1460.0) + 0.02 / 125_560.0;
    assert!((mean(3).unwrap() - 0.62 / flows).abs() < 1e-6);
}

#[test]
fn a_workload_survives_writing_and_reading() {
    for (text, _) in PLANS {
        let spec: WorkloadSpec = toml::from_str(text).unwrap();
        let again: WorkloadSpec = toml::from_str(&toml::to_string(&spec).unwrap()).unwrap();
        assert_eq!(spec, again);
    }
}

/// Wrong keys of an otherwise right plan, and the messages.
#[rustfmt::skip]
const WRONG: [(&str, &str); 40] = [
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6",
     "flows: expected flows or until-us, for a pattern without an end, got neither"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.0\nflows = 1",
     "load: expected a load above 0, at most 2, got 0"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = nan\nflows = 1",
     "load: expected a load above 0, at most 2, got NaN"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 60.0\nflows = 1",
     "load: expected a load above 0, at most 2, got 60"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nflows = 0",
     "flows: expected at least 1, got 0"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nuntil-us = -1.0",
     "until-us: expected microseconds from 0 to 10^13, got -1"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nuntil-us = inf",
     "until-us: expected microseconds from 0 to 10^13, got inf"),
    ("pattern = 'all-to-all'\nsizes = 'imc11'\nload = 0.6\nflows = 1",
     "sizes: expected one of imc10, web-search, data-mining, ns-2-web-search, ns-2-data-mining, \
      hpcc-web-search, ali-storage, homa-w1, homa-w2, homa-w3, homa-w4, homa-w5, got \"imc11\""),
    ("pattern = 'all-to-all'\nsizes = { fixed = 0 }\nload = 0.6\nflows = 1",
     "sizes: expected fixed from 1 to 2^50 bytes, got 0"),
    ("pattern = 'all-to-all'\nsizes = { unit = 'packets' }\nload = 0.6\nflows = 1",
     "sizes: expected fixed or cdf, got neither"),
    ("pattern = 'all-to-all'\nsizes = { fixed = 1, cdf = 'x' }\nload = 0.6\nflows = 1",
     "sizes: expected fixed or cdf, got both"),
    ("pattern = 'all-to-all'\nsizes = 7\nload = 0.6\nflows = 1",
     "invalid type: integer `7`, expected the name of a distribution, { fixed = bytes } or \
      { cdf = \"file\" }"),
    ("pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.6\nflow = 1",
     "unknown field `flow`, expected one of `sizes`, `load`, `hosts`, `on-us`, `off-us`, \
      `start-us`, `period-us`, `rounds`, `flows`, `until-us`"),
    ("pattern = 'all-to-one'\nflows = 1",
     "unknown variant `all-to-one`, expected one of `all-to-all`, `permutation`, `stride`, \
      `bisection`, `staggered`, `rack-local`, `incast-overlay`, `incast`, `outcast`, `shuffle`, \
      `dense`, `rpc`, `collective`, `skewed-all-to-all`, `bimodal`, `trace`, `mix`, `phases`"),
    ("sizes = 'imc10'", "missing field `pattern`"),
    ("pattern = 'rack-local'\nsizes = 'imc10'\nlocal-load = 0.1\nremote-load = 0.1\n\
      hosts-per-rack = 5\nflows = 1",
     "hosts-per-rack: expected a divisor of the 16 hosts, got 5"),
    ("pattern = 'rack-local'\nsizes = 'imc10'\nlocal-load = 0.0\nremote-load = 0.0\nflows = 1",
     "local-load: expected a load above 0 here or in remote-load, got 0"),
    ("pattern = 'rack-local'\nsizes = 'imc10'\nlocal-load = 0.1\nremote-load = 0.1\n\
      hosts-per-rack = 16\nflows = 1",
     "remote-load: expected 0 with a single rack, got 0.1"),
    ("pattern = 'incast-overlay'\nsizes = 'imc10'\nload = 0.6\nflows = 1",
     "fan-in: expected from 1 to 15, the other hosts, got 50"),
    ("pattern = 'incast'\nfan = 16\nflow-bytes = 1",
     "fan: expected from 1 to 15, the other hosts, got 16"),
    ("pattern = 'incast'\nfan = 4\nflow-bytes = 1\nhub = 1\npeers = { first = 0, count = 4 }",
     "fan: expected from 1 to 3, the other hosts, got 4"),
    ("pattern = 'incast'\nfan = 4", "flow-bytes: expected flow-bytes or total-bytes, got neither"),
    ("pattern = 'incast'\nfan = 4\ntotal-bytes = 3",
     "total-bytes: expected at least a byte for each of 4 flows, got 3"),
    ("pattern = 'incast'\nfan = 4\nflow-bytes = 3\nrounds = 2",
     "period-us: expected a period for several rounds, got none"),
    ("pattern = 'outcast'\nfan = 4\nflow-bytes = 3\nhub = 16",
     "hub: expected a host below 16, got 16"),
    ("pattern = 'shuffle'\nsenders = { first = 0, count = 8 }\n\
      receivers = { first = 12, count = 5 }\nflow-bytes = 1",
     "receivers: expected at least 1 of the hosts 0 to 15, got 5 from 12"),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 9\n\
      algorithm = 'halving-doubling'\nhosts = { first = 0, count = 6 }",
     "hosts: expected a power of two for halving-doubling, got 6"),
    ("pattern = 'collective'\noperation = 'broadcast'\nvector-bytes = 9\nalgorithm = 'ring'",
     "algorithm: expected tree, chain for broadcast, got ring"),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 47\nchunks = 3",
     "vector-bytes: expected a byte for each of 48 pieces, got 47"),
    ("pattern = 'collective'\noperation = 'all-to-all'\nvector-bytes = 47\nchunks = 3",
     "chunks: expected 1 with direct, got 3"),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 99\nrounds = 200000",
     "rounds: expected at most 50000000 flows, got 96000000"),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 99\nskew = 1.0",
     "skew: expected no value except for all-to-all-v, got 1"),
    ("pattern = 'collective'\noperation = 'all-to-all-v'",
     "vector-bytes: expected vector-bytes and skew, or matrix, got neither"),
    ("pattern = 'collective'\noperation = 'all-to-all-v'\nvector-bytes = 99",
     "skew: expected a skew with vector-bytes, got none"),
    ("pattern = 'collective'\noperation = 'all-to-all-v'\nmatrix = [[0, 1], [2, 3, 4]]\n\
      hosts = { first = 4, count = 2 }",
     "matrix[1]: expected bytes for each of 2 hosts, got 3"),
    ("pattern = 'collective'\noperation = 'all-to-all-v'\nmatrix = [[7, 0], [0, 7]]\n\
      hosts = { first = 4, count = 2 }",
     "matrix: expected bytes from a host to another, got none"),
    ("pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = 99\nflows = 7",
     "unknown field `flows`, expected one of `operation`, `algorithm`, `vector-bytes`, `matrix`, \
      `skew`, `hosts`, `group-size`, `group-step`, `chunks`, `start-us`, \
      `compute-us`, `rounds`, `pause-us`"),
    ("pattern = 'mix'\nflows = 9\n[[parts]]\npattern = 'collective'\n\
      operation = 'all-reduce'\nvector-bytes = 99",
     "flows: expected limits of the parts alone, as flows of a part wait for others, \
      got flows or until-us of the mix"),
    ("pattern = 'trace'\nfile = 'yaps.log'",
     "format: expected one of csv, parquet, yaps, htsim, hpcc, goal, simai, chakra, msccl, as \
      neither the name nor the contents of the file suggest one, got none"),
    ("pattern = 'mix'\n[[parts]]\npattern = 'dense'\nflow-bytes = 1\n[[parts]]\n\
      pattern = 'dense'\nflow-bytes = 0",
     "parts[1].flow-bytes: expected bytes from 1 to 6270652250700, the size of 2^32 - 1 packets or \
     2^50, got 0"),
];

#[test]
fn errors_of_workloads_name_key_expectation_and_content() {
    for (text, message) in WRONG {
        assert_eq!(plan(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn wrong_files_are_named_relative_to_the_plan() {
    let error = plan("pattern = 'trace'\nfile = 'yaps.log'\nformat = 'yaps'").unwrap_err();
    assert!(
        error.ends_with("tests/data/yaps.log:5: dst: expected a host below 16, got 22"),
        "{error}"
    );
    let error = plan("pattern = 'all-to-all'\nsizes = { cdf = 'none' }\nload = 0.1\nflows = 1");
    assert!(error.unwrap_err().contains("tests/data/none: cannot read the distribution: "));
}

#[test]
fn columns_of_traces_that_are_not_used_are_named() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    std::fs::write(&file, "arrival_ns,src,dst,size_bytes,status\n1,0,1,9,red\n").unwrap();
    let trace = format!("pattern = 'trace'\nfile = '{}'", file.display());
    let expected = [format!("{}: columns are not used: status", file.display())];
    assert_eq!(plan(&trace).unwrap().warnings(), expected);
    let mix = format!("pattern = 'mix'\n[[parts]]\n{trace}\n[[parts]]\n{}", PLANS[0].0);
    assert_eq!(plan(&mix).unwrap().warnings(), expected);
    assert!(plan(PLANS[0].0).unwrap().warnings().is_empty());
}
