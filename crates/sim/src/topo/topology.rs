//! Checked topologies, and facts about their nodes and links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace};
pub use rampmeter_types::wiring::{Link, Node};
use rampmeter_types::{DuplexRates, Rate, RateRange, Span, Wiring};

use super::cables::CableDelays;
use super::routes::{Routes, SharedRoutes};
use super::target::{LinkChange, Target};

/// One hop of an idle path: a link's rate and its delay. The delay is the time from the last bit's
/// departure until the far end can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHop {
    /// The link's rate.
    pub rate: Rate,
    /// Propagation and processing at the far end.
    pub delay: Span,
}

/// A link of a hop, and the places in the next hop of those that it leads to.
pub type PathLink = (PathHop, Vec<usize>);

/// A checked topology: its wiring has passed `Topology::check`. Clones share the wiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub(super) wiring: Arc<Wiring>,
    /// Differences of cables, if any.
    pub(super) cables: Option<CableDelays>,
    pub(super) routes: SharedRoutes,
}

impl Deref for Topology {
    type Target = Wiring;

    fn deref(&self) -> &Wiring {
        &self.wiring
    }
}

/// A link that joins an arbiter to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterLink {
    /// The switch it leads to.
    pub switch: u32,
    /// The rate of its link.
    pub rate: Rate,
    /// The propagation of its link.
    pub propagation: Span,
}

impl Topology {
    /// Returns the wiring.
    pub fn wiring(&self) -> &Arc<Wiring> {
        &self.wiring
    }

    pub(super) fn wiring_mut(&mut self) -> &mut Wiring {
        self.routes = SharedRoutes::default();
        Arc::make_mut(&mut self.wiring)
    }

    /// Returns the routes over all links. They are computed once for all clones.
    pub fn routes(&self) -> &Routes {
        self.routes.get_or_init(|| Routes::new(self, &|_| true))
    }

    /// Returns the number of hosts.
    pub fn n_hosts(&self) -> u32 {
        self.n_hosts
    }

    /// Returns the number of arbiters. Their numbers follow those of the hosts.
    pub fn n_arbiters(&self) -> u32 {
        self.n_arbiters
    }

    /// Returns the topology with one more arbiter, which processes packets as long as hosts do.
    #[must_use]
    pub fn with_arbiter(self, link: ArbiterLink) -> Self {
        self.with_arbiter_at(&[link])
    }

    /// Returns the topology with one more arbiter, at several switches. It sends a packet by the
    /// link whose switch is nearest to the destination, of equals by the first. Each link has a
    /// queue. Packets for it are forwarded to the nearest of its switches.
    #[must_use]
    pub fn with_arbiter_at(mut self, links: &[ArbiterLink]) -> Self {
        assert!(!links.is_empty(), "an arbiter has a link");
        for &ArbiterLink { switch, rate, propagation } in links {
            assert!(switch < self.n_switches(), "no switch {switch} for an arbiter");
            let (a, b) = (Node::Arbiter(self.n_arbiters), Node::Switch(switch));
            self.wiring_mut().links.push(Link::new(a, b, rate, propagation));
        }
        let wiring = self.wiring_mut();
        wiring.tors.push(links[0].switch);
        wiring.n_arbiters += 1;
        self
    }

    /// Returns the topology with the arbiters that a transport needs, each at one of three places.
    /// At the first rack that most hosts reach, it has the shortest cable of that rack's hosts. At
    /// every rack, it has the shortest cable of that rack's hosts. If cables of a pod differ, those
    /// of arbiters at every rack do too. At given switches, it has the cables of their first hosts
    /// or, without hosts, of their first links.
    ///
    /// # Panics
    /// If the network has no such switch.
    #[must_use]
    pub fn with_arbiters(mut self, needs: &[ArbiterNeed]) -> Self {
        let RateRange { slowest, fastest } = self.arbiter_rates();
        for need in needs {
            let rate = need.rate.resolve(slowest, fastest);
            let ends = match need.place {
                ArbiterPlace::FirstRack => {
                    let rack = self.common_rack().0;
                    vec![(rack, self.shortest_cable(rack))]
                }
                ArbiterPlace::EveryRack => self.cables_of_racks(),
                ArbiterPlace::Switches(ref switches) => self.cables_of_switches(switches),
            };
            let link = |(switch, propagation)| ArbiterLink { switch, rate, propagation };
            self = self.with_arbiter_at(&ends.into_iter().map(link).collect::<Vec<_>>());
        }
        self
    }

