//! Rates and round trips between pairs of hosts.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::NodeId;
use crate::rates::DuplexRates;
use crate::units::{Rate, Span};

/// The link between a host and a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostLink {
    /// Number of the switch.
    pub switch: u32,
    /// Rate from the host to the switch.
    pub tx_rate: Rate,
    /// Rate from the switch to the host.
    pub rx_rate: Rate,
}

/// A round trip without load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Round trip with a full packet in each direction.
    pub data: Span,
    /// Round trip with a control packet in each direction.
    pub control: Span,
}

impl RoundTrip {
    /// Returns the longer times of both.
    pub fn max(self, other: Self) -> Self {
        Self { data: self.data.max(other.data), control: self.control.max(other.control) }
    }
}

/// Round trips of pairs of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// The kind of each host.
    kind_of_host: Vec<u32>,
    /// The index in `spans` for each pair of kinds, row by row.
    index_of_pair: Vec<u8>,
    /// The number of kinds.
    n_kinds: usize,
    spans: Vec<RoundTrip>,
}

impl RoundTrips {
    /// Returns the round trips of hosts of the kinds `kind_of_host`, from 0. `index_of_pair` has
    /// the index in `spans` for each pair of kinds, row by row.
    ///
    /// # Panics
    /// If the length of `index_of_pair` is not a square.
    pub fn new(kind_of_host: Vec<u32>, index_of_pair: Vec<u8>, spans: Vec<RoundTrip>) -> Self {
        let n_kinds = index_of_pair.len().isqrt();
        assert_eq!(n_kinds * n_kinds, index_of_pair.len(), "a row for each kind");
        Self { kind_of_host, index_of_pair, n_kinds, spans }
    }

    fn get(&self, a: NodeId, b: NodeId) -> Option<RoundTrip> {
        let kind = |host: NodeId| self.kind_of_host.get(host.idx()).map(|&kind| kind as usize);
        Some(self.spans[usize::from(self.index_of_pair[kind(a)? * self.n_kinds + kind(b)?])])
    }
}

/// Rates and round trips between hosts. A pair uses the links of both ends that are nearest to each
/// other, as routing does. Hosts with several links may reach some peers by only some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// The links of each host.
    links: Vec<Vec<HostLink>>,
    /// Hops between switches, by number; `u16::MAX` if there is no path. `None` if each pair uses
    /// all links of both hosts.
    distances: Option<Vec<Vec<u16>>>,
    /// The part of the network that each switch is in, by number; `None` if all links of hosts lead
    /// to one part.
    components: Option<Vec<u32>>,
    /// `None` if all pairs have the round trip of the network.
    round_trips: Option<RoundTrips>,
}

impl Pairs {
    /// Returns the rates between hosts with these links; each host has at least one. `components`
    /// has the part of the network that each switch is in, or is `None` if all links of hosts lead
    /// to one part. `distances` are the hops between switches, `u16::MAX` without a path, or `None`
    /// if each pair uses all links of both hosts.
    pub fn new(
        links: Vec<Vec<HostLink>>,
        components: Option<Vec<u32>>,
        distances: Option<Vec<Vec<u16>>>,
    ) -> Self {
        Self { links, distances, components, round_trips: None }
    }

    /// Returns the rates between hosts with one link each, at one switch.
    pub fn single_switch(rates: impl Iterator<Item = Rate>) -> Self {
        let link = |rate| vec![HostLink { switch: 0, tx_rate: rate, rx_rate: rate }];
        Self::new(rates.map(link).collect(), None, None)
    }

    /// Returns these pairs with separate round trips, or with that of the network.
    pub fn with_round_trips(self, round_trips: Option<RoundTrips>) -> Self {
        Self { round_trips, ..self }
    }

    /// Returns true if the round trip of a pair may differ from the network's.
    pub fn has_round_trips(&self) -> bool {
        self.round_trips.is_some()
    }

    /// Returns the shortest round trip of any hosts; `None` if it is that of the network.
    pub fn min_round_trip(&self) -> Option<RoundTrip> {
        self.round_trips.as_ref()?.spans.iter().copied().min_by_key(|span| span.control)
    }

    /// Returns the round trip of two hosts; `None` if it is that of the network, or if one of them
    /// is not a host.
    pub fn round_trip(&self, a: NodeId, b: NodeId) -> Option<RoundTrip> {
        self.round_trips.as_ref()?.get(a, b)
    }

    /// Returns true if a pair does not use all links of both hosts.
    pub fn has_partial_pairs(&self) -> bool {
        self.distances.is_some()
    }

