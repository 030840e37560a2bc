//! Running a checked plan.

pub(crate) mod bench;
pub(crate) mod invariant;
pub(crate) mod testbed;

use std::path::Path;

use rampmeter_metrics::FlowWriter;

use crate::error::RunError;
use crate::plan::valid::ValidPlan;
use crate::record::Recorder;
use crate::record::bounded_table::BoundedTable;
use crate::record::observers::{ObserverSpec, RunObservers};
use crate::record::rates::Rates;
use crate::results::Summary;
use crate::results::publish::{clear, publish};
use crate::simulation::SimulationTask;
use crate::simulation::clock::Stopwatch;
use crate::simulation::progress::Observer;
use crate::simulation::status::{CompletedRun, ThreadCount, Threads};
use crate::traffic::deadlines::Deadlines;
use crate::traffic::ideals::Ideals;
use crate::traffic::source::PlanSource;

/// Runs `plan` and writes to the folder `out`. Every run has `flows.parquet`, `series.parquet` and
/// `queues.parquet`. There are `latencies.parquet`, `tenants.parquet`, `transport.parquet`,
/// `links.parquet`, `drops.parquet`, `hosts.parquet` and `outages.parquet` if they have rows.
/// Capture, timeline, `paths.parquet`, and `blame.parquet`, `blockers.parquet` and
/// `releases.parquet` are written if the plan requests them. `summary.json` follows, and last
/// `manifest.json`. A run that is stopped keeps its results so far.
///
/// # Errors
/// If results cannot be written.
pub fn run(plan: &ValidPlan, out: &Path, observer: &mut dyn Observer) -> Result<Summary, RunError> {
    clear(out)?;
    let mut recorder = file_recorder(plan, out)?;
    let requested = ObserverSpec {
        capture: plan.capture.as_ref().zip(plan.transport.wire()),
        timeline: plan.timeline.as_ref(),
        has_paths: plan.plan().run.paths,
        has_blame: plan.plan().run.blame && plan.transport.ready.has_packets(),
        sim: &plan.sim,
        names: &plan.names,
        segmentation: plan.segmentation,
    };
    let mut observed = RunObservers::start(&requested, out)?;
    let watch = Stopwatch::start();
    let mut ran = simulate(plan, &mut recorder, observed.as_mut(), observer, plan.threads);
    if ran.is_overrun {
        recorder = file_recorder(plan, out)?;
        ran = simulate(plan, &mut recorder, None, observer, ThreadCount::ONE);
        ran.threads = Threads::single(Some("the last flow failed"));
    }
    publish(plan, recorder, observed, &ran, watch.elapsed(ran.threads.count), out)
}

/// Returns a recorder that writes flows, and rates if the plan requests them, to files in `out`.
fn file_recorder(plan: &ValidPlan, out: &Path) -> Result<Recorder, RunError> {
    let writer = FlowWriter::create(&out.join("flows.parquet"))?;
    let mut recorder = recorder(plan, Some(writer));
    if let Some(interval) = plan.rates {
        recorder.rates = Some(Rates::create(out.join("rates.parquet"), interval)?);
        recorder.windows = Some(BoundedTable::new(out.join("windows.parquet")));
    }
    Ok(recorder)
}

pub(crate) fn recorder(plan: &ValidPlan, writer: Option<FlowWriter>) -> Recorder {
    let finished_before = plan.plan().measure.completed_before_flow;
    let ideals = plan.segmentations.iter().map(|&one| Ideals::new(&plan.sim, one)).collect();
    Recorder::new(ideals, writer, plan.plan().run.links, finished_before)
}

/// Runs the flows of the plan through its transport, whose type is found here, once.
pub(crate) fn simulate(
    plan: &ValidPlan,
    recorder: &mut Recorder,
    observed: Option<&mut RunObservers>,
    observer: &mut dyn Observer,
    threads: ThreadCount,
) -> CompletedRun {
    let seed = plan.plan().seed;
    let ideals = || Ideals::new(&plan.sim, plan.segmentation);
    let deadlines = Deadlines::new(plan.deadlines.clone(), seed, ideals);
    let mut source = PlanSource::new(&plan.workload, seed, &plan.segmentations, deadlines);
    if plan.plan().run.blame {
        source.keep_causes();
    }
    let ran = plan.transport.ready.simulate(SimulationTask {
        sim: &plan.sim,
        segmentation: plan.segmentation,
        total_flows: plan.workload.total_flows(),
        source: &mut source,
        recorder,
        observed,
        observer,
        threads,
    });
    let mut ideals = ideals();
    let (collectives, rpcs) = (source.collectives(&mut ideals), source.rpcs(&mut ideals));
    let PlanSource { offered_packets, release_rows, .. } = source;
    CompletedRun { offered_packets, collectives, rpcs, release_rows, ..ran }
}
