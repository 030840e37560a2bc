//! Recorded runs of the published simulators are readable, and offer the load they are named for.
//!
//! The recordings are not part of the repository. The directory is named by the environment
//! variable `RAMPMETER_REFERENCE`, and without it the test reports this and passes.

use rampmeter_workload::trace::{FlowOrder, Format, TraceRequirements, read_reference};

#[test]
fn recorded_runs_are_traces_of_their_load() {
    let Some(dir) = std::env::var_os("RAMPMETER_REFERENCE") else {
        skip("skipped: RAMPMETER_REFERENCE does not name a directory of recordings");
        return;
    };
    let mut n_files = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let file = entry.unwrap().path();
        let name = file.display().to_string();
        if !name.ends_with("load0.6.csv.gz") {
            continue;
        }
        let check = TraceRequirements::new(144, FlowOrder::Require);
        let rows = read_reference(&file, Format::Csv, check).unwrap();
        assert!(rows.iter().all(|row| row.ideal.is_some()), "{name}");
        let bits: f64 = rows.iter().map(|row| row.flow.size.get() as f64 * 8.0).sum();
        let gbps = if name.contains("_100g_") { 100e9 } else { 10e9 };
        let capacity = 144.0 * gbps * rows.last().unwrap().flow.arrival.as_secs_f64();
        // Load counts headers. The mean of n sizes is off by their deviation over the root of n,
        // and that of n gaps by one over it. Three times that, or 3 %, is chance.
        let load = bits * 1500.0 / 1460.0 / capacity;
        let n = rows.len() as f64;
        let mean = bits / 8.0 / n;
        let squares: f64 = rows.iter().map(|r| (r.flow.size.get() as f64 - mean).powi(2)).sum();
        let error = ((squares / n / mean.powi(2) + 1.0) / n).sqrt();
        assert!((load / 0.6 - 1.0).abs() < (3.0 * error).max(0.03), "{name}: {load}, {error}");
        n_files += 1;
    }
    assert!(n_files > 0);
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(message: &str) {
    eprintln!("{message}");
}
