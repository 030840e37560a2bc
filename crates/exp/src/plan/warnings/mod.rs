//! Warnings of a plan: likely mistakes, and reasons to doubt the results of its run.

mod assumptions;
mod distances;
mod link_states;
mod links;
mod overload;
mod path_choice;

use rampmeter_proto::registered::Assumptions;
use rampmeter_sim::SimSpec;
use rampmeter_types::Rate;
use rampmeter_types::fabric::Spray;
use rampmeter_workload::ValidWorkload;

use super::network::PlanNetwork;
use super::tables::FaultsSpec;
use super::valid::ValidPlan;
use super::{Plan, by_port};
use crate::record::sampling;
use crate::topology::names::NamesSpec;
use crate::transport::ValidTransport;
use crate::warning::{Warning, warning};
use rampmeter_types::Segmentation;

/// Parts of a plan whose keys have been checked.
pub(super) struct PlanFacts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sim: &'a SimSpec,
    pub(super) network: &'a PlanNetwork,
    pub(super) workload: &'a ValidWorkload,
    /// The rate of hosts that loads are shares of.
    pub(super) load_rate: Rate,
    pub(super) transport: &'a ValidTransport,
    pub(super) segmentations: &'a [Segmentation],
    /// The path choice that the plan names.
    pub(super) spray: Option<Spray>,
    /// A warning if long links need more memory than the transport prefers.
    pub(super) long_links: Option<Warning>,
    /// A warning if ports have more rates than derived tables have entries.
    pub(super) many_rates: Option<Warning>,
}

/// Returns the warnings of a plan, and true if its load is more than the core carries.
pub(super) fn plan_warnings(facts: &PlanFacts<'_>) -> (Vec<Warning>, bool) {
    let &PlanFacts { plan, sim, workload, transport, .. } = facts;
    let mut warnings = Vec::new();
    warnings.extend(facts.network.imported.notes.iter().map(|note| topology_note(note)));
    warnings.extend(workload.warnings().iter().map(|note| workload_note(note)));
    warnings.extend(facts.long_links.clone());
    // Transports without packets take no notice of faults.
    let has_packets = transport.ready.has_packets();
    let states = if has_packets { link_states::states(sim) } else { Vec::new() };
    let is_overloaded = facts.of_load(&states, &mut warnings);
    if has_packets {
        let names = &facts.network.imported.names;
        let each: Vec<_> =
            plan.transport.names().into_iter().zip(transport.ready.each_assumptions()).collect();
        warnings.extend(link_states::increased_rates(sim, names, &each));
    }
    warnings.extend(sampling::many_samples_warning(sim.sample, workload.last_arrival()));
    facts.of_links(&states, &mut warnings);
    warnings.extend(by_port::never_marks_warning(&sim.fabric, &sim.topology));
    warnings.extend(facts.many_rates.clone());
    warnings.extend(plan.transport.foreign_settings(&sim.topology, &facts.network.delays.facts()));
    facts.of_rates(&mut warnings);
    if has_packets {
        facts.of_distances(&mut warnings);
    }
    facts.of_path_choice(&mut warnings);
    facts.of_assumptions(&states, &mut warnings);
    (warnings, is_overloaded)
}

fn topology_note(note: &str) -> Warning {
    warning!("topology-note", "{note}"; note = note)
}

fn workload_note(note: &str) -> Warning {
    warning!("workload-note", "{note}"; note = note)
}

