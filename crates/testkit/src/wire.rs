//! Hosts of any transport, and its arbiters, on a wire that loses and delays packets. It is no
//! simulator, so messages can be cancelled, held and refused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::registered::{Deployment, Network, Site};
use rampmeter_sim::Direction;
use rampmeter_types::fabric::Racks;
use rampmeter_types::packet::Marks;
use rampmeter_types::wire::Formats;
use rampmeter_types::{
    Bytes, Event, FabricFacts, Header, HostPolicy, Message, MsgId, NodeId, Observation, Packet,
    Pairs, PayloadRef, Priority, Protocol, Purpose, Rate, Rng, Span, Time, Transport,
};

use crate::idle::IdleTimes;
use crate::network::promises_bound;

/// Hosts on the wire. Arbiters' numbers follow theirs.
pub const N_HOSTS: u32 = 3;
const RATE: Rate = Rate::from_gbps(10);
const DELAY: Span = Span::from_us(2);

/// Returns the facts of the wire.
pub fn facts() -> FabricFacts {
    FabricFacts {
        n_hosts: N_HOSTS,
        access_rate: RATE,
        core_rate: None,
        data_rtt: DELAY * 2 + RATE.tx_time(Bytes::new(1_500)) * 2,
        control_rtt: DELAY * 2 + Span::from_ns(128),
        abort_timeout_min: Span::ZERO,
    }
}

/// A message of a host to one of the two others, and how long after its submission it is cancelled.
#[derive(Clone, Copy, Debug)]
pub struct PlannedMessage {
    pause: Span,
    src: u32,
    dst: u32,
    size: Bytes,
    cancelled: Option<Span>,
}

/// Messages, losses and cancellations of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    seed: u64,
    loss: f64,
    messages: Vec<PlannedMessage>,
}

/// Any messages, of which half are cancelled: before their first packet is sent, in flight, or
/// late.
pub fn plans() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![1u64..3_000, 1u64..40_000, 1u64..400_000];
    let cancelled = prop_oneof![
        3 => Just(None),
        1 => Just(Some(0)),
        1 => (0u64..10_000).prop_map(Some),
        1 => (0u64..600_000).prop_map(Some),
    ];
    let message = (0u64..60_000, 0..N_HOSTS, 1..N_HOSTS, size, cancelled);
    let message = message.prop_map(|(pause, src, to, size, cancelled)| PlannedMessage {
        pause: Span::from_ns(pause),
        src,
        dst: (src + to) % N_HOSTS,
        size: Bytes::new(size),
        cancelled: cancelled.map(Span::from_ns),
    });
    let messages = prop::collection::vec(message, 1..24);
    (any::<u64>(), prop_oneof![Just(0.0), 0.0..0.05], messages)
        .prop_map(|(seed, loss, messages)| Plan { seed, loss, messages })
}

enum Node<F: Transport> {
    Host(F::Host),
    Arbiter(F::Arbiter),
}

/// Does the same with the endpoint of a host and of an arbiter.
macro_rules! with {
    ($node:expr, $endpoint:ident => $what:expr) => {
        match $node {
            Node::Host($endpoint) => $what,
            Node::Arbiter($endpoint) => $what,
        }
    };
}

/// Behaviour that endpoints on the wire may have.
#[derive(Debug)]
pub struct TransportTraits<F: Transport> {
    /// True if messages may fail or be rejected in a network that loses packets. It is so if the
    /// transport promises a time within which they complete or fail.
    pub may_fail: bool,
    /// Packets that release the reservation of a message. Only they may be sent for a message that
    /// was cancelled.
    pub releases: fn(&F::Header) -> bool,
    /// Numbers of messages of which a host has state, as sender and as receiver.
    pub count: fn(&F::Host) -> (usize, usize),
}

impl<F: Transport> TransportTraits<F> {
    /// Creates the limits of most transports.
    pub fn new(count: fn(&F::Host) -> (usize, usize)) -> Self {
        Self { may_fail: false, releases: |_| false, count }
    }
}

