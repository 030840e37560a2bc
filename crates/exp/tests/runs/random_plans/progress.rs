//! Properties of the progress of flows that every run has.

use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_exp::Summary;
use rampmeter_metrics::columns::read_rows;
use rampmeter_metrics::read_flows;
use rampmeter_metrics::row::Status;
use rampmeter_metrics::series::RateSample;

/// Checks the sums of bytes in the tables of the run in `out`. No flow is faster than its ideal,
/// and the measured window is within the run.
pub(crate) fn check(summary: &Summary, out: &Path, text: &str) {
    let (flows, _) = read_flows(&out.join("flows.parquet")).unwrap();
    let mut delivered: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in flows.rows() {
        assert!(row.delivered_bytes <= row.size_bytes, "{row:?}\n{text}");
        let is_whole = row.delivered_bytes == row.size_bytes;
        assert!(is_whole || row.status != Status::Delivered, "{row:?}\n{text}");
        assert!(row.fct_ps.is_none_or(|fct| fct >= row.ideal_ps), "{row:?}\n{text}");
        delivered.insert(row.flow, (row.delivered_bytes, row.sent_bytes));
    }
    if let Some(window) = summary.window {
        let end = summary.counters.end_ps;
        // Deliveries of the ideal are later than its last event.
        let is_packets = !summary.tiers.is_empty();
        assert!(window.to_ps <= end || !is_packets, "{window:?} {end}\n{text}");
        let goodput = summary.goodput_gbps.unwrap_or(0.0);
        let bits = delivered.values().map(|(bytes, _)| bytes * 8).sum::<u64>() as f64;
        let seconds = (window.to_ps - window.from_ps) as f64 * 1e-12;
        // Bytes of unfinished flows of the ideal are rounded down.
        let bits = bits * 1.000_001 + 8.0 * (1.0 + delivered.len() as f64);
        assert!(goodput * 1e9 * seconds <= bits, "{goodput} {bits}\n{text}");
        let tenants = &summary.tenant_goodput_gbps;
        let sum: f64 = tenants.values().sum();
        let error = (sum - goodput).abs();
        assert!(tenants.is_empty() || error <= 1e-9 * goodput, "{sum} {goodput}\n{text}");
    }
    let file = out.join("rates.parquet");
    if !file.exists() {
        return;
    }
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in read_rows::<RateSample>(&file).unwrap().0.rows() {
        let sum = sums.entry(row.flow).or_default();
        *sum = (sum.0 + row.delivered_bytes, sum.1 + row.sent_bytes);
    }
    for (flow, (bytes, sent)) in delivered {
        let rates = sums.remove(&flow).unwrap_or_default();
        // A sender may retransmit delivered bytes until they are acknowledged.
        assert!(rates.0 == bytes && rates.1 <= sent, "{flow}: {rates:?} {bytes} {sent}\n{text}");
    }
    assert!(sums.is_empty(), "{sums:?}\n{text}");
}
