//! Running a checked plan.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rampmeter_core::{Family, Purpose, Queueing, Rng, Span, Time};
use rampmeter_metrics::FlowWriter;
use rampmeter_metrics::series::{write_counters, write_tenants, write_tiers};
use rampmeter_sim::{Arrival, Probe, Sim, Status};
use rampmeter_workload::Flow;

use crate::capture::{Capture, Capturing};
use crate::check::ValidPlan;
use crate::error::{RunError, io};
use crate::manifest::{COMMIT, Manifest, PROFILE, VERSION};
use crate::pace::{Pace, wall_clock};
use crate::plan::DeadlinesSpec;
use crate::record::{Ideals, Recorder, ideals};
use crate::summary::{Outcome, RunStatus, Summary};

/// Events between two looks at the clock.
const BATCH: u64 = 1 << 18;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Flows submitted.
    pub submitted: u64,
    /// Flows delivered.
    pub delivered: u64,
    /// Flows that there will be, where that is known.
    pub total: Option<u64>,
    /// Simulated time.
    pub now: Time,
    /// Packets put on links.
    pub hops: u64,
    /// Events.
    pub events: u64,
}

/// Somebody who watches a run and may stop it.
pub trait Observer {
    /// Hears of progress; answers whether to go on.
    fn on_progress(&mut self, progress: &Progress) -> bool;
}

/// Watches nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on_progress(&mut self, _progress: &Progress) -> bool {
        true
    }
}

/// Runs `plan` and writes to the folder `out`: `flows.parquet`, `series.parquet`,
/// `queues.parquet`, `tenants.parquet` where there are several, `transport.parquet` where the
/// transport counts anything and queues are sampled, the capture where the plan asks for one,
/// `summary.json`, `manifest.json`, the last one last. A run that is stopped keeps what it has.
///
/// # Errors
/// If results cannot be written.
pub fn run(plan: &ValidPlan, out: &Path, observer: &mut dyn Observer) -> Result<Summary, RunError> {
    clear(out)?;
    let writer = FlowWriter::create(&out.join("flows.parquet"))?;
    let mut recorder = recorder(plan, Some(writer));
    recorder.capture = Capture::create(plan, out)?;
    let started = wall_clock();
    let ran = simulate(plan, &mut recorder, observer);
    publish(plan, recorder, &ran, started.elapsed(), out)
}

/// Makes the folder, and removes from it what would speak for results that are still to come.
pub(crate) fn clear(out: &Path) -> Result<(), RunError> {
    fs::create_dir_all(out).map_err(|source| io(out, source))?;
    // A manifest says that a folder is complete; an old one must not speak for new files.
    for old in ["manifest.json", "tenants.parquet", "transport.parquet"] {
        let old = out.join(old);
        match fs::remove_file(&old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(&old, e)),
            _ => {}
        }
    }
    Ok(())
}

/// Completes the tables, and writes summary and manifest.
pub(crate) fn publish(
    plan: &ValidPlan,
    mut recorder: Recorder,
    ran: &Ran,
    wall: Duration,
    out: &Path,
) -> Result<Summary, RunError> {
    let metadata = metadata(plan);
    recorder.finish(&metadata)?;
    write_tiers(&out.join("series.parquet"), &recorder.series, &metadata)?;
    if !recorder.tenants.is_empty() {
        write_tenants(&out.join("tenants.parquet"), &recorder.tenants, &metadata)?;
    }
    if !recorder.transport.is_empty() {
        write_counters(&out.join("transport.parquet"), &recorder.transport, &metadata)?;
    }
    recorder.queues.write(&out.join("queues.parquet"), &metadata)?;
    let capture = recorder.capture.take().map(Capture::finish).transpose()?;
    let manifest_text = |summary: &Summary| {
        serde_json::to_string_pretty(&Manifest {
            plan: plan.plan(),
            seed: plan.plan().seed,
            version: VERSION,
            commit: COMMIT,
            profile: PROFILE,
            status: summary.status,
            flows: summary.flows.submitted,
            packet_hops: summary.counters.packet_hops,
            events: summary.counters.events,
            simulated_ps: summary.counters.end_ps,
            wall_seconds: wall.as_secs_f64(),
            queueing: match plan.plan().transport.queueing() {
                Queueing::Classes => "classes",
                Queueing::Ranks => "ranks",
            },
            derived: plan.derived(),
            capture: capture.clone(),
        })
        .unwrap_or_default()
    };
    let summary = Summary::of(ran.outcome(plan), &mut recorder, &plan.plan().measure);
    write(&out.join("summary.json"), &summary.to_json())?;
    write(&out.join("manifest.json"), &manifest_text(&summary))?;
    Ok(summary)
}