impl PlanFacts<'_> {
    fn names(&self) -> &NamesSpec {
        &self.network.imported.names
    }

    /// Warnings of loads that are too high, and of hosts that faults cut off. Returns true if the
    /// load is more than the network carries without faults.
    fn of_load(&self, states: &[link_states::NetworkState], warnings: &mut Vec<Warning>) -> bool {
        let (topology, workload) = (&self.sim.topology, &self.plan.workload);
        let (names, rate) = (self.names(), self.load_rate);
        let overload = overload::overloaded_core(topology, rate, workload)
            .or_else(|| overload::overloaded_link(topology, names, rate, workload));
        if overload.is_none() {
            let load = workload.uniform_load();
            warnings.extend(link_states::overload_while_down(states, names, rate, load));
        }
        warnings.extend(link_states::hosts_cut_off(states, names));
        let is_overloaded = overload.is_some();
        warnings.extend(overload);
        is_overloaded
    }

    /// Warnings of links of several rates between the same nodes.
    fn of_links(&self, states: &[link_states::NetworkState], warnings: &mut Vec<Warning>) {
        let unequal = links::unequal_links(&self.sim.topology, self.names());
        let is_named = unequal.is_some();
        warnings.extend(unequal);
        if self.transport.ready.has_packets() {
            let uneven = path_choice::uneven_paths(self.sim, states, self.names());
            // A message that keeps its path may have the slow link that is named already.
            let is_new = !(is_named && self.sim.fabric.spray.is_by_flow());
            warnings.extend(uneven.filter(|_| is_new));
            warnings.extend(links::partial_pairs(self.sim));
        }
    }

    /// Warnings of rates: those of slots, and those of control packets.
    fn of_rates(&self, warnings: &mut Vec<Warning>) {
        let (topology, names, name) =
            (&self.sim.topology, self.names(), self.plan.transport.name());
        let slots = self.transport.ready.assumptions().one_rate.then(|| topology.slot_rate());
        if let Some(slots) = slots {
            warnings.extend(assumptions::unequal_rates(topology, slots, name));
            let slowed = assumptions::slowed_links(self.sim, names, slots, name);
            warnings.extend(slowed);
            let unequal = links::unequal_links(topology, names);
            warnings.extend(unequal.map(|_| assumptions::unequal_slots(name)));
        }
        let share = self.plan.transport.reply_share();
        let slow_returns = links::slow_returns(topology, names, name, share, slots);
        warnings.extend(slow_returns);
    }

    /// Warnings of hosts and paths that are farther than others.
    fn of_distances(&self, warnings: &mut Vec<Warning>) {
        let has_one_time = self.transport.ready.assumptions().one_round_trip;
        let sharing = has_one_time.then_some(self.plan.transport.name());
        let longest = self.sim.topology.clone().with_longest_links(&self.sim.faults.changes);
        let (names, header) = (self.names(), self.segmentations[0].header);
        let delays = &self.network.delays;
        warnings.extend(distances::far_hosts(delays, &longest, names, header, sharing));
        warnings.extend(distances::delayed_paths(&longest, names, header));
    }

    /// Warnings of the choice of paths.
    fn of_path_choice(&self, warnings: &mut Vec<Warning>) {
        let (topology, spec, ready) =
            (&self.sim.topology, &self.plan.transport, &self.transport.ready);
        let spread =
            if self.segmentations.len() > 1 { self.spray } else { Some(self.sim.fabric.spray) };
        if let Some(spray) = spread.filter(|_| ready.assumptions().in_order) {
            warnings.extend(path_choice::out_of_order(topology, spray, spec.name()));
        }
        let each = || spec.names().into_iter().zip(ready.each_assumptions());
        let choosers = each().filter(|(_, own)| own.chooses_paths).map(|(name, _)| name);
        if let Some(spray) = self.spray {
            let choosers: Vec<&str> = choosers.collect();
            warnings.extend(path_choice::ignored_path_choice(topology, spray, &choosers));
        }
        // Transports that need the order of packets choose one path a message by themselves.
        let keeps_path = |own: &Assumptions| match spread {
            Some(spray) if spray.is_by_flow() => own.in_order || !own.chooses_paths,
            Some(_) => own.in_order && own.chooses_paths,
            None => own.in_order,
        };
        if ready.has_packets() {
            let keepers = each().filter(|(_, own)| keeps_path(own)).map(|(name, _)| name);
            let keepers: Vec<&str> = keepers.collect();
            warnings.extend(path_choice::single_path(topology, self.names(), &keepers));
        }
    }

    /// Warnings of assumptions of the transport that the network does not meet.
    fn of_assumptions(&self, states: &[link_states::NetworkState], warnings: &mut Vec<Warning>) {
        let (topology, name) = (&self.sim.topology, self.plan.transport.name());
        let assumptions = self.transport.ready.assumptions();
        if assumptions.one_flow {
            warnings.extend(assumptions::one_flow(topology, name));
        }
        let has_faults = self.plan.faults != FaultsSpec::default();
        warnings.extend((has_faults && !self.transport.ready.has_packets()).then(|| {
            warning!(
                "ignored-faults",
                "transport.name: {transport} has no packets, and ignores faults",
                transport = name,
            )
        }));
        if assumptions.wide_inner_links {
            let inner = assumptions::inner_links(topology, self.names(), name);
            warnings.extend(inner);
        }
        let presets = self.plan.transport.presets().join("+");
        let derived = self.transport.describe();
        let rtt = self.network.delays.facts().control_rtt;
        let faults = &self.plan.faults;
        let slow = assumptions::slow_recovery(faults, &derived, &presets, name, rtt);
        warnings.extend(slow);
        let slowed = self.transport.ready.slowed();
        warnings.extend(slowed.map(|slowed| assumptions::slowed_hosts(&slowed, name)));
        if assumptions.one_clock {
            warnings.extend(assumptions::clock_offset(&self.sim.clocks, rtt, name));
        }
        let allowed = assumptions.drift_ppb;
        warnings
            .extend(allowed.and_then(|of| assumptions::clock_drift(&self.sim.clocks, of, name)));
        let core = assumptions::NarrowestCore::narrowest(topology, states, self.names());
        if assumptions.full_bisection {
            warnings.extend(assumptions::narrow_core(&core, name));
        }
        if assumptions.paced_by_receivers {
            warnings.extend(assumptions::narrow_core_of_receivers(&core, name));
        }
        if assumptions.one_window_each {
            warnings.extend(assumptions::narrow_core_of_windows(&core, name));
        }
    }
}

impl ValidPlan {
    /// Returns likely mistakes.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        if !self.is_overloaded {
            warnings.extend(self.overloaded());
        }
        warnings.extend(self.short_drain());
        warnings
    }
}
