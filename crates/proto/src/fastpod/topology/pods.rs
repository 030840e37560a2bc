//! Pods of a network, with the ports and cables from which routes and instants follow.

use rampmeter_types::{Bytes, Rate, Span};

/// Pods of a network: one, or several of equal numbers of racks and hosts, joined by core switches
/// (§3.4). Arbiters are numbered pod by pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// Pods, in the order of their hosts.
    pub pods: Vec<Pod>,
    /// Core switches, by aggregation switch, then by place; none in a pod alone.
    pub cores: Vec<CoreSwitch>,
}

impl From<Pod> for Pods {
    /// Creates a network of one pod.
    fn from(pod: Pod) -> Self {
        Self { pods: vec![pod], cores: Vec::new() }
    }
}

/// A core switch: it has a link to the aggregation switch of the same number in every pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSwitch {
    /// Number among all switches.
    pub switch: u32,
    /// Number of its aggregation switches in their pods.
    pub agg: u16,
    /// Number among the core switches of these, from zero.
    pub index: u16,
    /// Propagation to the aggregation switches.
    pub propagation: Span,
    /// Ports by pod, numbered within the switch.
    pub ports: Vec<u16>,
}

/// A pod: racks of hosts whose switches have a link to each of the aggregation switches, and
/// arbiters with a link to every rack's switch. All links have one rate, and switches cut through.
/// A sender chooses routes and instants by these fields (§3.1, §3.2). If there are several
/// pods, arbiters also have a link to every aggregation switch, after those to racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Rate of all links.
    pub rate: Rate,
    /// Bytes that must have arrived before a switch forwards.
    pub header: Bytes,
    /// Processing time in each switch.
    pub switch_latency: Span,
    /// Processing time in each host and arbiter.
    pub host_latency: Span,
    /// Rack and cable of each host.
    pub hosts: Vec<PodHost>,
    /// Shortest and longest propagation between a rack's switch and an aggregation switch.
    pub trunk_propagation: (Span, Span),
    /// Propagation between each rack's switch and the arbiters: rack, then arbiter.
    pub arbiter_propagation: Vec<Vec<Span>>,
    /// Ports of racks' switches to aggregation switches: rack, then aggregation switch.
    pub ports_to_agg: Vec<Vec<u16>>,
    /// Ports of aggregation switches to racks' switches: aggregation switch, then rack.
    pub ports_to_rack: Vec<Vec<u16>>,
    /// Ports of racks' switches to arbiters: rack, then arbiter.
    pub ports_to_arbiter: Vec<Vec<u16>>,
    /// Number of its first host; those of the others follow.
    pub first_host: u32,
    /// Ports of aggregation switches to core switches: aggregation switch, then the core switches
    /// joined to it. Empty in a pod alone.
    pub ports_to_core: Vec<Vec<u16>>,
    /// Propagation between each aggregation switch and the arbiters: aggregation switch, then
    /// arbiter. Empty in a pod alone.
    pub agg_arbiter_propagation: Vec<Vec<Span>>,
    /// Ports of aggregation switches to arbiters: aggregation switch, then arbiter. Empty in a pod
    /// alone.
    pub agg_ports_to_arbiter: Vec<Vec<u16>>,
}

/// A host of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodHost {
    /// Rack of the host.
    pub rack: u16,
    /// Number among the hosts of the rack, from zero.
    pub index: u16,
    /// Port of the rack's switch to the host.
    pub port: u16,
    /// Propagation to the rack's switch.
    pub propagation: Span,
}
