//! Paths of several rates between the same hosts, and the links that uniform traffic fills first.

use rampmeter_types::{Rate, RateRange};

use super::{Node, Paths, Topology};

/// Equally short paths between two hosts, of which one is slower than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnevenPaths {
    /// The hosts.
    pub ends: (u32, u32),
    /// The slow link.
    pub link: u32,
    /// Rate of the slowest path.
    pub slowest: Rate,
    /// Rate of the fastest path.
    pub fastest: Rate,
}

/// A link that receives more of the packets of a pair of hosts than it carries. Each node spreads
/// packets over its links on shortest paths in proportion to their rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NarrowLink {
    /// The hosts.
    pub ends: (u32, u32),
    /// The link.
    pub link: u32,
    /// The end at which packets enter it.
    pub from: Node,
    /// Rate of the link in that direction.
    pub rate: Rate,
    /// The share of the pair's packets that it gets.
    pub share: f64,
    /// The rate of the pair if packets were spread by the rates of whole paths, over the rate at
    /// which the link is full.
    pub factor: f64,
}

/// The fastest path between two hosts, if all shortest paths together carry more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NarrowPath {
    /// The hosts.
    pub ends: (u32, u32),
    /// A link with the rate of the path.
    pub link: u32,
    /// Rate of the path.
    pub rate: Rate,
    /// The rate of all shortest paths together over that of the path.
    pub factor: f64,
}

/// Pairs of hosts up to which the load of every link is computed.
const PAIRS_MAX: usize = 4_096;
/// The same for hosts with several links, of which regular networks have no other limit.
const RAIL_PAIRS_MAX: usize = 65_536;
/// Pairs whose narrow links are compared.
const EXAMINED: usize = 16;

/// A link, and the load of uniform traffic between all hosts that fills it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullLink {
    /// The link.
    pub link: u32,
    /// The end at which packets enter it.
    pub from: Node,
    /// The load: the rate at which each host sends over the rate that loads count.
    pub load: f64,
}

impl Topology {
    /// Returns the hosts whose equally short paths have rates that differ most; `None` if all paths
    /// between any hosts have one rate. The links of hosts count, too.
    pub fn uneven_paths(&self) -> Option<UnevenPaths> {
        if self.has_equal_ways() && self.has_equal_interfaces() {
            return None;
        }
        let paths = Paths::new(self.clone());
        let pairs = self.distinct_pairs(&self.kinds_of_hosts());
        let uneven = pairs.into_iter().filter_map(|(src, dst)| uneven(&paths, src, dst));
        let ratio = |paths: &UnevenPaths| {
            paths.fastest.as_bps() as f64 / paths.slowest.as_bps().max(1) as f64
        };
        uneven.reduce(|most, next| if ratio(&next) > ratio(&most) { next } else { most })
    }

    /// Returns the link that slows a pair of hosts most if packets are spread over all shortest
    /// paths. `None` if no link slows any pair by 5 %. Nodes regard the rates of adjacent links
    /// only, so a slow link farther on receives as many packets as a fast one.
    pub fn narrow_link(&self) -> Option<NarrowLink> {
        if self.has_equal_ways() && self.has_equal_interfaces() {
            return None;
        }
        let paths = Paths::new(self.clone());
        let (kinds, rates) = (self.kinds_of_hosts(), self.host_rates());
        let mut spread = SpreadRates::new(&paths, self.n_switches());
        // The pairs with the largest ratios, which a narrow core may cause, too.
        let mut worst: Vec<(f64, u32, u32)> = Vec::new();
        for &dst in kinds.iter().filter_map(|kind| kind.first()) {
            spread.forget();
            for from in &kinds {
                let Some(&src) = from.iter().find(|&&src| src != dst) else { continue };
                let Some(full) = spread.rate_of_host(src, dst) else { continue };
                let most = rates[src as usize].tx.min(rates[dst as usize].rx);
                let ratio = most.as_bps() as f64 / full;
                let at = worst.partition_point(|(of, ..)| *of >= ratio);
                if at < EXAMINED {
                    worst.insert(at, (ratio, src, dst));
                    worst.truncate(EXAMINED);
                }
            }
        }
        let narrow = worst.into_iter().filter_map(|(_, src, dst)| narrow_link(&paths, src, dst));
        narrow.reduce(|most, next| if next.factor > most.factor { next } else { most })
    }

