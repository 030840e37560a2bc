//! Minimum time in which a message can cross a network whose packets may take several paths.
//!
//! All paths between two hosts have equally many hops, so that the links of hop `i` are a cut: each
//! packet is sent over one of them. Packets start on a link one after another. None starts before
//! the fastest path to the link has delivered it there, and each then uses the fastest path to the
//! receiver. Under these rules each hop has a minimum time in which it can carry all packets. The
//! maximum of these times is a lower bound. It is the ideal if one path reaches it, and otherwise a
//! bound: see [`MinimumTime::is_exact`].
//!
//! Slow links of several hops may be a narrower cut than the links of any one hop, so the narrowest
//! cut counts, too.
//!
//! The last packet may be short, and may overtake others on another path. Each hop may carry it
//! before the full packets or after them, whichever is faster.

use std::collections::BTreeMap;

use rampmeter_types::{Bytes, Span};

use crate::ideal::{Forwarding, IdealModel, PathHop};

/// Link of a hop, and the indices of the links of the next hop that follow it.
pub type HopLink = (PathHop, Vec<usize>);

/// Minimum time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumTime {
    /// Time below which no transport can deliver it.
    pub time: Span,
    /// True if a transport can deliver it in this time; otherwise it is a lower bound.
    pub is_exact: bool,
}

/// Equivalent links of one hop: the same rate and delay, from and to equivalent links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkGroup {
    pub(crate) hop: PathHop,
    pub(crate) count: u64,
    /// Lanes of the next hop that follow them; none for the last.
    pub(crate) next: Vec<usize>,
}

/// Links between two hosts, hop by hop. The first hop has the interfaces of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopGraph {
    model: IdealModel,
    hops: Vec<Vec<LinkGroup>>,
    /// The narrowest cut, by hop and lanes; empty if it is a hop.
    cut: Vec<(usize, usize)>,
    /// Times of full packets, by hop.
    full: Vec<Vec<LinkGroupTimes>>,
    /// Path on which a full packet is fastest.
    path: Vec<PathHop>,
}

/// Times of packets of one size on lanes: earliest start, transmission time, and time from the
/// start until delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkGroupTimes {
    pub(crate) head: u64,
    pub(crate) tx: u64,
    pub(crate) rest: u64,
    /// Time on the link that it compensates for after idle time.
    pub(crate) burst: u64,
}

impl HopGraph {
    /// Creates the ways over links. Each link names the links of the next hop that follow it, by
    /// index.
    ///
    /// # Panics
    /// If there is no way.
    pub fn new(model: IdealModel, links: &[Vec<HopLink>]) -> Self {
        let forward = classes(links, false);
        let backward = classes(links, true);
        let mut hops: Vec<Vec<LinkGroup>> = Vec::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        for (at, hop) in links.iter().enumerate() {
            let mut known = BTreeMap::new();
            let mut lanes: Vec<LinkGroup> = Vec::new();
            let mut place = Vec::new();
            for (i, (link, _)) in hop.iter().enumerate() {
                let class = (forward[at][i], backward[at][i]);
                let n = *known.entry(class).or_insert(lanes.len());
                if n == lanes.len() {
                    lanes.push(LinkGroup { hop: *link, count: 0, next: Vec::new() });
                }
                lanes[n].count += 1;
                place.push(n);
            }
            hops.push(lanes);
            places.push(place);
        }
        for (at, hop) in links.iter().enumerate() {
            for (i, (_, next)) in hop.iter().enumerate() {
                let to = next.iter().map(|&n| places[at + 1][n]);
                hops[at][places[at][i]].next.extend(to);
            }
            for lanes in &mut hops[at] {
                lanes.next.sort_unstable();
                lanes.next.dedup();
                lanes.next.shrink_to_fit();
            }
        }
        let (full, path, cut) = (Vec::new(), Vec::new(), narrowest(&hops));
        let mut ways = Self { model, hops, cut, full, path };
        ways.full = ways.carry(model.segmentation.full_wire_bytes());
        ways.path = ways.fastest();
        ways
    }

