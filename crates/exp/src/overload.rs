//! Loads that the links cannot carry, seen before anything runs.

use std::collections::{BTreeMap, BTreeSet};

use rampmeter_core::fabric::Spray;
use rampmeter_core::{NodeId, Planes, Rate};
use rampmeter_proto::transport::Slowed;
use rampmeter_sim::topo::{Link, Return, UnevenPaths};
use rampmeter_sim::{Delays, HostCut, Interface, LinkChange, Node, SimSpec, Target, Topology};
use rampmeter_workload::WorkloadSpec;

use crate::cut::Cut;
use crate::names::NamesSpec;

/// A sentence if the traffic between all pairs of hosts is more than the links between some of
/// them carry. The bound is exact for uniform traffic: no transport can go beyond it.
pub(crate) fn warning(
    topology: &Topology,
    access: Rate,
    workload: &WorkloadSpec,
) -> Option<String> {
    let load = uniform_load(workload);
    let n_hosts = topology.n_hosts();
    let cuts = topology.host_cuts();
    let (most, cut) = cuts
        .into_iter()
        .map(|cut| (load_max(cut, n_hosts, access), cut))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(most, _)| *most < load)?;
    let HostCut { hosts, bps } = cut;
    let offered = load * access.as_bps() as f64 * crossing(cut, n_hosts) * 1e-9;
    Some(format!(
        "the load of {load} is more than {most:.3}, the most that the core carries: {hosts} hosts \
         offer {offered:.0} Gbit/s to the others, and {} Gbit/s lead there",
        bps as f64 * 1e-9
    ))
}

/// Returns a sentence if the traffic between all pairs of hosts is more than a link carries, in a
/// network of hosts with several links: packets take those that are nearest to the peer.
pub(crate) fn full_link(
    topology: &Topology,
    names: &NamesSpec,
    access: Rate,
    workload: &WorkloadSpec,
) -> Option<String> {
    let load = uniform_load(workload);
    let full = topology.first_full(access).filter(|full| full.load < load)?;
    Some(format!(
        "the load of {load} is more than {:.3}, at which link {} is full in the direction from {}",
        full.load,
        names.target(topology, Target::Link(full.link)),
        names.node(full.from),
    ))
}

/// Returns a sentence if equally short paths between two hosts have several rates, in a fabric in
/// which a message keeps its path.
pub(crate) fn uneven_paths(sim: &SimSpec, names: &NamesSpec) -> Option<String> {
    if sim.fabric.spray != Spray::Ecmp {
        return None;
    }
    let UnevenPaths { ends, link, slowest, fastest } = sim.topology.uneven_paths()?;
    Some(format!(
        "topology: the shortest paths from {} to {} have rates from {} to {} Gbit/s: link {} is the \
         slowest, and a message that keeps its path may have it",
        names.node(Node::Host(ends.0)),
        names.node(Node::Host(ends.1)),
        slowest.as_bps() as f64 / 1e9,
        fastest.as_bps() as f64 / 1e9,
        names.target(&sim.topology, Target::Link(link)),
    ))
}

/// A sentence if links between switches carry less than hosts can send, for a transport that
/// schedules hosts' links alone.
pub(crate) fn narrow_core(topology: &Topology, transport: &str) -> Option<String> {
    let share = topology.bisection_share();
    (share < 1.0).then(|| {
        format!(
            "transport.name: {transport} schedules the links of hosts alone, and the links between \
             switches carry {:.1} % of what these can send: expect losses there",
            100.0 * share
        )
    })
}

/// A sentence if links between switches carry less than hosts can receive, for a transport whose
/// receivers request packets at the rate of their links.
pub(crate) fn narrow_core_of_receivers(topology: &Topology, transport: &str) -> Option<String> {
    let share = topology.bisection_share();
    (share < 1.0).then(|| {
        format!(
            "transport.name: receivers of {transport} request packets at the rate of their links, \
             and the links between switches carry {:.1} % of it: under load most packets may be \
             trimmed there and sent several times",
            100.0 * share
        )
    })
}