    /// Returns the first rack's switch that most hosts reach, and true if all hosts reach it.
    /// Several interfaces may lead to switches that are not joined: of those that as many hosts
    /// reach, it is the one with the fastest links.
    pub fn common_rack(&self) -> (u32, bool) {
        let parts = self.parts();
        let switch_of = |link: Link| match (link.a, link.b) {
            (Node::Switch(switch), _) | (_, Node::Switch(switch)) => switch,
            _ => unreachable!("hosts are joined to switches"),
        };
        let mut reached: BTreeMap<u32, (BTreeSet<u32>, u64)> = BTreeMap::new();
        for (host, link) in self.access() {
            let (hosts, bps) = reached.entry(parts[switch_of(link) as usize]).or_default();
            hosts.insert(host);
            *bps += link.rates().slowest.as_bps();
        }
        let most =
            reached.iter().max_by_key(|(part, (hosts, bps))| (hosts.len(), *bps, Reverse(**part)));
        let (&best, (hosts, _)) = most.expect("a topology has hosts");
        let within = || self.access().filter(|(_, link)| parts[switch_of(*link) as usize] == best);
        let first = match reached.len() {
            1 => 0,
            _ => within().next().map_or(0, |(host, _)| host),
        };
        // The first of the fastest links of the first host.
        let own = within().filter(|(host, _)| *host == first).zip((0..).map(Reverse));
        let fastest = own.max_by_key(|((_, link), place)| (link.rates().slowest, *place));
        let rack = fastest.map_or(self.rack(first), |((_, link), _)| switch_of(link));
        (rack, hosts.len() as u32 == self.n_hosts())
    }

    /// Returns the switch of each rack with the propagation of one more arbiter's link to it.
    fn cables_of_racks(&self) -> Vec<(u32, Span)> {
        let racks = self.racks();
        if let Some(cables) = self.cables {
            let drawn = cables.of_arbiter(self.n_stations(), racks.len());
            return racks.into_iter().zip(drawn).collect();
        }
        racks.into_iter().map(|rack| (rack, self.shortest_cable(rack))).collect()
    }

    /// Returns switches with the propagation of an additional arbiter's link to each. It is that of
    /// the first link to a host or, without hosts, of the first link.
    fn cables_of_switches(&self, switches: &[u32]) -> Vec<(u32, Span)> {
        let ports = self.ports();
        let cable = |&switch: &u32| {
            let own = &ports[switch as usize];
            let to_host = own.iter().find(|port| matches!(port.to, Node::Host(_)));
            let first = to_host.or(own.first()).expect("every switch has a link");
            (switch, first.link.propagation)
        };
        switches.iter().map(cable).collect()
    }

    /// Returns the shortest propagation between a rack's switch and one of its hosts.
    fn shortest_cable(&self, rack: u32) -> Span {
        let links = self.access().map(|(_, link)| link);
        let its = links.filter(|link| [link.a, link.b].contains(&Node::Switch(rack)));
        its.map(|link| link.propagation).min().unwrap_or(self.links[0].propagation)
    }

    /// Returns the rates from which those of arbiters' links follow. The lowest is that of the
    /// slowest link; if hosts' links have several rates, it is that of the fastest link of the
    /// median host. The highest is that of the fastest link. One slow host does not make the
    /// arbiter slow.
    pub fn arbiter_rates(&self) -> RateRange {
        let RateRange { slowest, fastest } = self.rates();
        let mut of_hosts = vec![None; self.n_hosts() as usize];
        for (host, link) in self.access() {
            of_hosts[host as usize] = of_hosts[host as usize].max(Some(link.rates().slowest));
        }
        let is_alike = |(_, link): (u32, Link)| Some(link.rates().slowest) == of_hosts[0];
        if self.access().all(is_alike) {
            return RateRange { slowest, fastest };
        }
        of_hosts.sort_unstable();
        RateRange { slowest: of_hosts[(of_hosts.len() - 1) / 2].unwrap_or(slowest), fastest }
    }

    /// Returns true if all links between switches have the same rate in both directions.
    pub fn has_one_core_rate(&self) -> bool {
        let is_core = |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let mut rates =
            self.links.iter().filter(is_core).flat_map(|link| [link.rate, link.rate_back]);
        rates.next().is_none_or(|first| rates.all(|rate| rate == first))
    }

    /// Returns the rate of the slowest link between switches, or of the fastest link without any.
    pub fn core_rate(&self) -> Rate {
        let is_core = |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let slowest = self.links.iter().filter(is_core).map(|link| link.rates().slowest).min();
        slowest.unwrap_or(self.rates().fastest)
    }

    /// Returns the topology in which each link is always as fast and as short as it ever is.
    #[must_use]
    pub fn with_best_links(mut self, changes: &[LinkChange]) -> Self {
        for change in changes {
            let link = &mut self.wiring_mut().links[change.link as usize];
            if let Some([there, back]) = change.rates {
                (link.rate, link.rate_back) = (link.rate.max(there), link.rate_back.max(back));
            }
            if let Some(propagation) = change.propagation {
                link.propagation = link.propagation.min(propagation);
            }
        }
        self
    }

    /// Returns the topology in which each link always has its maximum rate and delay. In it the
    /// most bytes are on links.
    #[must_use]
    pub fn with_fullest_links(self, changes: &[LinkChange]) -> Self {
        let longest = self.clone().with_longest_links(changes);
        let mut fullest = self.with_best_links(changes);
        for (link, longest) in fullest.wiring_mut().links.iter_mut().zip(&longest.links) {
            link.propagation = longest.propagation;
        }
        fullest
    }

