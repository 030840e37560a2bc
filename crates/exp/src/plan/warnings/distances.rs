//! Warnings of hosts and paths that are much farther than others.

use rampmeter_sim::{Delays, Node, Target, Topology};
use rampmeter_types::Bytes;

use crate::topology::names::NamesSpec;
use crate::warning::{Warning, warning};

/// Returns a warning if the round trips of the nearest and the farthest hosts differ much.
/// `sharing` is the transport if its hosts share times. `control` is the length of control packets.
pub(crate) fn far_hosts(
    delays: &Delays,
    topology: &Topology,
    names: &NamesSpec,
    control: Bytes,
    sharing: Option<&str>,
) -> Option<Warning> {
    if !delays.has_far_hosts() {
        return None;
    }
    let times = sharing.map(|name| format!(", and times that all hosts of {name} share,"));
    let (nearest, longest) = (delays.nearest(), delays.facts().control_rtt);
    let on = topology.farthest(control).map(|path| {
        let (link, more) = links_of(&path.links, topology, names);
        let ends = [path.ends.0, path.ends.1].map(|host| names.node(Node::Host(host)));
        format!(", that from {} to {} over {link}{more}", ends[0], ends[1])
    });
    Some(warning!(
        "unequal-round-trips",
        "topology: round trips take {shortest_us:.3} to {longest_us:.3} us, {factor:.1} times the \
         shortest: memory and thresholds of ports{times} follow from the longest{on}",
        shortest_us = nearest.as_us_f64(),
        longest_us = longest.as_us_f64(),
        factor = longest.as_ps() as f64 / nearest.as_ps().max(1) as f64;
        times = times.unwrap_or_default(),
        on = on.unwrap_or_default(),
    ))
}

/// Factor between the times of equally short paths from which they are warned of.
const DELAYED: f64 = 2.0;

/// Returns a warning if equally short paths between two hosts take times that differ much. Routing
/// counts hops: packets take the slow path as often as the fast one.
pub(crate) fn delayed_paths(
    topology: &Topology,
    names: &NamesSpec,
    control: Bytes,
) -> Option<Warning> {
    let path = topology.delayed_path(control)?;
    let factor = path.max.as_ps() as f64 / path.min.as_ps().max(1) as f64;
    if factor < DELAYED {
        return None;
    }
    let (link, more) = links_of(&path.links, topology, names);
    Some(warning!(
        "delayed-paths",
        "topology: the shortest paths from {from} to {to} take {shortest_us:.3} to \
         {longest_us:.3} us one way: those over {link}{more} are up to {factor:.1} times slower, \
         and switches choose among paths of equally many hops without regard to delay",
        from = names.node(Node::Host(path.ends.0)),
        to = names.node(Node::Host(path.ends.1)),
        shortest_us = path.min.as_us_f64(),
        longest_us = path.max.as_us_f64(),
        factor = factor;
        link = link,
        more = more,
    ))
}

/// Returns the name of the first of `links`, and the number of the others.
fn links_of(links: &[u32], topology: &Topology, names: &NamesSpec) -> (String, String) {
    let name = |link: &u32| names.target(topology, Target::Link(*link));
    match links {
        [] => (String::new(), String::new()),
        [one] => (format!("link {}", name(one)), String::new()),
        [one, two] => (format!("links {} and {}", name(one), name(two)), String::new()),
        [one, two, more @ ..] => {
            (format!("links {}, {}", name(one), name(two)), format!(" and {} more", more.len()))
        }
    }
}
