//! Aggregation switches for the pairs of one slot, one pair after the other (§3.1, §3.4).
//!
//! A link between a rack and an aggregation switch takes one pair a slot in each direction. Pairs
//! are edges between source racks and destination racks, and switches are colours: edges that meet
//! in a rack need different ones. A pair takes a switch whose links are free at both ends. If there
//! is none, pairs that were placed before change switches along an alternating path (a Kempe chain)
//! that frees one. If no rack has more pairs than switches this always succeeds (König). Pairs to
//! or from a core switch have one switch only, and a link that is broken has no pair: chains end at
//! both. A pair that finds no place then waits for another slot.

/// Links that a pair needs: a link up from a rack, a link down to a rack, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairLinks {
    /// The rack of the source, if that is a host.
    pub(crate) up: Option<u16>,
    /// The rack of the destination, if that is a host.
    pub(crate) down: Option<u16>,
    /// The aggregation switch, if there is no choice: that of a core switch, or of a probe.
    pub(crate) agg: Option<u8>,
}

/// A link between a rack and an aggregation switch, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// True for the direction from the rack.
    pub(crate) is_up: bool,
    pub(crate) rack: u16,
    pub(crate) agg: u8,
}

/// A pair that has been placed.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Ends of the pair: source racks first, then destination racks.
    ends: [Option<usize>; 2],
    agg: u8,
    is_fixed: bool,
}

/// The pairs of one slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    n_racks: usize,
    n_aggs: usize,
    /// Switches to which the link of each end works, and of these the ones without a pair.
    working_switches: Vec<u64>,
    free: Vec<u64>,
    /// Pair on the link, by end and switch.
    pair_on_link: Vec<Option<u16>>,
    pairs: Vec<Pair>,
    chain: Vec<u16>,
}

/// Returns the switches in a mask, in order.
fn switches_in(mut mask: u64) -> impl Iterator<Item = u8> + Clone {
    std::iter::from_fn(move || {
        let agg = (mask != 0).then_some(mask.trailing_zeros() as u8);
        mask &= mask.wrapping_sub(1);
        agg
    })
}

impl Paths {
    /// Returns a slot of a pod with this many racks and aggregation switches, at most 64, all links
    /// whole.
    pub(crate) fn new(n_racks: usize, n_aggs: usize) -> Self {
        assert!((1..=64).contains(&n_aggs), "{n_aggs} aggregation switches");
        let all = vec![u64::MAX >> (64 - n_aggs); 2 * n_racks];
        Self {
            n_racks,
            n_aggs,
            free: all.clone(),
            working_switches: all,
            pair_on_link: vec![None; 2 * n_racks * n_aggs],
            ..Self::default()
        }
    }

    fn end(&self, is_up: bool, rack: u16) -> usize {
        usize::from(rack) + if is_up { 0 } else { self.n_racks }
    }

    /// Sets whether a link works, from the next slot on.
    pub(crate) fn set_working(&mut self, link: Link, is_whole: bool) {
        let end = self.end(link.is_up, link.rack);
        let bit = 1 << link.agg;
        self.working_switches[end] = if is_whole {
            self.working_switches[end] | bit
        } else {
            self.working_switches[end] & !bit
        };
    }

    /// Begins the next slot: no pair is placed.
    pub(crate) fn clear(&mut self) {
        self.free.clone_from(&self.working_switches);
        self.pair_on_link.fill(None);
        self.pairs.clear();
    }

    /// Returns the aggregation switch of a pair, by its number.
    pub(crate) fn agg(&self, pair: u16) -> u8 {
        self.pairs[usize::from(pair)].agg
    }

    /// Puts a pair that has its aggregation switch onto its links, broken or not. No pair may be
    /// on them.
    pub(crate) fn probe(&mut self, way: PairLinks) -> u16 {
        let agg = way.agg.expect("a probe has a switch");
        self.add(self.ends(way), agg, true)
    }

    /// Returns true if no pair uses the links of a route.
    pub(crate) fn is_clear(&self, way: PairLinks) -> bool {
        let agg = usize::from(way.agg.expect("a way by a given switch"));
        let is_clear = |end: &usize| self.pair_on_link[end * self.n_aggs + agg].is_none();
        self.ends(way).iter().flatten().all(is_clear)
    }

    /// Places a pair. Returns its number, from zero; `None` if there is no room in this slot.
    pub(crate) fn place(&mut self, way: PairLinks) -> Option<u16> {
        let ends = self.ends(way);
        let agg = match (way.agg, ends) {
            (Some(agg), _) => self.clear_for(ends, agg).then_some(agg),
            (None, [Some(up), Some(down)]) => self.choose(up, down),
            (None, _) => unreachable!("{way:?} has no choice of switches"),
        }?;
        Some(self.add(ends, agg, way.agg.is_some()))
    }

