//! Publication of results: tables, summary and manifest in a folder.

use std::fs;
use std::path::Path;

use rampmeter_metrics::columns::{Row, write_rows};
use rampmeter_metrics::series::{HostRow, OutageRow};
use rampmeter_sim::{Node, Target};
use rampmeter_types::Time;

use super::Summary;
use super::manifest::Manifest;
use super::outcome::RunOutput;
use super::report::DeadlockReport;
use crate::error::{RunError, io};
use crate::plan::valid::ValidPlan;
use crate::record::Recorder;
use crate::record::observers::RunObservers;
use crate::record::sampling::Samples;
use crate::simulation::clock::ElapsedTime;
use crate::simulation::status::CompletedRun;
use crate::version::{COMMIT, PROFILE, VERSION};

/// Files that not every run writes, and the manifest.
const OPTIONAL: [&str; 14] = [
    "manifest.json",
    "latencies.parquet",
    "tenants.parquet",
    "transport.parquet",
    "links.parquet",
    "drops.parquet",
    "outages.parquet",
    "hosts.parquet",
    "paths.parquet",
    "blame.parquet",
    "blockers.parquet",
    "releases.parquet",
    "rates.parquet",
    "windows.parquet",
];

/// Makes the folder, and removes old files from it that could be taken for the new results.
pub(crate) fn clear(out: &Path) -> Result<(), RunError> {
    fs::create_dir_all(out).map_err(|source| io(out, source))?;
    // A manifest marks a folder as complete; an old one must not do so for new files.
    for old in OPTIONAL {
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
    observed: Option<RunObservers>,
    ran: &CompletedRun,
    elapsed: ElapsedTime,
    out: &Path,
) -> Result<Summary, RunError> {
    let metadata = metadata(plan);
    recorder.finish(&metadata)?;
    write_samples(plan, &recorder.samples, out, &metadata)?;
    write_some(&out.join("releases.parquet"), &ran.release_rows, &metadata)?;
    let (data, control) = (&recorder.data_latency, &recorder.control_latency);
    let latencies: Vec<_> = data.rows("data").chain(control.rows("control")).collect();
    write_some(&out.join("latencies.parquet"), &latencies, &metadata)?;
    let observed = observed.map(|o| o.finish(ran.end, out, &metadata)).transpose()?;
    let observed = observed.unwrap_or_default();
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
            wall_seconds: elapsed.wall.as_secs_f64(),
            cpu_seconds: elapsed.cpu_seconds,
            threads: ran.threads,
            queueing: plan.plan().transport.queueing().name(),
            derived: plan.derived(),
            observed: observed.clone(),
        })
        .expect("every field is a number, a text or a container of those")
    };
    let summary = Summary::new(outcome(plan, ran), recorder, &plan.plan().measure);
    write(&out.join("summary.json"), &summary.to_json())?;
    write(&out.join("manifest.json"), &manifest_text(&summary))?;
    Ok(summary)
}

/// Writes samples. Tables that not every run has are omitted if they would be empty.
fn write_samples(
    plan: &ValidPlan,
    samples: &Samples,
    out: &Path,
    metadata: &[(String, String)],
) -> Result<(), RunError> {
    let file = |name: &str| out.join(name);
    write_rows(&file("series.parquet"), &samples.tiers, metadata)?;
    samples.queues.write(&file("queues.parquet"), metadata)?;
    write_some(&file("tenants.parquet"), &samples.tenants, metadata)?;
    write_some(&file("transport.parquet"), &samples.transport, metadata)?;
    let (mut links, mut drops) = (samples.links.clone(), samples.drops.clone());
    if !plan.names.is_empty() {
        let links = links.iter_mut().flat_map(|row| [&mut row.from, &mut row.to]);
        let drops = drops.iter_mut().flat_map(|row| [&mut row.from, &mut row.to]);
        links.chain(drops).for_each(|node| *node = plan.names.custom_name(node).into());
    }
    write_some(&file("links.parquet"), &links, metadata)?;
    write_some(&file("drops.parquet"), &drops, metadata)?;
    write_some(&file("hosts.parquet"), &hosts(plan), metadata)?;
    write_some(&file("outages.parquet"), &outages(plan), metadata)
}

