//! Shortest-path routing with all equal-cost next hops.
//!
//! Ports are numbered over the whole fabric. Port h is the uplink of host h, or its first. Further
//! uplinks of hosts and arbiters follow, then the ports of switch 0 in the order of its links, of
//! switch 1, and so on. Hosts of a rack are joined to the same switches, so a table by (switch,
//! rack of the destination) is enough: 160 KB for 1024 hosts instead of 1.3 MB. Hosts and arbiters
//! with several links make racks that several switches belong to. One with several links to a
//! switch is a separate rack. Its switches spread packets to it as over other parallel links.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rampmeter_types::wiring::{Node, Wiring};

use crate::engine::prefetch;

use super::port_wiring::{PortWiring, Rack, SwitchGraph};
use super::uplinks::Uplinks;

/// Forwarding tables of all switches. Clones share them.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Link and far end of each port.
    ends: Arc<[(u32, Node)]>,
    n_hosts: u32,
    /// Number of hosts and arbiters.
    n_stations: u32,
    /// The hosts and arbiters of the uplinks that follow those.
    extra_uplink_ends: Arc<[u32]>,
    /// The first of these uplinks of each host and arbiter, and last the end of all; empty if there
    /// are none.
    extra_uplinks: Arc<[u32]>,
    /// Uplinks of hosts and arbiters that have several.
    uplinks: Arc<Uplinks>,
    /// Column in the table of the rack of each host, and its place in the rack.
    hosts: Arc<[(u32, u32)]>,
    /// Number of columns.
    racks: usize,
    /// Forwarding entry of each switch for each rack, by switch x racks + rack.
    table: Arc<[Entry]>,
    /// Ports to choose from; entries of a switch share equal lists.
    choices: Arc<[u32]>,
}

/// Forwarding entry of a switch for a rack. The ports on shortest paths are `count` of the choices,
/// from `start` on, each as often as its rate demands. For the rack of the switch it has a choice
/// for each host, by place in the rack.
///
/// A switch that sends both up and down takes either way unpredictably. So the common case has no
/// branch: a packet's choice is `path & mask` or its destination's place, and the other is zero.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    start: u32,
    count: u16,
    /// `count - 1` if that is a mask, as it mostly is; zero for the own rack; or [`NO_MASK`].
    mask: u16,
}

impl Entry {
    /// Returns the places of its choices.
    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + usize::from(self.count)
    }
}

/// Routes over all links of a topology, computed when they are first needed. They follow from the
/// rest of the topology, so two of them count as equal.
#[derive(Clone, Default)]
pub(super) struct SharedRoutes(Arc<OnceLock<Routes>>);

impl SharedRoutes {
    pub(super) fn get_or_init(&self, new: impl FnOnce() -> Routes) -> &Routes {
        self.0.get_or_init(new)
    }
}

impl fmt::Debug for SharedRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRoutes").finish_non_exhaustive()
    }
}

impl PartialEq for SharedRoutes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SharedRoutes {}

/// The count of a switch's own rack.
const OWN_RACK: u16 = u16::MAX;
/// The mask of a count that is no power of two, zero among them.
const NO_MASK: u16 = u16::MAX;

impl Routes {
    /// Routes over the links for which `up` returns true, by link number.
    pub fn new(wiring: &Wiring, up: &dyn Fn(u32) -> bool) -> Self {
        let ports = PortWiring::new(wiring);
        let racks = ports.racks(wiring, up);
        let mut hosts = vec![(0, 0); wiring.n_stations() as usize];
        for (rack, n) in racks.iter().zip(0..) {
            for (&end, place) in rack.members.iter().zip(0..) {
                hosts[end as usize] = (n, place);
            }
        }
        let mut uplinks = Uplinks::new(&ports, up);
        let n_stations = wiring.n_stations();
        let first = |end: u32| n_stations + ports.further.partition_point(|&of| of < end) as u32;
        let extra_uplinks = match ports.further.is_empty() {
            true => Vec::new(),
            false => (0..=n_stations).map(first).collect(),
        };
        let (table, choices) = fill(&ports, &racks, &mut uplinks, up);
        Self {
            hosts: hosts.into(),
            racks: racks.len(),
            table: table.into(),
            choices: choices.into(),
            n_hosts: wiring.n_hosts,
            n_stations,
            extra_uplinks: extra_uplinks.into(),
            extra_uplink_ends: ports.further.into(),
            uplinks: Arc::new(uplinks),
            ends: ports.ends.into(),
        }
    }

