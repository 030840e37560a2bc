//! The least time in which a message can cross a network whose packets may take several paths.
//!
//! All paths between two hosts have equally many hops, so that the links of hop `i` are a cut:
//! each packet takes one of them. Packets start on a link one after another, none before the
//! fastest path to it has brought it there, and each has the fastest path from there still before
//! it. The least time in which one hop can carry all packets under these rules is a bound from
//! below, and so is the longest of these times. It is the ideal where one path reaches it, and in
//! other networks a bound: [`Least::is_exact`] tells which.
//!
//! The last packet may be short, and may overtake others on another path. Each hop may carry it
//! when that takes least time: before the full packets, or after them.

use std::collections::BTreeMap;

use rampmeter_core::{Bytes, Span};

use crate::ideal::{IdealModel, PathHop};

/// A link of a hop, and the places in the next hop of those that it leads to.
pub type WayLink = (PathHop, Vec<usize>);

/// The least time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// No transport can deliver it in less.
    pub time: Span,
    /// True if a transport can deliver it in this time; else it is a bound.
    pub is_exact: bool,
}

/// Links of one hop that are alike: the same rate and delay, from and to links that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lanes {
    hop: PathHop,
    count: u64,
    /// The lanes of the next hop that they lead to; none for the last.
    next: Vec<usize>,
}

/// The links between two hosts, hop by hop. The first hop has the interfaces of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    model: IdealModel,
    hops: Vec<Vec<Lanes>>,
    /// Times of full packets, by hop.
    full: Vec<Vec<Carry>>,
    /// The path on which a full packet is fastest.
    path: Vec<PathHop>,
}

/// Times of packets of one size on lanes: the earliest start, the time on the link, and the time
/// from the start until a packet is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carry {
    head: u64,
    tx: u64,
    rest: u64,
}

