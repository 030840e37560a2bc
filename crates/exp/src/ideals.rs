//! The least time that each flow could take in the network of a plan.

use std::collections::BTreeMap;

use rampmeter_core::collections::IdMap;
use rampmeter_core::{Bytes, NodeId, Rate, Span};
use rampmeter_metrics::ideal::{Forwarding, Framing, PathHop};
use rampmeter_metrics::{Ideal, IdealModel};
use rampmeter_sim::{Paths, SimSpec, Switching, Topology};

use crate::cut::Cut;

/// The ideals of every pair of hosts.
#[derive(Debug)]
pub(crate) struct Ideals {
    paths: Paths,
    model: IdealModel,
    hosts: Vec<Host>,
    /// The way between hosts of two classes, and how many such ways can be used at once.
    by_classes: IdMap<(u32, u32), (Vec<PathHop>, u64)>,
}

/// What ideals depend on of a host.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Hosts of one class have the same switch, rates and propagation.
    class: u32,
    links: u32,
    /// The rate of its fastest link.
    fastest: Rate,
}

impl Ideals {
    /// The ideals of flows in the network of `sim`, cut into packets as `cut` says.
    pub(crate) fn new(sim: &SimSpec, cut: Cut) -> Self {
        let forwarding = match sim.fabric.switching {
            Switching::StoreAndForward => Forwarding::StoreAndForward,
            Switching::CutThrough { header } => Forwarding::CutThrough { header },
            Switching::Shaped { .. } => Forwarding::CutThrough { header: Bytes::ZERO },
        };
        let Cut { payload, header: ack, last } = cut;
        let framing = Framing { payload, wire: payload + ack, last, ack };
        let paths = Paths::new(sim.topology.clone());
        let hosts = hosts(&sim.topology);
        let model = IdealModel { forwarding, framing };
        Self { paths, model, hosts, by_classes: IdMap::default() }
    }

    /// The three ideals of a flow: delivered, acked, figure. Hosts with several links send by as
    /// many of them as the other end has, each as fast as the fastest.
    pub(crate) fn of(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> [Span; 3] {
        let (from, to) = (self.hosts[src.idx()], self.hosts[dst.idx()]);
        let paths = &self.paths;
        let (path, lanes) = self.by_classes.entry((from.class, to.class)).or_insert_with(|| {
            let path = paths.of(src.get(), dst.get()).unwrap_or_default();
            let hop = |hop: rampmeter_sim::PathHop| PathHop { rate: hop.rate, delay: hop.delay };
            let mut path: Vec<PathHop> = path.into_iter().map(hop).collect();
            if let [first, .., last] = &mut path[..] {
                (first.rate, last.rate) = (from.fastest, to.fastest);
            }
            (path, u64::from(from.links.min(to.links)))
        });
        if path.is_empty() {
            return [Span::ZERO; 3];
        }
        let size = if *lanes > 1 { self.model.framing.share(size, *lanes) } else { size };
        [Ideal::Delivered, Ideal::Acked, Ideal::Figure].map(|i| self.model.fct(i, size, path))
    }

    /// How messages become packets.
    pub(crate) fn framing(&self) -> Framing {
        self.model.framing
    }

    /// How many links a host has, and the rate of its fastest.
    pub(crate) fn links(&self, host: NodeId) -> (u64, Rate) {
        let Host { links, fastest, .. } = self.hosts[host.idx()];
        (links.into(), fastest)
    }

    /// What the busiest of `lanes` links carries of a message.
    pub(crate) fn share(&self, size: Bytes, lanes: u64) -> Bytes {
        self.model.framing.share(size, lanes)
    }

    /// How many links both of two hosts have, and the slower of their fastest.
    pub(crate) fn access(&self, src: NodeId, dst: NodeId) -> (u64, Rate) {
        let (from, to) = (self.hosts[src.idx()], self.hosts[dst.idx()]);
        (u64::from(from.links.min(to.links)), from.fastest.min(to.fastest))
    }
}

fn hosts(topology: &Topology) -> Vec<Host> {
    let mut links = vec![Vec::new(); topology.n_hosts() as usize];
    for (host, link) in topology.access() {
        links[host as usize].push((link.rate, link.propagation, link.a, link.b));
    }
    let mut classes = BTreeMap::new();
    let host = |(n, links): (u32, &Vec<(Rate, Span, _, _)>)| {
        let of: Vec<_> = links.iter().map(|&(rate, propagation, ..)| (rate, propagation)).collect();
        let next = classes.len() as u32;
        let class = *classes.entry((topology.rack(n), of)).or_insert(next);
        let fastest = links.iter().map(|&(rate, ..)| rate).max();
        let fastest = fastest.expect("a host has a link");
        Host { class, links: links.len() as u32, fastest }
    };
    (0..).zip(&links).map(host).collect()
}