    /// Returns the link that uniform traffic between all hosts fills first; `access` is the rate
    /// that loads count. `None` if the network is regular and its links are alike:
    /// [`Topology::host_cuts`] has its capacity. `None` too if too many hosts differ.
    pub fn first_saturated_link(&self, access: Rate) -> Option<FullLink> {
        if self.has_only_slower_detours() {
            return None;
        }
        let kinds = self.kinds_of_hosts();
        let has_one_rail = self.rails().iter().all(|&links| links == 1);
        let n_most = if has_one_rail { PAIRS_MAX } else { RAIL_PAIRS_MAX };
        if kinds.len() * kinds.len() > n_most {
            return None;
        }
        let paths = Paths::new(self.clone());
        self.first_saturated_of(&paths, pairs_of(&kinds).into_iter(), access)
    }

    /// Returns the link that the traffic between `pairs` of hosts saturates first by `paths`.
    pub(super) fn first_saturated_of(
        &self,
        paths: &Paths,
        pairs: impl Iterator<Item = RepresentedPair>,
        access: Rate,
    ) -> Option<FullLink> {
        // By link and direction: the traffic if each host sends 1.
        let mut traffic = vec![[0.0; 2]; self.links.len()];
        let others = f64::from(self.n_hosts() - 1);
        for RepresentedPair { src, dst, n_src, n_dst } in pairs {
            for (link, from, share) in paths.shares(src, dst) {
                let (own, ends) = (Node::Host(src), self.links[link as usize]);
                let senders = if from == own { 1.0 } else { n_src };
                let is_last = ends.a == Node::Host(dst) || ends.b == Node::Host(dst);
                let receivers = if is_last { 1.0 } else { n_dst };
                let of = &mut traffic[link as usize][usize::from(from == ends.b)];
                *of += share * senders * receivers / others;
            }
        }
        let load = |(link, sums): (u32, [f64; 2])| {
            let ends = self.links[link as usize];
            [ends.a, ends.b].into_iter().zip(sums).map(move |(from, sum)| {
                let rate = ends.rate_from(from).as_bps() as f64 / access.as_bps() as f64;
                FullLink { link, from, load: rate / sum }
            })
        };
        (0..).zip(traffic).flat_map(load).min_by(|a, b| a.load.total_cmp(&b.load))
    }

    /// Returns the hosts that lose most if a message keeps one path. The shortest paths together
    /// have more capacity than the fastest path alone. `None` if no pair loses 5 %.
    pub fn narrow_path(&self) -> Option<NarrowPath> {
        if !self.has_several_paths() {
            return None;
        }
        let pairs = self.distinct_pairs(&self.kinds_of_hosts());
        if pairs.len() > PAIRS_MAX {
            return None;
        }
        let paths = Paths::new(self.clone());
        let narrow = pairs.into_iter().filter_map(|(src, dst)| narrow_path(&paths, src, dst));
        narrow.reduce(|most, next| if next.factor > most.factor { next } else { most })
    }
}

/// A pair of hosts, and the numbers of hosts that its ends represent.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepresentedPair {
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) n_src: f64,
    pub(super) n_dst: f64,
}

/// Returns a pair of hosts of each two kinds.
pub(super) fn pairs_of(kinds: &[Vec<u32>]) -> Vec<RepresentedPair> {
    let mut pairs = Vec::with_capacity(kinds.len() * kinds.len());
    for from in kinds {
        for to in kinds {
            let Some(&src) = from.first() else { continue };
            let Some(&dst) = to.iter().find(|&&dst| dst != src) else { continue };
            let own = usize::from(std::ptr::eq(from, to));
            let (n_src, n_dst) = (from.len() as f64, (to.len() - own) as f64);
            pairs.push(RepresentedPair { src, dst, n_src, n_dst });
        }
    }
    pairs
}