fn write_some<R: Row>(
    file: &Path,
    rows: &[R],
    metadata: &[(String, String)],
) -> Result<(), RunError> {
    if !rows.is_empty() {
        write_rows(file, rows, metadata)?;
    }
    Ok(())
}

/// Returns the names of hosts; empty if they have none of their own.
fn hosts(plan: &ValidPlan) -> Vec<HostRow> {
    let names = (0..).zip(&plan.names.hosts);
    names.map(|(host, name)| HostRow { host, name: name.clone().into() }).collect()
}

/// Returns the failures, repairs and changes of links of the plan, in order of time.
fn outages(plan: &ValidPlan) -> Vec<OutageRow> {
    let faults = &plan.sim.faults;
    let row = |element: String, at: Time, state: &'static str| OutageRow {
        time_ps: at.as_ps(),
        element: element.into(),
        state: state.into(),
        routed_ps: at.saturating_add(faults.rerouting).as_ps(),
    };
    let mut rows = Vec::new();
    for outage in &faults.outages {
        let element = plan.names.target(&plan.sim.topology, outage.target);
        rows.push(row(element.clone(), outage.from, "down"));
        if outage.until < Time::NEVER {
            rows.push(row(element, outage.until, "up"));
        }
    }
    for change in &faults.changes {
        let element = plan.names.target(&plan.sim.topology, Target::Link(change.link));
        let routed_ps = change.at.as_ps();
        rows.push(OutageRow { routed_ps, ..row(element, change.at, "changed") });
    }
    rows.sort_by_key(|row| row.time_ps);
    rows
}

/// Returns the part of the summary about the run as a whole.
fn outcome<'a>(plan: &'a ValidPlan, ran: &'a CompletedRun) -> RunOutput<'a> {
    let bdp_packets = plan.facts.bdp_packets(plan.segmentation.full_wire_bytes());
    RunOutput {
        status: ran.status,
        counters: &ran.counters,
        packet_hops: ran.hops,
        end_ps: ran.end.as_ps(),
        tiers: ran.tiers.clone(),
        pfc: ran.pfc.as_deref(),
        deadlocks: deadlocks(plan, ran),
        collisions: ran.collisions.as_ref(),
        transport: ran.transport.iter().copied().collect(),
        collectives: ran.collectives.clone(),
        rpcs: ran.rpcs.clone(),
        offered_packets: ran.offered_packets,
        bdp_bytes: u64::from(bdp_packets) * plan.segmentation.payload.get(),
        warnings: plan.warnings(),
        has_short_drain: plan.short_drain().is_some(),
        process: plan.workload.process(),
        has_outages: plan.sim.faults.has_events(),
        topology: &plan.sim.topology,
        names: &plan.names,
        changes: &plan.sim.faults.changes,
        drain: plan.sim.drain,
    }
}

/// Returns the deadlocks of a run, with the names of their ports.
fn deadlocks(plan: &ValidPlan, ran: &CompletedRun) -> Vec<DeadlockReport> {
    let name =
        |&(from, to): &(Node, Node)| format!("{}>{}", plan.names.node(from), plan.names.node(to));
    let report = |(since, ports): &(Time, Vec<(Node, Node)>)| DeadlockReport {
        since_ps: since.as_ps(),
        ports: ports.iter().map(name).collect(),
    };
    ran.deadlocks.iter().map(report).collect()
}

/// Returns the metadata of all tables of a run, with the names of hosts, in their order, if they
/// have any.
fn metadata(plan: &ValidPlan) -> Vec<(String, String)> {
    let hosts = &plan.names.hosts;
    let names =
        (!hosts.is_empty()).then(|| ("rampmeter.hosts", serde_json::json!(hosts).to_string()));
    let entries = [
        ("rampmeter.version", VERSION.to_owned()),
        ("rampmeter.commit", COMMIT.to_owned()),
        ("rampmeter.seed", plan.plan().seed.to_string()),
        ("rampmeter.plan", plan.plan().to_toml()),
    ];
    entries.into_iter().chain(names).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Writes a whole file or none.
fn write(file: &Path, text: &str) -> Result<(), RunError> {
    let partial = file.with_extension("json.partial");
    fs::write(&partial, text).map_err(|source| io(&partial, source))?;
    fs::rename(&partial, file).map_err(|source| io(file, source))
}
