//! Causes of flows' times in random plans.

use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_metrics::blame::{BlameRow, BlockerRow, ReleaseRow};
use rampmeter_metrics::columns::read_rows;
use rampmeter_metrics::{FlowRow, read_flows};

/// Checks that flows that waited for others started after the ends that released them.
fn check_releases(out: &Path, flows: &BTreeMap<u64, FlowRow>, text: &str) {
    let file = out.join("releases.parquet");
    if !file.exists() {
        return;
    }
    for row in read_rows::<ReleaseRow>(&file).unwrap().0.rows() {
        let (flow, after) = (&flows[&row.flow], &flows[&row.after]);
        let end_ps = after.arrival_ps + after.fct_ps.expect("it was delivered");
        let is_ordered = end_ps <= row.notified_ps && row.notified_ps <= flow.arrival_ps;
        assert!(is_ordered, "{row:?} after {end_ps} ps, arrival {} ps\n{text}", flow.arrival_ps);
        assert!([after.src, after.dst].contains(&flow.src), "{row:?}\n{text}");
    }
}

/// Checks that the causes of each delivered flow sum to its time. Flows that blocked it on a link
/// used the link for at most that cause. Runs without causes are not checked.
pub(super) fn check(out: &Path, text: &str) {
    let file = out.join("blame.parquet");
    if !file.exists() {
        return;
    }
    let (mut sums, mut parts) = (BTreeMap::new(), BTreeMap::new());
    for row in read_rows::<BlameRow>(&file).unwrap().0.rows() {
        *sums.entry(row.flow).or_insert(0) += row.time_ps;
        let is_new = parts.insert((row.flow, row.part), row.time_ps).is_none();
        assert!(is_new, "flow {} has two parts {}\n{text}", row.flow, row.part);
    }
    let (flows, _) = read_flows(&out.join("flows.parquet")).unwrap();
    let times = flows.rows().filter_map(|row| Some((row.flow, row.fct_ps?)));
    let times: BTreeMap<u64, u64> = times.collect();
    check_releases(out, &flows.rows().map(|row| (row.flow, row)).collect(), text);
    assert_eq!(sums, times, "{text}");
    let mut blocked = BTreeMap::new();
    let blockers = out.join("blockers.parquet");
    for row in read_rows::<BlockerRow>(&blockers).unwrap().0.rows() {
        *blocked.entry((row.flow, row.part)).or_insert(0) += row.time_ps;
    }
    for (part, time_ps) in blocked {
        let is_within = parts.get(&part).is_some_and(|&part_ps| time_ps <= part_ps);
        assert!(is_within, "{part:?}: {time_ps} ps of {:?}\n{text}", parts.get(&part));
    }
}