impl<T: RegisteredTransport> TransportTraits<T> {
    /// Returns those that follow from the transport's description. Packets that release a
    /// reservation or end a flow are named "release", "reset" and "done".
    pub fn derive(config: &Arc<T::Config>) -> Self {
        let releases = |header: &T::Header| {
            let mut formats = T::Header::FORMATS.iter();
            formats.any(|format| {
                format.code == header.code() && ["release", "reset", "done"].contains(&format.name)
            })
        };
        let count = |host: &T::Host| host.message_counts().expect("transports count messages");
        Self { may_fail: promises_bound::<T>(config), releases, count }
    }
}

/// Returns a transport on the wire: its parameters, and how many arbiters it needs.
pub fn configure<T: RegisteredTransport>(keys: &T::Keys) -> (Arc<T::Config>, u32) {
    let facts = facts();
    let network = Network {
        switches: 1,
        rate_ratio: 1,
        ports: N_HOSTS,
        slow_link: None,
        is_narrow: false,
        rails: 1,
        slowest: RATE,
        fastest: RATE,
        slot_rate: RATE,
        core: RATE,
        pairs: Arc::new(Pairs::single_switch((0..N_HOSTS).map(|_| RATE))),
        racks: Racks {
            rack_of: vec![0; N_HOSTS as usize],
            uplink_bps: vec![0],
            downlink_bps: vec![0],
        },
        paths: None,
        wiring: Arc::default(),
        cut_through: None,
    };
    let site = Site { facts, deployment: Deployment::Network(network), lower: None };
    let config = T::configure(keys.clone(), &site).expect("presets fit the wire");
    (Arc::new(config), T::needs(keys, &facts).arbiters.len() as u32)
}

/// Hosts and arbiters, and the packets between them.
pub(crate) struct Net<F: Transport> {
    traits: TransportTraits<F>,
    pub(crate) now: Time,
    rng: Rng,
    loss: f64,
    nodes: Vec<Node<F>>,
    /// Time at which each node's link is free.
    free_at: Vec<Time>,
    /// Packets that are always lost.
    pub(crate) blocks: fn(&Packet<F::Header>) -> bool,
    /// Share of packets that are delayed at random.
    pub(crate) jitter: f64,
    /// Share of packets without payload that are delayed by up to `late_max`, at random.
    pub(crate) late: f64,
    /// The longest of these delays.
    pub(crate) late_max: Span,
    /// Additional delays of packets by number, counted from 1 in the order of departure.
    pub(crate) delays: BTreeMap<u64, Span>,
    /// Delays apply to packets without payload alone.
    pub(crate) delays_control: bool,
    /// Share of data packets whose payload is cut off.
    pub(crate) trimming: f64,
    /// Number of the packet whose payload is cut off, if it has one.
    pub(crate) trimmed: u64,
    arriving: BinaryHeap<Reverse<(Time, u64)>>,
    packets: BTreeMap<u64, Packet<F::Header>>,
    pub(crate) number: u64,
    submitted: u32,
    /// A receiver without memory for a message, and the message. `n_of_paused` counts packets that
    /// its sender has sent.
    paused: Option<(u32, MsgId)>,
    n_of_paused: u64,
    cancelled: BTreeSet<MsgId>,
    /// Time at which each message was delivered.
    pub(crate) delivered: BTreeMap<MsgId, Time>,
    /// Times at which hosts sent or received no data.
    pub(crate) idle: IdleTimes,
    pub(crate) completed: BTreeSet<MsgId>,
    pub(crate) failed: BTreeSet<MsgId>,
}

