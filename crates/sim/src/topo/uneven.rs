//! Paths of several rates between the same hosts, and the links that uniform traffic fills first.

use rampmeter_core::Rate;

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
        let pairs = self.pairs_of_kinds();
        let uneven = pairs.into_iter().filter_map(|(src, dst, ..)| uneven(&paths, src, dst));
        let ratio = |paths: &UnevenPaths| {
            paths.fastest.as_bps() as f64 / paths.slowest.as_bps().max(1) as f64
        };
        uneven.reduce(|most, next| if ratio(&next) > ratio(&most) { next } else { most })
    }

    /// Returns the link that uniform traffic between all hosts fills first; `access` is the rate that
    /// loads count. `None` if each host has one link: [`Topology::host_cuts`] has the others.
    pub fn first_full(&self, access: Rate) -> Option<FullLink> {
        if self.rails().iter().all(|&links| links == 1) {
            return None;
        }
        let paths = Paths::new(self.clone());
        // By link and direction: the traffic if each host sends 1.
        let mut traffic = vec![[0.0; 2]; self.links.len()];
        let others = f64::from(self.n_hosts() - 1);
        for (src, dst, n_src, n_dst) in self.pairs_of_kinds() {
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

    /// Returns a pair of hosts of each two kinds, and the number of hosts that each stands for.
    fn pairs_of_kinds(&self) -> Vec<(u32, u32, f64, f64)> {
        let kinds = self.kinds_of_hosts();
        let mut pairs = Vec::with_capacity(kinds.len() * kinds.len());
        for from in &kinds {
            for to in &kinds {
                let Some(&src) = from.first() else { continue };
                let Some(&dst) = to.iter().find(|&&dst| dst != src) else { continue };
                let own = usize::from(std::ptr::eq(from, to));
                pairs.push((src, dst, from.len() as f64, (to.len() - own) as f64));
            }
        }
        pairs
    }
}

/// Returns the rates of the paths between two hosts, if they differ.
fn uneven(paths: &Paths, src: u32, dst: u32) -> Option<UnevenPaths> {
    let hops = paths.links(src, dst)?;
    // By place in the hop that follows: the slowest and the fastest path from there on.
    let mut after: Vec<(Rate, Rate)> = Vec::new();
    for links in hops.iter().rev() {
        let from = |(hop, leads): &super::PathLink| {
            let next = || leads.iter().filter_map(|&place| after.get(place).copied());
            let slowest = next().map(|(slowest, _)| slowest).min().unwrap_or(hop.rate);
            let fastest = next().map(|(_, fastest)| fastest).max().unwrap_or(hop.rate);
            (slowest.min(hop.rate), fastest.min(hop.rate))
        };
        after = links.iter().map(from).collect();
    }
    let slowest = after.iter().map(|(slowest, _)| *slowest).min()?;
    let fastest = after.iter().map(|(_, fastest)| *fastest).max()?;
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

#[cfg(test)]
mod tests {
    use rampmeter_core::Bytes;

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

    /// Hosts 0 and 1 have fast links to switch 0, and a slow one to that of hosts 2 and 3.
    #[test]
    fn slots_have_the_rate_of_the_slowest_way_that_its_sender_does_not_pace() {
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
        let full = topology.first_full(Rate::from_gbps(100)).unwrap();
        // It is nearer to both others than the fast one.
        assert_eq!(full.link, 3);
        assert!((full.load - 0.01).abs() < 1e-9, "{full:?}");
        assert_eq!(build(2, 1, &links[..2]).first_full(Rate::from_gbps(100)), None);
    }

    /// A packet between hosts takes either interface, and one to an arbiter the one that leads to it.
    #[test]
    fn delays_are_those_of_the_slower_interface_and_of_arbiters() {
        use rampmeter_core::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};
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
        assert_eq!(topology.ends_of(Node::Arbiter(0)), [Node::Switch(1)]);
        assert!(topology.arbiter_rtt(control).as_us_f64() < 10.0);
    }
}
