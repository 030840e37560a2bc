//! Hosts of any family, and its arbiters, on a wire that loses and delays packets: no simulator, so
//! that messages can be cancelled.

#![allow(dead_code, reason = "each test program uses a part")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_core::{
    Bytes, Endpoint, Event, FabricFacts, Family, Message, MsgId, NodeId, Packet, Purpose, Rate,
    Rng, Span, Time,
};

pub(crate) const N_HOSTS: u32 = 3;
const RATE: Rate = Rate::from_gbps(10);
const DELAY: Span = Span::from_us(2);

/// The facts of the wire.
pub(crate) fn facts() -> FabricFacts {
    let mtu = RATE.tx_time(Bytes::new(1_500));
    let control_rtt = DELAY * 2 + Span::from_ns(128);
    FabricFacts { n_hosts: N_HOSTS, access_rate: RATE, data_rtt: DELAY * 2 + mtu * 2, control_rtt }
}

/// A message of a host to one of the two others, and how long after its submission it is cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pause: Span,
    src: u32,
    dst: u32,
    size: Bytes,
    cancelled: Option<Span>,
}

/// What a run does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    seed: u64,
    loss: f64,
    messages: Vec<Planned>,
}

/// Any messages, of which half are cancelled: before anything of them is sent, under way, or late.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![1u64..3_000, 1u64..40_000, 1u64..400_000];
    let cancelled = prop_oneof![
        3 => Just(None),
        1 => Just(Some(0)),
        1 => (0u64..10_000).prop_map(Some),
        1 => (0u64..600_000).prop_map(Some),
    ];
    let message = (0u64..60_000, 0..N_HOSTS, 1..N_HOSTS, size, cancelled);
    let message = message.prop_map(|(pause, src, to, size, cancelled)| Planned {
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

enum Node<F: Family> {
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

/// What is particular to a family.
pub(crate) struct Manners<F: Family> {
    /// The time after which receivers give up. Some notice by the next message that they hear of.
    pub(crate) forget: Span,
    /// Messages that a host knows of, sent and arriving.
    pub(crate) count: fn(&F::Host) -> (usize, usize),
    /// Whether a network that loses packets may make messages fail.
    pub(crate) may_fail: bool,
    /// Packets that give back what was reserved for a message.
    pub(crate) gives_back: fn(&F::Header) -> bool,
}

impl<F: Family> Manners<F> {
    /// Those of most.
    pub(crate) fn new(forget: Span, count: fn(&F::Host) -> (usize, usize)) -> Self {
        Self { forget, count, may_fail: false, gives_back: |_| false }
    }
}

struct Net<F: Family> {
    manners: Manners<F>,
    now: Time,
    rng: Rng,
    loss: f64,
    nodes: Vec<Node<F>>,
    /// When each node's link is free.
    free_at: Vec<Time>,
    arriving: BinaryHeap<Reverse<(Time, u64)>>,
    packets: BTreeMap<u64, Packet<F::Header>>,
    number: u64,
    submitted: u32,
    cancelled: BTreeSet<MsgId>,
    delivered: BTreeSet<MsgId>,
    completed: BTreeSet<MsgId>,
    failed: BTreeSet<MsgId>,
}

impl<F: Family> Net<F> {
    fn new(config: F::Config, n_arbiters: u32, manners: Manners<F>, plan: &Plan) -> Self {
        let config = Arc::new(config);
        let rng = |node| Rng::new(plan.seed, node, Purpose::Endpoint);
        let host = |n: u32| F::Host::new(config.clone(), NodeId::new(n), rng(n.into()), Time::ZERO);
        let arbiter =
            |n: u32| F::Arbiter::new(config.clone(), NodeId::new(n), rng(n.into()), Time::ZERO);
        let n = N_HOSTS + n_arbiters;
        let nodes: Vec<_> = (0..n)
            .map(|n| if n < N_HOSTS { Node::Host(host(n)) } else { Node::Arbiter(arbiter(n)) })
            .collect();
        Self {
            manners,
            now: Time::ZERO,
            rng: Rng::new(plan.seed, 0, Purpose::Fault),
            loss: plan.loss,
            free_at: vec![Time::ZERO; nodes.len()],
            nodes,
            arriving: BinaryHeap::new(),
            packets: BTreeMap::new(),
            number: 0,
            submitted: 0,
            cancelled: BTreeSet::new(),
            delivered: BTreeSet::new(),
            completed: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }

    /// Numbers are those of all hosts together, from 1, so that they name senders as well: what
    /// is about no message has 0.
    fn submit(&mut self, src: u32, dst: u32, size: Bytes) -> MsgId {
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
                Event::Delivered { msg, .. } => assert!(self.delivered.insert(msg), "{msg:?}"),
                Event::Abandoned { msg, .. } => {
                    let is_fine = self.cancelled.contains(&msg) || self.manners.may_fail;
                    assert!(is_fine, "{msg:?} was abandoned");
                }
                Event::Completed { msg } => {
                    assert!(!self.cancelled.contains(&msg), "{msg:?} was cancelled");
                    assert!(self.delivered.contains(&msg) && self.completed.insert(msg));
                }
                Event::Failed { msg } | Event::Rejected { msg } => {
                    assert!(self.manners.may_fail && !self.cancelled.contains(&msg), "{msg:?}");
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
        let is_fine = !is_senders || (self.manners.gives_back)(&packet.header);
        assert!(is_fine || !self.cancelled.contains(&msg), "{:?}", packet.header);
        self.free_at[node] = self.now + RATE.tx_time(Bytes::new(packet.wire_bytes.into()));
        if self.rng.chance(self.loss) {
            return;
        }
        let late = if self.rng.chance(0.1) { Span::from_ns(4_000) } else { Span::ZERO };
        self.number += 1;
        self.arriving.push(Reverse((self.free_at[node] + DELAY + late, self.number)));
        self.packets.insert(self.number, packet);
    }

    fn next(&self, node: usize) -> Time {
        let (wants, deadline) =
            with!(&self.nodes[node], e => (e.wants_transmit(), e.poll_timeout()));
        let sends = if wants { self.free_at[node].max(self.now) } else { Time::NEVER };
        sends.min(deadline)
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.arriving.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            let due = (0..self.nodes.len()).min_by_key(|&n| self.next(n)).unwrap();
            let next = self.next(due).min(arrival);
            if next > end {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
            if arrival <= self.now {
                let Reverse((_, number)) = self.arriving.pop().unwrap();
                let packet = self.packets.remove(&number).unwrap();
                let node = packet.dst.idx();
                with!(&mut self.nodes[node], e => e.handle_packet(self.now, &packet));
                self.take_events(node);
            } else if with!(&self.nodes[due], e => e.poll_timeout()) <= self.now {
                with!(&mut self.nodes[due], e => e.handle_timeout(self.now));
                self.take_events(due);
            } else {
                self.transmit(due);
            }
        }
    }

    /// Messages that hosts know of.
    fn left(&self) -> usize {
        let of = |node: &Node<F>| match node {
            Node::Host(host) => {
                let (sending, arriving) = (self.manners.count)(host);
                sending + arriving
            }
            Node::Arbiter(_) => 0,
        };
        self.nodes.iter().map(of).sum()
    }
}

/// A message that is held back is not asked for, however long that is; the others are, meanwhile.
/// When it is released it is delivered.
pub(crate) fn holds_back<F: Family>(config: F::Config, manners: Manners<F>, size: Bytes) {
    let plan = Plan { seed: 1, loss: 0.0, messages: Vec::new() };
    let mut net = Net::<F>::new(config, 0, manners, &plan);
    let held = net.submit(0, 2, size);
    let src = NodeId::new(0);
    with!(&mut net.nodes[2], e => e.hold(Time::ZERO, src, held));
    let other = net.submit(1, 2, size);
    let long = net.manners.forget * 5;
    net.run_until(Time::ZERO + long);
    assert!(!net.delivered.contains(&held) && net.completed.contains(&other));
    let sent = net.number;
    net.run_until(net.now + long);
    assert!(!net.failed.contains(&held) && !net.delivered.contains(&held));
    // A sender that waits may ask now and then, but sends nothing of the message.
    let asked = net.number - sent;
    let packets = size.get() / 1_460;
    assert!(asked < packets * 10, "{asked} packets to wait for {packets}");
    let now = net.now;
    with!(&mut net.nodes[2], e => e.release(now, src, held));
    net.run_until(net.now + Span::from_us(1_000));
    assert!(net.completed.contains(&held));
    assert_eq!(net.left(), 0);
}

/// Does what the plan says. Nothing more is sent of a message that is cancelled but what its
/// receiver still answers or asks for, and nothing is said of it to its sender; all others are
/// delivered; and in the end no host knows of any message.
pub(crate) fn cancels_cleanly<F: Family>(
    config: F::Config,
    n_arbiters: u32,
    manners: Manners<F>,
    plan: &Plan,
) {
    let mut net = Net::<F>::new(config, n_arbiters, manners, plan);
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
            let (_, src, msg) = cancels.pop_first().unwrap();
            net.cancel(src, msg);
        } else {
            let &Planned { src, dst, size, cancelled, .. } = to_submit.next().unwrap();
            at = submits_at;
            let msg = net.submit(src, dst, size);
            cancels.extend(cancelled.map(|after| (at + after, src, msg)));
        }
    }
    for _ in 0..100 {
        net.run_until(net.now + net.manners.forget * 2);
        if net.left() == 0 {
            break;
        }
        for (src, to) in (0..N_HOSTS).flat_map(|src| (1..N_HOSTS).map(move |to| (src, to))) {
            net.submit(src, (src + to) % N_HOSTS, Bytes::new(1));
        }
    }
    assert_eq!(net.left(), 0);
    let is_quiet = |node: &Node<F>| with!(node, e => !e.wants_transmit());
    assert!(net.nodes.iter().all(is_quiet));
    let over = net.completed.len() + net.failed.len() + net.cancelled.len();
    assert_eq!(over, net.submitted as usize, "every message is over or was cancelled");
}