/// A run that is over.
pub(crate) struct Ran {
    pub(crate) status: RunStatus,
    pub(crate) counters: rampmeter_sim::Counters,
    pub(crate) hops: u64,
    pub(crate) end: Time,
    pub(crate) tiers: Vec<rampmeter_sim::fabric::TierStats>,
    /// What endpoints have counted, all together.
    pub(crate) transport: Vec<(&'static str, u64)>,
    /// Packets of all flows submitted.
    pub(crate) offered_packets: u64,
}

impl Ran {
    fn outcome(&self, plan: &ValidPlan) -> Outcome<'_> {
        let wire = plan.cut.payload + plan.cut.header;
        let packet = plan.facts.access_rate.tx_time(wire).as_ps();
        let bdp_packets = plan.facts.data_rtt.as_ps().div_ceil(packet);
        Outcome {
            status: self.status,
            counters: &self.counters,
            packet_hops: self.hops,
            end_ps: self.end.as_ps(),
            tiers: self.tiers.clone(),
            transport: self.transport.iter().copied().collect(),
            offered_packets: self.offered_packets,
            bdp_bytes: bdp_packets * plan.cut.payload.get(),
        }
    }
}

pub(crate) fn recorder(plan: &ValidPlan, writer: Option<FlowWriter>) -> Recorder {
    Recorder::new(ideals(plan), writer)
}

/// Runs the flows of the plan through its transport, whose type is found here, once.
pub(crate) fn simulate(
    plan: &ValidPlan,
    recorder: &mut Recorder,
    observer: &mut dyn Observer,
) -> Ran {
    let offered_packets = Cell::new(0);
    let mut deadlines = Deadlines::new(plan);
    let arrivals = plan.workload.flows(plan.plan().seed).map(|flow| {
        offered_packets.set(offered_packets.get() + flow.size.packets_ceil(plan.cut.payload));
        let deadline = deadlines.draw(&flow);
        let Flow { arrival: at, src, dst, size, tenant } = flow;
        Arrival { at, src, dst, size, deadline, tenant }
    });
    let mut arrivals = arrivals;
    let ran = plan.transport.ready.simulate(plan, &mut arrivals, recorder, observer);
    Ran { offered_packets: offered_packets.get(), ..ran }
}

/// Runs the flows of the plan through family `F`.
pub(crate) fn simulate_family<F: Family>(
    plan: &ValidPlan,
    config: Arc<F::Config>,
    arrivals: &mut dyn Iterator<Item = Arrival>,
    recorder: &mut Recorder,
    observer: &mut dyn Observer,
) -> Ran {
    let spec = plan.sim.clone();
    // Where nothing is captured, nothing may be spent on it: two simulators are compiled.
    if recorder.capture.is_some() {
        drive(plan, Sim::<F, _, _>::new(spec, config, arrivals, Capturing(recorder)), observer)
    } else {
        drive(plan, Sim::<F, _, _>::new(spec, config, arrivals, recorder), observer)
    }
}

fn drive<F: Family, A: Iterator<Item = Arrival>, P: Probe>(
    plan: &ValidPlan,
    mut sim: Sim<F, A, P>,
    observer: &mut dyn Observer,
) -> Ran {
    let total = plan.workload.total_flows();
    let mut pace = Pace::new();
    let status = loop {
        match sim.run(BATCH) {
            Status::Finished => break RunStatus::Finished,
            Status::Censored => break RunStatus::Censored,
            Status::Running => {}
        }
        if !pace.is_due() {
            continue;
        }
        let counters = sim.counters();
        let progress = Progress {
            submitted: counters.submitted,
            delivered: counters.delivered,
            total,
            now: sim.now(),
            hops: sim.fabric().stats().hops,
            events: counters.events,
        };
        if !observer.on_progress(&progress) {
            break RunStatus::Interrupted;
        }
    };
    let ran = Ran {
        status,
        counters: *sim.counters(),
        hops: sim.fabric().stats().hops,
        end: sim.now(),
        tiers: sim.fabric().tier_stats(),
        transport: sim.transport_counters(),
        offered_packets: 0,
    };
    sim.into_probe();
    ran
}

/// Draws the deadlines of flows (pHost §4.1).
struct Deadlines {
    law: Option<(DeadlinesSpec, Rng, Ideals)>,
}

impl Deadlines {
    fn new(plan: &ValidPlan) -> Self {
        let rng = || Rng::new(plan.plan().seed, 0, Purpose::Deadline);
        Self { law: plan.deadlines.clone().map(|spec| (spec, rng(), ideals(plan))) }
    }

    /// When the application needs `flow`.
    fn draw(&mut self, flow: &Flow) -> Time {
        let Some((spec, rng, ideals)) = &mut self.law else { return Time::NEVER };
        let [ideal, ..] = ideals.of(flow.src, flow.dst, flow.size);
        let drawn = spec.mean_us * 1e6 * rng.exponential();
        let least = spec.at_least_ideals * ideal.as_ps() as f64;
        flow.arrival.saturating_add(Span::from_ps(drawn.max(least).round() as u64))
    }
}

fn metadata(plan: &ValidPlan) -> Vec<(String, String)> {
    let entries = [
        ("rampmeter.version", VERSION.to_owned()),
        ("rampmeter.commit", COMMIT.to_owned()),
        ("rampmeter.seed", plan.plan().seed.to_string()),
        ("rampmeter.plan", plan.plan().to_toml()),
    ];
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Writes a whole file or none.
fn write(file: &Path, text: &str) -> Result<(), RunError> {
    let partial = file.with_extension("json.partial");
    fs::write(&partial, text).map_err(|source| io(&partial, source))?;
    fs::rename(&partial, file).map_err(|source| io(file, source))
}