    /// Returns the minimum time until a message of `size` is delivered.
    pub fn minimum_time(&self, size: Bytes) -> MinimumTime {
        let segmentation = &self.model.segmentation;
        let last = segmentation.last_wire_bytes(size);
        let n = u64::from(segmentation.packets(size));
        if n == 1 {
            return MinimumTime { time: self.min_packet_time(last), is_exact: true };
        }
        let is_shaped = matches!(self.model.forwarding, Forwarding::Shaped { .. });
        let in_order = self.model.delivered(size, &self.path).as_ps();
        let time = match last == segmentation.full_wire_bytes() {
            true => self.of_full(&self.full, n),
            false if is_shaped => self.of_shaped(n - 1, last),
            false => self.of_fulls_and_short(n - 1, last, in_order),
        };
        MinimumTime { time: Span::from_ps(time), is_exact: time == in_order }
    }

    /// Returns the minimum time of `n` full packets and one of `last` bytes. `in_order` is that of
    /// one path.
    fn of_fulls_and_short(&self, n: u64, last: Bytes, in_order: u64) -> u64 {
        let (full, short) = (&self.full, self.carry(last));
        let mut time = self.of_full(full, n);
        for ((lanes, full), short) in self.hops.iter().zip(full).zip(&short) {
            time = time.max(mixed_hop_time(time, n, lanes, full, short));
        }
        if !self.cut.is_empty() {
            let (lanes, of_cut) =
                (self.of_cut(&self.hops), (self.of_cut(full), self.of_cut(&short)));
            time = time.max(mixed_hop_time(time, n, &lanes, &of_cut.0, &of_cut.1));
        }
        if self.hops.iter().all(|lanes| lanes.len() == 1 && lanes[0].count == 1) {
            // The order of packets is the same on each hop of one path.
            let hops = full.iter().zip(&short);
            let first = hops.map(|(full, short)| short_first(&full[0], &short[0], n)).max();
            time = time.max(in_order.min(first.unwrap_or(0)));
        }
        time
    }

    /// Returns a lower bound of the minimum time of `n` full packets and one of `last` bytes
    /// through shapers.
    fn of_shaped(&self, n: u64, last: Bytes) -> u64 {
        let (full, short) = (&self.full, self.carry(last));
        let mut time = self.of_full(full, n).max(self.min_packet_time(last).as_ps());
        for ((lanes, full), short) in self.hops.iter().zip(full).zip(&short) {
            if let ([LinkGroup { count: 1, .. }], [full], [short]) =
                (&lanes[..], &full[..], &short[..])
            {
                time = time.max(shaped_link_time(full, short, n));
            }
        }
        time
    }

    /// Returns the minimum time of one packet of `wire` bytes.
    pub fn min_packet_time(&self, wire: Bytes) -> Span {
        Span::from_ps(self.of_full(&self.carry(wire), 1))
    }

