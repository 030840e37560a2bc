//! The simulation of flows over one transport, whose type is fixed here.

pub(crate) mod clock;
pub(crate) mod ideal;
pub(crate) mod progress;
pub(crate) mod status;

use std::sync::Arc;

use rampmeter_sim::fabric::PortId;
use rampmeter_sim::{Probe, Sim, SimSpec, Source, Status, WatchedTransport, WindowTotals};
use rampmeter_types::Transport;

use crate::record::Recorder;
use crate::record::observers::{ObserverProbe, RunObservers};
use crate::record::partition::RunProbe;
use crate::traffic::source::PlanSource;
use clock::ProgressTimer;
use progress::{Observer, Progress};
use rampmeter_types::Segmentation;
use status::{CompletedRun, RunStatus, ThreadCount, Threads};

/// Reads of the clock that a divided run saves: it is reunited for each.
const DIVIDED_BUDGET: u64 = 8;

/// Events after which a run is divided if the plan has no number of threads.
const WHOLE_EVENTS: u64 = 1 << 22;

/// Input of a simulation: network, flows, and observers.
pub(crate) struct SimulationTask<'a> {
    /// The network and its faults.
    pub(crate) sim: &'a SimSpec,
    pub(crate) segmentation: Segmentation,
    /// Total number of flows of the run, if it is determined.
    pub(crate) total_flows: Option<u64>,
    pub(crate) source: &'a mut PlanSource,
    pub(crate) recorder: &'a mut Recorder,
    /// Present in runs whose packets are captured, shown in a timeline, or counted by path.
    pub(crate) observed: Option<&'a mut RunObservers>,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) threads: ThreadCount,
}

/// The configurations of one transport in a network.
pub(crate) struct Configs<C> {
    /// The configuration of arbiters and of all hosts without one in `by_host`.
    pub(crate) network: Arc<C>,
    /// Configurations of single hosts, by number; may be shorter than the number of hosts.
    pub(crate) by_host: Vec<Option<Arc<C>>>,
}

/// Runs the task's flows through transport `F`.
///
/// Unit tests compile no simulators, which would take minutes: tests that run one are in `tests`.
pub(crate) fn simulate_transport<F: Transport>(
    task: SimulationTask<'_>,
    configs: &Configs<F::Config>,
) -> CompletedRun {
    if cfg!(test) {
        unreachable!("a unit test runs a simulation");
    }
    let SimulationTask {
        sim,
        total_flows: total,
        source,
        recorder,
        observed,
        observer,
        threads,
        ..
    } = task;
    let spec = sim.clone();
    let of_host = |host: u32| configs.by_host.get(host as usize).cloned().flatten();
    let config = Arc::clone(&configs.network);
    // Runs without observers must not pay for them: two simulators are compiled.
    match observed {
        Some(observed) => {
            let (ports, causes) = (observed.observes_ports(), observed.records_causes());
            let probe = ObserverProbe { recorder, observed };
            let sim = Sim::<WatchedTransport<F>, _, _>::with_host_configs(
                spec, config, of_host, source, probe,
            );
            let sim = sim.with_observers(ports, causes);
            let why = (threads.count > 1).then_some("packets are observed");
            drive(total, sim, observer, Threads::single(why), Sim::run)
        }
        None => {
            let probe = RunProbe::Run(recorder);
            let sim = Sim::<F, _, _>::with_host_configs(spec, config, of_host, source, probe);
            if threads.count == 1 {
                return drive(total, sim, observer, Threads::single(None), Sim::run);
            }
            match sim.division(threads.count, threads.count) {
                Err(why) => drive(total, sim, observer, Threads::single(Some(why)), Sim::run),
                Ok(division) => {
                    let whole = if threads.is_explicit { 0 } else { WHOLE_EVENTS };
                    let count = division.n_partitions();
                    let threads = Threads { count, ..Threads::single(None) };
                    drive(total, sim, observer, threads, |sim, budget| {
                        match sim.counters().events < whole {
                            true => sim.run(budget),
                            false => sim.run_divided(&division, budget * DIVIDED_BUDGET),
                        }
                    })
                }
            }
        }
    }
}

/// Runs a simulation with `run`, which gets a number of events, and reports its progress.
fn drive<F: Transport, A: Source, P: Probe>(
    total: Option<u64>,
    mut sim: Sim<F, A, P>,
    observer: &mut dyn Observer,
    threads: Threads,
    run: impl Fn(&mut Sim<F, A, P>, u64) -> Status,
) -> CompletedRun {
    let mut pace = ProgressTimer::new();
    let mut is_overrun = false;
    let status = loop {
        match run(&mut sim, F::EVENTS_PER_CLOCK_READ) {
            Status::Finished => break RunStatus::Finished,
            Status::TimedOut => break RunStatus::TimedOut,
            Status::Overrun => {
                is_overrun = true;
                break RunStatus::Interrupted;
            }
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
    let fabric = sim.fabric();
    let deadlocks = match status {
        RunStatus::Interrupted => fabric.find_deadlocks(sim.now()),
        _ => fabric.deadlocks().to_vec(),
    };
    let ends = |&port: &u32| {
        let PortId { from, to, .. } = fabric.port(port);
        (from, to)
    };
    let deadlocks = deadlocks.iter().map(|d| (d.since, d.ports.iter().map(ends).collect()));
    let WindowTotals { windows, work, span } = sim.windows();
    let ran = CompletedRun {
        is_overrun,
        threads: Threads { windows, work_events: work, span_events: span, ..threads },
        hops: sim.fabric().stats().hops,
        tiers: sim.fabric().tier_stats(),
        pfc: sim.fabric().pfc_stats().map(<[_]>::to_vec),
        deadlocks: deadlocks.collect(),
        collisions: sim.fabric().stats().collisions.clone(),
        transport: sim.transport_counters(),
        ..CompletedRun::new(status, *sim.counters(), sim.now())
    };
    sim.into_probe();
    ran
}