/// Returns the rates of the slowest and of the fastest path between two hosts; `None` if there is
/// no path.
fn extremes(hops: &[Vec<super::PathLink>]) -> Option<RateRange> {
    // By place in the hop that follows: the slowest and the fastest path from there on.
    let mut after: Vec<RateRange> = Vec::new();
    for links in hops.iter().rev() {
        let from = |(hop, leads): &super::PathLink| {
            let next = || leads.iter().filter_map(|&place| after.get(place).copied());
            let slowest = next().map(|rates| rates.slowest).min().unwrap_or(hop.rate);
            let fastest = next().map(|rates| rates.fastest).max().unwrap_or(hop.rate);
            RateRange { slowest: slowest.min(hop.rate), fastest: fastest.min(hop.rate) }
        };
        after = links.iter().map(from).collect();
    }
    let slowest = after.iter().map(|rates| rates.slowest).min()?;
    let fastest = after.iter().map(|rates| rates.fastest).max()?;
    Some(RateRange { slowest, fastest })
}

/// Returns the rate of all links of a hop, of the hop that carries least. A path has a link of each
/// hop.
fn together(hops: &[Vec<super::PathLink>]) -> f64 {
    let of_hop = |links: &Vec<super::PathLink>| -> f64 {
        links.iter().map(|(hop, _)| hop.rate.as_bps() as f64).sum()
    };
    hops.iter().map(of_hop).fold(f64::INFINITY, f64::min)
}

/// Returns the fastest path between two hosts if all paths together carry more.
fn narrow_path(paths: &Paths, src: u32, dst: u32) -> Option<NarrowPath> {
    let hops = paths.links(src, dst)?;
    let rate = extremes(&hops)?.fastest;
    let most = together(&hops);
    let factor = most / rate.as_bps() as f64;
    let links = paths.topology().links();
    let is_slow =
        |&(link, from, _): &(u32, Node, f64)| links[link as usize].rate_from(from) == rate;
    let (link, ..) = paths.shares(src, dst).into_iter().find(is_slow)?;
    (factor > 1.05).then_some(NarrowPath { ends: (src, dst), link, rate, factor })
}

/// Returns the rates of the paths between two hosts, if they differ.
fn uneven(paths: &Paths, src: u32, dst: u32) -> Option<UnevenPaths> {
    let hops = paths.links(src, dst)?;
    let RateRange { slowest, fastest } = extremes(&hops)?;
    if slowest == fastest {
        return None;
    }
    let shares = paths.shares(src, dst);
    let links = paths.topology().links();
    let is_slow =
        |&(link, from, _): &(u32, Node, f64)| links[link as usize].rate_from(from) == slowest;
    let (link, ..) = shares.into_iter().find(is_slow)?;
    Some(UnevenPaths { ends: (src, dst), link, slowest, fastest })
}

/// Rates at which nodes can send to one host if each spreads packets over its links.
struct SpreadRates<'a> {
    paths: &'a Paths,
    /// Rate of each switch in bits per second; `None` if it is not computed yet.
    of_switch: Vec<Option<f64>>,
}

impl<'a> SpreadRates<'a> {
    fn new(paths: &'a Paths, n_switches: u32) -> Self {
        Self { paths, of_switch: vec![None; n_switches as usize] }
    }

    /// Prepares for another receiver.
    fn forget(&mut self) {
        self.of_switch.fill(None);
    }

    /// Returns the rate from a host; `None` if there is no path.
    fn rate_of_host(&mut self, src: u32, dst: u32) -> Option<f64> {
        let rate = self.by(&self.paths.first_links(src, dst), dst);
        (rate > 0.0).then_some(rate)
    }

    /// Returns the rate by links, each with the node that it leads to.
    fn by(&mut self, links: &[(Rate, Node)], dst: u32) -> f64 {
        let total: f64 = links.iter().map(|(rate, _)| rate.as_bps() as f64).sum();
        let mut least = f64::INFINITY;
        for &(rate, to) in links {
            let own = rate.as_bps() as f64;
            let after = match to {
                Node::Switch(switch) => self.rate_of_switch(switch, dst),
                Node::Host(_) | Node::Arbiter(_) => own,
            };
            least = least.min(after.min(own) * total / own);
        }
        if links.is_empty() { 0.0 } else { least }
    }

