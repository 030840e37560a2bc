//! The same plan and seed give the same bytes, alone or next to other runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use rampmeter_exp::{NullObserver, Observer, Plan, Progress, Registry, RunStatus, run};
use rampmeter_metrics::blame::{BlameRow, BlockerRow};
use rampmeter_metrics::columns::read_rows;
use rampmeter_metrics::{FlowRow, read_flows};
use rampmeter_proto::{Builtin, RegisteredTransport};
use rampmeter_testkit::{Body, Case, Suite, here};

const FILES: [&str; 6] = [
    "flows.parquet",
    "series.parquet",
    "queues.parquet",
    "latencies.parquet",
    "transport.parquet",
    "summary.json",
];

fn plan(seed: u64, preset: &str) -> String {
    plan_of("dcpim", seed, preset)
}

fn plan_of(transport: &str, seed: u64, preset: &str) -> String {
    format!(
        "seed = {seed}\n[topology]\nkind = \"leaf-spine\"\nracks = 3\nhosts-per-rack = 4\n\
         spines = 2\n[transport]\nname = \"{transport}\"\npreset = \"{preset}\"\n[workload]\n\
         pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.7\nflows = 2000\n[run]\n\
         paranoid = true\n[clocks]\noffset-us = 0.2\ndrift-ppm = 10\n[faults]\nloss = 0.001\n"
    )
}

fn results(seed: u64, preset: &str) -> Vec<Vec<u8>> {
    results_of(&plan(seed, preset))
}

fn results_of(text: &str) -> Vec<Vec<u8>> {
    results_and_threads_of(text).0
}

fn run_into(text: &str, out: &Path) {
    let plan = Plan::from_toml(text, "plan", &Registry::builtin())
        .unwrap()
        .check("plan", Path::new("."))
        .unwrap();
    run(&plan, out, &mut NullObserver).unwrap();
}

/// Returns the files of results, and the threads of the run as the manifest has them.
fn results_and_threads_of(text: &str) -> (Vec<Vec<u8>>, serde_json::Value) {
    let out = tempfile::tempdir().unwrap();
    run_into(text, out.path());
    let read = |name: &str| std::fs::read(out.path().join(name)).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&read("manifest.json")).unwrap();
    (FILES.iter().map(|name| read(name)).collect(), manifest["threads"].clone())
}

/// The same seed gives the same bytes, alone and next to other runs.
#[derive(Clone, Copy)]
struct Determinism;

impl Body for Determinism {
    const NAME: &'static str = "determinism";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let text = plan_of(T::NAME, 7, case.preset);
        let once = results_of(&text);
        thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| results_of(&text)));
            for thread in threads {
                assert!(thread.join().unwrap() == once, "a run beside others differs");
            }
        });
    }
}

/// Any number of threads gives the same bytes.
#[derive(Clone, Copy)]
struct Threads;

impl Body for Threads {
    const NAME: &'static str = "threads";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let plan = plan_of(T::NAME, 5, case.preset);
        let (plan, _) = plan.split_once("[faults]").unwrap();
        let alone = results_of(plan);
        for n in [2, 3, 7] {
            let plan = plan.replace("[run]\n", &format!("[run]\nthreads = {n}\n"));
            let (divided, threads) = results_and_threads_of(&plan);
            // HPCC's switches pause links, which partitions cannot do.
            let is_divided = threads["windows"].as_u64() > Some(100);
            assert!(is_divided == (T::NAME != "hpcc"), "{threads}");
            for ((alone, divided), file) in alone.iter().zip(&divided).zip(FILES) {
                assert!(alone == divided, "{file} of {n} threads differs");
            }
        }
    }
}

/// The causes of each flow's time sum to it, and flows are those of a run without causes.
#[derive(Clone, Copy)]
struct Causes;

impl Body for Causes {
    const NAME: &'static str = "causes";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let plan = plan_of(T::NAME, 5, case.preset);
        let without = tempfile::tempdir().unwrap();
        run_into(&plan, without.path());
        let out = tempfile::tempdir().unwrap();
        run_into(&plan.replace("[run]\n", "[run]\nblame = true\n"), out.path());
        let flows = |out: &Path| read_flows(&out.join(FILES[0])).unwrap().0;
        let is_same = flows(out.path()) == flows(without.path());
        assert!(is_same, "flows differ from those of a run without causes");
        let stages: Vec<&str> = T::STAGES.iter().map(|stage| stage.name).collect();
        let mut sums = BTreeMap::new();
        let (parts, _) = read_rows::<BlameRow>(&out.path().join("blame.parquet")).unwrap();
        for BlameRow { flow, cause, stage, tier, time_ps, .. } in parts.rows() {
            assert!(time_ps > 0, "flow {flow}: {cause} has no time");
            // Links that may fail log control packets, too: one that is idle is idle for a reason.
            let is_idle = cause == "paused" && tier == "host-up";
            assert!(
                !is_idle || T::NAME == "hpcc",
                "flow {flow} may send for {time_ps} ps and does not"
            );
            *sums.entry(flow).or_insert(0) += time_ps;
            let is_known = !cause.starts_with("permission") || stages.contains(&&*stage);
            assert!(is_known, "{} has no stage {stage:?}, it has {stages:?}", T::NAME);
        }
        let rows = flows(out.path());
        let times = rows.rows().filter_map(|row| Some((row.flow, row.fct_ps?)));
        assert_eq!(sums, times.collect::<BTreeMap<u64, u64>>());
        let (blockers, _) = read_rows::<BlockerRow>(&out.path().join("blockers.parquet")).unwrap();
        assert!(blockers.rows().any(|row| row.blocker.is_some_and(|other| other != row.flow)));
    }
}

