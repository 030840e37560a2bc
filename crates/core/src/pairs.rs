//! Rates and round trips between pairs of hosts.

use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::units::{Rate, Span};

/// The link between a host and a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostLink {
    /// Number of the switch.
    pub switch: u32,
    /// Rate from the host to the switch.
    pub sends: Rate,
    /// Rate from the switch to the host.
    pub receives: Rate,
}

/// A round trip without load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// With a full packet each way.
    pub data: Span,
    /// With a control packet each way.
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
    of_hosts: Vec<u32>,
    /// The place among `spans` for each kind and each kind, row by row.
    of_pairs: Vec<u8>,
    /// The number of kinds.
    n_kinds: usize,
    spans: Vec<RoundTrip>,
}

impl RoundTrips {
    /// Returns the round trips of hosts of the kinds `of_hosts`, from 0; `of_pairs` has the place
    /// among `spans` for each kind and each kind, row by row.
    ///
    /// # Panics
    /// If `of_pairs` is not a square.
    pub fn new(of_hosts: Vec<u32>, of_pairs: Vec<u8>, spans: Vec<RoundTrip>) -> Self {
        let n_kinds = of_pairs.len().isqrt();
        assert_eq!(n_kinds * n_kinds, of_pairs.len(), "a row for each kind");
        Self { of_hosts, of_pairs, n_kinds, spans }
    }

    fn of(&self, a: NodeId, b: NodeId) -> Option<RoundTrip> {
        let kind = |host: NodeId| self.of_hosts.get(host.idx()).map(|&kind| kind as usize);
        Some(self.spans[usize::from(self.of_pairs[kind(a)? * self.n_kinds + kind(b)?])])
    }
}

/// Rates and round trips between hosts. A pair uses the links of both ends that are nearest to each
/// other, as routing does; hosts with several links may reach some peers by a part of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// The links of each host.
    links: Vec<Vec<HostLink>>,
    /// Hops between switches, by number; `u16::MAX` if there is no path. `None` if each pair uses
    /// all links of both hosts.
    distances: Option<Vec<Vec<u16>>>,
    /// `None` if all pairs have the round trip of the network.
    round_trips: Option<RoundTrips>,
}

impl Pairs {
    /// Returns the rates between hosts with these links, of which each has one at least.
    /// `distances` returns the hops between switches, by number; it is called if a host has several
    /// links.
    pub fn new(links: Vec<Vec<HostLink>>, distances: impl FnOnce() -> Vec<Vec<u16>>) -> Self {
        if links.iter().all(|links| links.len() == 1) {
            return Self { links, distances: None, round_trips: None };
        }
        let one_of_kind: BTreeMap<&[HostLink], usize> =
            links.iter().map(Vec::as_slice).zip(0..).collect();
        let hosts: Vec<usize> = one_of_kind.into_values().collect();
        let rates = Self { links, distances: Some(distances()), round_trips: None };
        let uses_all = |a: usize, b: usize| rates.nearest(a, b).count() == rates.links[a].len();
        match hosts.iter().all(|&a| hosts.iter().all(|&b| uses_all(a, b))) {
            true => Self { distances: None, ..rates },
            false => rates,
        }
    }

    /// Returns the rates between hosts with one link each, at one switch.
    pub fn at_one_switch(rates: impl Iterator<Item = Rate>) -> Self {
        let link = |rate| vec![HostLink { switch: 0, sends: rate, receives: rate }];
        Self { links: rates.map(link).collect(), distances: None, round_trips: None }
    }

    /// Returns these pairs with round trips of their own, or with that of the network.
    pub fn with_round_trips(self, round_trips: Option<RoundTrips>) -> Self {
        Self { round_trips, ..self }
    }

    /// Returns true if a pair may have another round trip than the network.
    pub fn has_round_trips(&self) -> bool {
        self.round_trips.is_some()
    }

    /// Returns the shortest round trip of any hosts; `None` if it is that of the network.
    pub fn shortest(&self) -> Option<RoundTrip> {
        self.round_trips.as_ref()?.spans.iter().copied().min_by_key(|span| span.control)
    }

    /// Returns the round trip of two hosts; `None` if it is that of the network, or if one of them is
    /// not a host.
    pub fn round_trip(&self, a: NodeId, b: NodeId) -> Option<RoundTrip> {
        self.round_trips.as_ref()?.of(a, b)
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
    pub fn sends(&self, host: NodeId) -> Rate {
        sum(self.links[host.idx()].iter().map(|link| link.sends))
    }

    /// Returns the rate at which a host receives by all its links.
    pub fn receives(&self, host: NodeId) -> Rate {
        sum(self.links[host.idx()].iter().map(|link| link.receives))
    }

    /// Returns the highest rate at which any host sends or receives.
    pub fn fastest(&self) -> Rate {
        let hosts = (0..self.n_hosts()).map(NodeId::new);
        let fastest = hosts.map(|host| self.sends(host).max(self.receives(host))).max();
        fastest.expect("a network has hosts")
    }

    /// Returns the rate from `src` to `dst`: that at which the one sends or the other receives,
    /// whichever is lower. `None` if one of them is not a host.
    pub fn rate(&self, src: NodeId, dst: NodeId) -> Option<Rate> {
        let (from, to) = (src.idx(), dst.idx());
        if from.max(to) >= self.links.len() {
            return None;
        }
        let sends = sum(self.nearest(from, to).map(|link| link.sends));
        Some(sends.min(sum(self.nearest(to, from).map(|link| link.receives))))
    }

    /// Returns the links of `host` that are nearest to `peer`.
    fn nearest(&self, host: usize, peer: usize) -> impl Iterator<Item = &HostLink> {
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

fn sum(rates: impl Iterator<Item = Rate>) -> Rate {
    Rate::from_bps(rates.map(Rate::as_bps).sum()).expect("every host has a link")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(switch: u32, gbps: u64) -> HostLink {
        let rate = Rate::from_gbps(gbps);
        HostLink { switch, sends: rate, receives: rate }
    }

    fn gbps(rates: &Pairs, src: u32, dst: u32) -> u64 {
        rates.rate(NodeId::new(src), NodeId::new(dst)).unwrap().as_bps() / 1_000_000_000
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
        let rates = Pairs::new((0..4).map(host).collect(), || distances);
        assert!(rates.has_partial_pairs());
        assert_eq!([(0, 1), (0, 2), (0, 3)].map(|(a, b)| gbps(&rates, a, b)), [400, 100, 100]);
    }

    #[test]
    fn pairs_that_use_all_links_have_the_rates_of_hosts() {
        let hosts = vec![vec![link(0, 50), link(1, 50)]; 4];
        let rates = Pairs::new(hosts, || vec![vec![0, 2], vec![2, 0]]);
        assert!(!rates.has_partial_pairs());
        assert_eq!(gbps(&rates, 0, 3), 100);
    }

    #[test]
    fn each_direction_has_its_rate() {
        let slow = HostLink { receives: Rate::from_gbps(10), ..link(0, 100) };
        let rates = Pairs::new(vec![vec![slow], vec![link(0, 100)]], || unreachable!());
        assert_eq!([gbps(&rates, 0, 1), gbps(&rates, 1, 0)], [100, 10]);
    }
}
