//! Rounds of collective operations: how long they took, and how long at least.

use std::collections::BTreeMap;

use rampmeter_types::{Bytes, NodeId, Rate, Span, Time};
use rampmeter_workload::{Flow, Graph, Round};
use schemars::JsonSchema;
use serde::Serialize;

use super::ideals::{FlowIdeals, Ideals};

/// Results of a round of a collective. Bandwidths are in Gbit/s.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CollectiveRound {
    /// The operation, as in plans.
    pub operation: &'static str,
    /// The algorithm, as in plans.
    pub algorithm: &'static str,
    /// The part of a mix or the phase that it belongs to, from zero.
    pub tenant: u32,
    /// The first host that takes part.
    pub first_host: u32,
    /// Distance of the numbers of neighbours; null if there are several.
    pub host_step: Option<u32>,
    /// Number of hosts that take part.
    pub hosts: u32,
    /// The number of the round of a pattern, from zero. In files such as those of SimAI and Chakra:
    /// the number of the collective in the file.
    pub round: u32,
    /// The bytes that bandwidths are of: the vector; of an all-to-all-v the maximum that a host
    /// sends.
    pub bytes: u64,
    /// The flows of the round.
    pub flows: u64,
    /// Flows of the round that were delivered.
    pub delivered: u64,
    /// Start of the first flow of the round; null if none started.
    pub start_ps: Option<u64>,
    /// Time from `start_ps` until the last flow was delivered; null if not all were.
    pub completion_ps: Option<u64>,
    /// Algorithm bandwidth: `bytes` over the completion time, in Gbit/s.
    pub algorithm_gbps: Option<f64>,
    /// Bus bandwidth, comparable with the rate of a host's link: algorithm bandwidth times the
    /// factor of nccl-tests (all-reduce: 2 (n - 1) / n).
    pub bus_gbps: Option<f64>,
    /// Minimum of `completion_ps`: each flow takes its ideal, and hosts' links carry
    /// what is theirs.
    pub lower_bound_ps: u64,
    /// `completion_ps` divided by `lower_bound_ps`.
    pub lower_bound_ratio: Option<f64>,
}

/// The rounds of a run in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Vec<Progress>);

#[derive(Clone, Debug)]
struct Progress {
    round: Round,
    flows: u64,
    delivered: u64,
    start: Time,
    end: Time,
}

impl Rounds {
    /// Returns the rounds of `graph`, of which none has started.
    pub(crate) fn new(graph: &Graph) -> Self {
        let of = |round: &Round| {
            let flows = round.nodes.clone().filter(|&node| !graph.is_computation(node));
            let (flows, round) = (flows.count() as u64, round.clone());
            Progress { round, flows, delivered: 0, start: Time::NEVER, end: Time::ZERO }
        };
        Self(graph.rounds().iter().map(of).collect())
    }

    /// Returns the round that node `number` is in. Rounds are in the order of their nodes.
    fn find(&mut self, number: u32) -> Option<&mut Progress> {
        let at = self.0.partition_point(|progress| progress.round.nodes.end <= number);
        self.0.get_mut(at).filter(|progress| progress.round.nodes.contains(&number))
    }

    pub(crate) fn on_start(&mut self, number: u32, at: Time) {
        if let Some(progress) = self.find(number) {
            progress.start = progress.start.min(at);
        }
    }

    pub(crate) fn on_delivered(&mut self, number: u32, at: Time) {
        if let Some(progress) = self.find(number) {
            progress.delivered += 1;
            progress.end = progress.end.max(at);
        }
    }

