//! Warnings of networks whose paths are not alike, which follow from the choice of paths.

use rampmeter_sim::topo::{NarrowLink, NarrowPath, UnevenPaths};
use rampmeter_sim::{FabricConfig, Node, SimSpec, Target, Topology};
use rampmeter_types::Rate;
use rampmeter_types::fabric::Spray;

use super::link_states::NetworkState;
use crate::topology::names::NamesSpec;
use crate::warning::{Warning, warning};

/// Returns a warning if packets of a message take several paths, but the transport infers losses
/// from reordering.
pub(crate) fn out_of_order(topology: &Topology, spray: Spray, transport: &str) -> Option<Warning> {
    (!spray.is_by_flow() && topology.has_several_paths()).then(|| {
        warning!(
            "order-lost",
            "fabric.spray: {spray} sends the packets of a message over several paths, and \
             {transport} treats reordered packets as signs of losses: expect \
             retransmissions, and flows that end late or never; ecmp keeps a message on one path",
            spray = name_of(spray),
            transport = transport,
        )
    })
}

/// Returns a warning if a plan names another path choice than the usual one, for the transports of
/// it that choose paths by themselves.
pub(crate) fn ignored_path_choice(
    topology: &Topology,
    spray: Spray,
    transports: &[&str],
) -> Option<Warning> {
    let is_usual = spray == FabricConfig::default().spray;
    (!is_usual && !transports.is_empty() && topology.has_several_paths()).then(|| {
        let (choose, their) = match transports.len() {
            1 => ("chooses", "its"),
            _ => ("choose", "their"),
        };
        warning!(
            "ignored-path-choice",
            "fabric.spray: {transports} {choose} paths without the fabric, and {spray} holds only \
             for {their} packets whose path is left open",
            transports = transports.join(" and "),
            spray = name_of(spray);
            choose = choose,
            their = their,
        )
    })
}

/// Returns the name of a path choice in plans.
fn name_of(spray: Spray) -> &'static str {
    match spray {
        Spray::SourceRoundRobin => "source-round-robin",
        Spray::Random => "random",
        Spray::Ecmp => "ecmp",
        Spray::EcmpPair => "ecmp-pair",
    }
}

/// Returns a warning if equally short paths between two hosts have several rates. A message on one
/// path may get a slow one, and sprayed packets may overload a link behind. If all rates are equal
/// at first, the warning is of the first of `states` in which they differ.
pub(crate) fn uneven_paths(
    sim: &SimSpec,
    states: &[NetworkState],
    names: &NamesSpec,
) -> Option<Warning> {
    let of = match sim.fabric.spray.is_by_flow() {
        true => uneven_path,
        false => narrow_link,
    };
    of(&sim.topology, names, "").or_else(|| {
        let later =
            |state: &NetworkState| of(&state.topology, names, &format!(", {}", state.name(names)));
        states.iter().find_map(later)
    })
}

/// `state` is added to the sentence.
fn uneven_path(topology: &Topology, names: &NamesSpec, state: &str) -> Option<Warning> {
    let UnevenPaths { ends, link, slowest, fastest } = topology.uneven_paths()?;
    Some(warning!(
        "slow-path",
        "topology: the shortest paths from {from} to {to} have rates from {gbps} to \
         {fastest_gbps} Gbit/s: link {link} is the slowest, and a message that keeps its path may \
         have it{state}",
        from = names.node(Node::Host(ends.0)),
        to = names.node(Node::Host(ends.1)),
        gbps = gbps(slowest),
        fastest_gbps = gbps(fastest),
        link = names.target(topology, Target::Link(link));
        state = state,
    ))
}