    /// Returns the times of packets of `wire` bytes, by hop.
    fn carry(&self, wire: Bytes) -> Vec<Vec<LinkGroupTimes>> {
        let tx = |lanes: &LinkGroup| lanes.hop.rate.tx_time(wire).as_ps();
        let burst = match self.model.forwarding {
            Forwarding::Shaped { burst } => burst.as_ps(),
            Forwarding::StoreAndForward | Forwarding::CutThrough { .. } => 0,
        };
        let mut carry: Vec<Vec<LinkGroupTimes>> = Vec::new();
        for hop in &self.hops {
            let of = |lanes: &LinkGroup| LinkGroupTimes {
                head: u64::MAX,
                tx: tx(lanes),
                rest: u64::MAX,
                burst,
            };
            carry.push(hop.iter().map(of).collect());
        }
        let ahead = |lanes: &LinkGroup, next: &LinkGroup| {
            (self.model.head(wire, &lanes.hop, &next.hop) + lanes.hop.delay).as_ps()
        };
        carry[0].iter_mut().for_each(|first| first.head = 0);
        for (at, pair) in self.hops.windows(2).enumerate() {
            for (n, lanes) in pair[0].iter().enumerate() {
                for &to in &lanes.next {
                    let head = carry[at][n].head.saturating_add(ahead(lanes, &pair[1][to]));
                    carry[at + 1][to].head = carry[at + 1][to].head.min(head);
                }
            }
        }
        for at in (0..self.hops.len()).rev() {
            for (n, lanes) in self.hops[at].iter().enumerate() {
                let rest = |&to: &usize| {
                    ahead(lanes, &self.hops[at + 1][to]).saturating_add(carry[at + 1][to].rest)
                };
                let last = || Some(carry[at][n].tx + lanes.hop.delay.as_ps());
                let least = lanes.next.iter().map(rest).min();
                let rest = least.or_else(|| (at + 1 == self.hops.len()).then(last).flatten());
                carry[at][n].rest = rest.unwrap_or(u64::MAX);
            }
        }
        carry
    }

    /// Returns the minimum time of `n` full packets.
    fn of_full(&self, carry: &[Vec<LinkGroupTimes>], n: u64) -> u64 {
        let of = |(lanes, carry): (&Vec<LinkGroup>, &Vec<LinkGroupTimes>)| {
            full_hop_time(lanes, carry, n)
        };
        let time = self.hops.iter().zip(carry).map(of).max().unwrap_or(0);
        match self.cut.is_empty() {
            true => time,
            false => time.max(full_hop_time(&self.of_cut(&self.hops), &self.of_cut(carry), n)),
        }
    }

    /// Returns the entries of the narrowest cut.
    fn of_cut<T: Clone>(&self, by_hop: &[Vec<T>]) -> Vec<T> {
        self.cut.iter().map(|&(hop, lanes)| by_hop[hop][lanes].clone()).collect()
    }

    /// Returns the path on which a full packet is fastest.
    fn fastest(&self) -> Vec<PathHop> {
        let mut path = Vec::new();
        let mut next: Vec<usize> = (0..self.hops[0].len()).collect();
        for (lanes, carry) in self.hops.iter().zip(&self.full) {
            let at = next.iter().copied().min_by_key(|&n| carry[n].rest).expect("there is a way");
            path.push(lanes[at].hop);
            next.clone_from(&lanes[at].next);
        }
        path
    }
}

impl LinkGroupTimes {
    /// Returns the minimum time of one packet over this link.
    pub(crate) fn packet_time(&self) -> u64 {
        self.head.saturating_add(self.rest)
    }

    /// Returns the number of packets that one link carries so that all are delivered by `time`.
    fn packets(&self, time: u64) -> u64 {
        match time.checked_sub(self.packet_time()) {
            Some(left) => left.saturating_add(self.burst) / self.tx.max(1) + 1,
            None => 0,
        }
    }
}

/// Returns the minimum time in which one hop carries `n` full packets.
pub(crate) fn full_hop_time(lanes: &[LinkGroup], carry: &[LinkGroupTimes], n: u64) -> u64 {
    let alone = |(lanes, carry): (&LinkGroup, &LinkGroupTimes)| {
        let rounds = n.div_ceil(lanes.count) - 1;
        let waiting = carry.tx.saturating_mul(rounds).saturating_sub(carry.burst);
        carry.packet_time().saturating_add(waiting)
    };
    let most = lanes.iter().zip(carry).map(alone).min().unwrap_or(0);
    if lanes.len() == 1 {
        return most;
    }
    search(0, most, |time| {
        let of = |(lanes, carry): (&LinkGroup, &LinkGroupTimes)| lanes.count * carry.packets(time);
        lanes.iter().zip(carry).map(of).sum::<u64>() >= n
    })
}

