//! The `reference` preset against flow-by-flow results of the authors' simulator.
//!
//! `RAMPMETER_REFERENCE` names the folder with `dcpim_100g_imc10_load0.6.csv.gz` and the other
//! files named below; without it these tests report that they are skipped.
//! `docs/howto/reference-data.md` describes how to make such files.

#![expect(clippy::print_stdout, reason = "tests say what they skip and what they measured")]

use std::path::{Path, PathBuf};

use rampmeter_exp::{NullObserver, Plan, Registry, run};
use rampmeter_metrics::{Bins, FlowColumns, FlowRow, Ideal, Sample, compare, read_flows};
use rampmeter_workload::trace::{
    FlowOrder, Format, ReferenceRow, TraceRequirements, read_reference,
};

fn reference(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("RAMPMETER_REFERENCE") else {
        println!("skipped: RAMPMETER_REFERENCE names no folder with {name}");
        return None;
    };
    Some(Path::new(&folder).join(name))
}

/// dcPIM's study: 100 and 400 Gbit/s, 650 ns a link.
const DCPIM: &str = "[topology]\nkind = \"leaf-spine\"\nracks = 9\nhosts-per-rack = 16\n\
     spines = 4\n\
     [transport]\nname = \"dcpim\"\npreset = \"reference\"\n";

/// pHost's study: 10 and 40 Gbit/s, 200 ns a link, 36 KB a port; `fabric` and `transport` follow.
fn phost_study(fabric: &str, transport: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nracks = 9\nhosts-per-rack = 16\nspines = 4\n\
         access-gbps = 10.0\ncore-gbps = 40.0\nswitch-ns = 0.0\nhost-ns = 0.0\n\
         [fabric]\nbuffer-bytes = 36864\n{fabric}\
         [transport]\nname = \"{transport}\"\npreset = \"reference\"\n"
    )
}

fn replay(file: &Path, setup: &str) -> (FlowColumns, Vec<ReferenceRow>) {
    let check = TraceRequirements::new(144, FlowOrder::Require);
    let rows = read_reference(file, Format::Csv, check).unwrap();
    let text = format!("{setup}[workload]\npattern = \"trace\"\nfile = {file:?}\n");
    let plan = Plan::from_toml(&text, "replay", &Registry::builtin())
        .unwrap()
        .check("replay", Path::new("."))
        .unwrap();
    let out = tempfile::tempdir().unwrap();
    run(&plan, out.path(), &mut NullObserver).unwrap();
    (read_flows(&out.path().join("flows.parquet")).unwrap().0, rows)
}

/// Asserts that the mean slowdown is as recorded within `mean`, in each size bin within `bin`, and
/// the 99th percentile within `p99`. Runs are deterministic, so bounds are the measured values
/// (docs/howto/reference-data.md) and at most 1 % more. TCP's bounds by size are wider.
fn assert_close(name: &str, setup: &str, bounds: [f64; 3]) {
    assert_close_over(name, setup, bounds, |row, _| Sample::from_row(row, Ideal::Acked));
}

/// The same over the recorded ideal times, which are not ours.
fn assert_close_over_theirs(name: &str, setup: &str, bounds: [f64; 3]) {
    assert_close_over(name, setup, bounds, |row, recorded| {
        let slowdown = row.acked_ps? as f64 / recorded.ideal?.as_ps() as f64;
        Some(Sample { size_bytes: row.size_bytes, slowdown })
    });
}

fn assert_close_over(
    name: &str,
    setup: &str,
    [mean, bin_mean, p99]: [f64; 3],
    sample: impl Fn(&FlowRow, &ReferenceRow) -> Option<Sample>,
) {
    let Some(file) = reference(name) else { return };
    let (columns, rows) = replay(&file, setup);
    assert_eq!(columns.len(), rows.len());
    let ours: Vec<Sample> =
        columns.rows().filter_map(|row| sample(&row, &rows[row.flow as usize])).collect();
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
    assert!(off(overall.mean_ratio) < mean, "mean: {overall:?}");
    assert!(off(overall.p99_ratio) < p99, "p99: {overall:?}");
    for bin in comparison.bins.iter().filter(|b| b.theirs.is_some()) {
        assert!(off(bin.mean_ratio) < bin_mean, "mean by size: {bin:?}");
    }
}

#[test]
fn imc10_at_load_06_is_that_of_the_authors_simulator() {
    assert_close("dcpim_100g_imc10_load0.6.csv.gz", DCPIM, [0.005, 0.01, 0.015]);
}

