//! Random plans in random numbers of threads.

use std::path::Path;

use rampmeter_exp::{
    NullObserver, Observer, Plan, PlanError, Registry, RunStatus, Summary, plan_schema, run,
};
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;
use rampmeter_types::{Purpose, Rng};

use super::draw::random_plan;
use super::{Limit, with_run_key};

/// Tables of results that every run has.
const FILES: [&str; 4] = ["flows.parquet", "series.parquet", "queues.parquet", "summary.json"];

/// Runs a plan in `n_threads`. Returns its status, its files and whether it was divided.
fn results(
    text: &str,
    registry: &Registry,
    n_threads: usize,
    observer: &mut dyn Observer,
) -> Result<(Summary, Vec<Vec<u8>>, bool), PlanError> {
    let text = with_run_key(text, &format!("threads = {n_threads}"));
    let plan = Plan::from_toml(&text, "plan", registry)?.check("plan", Path::new("."))?;
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), observer).unwrap();
    let read = |name: &str| std::fs::read(out.path().join(name)).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&read("manifest.json")).unwrap();
    let is_divided = manifest["threads"]["windows"].as_u64() > Some(0);
    Ok((summary, FILES.iter().map(|name| read(name)).collect(), is_divided))
}

#[test]
fn random_plans_have_the_same_results_in_any_number_of_threads() {
    let n = std::env::var("RAMPMETER_PLANS").ok();
    let n = n.map_or(1_000, |text| text.parse().expect("RAMPMETER_PLANS is a number"));
    let registry = Registry::builtin();
    let (transports, schema) = (registry.about(), plan_schema(&registry));
    let n_divided = std::cell::Cell::new(0);
    each_seed(
        here!(),
        "random_plans_have_the_same_results_in_any_number_of_threads",
        0..n,
        |seed| {
            let (text, has_faults) = random_plan(seed, &transports, &schema);
            if has_faults {
                return;
            }
            let text: String = text
                .lines()
                .filter(|line| !line.starts_with("threads"))
                .map(|line| format!("{line}\n"))
                .collect();
            let n_threads = 2 + Rng::new(seed, 0, Purpose::Test).uniform_below(6);
            let Ok((summary, alone, _)) = results(&text, &registry, 1, &mut Limit) else { return };
            if summary.status == RunStatus::Interrupted {
                return;
            }
            let (_, divided, is_divided) =
                results(&text, &registry, n_threads, &mut NullObserver).unwrap();
            for ((alone, divided), file) in alone.iter().zip(&divided).zip(FILES) {
                assert!(alone == divided, "{file} of {n_threads} threads differs:\n{text}");
            }
            n_divided.set(n_divided.get() + u64::from(is_divided));
        },
    );
    if n >= 1_000 {
        assert!(n_divided.get() > n / 10, "{} runs were divided", n_divided.get());
    }
}
