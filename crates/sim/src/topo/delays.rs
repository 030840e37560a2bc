//! Delays between hosts without load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rampmeter_types::{Bytes, FabricFacts, Rate, RoundTrip, RoundTrips, Span, Wiring};

use super::{Node, PathHop, Paths, Topology};

/// Maximum ratio of round trips of full packets in one class. Racks, pods and cores of regular
/// networks are in one class. So each pair of their hosts has the longest round trip of the
/// network, as in papers. Distant hosts are in other classes, as are hosts with links much slower
/// than others.
const CLASS: u64 = 4;

/// Delays between hosts without load, of full packets and of control packets.
#[derive(Clone, Debug)]
pub struct Delays {
    facts: FabricFacts,
    wiring: Arc<Wiring>,
    nearest: Span,
    switches: u32,
    round_trips: Option<RoundTrips>,
    has_far_hosts: bool,
}

impl Delays {
    /// Returns the facts from which protocols derive their parameters: round trips are those of the
    /// hosts that are farthest from each other.
    pub fn facts(&self) -> FabricFacts {
        self.facts
    }

    /// Returns the wiring of the network.
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Returns the delays with a round trip of control packets of at least `control`.
    #[must_use]
    pub fn with_control_rtt(mut self, control: Span) -> Self {
        self.facts.control_rtt = self.facts.control_rtt.max(control);
        self.facts.data_rtt = self.facts.data_rtt.max(self.facts.control_rtt);
        self
    }

    /// Returns the round trip of a control packet between the nearest hosts.
    pub fn nearest(&self) -> Span {
        self.nearest
    }

    /// Returns true if control packets take much longer between some hosts than between others.
    pub fn has_far_hosts(&self) -> bool {
        self.has_far_hosts
    }

    /// Returns the number of switches on the path between hosts that has most.
    pub fn switches(&self) -> u32 {
        self.switches
    }

    /// Returns the round trips of pairs of hosts; `None` if all are of one class.
    pub fn round_trips(&self) -> Option<&RoundTrips> {
        self.round_trips.as_ref()
    }
}

impl Topology {
    /// Returns the delays between hosts for full packets of `data` bytes and control packets of
    /// `control` bytes on the wire. Packets take the slowest of equally short paths.
    pub fn delays(&self, data: Bytes, control: Bytes) -> Delays {
        let kinds = self.kinds_of_hosts();
        let paths = Paths::new(self.clone());
        let one_way = self.one_way(&paths, data, control);
        let mut longest = RoundTrip { data: Span::ZERO, control: Span::ZERO };
        let (mut nearest, mut shortest, mut switches) = (Span::MAX, Span::MAX, 0);
        let pairs = self.distinct_pairs(&kinds).into_iter();
        for (hops, time) in pairs.filter_map(|(src, dst)| one_way(src, dst)) {
            longest = longest.max(time);
            nearest = nearest.min(time.control);
            shortest = shortest.min(time.data);
            switches = switches.max(hops as u32 - 1);
        }
        let has_far_hosts = longest.control > nearest * CLASS;
        let has_classes = has_far_hosts || longest.data > shortest * CLASS;
        let round_trips = has_classes.then(|| classes(&kinds, one_way));
        let facts = FabricFacts {
            n_hosts: self.n_hosts(),
            access_rate: self.slowest_host(),
            core_rate: self.narrowest_share(),
            data_rtt: longest.data * 2,
            control_rtt: longest.control * 2,
            abort_timeout_min: Span::ZERO,
        };
        let nearest = nearest.min(longest.control) * 2;
        let wiring = Arc::clone(&self.wiring);
        Delays { facts, wiring, nearest, switches, round_trips, has_far_hosts }
    }

    /// Returns the longest round trip of a control packet of `control` bytes between a host and an
    /// arbiter, or zero if there is no arbiter. The time on the arbiter's link does not count.
    pub fn arbiter_rtt(&self, control: Bytes) -> Span {
        if self.n_arbiters() == 0 {
            return Span::ZERO;
        }
        let hosts: Vec<u32> =
            self.kinds_of_hosts().iter().filter_map(|kind| kind.first().copied()).collect();
        let paths = Paths::new(self.clone());
        let stations = self.n_hosts()..self.n_hosts() + self.n_arbiters();
        let pairs = stations.flat_map(|arbiter| hosts.iter().map(move |&host| (host, arbiter)));
        let longest = pairs.filter_map(|(host, arbiter)| {
            let there = paths.slowest_path(host, arbiter, control)?;
            let (own, shared) = there.split_last()?;
            let there = idle(shared, control) + own.delay;
            let back = paths.slowest_path(arbiter, host, control)?;
            let (own, shared) = back.split_first()?;
            Some(there + own.delay + idle(shared, control))
        });
        longest.max().unwrap_or(Span::ZERO)
    }