/// A sentence if a link between inner switches is slower than a link of a rack's switch to others,
/// for a transport that takes it for unlimited.
pub(crate) fn inner_links(
    topology: &Topology,
    names: &NamesSpec,
    transport: &str,
) -> Option<String> {
    let racks: BTreeSet<u32> = (0..topology.n_hosts()).map(|host| topology.rack(host)).collect();
    let is_rack = |node| matches!(node, Node::Switch(switch) if racks.contains(&switch));
    let is_core = |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
    let core = topology.links().iter().filter(is_core);
    let (inner, outer): (Vec<&Link>, Vec<&Link>) =
        core.partition(|link| !is_rack(link.a) && !is_rack(link.b));
    let slowest = inner.into_iter().min_by_key(|link| link.rates().0)?;
    let least = outer.iter().map(|link| link.rates().0).max()?;
    (slowest.rates().0 < least).then(|| {
        format!(
            "transport.name: the controller of {transport} takes links between inner switches for \
             unlimited, and {}-{} carries {} Gbit/s: expect losses there",
            names.node(slowest.a),
            names.node(slowest.b),
            slowest.rates().0.as_bps() as f64 / 1e9
        )
    })
}

/// A sentence if hosts have several rates, for a transport that takes all for as fast as the
/// slowest: its slots are of the rate `slots`.
pub(crate) fn one_rate(topology: &Topology, slots: Rate, transport: &str) -> Option<String> {
    let most = topology.fastest_host();
    (slots < most).then(|| {
        format!(
            "transport.name: {transport} takes all hosts for as fast as the slowest: hosts of up to {} \
             Gbit/s send at {}",
            most.as_bps() as f64 / 1e9,
            slots.as_bps() as f64 / 1e9
        )
    })
}

/// Returns a sentence if a link becomes slower during the run than the slots of a transport, which
/// are of the rate `slots`.
pub(crate) fn slowed_links(
    sim: &SimSpec,
    names: &NamesSpec,
    slots: Rate,
    transport: &str,
) -> Option<String> {
    let rate = |change: &LinkChange| change.rates.map(|[there, back]| there.min(back));
    let changes = sim.faults.changes.iter();
    let slowest = changes.filter(|change| rate(change).is_some_and(|rate| rate < slots));
    let slowest = slowest.min_by_key(|change| rate(change))?;
    Some(format!(
        "transport.name: {transport} has slots for {} Gbit/s, and faults.changes makes link {} one of \
         {}: expect losses, and messages that fail",
        slots.as_bps() as f64 / 1e9,
        names.target(&sim.topology, Target::Link(slowest.link)),
        rate(slowest)?.as_bps() as f64 / 1e9,
    ))
}

/// A sentence for a transport that serves one flow at a time.
pub(crate) fn one_flow(topology: &Topology, transport: &str) -> Option<String> {
    let (least, most) = (topology.slowest_host(), topology.fastest_host());
    (least < most).then(|| {
        format!(
            "transport.name: {transport} lets a host send one flow at a time and receive one: a host \
             of {} Gbit/s waits for peers of {}",
            most.as_bps() as f64 / 1e9,
            least.as_bps() as f64 / 1e9
        )
    })
}

/// A sentence for a transport in which fast hosts share a time with slow ones.
pub(crate) fn slowed(slowed: &Slowed, transport: &str) -> String {
    let Slowed { name, shared, fastest } = *slowed;
    format!(
        "transport.name: {transport} has one {name} for all hosts, {:.1} us for the slowest host: \
         between the fastest hosts alone it would be {:.1} us, and messages wait for the next one",
        shared.as_us_f64(),
        fastest.as_us_f64()
    )
}

/// Returns a sentence if links of several rates serve the same peers: links between two switches, or
/// links of a host by which it reaches the same hosts.
pub(crate) fn unequal_links(topology: &Topology, names: &NamesSpec) -> Option<String> {
    // Links of other planes serve other peers.
    let planes = topology.pairs().planes();
    let mut rates: BTreeMap<(Node, Node, usize), [(Rate, Node); 2]> = BTreeMap::new();
    for link in topology.links() {
        let together = match (link.a, link.b) {
            (Node::Switch(_), Node::Switch(_)) => Some((link.a.min(link.b), link.a.max(link.b), 0)),
            (Node::Host(host), Node::Switch(switch)) => {
                let of = |planes: &Planes| planes.of_switch(NodeId::new(host), switch);
                Some((link.a, link.a, planes.as_ref().and_then(of).unwrap_or(0)))
            }
            _ => None,
        };
        if let Some(together) = together {
            // Links with two rates are alike if the faster directions are.
            let rate = (link.rates().1, link.b);
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
            format!("of {} to {} and {}", names.node(a), ends[0], ends[1])
        }
        false => format!("between {} and {}", names.node(a), names.node(b)),
    };
    Some(format!(
        "topology: the links {links} have rates from {} to {} Gbit/s: packets \
         are spread over them by rate, and a message that keeps its path may have a slow one",
        slowest.0.as_bps() as f64 / 1e9,
        fastest.0.as_bps() as f64 / 1e9
    ))
}

