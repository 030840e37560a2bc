//! Nodes in memory, on simulated time, of which one or many have messages at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::registered::{Deployment, Site};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{Node, NodeConfig, SettingDigests};
use rampmeter_types::fabric::Spray;
use rampmeter_types::{Bytes, ClockOrigin, Endpoint, FabricFacts, NodeId, Rate, Span, Time};
use rustix::time::{ClockId, clock_gettime};

use crate::net::{DELAY, Link, Links, MessageOutcomes, Pings, RATE, Source};

const PEERS: u32 = 16;
/// Time after which messages that have not ended count as lost.
const LIMIT: Span = Span::from_us(60_000_000);
/// Simulated processing time of a node per datagram, in the shapes `third` and `two`.
const PER_DATAGRAM: Span = Span::from_us(2);
const TEST_TIMEOUT: Span = Span::from_us(10_000_000);

/// Senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrafficPattern {
    Out,
    In,
    One,
    Third,
    /// As `Third`, with two programs.
    Two,
    /// As `Two`, between slow nodes.
    Slow,
    /// As `One`, with messages of 20 KB.
    Long,
}

impl TrafficPattern {
    /// Returns true if a third node is pinged meanwhile, and nodes take time for datagrams.
    pub(crate) fn has_pings(self) -> bool {
        self.per_datagram() > Span::ZERO
    }

    /// Returns the simulated processing time of a node per datagram.
    fn per_datagram(self) -> Span {
        match self {
            Self::Out | Self::In | Self::One | Self::Long => Span::ZERO,
            Self::Third | Self::Two => PER_DATAGRAM,
            Self::Slow => PER_DATAGRAM * 15,
        }
    }

