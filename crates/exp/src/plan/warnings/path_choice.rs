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