impl<F: Transport> Net<F> {
    pub(crate) fn new(
        (config, n_arbiters): &(Arc<F::Config>, u32),
        traits: TransportTraits<F>,
        seed: u64,
        loss: f64,
    ) -> Self {
        let rng = |node| Rng::new(seed, node, Purpose::Endpoint);
        let host = |n: u32| F::Host::new(config.clone(), NodeId::new(n), rng(n.into()), Time::ZERO);
        let arbiter = |n: u32| {
            F::arbiter(config.clone(), n - N_HOSTS, NodeId::new(n), rng(n.into()), Time::ZERO)
        };
        let n = N_HOSTS + n_arbiters;
        let nodes: Vec<_> = (0..n)
            .map(|n| if n < N_HOSTS { Node::Host(host(n)) } else { Node::Arbiter(arbiter(n)) })
            .collect();
        Self {
            traits,
            now: Time::ZERO,
            rng: Rng::new(seed, 0, Purpose::Fault),
            loss,
            blocks: |_| false,
            jitter: 0.1,
            late: 0.0,
            late_max: Span::ZERO,
            delays: BTreeMap::new(),
            delays_control: false,
            trimming: 0.0,
            trimmed: 0,
            free_at: vec![Time::ZERO; nodes.len()],
            nodes,
            arriving: BinaryHeap::new(),
            packets: BTreeMap::new(),
            number: 0,
            submitted: 0,
            paused: None,
            n_of_paused: 0,
            cancelled: BTreeSet::new(),
            delivered: BTreeMap::new(),
            idle: IdleTimes::new(N_HOSTS, facts().control_rtt * 2),
            completed: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }

    /// Numbers are those of all hosts together, from 1, so that they name senders as well. Packets
    /// about no message have 0.
    pub(crate) fn submit(&mut self, src: u32, dst: u32, size: Bytes) -> MsgId {
        self.submitted += 1;
        let id = MsgId::new(self.submitted * N_HOSTS + src);
        let message = Message::new(id, NodeId::new(dst), size);
        with!(&mut self.nodes[src as usize], e => e.submit(self.now, message));
        self.take_events(src as usize);
        id
    }

    fn cancel(&mut self, src: u32, msg: MsgId) {
        with!(&mut self.nodes[src as usize], e => e.cancel(self.now, msg));
        if !self.completed.contains(&msg) && !self.failed.contains(&msg) {
            self.cancelled.insert(msg);
        }
        self.take_events(src as usize);
    }

    fn take_events(&mut self, node: usize) {
        while let Some(event) = with!(&mut self.nodes[node], e => e.poll_event()) {
            match event {
                Event::Delivered { msg, .. } => {
                    assert!(self.delivered.insert(msg, self.now).is_none(), "{msg:?}");
                }
                Event::Abandoned { msg, .. } => {
                    let is_fine = self.cancelled.contains(&msg) || self.traits.may_fail;
                    assert!(is_fine, "{msg:?} was abandoned");
                }
                Event::Completed { msg } => {
                    assert!(!self.cancelled.contains(&msg), "{msg:?} was cancelled");
                    assert!(self.delivered.contains_key(&msg) && self.completed.insert(msg));
                }
                Event::Failed { msg } | Event::Rejected { msg } => {
                    assert!(self.traits.may_fail && !self.cancelled.contains(&msg), "{msg:?}");
                    assert!(!self.completed.contains(&msg) && self.failed.insert(msg), "{msg:?}");
                }
            }
        }
    }

    fn transmit(&mut self, node: usize) {
        let Some(packet) = with!(&mut self.nodes[node], e => e.poll_transmit(self.now)) else {
            self.free_at[node] = self.now + Span::from_ns(1);
            return;
        };
        let msg = packet.payload.msg;
        let is_senders = msg.get() % N_HOSTS == node as u32;
        let is_fine = !is_senders || (self.traits.releases)(&packet.header);
        assert!(is_fine || !self.cancelled.contains(&msg), "{:?}", packet.header);
        self.free_at[node] = self.now + RATE.tx_time(Bytes::new(packet.wire_bytes.into()));
        if packet.payload.len > 0 {
            self.idle.note_data(self.now, node, Direction::Sent);
        }
        self.n_of_paused +=
            u64::from(is_senders && self.paused.is_some_and(|(_, held)| held == msg));
        if self.rng.bernoulli(self.loss) || (self.blocks)(&packet) {
            return;
        }
        let late = if self.rng.bernoulli(self.jitter) { Span::from_ns(4_000) } else { Span::ZERO };
        self.number += 1;
        let may_delay = packet.payload.len == 0 || !self.delays_control;
        let delay = self.delays.get(&self.number).filter(|_| may_delay);
        let mut late = late + delay.copied().unwrap_or(Span::ZERO);
        if packet.payload.len == 0 && self.late > 0.0 && self.rng.bernoulli(self.late) {
            late +=
                Span::from_ps(self.rng.uniform_below(self.late_max.as_ps() as usize + 1) as u64);
        }
        let is_trimmed = self.trimming > 0.0 && self.rng.bernoulli(self.trimming);
        let is_trimmed = is_trimmed || self.trimmed == self.number;
        let packet = if is_trimmed { trim(packet) } else { packet };
        self.arriving.push(Reverse((self.free_at[node] + DELAY + late, self.number)));
        self.packets.insert(self.number, packet);
    }

    fn next(&self, node: usize) -> Time {
        let (has_packet, deadline) =
            with!(&self.nodes[node], e => (e.wants_transmit(), e.poll_timeout()));
        let sends = if has_packet { self.free_at[node].max(self.now) } else { Time::NEVER };
        sends.min(deadline)
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.arriving.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            let due = (0..self.nodes.len()).min_by_key(|&n| self.next(n)).expect("hosts");
            let next = self.next(due).min(arrival);
            if next > end {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
            if arrival <= self.now {
                let Reverse((_, number)) = self.arriving.pop().expect("one is due");
                let packet = self.packets.remove(&number).expect("it is in flight");
                self.deliver(&packet);
            } else if with!(&self.nodes[due], e => e.poll_timeout()) <= self.now {
                with!(&mut self.nodes[due], e => e.handle_timeout(self.now));
                self.take_events(due);
            } else {
                self.transmit(due);
            }
        }
    }

    /// Hands a packet to its node. A driver without memory for a message drops its packets, and
    /// calls `hold` each time.
    fn deliver(&mut self, packet: &Packet<F::Header>) {
        let (src, msg) = (packet.src, packet.payload.msg);
        let node = packet.dst.idx();
        if packet.payload.len > 0 {
            self.idle.note_data(self.now, node, Direction::Received);
        }
        let is_held = packet.payload.len > 0 && self.paused == Some((node as u32, msg));
        with!(&mut self.nodes[node], e => {
            if is_held && !e.touch_if_delivered(self.now, packet) {
                e.pause(self.now, src, msg);
            } else {
                e.handle_packet(self.now, packet);
            }
        });
        self.take_events(node);
    }

    /// Limits the messages that a peer may have in flight to the first host.
    pub(crate) fn limit_arriving(&mut self, most: u32) {
        with!(&mut self.nodes[0], e => e.limit_arriving(most));
    }

    /// The first host forgets a peer.
    pub(crate) fn forget_peer(&mut self, peer: NodeId) {
        with!(&mut self.nodes[0], e => e.forget_peer(self.now, peer));
    }

    /// Returns the messages that arrive at the first host, and how often it has refused one.
    pub(crate) fn at_first_host(&self) -> (usize, u64) {
        match &self.nodes[0] {
            Node::Host(host) => ((self.traits.count)(host).1, host.arriving_excess()),
            Node::Arbiter(_) => (0, 0),
        }
    }

    /// Returns true if the first host has rejected a message because it serves too many.
    pub(crate) fn rejects_messages(&self) -> bool {
        let mut requests_rejected = 0;
        let mut count = |name: &'static str, value: u64| {
            requests_rejected += if name == "requests_rejected" { value } else { 0 };
        };
        if let Node::Host(host) = &self.nodes[0] {
            host.counters(&mut count);
        }
        requests_rejected > 0
    }