    /// Returns the number of ports that are interfaces of hosts and arbiters.
    #[inline]
    pub(crate) fn n_interfaces(&self) -> u32 {
        self.n_stations + self.extra_uplink_ends.len() as u32
    }

    /// Returns the host or arbiter whose interface a port is; the port itself if it is none.
    #[inline]
    pub(crate) fn owner(&self, port: u32) -> u32 {
        let further =
            port.checked_sub(self.n_stations).and_then(|n| self.extra_uplink_ends.get(n as usize));
        further.copied().unwrap_or(port)
    }

    /// Returns the port by which a host or arbiter sends to `dst`. Of several links it is the one
    /// whose switch is nearest, of equals the first; `None` if there is no way.
    #[inline]
    pub(crate) fn interface(&self, end: u32, dst: u32) -> Option<u32> {
        match self.interfaces(end, dst) {
            None => Some(end),
            Some(ports) => ports.first().copied(),
        }
    }

    /// Returns the ports by which a host or arbiter with several links may send to `dst`: those
    /// whose switches are nearest. `None` if it has one link.
    #[inline]
    pub(crate) fn interfaces(&self, end: u32, dst: u32) -> Option<&[u32]> {
        self.uplinks.nearest(end, self.hosts[dst as usize].0)
    }

    /// Returns true if a host or arbiter has several links.
    #[inline]
    pub(crate) fn has_several(&self, end: u32) -> bool {
        self.uplinks.has(end)
    }

    /// Returns all ports of a host or arbiter.
    pub(crate) fn uplinks_of(&self, end: u32) -> impl Iterator<Item = u32> + use<> {
        let start = |end: u32| self.extra_uplinks.get(end as usize).copied().unwrap_or(0);
        std::iter::once(end).chain(start(end)..start(end + 1))
    }

    /// Returns the number of ports.
    pub fn n_ports(&self) -> usize {
        self.ends.len()
    }

    /// Returns the port at the far end of each port's link.
    pub(crate) fn peer_ports(&self, wiring: &Wiring) -> Vec<u32> {
        let mut of_link = vec![[0; 2]; wiring.links.len()];
        let ends = |port: usize| {
            let (link, to) = self.ends[port];
            (link as usize, usize::from(wiring.links[link as usize].a == to))
        };
        for port in 0..self.ends.len() {
            let (link, end) = ends(port);
            of_link[link][end] = port as u32;
        }
        (0..self.ends.len()).map(ends).map(|(link, end)| of_link[link][1 - end]).collect()
    }

    /// Returns the link that a port feeds, and the node at its far end.
    pub fn end(&self, port: u32) -> (u32, Node) {
        self.ends[port as usize]
    }

    /// Returns the ports by which `switch` may send to host `dst`: none, one, or all on shortest
    /// paths. If links have several rates, a port occurs several times.
    #[inline]
    pub fn next(&self, switch: u32, dst: u32) -> &[u32] {
        let (rack, place) = self.hosts[dst as usize];
        let Entry { start, count, .. } = self.entry(switch, rack);
        match count {
            OWN_RACK => std::slice::from_ref(&self.choices[(start + place) as usize]),
            _ => &self.choices[start as usize..start as usize + usize::from(count)],
        }
    }

    /// Returns the most ports among which `switch` chooses for any host.
    pub(crate) fn max_choices(&self, switch: u32) -> u16 {
        let mut is_of_hosts = vec![false; self.racks];
        for &(rack, _) in &self.hosts[..self.n_hosts as usize] {
            is_of_hosts[rack as usize] = true;
        }
        let racks = (0..).zip(is_of_hosts).filter(|&(_, is_of_hosts)| is_of_hosts);
        let counts = racks.map(|(rack, _)| match self.entry(switch, rack).count {
            OWN_RACK => 1,
            count => count,
        });
        counts.max().unwrap_or(1)
    }

