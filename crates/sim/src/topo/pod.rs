//! Pods: two tiers in which every rack's switch has a link to every switch above, with arbiters at
//! all racks.

use rampmeter_core::SourceRoute;
use rampmeter_core::fabric::{Pod, PodHost};
use rampmeter_core::{Bytes, Span};

use super::build::{LinkParameters, leaf_spine};
use super::cables::CableDelays;
use super::error::TopologyError;
use super::pods::{Ports, cables, numbers, switches};
use super::{Node, Topology};

impl Topology {
    /// A pod of a fat-tree of `k`-port switches: k/2 racks of k/2 hosts, and k/2 switches above
    /// them. Each host's cable is longer than the wires' propagation by up to `spread`.
    pub(super) fn new_pod(
        k: u32,
        spread: Span,
        wires: &LinkParameters,
    ) -> Result<Self, TopologyError> {
        let racks = k / 2;
        let mut pod = leaf_spine(racks, 1, racks, racks, wires)?;
        let cables = CableDelays { min: wires.propagation, spread };
        for link in &mut pod.links {
            if let Node::Host(host) = link.a {
                link.propagation = cables.draw(&mut CableDelays::stream(host));
            }
        }
        pod.cables = Some(cables);
        Ok(pod)
    }

    /// The pod that this network is, whose switches forward when `header` is in; `None` if it is
    /// none.
    ///
    /// There are two racks or more. Every switch has hosts, or a link to every switch that has.
    /// Hosts have one link, arbiters one to every rack's switch, all of one rate. No switch has
    /// more ports than source routes can name.
    pub fn pod(&self, header: Bytes) -> Option<Pod> {
        let (rate, fastest) = self.rates();
        let is_two_tiered = self.levels.iter().all(|&level| level == 1 || level == 2);
        if rate != fastest || !is_two_tiered || self.rails().iter().any(|&rails| rails != 1) {
            return None;
        }
        let racks = self.racks();
        let above: Vec<u32> =
            (0..self.n_switches()).filter(|switch| self.levels[*switch as usize] == 2).collect();
        if above.is_empty() || racks.len() < 2 {
            return None;
        }
        let ports = Ports::of(self);
        if ports.most() > usize::from(SourceRoute::PORTS) {
            return None;
        }
        let to_agg = ports.between(&racks, &switches(&above))?;
        let to_rack = ports.between(&above, &switches(&racks))?;
        let arbiters: Vec<Node> = (0..self.n_arbiters).map(Node::Arbiter).collect();
        // A source route names the links of arbiters by their order.
        if arbiters.iter().any(|&arbiter| self.neighbours_of(arbiter) != switches(&racks)) {
            return None;
        }
        let to_arbiter = ports.between(&racks, &arbiters)?;
        let mut places = vec![0; racks.len()];
        let hosts = (0..self.n_hosts()).map(|host| {
            let rack = racks.binary_search(&self.rack(host)).ok()?;
            let port = ports.to(self.rack(host), Node::Host(host))?;
            let index = places[rack];
            places[rack] += 1;
            let (rack, propagation) = (rack as u16, port.link.propagation);
            Some(PodHost { rack, index, port: port.number, propagation })
        });
        let hosts = hosts.collect::<Option<_>>()?;
        let trunks = || to_agg.iter().flatten().map(|port| port.link.propagation);
        Some(Pod {
            rate,
            header,
            switch_latency: self.switch_latency,
            host_latency: self.host_latency,
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

    /// Returns true if this network is a pod of racks with two hosts or more. Each rack has at
    /// least as many ways up as hosts, and ports for two arbiters.
    pub(super) fn is_pod(&self) -> bool {
        let Some(pod) = self.pod(Bytes::new(1)) else { return false };
        let ports = Ports::of(self);
        let ports = self.racks().into_iter().map(|rack| ports.at(rack).len() + 2);
        if ports.max() > Some(usize::from(SourceRoute::PORTS)) {
            return false;
        }
        let most = pod.hosts.iter().map(|host| usize::from(host.index) + 1).max();
        most.is_some_and(|most| (2..=pod.ports_to_rack.len()).contains(&most))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rampmeter_core::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};

    use super::*;
    use crate::TopologySpec;
    use crate::topo::Routes;

    const HEADER: Bytes = Bytes::new(64);

    pub(in crate::topo) fn build(text: &str) -> Topology {
        toml::from_str::<TopologySpec>(text).unwrap().build().unwrap()
    }

    fn with_arbiters(topology: Topology, place: ArbiterPlace, n: usize) -> Topology {
        topology.with_arbiters(&vec![ArbiterNeed { rate: ArbiterRate::Slowest, place }; n])
    }

    /// The end that a switch's port leads to.
    pub(in crate::topo) fn leads_to(topology: &Topology, switch: u32, port: u16) -> Node {
        let routes = Routes::new(topology, &|_| true);
        let of = |number: &u32| {
            let (link, to) = routes.end(*number);
            let link = topology.links()[link as usize];
            let from = if link.a == to { link.b } else { link.a };
            from == Node::Switch(switch)
        };
        let mut ports = (0..routes.n_ports() as u32).filter(of);
        routes.end(ports.nth(port.into()).unwrap()).1
    }

    #[test]
    fn ports_of_a_pod_have_the_described_targets() {
        let topology = with_arbiters(build("kind = 'pod'\nk = 8"), ArbiterPlace::EveryRack, 2);
        let pod = topology.pod(HEADER).unwrap();
        assert_eq!((topology.n_hosts(), topology.n_switches()), (16, 8));
        assert_eq!((pod.hosts.len(), pod.ports_to_agg.len(), pod.ports_to_rack.len()), (16, 4, 4));
        for (host, of) in (0..).zip(&pod.hosts) {
            assert_eq!((u32::from(of.rack), u32::from(of.index)), (host / 4, host % 4));
            assert_eq!(leads_to(&topology, of.rack.into(), of.port), Node::Host(host));
        }
        for rack in 0..4u32 {
            for n in 0..4u32 {
                let up = pod.ports_to_agg[rack as usize][n as usize];
                assert_eq!(leads_to(&topology, rack, up), Node::Switch(4 + n));
                let down = pod.ports_to_rack[n as usize][rack as usize];
                assert_eq!(leads_to(&topology, 4 + n, down), Node::Switch(rack));
            }
            for arbiter in 0..2u32 {
                let port = pod.ports_to_arbiter[rack as usize][arbiter as usize];
                assert_eq!(leads_to(&topology, rack, port), Node::Arbiter(arbiter));
            }
        }
    }

    #[test]
    fn cables_differ_by_the_spread_at_most_and_are_always_the_same() {
        let text = "kind = 'pod'\nk = 8\npropagation-ns = 100\ncable-spread-ns = 50";
        let topology = with_arbiters(build(text), ArbiterPlace::EveryRack, 2);
        let pod = topology.pod(HEADER).unwrap();
        let least = Span::from_ns(100);
        let mut cables: Vec<Span> = pod.hosts.iter().map(|host| host.propagation).collect();
        cables.extend(pod.arbiter_propagation.iter().flatten());
        assert!(cables.iter().all(|&cable| cable >= least && cable <= Span::from_ns(150)));
        let longest = cables.iter().max().unwrap();
        assert!(
            *longest > Span::from_ns(140) && cables.iter().min().unwrap() < &Span::from_ns(110)
        );
        cables.sort_unstable();
        cables.dedup();
        assert_eq!(cables.len(), 16 + 8, "whole picoseconds seldom agree");
        assert_eq!(pod.trunk_propagation, (least, least));
        let again = with_arbiters(build(text), ArbiterPlace::EveryRack, 2);
        assert_eq!(again, topology);
        let even = build("kind = 'pod'\nk = 8\npropagation-ns = 100").pod(HEADER).unwrap();
        assert!(even.hosts.iter().all(|host| host.propagation == least));
    }

    #[test]
    fn leaf_spines_of_one_rate_are_pods_and_other_networks_are_not() {
        let leaf_spine = "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 2\nspines = 2\n";
        let even = build(&format!("{leaf_spine}core-gbps = 100"));
        assert!(even.pod(HEADER).is_some());
        let first = with_arbiters(even.clone(), ArbiterPlace::FirstRack, 1);
        assert!(first.pod(HEADER).is_none());
        let every = with_arbiters(even, ArbiterPlace::EveryRack, 1);
        assert!(every.pod(HEADER).is_some());
        for text in [
            format!("{leaf_spine}core-gbps = 400"),
            format!("{leaf_spine}core-gbps = 100\nrails = 2"),
            "kind = 'fat-tree'\nk = 4".into(),
            "kind = 'star'\nhosts = 4".into(),
            "kind = 'dumbbell'\nhosts-per-side = 4".into(),
            "kind = 'leaf-spine'\nracks = 1\nhosts-per-rack = 40\nspines = 1\ncore-gbps = 100"
                .into(),
        ] {
            assert!(build(&text).pod(HEADER).is_none(), "{text}");
        }
    }

    /// Source routes must be able to name the ports to two arbiters as well.
    #[test]
    fn racks_without_free_ports_for_arbiters_are_no_pods() {
        let of = |n: u32| {
            let text = format!(
                "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = {n}\nspines = {n}\n\
                 core-gbps = 100"
            );
            build(&text).is_pod()
        };
        assert!(of(19) && !of(20));
        assert!(
            !build(
                "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 4\nspines = 2\ncore-gbps = 100"
            )
            .is_pod()
        );
    }

    #[test]
    fn arbiters_at_every_rack_have_its_first_hosts_delay() {
        let text = "kind = 'links'\nhosts = 3\nswitches = 3\nlinks = [\n\
                    { between = ['h0', 's0'], propagation-ns = 10 },\n\
                    { between = ['h1', 's1'], propagation-ns = 20 },\n\
                    { between = ['h2', 's1'], propagation-ns = 30 },\n\
                    { between = ['s0', 's2'] }, { between = ['s1', 's2'] }]";
        let topology = with_arbiters(build(text), ArbiterPlace::EveryRack, 1);
        let pod = topology.pod(HEADER).unwrap();
        assert_eq!(pod.arbiter_propagation, [[Span::from_ns(10)], [Span::from_ns(20)]]);
    }
}