/// Returns a sentence if links are too slow for the control packets that return for the data of the
/// other direction. `fastest` bounds the rate of data.
pub(crate) fn slow_returns(
    topology: &Topology,
    names: &NamesSpec,
    transport: &str,
    cuts: &[Cut],
    fastest: Option<Rate>,
) -> Option<String> {
    let share = |cut: &Cut| cut.reply.get() as f64 / (cut.payload + cut.header).get() as f64;
    let share = cuts.iter().map(share).fold(0.0, f64::max);
    let data = |found: &Return| found.data_bps.min(fastest.map_or(u64::MAX, Rate::as_bps)) as f64;
    let needed = |found: &Return| share * data(found);
    let lack = |found: &Return| needed(found) / found.back_bps as f64;
    let slow: Vec<Return> =
        topology.returns().into_iter().filter(|found| lack(found) > 1.0).collect();
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
        n => format!(" ({} more links are too slow)", n - 1),
    };
    Some(format!(
        "topology: {which} {have} {} Gbit/s from {} to {}, and the control packets of {transport} for \
         {} Gbit/s of data in the other direction need {:.3}: expect that data wait for them{others}",
        worst.back_bps as f64 / 1e9,
        names.node(from),
        names.node(to),
        data(worst) / 1e9,
        needed(worst) / 1e9,
    ))
}

/// Returns a sentence for a network in which a packet for one interface of a host may hold up those
/// for others: hosts reach peers by different interfaces, and have no endpoint for each.
pub(crate) fn partial_pairs(sim: &SimSpec) -> Option<String> {
    let is_held_up = match sim.planes() {
        Some(planes) => planes.is_shared(),
        None => {
            matches!(sim.fabric.interface, Interface::Pull)
                && sim.topology.pairs().has_partial_pairs()
        }
    };
    is_held_up.then(|| {
        "topology: some hosts reach their peers by different interfaces: a packet that is queued at \
         one of them holds up those that a host sends by the others"
            .to_owned()
    })
}

/// Returns a sentence for a network whose farthest hosts are much farther from each other than its
/// nearest; `sharing` is the transport if its hosts share times.
pub(crate) fn far_hosts(delays: &Delays, sharing: Option<&str>) -> Option<String> {
    if !delays.has_far_hosts() {
        return None;
    }
    let times = sharing.map(|name| format!(", and times that all hosts of {name} share,"));
    Some(format!(
        "topology: round trips take {:.3} to {:.3} us: memory and thresholds of ports{} follow from \
         the longest",
        delays.nearest().as_us_f64(),
        delays.facts().control_rtt.as_us_f64(),
        times.unwrap_or_default()
    ))
}

/// The load at which the links out of a group of hosts are full.
fn load_max(cut: HostCut, n_hosts: u32, access: Rate) -> f64 {
    cut.bps as f64 / (access.as_bps() as f64 * crossing(cut, n_hosts))
}

/// How many hosts' traffic leaves a group: each sends to all others alike.
fn crossing(cut: HostCut, n_hosts: u32) -> f64 {
    let (inside, all) = (f64::from(cut.hosts), f64::from(n_hosts));
    inside * (all - inside) / (all - 1.0)
}

