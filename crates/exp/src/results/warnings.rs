//! Warnings to the reader of a run's numbers.

use std::collections::BTreeMap;

use rampmeter_metrics::Ideal;
use rampmeter_metrics::confidence::{BATCHES, correlation_of_batches};
use rampmeter_types::Span;
use rampmeter_workload::Process;

use super::outcome::RunOutput;
use super::report::{DeadlockReport, FlowCounts, Slowdown};
use super::window::WarmUpReport;
use crate::plan::offered::seconds;
use crate::record::{FlowSample, Recorder};
use crate::simulation::status::RunStatus;
use crate::warning::{NamedCount, Warning, warning};

/// Half of a confidence interval, relative to its mean, above which a warning is given.
const WIDE: f64 = 0.1;
/// Fewest samples of links in the measured window.
const SAMPLES_MIN: usize = 20;
/// Minimum share of the offered bytes that a steady run delivers.
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
pub(crate) struct RunFacts<'a> {
    pub(crate) outcome: &'a RunOutput<'a>,
    pub(crate) recorder: &'a Recorder,
    pub(crate) flows: &'a FlowCounts,
    pub(crate) warmup: &'a WarmUpReport,
    pub(crate) slowdown: &'a BTreeMap<&'static str, Slowdown>,
    /// The flows that are counted, in the order of arrival.
    pub(crate) counted: &'a [&'a FlowSample],
    /// The process of the arrivals; that of bursts in runs with outages or changes of links.
    pub(crate) process: Process,
    pub(crate) delivered_share: Option<f64>,
    /// Samples of links in the measured window; `None` if nothing is sampled or counted.
    pub(crate) samples: Option<usize>,
}

/// Returns the warnings of a run: those of its plan, of its tables, and of its results.
pub(crate) fn run_warnings(facts: &RunFacts<'_>) -> Vec<Warning> {
    let mut warnings = facts.outcome.warnings.clone();
    warnings.extend_from_slice(&facts.recorder.warnings);
    warnings.extend(of_results(facts));
    warnings
}

fn of_results(facts: &RunFacts<'_>) -> Vec<Warning> {
    let RunFacts { flows, warmup, process, .. } = *facts;
    let mut warnings = Vec::new();
    of_delivery(facts, &mut warnings);
    of_end(facts, &mut warnings);
    if !warmup.is_found {
        warnings.push(warning!(
            "short-warm-up",
            "measure.warmup-flows: the run is too short for mser-5, which would exclude more than \
             half of its {flows} flows; simulate more flows",
            flows = flows.submitted,
        ));
    }
    if let Some(n) = facts.samples.filter(|&n| n < SAMPLES_MIN) {
        warnings.push(warning!(
            "few-samples",
            "run.sample-us: the measured window has {samples}, fewer than {samples_min}, and \
             utilisation is interpolated between them; lower it, or simulate more flows",
            samples = NamedCount(n as u64, "sample"),
            samples_min = SAMPLES_MIN,
        ));
    }
    if let Some(reason) = not_stationary(facts) {
        if warmup.rule == "mser-5" {
            warnings.push(warning!(
                "warm-up-of-changing-load",
                "measure.warmup-flows: {reason}, and mser-5 is a rule for stationary processes: \
                 the {flows} first flows that it excludes may be of another load",
                reason = reason,
                flows = warmup.flows,
            ));
        }
        if facts.slowdown["delivered"].overall.is_some() {
            warnings.push(warning!(
                "one-sample",
                "workload: {reason}, so the run is one sample and has no confidence intervals; \
                 simulate several seeds",
                reason = reason,
            ));
        }
        return warnings;
    }
    if let Some(share) = facts.delivered_share.filter(|&s| s < SHARE_MIN && process == POISSON) {
        warnings.push(warning!(
            "short-run",
            "workload: when arrivals stopped, {delivered_percent:.0} % of the packets offered had \
             been delivered: the run is too short for its longest flows, or the load exceeds the \
             capacity of the network; simulate more flows",
            delivered_percent = 100.0 * share,
        ));
    }
    of_interval(facts, &mut warnings);
    warnings
}