    /// Returns the results of the rounds, with their bounds in `network`.
    pub(crate) fn results(
        &self,
        graph: &Graph,
        network: &mut impl Network,
    ) -> Vec<CollectiveRound> {
        let of = |progress: &Progress| {
            let Progress { round, flows, delivered, start, end } = progress;
            let took = (*delivered == *flows).then(|| (*end - *start).as_ps());
            let gbps = |ps: u64| round.bytes.get() as f64 * 8e3 / ps as f64;
            let algorithm_gbps = took.filter(|&ps| ps > 0).map(gbps);
            let began = (*start < Time::NEVER).then_some(*start);
            let lower_bound_ps = bound(graph, round, network, began).as_ps();
            CollectiveRound {
                operation: round.operation.name(),
                algorithm: round.algorithm.name(),
                tenant: graph.node(round.nodes.start).tenant.get(),
                first_host: round.hosts.host(0).get(),
                host_step: round.hosts.step(),
                hosts: round.hosts.count(),
                round: round.number,
                bytes: round.bytes.get(),
                flows: *flows,
                delivered: *delivered,
                start_ps: (*start < Time::NEVER).then(|| start.as_ps()),
                completion_ps: took,
                algorithm_gbps,
                bus_gbps: algorithm_gbps
                    .map(|g| g * round.operation.bus_factor(round.hosts.count())),
                lower_bound_ps,
                lower_bound_ratio: took
                    .filter(|_| lower_bound_ps > 0)
                    .map(|ps| ps as f64 / lower_bound_ps as f64),
            }
        };
        self.0.iter().map(of).collect()
    }
}

/// Properties of a network from which a bound is computed.
pub(crate) trait Network {
    /// Payload of a full packet.
    fn payload(&self) -> Bytes;

