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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Plan, Registry};

    /// Warnings of a transport with packets; links have a propagation in nanoseconds.
    fn warnings_of_delays(transport: &str, links: &[(&str, &str, f64)]) -> Vec<String> {
        let link = |&(a, b, ns): &(&str, &str, f64)| {
            format!("{{ between = ['{a}', '{b}'], gbps = 100, propagation-ns = {ns} }}")
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let text = format!(
            "transport = {{ name = '{transport}' }}\n\
             topology = {{ kind = 'links', hosts = ['a', 'b', 'c', 'd'], switches = 4, \
             host-ns = 0, switch-ns = 0, links = [{}] }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10",
            links.join(", ")
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn links_that_delay_paths_are_reported_with_the_factor() {
        let spines = |far: f64| {
            let hosts =
                [("a", "s0", 500.0), ("b", "s0", 500.0), ("c", "s1", 500.0), ("d", "s1", 500.0)];
            let core =
                [("s0", "s2", 500.0), ("s1", "s2", 500.0), ("s0", "s3", far), ("s1", "s3", far)];
            [&hosts[..], &core].concat()
        };
        for transport in ["homa", "dctcp", "ndp"] {
            let found = warnings_of_delays(transport, &spines(50_000.0));
            let warning_text = |start: &str, end: &str| {
                found.iter().any(|line| line.starts_with(start) && line.contains(end))
            };
            let start = "topology: the shortest paths from a to c take 2.0";
            assert!(warning_text(start, "links s0-s3 and s1-s3 are up to 50."), "{found:?}");
            let start = "topology: round trips take 2.0";
            assert!(warning_text(start, "from a to c over links s0-s3 and s1-s3"), "{found:?}");
            let equal = warnings_of_delays(transport, &spines(500.0));
            assert!(!equal.iter().any(|line| line.contains(" take ")), "{equal:?}");
        }
    }
}
