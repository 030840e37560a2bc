//! Fat-trees of pods: racks and aggregation switches of several pods, and core switches that join
//! them (Fastpod §3.4).

use rampmeter_core::SourceRoute;
use rampmeter_core::fabric::{CoreSwitch, Pod, PodHost, Pods};
use rampmeter_core::{Bytes, Span};

use super::{Link, Node, Topology};

/// Maximum number of pods of a network, and of ports of its switches. Source routes have as many,
/// with two arbiters, and a schedule has a byte for a core switch.
const K_MAX: usize = 32;

/// A link with its number within the ports of the switch that it is seen from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) number: u16,
    pub(super) link: Link,
    pub(super) to: Node,
}

/// Ports of all switches, in the order of their links.
pub(super) struct Ports(Vec<Vec<Port>>);

impl Ports {
    pub(super) fn of(topology: &Topology) -> Self {
        let mut all: Vec<Vec<Port>> = topology.levels.iter().map(|_| Vec::new()).collect();
        for &link in &topology.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                if let Node::Switch(switch) = from {
                    let of = &mut all[switch as usize];
                    of.push(Port { number: of.len() as u16, link, to });
                }
            }
        }
        Self(all)
    }

    /// The most ports of any switch.
    pub(super) fn most(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(super) fn at(&self, switch: u32) -> &[Port] {
        &self.0[switch as usize]
    }

    /// The port of a switch that leads to a node.
    pub(super) fn to(&self, switch: u32, to: Node) -> Option<&Port> {
        self.at(switch).iter().find(|port| port.to == to)
    }

    /// The ports of each switch to each of the nodes; `None` if one is missing.
    pub(super) fn between(&self, froms: &[u32], tos: &[Node]) -> Option<Vec<Vec<&Port>>> {
        froms.iter().map(|&at| tos.iter().map(|&to| self.to(at, to)).collect()).collect()
    }
}

/// The numbers of ports.
pub(super) fn numbers(ports: &[Vec<&Port>]) -> Vec<Vec<u16>> {
    ports.iter().map(|of| of.iter().map(|port| port.number).collect()).collect()
}

/// Returns the propagation delays of the cables at ports.
pub(super) fn cables(ports: &[Vec<&Port>]) -> Vec<Vec<Span>> {
    ports.iter().map(|of| of.iter().map(|port| port.link.propagation).collect()).collect()
}

pub(super) fn switches(of: &[u32]) -> Vec<Node> {
    of.iter().map(|&switch| Node::Switch(switch)).collect()
}

/// The switches of a fat-tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// By pod: switches of racks, and aggregation switches in the order of their core switches.
    pods: Vec<(Vec<u32>, Vec<u32>)>,
    /// By aggregation switch: the core switches that it is joined to in every pod.
    cores: Vec<Vec<u32>>,
}

impl Topology {
    /// Returns the pods that this network is made of: one ([`Topology::pod`]), or those of a
    /// fat-tree; `None` if it is neither. Switches forward when `header` is in.
    ///
    /// A fat-tree has 2 to 32 pods of N racks of N hosts, and N aggregation switches, each joined
    /// to N core switches. N is 2 to 16. All links have one rate, and those between switches one
    /// length. Arbiters have a link to each rack's switch and to each aggregation switch of a pod.
    /// Every pod has as many, and hosts and arbiters are numbered pod by pod.
    pub fn pods(&self, header: Bytes) -> Option<Pods> {
        if let Some(pod) = self.pod(header) {
            return Some(pod.into());
        }
        let layout = self.fat_tree_layout()?;
        let ports = Ports::of(self);
        if ports.most() > usize::from(SourceRoute::PORTS) {
            return None;
        }
        let n_pods = layout.pods.len() as u32;
        if !self.n_arbiters.is_multiple_of(n_pods) {
            return None;
        }
        let pods =
            (0..layout.pods.len()).map(|pod| self.pod_of_layout(&layout, &ports, header, pod));
        let pods: Vec<Pod> = pods.collect::<Option<_>>()?;
        let core = |(agg, place): (usize, usize)| {
            let switch = layout.cores[agg][place];
            let aggs: Vec<u32> = layout.pods.iter().map(|(_, aggs)| aggs[agg]).collect();
            let to = ports.between(&[switch], &switches(&aggs))?.remove(0);
            let propagation = to[0].link.propagation;
            let ports = to.iter().map(|port| port.number).collect();
            Some(CoreSwitch { switch, agg: agg as u16, index: place as u16, propagation, ports })
        };
        let places = layout.cores.iter().enumerate();
        let places = places.flat_map(|(agg, of)| (0..of.len()).map(move |place| (agg, place)));
        let cores = places.map(core).collect::<Option<_>>()?;
        Some(Pods { pods, cores })
    }

