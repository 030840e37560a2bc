//! Shortest-path routing with all equal-cost next hops.
//!
//! Ports are numbered over the whole fabric: port h is host h's uplink, then come the ports of
//! switch 0 in the order of its links, of switch 1, and so on. Hosts hang at one switch each, so a
//! table by (switch, rack of the destination) is enough: 160 KB for 1024 hosts instead of 1.3 MB.

use std::collections::VecDeque;

use crate::topo::{Node, Topology};

/// Where each switch sends what.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Link and far end of each port.
    ends: Vec<(u32, Node)>,
    /// Of each host, its rack's column in the table and its place in the rack.
    hosts: Vec<(u32, u32)>,
    /// How many columns there are.
    racks: usize,
    /// What each switch does with packets for each rack, by switch x racks + rack.
    table: Vec<Entry>,
    choices: Vec<u32>,
}

/// What a switch does with packets for a rack: the ports on shortest paths are `count` of the
/// choices, from `start` on. For its own rack it has a choice a host, by place in the rack.
///
/// A switch that sends both up and down takes either way unpredictably. So the common case has no
/// branch: a packet's choice is `path & mask` or its destination's place, and the other is zero.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    start: u32,
    count: u16,
    /// `count - 1` if that is a mask, as it mostly is; zero for the own rack; or [`ODD`].
    mask: u16,
}

/// The count of a switch's own rack.
const OWN: u16 = u16::MAX;
/// The mask of a count that is no power of two, zero among them.
const ODD: u16 = u16::MAX;

impl Routes {
    /// Routes over the links that `up` says are up, by link number.
    pub fn new(topology: &Topology, up: &dyn Fn(u32) -> bool) -> Self {
        let (n_ends, n_switches) = (topology.n_ends, topology.n_switches());
        let mut ends = vec![(0, Node::Host(0)); n_ends as usize];
        let mut of_switch: Vec<Vec<(u32, Node)>> = vec![Vec::new(); n_switches as usize];
        for (number, link) in topology.links().iter().enumerate() {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                match from {
                    Node::Host(h) => ends[h as usize] = (number as u32, to),
                    Node::Switch(s) => of_switch[s as usize].push((number as u32, to)),
                }
            }
        }
        let mut first = Vec::with_capacity(n_switches as usize);
        for ports in &of_switch {
            first.push(ends.len() as u32);
            ends.extend_from_slice(ports);
        }
        let mut down = vec![0; n_ends as usize];
        for (port, (_, to)) in ends.iter().enumerate().skip(n_ends as usize) {
            if let Node::Host(h) = *to {
                down[h as usize] = port as u32;
            }
        }
        let mut tors = topology.tors.clone();
        tors.sort_unstable();
        tors.dedup();
        let index = |tor| tors.binary_search(tor).expect("every rack is listed");
        let mut down_of: Vec<Vec<u32>> = vec![Vec::new(); tors.len()];
        let mut hosts = Vec::with_capacity(n_ends as usize);
        for (tor, down) in topology.tors.iter().zip(down) {
            let rack = index(tor);
            hosts.push((rack as u32, down_of[rack].len() as u32));
            down_of[rack].push(down);
        }
        let racks = tors.len();
        let mut routes = Self { ends, hosts, racks, table: Vec::new(), choices: Vec::new() };
        routes.fill(&of_switch, &first, &tors, &down_of, up);
        routes
    }

    fn fill(
        &mut self,
        of_switch: &[Vec<(u32, Node)>],
        first: &[u32],
        tors: &[u32],
        down_of: &[Vec<u32>],
        up: &dyn Fn(u32) -> bool,
    ) {
        let n = of_switch.len();
        self.table = vec![Entry::default(); n * self.racks];
        for (rack, &tor) in tors.iter().enumerate() {
            let distance = distances(of_switch, tor, up);
            for switch in 0..n {
                if switch == tor as usize {
                    let start = self.choices.len() as u32;
                    self.choices.extend(&down_of[rack]);
                    self.table[switch * self.racks + rack] = Entry { start, count: OWN, mask: 0 };
                    continue;
                }
                let start = self.choices.len() as u32;
                for (i, &(link, to)) in of_switch[switch].iter().enumerate() {
                    let Node::Switch(next) = to else { continue };
                    let closer = distance[next as usize] < u32::MAX
                        && distance[next as usize] + 1 == distance[switch];
                    if closer && up(link) {
                        self.choices.push(first[switch] + i as u32);
                    }
                }
                let count = (self.choices.len() - start as usize) as u16;
                let mask = if count.is_power_of_two() { count - 1 } else { ODD };
                self.table[switch * self.racks + rack] = Entry { start, count, mask };
            }
        }
    }

    /// How many ports there are.
    pub fn n_ports(&self) -> usize {
        self.ends.len()
    }

    /// The port at the far end of each port's link.
    pub(crate) fn opposites(&self, topology: &Topology) -> Vec<u32> {
        let mut of_link = vec![[0; 2]; topology.links().len()];
        let ends = |port: usize| {
            let (link, to) = self.ends[port];
            (link as usize, usize::from(topology.links()[link as usize].a == to))
        };
        for port in 0..self.ends.len() {
            let (link, end) = ends(port);
            of_link[link][end] = port as u32;
        }
        (0..self.ends.len()).map(ends).map(|(link, end)| of_link[link][1 - end]).collect()
    }

    /// The link that a port feeds, and the node at its far end.
    pub fn end(&self, port: u32) -> (u32, Node) {
        self.ends[port as usize]
    }

    /// The ports by which `switch` may send to host `dst`: none, one, or all on shortest paths.
    pub fn next(&self, switch: u32, dst: u32) -> &[u32] {
        let (rack, place) = self.hosts[dst as usize];
        let Entry { start, count, .. } = self.entry(switch, rack);
        match count {
            OWN => std::slice::from_ref(&self.choices[(start + place) as usize]),
            _ => &self.choices[start as usize..start as usize + usize::from(count)],
        }
    }

    /// The port by which `switch` sends a packet with this path number to host `dst`; `None` if
    /// there is no way.
    #[inline(always)]
    pub fn by_path(&self, switch: u32, dst: u32, path: u16) -> Option<u32> {
        let (rack, place) = self.hosts[dst as usize];
        let Entry { start, count, mask } = self.entry(switch, rack);
        if mask == ODD {
            let pick = path.checked_rem(count)?;
            return Some(self.choices[start as usize + usize::from(pick)]);
        }
        let own = u32::from(count == OWN).wrapping_neg();
        let pick = u32::from(path & mask) | place & own;
        Some(self.choices[(start + pick) as usize])
    }

    #[inline]
    fn entry(&self, switch: u32, rack: u32) -> Entry {
        self.table[switch as usize * self.racks + rack as usize]
    }

    /// The first port from `at` towards `dst`.
    pub fn first_port(&self, at: Node, dst: u32) -> Option<u32> {
        match at {
            Node::Host(h) => Some(h),
            Node::Switch(s) => self.next(s, dst).first().copied(),
        }
    }
}

/// Hops from every switch to `tor` over links that are up; `u32::MAX` where there is no way.
fn distances(of_switch: &[Vec<(u32, Node)>], tor: u32, up: &dyn Fn(u32) -> bool) -> Vec<u32> {
    let mut distance = vec![u32::MAX; of_switch.len()];
    distance[tor as usize] = 0;
    let mut queue = VecDeque::from([tor]);
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
