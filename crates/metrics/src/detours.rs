//! Minimum time in which a message can cross a network whose routing changes.
//!
//! While links are down, packets take other paths, and these may be faster than the shortest ones
//! (fewest hops), which [`HopGraph`](crate::HopGraph) is about. Packets in flight during a change
//! may even take a part of one path and a part of another. So every link of the network counts
//! here.
//!
//! Links that lead from the nodes within `k` hops of the sender to the next ones are a cut: each
//! message packet takes one of them. So are those into the nodes within `k` hops of the receiver.
//! As in [`HopGraph`](crate::HopGraph), the minimum time in which a cut can carry all packets is a
//! lower bound, and the maximum over the cuts is used. Loops of packets are left out of account.

use std::collections::BTreeMap;

use rampmeter_types::{Bytes, Span};

use crate::hop_graph::{
    LinkGroup, LinkGroupTimes, full_hop_time, mixed_hop_time, shaped_link_time,
};
use crate::ideal::{Forwarding, IdealModel, PathHop};

/// A link in one direction, from a node to a node, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetourLink {
    /// Rate and delay.
    pub hop: PathHop,
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
}

/// All links between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detours {
    model: IdealModel,
    /// Links that are equivalent for these hosts.
    lanes: Vec<LinkGroup>,
    /// True for lanes of the sender's links.
    is_first: Vec<bool>,
    /// True for lanes of the receiver's links.
    is_last: Vec<bool>,
    /// The lanes of each cut.
    cuts: Vec<Vec<usize>>,
    full: Vec<LinkGroupTimes>,
}

impl Detours {
    /// Creates the bound for messages from node `src` to node `dst`; `None` if there is one path
    /// only, or none.
    pub fn new(model: IdealModel, links: &[DetourLink], src: usize, dst: usize) -> Option<Self> {
        let nodes = links.iter().map(|link| link.from.max(link.to) + 1).max()?;
        let nodes = nodes.max(src.max(dst) + 1);
        let is_between = between(nodes, links, src, dst);
        let is_used = |link: &&DetourLink| {
            is_between[link.from] && is_between[link.to] && link.from != dst && link.to != src
        };
        let links: Vec<DetourLink> = links.iter().filter(is_used).copied().collect();
        let ahead = hops(nodes, src, links.iter().map(|link| (link.from, link.to)));
        let behind = hops(nodes, dst, links.iter().map(|link| (link.to, link.from)));
        let cuts_of = |link: &DetourLink| {
            let step = |next: &[Option<usize>], a: usize, b: usize| Some((next[a]?, next[b]?));
            let out = step(&ahead, link.from, link.to).filter(|(a, b)| a < b).map(|(a, _)| a);
            let into = step(&behind, link.to, link.from).filter(|(a, b)| a < b).map(|(a, _)| a);
            (out, into)
        };
        let length = ahead[dst]?;
        let cuts: Vec<(Option<usize>, Option<usize>)> = links
            .iter()
            .map(cuts_of)
            .map(|(out, into)| (out.filter(|&k| k < length), into.filter(|&k| k < length)))
            .collect();
        if is_chain(&links, &cuts, length) {
            return None;
        }
        let class = classes(&links, &cuts);
        let n = class.iter().max()? + 1;
        let empty = LinkGroup { hop: links[0].hop, count: 0, next: Vec::new() };
        let mut found = Self {
            model,
            lanes: vec![empty; n],
            is_first: vec![false; n],
            is_last: vec![false; n],
            cuts: vec![Vec::new(); 2 * length],
            full: Vec::new(),
        };
        let followers = followers(&links);
        for (i, link) in links.iter().enumerate() {
            let lanes = &mut found.lanes[class[i]];
            lanes.hop = link.hop;
            lanes.count += 1;
            lanes.next.extend(followers[i].iter().map(|&n| class[n]));
            found.is_first[class[i]] |= link.from == src;
            found.is_last[class[i]] |= link.to == dst;
            let into = cuts[i].1.map(|k| length + k);
            for cut in cuts[i].0.into_iter().chain(into) {
                found.cuts[cut].push(class[i]);
            }
        }
        let lists = found.lanes.iter_mut().map(|lanes| &mut lanes.next);
        for list in lists.chain(&mut found.cuts) {
            list.sort_unstable();
            list.dedup();
        }
        found.full = found.carry(model.segmentation.full_wire_bytes());
        Some(found)
    }