    /// Returns the number of pods of which the network is made, or zero if it is not made of pods.
    /// No pod may have fewer ways up than hosts in a rack, and all need ports for two arbiters.
    pub(super) fn n_pods(&self) -> u16 {
        if self.is_pod() {
            return 1;
        }
        self.fat_tree_layout().map_or(0, |layout| layout.pods.len() as u16)
    }

    /// Returns the switches of a pod of a fat-tree, with the propagation of an arbiter's links to
    /// them. First are the racks' switches, each with that of its first host. The aggregation
    /// switches follow, each with that of its first link. The list is empty if the network is no
    /// fat-tree.
    pub(super) fn cables_of_pod(&self, pod: u16) -> Vec<(u32, Span)> {
        let Some(layout) = self.fat_tree_layout() else { return Vec::new() };
        let ports = Ports::of(self);
        let Some((racks, aggs)) = layout.pods.get(usize::from(pod)) else { return Vec::new() };
        let first = |&switch: &u32, is_end: fn(&Node) -> bool| {
            let port = ports.at(switch).iter().find(|port| is_end(&port.to));
            port.map(|port| (switch, port.link.propagation))
        };
        let racks = racks.iter().filter_map(|rack| first(rack, |to| matches!(to, Node::Host(_))));
        racks
            .chain(aggs.iter().filter_map(|agg| first(agg, |to| matches!(to, Node::Switch(_)))))
            .collect()
    }

    /// Returns the switches of the fat-tree that this network is, without arbiters.
    fn fat_tree_layout(&self) -> Option<Layout> {
        let is_three_tiered = self.levels.iter().all(|level| (1..=3).contains(level));
        let (rate, fastest) = self.rates();
        if rate != fastest || !is_three_tiered || self.rails().iter().any(|&rails| rails != 1) {
            return None;
        }
        let is_trunk =
            |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let mut trunks = self.links.iter().filter(is_trunk).map(|link| link.propagation);
        let length = trunks.next()?;
        if trunks.any(|other| other != length) {
            return None;
        }
        let mut above: Vec<Vec<u32>> = self
            .above()?
            .into_iter()
            .map(|ways| ways.into_iter().map(|(_, to)| to).collect())
            .collect();
        above.iter_mut().for_each(|ways: &mut Vec<u32>| ways.sort_unstable());
        let mut pods: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for rack in self.racks() {
            let aggs = &above[rack as usize];
            match pods.iter_mut().find(|(_, known)| known == aggs) {
                Some((racks, _)) => racks.push(rack),
                None => pods.push((vec![rack], aggs.clone())),
            }
        }
        let cores: Vec<Vec<u32>> =
            pods[0].1.iter().map(|&agg| above[agg as usize].clone()).collect();
        let n = cores.len();
        for (_, aggs) in &mut pods {
            // Aggregation switches of other pods are numbered by their core switches.
            let of =
                |ways: &Vec<u32>| aggs.iter().copied().find(|&agg| above[agg as usize] == *ways);
            *aggs = cores.iter().map(of).collect::<Option<_>>()?;
        }
        let mut all: Vec<u32> = cores.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        let is_regular = (2..=K_MAX / 2).contains(&n)
            && (2..=2 * n).contains(&pods.len())
            && cores.iter().all(|of| of.len() == n)
            && all.len() == n * n
            && all.iter().all(|&core| above[core as usize].is_empty())
            && pods.iter().all(|(racks, aggs)| racks.len() == n && aggs.len() == n)
            && self.levels.len() == pods.len() * 2 * n + all.len();
        if !is_regular {
            return None;
        }
        pods.sort_by_key(|(racks, _)| racks.iter().map(|rack| self.first_host(*rack)).min());
        let in_order = (0..self.n_hosts()).all(|host| {
            let pod = pods.get(host as usize / (n * n));
            pod.is_some_and(|(racks, _)| racks.contains(&self.rack(host)))
        });
        let fits =
            |rack: &u32| (0..self.n_hosts()).filter(|&host| self.rack(host) == *rack).count() == n;
        let racks = || pods.iter().flat_map(|(racks, _)| racks);
        (in_order && racks().all(fits)).then_some(Layout { pods, cores })
    }

    /// The first host of a rack; the number of hosts if it has none.
    fn first_host(&self, rack: u32) -> u32 {
        (0..self.n_hosts()).find(|&host| self.rack(host) == rack).unwrap_or(self.n_hosts())
    }