    /// Returns the port by which `switch` sends a packet with this path number to host `dst`;
    /// `None` if there is no way.
    #[inline(always)]
    pub fn by_path(&self, switch: u32, dst: u32, path: u16) -> Option<u32> {
        let (rack, place) = self.hosts[dst as usize];
        let Entry { start, count, mask } = self.entry(switch, rack);
        if mask == NO_MASK {
            let pick = path.checked_rem(count)?;
            return Some(self.choices[start as usize + usize::from(pick)]);
        }
        let own = u32::from(count == OWN_RACK).wrapping_neg();
        let pick = u32::from(path & mask) | place & own;
        Some(self.choices[(start + pick) as usize])
    }

    /// Prefetches the entry that [`Routes::by_path`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, switch: u32, dst: u32) {
        let (rack, _) = self.hosts[dst as usize];
        prefetch(&self.table[switch as usize * self.racks + rack as usize]);
    }

    #[inline]
    fn entry(&self, switch: u32, rack: u32) -> Entry {
        self.table[switch as usize * self.racks + rack as usize]
    }

    /// Returns the first port from `at` towards `dst`.
    pub fn first_port(&self, at: Node, dst: u32) -> Option<u32> {
        match at {
            Node::Host(h) => self.interface(h, dst),
            Node::Arbiter(a) => self.interface(self.n_hosts + a, dst),
            Node::Switch(s) => self.next(s, dst).first().copied(),
        }
    }
}

/// Returns the forwarding entries of all switches for all racks, and the ports to choose from.
fn fill(
    wiring: &PortWiring,
    racks: &[Rack],
    uplinks: &mut Uplinks,
    up: &dyn Fn(u32) -> bool,
) -> (Vec<Entry>, Vec<u32>) {
    let n = wiring.of_switch.len();
    let (mut table, mut choices) = (vec![Entry::default(); n * racks.len()], Vec::new());
    // Most racks have the same ports at a switch, so equal lists of a switch are stored once.
    let mut shared = vec![BTreeMap::<Vec<u32>, u32>::new(); n];
    let mut latest = vec![Entry::default(); n];
    let graph = SwitchGraph::new(wiring, up);
    let (mut distance, mut ports, mut list) = (Vec::new(), Vec::new(), Vec::new());
    for (rack, of) in racks.iter().enumerate() {
        graph.distances(&of.switches, &mut distance);
        uplinks.push_rack(&distance);
        for switch in 0..n {
            let start = choices.len() as u32;
            let own = of.switches.iter().position(|&s| s == switch as u32);
            if let Some(own) = own.filter(|_| !of.has_parallel) {
                choices.extend(&of.down[own]);
                table[switch * racks.len() + rack] = Entry { start, count: OWN_RACK, mask: 0 };
                continue;
            }
            ports.clear();
            match own {
                Some(own) => wiring.push_down(switch, &of.down[own], up, &mut ports),
                None => graph.push_closer(switch, &distance, &mut ports),
            }
            list.clear();
            push_weighted(&ports, &mut list);
            let last = latest[switch];
            if last.count == 0 || choices[last.range()] != list {
                let start = shared[switch].get(list.as_slice()).copied().unwrap_or_else(|| {
                    choices.extend(&list);
                    shared[switch].insert(list.clone(), start);
                    start
                });
                let count = list.len() as u16;
                let mask = if count.is_power_of_two() { count - 1 } else { NO_MASK };
                latest[switch] = Entry { start, count, mask };
            }
            table[switch * racks.len() + rack] = latest[switch];
        }
    }
    (table, choices)
}

/// Maximum number of choices of one port, if ports have several rates.
const WEIGHT_MAX: u64 = 64;

