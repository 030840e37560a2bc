//! Division of a network into partitions, which run side by side.
//!
//! A partition is a range of hosts and arbiters, with their racks' switches and all switches that
//! lead to no other partition. Switches above these are dealt out in turn. In a window as long as
//! the least delay of a link between partitions, none can affect another (conservative parallel
//! simulation; R. Fujimoto, "Parallel discrete event simulation", CACM 33, 1990, section 2).

use rampmeter_types::Span;

use super::{Node, Topology};

/// A division of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partitions {
    /// First host or arbiter of each partition, and last their number.
    first_stations: Vec<u32>,
    /// Partition of each switch.
    of_switch: Vec<u16>,
    /// Least delay of a link between partitions.
    lookahead: Span,
}

impl Partitions {
    /// Divides a network into `count` partitions, or fewer if it has fewer racks. `None` if these
    /// are fewer than two, or if a link between them has no delay.
    pub(crate) fn new(topology: &Topology, count: usize) -> Option<Self> {
        let racks = first_switches(topology);
        let mut first_stations = cuts(&racks, count);
        // Arbiters follow the hosts.
        first_stations.push(topology.n_stations());
        if first_stations.len() < 3 {
            return None;
        }
        let of_station = |station: u32| partition_of(&first_stations, station);
        let of_switch = switches(topology, &of_station, first_stations.len() - 1);
        let of_node = |node: Node| match node {
            Node::Switch(switch) => usize::from(of_switch[switch as usize]),
            end => of_station(topology.station(end).expect("what is no switch is an end")),
        };
        let crossing = topology.links().iter().filter(|link| of_node(link.a) != of_node(link.b));
        let delays = crossing
            .flat_map(|link| [link.a, link.b].map(|end| link.propagation + topology.latency(end)));
        let lookahead = delays.min().filter(|&delay| delay > Span::ZERO)?;
        Some(Self { first_stations, of_switch, lookahead })
    }

    /// Returns the number of partitions.
    pub(crate) fn len(&self) -> usize {
        self.first_stations.len() - 1
    }

    /// Returns the first host or arbiter of a partition, and the number of them.
    pub(crate) fn stations(&self, partition: usize) -> (u32, u32) {
        let first = self.first_stations[partition];
        (first, self.first_stations[partition + 1] - first)
    }

    /// Returns the partition of a host or arbiter.
    pub(crate) fn of_station(&self, station: u32) -> usize {
        partition_of(&self.first_stations, station)
    }

    /// Returns the partition of a switch.
    pub(crate) fn of_switch(&self, switch: u32) -> usize {
        self.of_switch[switch as usize].into()
    }

    /// Returns the time that any packet needs from one partition to another, at least.
    pub(crate) fn lookahead(&self) -> Span {
        self.lookahead
    }
}

fn partition_of(first_stations: &[u32], station: u32) -> usize {
    first_stations.partition_point(|&first| first <= station) - 1
}

/// Returns the first switch of each host.
fn first_switches(topology: &Topology) -> Vec<u32> {
    let mut first = vec![u32::MAX; topology.n_hosts() as usize];
    for link in topology.links() {
        for (end, far) in [(link.a, link.b), (link.b, link.a)] {
            if let (Node::Host(host), Node::Switch(switch)) = (end, far) {
                let own = &mut first[host as usize];
                *own = (*own).min(switch);
            }
        }
    }
    first
}

/// Returns the first host of each of `count` partitions, or of fewer. Partitions begin with a rack,
/// unless there are fewer racks than partitions.
fn cuts(racks: &[u32], count: usize) -> Vec<u32> {
    let n = racks.len();
    let starts: Vec<usize> = (1..n).filter(|&host| racks[host] != racks[host - 1]).collect();
    let nearest = |ideal: usize| match starts.len() + 1 < count {
        true => ideal,
        false => starts.iter().copied().min_by_key(|start| start.abs_diff(ideal)).unwrap_or(ideal),
    };
    let mut cuts: Vec<u32> = (0..count).map(|part| nearest(part * n / count) as u32).collect();
    cuts[0] = 0;
    cuts.dedup();
    cuts
}