    fn pod_of_layout(
        &self,
        layout: &Layout,
        ports: &Ports,
        header: Bytes,
        pod: usize,
    ) -> Option<Pod> {
        let (racks, aggs) = &layout.pods[pod];
        let per_pod = self.n_arbiters / layout.pods.len() as u32;
        let own = pod as u32 * per_pod..(pod as u32 + 1) * per_pod;
        let arbiters: Vec<Node> = own.map(Node::Arbiter).collect();
        let ends: Vec<Node> = switches(racks).into_iter().chain(switches(aggs)).collect();
        // A source route names the links of arbiters by their order.
        if arbiters.iter().any(|&arbiter| self.neighbours_of(arbiter) != ends) {
            return None;
        }
        let to_agg = ports.between(racks, &switches(aggs))?;
        let to_rack = ports.between(aggs, &switches(racks))?;
        let to_core: Option<Vec<Vec<u16>>> = aggs
            .iter()
            .zip(&layout.cores)
            .map(|(&agg, cores)| {
                let to = ports.between(&[agg], &switches(cores))?;
                Some(numbers(&to).remove(0))
            })
            .collect();
        let n = racks.len() as u32;
        let first_host = pod as u32 * n * n;
        let mut places = vec![0; racks.len()];
        let hosts = (first_host..first_host + n * n).map(|host| {
            let rack = racks.iter().position(|&rack| rack == self.rack(host))?;
            let port = ports.to(self.rack(host), Node::Host(host))?;
            let index = places[rack];
            places[rack] += 1;
            Some(PodHost {
                rack: rack as u16,
                index,
                port: port.number,
                propagation: port.link.propagation,
            })
        });
        let trunk = to_agg[0][0].link.propagation;
        let (of_racks, of_aggs) =
            (ports.between(racks, &arbiters)?, ports.between(aggs, &arbiters)?);
        Some(Pod {
            rate: self.rates().0,
            header,
            switch_latency: self.switch_latency,
            host_latency: self.host_latency,
            hosts: hosts.collect::<Option<_>>()?,
            trunk_propagation: (trunk, trunk),
            arbiter_propagation: cables(&of_racks),
            ports_to_agg: numbers(&to_agg),
            ports_to_rack: numbers(&to_rack),
            ports_to_arbiter: numbers(&of_racks),
            first_host,
            ports_to_core: to_core?,
            agg_arbiter_propagation: cables(&of_aggs),
            agg_ports_to_arbiter: numbers(&of_aggs),
        })
    }

    /// The far ends of a node's links, in their order.
    pub(super) fn neighbours_of(&self, node: Node) -> Vec<Node> {
        let far = |link: &Link| match (link.a == node, link.b == node) {
            (true, _) => Some(link.b),
            (_, true) => Some(link.a),
            _ => None,
        };
        self.links.iter().filter_map(far).collect()
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_core::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};

    use super::super::pod::tests::{build, leads_to};
    use super::*;
    use crate::topo::Routes;

    const HEADER: Bytes = Bytes::new(64);

    fn with_arbiters(topology: Topology, n_pods: u16, each: u16) -> Topology {
        let place = |n| ArbiterPlace::PodSwitches(n / each);
        let need = |n| ArbiterNeed { rate: ArbiterRate::Slowest, place: place(n) };
        topology.with_arbiters(&(0..n_pods * each).map(need).collect::<Vec<_>>())
    }