/// The load, of the hosts' links, of traffic that goes between all pairs alike.
fn uniform_load(workload: &WorkloadSpec) -> f64 {
    match workload {
        WorkloadSpec::AllToAll(spec) if spec.hosts.is_none() => spec.load.unwrap_or(0.0),
        WorkloadSpec::IncastOverlay(spec) => spec.load + spec.incast_load,
        WorkloadSpec::Mix(spec) => spec.parts.iter().map(uniform_load).sum(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Plan, Registry};

    fn warnings(topology: &str, load: f64) -> Vec<String> {
        let text = format!(
            "transport = {{ name = 'ideal' }}\ntopology = {{ {topology} }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = {load}\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
        plan.check("plan", Path::new(".")).unwrap().warnings()
    }

    #[test]
    fn thresholds_of_marks_above_the_memory_are_told() {
        let text = "kind = 'star', hosts = 4 }\nfabric = { buffer-bytes = 9000, ecn-bytes = 9000";
        let expected = "fabric.ecn-bytes: ports tor-down of 100 Gbit/s never mark, as their memory \
                        of 9000 bytes is full before 9000 wait";
        assert_eq!(warnings(text, 0.5), [expected]);
        assert!(warnings(&text.replace("ecn-bytes = 9000", "ecn-bytes = 8000"), 0.5).is_empty());
    }

    #[test]
    fn loads_beyond_the_core_are_told_with_the_bound() {
        // 16 hosts of 144 offer 8 x 100 Gbit/s, of which 128 in 143 leave the rack.
        let half = "kind = 'leaf-spine', racks = 9, hosts-per-rack = 16, spines = 2";
        assert!(warnings(half, 0.55).is_empty());
        assert_eq!(
            warnings(half, 0.8),
            ["the load of 0.8 is more than 0.559, the most that the core carries: 16 hosts offer \
              1146 Gbit/s to the others, and 800 Gbit/s lead there"]
        );
    }

    #[test]
    fn networks_that_carry_everything_are_not_warned_of() {
        for topology in [
            "kind = 'leaf-spine', racks = 9, hosts-per-rack = 16, spines = 4",
            "kind = 'fat-tree', k = 4",
            "kind = 'star', hosts = 8",
        ] {
            assert!(warnings(topology, 1.0).is_empty(), "{topology}");
        }
    }

    fn topology(switches: u32, links: &[(&str, &str, f64)]) -> String {
        let link = |&(a, b, gbps): &(&str, &str, f64)| {
            format!("{{ between = ['{a}', '{b}'], gbps = {gbps} }}")
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let hosts = "hosts = ['a', 'b', 'c', 'd']";
        format!("kind = 'links', {hosts}, switches = {switches}, links = [{}]", links.join(", "))
    }

    #[test]
    fn links_of_different_planes_may_have_different_rates() {
        // Servers of two with a switch within; a rail for each place in a server, and a spine.
        let within =
            [("a", "s0", 400.0), ("b", "s0", 400.0), ("c", "s1", 400.0), ("d", "s1", 400.0)];
        let rails = |[even, odd, spine]: [&'static str; 3], gbps| {
            let of_hosts = [("a", even), ("b", odd), ("c", even), ("d", odd)];
            let of_hosts = of_hosts.map(|(host, rail)| (host, rail, gbps));
            [&of_hosts[..], &[(even, spine, 200.0), (odd, spine, 200.0)]].concat()
        };
        let first = rails(["s2", "s3", "s4"], 100.0);
        assert_eq!(warnings(&topology(5, &[&within[..], &first].concat()), 0.1), [""; 0]);
        let second = |gbps| rails(["s5", "s6", "s7"], gbps);
        let equal = [&within[..], &first, &second(100.0)].concat();
        assert_eq!(warnings(&topology(8, &equal), 0.1), [""; 0]);
        let unequal = [&within[..], &first, &second(50.0)].concat();
        let expected = "topology: the links of a to s5 and s2 have rates from 50 to 100 Gbit/s: \
                        packets are spread over them by rate, and a message that keeps its path may \
                        have a slow one";
        assert_eq!(warnings(&topology(8, &unequal), 0.1), [expected]);
    }

    #[test]
    fn pods_and_dumbbells_have_bounds_too() {
        let [pods] = &warnings("kind = 'fat-tree', k = 4, core-gbps = 40", 0.6)[..] else {
            panic!("one warning")
        };
        assert!(pods.contains("more than 0.429"), "{pods}");
        let [middle] = &warnings("kind = 'dumbbell', hosts-per-side = 4", 0.6)[..] else {
            panic!("one warning")
        };
        assert!(middle.contains("more than 0.438"), "{middle}");
    }
}