    /// Returns a time below which no transport can deliver a message of `size`.
    pub fn minimum_time(&self, size: Bytes) -> Span {
        let segmentation = &self.model.segmentation;
        let last = segmentation.last_wire_bytes(size);
        let n = u64::from(segmentation.packets(size));
        if n == 1 {
            return self.min_packet_time(last);
        }
        let is_shaped = matches!(self.model.forwarding, Forwarding::Shaped { .. });
        let time = match last == segmentation.full_wire_bytes() {
            true => self.of_full(n),
            false if is_shaped => {
                let (short, mut time) = (self.carry(last), self.of_full(n - 1));
                let is_single =
                    |cut: &&Vec<usize>| matches!(cut[..], [n] if self.lanes[n].count == 1);
                for cut in self.cuts.iter().filter(is_single) {
                    time = time.max(shaped_link_time(&self.full[cut[0]], &short[cut[0]], n - 1));
                }
                time.max(self.min_packet_time(last).as_ps())
            }
            false => {
                let (short, mut time) = (self.carry(last), self.of_full(n - 1));
                for (lanes, full) in self.by_cut(&self.full) {
                    let short: Vec<LinkGroupTimes> = self.of_cut(&lanes, &short);
                    let lanes: Vec<LinkGroup> = self.of_cut(&lanes, &self.lanes);
                    time = time.max(mixed_hop_time(time, n - 1, &lanes, &full, &short));
                }
                time
            }
        };
        Span::from_ps(time)
    }

    /// Returns the minimum time of one packet of `wire` bytes.
    pub fn min_packet_time(&self, wire: Bytes) -> Span {
        let carry = self.carry(wire);
        let first = carry.iter().zip(&self.is_first).filter(|(_, is_first)| **is_first);
        Span::from_ps(first.map(|(carry, _)| carry.packet_time()).min().unwrap_or(0))
    }

    /// Returns the lanes of each cut by number, with their times.
    fn by_cut<'a>(
        &'a self,
        carry: &'a [LinkGroupTimes],
    ) -> impl Iterator<Item = (Vec<usize>, Vec<LinkGroupTimes>)> + 'a {
        self.cuts.iter().map(|cut| (cut.clone(), self.of_cut(cut, carry)))
    }

    fn of_cut<T: Clone>(&self, cut: &[usize], all: &[T]) -> Vec<T> {
        cut.iter().map(|&n| all[n].clone()).collect()
    }

    /// Returns the minimum time of `n` full packets.
    fn of_full(&self, n: u64) -> u64 {
        let time = |(cut, carry): (Vec<usize>, Vec<LinkGroupTimes>)| {
            full_hop_time(&self.of_cut(&cut, &self.lanes), &carry, n)
        };
        self.by_cut(&self.full).map(time).max().unwrap_or(0)
    }

    /// Returns the times of packets of `wire` bytes by lane: the earliest start on any path, and
    /// the shortest time from the start on.
    fn carry(&self, wire: Bytes) -> Vec<LinkGroupTimes> {
        let burst = match self.model.forwarding {
            Forwarding::Shaped { burst } => burst.as_ps(),
            Forwarding::StoreAndForward | Forwarding::CutThrough { .. } => 0,
        };
        let of = |(lanes, (is_first, is_last)): (&LinkGroup, (&bool, &bool))| {
            let tx = lanes.hop.rate.tx_time(wire).as_ps();
            let end = tx + lanes.hop.delay.as_ps();
            let head = if *is_first { 0 } else { u64::MAX };
            LinkGroupTimes { head, tx, rest: if *is_last { end } else { u64::MAX }, burst }
        };
        let ends = self.is_first.iter().zip(&self.is_last);
        let mut carry: Vec<LinkGroupTimes> = self.lanes.iter().zip(ends).map(of).collect();
        let step = |a: usize, b: usize| {
            let (a, b) = (&self.lanes[a].hop, &self.lanes[b].hop);
            (self.model.head(wire, a, b) + a.delay).as_ps()
        };
        loop {
            let mut is_stable = true;
            for (from, lanes) in self.lanes.iter().enumerate() {
                for &to in &lanes.next {
                    let step = step(from, to);
                    let head = carry[from].head.saturating_add(step);
                    let rest = carry[to].rest.saturating_add(step);
                    is_stable &= head >= carry[to].head && rest >= carry[from].rest;
                    carry[to].head = carry[to].head.min(head);
                    carry[from].rest = carry[from].rest.min(rest);
                }
            }
            if is_stable {
                return carry;
            }
        }
    }
}

