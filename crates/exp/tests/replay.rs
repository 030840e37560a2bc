//! The `reference` preset against flow-by-flow results of the authors' simulator.
//!
//! `RAMPMETER_REFERENCE` names the folder with `dcpim_100g_imc10_load0.6.csv.gz` and
//! `dcpim_100g_websearch_load0.6.csv.gz`; without it these tests say that they are skipped.
//! `docs/howto/reference-data.md` says how to make such files.

#![expect(clippy::print_stdout, reason = "tests say what they skip and what they measured")]

use std::path::{Path, PathBuf};

use rampmeter_exp::{Plan, Silent, run};
use rampmeter_metrics::{Bins, FlowColumns, Ideal, Sample, compare, read_flows};
use rampmeter_workload::trace::{Check, Format, Order, ReferenceRow, read_reference};

fn reference(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("RAMPMETER_REFERENCE") else {
        println!("skipped: RAMPMETER_REFERENCE names no folder with {name}");
        return None;
    };
    Some(Path::new(&folder).join(name))
}

fn replay(file: &Path) -> (FlowColumns, Vec<ReferenceRow>) {
    let check = Check { n_hosts: 144, order: Order::Require };
    let rows = read_reference(file, Format::Csv, check).unwrap();
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nracks = 9\nhosts-per-rack = 16\nspines = 4\n\
         [transport]\nname = \"dcpim\"\npreset = \"reference\"\n\
         [workload]\npattern = \"trace\"\nfile = {file:?}\n"
    );
    let plan = Plan::from_toml(&text, "replay").unwrap().check("replay", Path::new(".")).unwrap();
    let out = tempfile::tempdir().unwrap();
    run(&plan, out.path(), &mut Silent).unwrap();
    (read_flows(&out.path().join("flows.parquet")).unwrap().0, rows)
}

fn assert_close(name: &str) {
    let Some(file) = reference(name) else { return };
    let (columns, rows) = replay(&file);
    assert_eq!(columns.len(), rows.len());
    let ours: Vec<Sample> =
        columns.rows().filter_map(|row| Sample::of(&row, Ideal::Acked)).collect();
    let theirs: Vec<Sample> = rows
        .iter()
        .filter_map(|row| {
            let slowdown = row.fct?.as_ps() as f64 / row.ideal?.as_ps() as f64;
            Some(Sample { size_bytes: row.flow.size.get(), slowdown })
        })
        .collect();
    assert_eq!((ours.len(), theirs.len()), (rows.len(), rows.len()), "all flows finish in both");
    let comparison = compare(&ours, &theirs, &Bins::PacketClasses);
    let overall = &comparison.overall;
    println!("{name}: {comparison:#?}");
    let off = |ratio: Option<f64>| (ratio.unwrap() - 1.0).abs();
    assert!(off(overall.mean_ratio) < 0.03, "mean: {overall:?}");
    assert!(off(overall.p99_ratio) < 0.10, "p99: {overall:?}");
    for bin in comparison.bins.iter().filter(|b| b.theirs.is_some()) {
        assert!(off(bin.mean_ratio) < 0.05, "mean by size: {bin:?}");
    }
}

#[test]
fn imc10_at_load_06_is_that_of_the_authors_simulator() {
    assert_close("dcpim_100g_imc10_load0.6.csv.gz");
}

#[test]
fn web_search_at_load_06_is_that_of_the_authors_simulator() {
    assert_close("dcpim_100g_websearch_load0.6.csv.gz");
}

/// A short flow that meets nobody takes its ideal time and its notification's 3.2 ns in both.
#[test]
fn lone_short_flows_take_exactly_as_long() {
    let Some(file) = reference("dcpim_100g_imc10_load0.6.csv.gz") else { return };
    let (columns, rows) = replay(&file);
    let mut both = 0;
    let mut alone = 0;
    for row in columns.rows() {
        let theirs = &rows[row.flow as usize];
        assert_eq!(theirs.ideal.unwrap().as_ps(), row.acked_ideal_ps, "flow {}", row.flow);
        if theirs.fct.unwrap().as_ps() == row.acked_ideal_ps + 3_200 {
            alone += 1;
            both += u32::from(row.acked_ps == Some(row.acked_ideal_ps + 3_200));
        }
    }
    // Whether a flow is alone depends on the paths that packets happen to take, so not every such
    // flow there is one here. The first flows of the run, in an empty network, are in both.
    assert!(alone > 100 && both > alone / 4, "{both} of {alone}");
    let first = |n: u64| columns.rows().find(|r| r.flow == n).unwrap().acked_ps;
    for n in 0..4 {
        assert_eq!(first(n), rows[n as usize].fct.map(|f| f.as_ps()), "flow {n}");
    }
}