    /// Returns the topology in which each link is always as long as it ever is.
    #[must_use]
    pub fn with_longest_links(mut self, changes: &[LinkChange]) -> Self {
        for change in changes {
            // Arbiters have no links yet.
            let links = &mut self.wiring_mut().links;
            let Some(link) = links.get_mut(change.link as usize) else { continue };
            link.propagation = link.propagation.max(change.propagation.unwrap_or(Span::ZERO));
        }
        self
    }

    /// Returns true if any arbiter has several links.
    pub(crate) fn has_several_links(&self) -> bool {
        (0..self.n_arbiters).any(|arbiter| self.links_of(Node::Arbiter(arbiter)).len() > 1)
    }

    /// Returns the links of a node, by place among [`Topology::links`].
    pub(crate) fn links_of(&self, node: Node) -> Vec<u32> {
        let links = self.links.iter().zip(0..);
        links.filter(|(l, _)| l.a == node || l.b == node).map(|(_, number)| number).collect()
    }

    /// Returns the link of this name: its place among [`Topology::links`], or its two ends, such as
    /// `h0-s3` or `s3-h0`. Of several between the same ends, `s0-s4#1` is the second.
    ///
    /// # Errors
    /// A text with the expected form.
    pub fn link_named(&self, name: &str) -> Result<u32, String> {
        let count = self.links.len();
        if let Ok(number) = name.parse::<u32>() {
            let known = (number as usize) < count;
            return if known { Ok(number) } else { Err(format!("a number below {count}")) };
        }
        let expected = || "the ends of a link, such as \"h0-s0\", or its number".to_owned();
        let (ends, which) = name.split_once('#').unwrap_or((name, "0"));
        let which: usize = which.parse().map_err(|_| expected())?;
        let (a, b) = ends.split_once('-').ok_or_else(expected)?;
        let joins = |link: &Link| {
            let (x, y) = (link.a.to_string(), link.b.to_string());
            (x == a && y == b) || (x == b && y == a)
        };
        let links = self.links.iter().zip(0..);
        let mut between = links.filter(|(link, _)| joins(link)).map(|(_, number)| number);
        between
            .nth(which)
            .ok_or_else(|| format!("the ends of a link of the topology ({})", self.sample()))
    }

    /// Returns names of links for messages.
    fn sample(&self) -> String {
        let names = (0..self.links.len().min(3) as u32).map(|l| self.name(Target::Link(l)));
        names.chain([String::from("...")]).collect::<Vec<_>>().join(", ")
    }

    /// Returns the name of a failing node or link: `h0`, `s3`, `a1`, or the ends of a link, such as
    /// `h0-s3`.
    pub fn name(&self, target: Target) -> String {
        match target {
            Target::Link(link) => {
                let Link { a, b, .. } = self.links[link as usize];
                format!("{a}-{b}")
            }
            Target::Host(host) => Node::Host(host).to_string(),
            Target::Switch(switch) => Node::Switch(switch).to_string(),
            Target::Arbiter(arbiter) => Node::Arbiter(arbiter).to_string(),
        }
    }

    /// Returns the tier of a switch, from 1: links to the nearest host.
    pub fn level(&self, switch: u32) -> u32 {
        self.levels[switch as usize].into()
    }

    /// Returns the links; a link's place is its number in fault plans.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Processing time of a packet that enters `node`.
    pub(crate) fn latency(&self, node: Node) -> Span {
        match node {
            Node::Host(_) | Node::Arbiter(_) => self.host_latency,
            Node::Switch(_) => self.switch_latency,
        }
    }

    /// Returns the rates at which each host sends and receives by all its links at once.
    pub fn host_rates(&self) -> Vec<DuplexRates> {
        let mut bps = vec![(0, 0); self.n_hosts() as usize];
        for (host, link) in self.access() {
            let (sends, receives) = &mut bps[host as usize];
            *sends += link.rate_to(link.b).as_bps();
            *receives += link.rate_from(link.b).as_bps();
        }
        let rate = |bps| Rate::from_bps(bps).expect("every host has a link");
        bps.into_iter().map(|(tx, rx)| DuplexRates { tx: rate(tx), rx: rate(rx) }).collect()
    }

    /// Returns the lowest rate at which any host sends or receives.
    pub fn slowest_host(&self) -> Rate {
        let slower = self.host_rates().into_iter().map(|rates| rates.tx.min(rates.rx));
        slower.min().expect("a topology has hosts")
    }

    /// Returns the highest rate at which any host sends or receives.
    pub fn fastest_host(&self) -> Rate {
        let faster = self.host_rates().into_iter().map(|rates| rates.tx.max(rates.rx));
        faster.max().expect("a topology has hosts")
    }
}