    /// Three pods of 4-port switches: 12 hosts, 6 racks (s0 to s5), 6 aggregation switches (s6 to
    /// s11) and 4 core switches (s12 to s15), with two arbiters a pod.
    #[test]
    fn ports_of_fat_tree_pods_have_the_described_targets() {
        let topology = build("kind = 'fat-tree'\nk = 4\npods = 3");
        assert_eq!((topology.n_hosts(), topology.n_switches(), topology.n_pods()), (12, 16, 3));
        let topology = with_arbiters(topology, 3, 2);
        let Pods { pods, cores } = topology.pods(HEADER).unwrap();
        assert_eq!((pods.len(), cores.len(), topology.n_pods()), (3, 4, 3));
        for (p, pod) in (0u32..).zip(&pods) {
            assert_eq!((pod.first_host, pod.hosts.len()), (4 * p, 4));
            for (host, of) in (pod.first_host..).zip(&pod.hosts) {
                assert_eq!((u32::from(of.rack), u32::from(of.index)), (host % 4 / 2, host % 2));
                let rack = 2 * p + u32::from(of.rack);
                assert_eq!(leads_to(&topology, rack, of.port), Node::Host(host));
            }
            for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let (rack, agg) = (2 * p + a as u32, 6 + 2 * p + b as u32);
                assert_eq!(leads_to(&topology, rack, pod.ports_to_agg[a][b]), Node::Switch(agg));
                assert_eq!(leads_to(&topology, agg, pod.ports_to_rack[b][a]), Node::Switch(rack));
                let agg = 6 + 2 * p + a as u32;
                let core = 12 + 2 * a as u32 + b as u32;
                assert_eq!(leads_to(&topology, agg, pod.ports_to_core[a][b]), Node::Switch(core));
                let port = cores[2 * a + b].ports[p as usize];
                assert_eq!(leads_to(&topology, core, port), Node::Switch(agg));
                let arbiter = Node::Arbiter(2 * p + b as u32);
                let rack = 2 * p + a as u32;
                assert_eq!(leads_to(&topology, rack, pod.ports_to_arbiter[a][b]), arbiter);
                assert_eq!(leads_to(&topology, agg, pod.agg_ports_to_arbiter[a][b]), arbiter);
            }
            let own = [2 * p, 2 * p + 1, 6 + 2 * p, 7 + 2 * p].map(Node::Switch);
            assert_eq!(topology.neighbours_of(Node::Arbiter(2 * p + 1)), own);
        }
        for (n, core) in (0..).zip(&cores) {
            assert_eq!((core.switch, core.agg, core.index), (12 + n, n as u16 / 2, n as u16 % 2));
        }
        assert_eq!(Routes::new(&topology, &|_| true).n_ports(), 2 * topology.links().len());
    }

    /// The second pod's aggregation switches are numbered the other way round.
    #[test]
    fn aggregation_switches_are_known_by_their_core_switches() {
        let (hosts, trunks) =
            (["h0 s0", "h1 s0", "h2 s1", "h3 s1"], ["s0 s4", "s0 s5", "s1 s4", "s1 s5"]);
        let others = ["h4 s2", "h5 s2", "h6 s3", "h7 s3", "s2 s6", "s2 s7", "s3 s6", "s3 s7"];
        let cores = ["s4 s8", "s4 s9", "s5 s10", "s5 s11", "s7 s8", "s7 s9", "s6 s10", "s6 s11"];
        let link = |ends: &str| {
            let (a, b) = ends.split_once(' ').unwrap();
            format!("{{ between = ['{a}', '{b}'] }}")
        };
        let all = hosts.iter().chain(&trunks).chain(&others).chain(&cores);
        let links: Vec<String> = all.map(|ends| link(ends)).collect();
        let text = |links: &[String]| {
            format!("kind = 'links'\nhosts = 8\nswitches = 12\nlinks = [{}]", links.join(", "))
        };
        let topology = with_arbiters(build(&text(&links)), 2, 1);
        let Pods { pods, cores } = topology.pods(HEADER).unwrap();
        assert_eq!(leads_to(&topology, 2, pods[1].ports_to_agg[0][0]), Node::Switch(7));
        assert_eq!(leads_to(&topology, 11, cores[3].ports[1]), Node::Switch(6));
        // A link that is missing, or that leads elsewhere, and it is no fat-tree.
        assert_eq!(build(&text(&links[..links.len() - 1])).n_pods(), 0);
        let mut crossed = links.clone();
        (crossed[20], crossed[22]) = (link("s7 s10"), link("s6 s8"));
        assert_eq!(build(&text(&crossed)).n_pods(), 0);
    }

    #[test]
    fn other_networks_are_not_made_of_pods() {
        for text in [
            "kind = 'fat-tree'\nk = 2",
            "kind = 'fat-tree'\nk = 4\ncore-gbps = 40",
            "kind = 'fat-tree'\nk = 34",
            "kind = 'star'\nhosts = 4",
            "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 2\nspines = 2",
        ] {
            let topology = build(text);
            assert!(topology.pods(HEADER).is_none() && topology.n_pods() == 0, "{text}");
        }
        let pod = build("kind = 'pod'\nk = 4");
        assert_eq!((pod.n_pods(), pod.pods(HEADER).unwrap().cores), (1, Vec::new()));
        let tree = build("kind = 'fat-tree'\nk = 4");
        assert_eq!(tree.n_pods(), 4);
        // An arbiter at one rack only.
        let first = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::FirstRack };
        assert!(tree.with_arbiters(&[first; 4]).pods(HEADER).is_none());
    }
}