    /// Returns the number of hosts.
    pub fn n_hosts(&self) -> u32 {
        self.links.len() as u32
    }

    /// Returns the rate at which a host sends by all its links.
    pub fn tx_rate(&self, host: NodeId) -> Rate {
        sum(self.links[host.idx()].iter().map(|link| link.tx_rate))
    }

    /// Returns the rate at which a host receives by all its links.
    pub fn rx_rate(&self, host: NodeId) -> Rate {
        sum(self.links[host.idx()].iter().map(|link| link.rx_rate))
    }

    /// Returns the highest rate at which any host sends or receives.
    pub fn max_rate(&self) -> Rate {
        let hosts = (0..self.n_hosts()).map(NodeId::new);
        let fastest = hosts.map(|host| self.tx_rate(host).max(self.rx_rate(host))).max();
        fastest.expect("a network has hosts")
    }

    /// Returns the rate from `src` to `dst`: the lower of the sending and the receiving rate, in
    /// each part of the network. `None` if one of them is not a host.
    pub fn rate(&self, src: NodeId, dst: NodeId) -> Option<Rate> {
        let (from, to) = (src.idx(), dst.idx());
        if from.max(to) >= self.links.len() {
            return None;
        }
        let sends = sum(self.nearest_links(from, to).map(|link| link.tx_rate));
        let all = sends.min(sum(self.nearest_links(to, from).map(|link| link.rx_rate)));
        let Some(parts) = &self.components else { return Some(all) };
        let of = |link: &HostLink| parts[link.switch as usize];
        let mut rates: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for link in self.nearest_links(from, to) {
            rates.entry(of(link)).or_default()[0] += link.tx_rate.as_bps();
        }
        for link in self.nearest_links(to, from) {
            rates.entry(of(link)).or_default()[1] += link.rx_rate.as_bps();
        }
        let bps = rates.into_values().map(|[sends, receives]| sends.min(receives)).sum();
        // Zero if there is no path.
        Some(Rate::from_bps(bps).unwrap_or(all))
    }

    /// Returns the planes of hosts; `None` if each host reaches all peers by one.
    pub fn planes(&self) -> Option<Planes> {
        let planes = self.planes_and_parts()?;
        (0..self.n_hosts()).any(|host| planes.count(NodeId::new(host)) > 1).then_some(planes)
    }

    /// Returns the planes of hosts, also of hosts that reach all peers by one; `None` if no host
    /// has several links.
    pub fn planes_and_parts(&self) -> Option<Planes> {
        self.distances.as_ref()?;
        let mut kinds: BTreeMap<&[HostLink], u32> = BTreeMap::new();
        let mut firsts = Vec::new();
        let kind_of_host = (0..self.links.len()).map(|host| {
            *kinds.entry(&self.links[host]).or_insert_with(|| {
                firsts.push(host);
                firsts.len() as u32 - 1
            })
        });
        let kind_of_host: Vec<u32> = kind_of_host.collect();
        let (mut part_of_pairs, mut parts) = (Vec::new(), Vec::new());
        let mut plane_of_pair = Vec::with_capacity(firsts.len() * firsts.len());
        let mut links = Vec::with_capacity(firsts.len());
        for &host in &firsts {
            let own = &self.links[host];
            // A host sends no packets to itself.
            let is_alone =
                kind_of_host.iter().filter(|&&of| firsts[of as usize] == host).count() == 1;
            let to = |&peer: &usize| -> Vec<usize> {
                if is_alone && peer == host {
                    return Vec::new();
                }
                let switches: Vec<u32> =
                    self.nearest_links(host, peer).map(|link| link.switch).collect();
                (0..own.len()).filter(|&n| switches.contains(&own[n].switch)).collect()
            };
            let reaching: Vec<Vec<usize>> = firsts.iter().map(to).collect();
            let plane_of_link = group_members(own.len(), &reaching);
            let plane = |links: &Vec<usize>| links.first().map_or(0, |&link| plane_of_link[link]);
            plane_of_pair.extend(reaching.iter().map(plane));
            let is_part = |links: &Vec<usize>| {
                links.first().is_some_and(|&first| {
                    let of_plane = plane_of_link.iter().filter(|&&of| of == plane_of_link[first]);
                    links.len() < of_plane.count()
                })
            };
            let distinct: BTreeSet<_> = reaching.iter().filter(|links| is_part(links)).collect();
            let distinct: Vec<_> = distinct.into_iter().collect();
            let part = |links| distinct.binary_search(&links).ok().map(|part| part as u16);
            part_of_pairs.extend(reaching.iter().map(part));
            let rates = |links: &&Vec<usize>| {
                let of = || links.iter().map(|&link| own[link]);
                DuplexRates {
                    tx: sum(of().map(|link| link.tx_rate)),
                    rx: sum(of().map(|link| link.rx_rate)),
                }
            };
            parts.push(distinct.iter().map(rates).collect());
            links.push(plane_of_link.iter().copied().zip(own.iter().copied()).collect());
        }
        Some(Planes { kind_of_host, plane_of_pair, links, part_of_pairs, parts })
    }