/// Returns the partition of each switch: that of all its neighbours at the level below, or one in
/// turn.
fn switches(topology: &Topology, of_station: &dyn Fn(u32) -> usize, count: usize) -> Vec<u16> {
    let n = topology.n_switches() as usize;
    let mut below = vec![Vec::new(); n];
    for link in topology.links() {
        for (end, far) in [(link.a, link.b), (link.b, link.a)] {
            if let Node::Switch(switch) = end {
                below[switch as usize].push(far);
            }
        }
    }
    let mut of_switch = vec![0; n];
    let mut turn = 0;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&switch| topology.levels[switch]);
    for switch in order {
        let mut own = below[switch].iter().filter_map(|&node| match node {
            Node::Switch(other) if topology.levels[other as usize] < topology.levels[switch] => {
                Some(usize::from(of_switch[other as usize]))
            }
            Node::Switch(_) => None,
            end => topology.station(end).map(of_station),
        });
        let first = own.next();
        let is_inner = topology.levels[switch] <= 1 || own.all(|other| Some(other) == first);
        let partition = first.filter(|_| is_inner).unwrap_or_else(|| {
            turn += 1;
            turn % count
        });
        of_switch[switch] = partition as u16;
    }
    of_switch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::TopologySpec;
    use crate::topo::kinds::{FatTree, LeafSpine, Star};

    /// Checks that partitions have all nodes, each in one of them, and returns the stations' cuts.
    fn cuts_of(topology: &Topology, count: usize) -> Option<Vec<u32>> {
        let partitions = Partitions::new(topology, count)?;
        for number in 0..partitions.len() {
            let (first, n) = partitions.stations(number);
            assert!((first..first + n).all(|station| partitions.of_station(station) == number));
        }
        let of = |switch| partitions.of_switch(switch) < partitions.len();
        assert!((0..topology.n_switches()).all(of));
        assert!(partitions.lookahead() >= Span::from_ns(200));
        Some(partitions.first_stations)
    }

    #[test]
    fn partitions_begin_with_racks() {
        let leaf_spine = TopologySpec::LeafSpine(LeafSpine {
            rails: 1,
            planes: 1,
            racks: 3,
            hosts_per_rack: 4,
            spines: 2,
            access_gbps: 100.0,
            core_gbps: 400.0,
            propagation_ns: 200.0,
            switch_ns: 450.0,
            host_ns: 450.0,
        });
        let leaf_spine = leaf_spine.build().unwrap();
        assert_eq!(cuts_of(&leaf_spine, 2), Some(vec![0, 4, 12]));
        assert_eq!(cuts_of(&leaf_spine, 3), Some(vec![0, 4, 8, 12]));
        assert_eq!(cuts_of(&leaf_spine, 4), Some(vec![0, 3, 6, 9, 12]));
        assert_eq!(cuts_of(&leaf_spine, 1), None);
    }

    #[test]
    fn switches_of_a_pod_are_in_its_partition() {
        let fat_tree = TopologySpec::FatTree(FatTree {
            pods: None,
            k: 4,
            access_gbps: 100.0,
            core_gbps: 100.0,
            propagation_ns: 200.0,
            switch_ns: 450.0,
            host_ns: 450.0,
        });
        let fat_tree = fat_tree.build().unwrap();
        assert_eq!(cuts_of(&fat_tree, 4), Some(vec![0, 4, 8, 12, 16]));
        let partitions = Partitions::new(&fat_tree, 4).unwrap();
        let of_level = |level: u8| {
            let switches = 0..fat_tree.n_switches();
            let own = switches.filter(|&switch| fat_tree.levels[switch as usize] == level);
            own.map(|switch| partitions.of_switch(switch)).collect::<Vec<_>>()
        };
        for level in [1, 2] {
            let of = of_level(level);
            assert_eq!((0..4).map(|p| of.iter().filter(|&&q| q == p).count()).max(), Some(2));
        }
        assert_eq!(of_level(3).len(), 4);
    }

    #[test]
    fn links_without_delay_are_not_cut() {
        let star = |propagation_ns| {
            let star = TopologySpec::Star(Star {
                hosts: 4,
                access_gbps: 100.0,
                propagation_ns,
                switch_ns: 0.0,
                host_ns: 0.0,
            });
            star.build().unwrap()
        };
        assert_eq!(cuts_of(&star(200.0), 2), Some(vec![0, 2, 4]));
        assert_eq!(Partitions::new(&star(0.0), 2), None);
    }
}