/// Returns the minimum time, not below `lower`, in which one hop carries `n` full packets and a
/// short one.
pub(crate) fn mixed_hop_time(
    lower: u64,
    n: u64,
    lanes: &[LinkGroup],
    full: &[LinkGroupTimes],
    short: &[LinkGroupTimes],
) -> u64 {
    let is_enough = |time: u64| {
        let all = |(lanes, full): (&LinkGroup, &LinkGroupTimes)| lanes.count * full.packets(time);
        let together = lanes.iter().zip(full).map(all).sum::<u64>();
        full.iter().zip(short).any(|(full, short)| {
            if short.packets(time) == 0 {
                return false;
            }
            let overtaking = overtaking_time(full, short, time);
            together - full.packets(time) + overtaking >= n
        })
    };
    if is_enough(lower) {
        return lower;
    }
    let mut upper = lower.max(1);
    while !is_enough(upper) {
        upper = upper.saturating_mul(2);
    }
    search(lower, upper, is_enough)
}

/// Returns the minimum time in which one link behind a shaper carries `n` full packets and a short
/// one. The last packet on the link is a full one or the short one.
pub(crate) fn shaped_link_time(full: &LinkGroupTimes, short: &LinkGroupTimes, n: u64) -> u64 {
    let fulls = full.tx.saturating_mul(n - 1);
    let full_last = (fulls + short.tx).saturating_sub(full.burst) + full.packet_time();
    let short_last = (fulls + full.tx).saturating_sub(full.burst) + short.packet_time();
    full_last.min(short_last)
}

/// Returns the time at which one link that carries the short packet first has delivered `n` full
/// ones, of which there is at least one.
fn short_first(full: &LinkGroupTimes, short: &LinkGroupTimes, n: u64) -> u64 {
    let start = full.head.max(short.head + short.tx);
    start.saturating_add(full.tx.saturating_mul(n - 1)).saturating_add(full.rest)
}

/// Returns the number of full packets that one link carries with the short one so that all are
/// delivered by `time`.
fn overtaking_time(full: &LinkGroupTimes, short: &LinkGroupTimes, time: u64) -> u64 {
    let tx = full.tx.max(1);
    let start = full.head.max(short.head + short.tx).saturating_add(full.rest);
    let first = time.checked_sub(start).map_or(0, |left| left / tx + 1);
    let end = full.head.saturating_add(short.rest);
    let last = time.checked_sub(end).map_or(0, |left| left / tx);
    first.max(last.min(full.packets(time)))
}

/// Returns the minimum of `lower..=upper` for which `is_enough` holds; it holds for `upper`.
fn search(mut lower: u64, mut upper: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    while lower < upper {
        let middle = lower + (upper - lower) / 2;
        if is_enough(middle) {
            upper = middle;
        } else {
            lower = middle + 1;
        }
    }
    upper
}