    /// Returns the highest rate of slots that all links between hosts can carry. It is that of the
    /// slowest host. It is less if a host with several links reaches a peer by links slower than
    /// those by which it sends. The links of a sender pace it.
    pub fn slot_rate(&self) -> Rate {
        let slowest = self.slowest_host();
        if self.rails().iter().all(|&links| links == 1) {
            return slowest;
        }
        let kinds = self.kinds_of_hosts();
        let paths = Paths::new(self.clone());
        let rates = self.distinct_pairs(&kinds).into_iter().filter_map(|(src, dst)| {
            let shares = paths.shares(src, dst);
            let limit = |&(link, from, share): &(u32, Node, f64)| {
                self.links[link as usize].rate_from(from).as_bps() as f64 / share
            };
            let is_own = |from: Node| from == Node::Host(src);
            let (own, others): (Vec<_>, Vec<_>) =
                shares.into_iter().partition(|&(_, from, _)| is_own(from));
            let sends = own.iter().map(limit).fold(f64::INFINITY, f64::min);
            let carried = others.iter().map(limit).fold(f64::INFINITY, f64::min);
            // Shares are sums of fractions.
            (carried < sends * (1.0 - 1e-6)).then_some(carried)
        });
        let carried = rates.fold(f64::INFINITY, f64::min).min(slowest.as_bps() as f64);
        Rate::from_bps(carried as u64).unwrap_or(slowest)
    }

    /// Returns the facts that protocols derive their parameters from, for full packets of `data`
    /// bytes and control packets of `control` bytes on the wire.
    pub fn facts(&self, data: Bytes, control: Bytes) -> FabricFacts {
        self.delays(data, control).facts()
    }

    /// Returns the hosts by kind: those whose links lead to the same switches and are alike.
    pub(super) fn kinds_of_hosts(&self) -> Vec<Vec<u32>> {
        let mut links = vec![Vec::new(); self.n_hosts() as usize];
        for (host, link) in self.access() {
            let end = if link.a == Node::Host(host) { link.b } else { link.a };
            links[host as usize].push((
                end,
                link.rate_to(end),
                link.rate_from(end),
                link.propagation,
            ));
        }
        let mut kinds: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (mut own, host) in links.into_iter().zip(0..) {
            own.sort_unstable();
            kinds.entry(own).or_default().push(host);
        }
        kinds.into_values().collect()
    }

    /// Returns a function of two hosts that returns the hops of the path and its one-way delays;
    /// `None` if there is no path.
    fn one_way(
        &self,
        paths: &Paths,
        data: Bytes,
        control: Bytes,
    ) -> impl Fn(u32, u32) -> Option<(usize, RoundTrip)> {
        let has_equal_ways = self.has_equal_ways() && self.has_equal_interfaces();
        move |src, dst| {
            if has_equal_ways {
                let path = paths.hops(src, dst)?;
                let one_way = RoundTrip { data: idle(&path, data), control: idle(&path, control) };
                return Some((path.len(), one_way));
            }
            let path = paths.slowest_path(src, dst, data)?;
            let control = idle(&paths.slowest_path(src, dst, control)?, control);
            Some((path.len(), RoundTrip { data: idle(&path, data), control }))
        }
    }

    /// Returns true if all links of each host are alike. A packet may take any of them.
    pub(super) fn has_equal_interfaces(&self) -> bool {
        let mut of_hosts = vec![None; self.n_hosts() as usize];
        self.access().all(|(host, link)| {
            let own = (link.rate, link.rate_back, link.propagation);
            *of_hosts[host as usize].get_or_insert(own) == own
        })
    }

    /// Returns true if all links between switches of two levels are alike, so that equally short
    /// paths take the same time.
    pub(super) fn has_equal_ways(&self) -> bool {
        let mut kinds = BTreeMap::new();
        self.links.iter().all(|link| {
            let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { return true };
            let level = |switch: u32| self.levels[switch as usize];
            let levels = (level(a).min(level(b)), level(a).max(level(b)));
            let kind = (link.rate, link.rate_back, link.propagation);
            *kinds.entry(levels).or_insert(kind) == kind && link.rate == link.rate_back
        })
    }
}

/// Returns how long a packet of `bytes` takes on an idle path.
fn idle(path: &[PathHop], bytes: Bytes) -> Span {
    path.iter().fold(Span::ZERO, |sum, hop| sum + hop.delay + hop.rate.tx_time(bytes))
}

