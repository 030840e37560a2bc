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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Plan, Registry};

    /// Warnings of `faults` at a load, in racks of four hosts with two spines of `core` Gbit/s.
    fn warnings(load: f64, spines: u32, faults: &str) -> Vec<String> {
        let text = format!(
            "transport = {{ name = 'homa' }}\n\
             topology = {{ kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = {spines}, \
             core-gbps = 200 }}\nfaults = {{ {faults} }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = {load}\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        let found = plan.check("plan", Path::new(".")).unwrap().warnings();
        let found: Vec<String> = found.into_iter().map(|warning| warning.text).collect();
        found.into_iter().filter(|line| line.starts_with("faults")).collect()
    }

    /// Four sevenths of the traffic of four hosts leave a rack, by 400 Gbit/s or 200.
    #[test]
    fn loads_too_high_for_an_outage_are_reported() {
        let down = "outages = [{ switch = 's3', from-us = 5.0, until-us = 90000.0 }]";
        let expected = "faults: the load of 0.9 exceeds 0.875, at which link s0-s2 is full in \
                        the direction from s0 while s3 is down from 5 us on";
        assert_eq!(warnings(0.9, 2, down), [expected]);
        assert!(warnings(0.8, 2, down).is_empty());
        let short = format!("{down}, rerouting-us = 90000.0");
        assert!(warnings(0.9, 2, &short).is_empty());
        let slow = "changes = [{ link = 's0-s2', at-us = 5.0, gbps = 50.0 }]";
        let [warned] = &warnings(0.5, 1, slow)[..] else { panic!("one warning") };
        assert!(
            warned.ends_with(
                "link s0-s2 is full in the direction from s0 after faults.changes at 5 us"
            ),
            "{warned}"
        );
        assert!(warnings(0.2, 1, slow).is_empty());
    }

    #[test]
    fn failures_that_disconnect_hosts_are_reported() {
        let down = "outages = [{ switch = 's2', from-us = 5.0, until-us = 90000.0 }]";
        let expected = "faults.outages: while s2 is down from 5 us on no path leads from h0 to h4 \
                        and between 31 more pairs of hosts: flows there wait for the repair, or \
                        fail";
        assert_eq!(warnings(0.1, 1, down), [expected]);
        assert!(warnings(0.1, 2, down).is_empty());
        assert!(warnings(0.1, 1, "outages = [{ host = 'h0', from-us = 5.0 }]").is_empty());
    }

    /// Warnings of a narrow core, of hosts with 400 Gbit/s and two spines.
    fn narrow(transport: &str, faults: &str) -> Vec<String> {
        let text = format!(
            "transport = {{ name = '{transport}' }}\n\
             topology = {{ kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = 2, \
             core-gbps = 200 }}\nfaults = {{ {faults} }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        let found = plan.check("plan", Path::new(".")).unwrap().warnings();
        let found = found.into_iter().filter(|warning| warning.code == "narrow-core");
        found.map(|warning| warning.text).collect()
    }

    #[test]
    fn a_core_narrowed_by_a_failure_is_reported() {
        for (transport, is_told) in [("fastpass", true), ("ndp", true), ("homa", false)] {
            let down = "outages = [{ link = 's0-s2', from-us = 0.0 }]";
            let found = narrow(transport, down);
            assert_eq!(found.len(), usize::from(is_told), "{found:?}");
            let part = "carry 50.0 % of";
            let state = "while s0-s2 is down from 0 us on";
            assert!(found.iter().all(|warned| warned.contains(part) && warned.contains(state)));
            // All paths, and a host: other warnings.
            let none = "outages = [{ switch = 's2', from-us = 0.0 }, \
                        { switch = 's3', from-us = 0.0 }]";
            for other in [none, "outages = [{ host = 'h0', from-us = 0.0 }]"] {
                assert_eq!(narrow(transport, other), [""; 0]);
            }
        }
    }

    /// Warnings of changes of links in a dumbbell of hosts and a core of 10 Gbit/s.
    fn risen(transport: &str, changes: &str) -> Vec<String> {
        let network = "kind = 'dumbbell', hosts-per-side = 1, access-gbps = 10, core-gbps = 10";
        risen_in(network, transport, changes)
    }

    fn risen_in(network: &str, transport: &str, changes: &str) -> Vec<String> {
        let text = format!(
            "transport = {{ name = '{transport}' }}\n\
             topology = {{ {network} }}\nfaults = {{ changes = [{changes}] }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        let found = plan.check("plan", Path::new(".")).unwrap().warnings();
        let found = found.into_iter().filter(|warning| warning.code == "increased-rates");
        found.map(|warning| warning.text).collect()
    }

    #[test]
    fn ports_without_memory_lose_cells_of_faster_links() {
        let network = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = 4, \
                       access-gbps = 10, core-gbps = 10";
        let change = "{ link = 'h0-s0', at-us = 20, gbps = 20 }";
        let consequence = |name| risen_in(network, name, change)[0].contains("messages that fail");
        assert!(consequence("fastpod") && !consequence("fastpass"));
    }

    /// A flow of 10 MB after the change has a slowdown of 1.01 with these three, and of 3 to 10.5
    /// with the others.
    const GROWING: [&str; 3] = ["dctcp", "pias", "tcp"];

    #[test]
    fn faster_host_links_are_reported_unless_windows_grow() {
        let changes = "{ link = 'h0-s0', at-us = 20.5, gbps = 40 }, \
                       { link = 's1-h1', at-us = 20.5, gbps = 25, gbps-back = 100 }";
        for transport in Registry::builtin().about().iter().map(|about| about.name) {
            let found = risen(transport, changes);
            if GROWING.contains(&transport) || ["ideal", "python"].contains(&transport) {
                assert!(found.is_empty(), "{transport}: {found:?}");
                continue;
            }
            let expected = format!(
                "faults.changes: link h1-s1 has 100 Gbit/s from 20.5 us on, 10 times the 10 \
                 Gbit/s at the start, and 1 more link faster, too: windows, pacing and slots of \
                 {transport} follow from the rates at the start, so its flows may use no more \
                 than these"
            );
            assert_eq!(found, [expected]);
            // A rate that falls and returns is no higher than at the start.
            let back = "{ link = 'h0-s0', at-us = 2, gbps = 1 }, { link = 'h0-s0', at-us = 4, \
                        gbps = 10 }";
            assert_eq!(risen(transport, back), [""; 0]);
        }
    }

    /// Hosts limit the flows of the others.
    #[test]
    fn a_faster_core_is_reported_if_the_transport_schedules_it() {
        let changes = "{ link = 's0-s1', at-us = 20, gbps = 40 }";
        for transport in Registry::builtin().about().iter().map(|about| about.name) {
            let warned = risen(transport, changes).len();
            let expected = usize::from(["capton", "hyline"].contains(&transport));
            assert_eq!(warned, expected, "{transport}");
        }
    }
}