    fn rate_of_switch(&mut self, switch: u32, dst: u32) -> f64 {
        if let Some(known) = self.of_switch[switch as usize] {
            return known;
        }
        let rate = self.by(&self.paths.next_links(switch, dst), dst);
        self.of_switch[switch as usize] = Some(rate);
        rate
    }
}

/// Returns the link that slows the packets between two hosts most, if they are spread.
fn narrow_link(paths: &Paths, src: u32, dst: u32) -> Option<NarrowLink> {
    let links = paths.topology().links();
    let shares = paths.shares(src, dst);
    let hops = paths.links(src, dst)?;
    if hops.iter().all(|links| links.len() == 1) {
        return None;
    }
    let most = together(&hops);
    let full = |(link, from, share): &(u32, Node, f64)| {
        links[*link as usize].rate_from(*from).as_bps() as f64 / share
    };
    let (link, from, share) = shares.into_iter().min_by(|a, b| full(a).total_cmp(&full(b)))?;
    let factor = most / full(&(link, from, share));
    let rate = links[link as usize].rate_from(from);
    (factor > 1.05).then_some(NarrowLink { ends: (src, dst), link, from, rate, share, factor })
}

#[cfg(test)]
mod tests {
    use rampmeter_types::Bytes;

    use super::*;
    use crate::topo::TopologySpec;