/// Returns the round trips of pairs of hosts by class, from the longest on, with delays that
/// `between` returns for two hosts. Both directions of a pair have that of the slower one.
fn classes(
    kinds: &[Vec<u32>],
    between: impl Fn(u32, u32) -> Option<(usize, RoundTrip)>,
) -> RoundTrips {
    let n = kinds.len();
    let mut one_way = vec![RoundTrip { data: Span::ZERO, control: Span::ZERO }; n * n];
    for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
        let src = kinds[from].first();
        let Some((&src, &dst)) = src.zip(kinds[to].get(usize::from(from == to))) else { continue };
        let Some((_, time)) = between(src, dst) else { continue };
        for place in [from * n + to, to * n + from] {
            one_way[place] = one_way[place].max(time);
        }
    }
    let known: BTreeSet<Span> = one_way.iter().map(|time| time.data).collect();
    let mut longest: Vec<Span> = Vec::new();
    for &time in known.iter().rev().filter(|&&time| time > Span::ZERO) {
        if longest.last().is_none_or(|&last| last > time * CLASS) {
            longest.push(time);
        }
    }
    let mut spans = vec![RoundTrip { data: Span::ZERO, control: Span::ZERO }; longest.len()];
    let mut of_pairs = Vec::with_capacity(n * n);
    for time in one_way {
        // No path: the longest, which is the first.
        let class = longest.iter().rposition(|&longest| time.data <= longest).unwrap_or(0);
        let class = if time.data == Span::ZERO { 0 } else { class };
        spans[class] = spans[class].max(time);
        of_pairs.push(class as u8);
    }
    for span in &mut spans {
        *span = RoundTrip { data: span.data * 2, control: span.control * 2 };
    }
    let mut of_hosts = vec![0; kinds.iter().map(Vec::len).sum()];
    for (hosts, kind) in kinds.iter().zip(0..) {
        for &host in hosts {
            of_hosts[host as usize] = kind;
        }
    }
    RoundTrips::new(of_hosts, of_pairs, spans)
}

/// Properties of the network that bound queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkShape {
    /// Switches on the path between hosts that has most.
    pub switches: u32,
    /// The fastest link's rate over the slowest host link's, rounded down.
    pub ratio: u32,
    /// The most ports of any switch.
    pub ports: u32,
    /// The number of the slowest link, if it is slower than the slowest link of a host.
    pub slower: Option<u32>,
    /// The most links of any host.
    pub rails: u32,
}

impl Topology {
    /// Returns the facts on which bounds on queueing depend; `delays` are those of this topology.
    pub fn shape(&self, delays: &Delays) -> NetworkShape {
        let slowest =
            self.access().map(|(_, link)| link.rates().slowest.as_bps()).min().unwrap_or(1);
        let fastest = self.links.iter().map(|link| link.rates().fastest.as_bps()).max();
        let mut ports = vec![0; self.levels.len()];
        for end in self.links.iter().flat_map(|link| [link.a, link.b]) {
            if let Node::Switch(switch) = end {
                ports[switch as usize] += 1;
            }
        }
        let links =
            (0..).zip(&self.links).map(|(number, link)| (link.rates().slowest.as_bps(), number));
        NetworkShape {
            switches: delays.switches(),
            ratio: fastest.map_or(1, |rate| u32::try_from(rate / slowest).unwrap_or(u32::MAX)),
            ports: ports.into_iter().max().unwrap_or(0),
            slower: links.filter(|&(bps, _)| bps < slowest).min().map(|(_, number)| number),
            rails: self.rails().into_iter().max().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_types::NodeId;

    use super::*;
    use crate::topo::TopologySpec;

    fn delays(spec: &str) -> (Topology, Delays) {
        let topology = toml::from_str::<TopologySpec>(spec).unwrap().build().unwrap();
        let delays = topology.delays(Bytes::new(1_500), Bytes::new(64));
        (topology, delays)
    }

    #[test]
    fn regular_networks_have_one_round_trip() {
        for spec in [
            "kind = 'star'\nhosts = 4",
            "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 4\nspines = 2",
            "kind = 'fat-tree'\nk = 8",
            "kind = 'dumbbell'\nhosts-per-side = 3\ncore-gbps = 10.0",
        ] {
            assert_eq!(delays(spec).1.round_trips(), None, "{spec}");
        }
    }

    /// Hosts at 1, 1, 10, 12 and 500 us from one switch. Delays one way are 2, 11 to 13 and 22, and
    /// 501 to 512 us.
    #[test]
    fn round_trips_of_pairs_are_those_of_their_class() {
        let links = [1, 1, 10, 12, 500].iter().zip(0..).map(|(us, host)| {
            let ends = format!("between = ['h{host}', 's0']");
            format!("{{ {ends}, gbps = 100.0, propagation-ns = {us}000.0 }}")
        });
        let links = links.collect::<Vec<_>>().join(",");
        let spec = format!(
            "kind = 'links'\nhosts = 5\nswitches = 1\nswitch-ns = 0.0\nhost-ns = 0.0\n\
             links = [{links}]"
        );
        let (topology, delays) = delays(&spec);
        let pairs = topology.pairs().with_round_trips(delays.round_trips().cloned());
        let us = |a, b| {
            let of = pairs.round_trip(NodeId::new(a), NodeId::new(b)).unwrap();
            (of.control - Span::from_ps(20_480)).as_us_f64()
        };
        let pairs_of_hosts = [(0, 1), (0, 2), (2, 3), (0, 4), (3, 4), (4, 3)];
        assert_eq!(
            pairs_of_hosts.map(|(a, b)| us(a, b)),
            [4.0, 44.0, 44.0, 1024.0, 1024.0, 1024.0]
        );
        assert_eq!(delays.facts().control_rtt, Span::from_us(1_024) + Span::from_ps(20_480));
    }
}