/// Returns the minimum cut of the lanes, by hop and place, or no lanes if it is the lanes of one
/// hop.
///
/// The maximum flow (Edmonds and Karp) fills a minimum cut. Each lane is an edge between two nodes,
/// and unlimited edges join it to the lanes that follow.
fn narrowest(hops: &[Vec<LinkGroup>]) -> Vec<(usize, usize)> {
    if hops.iter().all(|lanes| lanes.len() == 1) {
        return Vec::new();
    }
    let starts: Vec<usize> = hops
        .iter()
        .scan(0, |sum, lanes| {
            *sum += lanes.len();
            Some(*sum - lanes.len())
        })
        .collect();
    let n: usize = hops.iter().map(Vec::len).sum();
    let (source, sink) = (2 * n, 2 * n + 1);
    // Pairs of an edge and its reverse edge: (end, capacity left).
    let mut edges: Vec<(usize, u64)> = Vec::new();
    let mut of_node: Vec<Vec<usize>> = vec![Vec::new(); 2 * n + 2];
    let mut join = |from: usize, to: usize, capacity: u64| {
        of_node[from].push(edges.len());
        of_node[to].push(edges.len() + 1);
        edges.extend([(to, capacity), (from, 0)]);
    };
    for (hop, lanes) in hops.iter().enumerate() {
        for (place, of) in lanes.iter().enumerate() {
            let lane = starts[hop] + place;
            join(2 * lane, 2 * lane + 1, of.count.saturating_mul(of.hop.rate.as_bps()));
            if hop == 0 {
                join(source, 2 * lane, u64::MAX);
            }
            if hop + 1 == hops.len() {
                join(2 * lane + 1, sink, u64::MAX);
            }
            of.next.iter().for_each(|&to| join(2 * lane + 1, 2 * (starts[hop + 1] + to), u64::MAX));
        }
    }
    let reached = fill(&mut edges, &of_node, source, sink);
    let lanes = (0..hops.len()).flat_map(|hop| (0..hops[hop].len()).map(move |l| (hop, l)));
    let is_cut = |&(hop, place): &(usize, usize)| {
        let lane = starts[hop] + place;
        reached[2 * lane] && !reached[2 * lane + 1]
    };
    let cut: Vec<(usize, usize)> = lanes.filter(is_cut).collect();
    let is_hop = cut.windows(2).all(|pair| pair[0].0 == pair[1].0);
    if is_hop { Vec::new() } else { cut }
}

/// Fills pairs of an edge and its reverse edge with a maximum flow. Returns true for each node to
/// which some capacity is left.
fn fill(
    edges: &mut [(usize, u64)],
    of_node: &[Vec<usize>],
    source: usize,
    sink: usize,
) -> Vec<bool> {
    loop {
        // The edge by which a search from the source has reached each node.
        let mut by: Vec<Option<usize>> = vec![None; of_node.len()];
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(at) = queue.pop_front() {
            for &edge in &of_node[at] {
                let (to, left) = edges[edge];
                if left > 0 && to != source && by[to].is_none() {
                    by[to] = Some(edge);
                    queue.push_back(to);
                }
            }
        }
        if by[sink].is_none() {
            return by.iter().map(Option::is_some).collect();
        }
        let back = |at: &usize| Some(edges[by[*at]? ^ 1].0);
        let path: Vec<usize> = std::iter::successors(Some(sink), back).collect();
        let taken: Vec<usize> = path.iter().filter_map(|&at| by[at]).collect();
        let narrowest_free = taken.iter().map(|&edge| edges[edge].1).min().unwrap_or(0);
        for edge in taken {
            edges[edge].1 -= narrowest_free;
            edges[edge ^ 1].1 = edges[edge ^ 1].1.saturating_add(narrowest_free);
        }
    }
}

/// Returns class numbers. They are equal for links that packets reach in the same way; with
/// `is_backward`, for links with the same continuation.
fn classes(links: &[Vec<HopLink>], is_backward: bool) -> Vec<Vec<usize>> {
    let mut classes: Vec<Vec<usize>> = links.iter().map(|hop| vec![0; hop.len()]).collect();
    let order: Vec<usize> = match is_backward {
        false => (0..links.len()).collect(),
        true => (0..links.len()).rev().collect(),
    };
    for at in order {
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); links[at].len()];
        if is_backward && at + 1 < links.len() {
            for (i, (_, next)) in links[at].iter().enumerate() {
                neighbours[i].extend(next.iter().map(|&n| classes[at + 1][n]));
            }
        }
        if !is_backward && at > 0 {
            for (i, (_, next)) in links[at - 1].iter().enumerate() {
                next.iter().for_each(|&n| neighbours[n].push(classes[at - 1][i]));
            }
        }
        let mut known = BTreeMap::new();
        for (i, mut of) in neighbours.into_iter().enumerate() {
            of.sort_unstable();
            of.dedup();
            let PathHop { rate, delay } = links[at][i].0;
            let count = known.len();
            classes[at][i] = *known.entry((rate, delay, of)).or_insert(count);
        }
    }
    classes
}

#[cfg(test)]
mod tests;