    /// Returns the number of messages of which hosts have state.
    pub(crate) fn n_open_messages(&self) -> usize {
        let of = |node: &Node<F>| match node {
            Node::Host(host) => {
                let (sending, arriving) = (self.traits.count)(host);
                sending + arriving
            }
            Node::Arbiter(_) => 0,
        };
        self.nodes.iter().map(of).sum()
    }
}

/// Cuts the payload off, as a port without room does (NDP). Packets without payload stay as they
/// are.
fn trim<H: Header>(packet: Packet<H>) -> Packet<H> {
    if packet.payload.len == 0 {
        return packet;
    }
    let payload = PayloadRef { len: 0, ..packet.payload };
    let marks = packet.marks.union(Marks::TRIMMED);
    Packet { payload, marks, wire_bytes: 64, priority: Priority::HIGHEST, ..packet }
}

/// A message that is held is not requested for any time; the others are, meanwhile. It is delivered
/// after its release. Senders without an answer wait for less than `long`.
pub fn check_held_message<T: RegisteredTransport>(
    keys: &T::Keys,
    long: fn(&T::Config) -> Span,
    size: Bytes,
) {
    let on_wire = configure::<T>(keys);
    let long = long(&on_wire.0);
    let mut net = Net::<T>::new(&on_wire, TransportTraits::derive(&on_wire.0), 1, 0.0);
    let held = net.submit(0, 2, size);
    let src = NodeId::new(0);
    net.paused = Some((2, held));
    let other = net.submit(1, 2, size);
    net.run_until(Time::ZERO + long);
    assert!(!net.delivered.contains_key(&held) && net.completed.contains(&other));
    let sent = net.n_of_paused;
    net.run_until(net.now + long);
    assert!(!net.failed.contains(&held) && !net.delivered.contains_key(&held));
    // A sender that waits may send requests at intervals, but no data of the message.
    let n_probes = net.n_of_paused - sent;
    assert!(n_probes < 1_000, "{n_probes} packets to wait");
    let now = net.now;
    net.paused = None;
    with!(&mut net.nodes[2], e => e.resume(now, src, held));
    net.run_until(net.now + Span::from_us(1_000) + RATE.tx_time(size) * 2);
    assert!(net.completed.contains(&held));
    assert_eq!(net.n_open_messages(), 0);
}