/// Returns true for each node that is on a path from `src` to `dst` without a loop. These are the
/// nodes of the biconnected component that a link between the two would join.
fn between(nodes: usize, links: &[DetourLink], src: usize, dst: usize) -> Vec<bool> {
    let mut next_to = vec![Vec::new(); nodes];
    for link in links {
        next_to[link.from].push(link.to);
        next_to[link.to].push(link.from);
    }
    // Depth-first search by Hopcroft and Tarjan. `low` is the first node that links from a node or
    // from those below it lead to.
    let mut order = vec![usize::MAX; nodes];
    let mut low = vec![usize::MAX; nodes];
    (order[src], order[dst], low[dst]) = (0, 1, 1);
    let (mut count, mut block) = (2, vec![dst]);
    let mut visits = vec![(dst, src, 0)];
    while let Some((node, parent, at)) = visits.last_mut() {
        let (node, parent) = (*node, *parent);
        let Some(&to) = next_to[node].get(*at) else {
            visits.pop();
            if node != dst {
                low[parent] = low[parent].min(low[node]);
                if low[node] >= order[parent] {
                    let start = block.iter().rposition(|&of| of == node).unwrap_or(0);
                    block.truncate(start);
                }
            }
            continue;
        };
        *at += 1;
        if to == parent {
            continue;
        }
        if order[to] == usize::MAX {
            (order[to], low[to]) = (count, count);
            count += 1;
            block.push(to);
            visits.push((to, node, 0));
        } else {
            low[node] = low[node].min(order[to]);
        }
    }
    let mut is_between = vec![false; nodes];
    block.into_iter().chain([src]).for_each(|node| is_between[node] = true);
    is_between
}

/// Returns the number of hops from `root` to each node; `None` if there is no path.
fn hops(
    nodes: usize,
    root: usize,
    links: impl Iterator<Item = (usize, usize)>,
) -> Vec<Option<usize>> {
    let mut out = vec![Vec::new(); nodes.max(root + 1)];
    links.for_each(|(from, to)| out[from].push(to));
    let mut hops = vec![None; out.len()];
    hops[root] = Some(0);
    let mut queue = std::collections::VecDeque::from([root]);
    while let Some(at) = queue.pop_front() {
        for &to in &out[at] {
            if hops[to].is_none() {
                hops[to] = hops[at].map(|hops: usize| hops + 1);
                queue.push_back(to);
            }
        }
    }
    hops
}

/// Returns true if all packets take the same links in the same order.
fn is_chain(links: &[DetourLink], cuts: &[(Option<usize>, Option<usize>)], length: usize) -> bool {
    let mut of_cuts = vec![Vec::new(); length];
    for (link, (_, into)) in links.iter().zip(cuts) {
        if let Some(k) = into {
            of_cuts[*k].push((link.from, link.to));
        }
    }
    let is_single = of_cuts.iter().all(|of| of.len() == 1);
    is_single && of_cuts.windows(2).all(|pair| pair[0][0].0 == pair[1][0].1)
}

/// Returns the links that each link leads to. A packet does not return by the same link.
fn followers(links: &[DetourLink]) -> Vec<Vec<usize>> {
    let mut from_node: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, link) in links.iter().enumerate() {
        from_node.entry(link.from).or_default().push(i);
    }
    let of = |link: &DetourLink| {
        let next = from_node.get(&link.to).into_iter().flatten().copied();
        next.filter(|&n| links[n].to != link.from).collect()
    };
    links.iter().map(of).collect()
}

