//! Warnings to the reader of a run's numbers.

use std::collections::BTreeMap;

use rampmeter_core::Span;
use rampmeter_metrics::Ideal;
use rampmeter_metrics::confidence::{BATCHES, correlation_of_batches};
use rampmeter_workload::Process;

use crate::offered::seconds;
use crate::record::Kept;
use crate::summary::{DeadlockReport, FlowCounts, Slowdown};
use crate::window::WarmUpReport;

/// Half of a confidence interval, relative to its mean, above which a warning is given.
const WIDE: f64 = 0.1;
/// Fewest samples of links in the measured window.
const SAMPLES_MIN: usize = 20;
/// A steady run has delivered more than this share of what it was offered.
const SHARE_MIN: f64 = 0.9;
/// More retransmissions than this share of all bytes sent are warned of.
const RETRANSMITTED_MAX: f64 = 0.2;
/// Ports of a deadlock that a warning names at most; the summary names all.
const PORTS_SHOWN: usize = 16;
const POISSON: Process = Process::Poisson;
/// Means of neighbouring batches that are more alike than this make an interval too narrow: two
/// standard errors of the correlation of independent ones.
fn correlation_max() -> f64 {
    2.0 / (BATCHES as f64).sqrt()
}

/// Results of a run from which warnings are derived.
pub(crate) struct Facts<'a> {
    pub(crate) flows: &'a FlowCounts,
    pub(crate) deadlocks: &'a [DeadlockReport],
    pub(crate) warmup: &'a WarmUpReport,
    pub(crate) slowdown: &'a BTreeMap<&'static str, Slowdown>,
    /// The flows that are counted, in the order of arrival.
    pub(crate) counted: &'a [&'a Kept],
    /// The process of the arrivals; that of bursts in runs with outages.
    pub(crate) process: Process,
    pub(crate) has_outages: bool,
    /// True if `drain` ended the run.
    pub(crate) is_cut_off: bool,
    pub(crate) delivered_share: Option<f64>,
    /// Samples of links in the measured window; `None` where nothing is sampled or counted.
    pub(crate) samples: Option<usize>,
    /// Payload that senders put on their links, and what of it they had sent before.
    pub(crate) sent_bytes: u64,
    pub(crate) retransmitted_bytes: u64,
    /// The longest ideal of flows that did not end, and the time for which the run waited for them.
    pub(crate) unfinished_ideal_ps: u64,
    pub(crate) drain: Span,
}

/// The warnings of a run, each a sentence.
pub(crate) fn of(facts: &Facts<'_>) -> Vec<String> {
    let Facts { flows, warmup, process, .. } = *facts;
    let mut warnings = Vec::new();
    let FlowCounts { submitted, delivered, failed, rejected, unfinished, .. } = *flows;
    if submitted == 0 && flows.not_started == 0 {
        warnings
            .push("no flow was submitted: the workload ends before its first arrival".to_owned());
    }
    if delivered < submitted {
        warnings.push(format!(
            "{} of {submitted} flows were not delivered ({failed} failed, {rejected} rejected, \
             {unfinished} unfinished); slowdown is that of the others",
            submitted - delivered
        ));
    }
    for DeadlockReport { since_ps, ports } in facts.deadlocks {
        let first: Vec<&str> = ports.iter().take(PORTS_SHOWN).map(String::as_str).collect();
        let more = if ports.len() > PORTS_SHOWN { ", ..." } else { "" };
        warnings.push(format!(
            "deadlock by priority flow control: since {:.3} us {} ports have paused one another in \
             a circle ({}{more}), and send no data any more",
            *since_ps as f64 * 1e-6,
            ports.len(),
            first.join(", ")
        ));
    }
    let drain = seconds(facts.drain);
    if facts.unfinished_ideal_ps > facts.drain.as_ps() {
        warnings.push(format!(
            "a flow that did not end needs {} s at least, and run.drain-us ends the run {drain} s \
             after the last arrival",
            seconds(Span::from_ps(facts.unfinished_ideal_ps)),
        ));
    } else if unfinished > 0 && facts.is_cut_off {
        warnings.push(format!(
            "run.drain-us ended the run {drain} s after the last arrival; delivered_bytes in \
             flows.parquet is the progress of unfinished flows"
        ));
    }
    if flows.not_started > 0 {
        warnings.push(format!(
            "{} flows never started: those that they wait for were not delivered",
            flows.not_started
        ));
    }
    let retransmitted = facts.retransmitted_bytes as f64 / facts.sent_bytes.max(1) as f64;
    if retransmitted > RETRANSMITTED_MAX {
        warnings.push(format!(
            "{:.0} % of the payload that hosts sent had been sent before (retransmitted_bytes in \
             flows.parquet)",
            100.0 * retransmitted
        ));
    }
    if !warmup.is_found {
        warnings.push(format!(
            "the run is too short for its warm-up: MSER-5 would leave out more than half of the \
             {submitted} flows; simulate more flows"
        ));
    }
    if let Some(n) = facts.samples.filter(|&n| n < SAMPLES_MIN) {
        warnings.push(format!(
            "the measured window holds {n} samples, fewer than {SAMPLES_MIN}: utilisation is \
             interpolated between samples; lower run.sample-us, or simulate more flows"
        ));
    }
    if process == Process::Bursts {
        if facts.slowdown["delivered"].overall.is_some() {
            let reason = match facts.has_outages {
                true => "links or nodes fail during the run",
                false => "flows come in bursts or wait for others",
            };
            warnings.push(format!(
                "{reason}, so the run is one sample and has no confidence intervals; simulate \
                 several seeds"
            ));
        }
        return warnings;
    }
    if let Some(share) = facts.delivered_share.filter(|&s| s < SHARE_MIN && process == POISSON) {
        warnings.push(format!(
            "when arrivals stopped, {:.0} % of the packets offered had been delivered: the run is \
             short beside its longest flows, or the load is more than the network carries; \
             simulate more flows",
            100.0 * share
        ));
    }
    warnings.extend(of_interval(facts));
    warnings
}

/// Warnings of the interval of the mean slowdown.
fn of_interval(facts: &Facts<'_>) -> Vec<String> {
    let Some(overall) = facts.slowdown["delivered"].overall else { return vec![] };
    let mut warnings = Vec::new();
    let Some(half) = overall.mean_ci else {
        warnings.push(format!(
            "too few flows for a confidence interval: {} are counted, {} are needed",
            overall.count,
            BATCHES * 5
        ));
        return warnings;
    };
    if half > WIDE * overall.mean {
        warnings.push(format!(
            "the mean slowdown is known to {:.0} % only; simulate more flows, or more seeds",
            100.0 * half / overall.mean
        ));
    }
    let slowdowns = facts.counted.iter().filter_map(|k| k.slowdown(Ideal::Delivered));
    let series: Vec<f64> = slowdowns.collect();
    if correlation_of_batches(&series).is_some_and(|c| c > correlation_max()) {
        warnings.push(
            "neighbouring batches of flows are alike, so the intervals are too narrow; simulate \
             more flows, or more seeds"
                .to_owned(),
        );
    }
    warnings
}