impl Ways {
    /// The ways over links of which each leads to some of the next hop's, named by their places in
    /// it.
    ///
    /// # Panics
    /// If there is no way.
    pub fn new(model: IdealModel, links: &[Vec<WayLink>]) -> Self {
        let forward = classes(links, false);
        let backward = classes(links, true);
        let mut hops: Vec<Vec<Lanes>> = Vec::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        for (at, hop) in links.iter().enumerate() {
            let mut known = BTreeMap::new();
            let mut lanes: Vec<Lanes> = Vec::new();
            let mut place = Vec::new();
            for (i, (link, _)) in hop.iter().enumerate() {
                let class = (forward[at][i], backward[at][i]);
                let n = *known.entry(class).or_insert(lanes.len());
                if n == lanes.len() {
                    lanes.push(Lanes { hop: *link, count: 0, next: Vec::new() });
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
            }
        }
        let (full, path) = (Vec::new(), Vec::new());
        let mut ways = Self { model, hops, full, path };
        ways.full = ways.carry(model.framing.wire);
        ways.path = ways.fastest();
        ways
    }

    /// The least time until a message of `size` is delivered.
    pub fn least(&self, size: Bytes) -> Least {
        let framing = &self.model.framing;
        let last = framing.last_wire(size);
        let n = framing.packets(size);
        if n == 1 {
            return Least { time: self.alone(last), is_exact: true };
        }
        let in_order = self.model.delivered(size, &self.path).as_ps();
        let time = match last == framing.wire {
            true => self.of_full(&self.full, n),
            false => self.of_fulls_and_short(n - 1, last, in_order),
        };
        Least { time: Span::from_ps(time), is_exact: time == in_order }
    }

    /// The least time of `n` full packets and one of `last` bytes. `in_order` is that of one path.
    fn of_fulls_and_short(&self, n: u64, last: Bytes, in_order: u64) -> u64 {
        let (full, short) = (&self.full, self.carry(last));
        let mut time = self.of_full(full, n);
        for ((lanes, full), short) in self.hops.iter().zip(full).zip(&short) {
            time = time.max(self.of_all(time, n, lanes, (full, short)));
        }
        if self.hops.iter().all(|lanes| lanes.len() == 1 && lanes[0].count == 1) {
            // The order of packets is the same on each hop of one path.
            let hops = full.iter().zip(&short);
            let first = hops.map(|(full, short)| short_first(&full[0], &short[0], n)).max();
            time = time.max(in_order.min(first.unwrap_or(0)));
        }
        time
    }

    /// The least time of one packet of `wire` bytes.
    pub fn alone(&self, wire: Bytes) -> Span {
        Span::from_ps(self.of_full(&self.carry(wire), 1))
    }

    /// Returns the times of packets of `wire` bytes, by hop.
    fn carry(&self, wire: Bytes) -> Vec<Vec<Carry>> {
        let tx = |lanes: &Lanes| lanes.hop.rate.tx_time(wire).as_ps();
        let mut carry: Vec<Vec<Carry>> = Vec::new();
        for hop in &self.hops {
            let of = |lanes: &Lanes| Carry { head: u64::MAX, tx: tx(lanes), rest: u64::MAX };
            carry.push(hop.iter().map(of).collect());
        }
        let ahead = |lanes: &Lanes, next: &Lanes| {
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

    /// The least time of `n` full packets.
    fn of_full(&self, carry: &[Vec<Carry>], n: u64) -> u64 {
        let of = |(lanes, carry): (&Vec<Lanes>, &Vec<Carry>)| self.of_hop(lanes, carry, n);
        self.hops.iter().zip(carry).map(of).max().unwrap_or(0)
    }

    /// The least time in which one hop carries `n` full packets.
    fn of_hop(&self, lanes: &[Lanes], carry: &[Carry], n: u64) -> u64 {
        let alone = |(lanes, carry): (&Lanes, &Carry)| {
            let rounds = n.div_ceil(lanes.count) - 1;
            carry.head.saturating_add(carry.rest).saturating_add(carry.tx.saturating_mul(rounds))
        };
        let most = lanes.iter().zip(carry).map(alone).min().unwrap_or(0);
        if lanes.len() == 1 {
            return most;
        }
        search(0, most, |time| {
            let of = |(lanes, carry): (&Lanes, &Carry)| lanes.count * carry.packets(time);
            lanes.iter().zip(carry).map(of).sum::<u64>() >= n
        })
    }

    /// The least time, not below `least`, in which one hop carries `n` full packets and a short one.
    fn of_all(
        &self,
        least: u64,
        n: u64,
        lanes: &[Lanes],
        (full, short): (&[Carry], &[Carry]),
    ) -> u64 {
        let is_enough = |time: u64| {
            let all = |(lanes, full): (&Lanes, &Carry)| lanes.count * full.packets(time);
            let together = lanes.iter().zip(full).map(all).sum::<u64>();
            full.iter().zip(short).any(|(full, short)| {
                if short.packets(time) == 0 {
                    return false;
                }
                let beside = beside_short(full, short, time);
                together - full.packets(time) + beside >= n
            })
        };
        if is_enough(least) {
            return least;
        }
        let mut most = least.max(1);
        while !is_enough(most) {
            most = most.saturating_mul(2);
        }
        search(least, most, is_enough)
    }

    /// The path on which a full packet is fastest.
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

impl Carry {
    /// Returns the number of packets that one link carries so that all are delivered by `time`.
    fn packets(&self, time: u64) -> u64 {
        match time.checked_sub(self.head.saturating_add(self.rest)) {
            Some(left) => left / self.tx.max(1) + 1,
            None => 0,
        }
    }
}

/// Returns the time at which one link that carries the short packet first has delivered `n` full
/// ones, of which there is one at least.
fn short_first(full: &Carry, short: &Carry, n: u64) -> u64 {
    let start = full.head.max(short.head + short.tx);
    start.saturating_add(full.tx.saturating_mul(n - 1)).saturating_add(full.rest)
}

/// Returns the number of full packets that one link carries with the short one so that all are
/// delivered by `time`.
fn beside_short(full: &Carry, short: &Carry, time: u64) -> u64 {
    let tx = full.tx.max(1);
    let start = full.head.max(short.head + short.tx).saturating_add(full.rest);
    let first = time.checked_sub(start).map_or(0, |left| left / tx + 1);
    let end = full.head.saturating_add(short.rest);
    let last = time.checked_sub(end).map_or(0, |left| left / tx);
    first.max(last.min(full.packets(time)))
}

/// The least of `least..=most` for which `is_enough`, which `most` is.
fn search(mut least: u64, mut most: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    while least < most {
        let middle = least + (most - least) / 2;
        if is_enough(middle) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    most
}

/// Numbers that are equal for links that packets reach alike, or from which they go on alike.
fn classes(links: &[Vec<WayLink>], is_backward: bool) -> Vec<Vec<usize>> {
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
mod tests {
    use super::*;
    use crate::ideal::{Forwarding, Framing, LastPacket};
    use proptest::prelude::*;
    use rampmeter_core::Rate;

    const MODEL: IdealModel = IdealModel {
        forwarding: Forwarding::StoreAndForward,
        framing: Framing { last: LastPacket::OwnSize, ..Framing::PADDED_1500 },
    };

    type Links = Vec<Vec<WayLink>>;

    fn hop(gbps: u64, delay_ns: u64) -> PathHop {
        PathHop { rate: Rate::from_gbps(gbps), delay: Span::from_ns(delay_ns) }
    }

    /// Two racks whose hosts have one link of 100 Gbit/s, over so many spines.
    fn leaf_spine(spines: usize, core_gbps: u64) -> Links {
        let core = |next: &dyn Fn(usize) -> Vec<usize>| {
            (0..spines).map(|n| (hop(core_gbps, 650), next(n))).collect()
        };
        vec![
            vec![(hop(100, 650), (0..spines).collect())],
            core(&|n| vec![n]),
            core(&|_| vec![0]),
            vec![(hop(100, 650), vec![])],
        ]
    }

    fn least(links: &Links, bytes: u64) -> (u64, bool) {
        let Least { time, is_exact } = Ways::new(MODEL, links).least(Bytes::new(bytes));
        (time.as_ps(), is_exact)
    }

    /// 10 MB between racks that four spines of 25 Gbit/s join keep the hosts' links busy.
    #[test]
    fn packets_spread_over_slow_links_of_the_core() {
        let packets = 6_850;
        let (time, is_exact) = least(&leaf_spine(4, 25), 1460 * packets);
        let alone = 4 * 650_000 + 2 * 120_000 + 2 * 480_000;
        assert_eq!((time, is_exact), (alone + (packets - 1) * 120_000, false));
        // Over two spines each link of the core carries every other packet.
        let (time, _) = least(&leaf_spine(2, 25), 1460 * packets);
        assert_eq!(time, alone + (packets / 2 - 1) * 480_000);
    }

    #[test]
    fn the_ideal_of_whole_packets_is_reached_on_one_path_of_a_wide_core() {
        let alone = 4 * 650_000 + 2 * 120_000 + 2 * 30_000;
        assert_eq!(least(&leaf_spine(4, 400), 1460), (alone, true));
        assert_eq!(least(&leaf_spine(4, 400), 14_600), (alone + 9 * 120_000, true));
    }

    /// Two packets, the second of 41 bytes: it overtakes the first on another path.
    #[test]
    fn a_short_last_packet_may_overtake() {
        let alone = 4 * 650_000 + 2 * 120_000 + 2 * 30_000;
        assert_eq!(least(&leaf_spine(4, 400), 1461), (alone, false));
    }

    /// Two interfaces at either end carry a half each.
    #[test]
    fn packets_spread_over_interfaces() {
        let rails = |next: &dyn Fn(usize) -> Vec<usize>| {
            (0..2).map(|n| (hop(25, 1_000), next(n))).collect::<Vec<_>>()
        };
        let (time, _) = least(&vec![rails(&|n| vec![n]), rails(&|_| vec![])], 1460 * 100);
        assert_eq!(time, 2 * 1_000_000 + 51 * 480_000);
    }

    /// Three links of 100 and one of 10 Gbit/s: the slow one takes a packet in 31.
    #[test]
    fn links_of_two_rates_carry_what_they_can() {
        let mut links = leaf_spine(4, 100);
        (links[0][0].0, links[3][0].0) = (hop(1_000, 650), hop(1_000, 650));
        for hops in &mut links[1..3] {
            hops[3].0 = hop(10, 650);
        }
        let (time, _) = least(&links, 1460 * 310);
        let share = (time - 2_600_000) as f64 / (310.0 * 12_000.0 * 1_000.0 / 310.0);
        assert!((share - 1.0).abs() < 0.03, "{share}");
    }

    prop_compose! {
        /// Hops of one to three links each, of which every one leads to some of the next.
        fn any_links()(
            hops in prop::collection::vec(prop::collection::vec((1..400u64, 0..2_000u64, 1..8usize), 1..4), 1..6),
        ) -> Links {
            let wide = |at: usize| hops.get(at + 1).map_or(0, Vec::len);
            let link = |at: usize, i: usize, (gbps, delay, mask): (u64, u64, usize)| {
                let mut next: Vec<usize> = (0..wide(at)).filter(|n| mask >> n & 1 == 1).collect();
                if next.is_empty() && wide(at) > 0 {
                    next.push(i % wide(at));
                }
                // Each link of the next hop is led to.
                if i == 0 {
                    next = (0..wide(at)).collect();
                }
                (hop(gbps, delay), next)
            };
            let of = |(at, of): (usize, &Vec<(u64, u64, usize)>)| {
                of.iter().enumerate().map(|(i, &it)| link(at, i, it)).collect()
            };
            hops.iter().enumerate().map(of).collect()
        }
    }

    /// Delivers packets in this order, each over a path that `picks` chooses: links take packets in
    /// the order in which they arrive. Returns when the last one is there.
    fn simulate(links: &Links, sizes: &[u64], picks: &[usize]) -> u64 {
        // Each packet: when it is ready for its next link, in which order it was sent, and the link.
        let mut picks = picks.iter().copied().cycle();
        let mut ready: Vec<(u64, usize, usize)> = sizes
            .iter()
            .enumerate()
            .map(|(i, _)| (0, i, picks.next().unwrap_or(0) % links[0].len()))
            .collect();
        for hop in links {
            let mut free = vec![0u64; hop.len()];
            ready.sort_unstable();
            for (at, packet, link) in &mut ready {
                let (PathHop { rate, delay }, next) = &hop[*link];
                let start = free[*link].max(*at);
                free[*link] = start + rate.tx_time(Bytes::new(sizes[*packet])).as_ps();
                *at = free[*link] + delay.as_ps();
                *link =
                    next.get(picks.next().unwrap_or(0) % next.len().max(1)).copied().unwrap_or(0);
            }
        }
        ready.iter().map(|&(at, ..)| at).max().unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn nothing_is_faster_than_the_least_time(
            links in any_links(),
            full in 0..6usize,
            last in 1..1461u64,
            place in 0..6usize,
            picks in prop::collection::vec(0..6usize, 40),
        ) {
            let mut sizes = vec![1500; full];
            sizes.insert(place.min(full), last + 40);
            let (time, _) = least(&links, 1460 * full as u64 + last);
            let taken = simulate(&links, &sizes, &picks);
            prop_assert!(time <= taken, "{time} of {taken}");
        }

        /// On one path the least time is that of the best place of the short packet.
        #[test]
        fn the_least_time_of_a_path_is_exact(
            rates in prop::collection::vec((1..400u64, 0..2_000u64), 1..6),
            full in 1..6usize,
            last in 1..1461u64,
        ) {
            let n = rates.len();
            let next = |at: usize| if at + 1 < n { vec![0] } else { vec![] };
            let links: Links = rates.iter().enumerate().map(|(at, &(g, d))| vec![(hop(g, d), next(at))]).collect();
            let (time, is_exact) = least(&links, 1460 * full as u64 + last);
            let of = |place| {
                let mut sizes = vec![1500; full];
                sizes.insert(place, last + 40);
                simulate(&links, &sizes, &[0])
            };
            let best = (0..=full).map(of).min().unwrap();
            prop_assert!(time <= best);
            if is_exact {
                prop_assert_eq!(time, best);
            }
        }
    }
}
