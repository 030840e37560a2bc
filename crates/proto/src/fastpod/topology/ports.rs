//! Ports of switches by the nodes that they lead to.

use rampmeter_types::wiring::{Node, Port};
use rampmeter_types::{Span, Wiring};

/// Ports of all switches, in the order of their links.
pub(super) struct Ports(Vec<Vec<Port>>);

impl Ports {
    pub(super) fn new(wiring: &Wiring) -> Self {
        Self(wiring.ports())
    }

    /// Returns the maximum number of ports of a switch.
    pub(super) fn most(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(super) fn at(&self, switch: u32) -> &[Port] {
        &self.0[switch as usize]
    }

    /// Returns the port of a switch that leads to a node.
    pub(super) fn to(&self, switch: u32, to: Node) -> Option<&Port> {
        self.at(switch).iter().find(|port| port.to == to)
    }

    /// Returns the ports of each switch to each of the nodes; `None` if one is missing.
    pub(super) fn between(&self, froms: &[u32], tos: &[Node]) -> Option<Vec<Vec<&Port>>> {
        froms.iter().map(|&at| tos.iter().map(|&to| self.to(at, to)).collect()).collect()
    }
}

/// Returns the numbers of ports.
pub(super) fn numbers(ports: &[Vec<&Port>]) -> Vec<Vec<u16>> {
    ports.iter().map(|of| of.iter().map(|port| port.number).collect()).collect()
}

/// Returns the propagation delays of the cables at ports.
pub(super) fn cables(ports: &[Vec<&Port>]) -> Vec<Vec<Span>> {
    ports.iter().map(|of| of.iter().map(|port| port.link.propagation).collect()).collect()
}

/// Returns switches as nodes.
pub(super) fn switches(numbers: &[u32]) -> Vec<Node> {
    numbers.iter().map(|&switch| Node::Switch(switch)).collect()
}