/// Adds ports to the choices of a switch, each as often as its rate demands: packets are spread
/// over links by their rates. Choices of one port are spread over the others. `ports` have their
/// rates in bits per second.
fn push_weighted(ports: &[(u32, u64)], choices: &mut Vec<u32>) {
    let rates = || ports.iter().map(|&(_, bps)| bps);
    if rates().min() == rates().max() {
        return choices.extend(ports.iter().map(|&(port, _)| port));
    }
    let divisor = rates().fold(0, gcd);
    let most = rates().max().unwrap_or(0) / divisor.max(1);
    let weight = |bps: u64| match most <= WEIGHT_MAX {
        true => bps / divisor,
        false => (bps as u128 * u128::from(WEIGHT_MAX) / u128::from(most * divisor)).max(1) as u64,
    };
    let weights: Vec<u64> = rates().map(weight).collect();
    let total: u64 = weights.iter().sum();
    // The deficit of each port.
    let mut short = vec![0; ports.len()];
    for _ in 0..total {
        short.iter_mut().zip(&weights).for_each(|(short, &weight)| *short += weight as i64);
        // Of equals the first.
        let Some(next) = (0..ports.len()).rev().max_by_key(|&n| short[n]) else { return };
        short[next] -= total as i64;
        choices.push(ports[next].0);
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Hops from every switch to the nearest of `roots` over links that are up; `u32::MAX` if there is
/// no way.
pub(crate) fn distances(
    of_switch: &[Vec<(u32, Node)>],
    roots: &[u32],
    up: &dyn Fn(u32) -> bool,
) -> Vec<u32> {
    let mut distance = vec![u32::MAX; of_switch.len()];
    roots.iter().for_each(|&root| distance[root as usize] = 0);
    let mut queue = VecDeque::from(roots.to_vec());
    while let Some(at) = queue.pop_front() {
        for &(link, to) in &of_switch[at as usize] {
            let Node::Switch(next) = to else { continue };
            if up(link) && distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[at as usize] + 1;
                queue.push_back(next);
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};

    use super::{Routes, push_weighted};
    use crate::TopologySpec;
    use crate::topo::Node;

    fn choices(gbps: &[u64]) -> Vec<u32> {
        let ports: Vec<(u32, u64)> = (0..).zip(gbps.iter().map(|&n| n * 1_000_000_000)).collect();
        let mut choices = Vec::new();
        push_weighted(&ports, &mut choices);
        choices
    }

    /// Source routes name ports by these numbers.
    #[test]
    fn ports_of_switches_are_numbered_as_in_the_wiring() {
        let spec: TopologySpec = toml::from_str("kind = 'fat-tree'\nk = 4").unwrap();
        let need = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::EveryRack };
        let topology = spec.build().unwrap().with_arbiters(&[need.clone(), need]);
        let routes = Routes::new(&topology, &|_| true);
        let from = |port: u32| {
            let (link, to) = routes.end(port);
            let link = topology.links()[link as usize];
            (if link.a == to { link.b } else { link.a }, link, to)
        };
        for (switch, ports) in (0..).zip(topology.ports()) {
            let all = (0..routes.n_ports() as u32).map(from);
            let own = all.filter(|(from, ..)| *from == Node::Switch(switch));
            let own: Vec<_> = own.map(|(_, link, to)| (link, to)).collect();
            assert_eq!(own, ports.iter().map(|port| (port.link, port.to)).collect::<Vec<_>>());
            assert!((0..).zip(&ports).all(|(number, port)| port.number == number));
        }
    }

    #[test]
    fn ports_of_one_rate_have_one_choice_each() {
        assert!(choices(&[]).is_empty());
        assert_eq!(choices(&[100; 4]), [0, 1, 2, 3]);
    }

    #[test]
    fn choices_are_in_proportion_to_rates_and_spread() {
        assert_eq!(choices(&[100, 50, 50]), [0, 1, 2, 0]);
        let of = choices(&[100, 100, 100, 10]);
        let count = |port| of.iter().filter(|&&p| p == port).count();
        assert_eq!([0, 1, 2, 3].map(count), [10, 10, 10, 1]);
        assert!(of.windows(2).all(|pair| pair[0] != pair[1]), "{of:?}");
        // The slowest port is not omitted.
        assert!(choices(&[800_000, 1, 799_999]).contains(&1));
    }
}