/// Runs the plan. Of a cancelled message, only packets that its receiver answers or requests are
/// sent, and its sender reports no event of it. All others are delivered. At the end no host has
/// state of any message.
pub fn cancels_cleanly<F: Transport>(
    on_wire: &(Arc<F::Config>, u32),
    manners: TransportTraits<F>,
    plan: &Plan,
) {
    let mut net = Net::<F>::new(on_wire, manners, plan.seed, plan.loss);
    let mut cancels: BTreeSet<(Time, u32, MsgId)> = BTreeSet::new();
    let mut at = Time::ZERO;
    let mut to_submit = plan.messages.iter().peekable();
    loop {
        let submits_at = to_submit.peek().map_or(Time::NEVER, |m| at + m.pause);
        let cancels_at = cancels.first().map_or(Time::NEVER, |(at, ..)| *at);
        net.run_until(match submits_at.min(cancels_at) {
            Time::NEVER => break,
            next => next,
        });
        if cancels_at <= submits_at {
            let (_, src, msg) = cancels.pop_first().expect("one is due");
            net.cancel(src, msg);
        } else {
            let &PlannedMessage { src, dst, size, cancelled, .. } =
                to_submit.next().expect("one is due");
            at = submits_at;
            let msg = net.submit(src, dst, size);
            cancels.extend(cancelled.map(|after| (at + after, src, msg)));
        }
    }
    // Some endpoints detect an unresponsive peer only at the next message.
    for doublings in 0..24 {
        net.run_until(net.now + Span::from_us(100 << doublings));
        if net.n_open_messages() == 0 {
            break;
        }
        for (src, to) in (0..N_HOSTS).flat_map(|src| (1..N_HOSTS).map(move |to| (src, to))) {
            net.submit(src, (src + to) % N_HOSTS, Bytes::new(1));
        }
    }
    assert_eq!(net.n_open_messages(), 0);
    let is_quiet = |node: &Node<F>| with!(node, e => !e.wants_transmit());
    assert!(net.nodes.iter().all(is_quiet));
    let over = net.completed.len() + net.failed.len() + net.cancelled.len();
    assert_eq!(over, net.submitted as usize, "every message is over or was cancelled");
}
