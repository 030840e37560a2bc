//! Reasons why topologies cannot be built.

use rampmeter_core::wiring::Node;
use thiserror::Error;

/// Reason why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A count is out of range.
    #[error("{name} must be {expected}, got {got}")]
    Count {
        /// Name of the number.
        name: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// The value.
        got: u64,
    },
    /// A rate or a delay is out of range.
    #[error("{name} must be {expected}, got {got}")]
    Number {
        /// Name of the number.
        name: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// The value as it was written.
        got: String,
    },
    /// A link's end is not a node.
    #[error("link {link}: expected {expected}, got \"{got}\"")]
    BadEnd {
        /// The link's place in the list, from zero.
        link: usize,
        /// The values allowed.
        expected: String,
        /// The value in the topology.
        got: String,
    },
    /// A host without a link.
    #[error("expected host h{host} to have a link to a switch, got none")]
    NoLink {
        /// The host.
        host: u32,
    },
    /// A host with a link to another host.
    #[error(
        "expected links of host h{host} to lead to switches, got one to h{other}: hosts do not \
         forward packets unless topology.hosts-forward is true"
    )]
    HostToHost {
        /// The link's place in the list, from zero.
        link: usize,
        /// The host.
        host: u32,
        /// The other host.
        other: u32,
    },
    /// A link of a host that is listed from each of its ends.
    #[error(
        "expected each link of a host once, got \"{from}-{to}\" after \"{to}-{from}\": a link \
         carries both directions; links in parallel have the same first end"
    )]
    TwoDirections {
        /// The place of the second link in the list, from zero.
        link: usize,
        /// First end.
        from: Node,
        /// Second end.
        to: Node,
    },
    /// Two hosts cannot reach one another.
    #[error("expected a path between all hosts, got none between h{0} and h{1}")]
    Disconnected(u32, u32),
    /// Two hosts can reach one another over other hosts only.
    #[error(
        "expected a path over switches between all hosts, got one between h{0} and h{1} over other \
         hosts only: hosts do not forward packets unless topology.hosts-forward is true"
    )]
    Forwarding(u32, u32),
    /// A switch that no host can reach.
    #[error("expected every switch to be joined to hosts, got s{0} without a path to any")]
    UnreachableSwitch(u32),
}

impl TopologyError {
    /// Returns the place in the list of the link that is wrong, if it is one.
    pub fn link(&self) -> Option<usize> {
        match *self {
            Self::BadEnd { link, .. }
            | Self::HostToHost { link, .. }
            | Self::TwoDirections { link, .. } => Some(link),
            _ => None,
        }
    }
}