/// The parts of a lone flow's time are its ideal, and the delays of its protocol. A protocol with a
/// pace keeps the last packet from waiting for the one before, for at most a packet's time.
#[derive(Clone, Copy)]
struct LoneFlow;

impl Body for LoneFlow {
    const NAME: &'static str = "lone_flow";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        for size in [100, 20_000, 1_000_000] {
            let plan = plan_of(T::NAME, 1, case.preset);
            let (network, _) = plan.split_once("[workload]").unwrap();
            let plan = format!(
                "{network}[workload]\npattern = \"incast\"\nfan = 1\nrounds = 1\n\
                 flow-bytes = {size}\n[run]\nblame = true\n"
            );
            let out = tempfile::tempdir().unwrap();
            run_into(&plan, out.path());
            let (parts, _) = read_rows::<BlameRow>(&out.path().join("blame.parquet")).unwrap();
            let parts: Vec<BlameRow> = parts.rows().collect();
            let (of_protocol, of_network): (Vec<_>, Vec<_>) = parts.iter().partition(|row| {
                !["serialisation", "propagation", "switching"].contains(&&*row.cause)
            });
            // Control packets of its protocol may be in its way.
            let known = ["permission", "permission-in-flight", "sender-link", "queueing"];
            // Fastpod sends cells again by schedule that it sent without one (its section 3.3).
            let is_known = |row: &&BlameRow| {
                known.contains(&&*row.cause)
                    || row.cause == "retransmission" && T::NAME == "fastpod"
            };
            assert!(of_protocol.iter().all(is_known), "{size}: {parts:?}");
            let sum: u64 = of_network.iter().map(|row| row.time_ps).sum();
            let (flows, _) = read_flows(&out.path().join(FILES[0])).unwrap();
            let FlowRow { ideal_ps: ideal, ideal_is_bound, .. } = flows.rows().next().unwrap();
            let packet_ps = 9_100 * 80;
            assert!(sum.abs_diff(ideal) < packet_ps, "{size}: {sum} of {ideal}, {parts:?}");
            let has_pace = ["fastpass", "cosy", "sird"].contains(&T::NAME);
            // Ideals share the headers of shorter first packets out over all bytes.
            let has_short_head = T::NAME == "homa" && case.preset == "reference";
            let may_differ = has_pace || ideal_is_bound || has_short_head;
            assert!(sum == ideal || may_differ, "{size}: {sum} of {ideal}, {parts:?}");
        }
    }
}

/// Counters of endpoints are in the summary, and over time in a table.
fn counters_of_the_transport_are_among_the_results() {
    let text = plan(3, "paper");
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin())
        .unwrap()
        .check("plan", Path::new("."))
        .unwrap();
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut NullObserver).unwrap();
    let names: Vec<&str> = summary.transport.keys().copied().collect();
    let expected = [
        "control_retransmissions",
        "late_matching_messages",
        "tokens_expired",
        "tokens_reissued",
        "tokens_sent",
        "tokens_withheld",
    ];
    assert_eq!(names, expected);
    // Most packets of long flows are paid for by tokens.
    let tokens = summary.transport["tokens_sent"];
    assert!(tokens > 0 && tokens < 2 * summary.counters.data_packets, "{tokens}");
    let json = std::fs::read_to_string(out.path().join("summary.json")).unwrap();
    assert!(json.contains(&format!("\"tokens_sent\": {tokens}")), "{json}");
    assert!(out.path().join("transport.parquet").exists());
}

fn another_seed_or_preset_gives_other_results() {
    let one = results(1, "paper");
    assert!(one[0] != results(2, "paper")[0]);
    assert!(one[0] != results(1, "reference")[0]);
}

/// Stops a run at the first report of progress.
struct EarlyStop;

impl Observer for EarlyStop {
    fn on_progress(&mut self, _progress: &Progress) -> bool {
        false
    }
}

fn an_interrupted_run_keeps_partial_results() {
    let text = plan(1, "reference").replace("flows = 2000", "flows = 10000000");
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin())
        .unwrap()
        .check("plan", Path::new("."))
        .unwrap();
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut EarlyStop).unwrap();
    assert_eq!(summary.status, RunStatus::Interrupted);
    let (flows, _) = read_flows(&out.path().join("flows.parquet")).unwrap();
    assert!(flows.len() as u64 == summary.flows.submitted && summary.flows.delivered > 0);
    let manifest = std::fs::read_to_string(out.path().join("manifest.json")).unwrap();
    assert!(manifest.contains("\"status\": \"interrupted\""));
}

fn main() {
    Suite::new(here!())
        .each_preset::<Builtin, _>(Determinism)
        .each_preset::<Builtin, _>(Threads)
        .each_preset::<Builtin, _>(Causes)
        .each_preset::<Builtin, _>(LoneFlow)
        .with_test(
            "counters_of_the_transport_are_among_the_results",
            counters_of_the_transport_are_among_the_results,
        )
        .with_test(
            "another_seed_or_preset_gives_other_results",
            another_seed_or_preset_gives_other_results,
        )
        .with_test(
            "an_interrupted_run_keeps_partial_results",
            an_interrupted_run_keeps_partial_results,
        )
        .run();
}