    /// Returns the links of `host` that are nearest to `peer`.
    fn nearest_links(&self, host: usize, peer: usize) -> impl Iterator<Item = &HostLink> {
        let hops = move |link: &HostLink| {
            let Some(distances) = &self.distances else { return 0 };
            let of = &distances[link.switch as usize];
            let hops = self.links[peer].iter().map(|link| of[link.switch as usize]);
            hops.min().unwrap_or(u16::MAX)
        };
        let least = self.links[host].iter().map(hops).min();
        self.links[host].iter().filter(move |link| Some(hops(link)) == least)
    }
}

/// Planes of hosts: groups of a host's links by which it reaches disjoint sets of peers. An example
/// is a link inside a server and one out of it. Planes of a host share nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    kind_of_host: Vec<u32>,
    /// The plane by which hosts of one kind reach hosts of another, for each pair of kinds, row by
    /// row.
    plane_of_pair: Vec<u8>,
    /// The links of hosts of each kind, with their planes.
    links: Vec<Vec<(u8, HostLink)>>,
    /// The part of the plane of each pair of kinds, row by row; `None` if it is the whole plane.
    part_of_pairs: Vec<Option<u16>>,
    /// Rates at which hosts of each kind send and receive by their parts of planes.
    parts: Vec<Vec<DuplexRates>>,
}

impl Planes {
    /// Returns true if a host reaches some peers by only some links of a plane.
    pub fn is_shared(&self) -> bool {
        self.parts.iter().any(|of_kind| !of_kind.is_empty())
    }

    /// Returns the rates at which a host sends and receives by each part of its planes.
    pub fn parts(&self, host: NodeId) -> &[DuplexRates] {
        &self.parts[self.kind_of_host[host.idx()] as usize]
    }

    /// Returns the part of a plane by which a host reaches another; `None` if it is all of it.
    pub fn part_of(&self, host: NodeId, peer: NodeId) -> Option<usize> {
        self.part_of_pairs[self.plane_by_kind(host, peer)].map(usize::from)
    }

    /// Returns the number of planes of a host.
    pub fn count(&self, host: NodeId) -> usize {
        self.links_of(host).iter().map(|(plane, _)| usize::from(*plane) + 1).max().unwrap_or(1)
    }

    /// Returns the plane by which a host reaches another, from 0.
    #[inline]
    pub fn plane_to(&self, host: NodeId, peer: NodeId) -> usize {
        usize::from(self.plane_of_pair[self.plane_by_kind(host, peer)])
    }

    #[inline]
    fn plane_by_kind(&self, host: NodeId, peer: NodeId) -> usize {
        let kind = |host: NodeId| self.kind_of_host[host.idx()] as usize;
        kind(host) * self.links.len() + kind(peer)
    }

    /// Returns the plane that a host's links to a switch belong to.
    pub fn plane_of_switch(&self, host: NodeId, switch: u32) -> Option<usize> {
        let mut links = self.links_of(host).iter();
        links.find(|(_, link)| link.switch == switch).map(|(plane, _)| usize::from(*plane))
    }

    /// Returns the rates at which a host sends and receives by the links of a plane.
    pub fn rates(&self, host: NodeId, plane: usize) -> DuplexRates {
        let of_plane = || {
            let links = self.links_of(host).iter();
            links.filter(move |(of, _)| usize::from(*of) == plane).map(|(_, link)| link)
        };
        let tx = sum(of_plane().map(|link| link.tx_rate));
        DuplexRates { tx, rx: sum(of_plane().map(|link| link.rx_rate)) }
    }

    fn links_of(&self, host: NodeId) -> &[(u8, HostLink)] {
        &self.links[self.kind_of_host[host.idx()] as usize]
    }
}

