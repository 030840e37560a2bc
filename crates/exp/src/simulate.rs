//! The simulation of flows over one transport, whose type is known here.

use std::sync::Arc;

use rampmeter_core::{FabricFacts, Family};
use rampmeter_sim::{Probe, Sim, SimSpec, Source, Status, Watched};

use crate::cut::Cut;
use crate::observe::{Observed, Observing};
use crate::pace::Pace;
use crate::progress::{Observer, Progress};
use crate::ran::{Ran, RunStatus};
use crate::record::Recorder;
use crate::source::PlanSource;

/// What a transport is given to simulate, and who observes it.
pub(crate) struct Task<'a> {
    /// The network and its faults.
    pub(crate) sim: &'a SimSpec,
    pub(crate) facts: &'a FabricFacts,
    pub(crate) cut: Cut,
    /// Flows that there will be, where that is known.
    pub(crate) total_flows: Option<u64>,
    pub(crate) source: &'a mut PlanSource,
    pub(crate) recorder: &'a mut Recorder,
    /// Only of runs whose packets are captured, or shown in a timeline, or counted by path.
    pub(crate) observed: Option<&'a mut Observed>,
    pub(crate) observer: &'a mut dyn Observer,
}

/// Runs the task's flows through family `F`.
pub(crate) fn simulate_family<F: Family>(task: Task<'_>, config: Arc<F::Config>) -> Ran {
    let Task { sim, total_flows: total, source, recorder, observed, observer, .. } = task;
    let spec = sim.clone();
    // Where no packets are looked at, nothing may be spent on it: two simulators are compiled.
    match observed {
        Some(observed) => {
            let probe = Observing { recorder, observed };
            drive(total, Sim::<Watched<F>, _, _>::new(spec, config, source, probe), observer)
        }
        None => drive(total, Sim::<F, _, _>::new(spec, config, source, recorder), observer),
    }
}

fn drive<F: Family, A: Source, P: Probe>(
    total: Option<u64>,
    mut sim: Sim<F, A, P>,
    observer: &mut dyn Observer,
) -> Ran {
    let mut pace = Pace::new();
    let status = loop {
        match sim.run(F::BATCH) {
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
        pfc: sim.fabric().pfc_stats().map(<[_]>::to_vec),
        collisions: sim.fabric().stats().collisions.clone(),
        transport: sim.transport_counters(),
        collectives: vec![],
        offered_packets: 0,
    };
    sim.into_probe();
    ran
}
