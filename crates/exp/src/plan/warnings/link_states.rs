//! Warnings of a network while `faults` has links slower or faster, or links and nodes down.

use rampmeter_proto::registered::Assumptions;
use rampmeter_sim::topo::{DisconnectedHosts, FullLink};
use rampmeter_sim::{FaultSpec, LinkChange, Node, SimSpec, Target, Topology};
use rampmeter_types::{Rate, Time};
use rampmeter_workload::import::count;

use crate::topology::names::NamesSpec;
use crate::warning::{Warning, warning};

/// States of a network that are examined at most.
const STATES_MAX: usize = 16;

/// A network between two faults.
pub(crate) struct NetworkState {
    pub(crate) since: Time,
    /// Links and nodes that are down, so long that switches route without them.
    down: Vec<Target>,
    /// The topology with its changed links.
    pub(crate) topology: Topology,
    has_changes: bool,
}

/// Returns the states of the network that begin with a failure or a change of a link, in order of
/// time. Each set of failures and changes is returned once. After a repair a network carries more.
pub(crate) fn states(sim: &SimSpec) -> Vec<NetworkState> {
    let FaultSpec { outages, changes, rerouting, .. } = &sim.faults;
    let begins = outages.iter().map(|outage| outage.from);
    let mut times: Vec<Time> = begins.chain(changes.iter().map(|change| change.at)).collect();
    times.sort_unstable();
    times.dedup();
    let mut states: Vec<NetworkState> = Vec::new();
    for since in times {
        let lasts = |from: Time, until: Time| until > from.saturating_add(*rerouting);
        let active = outages.iter().filter(|o| o.from <= since && since < o.until);
        let active = active.filter(|outage| lasts(outage.from, outage.until));
        let mut down: Vec<Target> = active.map(|outage| outage.target).collect();
        down.sort_unstable();
        down.dedup();
        let mut done: Vec<_> = changes.iter().filter(|change| change.at <= since).collect();
        done.sort_by_key(|change| change.at);
        let topology = sim.topology.clone().after(done.iter().copied());
        let is_known = |known: &NetworkState| known.down == down && known.topology == topology;
        if !states.iter().any(is_known) {
            states.push(NetworkState { since, down, topology, has_changes: !done.is_empty() });
        }
        if states.len() == STATES_MAX {
            break;
        }
    }
    states
}

impl NetworkState {
    /// Returns the capacity of links between switches as a share of the hosts' sending capacity.
    pub(crate) fn bisection_share(&self) -> f64 {
        self.topology.bisection_share_while(&self.down)
    }

    /// Returns the words that name the state.
    pub(crate) fn name(&self, names: &NamesSpec) -> String {
        let since = self.since.as_ps() as f64 / 1e6;
        let of = |target: &Target| names.target(&self.topology, *target);
        let down: Vec<String> = self.down.iter().map(of).collect();
        match (&down[..], self.has_changes) {
            ([], _) => format!("after faults.changes at {since} us"),
            ([one], false) => format!("while {one} is down from {since} us on"),
            ([one], true) => {
                format!("while {one} is down and links are changed from {since} us on")
            }
            (several, _) => format!("while {} are down from {since} us on", several.join(", ")),
        }
    }
}

/// Returns a warning if uniform traffic is more than a link carries in one of `states`, for the
/// state in which least is carried.
pub(crate) fn overload_while_down(
    states: &[NetworkState],
    names: &NamesSpec,
    access: Rate,
    load: f64,
) -> Option<Warning> {
    if load == 0.0 {
        return None;
    }
    let full =
        |state: &NetworkState| state.topology.degraded(&state.down)?.first_saturated_link(access);
    let all = states.iter().filter_map(|state| Some((full(state)?, state)));
    let (FullLink { link, from, load: most }, state) = all
        .filter(|(full, _)| full.load < load)
        .min_by(|(a, _), (b, _)| a.load.total_cmp(&b.load))?;
    Some(warning!(
        "overload-while-down",
        "faults: the load of {load} exceeds {load_max:.3}, at which link {link} is full in \
         the direction from {from} {state}",
        load = load,
        load_max = most,
        link = names.target(&state.topology, Target::Link(link)),
        from = names.node(from),
        state = state.name(names),
    ))
}