    fn ends(&self, way: PairLinks) -> [Option<usize>; 2] {
        [way.up.map(|rack| self.end(true, rack)), way.down.map(|rack| self.end(false, rack))]
    }

    fn add(&mut self, ends: [Option<usize>; 2], agg: u8, is_fixed: bool) -> u16 {
        let number = self.pairs.len() as u16;
        self.pairs.push(Pair { ends, agg, is_fixed });
        self.mark_links(number);
        number
    }

    fn mark_links(&mut self, number: u16) {
        let Pair { ends, agg, .. } = self.pairs[usize::from(number)];
        for end in ends.into_iter().flatten() {
            self.pair_on_link[end * self.n_aggs + usize::from(agg)] = Some(number);
            self.free[end] &= !(1 << agg);
        }
    }

    /// Clears a switch at both ends. A path from one end never arrives at the other: it would
    /// arrive by the switch that is free there.
    fn clear_for(&mut self, ends: [Option<usize>; 2], agg: u8) -> bool {
        ends.into_iter().flatten().all(|end| {
            let others = self.free[end];
            others & 1 << agg != 0
                || switches_in(others).any(|other| self.exchange(end, agg, other))
        })
    }

    /// Returns a switch that is free at both ends, which it may have to be made.
    fn choose(&mut self, up: usize, down: usize) -> Option<u8> {
        let (above, below) = (self.free[up], self.free[down]);
        if let Some(agg) = switches_in(above & below).next() {
            return Some(agg);
        }
        // The two paths of a pair of switches have no rack in common: a failure that blocks one
        // does not block the other.
        for (a, b) in switches_in(above).flat_map(|a| switches_in(below).map(move |b| (a, b))) {
            if self.exchange(down, a, b) {
                return Some(a);
            }
            if self.exchange(up, b, a) {
                return Some(b);
            }
        }
        None
    }