#[test]
#[ignore = "long"]
fn web_search_at_load_06_is_that_of_the_authors_simulator() {
    assert_close("dcpim_100g_websearch_load0.6.csv.gz", DCPIM, [0.005, 0.01, 0.015]);
}

/// The recorded run sprays at the source in turn, as ours does; so do the two below.
#[test]
fn phost_is_that_of_its_authors_simulator() {
    let setup = phost_study("", "phost");
    assert_close("phost_10g_imc10_load0.6.csv.gz", &setup, [0.03, 0.05, 0.08]);
}

/// There hosts hand every packet of their windows to the interface, and most drops are there.
#[test]
fn pfabric_is_that_of_the_phost_study() {
    let setup = phost_study("interface = \"queue\"\n", "pfabric");
    assert_close("pfabric_10g_imc10_load0.6.csv.gz", &setup, [0.005, 0.01, 0.02]);
}

#[test]
fn fastpass_is_that_of_the_phost_study() {
    let setup = phost_study("", "fastpass");
    assert_close("fastpass_10g_imc10_load0.6.csv.gz", &setup, [0.015, 0.02, 0.02]);
}

/// csg-htsim's NDP in dcPIM's fabric. Its times end at the sender, with the last acknowledgement.
#[test]
fn ndp_is_that_of_csg_htsim() {
    let setup = DCPIM.replace("dcpim", "ndp");
    assert_close_over_theirs("ndp_100g_websearch_load0.6.csv.gz", &setup, [0.005, 0.01, 0.01]);
}

/// One switch by ns-3 3.37: 16 hosts, 10 Gbit/s, 1 us a link. Interfaces are queues like ports.
const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 16\naccess-gbps = 10.0\n\
     propagation-ns = 1000.0\nswitch-ns = 0.0\nhost-ns = 0.0\n[fabric]\ninterface = \"queue\"\n\
     [transport]\npreset = \"reference\"\n";

/// Bounds by size are wider, as a class of few flows has few timeouts.
#[test]
fn cubic_is_that_of_ns3() {
    let setup = format!("{STAR}name = \"tcp\"\n");
    assert_close_over_theirs(
        "cubic_10g_star16_websearch_load0.5.csv.gz",
        &setup,
        [0.04, 0.20, 0.08],
    );
}

#[test]
fn dctcp_is_that_of_ns3() {
    let setup = format!("{STAR}name = \"dctcp\"\n");
    assert_close_over_theirs(
        "dctcp_10g_star16_websearch_load0.5.csv.gz",
        &setup,
        [0.01, 0.02, 0.03],
    );
}

/// CAPTON's study: an over-subscribed core, and 20 us in hosts each way. Our hosts take both
/// where a packet enters. There hosts pass every packet of their windows to the interface.
const CAPTON: &str = "[topology]\nkind = \"leaf-spine\"\nracks = 12\nhosts-per-rack = 12\n\
     spines = 4\n\
     access-gbps = 10.0\ncore-gbps = 10.0\nswitch-ns = 0.0\nhost-ns = 40000.0\n\
     [fabric]\ninterface = \"queue\"\n";

/// Flows of one size class: their number, their mean and median in milliseconds, and the number
/// with a timeout of 200 ms. The mean is also over those without one.
#[derive(Debug)]
struct SizeClass {
    n: usize,
    mean: f64,
    median: f64,
    n_timeouts: usize,
    mean_without: f64,
}

/// Returns the classes of CAPTON's figures: up to 100 KB, up to 10 MB, more. Takes sizes in bytes,
/// and times in milliseconds.
fn size_classes(flows: &[(u64, f64)]) -> [SizeClass; 3] {
    [(0, 100_000), (100_000, 10_000_000), (10_000_000, u64::MAX)].map(|(above, most)| {
        let of = flows.iter().filter(|(size, _)| (above + 1..=most).contains(size));
        let mut times: Vec<f64> = of.clone().map(|&(_, ms)| ms).collect();
        times.sort_by(f64::total_cmp);
        // A packet takes 1.2 us, a round trip 0.086 ms.
        let alone = |size: u64| size.div_ceil(1_460) as f64 * 0.001_2 + 0.086;
        let without = of.filter(|&&(size, ms)| ms <= alone(size) + 200.0);
        let without: Vec<f64> = without.map(|&(_, ms)| ms).collect();
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        SizeClass {
            n: times.len(),
            mean: mean(&times),
            median: times[times.len() / 2],
            n_timeouts: times.len() - without.len(),
            mean_without: mean(&without),
        }
    })
}

