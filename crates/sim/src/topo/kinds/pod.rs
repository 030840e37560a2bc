//! A pod of a fat-tree.

use rampmeter_types::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, delay, processing, propagation, rate};
use crate::topo::build::{LinkParameters, TwoTiers};
use crate::topo::cables::CableDelays;
use crate::topo::{Node, Topology, TopologyError};

/// A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Pod {
    /// Ports per switch, even, 4 to 32.
    #[schemars(range(min = 2, max = 64))]
    pub k: u64,
    /// Rate of all links.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub gbps: f64,
    /// Propagation of every link; of hosts' and arbiters' the least.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "propagation")]
    pub propagation_ns: f64,
    /// Processing in every switch.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub switch_ns: f64,
    /// Processing in every host.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub host_ns: f64,
    /// Maximum additional propagation of hosts' and arbiters' links.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default)]
    pub cable_spread_ns: f64,
}

impl TopologyKind for Pod {
    fn build(&self) -> Result<Topology, TopologyError> {
        let k = self.k;
        if !(4..=32).contains(&k) || !k.is_multiple_of(2) {
            let expected = "an even number from 4 to 32";
            return Err(TopologyError::Count { name: "k", expected, got: k });
        }
        rate("gbps", self.gbps)?;
        let spread = delay("cable-spread-ns", self.cable_spread_ns)?;
        let wires = LinkParameters::new(
            self.gbps,
            self.gbps,
            self.propagation_ns,
            self.switch_ns,
            self.host_ns,
        )?;
        pod(k as u32, spread, &wires)
    }

    fn hosts_per_rack(&self) -> Option<u32> {
        Some(self.k as u32 / 2)
    }
}

/// Returns a pod of a fat-tree of `k`-port switches: k/2 racks of k/2 hosts, and k/2 switches above
/// them. Each host's cable is longer than the wires' propagation by up to `spread`.
fn pod(k: u32, spread: Span, wires: &LinkParameters) -> Result<Topology, TopologyError> {
    let racks = k / 2;
    let tiers = TwoTiers { racks, rails: 1, planes: 1, hosts_per_rack: racks, spines: racks };
    let mut pod = tiers.build(wires)?;
    let cables = CableDelays { min: wires.propagation, spread };
    for link in &mut pod.wiring_mut().links {
        if let Node::Host(host) = link.a {
            link.propagation = cables.draw(&mut CableDelays::stream(host));
        }
    }
    pod.cables = Some(cables);
    Ok(pod)
}

#[cfg(test)]
mod tests {
    use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};

    use super::*;
    use crate::TopologySpec;
    use crate::topo::Link;

    fn with_arbiters(text: &str, n: usize) -> Topology {
        let topology = toml::from_str::<TopologySpec>(text).unwrap().build().unwrap();
        let need = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::EveryRack };
        topology.with_arbiters(&vec![need; n])
    }

    #[test]
    fn cables_differ_by_the_spread_at_most_and_are_always_the_same() {
        let text = "kind = 'pod'\nk = 8\npropagation-ns = 100\ncable-spread-ns = 50";
        let topology = with_arbiters(text, 2);
        let least = Span::from_ns(100);
        let is_trunk =
            |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
        assert!(topology.links().iter().filter(is_trunk).all(|link| link.propagation == least));
        let others = topology.links().iter().filter(|link| !is_trunk(link));
        let mut cables: Vec<Span> = others.map(|link| link.propagation).collect();
        assert!(cables.iter().all(|&cable| cable >= least && cable <= Span::from_ns(150)));
        let longest = cables.iter().max().unwrap();
        assert!(
            *longest > Span::from_ns(140) && cables.iter().min().unwrap() < &Span::from_ns(110)
        );
        cables.sort_unstable();
        cables.dedup();
        assert_eq!(cables.len(), 16 + 8, "whole picoseconds seldom agree");
        assert_eq!(with_arbiters(text, 2), topology);
        let even = with_arbiters("kind = 'pod'\nk = 8\npropagation-ns = 100", 2);
        assert!(even.links().iter().all(|link| link.propagation == least));
    }

    #[test]
    fn arbiters_at_every_rack_have_its_shortest_cable() {
        let text = "kind = 'links'\nhosts = 3\nswitches = 3\nlinks = [\n\
                    { between = ['h0', 's0'], propagation-ns = 10 },\n\
                    { between = ['h1', 's1'], propagation-ns = 30 },\n\
                    { between = ['h2', 's1'], propagation-ns = 20 },\n\
                    { between = ['s0', 's2'] }, { between = ['s1', 's2'] }]";
        let topology = with_arbiters(text, 1);
        let cables = topology.links()[5..].iter().map(|link| (link.b, link.propagation));
        let of = |rack, ns| (Node::Switch(rack), Span::from_ns(ns));
        assert!(cables.eq([of(0, 10), of(1, 20)]));
    }
}