    /// Links from end to end with a rate in Gbit/s.
    fn build(hosts: u32, switches: u32, links: &[(&str, f64)]) -> Topology {
        let link = |(ends, gbps): &(&str, f64)| {
            let (a, b) = ends.split_once(' ').unwrap();
            format!("{{ between = ['{a}', '{b}'], gbps = {gbps:?} }}")
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let links = links.join(", ");
        let text =
            format!("kind = 'links'\nhosts = {hosts}\nswitches = {switches}\nlinks = [{links}]");
        toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
    }

    #[test]
    fn spines_of_two_rates_are_uneven_if_hosts_are_faster_than_one() {
        let links = |gbps, far| {
            [("h0 s0", gbps), ("h1 s1", gbps), ("s0 s2", 100.0), ("s0 s3", 100.0)]
                .into_iter()
                .chain([("s1 s2", 100.0), ("s1 s3", far)])
                .collect::<Vec<_>>()
        };
        let found = build(2, 4, &links(100.0, 40.0)).uneven_paths().unwrap();
        let gbps = |rate: Rate| rate.as_bps() / 1_000_000_000;
        assert_eq!((found.link, gbps(found.slowest), gbps(found.fastest)), (5, 40, 100));
        assert_eq!(build(2, 4, &links(25.0, 40.0)).uneven_paths(), None);
        assert_eq!(build(2, 4, &links(100.0, 100.0)).uneven_paths(), None);
    }

    #[test]
    fn a_message_that_keeps_its_path_has_one_of_several_slow_spines() {
        let links = |core| {
            let spines = [("s0 s2", core), ("s0 s3", core), ("s1 s2", core), ("s1 s3", core)];
            [&[("h0 s0", 100.0), ("h1 s1", 100.0)][..], &spines].concat()
        };
        let found = build(2, 4, &links(40.0)).narrow_path().unwrap();
        assert_eq!((found.ends, found.link, found.rate.as_bps()), ((0, 1), 2, 40_000_000_000));
        assert!((found.factor - 2.0).abs() < 1e-9, "{found:?}");
        assert!((build(2, 4, &links(80.0)).narrow_path().unwrap().factor - 1.25).abs() < 1e-9);
        assert_eq!(build(2, 4, &links(100.0)).narrow_path(), None);
        let two = [("h0 s0", 100.0), ("h0 s1", 100.0), ("h1 s0", 100.0), ("h1 s1", 100.0)];
        assert!((build(2, 2, &two).narrow_path().unwrap().factor - 2.0).abs() < 1e-9);
    }

    /// Half of the packets take the spine whose far link is slow.
    #[test]
    fn a_slow_link_behind_a_fast_one_is_narrow_for_spread_packets() {
        let links = |near, far| {
            let spines = [("s0 s2", 100.0), ("s0 s3", near), ("s1 s2", 100.0), ("s1 s3", far)];
            [&[("h0 s0", 100.0), ("h1 s1", 100.0)][..], &spines].concat()
        };
        let found = build(2, 4, &links(100.0, 10.0)).narrow_link().unwrap();
        let ends = (found.link, found.from, found.ends, found.share);
        assert_eq!(ends, (5, Node::Switch(3), (0, 1), 0.5));
        assert!((found.factor - 5.0).abs() < 1e-9, "{found:?}");
        // The leaf regards its slow link.
        assert_eq!(build(2, 4, &links(10.0, 10.0)).narrow_link(), None);
        assert_eq!(build(2, 4, &links(100.0, 100.0)).narrow_link(), None);
    }

    /// A line of three switches with a host each, and one more host at the middle one: links
    /// between switches carry the traffic of others.
    #[test]
    fn links_that_carry_the_traffic_of_others_are_full_first() {
        let hosts = [("h0 s0", 100.0), ("h1 s1", 100.0), ("h2 s2", 100.0), ("h3 s3", 100.0)];
        let ring = [("s0 s1", 50.0), ("s1 s2", 50.0), ("s2 s3", 50.0), ("s3 s0", 25.0)];
        let topology = build(4, 4, &[&hosts[..], &ring].concat());
        let full = topology.first_saturated_link(Rate::from_gbps(100)).unwrap();
        // Each host sends a third to either neighbour and to the opposite host.
        assert_eq!(full.link, 7);
        assert!(full.load < 0.55 && full.load > 0.4, "{full:?}");
    }

    /// Hosts 0 and 1 have fast links to switch 0, and a slow one to that of hosts 2 and 3.
    #[test]
    fn slots_have_the_rate_of_the_slowest_unpaced_path() {
        let fast = [("h0 s0", 100.0), ("h1 s0", 100.0), ("h2 s1", 100.0), ("h3 s1", 100.0)];
        let both = |more: &[(&'static str, f64)]| [&fast[..], more].concat();
        let trunk = ("s0 s1", 400.0);
        let gbps = |topology: Topology| topology.slot_rate().as_bps() / 1_000_000_000;
        assert_eq!(gbps(build(4, 2, &both(&[trunk]))), 100);
        // Host 2 receives from 0 and 1 by its slow link alone.
        assert_eq!(gbps(build(4, 2, &both(&[trunk, ("h2 s0", 1.0)]))), 1);
        // All send by the links by which they receive.
        let second = [("h0 s2", 1.0), ("h1 s2", 1.0), ("h2 s2", 1.0), ("h3 s2", 1.0)];
        assert_eq!(gbps(build(4, 3, &both(&second))), 101);
    }

    #[test]
    fn a_slow_second_interface_is_full_first() {
        let links = [("h0 s0", 100.0), ("h1 s0", 100.0), ("h2 s1", 100.0)];
        let more = [("h2 s0", 1.0), ("s0 s1", 100.0)];
        let topology = build(3, 2, &[&links[..], &more].concat());
        let full = topology.first_saturated_link(Rate::from_gbps(100)).unwrap();
        // It is nearer to both others than the fast one.
        assert_eq!(full.link, 3);
        assert!((full.load - 0.01).abs() < 1e-9, "{full:?}");
        assert_eq!(build(2, 1, &links[..2]).first_saturated_link(Rate::from_gbps(100)), None);
    }

    /// A packet between hosts takes either interface. One to an arbiter takes the interface that
    /// leads to it.
    #[test]
    fn delays_are_those_of_the_slower_interface_and_of_arbiters() {
        use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};
        let fast = [("h0 s1", 100.0), ("h1 s1", 100.0)];
        let slow = [("h0 s0", 0.1), ("h1 s0", 0.1)];
        let one = build(2, 2, &[&fast[..], &slow].concat());
        let other = build(2, 2, &[&slow[..], &fast].concat());
        let control = Bytes::new(1_250);
        let rtt = |topology: &Topology| topology.delays(control, control).facts().control_rtt;
        assert!(rtt(&one).as_us_f64() > 400.0);
        assert_eq!(rtt(&one), rtt(&other));
        let need = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::FirstRack };
        let topology = one.with_arbiters(&[need]);
        assert_eq!(topology.neighbours_of(Node::Arbiter(0)), [Node::Switch(1)]);
        assert!(topology.arbiter_rtt(control).as_us_f64() < 10.0);
    }
}