    /// Returns the time of a flow that is alone, until delivery and until its sender is notified.
    fn isolated_times(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> [Span; 2];

    /// Returns the time for which a flow occupies its sender's and its receiver's links, which
    /// share it.
    fn service(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> [Span; 2];

    /// Returns the links by which packets from `src` to `dst` are sent, and those by which they are
    /// received, as (port, rate). An empty list means all links of the host.
    fn access(&mut self, src: NodeId, dst: NodeId) -> [Vec<(u32, Rate)>; 2];

    /// Returns the bytes of a message on the wire.
    fn wire(&self, size: Bytes) -> Bytes;

    /// Returns the time of one packet with this payload on the slowest link of either.
    fn packet(&mut self, src: NodeId, dst: NodeId, payload: Bytes) -> [Span; 2];

    /// Returns the time on a link that a shaper compensates for after idle time.
    fn burst(&self) -> Span {
        Span::ZERO
    }
}

impl Network for Ideals {
    fn payload(&self) -> Bytes {
        self.segmentation().payload
    }

    fn isolated_times(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> [Span; 2] {
        let FlowIdeals { delivered, acked, .. } = self.flow(src, dst, size);
        [delivered, acked]
    }

    fn service(&mut self, src: NodeId, dst: NodeId, size: Bytes) -> [Span; 2] {
        let wire = self.wire(size);
        self.rates(src, dst).map(|links| links.total.tx_time(wire))
    }

    fn access(&mut self, src: NodeId, dst: NodeId) -> [Vec<(u32, Rate)>; 2] {
        Self::access(self, src, dst)
    }

    fn wire(&self, size: Bytes) -> Bytes {
        self.segmentation().message_wire_bytes(size)
    }

    fn packet(&mut self, src: NodeId, dst: NodeId, payload: Bytes) -> [Span; 2] {
        let wire = self.segmentation().last_wire_bytes(payload);
        self.rates(src, dst).map(|links| links.slowest.tx_time(wire))
    }

    fn burst(&self) -> Span {
        Self::burst(self)
    }
}

/// Returns the least time that `round` can take, from its first flow's start to its last delivery.
/// The first flow started at `began`; if left out, as early as it can. Flows of hosts that come
/// from an earlier phase may start then or later. It is the longest of
///
/// - its longest chain of flows that wait for each other, each alone in the network, with the time
///   that hosts compute between them. In a ring these are `2 (n - 1)` flows of one part each.
/// - for each host and direction: the sum of three times (the one-machine bound of scheduling).
///   They are the time until its first packet can be at its link, the time in which the link can
///   carry all, and the time from there to the end of the round.
/// - the same for each set of a host's links by which some destination is reached. It counts the
///   flows that can take only links of the set.
pub(crate) fn bound(
    graph: &Graph,
    round: &Round,
    network: &mut impl Network,
    began: Option<Time>,
) -> Span {
    let times = NodeTimes::new(graph, round, network, began);
    let flows = || round.nodes.clone().filter(|&node| !graph.is_computation(node));
    let start = flows().map(|node| times.head(node)).min().unwrap_or(Span::ZERO);
    let chain = flows().map(|node| times.head(node) + times.tail(node)).fold(Span::ZERO, Span::max);
    let mut links: BTreeMap<(NodeId, usize), Link> = BTreeMap::new();
    let mut cuts = Cuts::new(graph, flows(), network);
    for node in flows() {
        let flow = graph.node(node);
        let Flow { src, dst, size, .. } = *flow;
        let [alone, _] = times.solo_times[times.at(node)];
        let rest = times.tail(node).saturating_sub(alone);
        let busy = network.service(src, dst, size);
        // The first packet is sent ahead of the others, and the last one still has its whole path
        // before it. Either may be the short one.
        let (payload, before) = (network.payload(), size.packets_ceil(network.payload()) - 1);
        let last = Bytes::new(size.get() - before * payload.get());
        let ahead = network.isolated_times(src, dst, last)[0]
            .saturating_sub(network.packet(src, dst, last)[1]);
        let behind = network.isolated_times(src, dst, last)[0]
            .saturating_sub(network.packet(src, dst, last)[0]);
        let out = links.entry((src, 0)).or_default();
        out.add(times.head(node), busy[0], behind + rest);
        let wire = network.wire(size);
        cuts.add((src, dst), 0, wire, [times.head(node), behind + rest]);
        cuts.add((src, dst), 1, wire, [times.head(node) + ahead, rest]);
        let into = links.entry((dst, 1)).or_default();
        into.add(times.head(node) + ahead, busy[1], rest);
    }
    let busiest = links.values().map(Link::total).fold(cuts.longest(), Span::max);
    // Later idle times delay packets by as much as shapers compensate for.
    let longest = chain.max(busiest.saturating_sub(network.burst()));
    longest.saturating_sub(start)
}

/// Returns the start of the last flow of `graph` if all flows are alone in the network.
pub(crate) fn latest_start(graph: &Graph, network: &mut impl Network) -> Time {
    let mut starts: Vec<Time> = (0..graph.len()).map(|node| graph.node(node).arrival).collect();
    let mut latest = Time::ZERO;
    for node in graph.topological_order() {
        let start = starts[node as usize].saturating_add(graph.delay(node));
        let Flow { src, dst, size, .. } = *graph.node(node);
        latest = latest.max(start);
        let [delivered, completed] = match graph.is_computation(node) {
            true => [Span::ZERO; 2],
            false => network.isolated_times(src, dst, size),
        };
        for &to in graph.dependents(node) {
            let took = if graph.node(to).src == dst { delivered } else { completed };
            starts[to as usize] = starts[to as usize].max(start.saturating_add(took));
        }
    }
    latest
}

/// One direction of a host's link in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Time before the first flow can be there, and after the last one has been sent.
    first_last_min: Option<(Span, Span)>,
    busy: Span,
}

impl Link {
    fn add(&mut self, before: Span, busy: Span, after: Span) {
        self.busy += busy;
        self.first_last_min = Some(match self.first_last_min {
            None => (before, after),
            Some((least_before, least_after)) => (least_before.min(before), least_after.min(after)),
        });
    }

    fn total(&self) -> Span {
        self.first_last_min.map_or(Span::ZERO, |(before, after)| before + self.busy + after)
    }
}

/// Sets of a host's links by which destinations are reached, in one direction. A host all of whose
/// flows may take the same links has none.
#[derive(Debug, Default)]
struct Cuts {
    /// The ports of each pair of hosts, by direction.
    pairs: BTreeMap<(NodeId, NodeId), [Vec<u32>; 2]>,
    /// The sets of each host and direction.
    sets_of_host: BTreeMap<(NodeId, usize), Vec<LinkSet>>,
}

/// A set of links, with the flows that can take only these.
#[derive(Debug)]
struct LinkSet {
    ports: Vec<u32>,
    rate: Rate,
    link: Link,
}

impl Cuts {
    fn new(graph: &Graph, flows: impl Iterator<Item = u32>, network: &mut impl Network) -> Self {
        let mut cuts = Self::default();
        for node in flows {
            let Flow { src, dst, .. } = *graph.node(node);
            if cuts.pairs.contains_key(&(src, dst)) {
                continue;
            }
            let access = network.access(src, dst);
            for (host, direction) in [(src, 0), (dst, 1)] {
                let links = &access[direction];
                let ports: Vec<u32> = links.iter().map(|&(port, _)| port).collect();
                let sum = links.iter().map(|(_, rate)| rate.as_bps()).sum();
                let sets = cuts.sets_of_host.entry((host, direction)).or_default();
                if let Some(rate) = Rate::from_bps(sum)
                    && sets.iter().all(|set| set.ports != ports)
                {
                    sets.push(LinkSet { ports, rate, link: Link::default() });
                }
            }
            let ports = access.map(|links| links.into_iter().map(|(port, _)| port).collect());
            cuts.pairs.insert((src, dst), ports);
        }
        cuts
    }

    /// Adds a flow to the sets of a host, of the sender at 0 and of the receiver at 1.
    fn add(&mut self, pair: (NodeId, NodeId), direction: usize, wire: Bytes, about: [Span; 2]) {
        let ports = &self.pairs[&pair][direction];
        let host = if direction == 0 { pair.0 } else { pair.1 };
        let [before, after] = about;
        for set in self.sets_of_host.get_mut(&(host, direction)).into_iter().flatten() {
            if !ports.is_empty() && ports.iter().all(|port| set.ports.contains(port)) {
                set.link.add(before, set.rate.tx_time(wire), after);
            }
        }
    }

    fn longest(&self) -> Span {
        self.sets_of_host.values().flatten().map(|set| set.link.total()).fold(Span::ZERO, Span::max)
    }
}

/// Times before and after the starts of the nodes of a round, if all flows are alone in the
/// network.
struct NodeTimes {
    base: u32,
    solo_times: Vec<[Span; 2]>,
    heads: Vec<Span>,
    tails: Vec<Span>,
}

impl NodeTimes {
    /// Nodes of a round wait for nodes with lower numbers only.
    fn new(graph: &Graph, round: &Round, network: &mut impl Network, began: Option<Time>) -> Self {
        let (base, n) = (round.nodes.start, round.nodes.len());
        let (solo_times, zero) = (vec![[Span::ZERO; 2]; n], vec![Span::ZERO; n]);
        let mut times = Self { base, solo_times, heads: zero.clone(), tails: zero };
        let inside =
            |from: u32| graph.dependents(from).iter().filter(|to| round.nodes.contains(to));
        for node in round.nodes.clone() {
            let (flow, at) = (graph.node(node), times.at(node));
            times.heads[at] = times.heads[at].max(flow.arrival - Time::ZERO) + graph.delay(node);
            if !graph.is_computation(node) {
                times.solo_times[at] = network.isolated_times(flow.src, flow.dst, flow.size);
                let began = began.map_or(Span::ZERO, |began| began - Time::ZERO);
                times.heads[at] = times.heads[at].max(began);
            }
            for &to in inside(node) {
                assert!(to > node, "node {to} of a round waits for node {node}");
                let known = times.heads[at] + times.notification_time(graph, node, to);
                let at = times.at(to);
                times.heads[at] = times.heads[at].max(known);
            }
        }
        for node in round.nodes.clone().rev() {
            let at = times.at(node);
            let after = inside(node).map(|&to| {
                times.notification_time(graph, node, to) + graph.delay(to) + times.tail(to)
            });
            times.tails[at] = after.fold(times.solo_times[at][0], Span::max);
        }
        times
    }

    fn at(&self, node: u32) -> usize {
        (node - self.base) as usize
    }

    /// Returns the earliest time at which a node starts, after its computation.
    fn head(&self, node: u32) -> Span {
        self.heads[self.at(node)]
    }

    /// Returns the time from the start of a node to the end of the round.
    fn tail(&self, node: u32) -> Span {
        self.tails[self.at(node)]
    }

    /// Returns the time from the start of `from` until `to`, which waits for it, is notified of its
    /// end.
    fn notification_time(&self, graph: &Graph, from: u32, to: u32) -> Span {
        let [delivered, completed] = self.solo_times[self.at(from)];
        if graph.node(to).src == graph.node(from).dst { delivered } else { completed }
    }
}