/// Returns the size classes of a recorded run of CAPTON's study, ours and theirs, and prints them.
/// All flows finish in both, and as many have a timeout, within three standard deviations.
fn capton_study(name: &str, setup: &str) -> Option<[[SizeClass; 3]; 2]> {
    let (columns, rows) = replay(&reference(name)?, &format!("{CAPTON}{setup}"));
    let ours: Vec<(u64, f64)> = columns
        .rows()
        .filter_map(|row| Some((row.size_bytes, row.acked_ps? as f64 / 1e9)))
        .collect();
    let theirs: Vec<(u64, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.flow.size.get(), row.fct?.as_ps() as f64 / 1e9)))
        .collect();
    assert_eq!((ours.len(), theirs.len()), (rows.len(), rows.len()), "all flows finish in both");
    let (ours, theirs) = (size_classes(&ours), size_classes(&theirs));
    for (name, classes) in [("ours", &ours), ("theirs", &theirs)] {
        for SizeClass { n, mean, median, n_timeouts, mean_without } in classes {
            println!(
                "{name}: {n} flows, mean {mean:.3} ms, median {median:.3}, {n_timeouts} with a \
                 timeout, mean of others {mean_without:.3}"
            );
        }
    }
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(our.n, their.n);
        let slack = 3.0 * ((our.n_timeouts + their.n_timeouts) as f64).sqrt();
        let more = our.n_timeouts as f64 - their.n_timeouts as f64;
        assert!(more.abs() < slack, "timeouts: {our:?}, {their:?}");
    }
    Some([ours, theirs])
}

fn off(ours: f64, theirs: f64) -> f64 {
    (ours / theirs - 1.0).abs()
}

/// Checks that the means of longer flows, and the medians of the shortest and the longest, are
/// those of the study. The mean of short flows follows from the number of flows with a timeout. The
/// median of the others is explained in `docs/protocols/pias.md`.
fn assert_study(name: &str, setup: &str) {
    let Some([ours, theirs]) = capton_study(name, setup) else { return };
    for (our, their) in ours.iter().zip(&theirs).skip(1) {
        assert!(off(our.mean, their.mean) < 0.10, "mean: {our:?}, {their:?}");
    }
    for place in [0, 2] {
        let (our, their) = (&ours[place], &theirs[place]);
        assert!(off(our.median, their.median) < 0.10, "median: {our:?}, {their:?}");
    }
}

/// DCTCP's ECN, eight classes and timeouts of 200 ms.
#[test]
#[ignore = "long"]
fn pias_is_that_of_the_scripts_of_captons_study() {
    let setup = "[transport]\nname = \"pias\"\npreset = \"reference\"\n";
    assert_study("pias_capton_29.1.csv.gz", setup);
}

/// The same without classes.
#[test]
fn dctcp_is_that_of_the_scripts_of_captons_study() {
    let setup = "[transport]\nname = \"dctcp\"\npreset = \"ns-2\"\n";
    assert_study("dctcp_capton_32.76.csv.gz", setup);
}

/// A short flow that meets no other takes its ideal time and its notification's 3.2 ns in both
/// simulators. Meetings depend on the paths that packets take, so these flows may differ between
/// them. Their number is alike, and no flow takes less.
#[test]
fn lone_short_flows_take_exactly_as_long() {
    let Some(file) = reference("dcpim_100g_imc10_load0.6.csv.gz") else { return };
    let (columns, rows) = replay(&file, DCPIM);
    let (mut theirs, mut ours, mut n_short) = (0u32, 0u32, 0u32);
    for row in columns.rows() {
        let recorded = &rows[row.flow as usize];
        assert_eq!(recorded.ideal.unwrap().as_ps(), row.acked_ideal_ps, "flow {}", row.flow);
        if row.size_bytes > 49 * 1460 {
            continue;
        }
        let least = row.acked_ideal_ps + 3_200;
        let (recorded, took) = (recorded.fct.unwrap().as_ps(), row.acked_ps.unwrap());
        assert!(recorded >= least && took >= least, "flow {}: {recorded}, {took}", row.flow);
        n_short += 1;
        theirs += u32::from(recorded == least);
        ours += u32::from(took == least);
    }
    println!("of {n_short} short flows {theirs} take the least there, {ours} here");
    let off = f64::from(ours) - f64::from(theirs);
    // Three standard deviations of the difference of two counts.
    assert!(theirs > 500 && off.abs() < 3.0 * f64::from(ours + theirs).sqrt(), "{ours}, {theirs}");
    // The first flows of the run, in an empty network.
    let first = |n: u64| columns.rows().find(|r| r.flow == n).unwrap().acked_ps;
    for n in 0..4 {
        assert_eq!(first(n), rows[n as usize].fct.map(|f| f.as_ps()), "flow {n}");
    }
}
