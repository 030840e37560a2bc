//! The least time that each flow could take in the network of a plan.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_metrics::ideal::{Forwarding, PathHop};
use rampmeter_metrics::{DetourLink, Detours, HopGraph, Ideal, IdealModel, MinimumTime};
use rampmeter_sim::{Node, PathLink, Paths, SimSpec, Switching, Symmetry, Topology};
use rampmeter_types::collections::IdMap;
use rampmeter_types::{Bytes, NodeId, Rate, Span};

use rampmeter_types::Segmentation;

/// The ideals of every pair of hosts.
#[derive(Debug)]
pub(crate) struct Ideals {
    paths: Paths,
    model: IdealModel,
    hosts: Vec<Host>,
    /// True if links change during the run. Ideals are those of the network in which each link is
    /// as fast and as short as it ever is.
    has_changes: bool,
    /// True if links or nodes fail during the run, so that packets may take other links.
    has_outages: bool,
    /// True if packets may then take faster paths than the shortest ones.
    has_detours: bool,
    symmetry: Symmetry,
    /// Paths between representatives of pairs with equal paths; `None` if there is no path.
    by_pair: IdMap<(u32, u32), Option<Arc<ClassPaths>>>,
    /// Different paths that were found last: hosts of regular networks have few.
    recent: VecDeque<Arc<ClassPaths>>,
}

/// Number of different paths with which new ones are compared.
const RECENT: usize = 16;

/// The paths between two hosts.
#[derive(Debug, PartialEq)]
struct ClassPaths {
    hop_graph: HopGraph,
    /// Time of an acknowledgement on its fastest path.
    ack: Span,
    /// The path that figures count: over the links named first.
    path: Vec<PathHop>,
    /// All paths in both directions, if outages may open faster ones.
    detours: [Option<Detours>; 2],
}

/// Properties of a host from which ideals are computed.
#[derive(Clone, Copy, Debug)]
struct Host {
    tx: LinkRates,
    rx: LinkRates,
}

/// The rates of a host's links in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRates {
    /// The rate of the slowest.
    pub(crate) slowest: Rate,
    /// The rate of all together.
    pub(crate) total: Rate,
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
    /// Returns the ideals in the order of [`Ideal`].
    pub(crate) fn all(self) -> [Span; 3] {
        [self.delivered, self.acked, self.figure]
    }
}

impl Ideals {
    /// Returns the ideals of flows in the network of `sim`, cut into packets by `cut`.
    pub(crate) fn new(sim: &SimSpec, segmentation: Segmentation) -> Self {
        let forwarding = match sim.fabric.switching {
            Switching::StoreAndForward => Forwarding::StoreAndForward,
            Switching::CutThrough { header } => Forwarding::CutThrough { header },
            Switching::Shaped { burst } => Forwarding::Shaped { burst },
        };
        let has_changes = !sim.faults.changes.is_empty();
        let has_outages = !sim.faults.outages.is_empty();
        let topology = sim.topology.clone().with_best_links(&sim.faults.changes);
        let has_detours = has_outages && !topology.has_only_slower_detours();
        let hosts = hosts(&topology);
        let model = IdealModel { forwarding, segmentation };
        let (symmetry, paths) = (topology.symmetry(), Paths::new(topology));
        let (by_pair, recent) = (IdMap::default(), VecDeque::new());
        Self {
            paths,
            model,
            hosts,
            has_changes,
            has_outages,
            has_detours,
            symmetry,
            by_pair,
            recent,
        }
    }

