//! The shortest paths between hosts.

use std::collections::BTreeMap;

use rampmeter_core::{Bytes, Rate, Span};

use super::{Node, PathHop, PathLink, Topology};
use crate::fabric::Routes;

/// The shortest paths of a topology, all links up.
#[derive(Clone, Debug)]
pub struct Paths {
    topology: Topology,
    routes: Routes,
}

impl Paths {
    /// Finds the paths.
    pub fn new(topology: Topology) -> Self {
        Self { routes: Routes::new(&topology, &|_| true), topology }
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The links on shortest paths from host `src` to host `dst`, hop by hop, each with the places
    /// in the next hop of those that it leads to; `None` if there is no path.
    pub fn links(&self, src: u32, dst: u32) -> Option<Vec<Vec<PathLink>>> {
        let first = [src];
        let mut ports = self.routes.interfaces(src, dst).unwrap_or(&first).to_vec();
        let mut hops = Vec::new();
        loop {
            let ends = || ports.iter().map(|&port| self.routes.end(port));
            let mut next: Vec<u32> = Vec::new();
            let mut leads = Vec::new();
            for (_, to) in ends() {
                let Node::Switch(switch) = to else { continue };
                let of: Vec<usize> = self
                    .routes
                    .next(switch, dst)
                    .iter()
                    .map(|&port| {
                        next.iter().position(|&known| known == port).unwrap_or_else(|| {
                            next.push(port);
                            next.len() - 1
                        })
                    })
                    .collect();
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

    /// Returns the rate of a port's link in the port's direction.
    pub fn port_rate(&self, port: u32) -> Rate {
        let (link, to) = self.routes.end(port);
        self.topology.links[link as usize].rate_to(to)
    }

    /// Returns the share of the packets from host `src` to host `dst` on each link, and the end at
    /// which they enter it: every node spreads packets over its links on shortest paths by rate.
    /// Empty if there is no path.
    pub fn shares(&self, src: u32, dst: u32) -> Vec<(u32, Node, f64)> {
        let first = [src];
        let ports = self.routes.interfaces(src, dst).unwrap_or(&first);
        let mut shares = Vec::new();
        let mut at = BTreeMap::new();
        self.spread(ports, Node::Host(src), 1.0, &mut shares, &mut at);
        while !at.is_empty() {
            for (switch, share) in std::mem::take(&mut at) {
                // A port is there several times where links have several rates.
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
        at: &mut BTreeMap<u32, f64>,
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
                *at.entry(switch).or_insert(0.0) += part;
            }
        }
    }

    /// Returns the hops of the shortest path from host `src` to host `dst` on which a packet of
    /// `bytes` takes most time; `None` if there is no path. Packets that are spread over all
    /// shortest paths take up to as long.
    pub fn slowest_of(&self, src: u32, dst: u32, bytes: Bytes) -> Option<Vec<PathHop>> {
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

    /// The hops of a shortest path from host `src` to host `dst`; `None` if there is none. Of
    /// equally short paths it is the one over the links named first.
    pub fn of(&self, src: u32, dst: u32) -> Option<Vec<PathHop>> {
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
