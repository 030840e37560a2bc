//! The simulation of flows over one transport, whose type is fixed here.

pub(crate) mod clock;
pub(crate) mod ideal;
pub(crate) mod progress;
pub(crate) mod status;

use std::sync::Arc;

use rampmeter_core::Transport;
use rampmeter_sim::fabric::PortId;
use rampmeter_sim::{Probe, Sim, SimSpec, Source, Status, WatchedTransport};

use crate::record::Recorder;
use crate::record::observers::{ObserverProbe, RunObservers};
use crate::traffic::segmentation::Segmentation;
use crate::traffic::source::PlanSource;
use clock::ProgressTimer;
use progress::{Observer, Progress};
use status::{CompletedRun, RunStatus};

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
}

/// The configurations of one transport in a network.
pub(crate) struct Configs<C> {
    /// The configuration of arbiters and of all hosts without one in `by_host`.
    pub(crate) network: Arc<C>,
    /// Configurations of single hosts, by number; may be shorter than the number of hosts.
    pub(crate) by_host: Vec<Option<Arc<C>>>,
}

/// Runs the task's flows through transport `F`.
pub(crate) fn simulate_transport<F: Transport>(
    task: SimulationTask<'_>,
    configs: &Configs<F::Config>,
) -> CompletedRun {
    let SimulationTask { sim, total_flows: total, source, recorder, observed, observer, .. } = task;
    let spec = sim.clone();
    let of_host = |host: u32| configs.by_host.get(host as usize).cloned().flatten();
    let config = Arc::clone(&configs.network);
    // Runs without observers must not pay for them: two simulators are compiled.
    match observed {
        Some(observed) => {
            let probe = ObserverProbe { recorder, observed };
            let sim = Sim::<WatchedTransport<F>, _, _>::with_host_configs(
                spec, config, of_host, source, probe,
            );
            drive(total, sim, observer)
        }
        None => {
            let sim = Sim::<F, _, _>::with_host_configs(spec, config, of_host, source, recorder);
            drive(total, sim, observer)
        }
    }
}

fn drive<F: Transport, A: Source, P: Probe>(
    total: Option<u64>,
    mut sim: Sim<F, A, P>,
    observer: &mut dyn Observer,
) -> CompletedRun {
    let mut pace = ProgressTimer::new();
    let status = loop {
        match sim.run(F::EVENTS_PER_CLOCK_READ) {
            Status::Finished => break RunStatus::Finished,
            Status::TimedOut => break RunStatus::Censored,
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
    let ran = CompletedRun {
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