/// Returns the group of each of `n` members. Members of one of `sets` are in one group. Groups are
/// numbered from 0 in the order of their first members.
fn group_members(n: usize, sets: &[Vec<usize>]) -> Vec<u8> {
    let mut group: Vec<usize> = (0..n).collect();
    for set in sets {
        for pair in set.windows(2) {
            let (low, high) =
                (group[pair[0]].min(group[pair[1]]), group[pair[0]].max(group[pair[1]]));
            group.iter_mut().filter(|of| **of == high).for_each(|of| *of = low);
        }
    }
    let mut firsts = group.clone();
    firsts.sort_unstable();
    firsts.dedup();
    group.iter().map(|of| firsts.partition_point(|first| first < of) as u8).collect()
}

fn sum(rates: impl Iterator<Item = Rate>) -> Rate {
    Rate::from_bps(rates.map(Rate::as_bps).sum()).expect("every host has a link")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(switch: u32, gbps: u64) -> HostLink {
        let rate = Rate::from_gbps(gbps);
        HostLink { switch, tx_rate: rate, rx_rate: rate }
    }

    fn gbps(rates: &Pairs, src: u32, dst: u32) -> u64 {
        rates.rate(NodeId::new(src), NodeId::new(dst)).unwrap().as_bps() / 1_000_000_000
    }

    /// Two parts: host 0 is fast in the first, host 1 in the second.
    #[test]
    fn rates_of_links_to_separate_networks_do_not_add_up() {
        let links = vec![vec![link(0, 100), link(1, 10)], vec![link(0, 10), link(1, 100)]];
        let rates = Pairs::new(links.clone(), Some(vec![0, 1]), None);
        assert_eq!((gbps(&rates, 0, 1), gbps(&rates, 1, 0)), (20, 20));
        let joined = Pairs::new(links, None, None);
        assert_eq!(gbps(&joined, 0, 1), 110);
    }

    /// Two servers of two hosts: a switch in each server (0, 1), and a rail (2, 3) for each place,
    /// joined by switch 4.
    #[test]
    fn a_pair_uses_the_links_that_are_nearest() {
        let host = |n: u32| vec![link(n / 2, 400), link(2 + n % 2, 100)];
        let far = u16::MAX;
        let distances = vec![
            vec![0, far, far, far, far],
            vec![far, 0, far, far, far],
            vec![far, far, 0, 2, 1],
            vec![far, far, 2, 0, 1],
            vec![far, far, 1, 1, 0],
        ];
        let components = Some(vec![0, 1, 2, 2, 2]);
        let rates = Pairs::new((0..4).map(host).collect(), components, Some(distances));
        assert!(rates.has_partial_pairs());
        assert_eq!([(0, 1), (0, 2), (0, 3)].map(|(a, b)| gbps(&rates, a, b)), [400, 100, 100]);
        let planes = rates.planes().expect("hosts have two planes");
        let node = NodeId::new;
        assert_eq!(planes.count(node(0)), 2);
        assert!(!planes.is_shared());
        assert_eq!([1, 2, 3].map(|peer| planes.plane_to(node(0), node(peer))), [0, 1, 1]);
        assert_eq!(
            [0, 2, 3].map(|switch| planes.plane_of_switch(node(0), switch)),
            [Some(0), Some(1), None]
        );
        let fast = Rate::from_gbps(400);
        assert_eq!(planes.rates(node(0), 0), DuplexRates::equal(fast));
    }

    /// A host at switches 0 and 1 reaches one peer by each, and a third by both.
    #[test]
    fn links_that_share_a_peer_are_in_one_plane() {
        let hosts = vec![
            vec![link(0, 100), link(1, 100)],
            vec![link(0, 100)],
            vec![link(1, 100)],
            vec![link(2, 100)],
        ];
        let distances = vec![vec![0, 2, 1], vec![2, 0, 1], vec![1, 1, 0]];
        let rates = Pairs::new(hosts, None, Some(distances));
        assert!(rates.has_partial_pairs());
        assert_eq!(rates.planes(), None);
    }

    #[test]
    fn pairs_that_use_all_links_have_the_rates_of_hosts() {
        let hosts = vec![vec![link(0, 50), link(1, 50)]; 4];
        let rates = Pairs::new(hosts, None, None);
        assert!(!rates.has_partial_pairs());
        assert_eq!(gbps(&rates, 0, 3), 100);
    }

    #[test]
    fn each_direction_has_its_rate() {
        let slow = HostLink { rx_rate: Rate::from_gbps(10), ..link(0, 100) };
        let rates = Pairs::new(vec![vec![slow], vec![link(0, 100)]], None, None);
        assert_eq!([gbps(&rates, 0, 1), gbps(&rates, 1, 0)], [100, 10]);
    }
}