/// Adds the warnings of flows that were not delivered, and of deadlocks.
fn of_delivery(facts: &RunFacts<'_>, warnings: &mut Vec<Warning>) {
    let FlowCounts { submitted, delivered, failed, rejected, unfinished, not_started, .. } =
        *facts.flows;
    if submitted == 0 && not_started == 0 {
        warnings.push(warning!(
            "no-flows",
            "workload: no flow was submitted, as it ends before its first arrival",
        ));
    }
    if delivered < submitted {
        let missing = submitted - delivered;
        warnings.push(warning!(
            "not-delivered",
            "{missing} of {flows} {were} not delivered ({failed} failed, {rejected} rejected, \
             {unfinished} unfinished); slowdown is that of the others",
            missing = missing,
            flows = NamedCount(submitted, "flow"),
            failed = failed,
            rejected = rejected,
            unfinished = unfinished;
            were = if missing == 1 { "was" } else { "were" },
        ));
    }
    for DeadlockReport { since_ps, ports } in &facts.outcome.deadlocks {
        let first: Vec<&str> = ports.iter().take(PORTS_SHOWN).map(String::as_str).collect();
        warnings.push(warning!(
            "deadlock",
            "fabric.pfc: deadlock: since {since_us:.3} us {ports} ports have paused \
             one another in a circle ({circle}{more}), and have sent no data since",
            since_us = *since_ps as f64 * 1e-6,
            ports = ports.len(),
            circle = first.join(", ");
            more = if ports.len() > PORTS_SHOWN { ", ..." } else { "" },
        ));
    }
}

/// Adds the warnings of flows that the end of the run cut off, and of retransmissions.
fn of_end(facts: &RunFacts<'_>, warnings: &mut Vec<Warning>) {
    let flows = facts.flows;
    let drain = seconds(facts.outcome.drain);
    // If the run is too short for a flow of the plan, its check has already warned of this.
    let unfinished_ideal_ps = match facts.outcome.has_short_drain {
        true => 0,
        false => facts.recorder.unfinished_ideal_ps,
    };
    if unfinished_ideal_ps > facts.outcome.drain.as_ps() {
        warnings.push(warning!(
            "drain-below-ideal",
            "run.drain-us: ends the run {drain_s} s after the last arrival, and an unfinished flow \
             needs at least {ideal_s} s",
            ideal_s = seconds(Span::from_ps(unfinished_ideal_ps)),
            drain_s = drain,
        ));
    } else if flows.unfinished > 0 && facts.outcome.status == RunStatus::TimedOut {
        warnings.push(warning!(
            "cut-off-by-drain",
            "run.drain-us: ended the run {drain_s} s after the last arrival; delivered_bytes in \
             flows.parquet is the progress of unfinished flows",
            drain_s = drain,
        ));
    }
    if flows.not_started > 0 {
        warnings.push(warning!(
            "not-started",
            "{flows} never started: {cause} not delivered",
            flows = NamedCount(flows.not_started, "flow");
            cause = match flows.not_started {
                1 => "one that it waits for was",
                _ => "those that they wait for were",
            },
        ));
    }
    let retransmitted =
        facts.recorder.retransmitted_bytes as f64 / facts.recorder.sent_bytes.max(1) as f64;
    if retransmitted > RETRANSMITTED_MAX {
        warnings.push(warning!(
            "retransmissions",
            "{retransmitted_percent:.0} % of the payload that hosts sent had been sent before \
             (retransmitted_bytes in flows.parquet)",
            retransmitted_percent = 100.0 * retransmitted,
        ));
    }
}

/// Returns the reason why the flows of a run are not of one stationary process; `None` if they may
/// be.
fn not_stationary(facts: &RunFacts<'_>) -> Option<&'static str> {
    match facts.process {
        Process::Poisson | Process::Trace => None,
        Process::Changing => Some("parts of the workload begin or end at different times"),
        Process::Bursts if facts.outcome.has_outages => {
            Some("links or nodes fail or change during the run")
        }
        Process::Bursts => Some("flows arrive in bursts or wait for others"),
    }
}

/// Adds the warnings of the interval of the mean slowdown.
fn of_interval(facts: &RunFacts<'_>, warnings: &mut Vec<Warning>) {
    let Some(overall) = facts.slowdown["delivered"].overall else { return };
    let Some(half) = overall.mean_ci else {
        warnings.push(warning!(
            "few-flows",
            "workload.flows: {flows} are too few for an interval, which needs {flows_min}",
            flows = overall.count,
            flows_min = BATCHES * 5,
        ));
        return;
    };
    if half > WIDE * overall.mean {
        warnings.push(warning!(
            "wide-interval",
            "workload.flows: the 95 % interval of the mean slowdown is +- {ci_percent:.0} %; \
             simulate more flows, or more seeds",
            ci_percent = 100.0 * half / overall.mean,
        ));
    }
    let slowdowns = facts.counted.iter().filter_map(|k| k.slowdown(Ideal::Delivered));
    let series: Vec<f64> = slowdowns.collect();
    if correlation_of_batches(&series).is_some_and(|c| c > correlation_max()) {
        warnings.push(warning!(
            "correlated-batches",
            "workload.flows: the means of successive batches of flows are correlated, so the \
             intervals are too narrow; simulate more flows, or more seeds",
        ));
    }
}
