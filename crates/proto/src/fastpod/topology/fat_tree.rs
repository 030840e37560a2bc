//! Fat-trees of pods: racks and aggregation switches of several pods, and core switches that join
//! them (§3.4).

use rampmeter_types::fabric::ArbiterPlace;
use rampmeter_types::wiring::{Link, Node};
use rampmeter_types::{Bytes, RateRange, SourceRoute, Wiring};

use super::one_pod::is_schedulable_pod;
use super::pods::{CoreSwitch, Pod, PodHost, Pods};
use super::ports::{Ports, cables, numbers, switches};

/// Maximum number of pods of a network, and of ports of its switches. Source routes have as many,
/// with two arbiters, and a schedule has a byte for a core switch.
const K_MAX: usize = 32;

/// The switches of a fat-tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// Switches of racks by pod, and aggregation switches in the order of their core switches.
    pods: Vec<(Vec<u32>, Vec<u32>)>,
    /// Core switches to which an aggregation switch is joined in every pod, by aggregation switch.
    cores: Vec<Vec<u32>>,
}

impl Pods {
    /// Returns the pods that a network is made of: one ([`Pod::from_wiring`]), or those of a
    /// fat-tree; `None` if it is neither. Switches forward after `header` bytes.
    ///
    /// A fat-tree has 2 to 32 pods of N racks of N hosts, and N aggregation switches, each joined
    /// to N core switches. N is 2 to 16. All links have one rate, and those between switches one
    /// length. Arbiters have a link to each rack's switch and to each aggregation switch of a pod.
    /// Every pod has as many, and hosts and arbiters are numbered pod by pod.
    pub fn from_wiring(wiring: &Wiring, header: Bytes) -> Option<Self> {
        if let Some(pod) = Pod::from_wiring(wiring, header) {
            return Some(pod.into());
        }
        let layout = Layout::from_wiring(wiring)?;
        let ports = Ports::new(wiring);
        if ports.most() > usize::from(SourceRoute::PORTS) {
            return None;
        }
        let n_pods = layout.pods.len() as u32;
        if !wiring.n_arbiters.is_multiple_of(n_pods) {
            return None;
        }
        let pods = (0..layout.pods.len()).map(|pod| layout.pod(wiring, &ports, header, pod));
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
        Some(Self { pods, cores })
    }
}

/// Returns the places of the arbiters of each pod that a network is made of; none if it is not made
/// of pods. No pod may have fewer ways up than hosts in a rack, and all need ports for two
/// arbiters. An arbiter has a link to each rack's switch of its pod. In a fat-tree, links to the
/// aggregation switches follow.
pub(in crate::fastpod) fn arbiter_places(wiring: &Wiring) -> Vec<ArbiterPlace> {
    let wiring = wiring.without_arbiters();
    if is_schedulable_pod(&wiring) {
        return vec![ArbiterPlace::EveryRack];
    }
    let pods = Layout::from_wiring(&wiring).map(|layout| layout.pods).unwrap_or_default();
    pods.into_iter().map(|(racks, aggs)| ArbiterPlace::Switches([racks, aggs].concat())).collect()
}

impl Layout {
    /// Returns the switches of the fat-tree that a network is, regardless of arbiters.
    fn from_wiring(wiring: &Wiring) -> Option<Self> {
        let is_three_tiered = wiring.levels.iter().all(|level| (1..=3).contains(level));
        let RateRange { slowest: rate, fastest } = wiring.rates();
        if rate != fastest || !is_three_tiered || wiring.rails().iter().any(|&rails| rails != 1) {
            return None;
        }
        let is_trunk =
            |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        let mut trunks = wiring.links.iter().filter(is_trunk).map(|link| link.propagation);
        let length = trunks.next()?;
        if trunks.any(|other| other != length) {
            return None;
        }
        let mut above: Vec<Vec<u32>> = wiring
            .links_to_higher_levels()?
            .into_iter()
            .map(|ways| ways.into_iter().map(|(_, to)| to).collect())
            .collect();
        above.iter_mut().for_each(|ways: &mut Vec<u32>| ways.sort_unstable());
        let mut pods: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for rack in wiring.racks() {
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
            && wiring.levels.len() == pods.len() * 2 * n + all.len();
        if !is_regular {
            return None;
        }
        pods.sort_by_key(|(racks, _)| racks.iter().map(|rack| first_host(wiring, *rack)).min());
        let in_order = (0..wiring.n_hosts).all(|host| {
            let pod = pods.get(host as usize / (n * n));
            pod.is_some_and(|(racks, _)| racks.contains(&wiring.rack(host)))
        });
        let fits = |rack: &u32| {
            (0..wiring.n_hosts).filter(|&host| wiring.rack(host) == *rack).count() == n
        };
        let racks = || pods.iter().flat_map(|(racks, _)| racks);
        (in_order && racks().all(fits)).then_some(Self { pods, cores })
    }

    /// Returns the pod with this number; `None` if its arbiters are at other switches.
    fn pod(&self, wiring: &Wiring, ports: &Ports, header: Bytes, pod: usize) -> Option<Pod> {
        let (racks, aggs) = &self.pods[pod];
        let per_pod = wiring.n_arbiters / self.pods.len() as u32;
        let own = pod as u32 * per_pod..(pod as u32 + 1) * per_pod;
        let arbiters: Vec<Node> = own.map(Node::Arbiter).collect();
        let ends: Vec<Node> = switches(racks).into_iter().chain(switches(aggs)).collect();
        // A source route names the links of arbiters by their order.
        if arbiters.iter().any(|&arbiter| wiring.neighbours_of(arbiter) != ends) {
            return None;
        }
        let to_agg = ports.between(racks, &switches(aggs))?;
        let to_rack = ports.between(aggs, &switches(racks))?;
        let to_core: Option<Vec<Vec<u16>>> = aggs
            .iter()
            .zip(&self.cores)
            .map(|(&agg, cores)| {
                let to = ports.between(&[agg], &switches(cores))?;
                Some(numbers(&to).remove(0))
            })
            .collect();
        let n = racks.len() as u32;
        let first_host = pod as u32 * n * n;
        let mut places = vec![0; racks.len()];
        let hosts = (first_host..first_host + n * n).map(|host| {
            let rack = racks.iter().position(|&rack| rack == wiring.rack(host))?;
            let port = ports.to(wiring.rack(host), Node::Host(host))?;
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
            rate: wiring.rates().slowest,
            header,
            switch_latency: wiring.switch_latency,
            host_latency: wiring.host_latency,
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
}

/// Returns the first host of a rack; the number of hosts if it has none.
fn first_host(wiring: &Wiring, rack: u32) -> u32 {
    (0..wiring.n_hosts).find(|&host| wiring.rack(host) == rack).unwrap_or(wiring.n_hosts)
}
