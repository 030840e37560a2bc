//! Warnings of links that do not fit each other.

use std::collections::BTreeMap;

use rampmeter_sim::topo::ReturnPath;
use rampmeter_sim::{Interface, Node, SimSpec, Target, Topology};
use rampmeter_types::{NodeId, Planes, Rate};

use crate::topology::names::NamesSpec;
use crate::warning::{Warning, warning};

/// Returns a warning if links of several rates serve the same peers. These are links between the
/// same two switches, or links of a host to the same peers.
pub(crate) fn unequal_links(topology: &Topology, names: &NamesSpec) -> Option<Warning> {
    // Links of other planes serve other peers.
    let planes = topology.pairs().planes();
    let mut rates: BTreeMap<(Node, Node, usize), [(Rate, Node); 2]> = BTreeMap::new();
    for link in topology.links() {
        let together = match (link.a, link.b) {
            (Node::Switch(_), Node::Switch(_)) => Some((link.a.min(link.b), link.a.max(link.b), 0)),
            (Node::Host(host), Node::Switch(switch)) => {
                let of = |planes: &Planes| planes.plane_of_switch(NodeId::new(host), switch);
                Some((link.a, link.a, planes.as_ref().and_then(of).unwrap_or(0)))
            }
            _ => None,
        };
        if let Some(together) = together {
            // Links with two rates are alike if the faster directions are.
            let rate = (link.rates().fastest, link.b);
            let [slowest, fastest] = rates.entry(together).or_insert([rate; 2]);
            if rate.0 < slowest.0 {
                *slowest = rate;
            } else if rate.0 > fastest.0 {
                *fastest = rate;
            }
        }
    }
    let is_unequal = |(_, [slowest, fastest]): &(_, [(Rate, Node); 2])| slowest.0 < fastest.0;
    let ((a, b, _), [slowest, fastest]) = rates.into_iter().find(is_unequal)?;
    let links = match a == b {
        true => {
            let ends = [slowest.1, fastest.1].map(|end| names.node(end));
            let ends = if slowest.1 == fastest.1 { ends[..1].join("") } else { ends.join(" and ") };
            format!("of {} to {ends}", names.node(a))
        }
        false => format!("between {} and {}", names.node(a), names.node(b)),
    };
    Some(warning!(
        "unequal-links",
        "topology: the links {links} have rates from {slowest_gbps} to {fastest_gbps} Gbit/s: \
         packets are spread over them in proportion to their rates, and a message that keeps its \
         path may have a slow one",
        links = links,
        slowest_gbps = slowest.0.as_bps() as f64 / 1e9,
        fastest_gbps = fastest.0.as_bps() as f64 / 1e9,
    ))
}

/// Returns a warning if links are too slow for the control packets that return for the data of the
/// other direction. The transport has a name and the share of control packets in data. `fastest`
/// bounds the rate of data.
pub(crate) fn slow_returns(
    topology: &Topology,
    names: &NamesSpec,
    transport: &str,
    share: f64,
    fastest: Option<Rate>,
) -> Option<Warning> {
    let data =
        |found: &ReturnPath| found.data_bps.min(fastest.map_or(u64::MAX, Rate::as_bps)) as f64;
    let needed = |found: &ReturnPath| share * data(found);
    let lack = |found: &ReturnPath| needed(found) / found.back_bps as f64;
    let slow: Vec<ReturnPath> =
        topology.return_paths().into_iter().filter(|found| lack(found) > 1.0).collect();
    let worst = slow.iter().max_by(|a, b| lack(a).total_cmp(&lack(b)))?;
    let (number, from) = worst.link;
    let link = topology.links()[number as usize];
    let to = if link.a == from { link.b } else { link.a };
    let name = names.target(topology, Target::Link(number));
    let (which, have) = match worst.n_links {
        1 => (format!("link {name}"), "has"),
        n => (format!("{n} links, of which {name} is the slowest,"), "have"),
    };
    let mut links: Vec<u32> = slow.iter().map(|found| found.link.0).collect();
    links.sort_unstable();
    links.dedup();
    let others = match links.len() {
        1 => String::new(),
        2 => " (one more link is too slow)".to_owned(),
        n => format!(" ({} more links are too slow)", n - 1),
    };
    Some(warning!(
        "slow-reverse-links",
        "topology: {which} {have} {gbps} Gbit/s from {from} to {to}, and the control packets of \
         {transport} for {data_gbps} Gbit/s of data in the other direction need \
         {needed_gbps:.3}: expect that data wait for them{others}",
        gbps = worst.back_bps as f64 / 1e9,
        from = names.node(from),
        to = names.node(to),
        transport = transport,
        data_gbps = data(worst) / 1e9,
        needed_gbps = needed(worst) / 1e9;
        which = which,
        have = have,
        others = others,
    ))
}

/// Returns a warning if a packet for one interface of a host may delay packets for others. Hosts in
/// such networks reach peers by different interfaces, but have one endpoint for all.
pub(crate) fn partial_pairs(sim: &SimSpec) -> Option<Warning> {
    let is_held_up = match sim.planes() {
        Some(planes) => planes.is_shared(),
        None => {
            matches!(sim.fabric.interface, Interface::Pull)
                && sim.topology.pairs().has_partial_pairs()
        }
    };
    is_held_up.then(|| {
        warning!(
            "partial-pairs",
            "topology: some hosts reach their peers by different interfaces: a packet that is \
             queued at one of them holds up those that a host sends by the others",
        )
    })
}
