//! Reasons why topologies cannot be built.

use std::error::Error;
use std::fmt;

use rampmeter_types::wiring::Node;

/// Reason why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// A count is out of range.
    Count {
        /// Name of the number.
        name: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// The value.
        got: u64,
    },
    /// A rate or a delay is out of range.
    Number {
        /// Name of the number.
        name: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// The value as it was written.
        got: String,
    },
    /// A file of a topology that the caller has not read.
    Unread(String),
    /// A link's end is not a node.
    BadEnd {
        /// The link's place in the list, from zero.
        link: usize,
        /// Number of hosts, at least 1.
        hosts: u32,
        /// Number of switches.
        switches: u32,
        /// The value in the topology.
        got: String,
    },
    /// A link from a node to itself.
    SameEnds {
        /// The link's place in the list, from zero.
        link: usize,
        /// The node.
        node: Node,
    },
    /// A host without a link.
    NoLink(u32),
    /// A host with a link to another host.
    HostToHost {
        /// The link's place in the list, from zero.
        link: usize,
        /// The host.
        host: u32,
        /// The other host.
        other: u32,
    },
    /// A link of a host that is listed from each of its ends.
    TwoDirections {
        /// The place of the second link in the list, from zero.
        link: usize,
        /// First end.
        from: Node,
        /// Second end.
        to: Node,
    },
    /// Two hosts cannot reach one another.
    Disconnected(u32, u32),
    /// Two hosts can reach one another over other hosts only.
    Forwarding(u32, u32),
    /// A switch that no host can reach.
    UnreachableSwitch(u32),
}

/// Remedy for hosts between other hosts.
const FORWARDING: &str = "hosts do not forward packets unless topology.hosts-forward is true";

impl TopologyError {
    /// Returns the place in the list of the link that is wrong, if it is one.
    pub fn link(&self) -> Option<usize> {
        match *self {
            Self::BadEnd { link, .. }
            | Self::SameEnds { link, .. }
            | Self::HostToHost { link, .. }
            | Self::TwoDirections { link, .. } => Some(link),
            _ => None,
        }
    }

    /// Returns the name of the number that is out of range, if it is one.
    pub fn number(&self) -> Option<&'static str> {
        match *self {
            Self::Count { name, .. } | Self::Number { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the expected and the actual value, with nodes by the names that `name` returns.
    pub fn expected_and_got(&self, name: impl Fn(Node) -> String) -> (String, String) {
        let host = |number: &u32| name(Node::Host(*number));
        match self {
            Self::Count { expected, got, .. } => ((*expected).to_owned(), got.to_string()),
            Self::Number { expected, got, .. } => ((*expected).to_owned(), got.clone()),
            Self::Unread(file) => ("a topology whose file has been read".to_owned(), file.clone()),
            Self::BadEnd { hosts, switches, got, .. } => {
                let hosts = format!("{} to {}", host(&0), host(&(hosts - 1)));
                let switch = |number| name(Node::Switch(number));
                let expected = match switches.checked_sub(1) {
                    Some(last) => format!("{hosts} or {} to {}", switch(0), switch(last)),
                    None => hosts,
                };
                (expected, format!("\"{got}\""))
            }
            Self::SameEnds { node, .. } => {
                ("two different nodes".to_owned(), format!("\"{} twice\"", name(*node)))
            }
            Self::NoLink(number) => {
                (format!("host {} to have a link to a switch", host(number)), "none".to_owned())
            }
            Self::HostToHost { host: number, other, .. } => (
                format!("links of host {} to lead to switches", host(number)),
                format!("one to {}: {FORWARDING}", host(other)),
            ),
            Self::TwoDirections { from, to, .. } => {
                let (from, to) = (name(*from), name(*to));
                let got = format!(
                    "\"{from}-{to}\" after \"{to}-{from}\": a link carries both directions; links \
                     in parallel have the same first end"
                );
                ("each link of a host once".to_owned(), got)
            }
            Self::Disconnected(a, b) => (
                "a path between all hosts".to_owned(),
                format!("none between {} and {}", host(a), host(b)),
            ),
            Self::Forwarding(a, b) => (
                "a path over switches between all hosts".to_owned(),
                format!(
                    "one between {} and {} over other hosts only: {FORWARDING}",
                    host(a),
                    host(b)
                ),
            ),
            Self::UnreachableSwitch(number) => (
                "every switch to be joined to hosts".to_owned(),
                format!("{} without a path to any", name(Node::Switch(*number))),
            ),
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = self.link() {
            write!(f, "link {link}: ")?;
        }
        if let Some(name) = self.number() {
            write!(f, "{name}: ")?;
        }
        let (expected, got) = self.expected_and_got(|node| node.to_string());
        write!(f, "expected {expected}, got {got}")
    }
}

impl Error for TopologyError {}
