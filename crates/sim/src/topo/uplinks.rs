//! Uplinks of hosts and arbiters with several links: which of them are nearest to a rack.
//!
//! *Problem*: a list of ports for each host and rack takes memory that grows with the square of the
//! number of hosts.
//!
//! *This way*: hosts whose links lead to the same switches form a group. For a rack, a group has
//! the number of one of its few sets of links, and each host has the ports of these sets.

use std::collections::BTreeMap;
use std::ops::Range;

use super::port_wiring::PortWiring;

/// The nearest uplinks by end and rack.
#[derive(Clone, Debug, Default)]
pub(super) struct Uplinks {
    /// Ends with several links, ascending.
    ends: Vec<UplinkEnd>,
    groups: Vec<UplinkGroup>,
}

/// A host or an arbiter with several links.
#[derive(Clone, Debug)]
struct UplinkEnd {
    number: u32,
    group: u32,
    /// Ports in their order.
    all: Vec<u32>,
    /// The ports of each set of its group, one set after the other.
    ports: Vec<u32>,
}

/// Ends whose links lead to the same switches, in the same order.
#[derive(Clone, Debug)]
struct UplinkGroup {
    /// Switch of each link that is up.
    switches: Vec<Option<u32>>,
    /// Distinct sets of links, by place, and the places of their ports among those of an end.
    sets: Vec<(Vec<usize>, Range<u32>)>,
    /// The set of nearest links by rack.
    of_rack: Vec<u32>,
}

impl Uplinks {
    /// Returns the uplinks without racks, over the links for which `up` returns true.
    pub(super) fn new(wiring: &PortWiring, up: &dyn Fn(u32) -> bool) -> Self {
        let mut known = BTreeMap::new();
        let mut uplinks = Self::default();
        for number in wiring.multi_homed() {
            let (all, switches): (Vec<u32>, Vec<_>) =
                wiring.uplinks(number, up).into_iter().unzip();
            let group = *known.entry(switches.clone()).or_insert_with(|| {
                uplinks.groups.push(UplinkGroup { switches, sets: vec![], of_rack: vec![] });
                uplinks.groups.len() as u32 - 1
            });
            uplinks.ends.push(UplinkEnd { number, group, all, ports: vec![] });
        }
        uplinks
    }

    /// Adds the next rack, to which each switch has a distance; `u32::MAX` if there is no way.
    pub(super) fn push_rack(&mut self, distance: &[u32]) {
        let n_sets = |groups: &[UplinkGroup]| groups.iter().map(|group| group.sets.len()).sum();
        let before: usize = n_sets(&self.groups);
        for group in &mut self.groups {
            group.push_rack(distance);
        }
        if n_sets(&self.groups) == before {
            return;
        }
        for end in &mut self.ends {
            let sets = &self.groups[end.group as usize].sets;
            // A rack adds one set at most.
            if let Some((places, range)) = sets.last()
                && range.end as usize > end.ports.len()
            {
                end.ports.extend(places.iter().map(|&place| end.all[place]));
            }
        }
    }

    /// Returns the ports of an end that are nearest to a rack; `None` if it has one link.
    #[inline]
    pub(super) fn nearest(&self, end: u32, rack: u32) -> Option<&[u32]> {
        let end = &self.ends[self.place(end)?];
        let group = &self.groups[end.group as usize];
        let range = &group.sets[group.of_rack[rack as usize] as usize].1;
        Some(&end.ports[range.start as usize..range.end as usize])
    }

    /// Returns true if an end has several links.
    #[inline]
    pub(super) fn has(&self, end: u32) -> bool {
        self.place(end).is_some()
    }

    #[inline]
    fn place(&self, end: u32) -> Option<usize> {
        // Mostly all ends have several links, or none has.
        if self.ends.get(end as usize).is_some_and(|of| of.number == end) {
            return Some(end as usize);
        }
        self.ends.binary_search_by_key(&end, |of| of.number).ok()
    }
}

impl UplinkGroup {
    fn push_rack(&mut self, distance: &[u32]) {
        let far = |switch: &Option<u32>| switch.map_or(u32::MAX, |s| distance[s as usize]);
        let least = self.switches.iter().map(far).min().unwrap_or(u32::MAX);
        let is_nearest = |place: &usize| least < u32::MAX && far(&self.switches[*place]) == least;
        let places: Vec<usize> = (0..self.switches.len()).filter(is_nearest).collect();
        let set = self.sets.iter().position(|(known, _)| *known == places).unwrap_or_else(|| {
            let start = self.sets.last().map_or(0, |(_, range)| range.end);
            let range = start..start + places.len() as u32;
            self.sets.push((places, range));
            self.sets.len() - 1
        });
        self.of_rack.push(set as u32);
    }
}
