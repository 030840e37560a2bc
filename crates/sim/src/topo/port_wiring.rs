//! Ports of all nodes, by which routes are built: their links and far ends, racks, and the graph of
//! switches.

use std::collections::BTreeMap;

use rampmeter_types::wiring::{Link, Node, Wiring};

/// The ports of all nodes.
pub(super) struct PortWiring {
    /// The links, by number.
    pub(super) links: Vec<Link>,
    pub(super) ends: Vec<(u32, Node)>,
    pub(super) further: Vec<u32>,
    /// Link and far end of each switch's ports, and the number of the first.
    pub(super) of_switch: Vec<Vec<(u32, Node)>>,
    pub(super) first: Vec<u32>,
    /// The switches' ports that lead to each end.
    pub(super) down: Vec<Vec<u32>>,
}

/// Links between switches that are up, in the order of switches and of their ports.
pub(super) struct SwitchGraph {
    /// Place of each switch's first hop, and last their number.
    first: Vec<u32>,
    hops: Vec<Hop>,
}

/// A link from one switch to another.
#[derive(Clone, Copy)]
struct Hop {
    to: u32,
    port: u32,
    bps: u64,
}

impl SwitchGraph {
    pub(super) fn new(wiring: &PortWiring, up: &dyn Fn(u32) -> bool) -> Self {
        let (mut first, mut hops) = (vec![0], Vec::new());
        for (ports, &start) in wiring.of_switch.iter().zip(&wiring.first) {
            for (port, &(link, node)) in (start..).zip(ports) {
                if let Node::Switch(to) = node
                    && up(link)
                {
                    let bps = wiring.links[link as usize].rate_to(node).as_bps();
                    hops.push(Hop { to, port, bps });
                }
            }
            first.push(hops.len() as u32);
        }
        Self { first, hops }
    }

    fn hops(&self, switch: usize) -> &[Hop] {
        &self.hops[self.first[switch] as usize..self.first[switch + 1] as usize]
    }

    /// Puts into `distance` the hops from every switch to the nearest of `roots`; `u32::MAX` if
    /// there is no way.
    pub(super) fn distances(&self, roots: &[u32], distance: &mut Vec<u32>) {
        distance.clear();
        distance.resize(self.first.len() - 1, u32::MAX);
        roots.iter().for_each(|&root| distance[root as usize] = 0);
        let mut queue = roots.to_vec();
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for hop in self.hops(at as usize) {
                if distance[hop.to as usize] == u32::MAX {
                    distance[hop.to as usize] = distance[at as usize] + 1;
                    queue.push(hop.to);
                }
            }
        }
    }

    /// Adds the ports of a switch, with their rates, that lead to switches one hop nearer.
    pub(super) fn push_closer(&self, switch: usize, distance: &[u32], ports: &mut Vec<(u32, u64)>) {
        let own = distance[switch];
        let closer = self.hops(switch).iter().filter(|hop| {
            let far = distance[hop.to as usize];
            far < u32::MAX && far + 1 == own
        });
        ports.extend(closer.map(|hop| (hop.port, hop.bps)));
    }
}

/// Ends that the same switches lead to.
pub(super) struct Rack {
    pub(super) members: Vec<u32>,
    pub(super) switches: Vec<u32>,
    /// Ports that lead to its members, by switch.
    pub(super) down: Vec<Vec<u32>>,
    /// True for the rack of one end with several links to a switch: packets are spread over them.
    pub(super) has_parallel: bool,
}

impl Rack {
    fn new(switches: Vec<u32>) -> Self {
        let down = vec![Vec::new(); switches.len()];
        Self { members: Vec::new(), switches, down, has_parallel: false }
    }

    /// Returns the rack of an end that ports of `switches` lead to, some of them of one switch.
    fn of_parallel(end: u32, switches: &[u32], ports: &[u32]) -> Self {
        let mut own = switches.to_vec();
        own.sort_unstable();
        own.dedup();
        let mut rack = Self { members: vec![end], has_parallel: true, ..Self::new(own) };
        for (switch, &port) in switches.iter().zip(ports) {
            let at = rack.switches.binary_search(switch).expect("every switch is listed");
            rack.down[at].push(port);
        }
        rack
    }
}