/// Returns a warning if no path is left between hosts in one of `states`, for the state that has
/// most such pairs. Hosts that fail themselves do not count.
pub(crate) fn hosts_cut_off(states: &[NetworkState], names: &NamesSpec) -> Option<Warning> {
    let cut = |state: &NetworkState| state.topology.degraded(&state.down)?.cut_off();
    let all = states.iter().filter(|state| !state.down.is_empty());
    let all = all.filter_map(|state| Some((cut(state)?, state)));
    let (DisconnectedHosts { ends, pairs }, state) =
        all.reduce(|most, next| if next.0.pairs > most.0.pairs { next } else { most })?;
    let others = match pairs - 1 {
        0 => String::new(),
        1 => " and between one more pair of hosts".to_owned(),
        more => format!(" and between {more} more pairs of hosts"),
    };
    Some(warning!(
        "hosts-cut-off",
        "faults.outages: {state} no path leads from {from} to {to}{others}: flows there wait for \
         the repair, or fail",
        state = state.name(names),
        from = names.node(Node::Host(ends.0)),
        to = names.node(Node::Host(ends.1));
        others = others,
    ))
}

/// Returns a warning if links become faster than at the start of the run, for the link whose rate
/// rises most. It is about those of `transports` whose parameters follow from the rates at the
/// start: no flow of theirs uses the higher rate.
pub(crate) fn increased_rates(
    sim: &SimSpec,
    names: &NamesSpec,
    transports: &[(&str, Assumptions)],
) -> Option<Warning> {
    let by = |is_affected: fn(&Assumptions) -> bool| -> Vec<&str> {
        let affected = transports.iter().filter(|(_, own)| is_affected(own));
        affected.map(|&(name, _)| name).collect()
    };
    let of_hosts = by(|own| !own.window_grows);
    let of_core = by(|own| own.schedules_core);
    let all: Vec<RateIncrease<'_>> =
        sim.faults.changes.iter().filter_map(|c| RateIncrease::new(c, sim)).collect();
    let affected = |rise: &RateIncrease<'_>| if rise.is_of_core { &of_core } else { &of_hosts };
    let all: Vec<RateIncrease<'_>> =
        all.into_iter().filter(|rise| !affected(rise).is_empty()).collect();
    let most = all.iter().reduce(|most, next| if next.factor > most.factor { next } else { most });
    let most @ RateIncrease { change, old, new, factor, .. } = most?;
    let mut links: Vec<u32> = all.iter().map(|rise| rise.change.link).collect();
    links.sort_unstable();
    links.dedup();
    let others = match links.len() - 1 {
        0 => String::new(),
        n => format!(", and {} faster, too", count(n, "more link")),
    };
    let gbps = |rate: &Rate| rate.as_bps() as f64 / 1e9;
    // Ports without memory take a cell only in its slot.
    let consequence = match sim.fabric.is_memoryless() {
        true => "cells on it miss their slots: expect losses, and messages that fail",
        false => "its flows may use no more than these",
    };
    Some(warning!(
        "increased-rates",
        "faults.changes: link {link} has {gbps} Gbit/s from {at_us} us on, {factor} times the \
         {start_gbps} Gbit/s at the start{others}: windows, pacing and slots of {transports} \
         follow from the rates at the start, so {consequence}",
        link = names.target(&sim.topology, Target::Link(change.link)),
        gbps = gbps(new),
        at_us = change.at.as_ps() as f64 / 1e6,
        factor = (factor * 1e3).round() / 1e3,
        start_gbps = gbps(old),
        transports = affected(most).join(" and ");
        others = others,
        consequence = consequence,
    ))
}

/// A change that makes a link of a host, or one between switches, faster than at the start.
struct RateIncrease<'a> {
    change: &'a LinkChange,
    is_of_core: bool,
    /// Rates at the start and after the change, in the direction that gains most.
    old: Rate,
    new: Rate,
    factor: f64,
}

impl<'a> RateIncrease<'a> {
    fn new(change: &'a LinkChange, sim: &SimSpec) -> Option<Self> {
        let link = sim.topology.links().get(change.link as usize)?;
        let is_of_core = match (link.a, link.b) {
            (Node::Switch(_), Node::Switch(_)) => true,
            (Node::Arbiter(_), _) | (_, Node::Arbiter(_)) => return None,
            _ => false,
        };
        let [there, back] = change.rates?;
        let factor = |(old, new): (Rate, Rate)| new.as_bps() as f64 / old.as_bps().max(1) as f64;
        let (there, back) = ((link.rate, there), (link.rate_back, back));
        let (old, new) = if factor(back) > factor(there) { back } else { there };
        (new > old).then(|| Self { change, is_of_core, old, new, factor: factor((old, new)) })
    }
}