/// Returns a warning if a link gets more of the packets that are spread than it carries.
fn narrow_link(topology: &Topology, names: &NamesSpec, state: &str) -> Option<Warning> {
    let NarrowLink { ends, link, from, rate, share, factor } = topology.narrow_link()?;
    Some(warning!(
        "slow-path",
        "topology: link {link} carries {gbps} Gbit/s in the direction from {end} and gets \
         {packets_percent:.1} % of the packets from {from} to {to}, as switches spread them by \
         the rates of their own links: expect long flows that are {factor:.1} times slower, or \
         more if packets are lost there{state}",
        link = names.target(topology, Target::Link(link)),
        gbps = gbps(rate),
        end = names.node(from),
        packets_percent = 100.0 * share,
        from = names.node(Node::Host(ends.0)),
        to = names.node(Node::Host(ends.1)),
        factor = factor;
        state = state,
    ))
}

/// Returns a warning if all shortest paths of two hosts together carry more than one, for
/// transports whose messages keep one path.
pub(crate) fn single_path(
    topology: &Topology,
    names: &NamesSpec,
    transports: &[&str],
) -> Option<Warning> {
    if transports.is_empty() {
        return None;
    }
    let NarrowPath { ends, link, rate, factor } = topology.narrow_path()?;
    Some(warning!(
        "one-path",
        "topology: a message of {transports} from {from} to {to} has one path, of {gbps} Gbit/s \
         at most at link {link}, and all shortest paths together carry {factor:.1} times as much, \
         as its ideal does",
        transports = transports.join(" or "),
        from = names.node(Node::Host(ends.0)),
        to = names.node(Node::Host(ends.1)),
        gbps = gbps(rate),
        link = names.target(topology, Target::Link(link)),
        factor = factor,
    ))
}