/// Returns the class number of each link. Links of a class have the same rate and delay, are in the
/// same cuts, and have links of the same classes before and after them.
fn classes(links: &[DetourLink], cuts: &[(Option<usize>, Option<usize>)]) -> Vec<usize> {
    let after = followers(links);
    let mut before = vec![Vec::new(); links.len()];
    for (i, next) in after.iter().enumerate() {
        next.iter().for_each(|&n| before[n].push(i));
    }
    let mut known = BTreeMap::new();
    let kind = links.iter().zip(cuts).map(|(link, cuts)| (link.hop.rate, link.hop.delay, *cuts));
    let mut class: Vec<usize> = kind
        .map(|kind| {
            let count = known.len();
            *known.entry(kind).or_insert(count)
        })
        .collect();
    let mut count = known.len();
    loop {
        let set = |nodes: &[usize]| {
            let mut nodes: Vec<usize> = nodes.iter().map(|&n| class[n]).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        let mut known = BTreeMap::new();
        let mut finer = Vec::with_capacity(links.len());
        for i in 0..links.len() {
            let count = known.len();
            let kind = (class[i], set(&before[i]), set(&after[i]));
            finer.push(*known.entry(kind).or_insert(count));
        }
        class = finer;
        if known.len() == count {
            return class;
        }
        count = known.len();
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_types::{Padding, Rate, Segmentation};

    use super::*;

    const PADDED: Segmentation =
        Segmentation::new(Bytes::new(1_460), Bytes::new(40), Padding::Full);
    const MODEL: IdealModel =
        IdealModel { forwarding: Forwarding::StoreAndForward, segmentation: PADDED };

    /// Returns the links in both directions, with rates in Gbit/s.
    fn links(links: &[(usize, usize, u64)]) -> Vec<DetourLink> {
        let both = |&(a, b, gbps): &(usize, usize, u64)| {
            let hop = PathHop { rate: Rate::from_gbps(gbps), delay: Span::from_ns(500) };
            [DetourLink { hop, from: a, to: b }, DetourLink { hop, from: b, to: a }]
        };
        links.iter().flat_map(both).collect()
    }

    fn path(rates: &[u64]) -> Vec<PathHop> {
        let hop = |&gbps: &u64| PathHop { rate: Rate::from_gbps(gbps), delay: Span::from_ns(500) };
        rates.iter().map(hop).collect()
    }

    /// Nodes 0 and 1 are hosts at switches 2 and 3, which a slow link joins, and a fast path by 4.
    #[test]
    fn a_longer_path_may_be_faster() {
        let links = links(&[(0, 2, 100), (1, 3, 100), (2, 3, 1), (2, 4, 100), (4, 3, 100)]);
        let detours = Detours::new(MODEL, &links, 0, 1).unwrap();
        let size = Bytes::new(1_460_000);
        let direct = MODEL.delivered(size, &path(&[100, 1, 100]));
        let around = MODEL.delivered(size, &path(&[100; 4]));
        let least = detours.minimum_time(size);
        assert!(least <= around && least.as_ps() as f64 > 0.98 * around.as_ps() as f64);
        assert!(direct > around * 50);
        // One packet: the slow link takes 12 us, the detour 4 hops.
        let one = Bytes::new(1_460);
        assert_eq!(detours.minimum_time(one), MODEL.delivered(one, &path(&[100; 4])));
    }

    #[test]
    fn one_path_has_no_detours() {
        // Hosts at one switch of a ring.
        let ring = [(0, 2, 100), (1, 2, 100), (2, 3, 100), (3, 4, 100), (4, 2, 100)];
        assert_eq!(Detours::new(MODEL, &links(&ring), 0, 1), None);
        assert_eq!(Detours::new(MODEL, &links(&[(0, 2, 100), (1, 3, 100)]), 0, 1), None);
        let links = links(&[(0, 2, 100), (1, 2, 100), (2, 3, 100), (3, 4, 10)]);
        assert_eq!(Detours::new(MODEL, &links, 0, 1), None);
        assert_eq!(Detours::new(MODEL, &links[..2], 0, 1), None);
    }

    /// Two leaves, four spines: other paths are longer, and carry no more.
    #[test]
    fn a_leaf_spine_has_the_time_of_its_shortest_paths() {
        let mut of = vec![(0, 2, 100), (1, 3, 100)];
        of.extend((4..8).flat_map(|spine| [(2, spine, 100), (3, spine, 100), (8, spine, 100)]));
        let exact = Segmentation::new(PADDED.payload, PADDED.header, Padding::Exact);
        let model = IdealModel { segmentation: exact, ..MODEL };
        let detours = Detours::new(model, &links(&of), 0, 1).unwrap();
        for size in [1, 1_460, 14_600, 1_000_000] {
            let size = Bytes::new(size);
            let alone = model.delivered(size, &path(&[100; 4]));
            let least = detours.minimum_time(size);
            assert!(
                least <= alone && least.as_ps() * 100 > alone.as_ps() * 99,
                "{size:?} {least:?}"
            );
        }
    }
}
