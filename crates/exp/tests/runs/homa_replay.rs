//! Homa's `reference` preset against recorded runs of the public ns-2 port of SIRD's authors.
//!
//! `RAMPMETER_REFERENCE` names the folder with the recorded runs, as for the other replays; without
//! it these tests report that they are skipped. Completion ends there at the receiver, so that it
//! is compared with the time of delivery here.

#![expect(clippy::print_stdout, reason = "tests say what they skip and what they measured")]

use std::path::{Path, PathBuf};

use rampmeter_exp::{NullObserver, Plan, Registry, Summary, run};
use rampmeter_metrics::{FlowColumns, read_flows};
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

/// 144 hosts at 100 Gbit/s, 2.5 us between hosts of a rack, 3.5 us between racks. There a host's
/// link takes 1.25 us and one between switches 0.5 us; here all take 0.5 us, and hosts the rest.
fn study(file: &Path, seed: u64) -> String {
    format!(
        "seed = {seed}\n[topology]\nkind = \"leaf-spine\"\nracks = 9\nhosts-per-rack = 16\n\
         spines = 4\n\
         propagation-ns = 500.0\nswitch-ns = 0.0\nhost-ns = 1500.0\n\
         [transport]\nname = \"homa\"\npreset = \"reference\"\n\
         [run]\nsample-us = 1.0\n\
         [workload]\npattern = \"trace\"\nfile = {file:?}\n"
    )
}

struct Replay {
    ours: FlowColumns,
    theirs: Vec<ReferenceRow>,
    summary: Summary,
}

fn replay(name: &str, seed: u64) -> Option<Replay> {
    let file = reference(name)?;
    let check = TraceRequirements::new(144, FlowOrder::Require);
    let theirs = read_reference(&file, Format::Csv, check).unwrap();
    let plan = Plan::from_toml(&study(&file, seed), "replay", &Registry::builtin())
        .unwrap()
        .check("replay", Path::new("."))
        .unwrap();
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut NullObserver).unwrap();
    let ours = read_flows(&out.path().join("flows.parquet")).unwrap().0;
    assert_eq!(ours.len(), theirs.len());
    Some(Replay { ours, theirs, summary })
}

/// Returns the mean and the 99th percentile of slowdowns, by nearest rank.
fn mean_and_p99(mut slowdowns: Vec<f64>) -> [f64; 2] {
    slowdowns.sort_by(f64::total_cmp);
    let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
    [mean, slowdowns[(slowdowns.len() * 99).div_ceil(100) - 1]]
}

fn off(ours: f64, theirs: f64) -> f64 {
    (ours / theirs - 1.0).abs()
}

/// Size classes of the recorded run's published table: 1442 B are the payload of one packet.
const CLASSES: [(u64, u64); 6] = [
    (0, u64::MAX),
    (0, 1_442),
    (1_442, 10_000),
    (10_000, 100_000),
    (100_000, 1_000_000),
    (1_000_000, u64::MAX),
];

/// Both slowdowns are over the recorded ideal, which counts neither headers nor store-and-forward;
/// arrivals of the first 2 ms are omitted.
#[test]
fn w4_at_load_05_is_that_of_the_ns2_port() {
    let Some(replay) = replay("homa_100g_w4_load0.5.csv.gz", 1) else { return };
    let Replay { ours, theirs, summary } = replay;
    for (class, (above, most)) in CLASSES.into_iter().enumerate() {
        let slowdowns = |time: &dyn Fn(usize) -> u64| {
            let counted = theirs.iter().enumerate().filter(|(_, row)| {
                let size = row.flow.size.get();
                row.flow.arrival.as_ps() >= 2_000_000_000 && size > above && size <= most
            });
            let slowdown = |(n, row): (usize, &ReferenceRow)| {
                time(n) as f64 / row.ideal.unwrap().as_ps() as f64
            };
            mean_and_p99(counted.map(slowdown).collect())
        };
        let mut fct = vec![0; theirs.len()];
        ours.rows().for_each(|row| fct[row.flow as usize] = row.fct_ps.unwrap());
        let [mean, p99] = slowdowns(&|n| fct[n]);
        let [their_mean, their_p99] = slowdowns(&|n| theirs[n].fct.unwrap().as_ps());
        println!(
            "above {above} B: mean {mean:.4}, recorded {their_mean:.4}; p99 {p99:.3}, recorded \
             {their_p99:.3}"
        );
        let bound = if class == 0 { 0.05 } else { 0.08 };
        assert!(off(mean, their_mean) < bound, "mean above {above} B");
        assert!(off(p99, their_p99) < 0.15, "99th percentile above {above} B");
    }
    // Recorded while messages arrive, for 25 ms; samples here continue until the last has arrived.
    let down = summary.queues.iter().find(|q| q.tier == "tor-down").unwrap();
    let samples = 144.0 * 25_000.0;
    let mean = down.mean_bytes * down.samples as f64 / samples;
    let max = down.max_bytes as f64;
    println!("queues to hosts: mean {mean:.0} B, recorded 36800; maximum {max} B, recorded 894000");
    assert!(off(mean, 36_800.0) < 0.20 && off(max, 894_000.0) < 0.20);
    assert!(summary.tiers.iter().all(|tier| tier.data_drops == 0));
    assert_eq!(summary.transport.get("resends"), Some(&0), "nothing is lost");
}

/// Thirty messages of 500 KB at once. The completion of the first depends on the paths of packets
/// and on the order of those that arrive at once. It is 458 to 584 us over eight seeds; a simulator
/// that orders them by insertion recorded 441 us. From the eighth on one follows another. The last
/// one shows that the link was never idle.
#[test]
fn an_incast_completes_when_it_does_in_the_ns2_port() {
    let name = "homa_100g_incast30x500KB.csv.gz";
    let mut firsts = Vec::new();
    for seed in 1..=8 {
        let Some(Replay { ours, theirs, summary }) = replay(name, seed) else { return };
        let us = |ps: u64| ps as f64 / 1e6;
        let mut fct: Vec<f64> = ours.rows().map(|row| us(row.fct_ps.unwrap())).collect();
        let mut recorded: Vec<f64> = theirs.iter().map(|r| us(r.fct.unwrap().as_ps())).collect();
        fct.sort_by(f64::total_cmp);
        recorded.sort_by(f64::total_cmp);
        let tiers = summary.tiers.iter();
        let peak = tiers.map(|tier| tier.queue_max_bytes).max().unwrap() as f64;
        println!(
            "seed {seed}: first {:.1} us, recorded {:.1}; last {:.1}, recorded {:.1}; peak {peak}",
            fct[0], recorded[0], fct[29], recorded[29]
        );
        for (ours, theirs) in fct.iter().zip(&recorded).skip(12) {
            assert!(off(*ours, *theirs) < 0.03, "{ours} us, recorded {theirs}");
        }
        // All unscheduled bytes but those that the link has carried meanwhile.
        assert!(off(peak, 2_987_323.0) < 0.05, "{peak}");
        firsts.push(fct[0]);
    }
    let mean = firsts.iter().sum::<f64>() / 8.0;
    assert!(off(mean, 441.0) < 0.20, "{firsts:?}");
}