fn gbps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Plan, Registry};

    const HOSTS: [(&str, &str, f64); 4] =
        [("a", "s0", 100.0), ("b", "s0", 100.0), ("c", "s1", 100.0), ("d", "s1", 100.0)];

    fn topology(switches: u32, links: &[(&str, &str, f64)]) -> String {
        let link = |&(a, b, gbps): &(&str, &str, f64)| {
            format!("{{ between = ['{a}', '{b}'], gbps = {gbps} }}")
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let hosts = "hosts = ['a', 'b', 'c', 'd']";
        format!("kind = 'links', {hosts}, switches = {switches}, links = [{}]", links.join(", "))
    }

    /// Warnings of 10 flows of a transport at load 0.1 in a fabric.
    fn warnings_of(transport: &str, fabric: &str, topology: &str) -> Vec<String> {
        let text = format!(
            "transport = {{ name = '{transport}' }}\ntopology = {{ {topology} }}\n\
             fabric = {{ {fabric} }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn a_slow_link_behind_equal_ones_is_reported_for_every_path_choice() {
        let spines = |far| [("s0", "s2", 100.0), ("s0", "s3", 100.0), ("s1", "s2", 100.0), far];
        let slow = topology(4, &[&HOSTS[..], &spines(("s1", "s3", 20.0))].concat());
        let equal = topology(4, &[&HOSTS[..], &spines(("s1", "s3", 100.0))].concat());
        let expected = "topology: link s1-s3 carries 20 Gbit/s in the direction from s3 and gets \
                        50.0 % of the packets from a to c, as switches spread them by the rates of \
                        their own links: expect long flows that are 2.5 times slower, \
                        or more if packets are lost there";
        for spray in ["random", "source-round-robin"] {
            let fabric = format!("spray = '{spray}'");
            let found = warnings_of("ndp", &fabric, &slow);
            assert!(found.iter().any(|line| line == expected), "{spray}: {found:?}");
            assert!(
                !warnings_of("ndp", &fabric, &equal).iter().any(|line| line.contains("spread"))
            );
        }
    }

    /// Two spines of 40 Gbit/s, hosts of 100.
    #[test]
    fn a_core_of_slower_links_is_reported_for_single_path_transports() {
        let spines = |gbps| {
            let core = [("s0", "s2"), ("s0", "s3"), ("s1", "s2"), ("s1", "s3")];
            topology(4, &[&HOSTS[..], &core.map(|(a, b)| (a, b, gbps))].concat())
        };
        let warned = |transport: &str, fabric: &str, gbps| {
            let found = warnings_of(transport, fabric, &spines(gbps));
            let expected = format!(
                "topology: a message of {transport} from a to c has one path, of 40 Gbit/s at most \
                 at link s0-s2, and all shortest paths together carry 2.0 times as much, as its \
                 ideal does"
            );
            found.contains(&expected)
        };
        for transport in ["tcp", "dctcp", "pias", "hyline", "hpcc"] {
            assert!(warned(transport, "", 40.0), "{transport}");
            assert!(!warned(transport, "", 100.0), "{transport}");
        }
        for transport in ["homa", "dcpim", "phost"] {
            assert!(!warned(transport, "", 40.0), "{transport}");
            assert!(warned(transport, "spray = 'ecmp'", 40.0), "{transport}");
        }
        for fabric in ["", "spray = 'ecmp'"] {
            assert!(!warned("ndp", fabric, 40.0), "{fabric}");
        }
    }

    #[test]
    fn links_that_become_slow_during_the_run_are_reported() {
        let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
        let slow = "faults = { changes = [{ link = 's1-s3', at-us = 5.0, gbps = 10.0 }] }";
        let found = warnings_of("homa", "", spines);
        assert!(!found.iter().any(|line| line.contains("faults.changes")));
        let found = warnings_of("homa", &format!("}}\n{slow}\nclocks = {{"), spines);
        let is_told = |line: &&String| {
            line.starts_with("topology: link s1-s3 carries 10 Gbit/s")
                && line.ends_with("after faults.changes at 5 us")
        };
        assert!(found.iter().any(|line| is_told(&line)), "{found:?}");
    }

    #[test]
    fn path_choices_of_both_the_plan_and_the_transport_are_reported() {
        let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
        let one = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 1";
        let warned = |transport: &str, fabric: &str, topology: &str| {
            let found = warnings_of(transport, fabric, topology);
            let own = format!("fabric.spray: {transport} chooses paths without the fabric");
            found.iter().any(|line| line.starts_with(&own))
        };
        let choosers = ["capton", "cosy", "fastpass", "hyline", "ndp"];
        for name in Registry::builtin().about().iter().map(|about| about.name) {
            // A Python transport has no parameters here, and the ideal no packets.
            if ["ideal", "python"].contains(&name) {
                continue;
            }
            let chooses = choosers.contains(&name);
            for spray in ["spray = 'ecmp'", "spray = 'ecmp-pair'", "spray = 'random'"] {
                assert_eq!(warned(name, spray, spines), chooses, "{name}, {spray}");
                assert!(!warned(name, spray, one), "{name}, {spray}");
            }
            for usual in ["", "spray = 'source-round-robin'"] {
                assert!(!warned(name, usual, spines), "{name}, {usual}");
            }
        }
        // Cells of Fastpod have source routes in pods alone.
        let pod = "kind = 'pod', k = 4";
        assert!(warned("fastpod", "spray = 'ecmp'", pod) && !warned("fastpod", "", pod));
    }

    #[test]
    fn packet_spraying_is_reported_for_transports_that_require_order() {
        let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
        let one = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 1";
        let warned = |transport: &str, fabric: &str, topology: &str| {
            let found = warnings_of(transport, fabric, topology);
            found.iter().any(|line| line.starts_with("fabric.spray: random sends"))
        };
        for transport in ["hpcc", "tcp", "dctcp", "pias"] {
            assert!(warned(transport, "spray = 'random'", spines), "{transport}");
            assert!(!warned(transport, "spray = 'ecmp'", spines), "{transport}");
            assert!(!warned(transport, "spray = 'random'", one), "{transport}");
        }
        assert!(!warned("ndp", "spray = 'random'", spines));
    }
}