    /// Returns the ideals of a flow; zero if there is no path. They are over all links on shortest
    /// paths, or over all links if outages may open faster paths.
    pub(crate) fn flow(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> FlowIdeals {
        let pair = self.symmetry.representative(src.get(), dst.get());
        let Self { paths, model, by_pair, recent, has_changes, has_detours, .. } = self;
        let between = by_pair.entry(pair).or_insert_with(|| {
            let found = ClassPaths::new(paths, *model, pair.0, pair.1, *has_detours)?;
            Some(share(found, recent))
        });
        let Some(between) = between else { return FlowIdeals::default() };
        let ClassPaths { hop_graph, ack, path, detours } = &**between;
        let MinimumTime { time, is_exact } = hop_graph.minimum_time(size);
        let figure = model.fct(Ideal::Figure, size, path);
        let [there, back] = detours;
        let open = there.as_ref().map_or(time, |detours| detours.minimum_time(size).min(time));
        let ack = back
            .as_ref()
            .map_or(*ack, |back| back.min_packet_time(model.segmentation.header).min(*ack));
        FlowIdeals {
            delivered: open,
            acked: open + ack,
            figure: if open < time { figure.min(open + ack) } else { figure },
            is_bound: !is_exact || *has_changes || open < time,
        }
    }

    /// Returns the segmentation of messages into packets.
    pub(crate) fn segmentation(&self) -> Segmentation {
        self.model.segmentation
    }

    /// Returns the time on a link that a shaper compensates for after idle time.
    pub(crate) fn burst(&self) -> Span {
        match self.model.forwarding {
            Forwarding::Shaped { burst } => burst,
            Forwarding::StoreAndForward | Forwarding::CutThrough { .. } => Span::ZERO,
        }
    }

    /// Returns the rates of the links by which `src` sends, and of those by which `dst` receives.
    pub(crate) fn rates(&self, src: NodeId, dst: NodeId) -> [LinkRates; 2] {
        [self.hosts[src.idx()].tx, self.hosts[dst.idx()].rx]
    }

    /// Returns the links by which packets from `src` to `dst` are sent, and those by which they are
    /// received, each as (port, rate). Both are empty if outages may lead packets over others.
    pub(crate) fn access(&self, src: NodeId, dst: NodeId) -> [Vec<(u32, Rate)>; 2] {
        if self.has_outages {
            return [Vec::new(), Vec::new()];
        }
        let ports = self.paths.access_ports(src.get(), dst.get());
        ports.map(|of| of.into_iter().map(|port| (port, self.paths.port_rate(port))).collect())
    }
}

impl ClassPaths {
    fn new(
        paths: &Paths,
        model: IdealModel,
        src: u32,
        dst: u32,
        has_detours: bool,
    ) -> Option<Self> {
        let convert = |hop: rampmeter_sim::PathHop| PathHop { rate: hop.rate, delay: hop.delay };
        let ways = |src, dst| {
            let hops = paths.links(src, dst)?.into_iter();
            let links = |hop: Vec<PathLink>| {
                hop.into_iter().map(|(link, next)| (convert(link), next)).collect()
            };
            Some(HopGraph::new(model, &hops.map(links).collect::<Vec<_>>()))
        };
        let ack = ways(dst, src)?.min_packet_time(model.segmentation.header);
        let path = paths.hops(src, dst)?.into_iter().map(convert).collect();
        let detours = |src, dst| {
            let of = |(hop, from, to)| DetourLink { hop: convert(hop), from, to };
            let links: Vec<DetourLink> = paths.all_links(src, dst).into_iter().map(of).collect();
            let n_switches = paths.topology().n_switches() as usize;
            Detours::new(model, &links, n_switches, n_switches + 1)
        };
        let detours = match has_detours {
            true => [detours(src, dst), detours(dst, src)],
            false => [None, None],
        };
        Some(Self { hop_graph: ways(src, dst)?, ack, path, detours })
    }
}

/// Returns the same ways as found before, if they were found lately.
fn share(found: ClassPaths, recent: &mut VecDeque<Arc<ClassPaths>>) -> Arc<ClassPaths> {
    if let Some(known) = recent.iter().find(|known| ***known == found) {
        return Arc::clone(known);
    }
    let found = Arc::new(found);
    recent.truncate(RECENT - 1);
    recent.push_front(Arc::clone(&found));
    found
}

fn hosts(topology: &Topology) -> Vec<Host> {
    let mut links = vec![Vec::new(); topology.n_hosts() as usize];
    for (host, link) in topology.access() {
        let switch = if matches!(link.a, Node::Switch(_)) { link.a } else { link.b };
        links[host as usize].push([link.rate_to(switch), link.rate_from(switch)]);
    }
    let host = |access: Vec<[Rate; 2]>| {
        let [tx, rx] = [0, 1].map(|direction| {
            let rates = || access.iter().map(|rates| rates[direction]);
            let slowest = rates().min().expect("a host has a link");
            let total = Rate::from_bps(rates().map(Rate::as_bps).sum()).unwrap_or(slowest);
            LinkRates { slowest, total }
        });
        Host { tx, rx }
    };
    links.into_iter().map(host).collect()
}
