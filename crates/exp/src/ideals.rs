//! The least time that each flow could take in the network of a plan.

use std::collections::BTreeMap;

use rampmeter_core::collections::IdMap;
use rampmeter_core::{Bytes, NodeId, Rate, Span};
use rampmeter_metrics::ideal::{Forwarding, Framing, PathHop};
use rampmeter_metrics::{Ideal, IdealModel, Least, Ways};
use rampmeter_sim::{Node, PathLink, Paths, SimSpec, Switching, Topology};

use crate::cut::Cut;

/// The ideals of every pair of hosts.
#[derive(Debug)]
pub(crate) struct Ideals {
    paths: Paths,
    model: IdealModel,
    hosts: Vec<Host>,
    /// Between hosts of two classes; `None` if there is no way.
    by_classes: IdMap<(u32, u32), Option<Between>>,
}

/// The ways between hosts of two classes.
#[derive(Debug)]
struct Between {
    ways: Ways,
    /// An acknowledgement on its fastest way back.
    ack: Span,
    /// The path that figures count: over the links named first.
    path: Vec<PathHop>,
}

/// What ideals depend on of a host.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Hosts of one class have links to the same switches, with the same rates and propagation.
    class: u32,
    /// The rate of its slowest link, and of all of them.
    slowest: Rate,
    total: Rate,
}

/// The ideals of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowIdeals {
    pub(crate) delivered: Span,
    pub(crate) acked: Span,
    pub(crate) figure: Span,
    /// True if the first two are bounds from below, which perhaps no transport can reach.
    pub(crate) is_bound: bool,
}

impl FlowIdeals {
    /// In the order of [`Ideal`].
    pub(crate) fn all(self) -> [Span; 3] {
        [self.delivered, self.acked, self.figure]
    }
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

    /// The ideals of a flow, over all links on shortest paths; zero if there is no path.
    pub(crate) fn of(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> FlowIdeals {
        let classes = (self.hosts[src.idx()].class, self.hosts[dst.idx()].class);
        let Self { paths, model, by_classes, .. } = self;
        let between = by_classes
            .entry(classes)
            .or_insert_with(|| Between::of(paths, *model, src.get(), dst.get()));
        let Some(Between { ways, ack, path }) = between else { return FlowIdeals::default() };
        let Least { time, is_exact } = ways.least(size);
        FlowIdeals {
            delivered: time,
            acked: time + *ack,
            figure: model.fct(Ideal::Figure, size, path),
            is_bound: !is_exact,
        }
    }

    /// How messages become packets.
    pub(crate) fn framing(&self) -> Framing {
        self.model.framing
    }

    /// The rates of a host's slowest link and of all its links together.
    pub(crate) fn rates(&self, host: NodeId) -> (Rate, Rate) {
        let Host { slowest, total, .. } = self.hosts[host.idx()];
        (slowest, total)
    }
}

impl Between {
    fn of(paths: &Paths, model: IdealModel, src: u32, dst: u32) -> Option<Self> {
        let convert = |hop: rampmeter_sim::PathHop| PathHop { rate: hop.rate, delay: hop.delay };
        let ways = |src, dst| {
            let hops = paths.links(src, dst)?.into_iter();
            let links = |hop: Vec<PathLink>| {
                hop.into_iter().map(|(link, next)| (convert(link), next)).collect()
            };
            Some(Ways::new(model, &hops.map(links).collect::<Vec<_>>()))
        };
        let ack = ways(dst, src)?.alone(model.framing.ack);
        let path = paths.of(src, dst)?.into_iter().map(convert).collect();
        Some(Self { ways: ways(src, dst)?, ack, path })
    }
}

fn hosts(topology: &Topology) -> Vec<Host> {
    let mut links = vec![Vec::new(); topology.n_hosts() as usize];
    for (host, link) in topology.access() {
        let switch = if matches!(link.a, Node::Switch(_)) { link.a } else { link.b };
        links[host as usize].push((switch, link.rate, link.propagation));
    }
    let mut classes = BTreeMap::new();
    let host = |of: Vec<(Node, Rate, Span)>| {
        let rates = || of.iter().map(|&(_, rate, _)| rate);
        let slowest = rates().min().expect("a host has a link");
        let total = Rate::from_bps(rates().map(Rate::as_bps).sum()).unwrap_or(slowest);
        let next = classes.len() as u32;
        Host { class: *classes.entry(of).or_insert(next), slowest, total }
    };
    links.into_iter().map(host).collect()
}
