//! One pod: two tiers in which every rack's switch has a link to every switch above, with arbiters
//! at all racks.

use rampmeter_types::wiring::Node;
use rampmeter_types::{Bytes, RateRange, SourceRoute, Wiring};

use super::pods::{Pod, PodHost};
use super::ports::{Ports, cables, numbers, switches};

impl Pod {
    /// Returns the pod that a network is, whose switches forward after `header` bytes; `None` if it
    /// is none.
    ///
    /// There are two racks or more. Every switch has hosts, or a link to every switch that has.
    /// Hosts have one link, arbiters one to every rack's switch, all of one rate. No switch has
    /// more ports than source routes can name.
    pub fn from_wiring(wiring: &Wiring, header: Bytes) -> Option<Self> {
        let RateRange { slowest: rate, fastest } = wiring.rates();
        let is_two_tiered = wiring.levels.iter().all(|&level| level == 1 || level == 2);
        if rate != fastest || !is_two_tiered || wiring.rails().iter().any(|&rails| rails != 1) {
            return None;
        }
        let racks = wiring.racks();
        let levels = (0..).zip(&wiring.levels);
        let above: Vec<u32> =
            levels.filter(|(_, level)| **level == 2).map(|(switch, _)| switch).collect();
        if above.is_empty() || racks.len() < 2 {
            return None;
        }
        let ports = Ports::new(wiring);
        if ports.most() > usize::from(SourceRoute::PORTS) {
            return None;
        }
        let to_agg = ports.between(&racks, &switches(&above))?;
        let to_rack = ports.between(&above, &switches(&racks))?;
        let arbiters: Vec<Node> = (0..wiring.n_arbiters).map(Node::Arbiter).collect();
        // A source route names the links of arbiters by their order.
        if arbiters.iter().any(|&arbiter| wiring.neighbours_of(arbiter) != switches(&racks)) {
            return None;
        }
        let to_arbiter = ports.between(&racks, &arbiters)?;
        let mut places = vec![0; racks.len()];
        let hosts = (0..wiring.n_hosts).map(|host| {
            let rack = racks.binary_search(&wiring.rack(host)).ok()?;
            let port = ports.to(wiring.rack(host), Node::Host(host))?;
            let index = places[rack];
            places[rack] += 1;
            let (rack, propagation) = (rack as u16, port.link.propagation);
            Some(PodHost { rack, index, port: port.number, propagation })
        });
        let hosts = hosts.collect::<Option<_>>()?;
        let trunks = || to_agg.iter().flatten().map(|port| port.link.propagation);
        Some(Self {
            rate,
            header,
            switch_latency: wiring.switch_latency,
            host_latency: wiring.host_latency,
            hosts,
            trunk_propagation: (trunks().min()?, trunks().max()?),
            arbiter_propagation: cables(&to_arbiter),
            ports_to_agg: numbers(&to_agg),
            ports_to_rack: numbers(&to_rack),
            ports_to_arbiter: numbers(&to_arbiter),
            first_host: 0,
            ports_to_core: Vec::new(),
            agg_arbiter_propagation: Vec::new(),
            agg_ports_to_arbiter: Vec::new(),
        })
    }
}

/// Returns true if a network without arbiters is a pod of racks with two hosts or more. Each rack
/// has at least as many ways up as hosts, and ports for two arbiters.
pub(super) fn is_schedulable_pod(wiring: &Wiring) -> bool {
    let Some(pod) = Pod::from_wiring(wiring, Bytes::new(1)) else { return false };
    let ports = Ports::new(wiring);
    let ports = wiring.racks().into_iter().map(|rack| ports.at(rack).len() + 2);
    if ports.max() > Some(usize::from(SourceRoute::PORTS)) {
        return false;
    }
    let most = pod.hosts.iter().map(|host| usize::from(host.index) + 1).max();
    most.is_some_and(|most| (2..=pod.ports_to_rack.len()).contains(&most))
}
