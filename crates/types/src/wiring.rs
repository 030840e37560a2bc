//! Wiring of a network: its nodes, the links that join them, and the ports of switches.

use std::cmp::Ordering;

use crate::rates::RateRange;
use crate::units::{Rate, Span};

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host, by number.
    Host(u32),
    /// An arbiter, by number among arbiters.
    Arbiter(u32),
    /// A switch, by number.
    Switch(u32),
}

impl std::fmt::Display for Node {
    /// The name that plans and results have for it: `h0`, `s3`, `a1`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(n) => write!(f, "h{n}"),
            Self::Arbiter(n) => write!(f, "a{n}"),
            Self::Switch(n) => write!(f, "s{n}"),
        }
    }
}

/// A full-duplex link, whose directions may have different rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: Node,
    /// The other end.
    pub b: Node,
    /// Rate from `a` to `b`.
    pub rate: Rate,
    /// Rate from `b` to `a`.
    pub rate_back: Rate,
    /// Time that a bit needs from one end to the other.
    pub propagation: Span,
}

impl Link {
    /// Returns a link with the same rate in both directions.
    pub fn new(a: Node, b: Node, rate: Rate, propagation: Span) -> Self {
        Self { a, b, rate, rate_back: rate, propagation }
    }

    /// Returns the rate in the direction of `to`, which is one of its ends.
    pub fn rate_to(&self, to: Node) -> Rate {
        if to == self.b { self.rate } else { self.rate_back }
    }

    /// Returns the rate in the direction away from `from`, which is one of its ends.
    pub fn rate_from(&self, from: Node) -> Rate {
        if from == self.a { self.rate } else { self.rate_back }
    }

    /// Returns the rates of the slower and of the faster direction.
    pub fn rates(&self) -> RateRange {
        let (rate, back) = (self.rate, self.rate_back);
        RateRange { slowest: rate.min(back), fastest: rate.max(back) }
    }

    /// Returns the link with its ends in order: hosts before arbiters before switches.
    #[must_use]
    pub fn ordered(self) -> Self {
        if self.a <= self.b {
            return self;
        }
        Self { a: self.b, b: self.a, rate: self.rate_back, rate_back: self.rate, ..self }
    }
}

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number within the switch, from zero.
    pub number: u16,
    /// The link of the port.
    pub link: Link,
    /// The node at the other end of the link.
    pub to: Node,
}

/// Nodes of a network and the links that join them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Number of hosts.
    pub n_hosts: u32,
    /// Number of arbiters.
    pub n_arbiters: u32,
    /// Level of each switch: 1 if it has hosts, otherwise one more than that of the lowest switch
    /// next to it.
    pub levels: Vec<u8>,
    /// Links, in the order of their numbers.
    pub links: Vec<Link>,
    /// The switch of each host, then of each arbiter; of several, the first.
    pub tors: Vec<u32>,
    /// Processing time in each host and arbiter.
    pub host_latency: Span,
    /// Processing time in each switch.
    pub switch_latency: Span,
}

impl Wiring {
    /// Returns the number of hosts and arbiters.
    pub fn n_stations(&self) -> u32 {
        self.n_hosts + self.n_arbiters
    }

    /// Returns the number of switches.
    pub fn n_switches(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Returns the number of a node among hosts and arbiters; `None` for switches.
    pub fn station(&self, node: Node) -> Option<u32> {
        match node {
            Node::Host(host) => Some(host),
            Node::Arbiter(arbiter) => Some(self.n_hosts + arbiter),
            Node::Switch(_) => None,
        }
    }

    /// Returns the wiring without arbiters and their links.
    #[must_use]
    pub fn without_arbiters(&self) -> Self {
        let is_arbiter = |node| matches!(node, Node::Arbiter(_));
        let links = self.links.iter().filter(|link| !is_arbiter(link.a) && !is_arbiter(link.b));
        Self {
            n_arbiters: 0,
            levels: self.levels.clone(),
            links: links.copied().collect(),
            tors: self.tors[..self.n_hosts as usize].to_vec(),
            ..*self
        }
    }

    /// Returns the ports of each switch. Ports are numbered in the order of their links.
    pub fn ports(&self) -> Vec<Vec<Port>> {
        let mut all: Vec<Vec<Port>> = self.levels.iter().map(|_| Vec::new()).collect();
        for &link in &self.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                if let Node::Switch(switch) = from {
                    let of = &mut all[switch as usize];
                    of.push(Port { number: of.len() as u16, link, to });
                }
            }
        }
        all
    }

    /// Returns the other ends of the links of `node`, in the order of the links.
    pub fn neighbours_of(&self, node: Node) -> Vec<Node> {
        let far = |link: &Link| match (link.a == node, link.b == node) {
            (true, _) => Some(link.b),
            (_, true) => Some(link.a),
            _ => None,
        };
        self.links.iter().filter_map(far).collect()
    }

    /// Returns the host and the link of each link of a host.
    pub fn access(&self) -> impl Iterator<Item = (u32, Link)> {
        self.links.iter().filter_map(|&link| match (link.a, link.b) {
            (Node::Host(host), _) | (_, Node::Host(host)) => Some((host, link)),
            _ => None,
        })
    }

    /// Returns the number of links of each host.
    pub fn rails(&self) -> Vec<u32> {
        let mut rails = vec![0; self.n_hosts as usize];
        for (host, _) in self.access() {
            rails[host as usize] += 1;
        }
        rails
    }

    /// Returns the rates of the slowest and the fastest link.
    ///
    /// # Panics
    /// If there is no link.
    pub fn rates(&self) -> RateRange {
        let rates = || self.links.iter().flat_map(|link| [link.rate, link.rate_back]);
        let slowest = rates().min().expect("a network has links");
        RateRange { slowest, fastest: rates().max().unwrap_or(slowest) }
    }

    /// Returns the switch that `host` is attached to: its rack.
    pub fn rack(&self, host: u32) -> u32 {
        self.tors[host as usize]
    }

    /// Returns the switches of racks, in the order of racks.
    pub fn racks(&self) -> Vec<u32> {
        let mut tors = self.tors[..self.n_hosts as usize].to_vec();
        tors.sort_unstable();
        tors.dedup();
        tors
    }

    /// Returns the links of each switch to higher levels, with the switches that they lead to;
    /// `None` if switches of one level are joined.
    pub fn links_to_higher_levels(&self) -> Option<Vec<Vec<(u32, u32)>>> {
        let mut above = vec![Vec::new(); self.levels.len()];
        for (link, number) in self.links.iter().zip(0..) {
            let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { continue };
            match self.levels[a as usize].cmp(&self.levels[b as usize]) {
                Ordering::Less => above[a as usize].push((number, b)),
                Ordering::Greater => above[b as usize].push((number, a)),
                Ordering::Equal => return None,
            }
        }
        Some(above)
    }
}