impl PortWiring {
    pub(super) fn new(wiring: &Wiring) -> Self {
        let (n_stations, n_switches) = (wiring.n_stations() as usize, wiring.n_switches() as usize);
        let mut uplinks: Vec<Vec<(u32, Node)>> = vec![Vec::new(); n_stations];
        let mut of_switch: Vec<Vec<(u32, Node)>> = vec![Vec::new(); n_switches];
        for (number, link) in wiring.links.iter().enumerate() {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                match from {
                    Node::Switch(s) => of_switch[s as usize].push((number as u32, to)),
                    end => uplinks[wiring.station(end).expect("an end") as usize]
                        .push((number as u32, to)),
                }
            }
        }
        let mut ends: Vec<(u32, Node)> = uplinks.iter().map(|links| links[0]).collect();
        let mut further = Vec::new();
        for (links, end) in uplinks.iter().zip(0..) {
            ends.extend_from_slice(&links[1..]);
            further.extend(links[1..].iter().map(|_| end));
        }
        let mut first = Vec::with_capacity(n_switches);
        let mut down = vec![Vec::new(); n_stations];
        for ports in &of_switch {
            first.push(ends.len() as u32);
            for (port, (_, to)) in (ends.len() as u32..).zip(ports) {
                if let Some(end) = wiring.station(*to) {
                    down[end as usize].push(port);
                }
            }
            ends.extend_from_slice(ports);
        }
        let links = wiring.links.clone();
        Self { links, ends, further, of_switch, first, down }
    }

    /// Returns the ports of an end with several links, in their order, with the switch of each link
    /// that is up.
    pub(super) fn uplinks(&self, end: u32, up: &dyn Fn(u32) -> bool) -> Vec<(u32, Option<u32>)> {
        let n_stations = self.down.len() as u32;
        let first = self.further.partition_point(|&of| of < end);
        let further = (n_stations + first as u32..).zip(&self.further[first..]);
        let own = further.take_while(|(_, of)| **of == end).map(|(port, _)| port);
        let switch = |port: u32| match self.ends[port as usize] {
            (link, Node::Switch(switch)) if up(link) => Some(switch),
            _ => None,
        };
        std::iter::once(end).chain(own).map(|port| (port, switch(port))).collect()
    }

    /// Adds the ports of a switch that are in `down`, with the rates of their links.
    pub(super) fn push_down(
        &self,
        switch: usize,
        down: &[u32],
        up: &dyn Fn(u32) -> bool,
        ports: &mut Vec<(u32, u64)>,
    ) {
        for (port, &(link, to)) in (self.first[switch]..).zip(&self.of_switch[switch]) {
            if down.contains(&port) && up(link) {
                ports.push((port, self.links[link as usize].rate_to(to).as_bps()));
            }
        }
    }

    /// Returns the hosts and arbiters with several links.
    pub(super) fn multi_homed(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.down).filter(|(_, ports)| ports.len() > 1).map(|(end, _)| end)
    }

    /// Returns racks of ends with one link in the order of their switches. Those of ends with
    /// several links follow, in the order of their first ends.
    pub(super) fn racks(&self, wiring: &Wiring, up: &dyn Fn(u32) -> bool) -> Vec<Rack> {
        let is_single = |end: u32| self.down[end as usize].len() == 1;
        let homes = || (0u32..).zip(&wiring.tors).filter(|(end, _)| is_single(*end));
        let mut tors: Vec<u32> = homes().map(|(_, &tor)| tor).collect();
        tors.sort_unstable();
        tors.dedup();
        let mut racks: Vec<Rack> = tors.iter().map(|&tor| Rack::new(vec![tor])).collect();
        for (end, tor) in homes() {
            let rack = &mut racks[tors.binary_search(tor).expect("every rack is listed")];
            rack.members.push(end);
            rack.down[0].push(self.down[end as usize][0]);
        }
        let mut known: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for end in self.multi_homed() {
            let ports = self.down[end as usize].iter().copied();
            let ports: Vec<u32> = ports.filter(|&p| up(self.ends[p as usize].0)).collect();
            let switch = |port: &u32| self.first.partition_point(|first| first <= port) as u32 - 1;
            let switches: Vec<u32> = ports.iter().map(switch).collect();
            if (1..switches.len()).any(|n| switches[..n].contains(&switches[n])) {
                racks.push(Rack::of_parallel(end, &switches, &ports));
                continue;
            }
            let at = *known.entry(switches.clone()).or_insert_with(|| {
                racks.push(Rack::new(switches));
                racks.len() - 1
            });
            racks[at].members.push(end);
            racks[at].down.iter_mut().zip(ports).for_each(|(down, port)| down.push(port));
        }
        racks
    }
}
