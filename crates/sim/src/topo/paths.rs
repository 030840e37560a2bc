//! The shortest paths between hosts.

use std::collections::BTreeMap;

use rampmeter_types::{Bytes, Rate, Span};

use super::{Link, Node, PathHop, PathLink, Routes, Topology};

/// The shortest paths of a topology, all links up.
#[derive(Clone, Debug)]
pub struct Paths {
    topology: Topology,
    routes: Routes,
}

impl Paths {
    /// Finds the paths.
    pub fn new(topology: Topology) -> Self {
        Self { routes: topology.routes().clone(), topology }
    }

    /// Finds the paths over links that are up.
    pub(super) fn over_links(topology: Topology, is_up: &dyn Fn(u32) -> bool) -> Self {
        Self { routes: Routes::new(&topology, is_up), topology }
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the links on shortest paths from host `src` to host `dst`, hop by hop; `None` if
    /// there is no path. Each has the places in the next hop of the links that it leads to.
    pub fn links(&self, src: u32, dst: u32) -> Option<Vec<Vec<PathLink>>> {
        let first = [src];
        let mut ports = self.routes.interfaces(src, dst).unwrap_or(&first).to_vec();
        let mut hops = Vec::new();
        loop {
            let ends = || ports.iter().map(|&port| self.routes.end(port));
            let mut next: Vec<u32> = Vec::new();
            let mut places = BTreeMap::new();
            let mut leads = Vec::new();
            for (_, to) in ends() {
                let Node::Switch(switch) = to else { continue };
                let place = |&port: &u32| {
                    *places.entry(port).or_insert_with(|| {
                        next.push(port);
                        next.len() - 1
                    })
                };
                let of: Vec<usize> = self.routes.next(switch, dst).iter().map(place).collect();
                if of.is_empty() {
                    return None;
                }
                leads.push(of);
            }
            let hop = |(link, to): (u32, Node)| {
                let link = self.topology.links[link as usize];
                let delay = link.propagation + self.topology.latency(to);
                PathHop { rate: link.rate_to(to), delay }
            };
            leads.resize(ports.len(), Vec::new());
            hops.push(ends().map(hop).zip(leads).collect());
            if next.is_empty() {
                return (!ports.is_empty()).then_some(hops);
            }
            ports = next;
        }
    }

    /// Returns the links that packets from host `src` to host `dst` may ever take, each in both
    /// directions, with the numbers of their ends. The hosts have the numbers `n` and `n + 1` if
    /// there are `n` switches.
    pub fn all_links(&self, src: u32, dst: u32) -> Vec<(PathHop, usize, usize)> {
        let n_switches = self.topology.n_switches() as usize;
        let number = |node: Node| match node {
            Node::Switch(switch) => Some(switch as usize),
            Node::Host(host) if host == src => Some(n_switches),
            Node::Host(host) if host == dst => Some(n_switches + 1),
            Node::Host(_) | Node::Arbiter(_) => None,
        };
        let directed = |from: Node, to: Node, link: &Link| {
            let delay = link.propagation + self.topology.latency(to);
            let hop = PathHop { rate: link.rate_to(to), delay };
            Some((hop, number(from)?, number(to)?))
        };
        let both = |link: &Link| [directed(link.a, link.b, link), directed(link.b, link.a, link)];
        self.topology.links.iter().flat_map(both).flatten().collect()
    }

    /// Returns the ports by which host `src` sends packets for host `dst`, and those of switches by
    /// which they reach it, each in ascending order. Empty if there is no path.
    pub fn access_ports(&self, src: u32, dst: u32) -> [Vec<u32>; 2] {
        let first = [src];
        let mut out = self.routes.interfaces(src, dst).unwrap_or(&first).to_vec();
        let mut at: Vec<u32> = out.clone();
        let mut into = Vec::new();
        while !at.is_empty() {
            let mut next = Vec::new();
            for port in at {
                match self.routes.end(port).1 {
                    Node::Switch(switch) => next.extend_from_slice(self.routes.next(switch, dst)),
                    _ => into.push(port),
                }
            }
            next.sort_unstable();
            next.dedup();
            at = next;
        }
        out.sort_unstable();
        [out, into]
    }

    /// Returns the ports by which host `src` sends to host `dst`.
    pub(super) fn ports_of_host(&self, src: u32, dst: u32) -> Vec<u32> {
        let first = [src];
        self.routes.interfaces(src, dst).unwrap_or(&first).to_vec()
    }

    /// Returns the ports by which a switch sends to host `dst`.
    pub(super) fn ports_of_switch(&self, switch: u32, dst: u32) -> Vec<u32> {
        self.routes.next(switch, dst).to_vec()
    }

    /// Returns the link of a port.
    pub(super) fn link_of(&self, port: u32) -> u32 {
        self.routes.end(port).0
    }

    /// Returns the switch that a port leads to; `None` for hosts and arbiters.
    pub(super) fn switch_of(&self, port: u32) -> Option<u32> {
        match self.routes.end(port).1 {
            Node::Switch(switch) => Some(switch),
            Node::Host(_) | Node::Arbiter(_) => None,
        }
    }

    /// Returns the time of a packet of `bytes` from a port to the moment when the far end can act
    /// on it, without load.
    pub(super) fn time(&self, port: u32, bytes: Bytes) -> Span {
        let (link, to) = self.routes.end(port);
        let link = self.topology.links[link as usize];
        link.propagation + self.topology.latency(to) + link.rate_to(to).tx_time(bytes)
    }

    /// Returns the rate of a port's link in the port's direction.
    pub fn port_rate(&self, port: u32) -> Rate {
        let (link, to) = self.routes.end(port);
        self.topology.links[link as usize].rate_to(to)
    }

    /// Returns the rates of the links by which host `src` sends to host `dst`, with their far ends.
    pub(super) fn first_links(&self, src: u32, dst: u32) -> Vec<(Rate, Node)> {
        let first = [src];
        self.rates_of(self.routes.interfaces(src, dst).unwrap_or(&first))
    }

    /// Returns the rates of the links by which a switch sends to host `dst`, with their far ends.
    pub(super) fn next_links(&self, switch: u32, dst: u32) -> Vec<(Rate, Node)> {
        self.rates_of(self.routes.next(switch, dst))
    }

    /// Returns the rates of ports with the far ends of their links, each port once.
    fn rates_of(&self, ports: &[u32]) -> Vec<(Rate, Node)> {
        let mut ports = ports.to_vec();
        ports.sort_unstable();
        ports.dedup();
        let of = |port: u32| (self.port_rate(port), self.routes.end(port).1);
        ports.into_iter().map(of).collect()
    }

    /// Returns the share of the packets from host `src` to host `dst` on each link, and the end at
    /// which they enter it. Every node spreads packets over its links on shortest paths by rate.
    /// Empty if there is no path.
    pub fn shares(&self, src: u32, dst: u32) -> Vec<(u32, Node, f64)> {
        let first = [src];
        let ports = self.routes.interfaces(src, dst).unwrap_or(&first);
        let mut shares = Vec::new();
        let mut at: Vec<(u32, f64)> = Vec::new();
        self.spread(ports, Node::Host(src), 1.0, &mut shares, &mut at);
        while !at.is_empty() {
            at.sort_by_key(|&(switch, _)| switch);
            at.dedup_by(|(next, more), (switch, share)| {
                let is_same = next == switch;
                *share += if is_same { *more } else { 0.0 };
                is_same
            });
            for (switch, share) in std::mem::take(&mut at) {
                // If links have several rates, a port occurs several times.
                let mut ports: Vec<u32> = Vec::new();
                for &port in self.routes.next(switch, dst) {
                    if !ports.contains(&port) {
                        ports.push(port);
                    }
                }
                self.spread(&ports, Node::Switch(switch), share, &mut shares, &mut at);
            }
        }
        shares
    }

    /// Spreads a share of the packets over the ports of a node by rate, and adds it to the switches
    /// at their far ends.
    fn spread(
        &self,
        ports: &[u32],
        from: Node,
        share: f64,
        shares: &mut Vec<(u32, Node, f64)>,
        at: &mut Vec<(u32, f64)>,
    ) {
        let rate = |(link, to): (u32, Node)| {
            self.topology.links[link as usize].rate_to(to).as_bps() as f64
        };
        let total: f64 = ports.iter().map(|&port| rate(self.routes.end(port))).sum();
        for &port in ports {
            let (link, to) = self.routes.end(port);
            let part = share * rate((link, to)) / total;
            shares.push((link, from, part));
            if let Node::Switch(switch) = to {
                at.push((switch, part));
            }
        }
    }

    /// Returns the hops of the slowest shortest path from host `src` to host `dst` for a packet of
    /// `bytes`; `None` if there is no path. Packets that are spread over all shortest paths take up
    /// to as long.
    pub fn slowest_path(&self, src: u32, dst: u32, bytes: Bytes) -> Option<Vec<PathHop>> {
        let hops = self.links(src, dst)?;
        // By hop, from the last one on, and by place: the time from there on, and the place that
        // follows.
        let mut rest: Vec<Vec<(Span, usize)>> = Vec::new();
        for links in hops.iter().rev() {
            let after = rest.last();
            let from = |(hop, leads): &PathLink| {
                let times = leads.iter().filter_map(|&next| Some((after?[next].0, next)));
                let (time, next) = times.max().unwrap_or((Span::ZERO, 0));
                (hop.delay + hop.rate.tx_time(bytes) + time, next)
            };
            let here = links.iter().map(from).collect();
            rest.push(here);
        }
        let first = rest.last()?.iter().zip(0..).max_by_key(|((time, _), _)| *time);
        let mut place: usize = first.map(|(_, place)| place)?;
        let mut path = Vec::new();
        for (links, rest) in hops.iter().zip(rest.iter().rev()) {
            path.push(links[place].0);
            place = rest[place].1;
        }
        Some(path)
    }

    /// Returns the hops of a shortest path from host `src` to host `dst`; `None` if there is none.
    /// Of equally short paths it is the one over the links named first.
    pub fn hops(&self, src: u32, dst: u32) -> Option<Vec<PathHop>> {
        let mut at = Node::Host(src);
        let mut hops = Vec::new();
        while at != Node::Host(dst) {
            let (link, to) = self.routes.end(self.routes.first_port(at, dst)?);
            let link = self.topology.links[link as usize];
            let delay = link.propagation + self.topology.latency(to);
            hops.push(PathHop { rate: link.rate_to(to), delay });
            at = to;
        }
        Some(hops)
    }
}