    fn destinations(self, node: u32) -> Vec<NodeId> {
        match (self, node) {
            (TrafficPattern::Out, 0) => (1..=PEERS).map(NodeId::new).collect(),
            (TrafficPattern::In, 1..=PEERS) => vec![NodeId::new(0)],
            (
                TrafficPattern::One
                | TrafficPattern::Third
                | TrafficPattern::Two
                | TrafficPattern::Slow
                | TrafficPattern::Long,
                0,
            ) => {
                vec![NodeId::new(1)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the applications of a node.
    fn source(
        self,
        node: u32,
        messages: u64,
        links: &Rc<RefCell<Links>>,
        fates: &Rc<RefCell<MessageOutcomes>>,
    ) -> Source {
        let to = self.destinations(node);
        let remaining = match self {
            _ if to.is_empty() => 0,
            TrafficPattern::In => messages / u64::from(PEERS),
            _ => messages,
        };
        let pings = Pings { to: NodeId::new(2), at: Time::ZERO, is_in_flight: false };
        let pings = (self.has_pings() && node == 0).then_some(pings);
        let (links, fates) = (Rc::clone(links), Rc::clone(fates));
        let programs =
            if matches!(self, TrafficPattern::Two | TrafficPattern::Slow) { 2 } else { 1 };
        let size = if self == TrafficPattern::Long { 20_000 } else { 200 };
        Source { to, remaining, size, programs, pings, shift: Span::ZERO, links, fates }
    }
}

/// A node with any endpoint.
trait Turns {
    fn poll(&mut self, now: Time) -> Time;
    fn excess(&self) -> u64;
}

/// A node whose clock is ahead of the time of the simulation.
struct ShiftedNode<E: Endpoint> {
    node: Node<E, Link, Source>,
    shift: Span,
}

impl<E: Endpoint> Turns for ShiftedNode<E> {
    fn poll(&mut self, now: Time) -> Time {
        let next = self.node.poll(now + self.shift).expect("no datapath fails");
        match next {
            Time::NEVER => Time::NEVER,
            next => Time::ZERO + next.saturating_since(Time::ZERO + self.shift),
        }
    }

    fn excess(&self) -> u64 {
        self.node.stats().message_limit_packets
    }
}

fn node<E: Endpoint + 'static>(
    node: NodeId,
    n: usize,
    protocol: &Arc<E::Config>,
    rate: Rate,
    links: &Rc<RefCell<Links>>,
    source: Source,
    (shift, origin): (Span, ClockOrigin),
) -> Box<dyn Turns> {
    let config = NodeConfig {
        node,
        transport: TransportId(1),
        incarnation: Incarnation::new(1 + node.get()),
        rate,
        burst: Bytes::new(12_000),
        spray: Spray::Random,
        run: 1,
        coalescing: Span::ZERO,
        busy_poll: Span::ZERO,
        agreement: SettingDigests::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        connect_timeout: LIMIT,
        peers: vec![Some(None); n],
        seed: 1,
    };
    let (link, now) = (Link(Rc::clone(links), node, shift), Time::ZERO + shift);
    let mut node = Node::<E, _, _>::new(config, Arc::clone(protocol), link, source, now);
    node.set_clock_origin(now, origin);
    Box::new(ShiftedNode { node, shift })
}

/// Result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) fates: MessageOutcomes,
    pub(crate) excess: u64,
    pub(crate) dropped: u64,
    pub(crate) ended: Time,
    pub(crate) processor: Span,
}

/// Submits the messages and runs until all have ended.
pub(crate) fn run<T: RegisteredTransport>(shape: TrafficPattern, messages: u64) -> Outcome {
    let mut bed = Testbed::new::<T>(shape, messages);
    let before = processor_time();
    let each = shape.per_datagram();
    let is_over = |fates: &MessageOutcomes| fates.completed + fates.failed == messages;
    let ended = bed.run_until(Time::ZERO + LIMIT, each, is_over);
    let processor = processor_time() - before;
    let excess = bed.nodes.iter().map(|node| node.excess()).sum();
    let (fates, dropped) = (bed.fates.borrow().clone(), bed.links.borrow().dropped);
    Outcome { fates, excess, dropped, ended, processor }
}

/// Hosts, and the arbiters of their transport.
pub(crate) struct Testbed {
    nodes: Vec<Box<dyn Turns>>,
    next: Vec<Time>,
    free: Vec<Time>,
    pub(crate) links: Rc<RefCell<Links>>,
    pub(crate) fates: Rc<RefCell<MessageOutcomes>>,
}

impl Testbed {
    pub(crate) fn new<T: RegisteredTransport>(shape: TrafficPattern, messages: u64) -> Self {
        Self::with_clocks::<T>(shape, messages, |_| (Span::ZERO, ClockOrigin::default()))
    }

    /// Creates nodes whose clocks are ahead of the simulation's time, with their origins.
    pub(crate) fn with_clocks<T: RegisteredTransport>(
        shape: TrafficPattern,
        messages: u64,
        clock: impl Fn(u32) -> (Span, ClockOrigin),
    ) -> Self {
        let rate = RATE;
        let (n_hosts, control_rtt) = (1 + PEERS, DELAY * 2);
        let data_rtt = control_rtt + rate.tx_time(Bytes::new(1_500)) * 4;
        let facts = FabricFacts {
            n_hosts,
            access_rate: rate,
            core_rate: None,
            data_rtt,
            control_rtt,
            // As between real hosts by default, if nodes are slow or their programs end.
            abort_timeout_min: match shape {
                TrafficPattern::Slow | TrafficPattern::Long => TEST_TIMEOUT,
                _ => Span::ZERO,
            },
        };
        let keys = T::Keys::default();
        let n = n_hosts as usize + T::needs(&keys, &facts).arbiters.len();
        let deployment = Deployment::Hosts(PacketSizes::new(1_360, 100));
        let config = T::configure(keys, &Site { facts, deployment, lower: None });
        let config = Arc::new(config.expect("a transport of hosts"));
        let links = Rc::new(RefCell::new(Links::new(n)));
        let fates = Rc::new(RefCell::new(MessageOutcomes::default()));
        let make = |number: u32| {
            let clock = clock(number);
            let source =
                Source { shift: clock.0, ..shape.source(number, messages, &links, &fates) };
            let id = NodeId::new(number);
            match number < n_hosts {
                true => node::<T::Host>(id, n, &config, rate, &links, source, clock),
                false => node::<T::Arbiter>(id, n, &config, rate, &links, source, clock),
            }
        };
        let nodes = (0..n as u32).map(make).collect();
        Self { nodes, next: vec![Time::ZERO; n], free: vec![Time::ZERO; n], links, fates }
    }

    /// Runs until `end`, or until `is_over`. A node takes `each` per datagram. Returns the time at
    /// the end.
    pub(crate) fn run_until(
        &mut self,
        end: Time,
        each: Span,
        is_over: impl Fn(&MessageOutcomes) -> bool,
    ) -> Time {
        let Self { nodes, next, free, links, fates } = self;
        loop {
            let due = |node: usize| next[node].min(links.borrow().next_to(node)).max(free[node]);
            let (at, node) = (0..nodes.len()).map(|node| (due(node), node)).min().expect("nodes");
            let now = links.borrow().now.max(at);
            if is_over(&fates.borrow()) || now > end {
                return links.borrow().now;
            }
            let handled = links.borrow().handled[node];
            links.borrow_mut().now = now;
            next[node] = nodes[node].poll(now);
            free[node] = now + each * (links.borrow().handled[node] - handled);
        }
    }
}

pub(crate) fn processor_time() -> Time {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Time::from_ps((time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) * 1_000)
}