    /// Exchanges switches `a` and `b` along the path that begins at `end` with the pair by `a`, at
    /// which `b` is free. Returns true if `a` is now free there.
    fn exchange(&mut self, end: usize, a: u8, b: u8) -> bool {
        self.chain.clear();
        let (mut at, mut old, mut new) = (end, a, b);
        loop {
            let Some(number) = self.pair_on_link[at * self.n_aggs + usize::from(old)] else {
                // The link is broken.
                return false;
            };
            let pair = self.pairs[usize::from(number)];
            let [Some(up), Some(down)] = pair.ends else { return false };
            if pair.is_fixed {
                return false;
            }
            self.chain.push(number);
            at = if at == up { down } else { up };
            if self.free[at] & 1 << new != 0 {
                break;
            }
            (old, new) = (new, old);
        }
        for place in 0..self.chain.len() {
            let Pair { ends, agg, .. } = self.pairs[usize::from(self.chain[place])];
            for end in ends.into_iter().flatten() {
                self.pair_on_link[end * self.n_aggs + usize::from(agg)] = None;
                self.free[end] |= 1 << agg;
            }
        }
        for place in 0..self.chain.len() {
            let number = self.chain[place];
            let agg = &mut self.pairs[usize::from(number)].agg;
            *agg = if *agg == a { b } else { a };
            self.mark_links(number);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use rampmeter_types::{Purpose, Rng};

    use super::*;

    /// Returns a pair within the pod.
    fn between(up: u16, down: u16) -> PairLinks {
        PairLinks { up: Some(up), down: Some(down), agg: None }
    }

    /// Returns the links of a pair that has been placed.
    fn links(way: PairLinks, agg: u8) -> impl Iterator<Item = Link> {
        let up = way.up.map(|rack| Link { is_up: true, rack, agg });
        let down = way.down.map(|rack| Link { is_up: false, rack, agg });
        up.into_iter().chain(down)
    }

    /// Places ways in order; returns which of them have a place. No two are on a link, none is on
    /// a broken one, and switches that are given are kept.
    fn place_all(paths: &mut Paths, ways: &[PairLinks], broken: &BTreeSet<Link>) -> Vec<bool> {
        paths.clear();
        let numbers: Vec<Option<u16>> = ways.iter().map(|&way| paths.place(way)).collect();
        let mut used = BTreeSet::new();
        for (&way, number) in ways.iter().zip(&numbers) {
            let Some(agg) = number.map(|number| paths.agg(number)) else { continue };
            assert!(way.agg.is_none_or(|given| given == agg), "{way:?} by {agg}");
            for link in links(way, agg) {
                assert!(!broken.contains(&link), "{way:?} by {link:?}, which is broken");
                assert!(used.insert(link), "{way:?} is not the first on {link:?}");
            }
        }
        numbers.iter().map(Option::is_some).collect()
    }

    /// Returns a matching of all hosts of `n` racks of `n` hosts.
    fn matching(n: usize, rng: &mut Rng) -> Vec<PairLinks> {
        let mut dsts: Vec<usize> = (0..n * n).collect();
        rng.shuffle(&mut dsts);
        let rack = |host: usize| (host / n) as u16;
        dsts.iter().enumerate().map(|(src, &dst)| between(rack(src), rack(dst))).collect()
    }

    proptest! {
        /// König's theorem: a pod's hosts can be matched in any way.
        #[test]
        fn every_matching_of_hosts_is_placed(seed in any::<u64>(), n in 1usize..17) {
            let mut rng = Rng::new(seed, 0, Purpose::Test);
            let mut paths = Paths::new(n, n);
            for _ in 0..4 {
                let placed = place_all(&mut paths, &matching(n, &mut rng), &BTreeSet::new());
                prop_assert!(placed.iter().all(|&is_placed| is_placed));
            }
        }

        /// A broken link costs its rack one pair a slot, and no other pair its place.
        #[test]
        fn one_broken_link_costs_its_rack_one_pair(
            seed in any::<u64>(),
            n in 2usize..17,
            is_up in any::<bool>(),
        ) {
            let mut rng = Rng::new(seed, 0, Purpose::Test);
            let (rack, agg) = (rng.uniform_below(n) as u16, rng.uniform_below(n) as u8);
            let link = Link { is_up, rack, agg };
            let mut paths = Paths::new(n, n);
            paths.set_working(link, false);
            let placed =
                place_all(&mut paths, &matching(n, &mut rng), &BTreeSet::from([link]));
            prop_assert_eq!(placed.iter().filter(|&&is_placed| !is_placed).count(), 1);
        }

        /// For any set of broken links: no two pairs on a link, and none on a broken one.
        #[test]
        fn no_link_is_assigned_to_two_pairs(
            seed in any::<u64>(),
            n in 2usize..9,
            broken in 0usize..8,
        ) {
            let mut rng = Rng::new(seed, 0, Purpose::Test);
            let mut paths = Paths::new(n, n);
            let mut link = || Link {
                is_up: rng.bernoulli(0.5),
                rack: rng.uniform_below(n) as u16,
                agg: rng.uniform_below(n) as u8,
            };
            let broken: BTreeSet<Link> = (0..broken.min(n - 1)).map(|_| link()).collect();
            broken.iter().for_each(|&link| paths.set_working(link, false));
            for _ in 0..4 {
                let mut ways = matching(n, &mut rng);
                for way in &mut ways {
                    match rng.uniform_below(4) {
                        0 => (way.up, way.agg) = (None, Some(rng.uniform_below(n) as u8)),
                        1 => (way.down, way.agg) = (None, Some(rng.uniform_below(n) as u8)),
                        _ => {}
                    }
                }
                let placed = place_all(&mut paths, &ways, &broken);
                prop_assert!(placed.contains(&true));
            }
            broken.iter().for_each(|&link| paths.set_working(link, true));
            let placed = place_all(&mut paths, &matching(n, &mut rng), &BTreeSet::new());
            prop_assert!(placed.iter().all(|&is_placed| is_placed));
        }
    }

    /// A pair that has no choice moves one that has: up by switch 0 is taken, and made free.
    #[test]
    fn a_pair_without_choice_moves_others() {
        let mut paths = Paths::new(2, 2);
        paths.clear();
        let moved = paths.place(between(0, 1)).unwrap();
        assert_eq!(paths.agg(moved), 0);
        let fixed = paths.place(PairLinks { up: Some(0), down: None, agg: Some(0) }).unwrap();
        assert_eq!((paths.agg(fixed), paths.agg(moved)), (0, 1));
        // Nobody moves for a second one.
        assert_eq!(paths.place(PairLinks { up: Some(0), down: None, agg: Some(0) }), None);
    }

    #[test]
    fn a_probe_takes_a_broken_link() {
        let mut paths = Paths::new(2, 2);
        paths.set_working(Link { is_up: true, rack: 0, agg: 1 }, false);
        paths.clear();
        let probe = PairLinks { agg: Some(1), ..between(0, 1) };
        assert!(paths.is_clear(probe));
        assert_eq!((paths.place(probe), paths.probe(probe)), (None, 0));
        assert!(!paths.is_clear(probe));
        let other = paths.place(between(0, 1)).unwrap();
        assert_eq!(paths.agg(other), 0);
    }
}
