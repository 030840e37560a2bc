//! A pod to the picosecond: switches without memory, links that report when two packets collide on
//! them, clocks that drift. It has no notion of slots.

mod drive;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rampmeter_types::SourceRoute;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Event, FabricFacts, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rate, Receipt,
    Rng, Span, Time,
};

use crate::fastpod::topology::{Pod, PodHost, Pods};
use crate::fastpod::wire::FastpodHeader;
use crate::fastpod::{Fastpod, FastpodArbiter, FastpodConfig, FastpodHost};

pub(super) const RATE: Rate = Rate::from_gbps(100);
pub(super) const SWITCH: Span = Span::from_ns(250);
pub(super) const HOST: Span = Span::from_ns(100);
pub(super) const HEADER: Bytes = Bytes::new(64);
pub(super) const CABLE: Span = Span::from_ns(1_000);

/// `racks` racks of `per_rack` hosts below as many aggregation switches. Cables of hosts and
/// arbiters are longer by up to `spread`.
pub(super) fn pod(racks: u16, per_rack: u16, arbiters: u16, spread: Span, rng: &mut Rng) -> Pod {
    let mut cable = || CABLE + Span::from_ps(rng.uniform_below(spread.as_ps() as usize + 1) as u64);
    let place = |n: u16| (n / per_rack, n % per_rack);
    let host = |n| {
        let (rack, index) = place(n);
        PodHost { rack, index, port: index, propagation: cable() }
    };
    let hosts = (0..racks * per_rack).map(host).collect();
    let of_racks = |first: u16, n: u16| vec![(first..first + n).collect(); racks.into()];
    Pod {
        rate: RATE,
        header: HEADER,
        switch_latency: SWITCH,
        host_latency: HOST,
        hosts,
        trunk_propagation: (CABLE, CABLE),
        arbiter_propagation: (0..racks).map(|_| (0..arbiters).map(|_| cable()).collect()).collect(),
        ports_to_agg: of_racks(per_rack, per_rack),
        ports_to_rack: vec![(0..racks).collect(); per_rack.into()],
        ports_to_arbiter: of_racks(2 * per_rack, arbiters),
        first_host: 0,
        ports_to_core: Vec::new(),
        agg_arbiter_propagation: Vec::new(),
        agg_ports_to_arbiter: Vec::new(),
    }
}

pub(super) fn fastpod(config: FastpodConfig, pod: Option<Pod>, n_hosts: u32) -> Arc<Fastpod> {
    let facts = FabricFacts {
        n_hosts,
        access_rate: RATE,
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    Arc::new(config.derive(&facts, pod.map(Pods::from)).unwrap())
}

type P = Packet<FastpodHeader>;

/// Start of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Port {
    Node(u32, u16),
    Rack(u16, u16),
    Agg(u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelEvent {
    Submit(usize),
    Timer(u32),
    Idle(u32),
    /// The head of a packet is at the output of a switch.
    AtRack(u16, u64),
    AtAgg(u16, u64),
    Deliver(u32, u64),
    Kill(u32),
    Restart(u32),
}

#[derive(Clone, Debug)]
enum Node {
    Host(Box<FastpodHost>),
    Arbiter(Box<FastpodArbiter>),
    Dead,
}

macro_rules! with {
    ($node:expr, $e:ident => $do:expr, $dead:expr) => {
        match $node {
            Node::Host($e) => $do,
            Node::Arbiter($e) => $do,
            Node::Dead => $dead,
        }
    };
}

/// A pod at work.
#[derive(Clone, Debug)]
pub(super) struct Run {
    fastpod: Arc<Fastpod>,
    pod: Option<Pod>,
    now: Time,
    nodes: Vec<Node>,
    /// Offset of each clock, and its drift in parts per 10^9.
    pub(super) clocks: Vec<(u64, i64)>,
    timers: Vec<Time>,
    events: BinaryHeap<Reverse<(Time, u32, u64, ModelEvent)>>,
    n_events: u64,
    packets: BTreeMap<u64, P>,
    /// Packets on links: until when, and which.
    links: BTreeMap<Port, (Time, u64)>,
    cut: BTreeSet<u64>,
    pub(super) messages: Vec<(Time, Message, u32)>,
    /// Packets other than unscheduled ones that met another.
    pub(super) violations: Vec<(Time, Port)>,
    pub(super) dropped_unscheduled: u64,
    pub(super) delivered: BTreeMap<MsgId, Time>,
    pub(super) completed: BTreeMap<MsgId, Time>,
    pub(super) failed: BTreeSet<MsgId>,
    pub(super) fresh: BTreeMap<MsgId, u64>,
    pub(super) controls: u64,
    /// Links that are broken: from when until when.
    pub(super) broken: Vec<(Port, Time, Time)>,
    /// Loss rate of networks without a pod.
    pub(super) loss: f64,
    rng: Rng,
}

impl Run {
    pub(super) fn new(fastpod: &Arc<Fastpod>, seed: u64) -> Self {
        let n = fastpod.n_hosts + fastpod.config.arbiters;
        let mut run = Self {
            fastpod: Arc::clone(fastpod),
            pod: fastpod.pods.as_ref().map(|pods| pods.pods[0].clone()),
            now: Time::ZERO,
            nodes: Vec::new(),
            clocks: vec![(0, 0); n as usize],
            timers: vec![Time::NEVER; n as usize],
            events: BinaryHeap::new(),
            n_events: 0,
            packets: BTreeMap::new(),
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            messages: Vec::new(),
            violations: Vec::new(),
            dropped_unscheduled: 0,
            delivered: BTreeMap::new(),
            completed: BTreeMap::new(),
            failed: BTreeSet::new(),
            fresh: BTreeMap::new(),
            controls: 0,
            broken: Vec::new(),
            loss: 0.0,
            rng: Rng::new(seed, 1_000, Purpose::Test),
        };
        run.nodes = (0..n).map(|node| run.node(node)).collect();
        run
    }

    fn node(&self, node: u32) -> Node {
        let rng = Rng::new(7, node.into(), Purpose::Endpoint);
        let (id, now) = (NodeId::new(node), self.local(node));
        match node < self.fastpod.n_hosts {
            true => Node::Host(FastpodHost::new(Arc::clone(&self.fastpod), id, rng, now).into()),
            false => {
                Node::Arbiter(FastpodArbiter::new(Arc::clone(&self.fastpod), id, rng, now).into())
            }
        }
    }

    /// Adds an event. Of packets at one instant that of the lowest sender is first, so that runs
    /// with other events next to them are alike.
    fn push(&mut self, at: Time, event: ModelEvent) {
        self.n_events += 1;
        let order = match event {
            ModelEvent::AtRack(_, id) | ModelEvent::AtAgg(_, id) | ModelEvent::Deliver(_, id) => {
                self.packets.get(&id).map_or(0, |packet| packet.src.get())
            }
            _ => 0,
        };
        self.events.push(Reverse((at, order, self.n_events, event)));
    }

    fn local(&self, node: u32) -> Time {
        self.local_at(node, self.now)
    }

    fn local_at(&self, node: u32, at: Time) -> Time {
        let (offset, ppb) = self.clocks[node as usize];
        let drift = (i128::from(at.as_ps()) * i128::from(ppb)).div_euclid(1_000_000_000);
        Time::from_ps((i128::from(at.as_ps() + offset) + drift) as u64)
    }

    /// Returns the first instant at which a clock reads `local` or later.
    fn global(&self, node: u32, local: Time) -> Time {
        if local == Time::NEVER || self.clocks[node as usize] == (0, 0) {
            return local;
        }
        let (offset, ppb) = self.clocks[node as usize];
        let elapsed = i128::from(local.as_ps()) - i128::from(offset);
        let guess = elapsed.max(0) * 1_000_000_000 / (1_000_000_000 + i128::from(ppb));
        let mut at = Time::from_ps(guess.saturating_sub(2) as u64);
        while self.local_at(node, at) < local {
            at += Span::from_ps(1);
        }
        at
    }

    /// Runs until `end`.
    pub(super) fn run(&mut self, end: Time) {
        self.start_all();
        self.run_to(end, |_, _| false);
    }

    /// Starts all nodes.
    pub(super) fn start_all(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.after(node);
        }
    }

    /// Runs until `end`, or until an event for which `stops` holds, which [`Run::step`] handles.
    pub(super) fn run_to(&mut self, end: Time, stops: impl Fn(&Self, ModelEvent) -> bool) {
        while let Some(what) = self.next(end)
            && !stops(self, what)
        {
            self.step();
        }
    }

    fn handle(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Submit(number) => {
                let (_, message, src) = self.messages[number];
                let now = self.local(src);
                with!(&mut self.nodes[src as usize], e => e.submit(now, message), ());
                self.after(src);
            }
            ModelEvent::Timer(node) => {
                if self.timers[node as usize] == self.now {
                    self.timers[node as usize] = Time::NEVER;
                    let now = self.local(node);
                    with!(&mut self.nodes[node as usize], e => e.handle_timeout(now), ());
                    self.after(node);
                }
            }
            ModelEvent::Idle(node) => self.after(node),
            ModelEvent::AtRack(rack, id) => self.at_rack(rack, id),
            ModelEvent::AtAgg(agg, id) => {
                let (port, delay) = (self.take_port(id), CABLE);
                self.start(Port::Agg(agg, port), id, delay, ModelEvent::AtRack(port, id));
            }
            ModelEvent::Deliver(node, id) => self.deliver(node, id),
            ModelEvent::Kill(node) => {
                self.nodes[node as usize] = Node::Dead;
                self.timers[node as usize] = Time::NEVER;
            }
            ModelEvent::Restart(node) => {
                self.nodes[node as usize] = self.node(node);
                self.after(node);
            }
        }
    }

    fn deliver(&mut self, node: u32, id: u64) {
        if self.cut.remove(&id) {
            self.packets.remove(&id);
            return;
        }
        let packet = self.packets.remove(&id).expect("it is in flight");
        assert_eq!(packet.dst.get(), node, "{packet:?} is at another end");
        let now = self.local(node);
        let to = &mut self.nodes[node as usize];
        let receipt = with!(to, e => e.handle_packet(now, &packet), Receipt::Ignored);
        if receipt == Receipt::Fresh {
            *self.fresh.entry(packet.payload.msg).or_default() += u64::from(packet.payload.len);
        }
        self.after(node);
    }

    fn take_port(&mut self, id: u64) -> u16 {
        let packet = self.packets.get_mut(&id).expect("it is in flight");
        assert!(packet.marks.contains(Marks::SOURCE_ROUTED), "{packet:?} has no route");
        let (port, rest) = SourceRoute::split(packet.path);
        packet.path = rest;
        port
    }

    fn at_rack(&mut self, rack: u16, id: u64) {
        let pod = self.pod.clone().expect("racks are of pods");
        let port = self.take_port(id);
        let number = |to: &Vec<Vec<u16>>| to[usize::from(rack)].iter().position(|&p| p == port);
        let is_host = |host: &PodHost| host.rack == rack && host.port == port;
        if let Some(agg) = number(&pod.ports_to_agg) {
            self.start(Port::Rack(rack, port), id, CABLE, ModelEvent::AtAgg(agg as u16, id));
        } else if let Some(arbiter) = number(&pod.ports_to_arbiter) {
            let delay = pod.arbiter_propagation[usize::from(rack)][arbiter];
            let to = ModelEvent::Deliver(self.fastpod.n_hosts + arbiter as u32, id);
            self.start(Port::Rack(rack, port), id, delay, to);
        } else {
            let host = pod.hosts.iter().position(is_host).expect("a port of the rack");
            let to = ModelEvent::Deliver(host as u32, id);
            self.start(Port::Rack(rack, port), id, pod.hosts[host].propagation, to);
        }
    }

    /// A packet starts on a link, unless another is on it.
    fn start(&mut self, port: Port, id: u64, delay: Span, to: ModelEvent) {
        if self.cut.contains(&id) {
            self.cut.remove(&id);
            self.packets.remove(&id);
            return;
        }
        let is_broken = |&(of, from, until): &(Port, Time, Time)| {
            of == port && (from..until).contains(&self.now)
        };
        if self.broken.iter().any(is_broken) {
            self.packets.remove(&id);
            return;
        }
        let is_unscheduled = |p: &P| p.marks.contains(Marks::UNSCHEDULED);
        let packet = self.packets[&id];
        let occupant = self.links.get(&port).filter(|(until, _)| *until > self.now);
        if let Some(&(_, other)) = occupant.filter(|(_, other)| !self.cut.contains(other)) {
            let is_droppable = self.packets.get(&other).is_some_and(is_unscheduled);
            if is_unscheduled(&packet) {
                self.dropped_unscheduled += 1;
                self.packets.remove(&id);
                return;
            } else if is_droppable {
                self.dropped_unscheduled += 1;
                self.cut.insert(other);
            } else {
                self.violations.push((self.now, port));
            }
        }
        let tx = RATE.tx_time(Bytes::new(packet.wire_bytes.into()));
        self.links.insert(port, (self.now + tx, id));
        let at = match to {
            ModelEvent::Deliver(..) => self.now + tx + delay + HOST,
            _ => self.now + RATE.tx_time(HEADER).min(tx) + delay + SWITCH,
        };
        self.push(at, to);
    }

    /// Takes all outputs of a node.
    fn after(&mut self, node: u32) {
        while let Some(event) = with!(&mut self.nodes[node as usize], e => e.poll_event(), None) {
            self.on_event(event);
        }
        let is_host = node < self.fastpod.n_hosts;
        while with!(&self.nodes[node as usize], e => e.wants_transmit(), false) {
            let until = self.links.get(&Port::Node(node, 0)).map_or(Time::ZERO, |link| link.0);
            if is_host && until > self.now {
                self.push(until, ModelEvent::Idle(node));
                break;
            }
            let now = self.local(node);
            let packet = with!(&mut self.nodes[node as usize], e => e.poll_transmit(now), None);
            let Some(packet) = packet else { break };
            self.inject(node, packet);
        }
        let due = with!(&self.nodes[node as usize], e => e.poll_timeout(), Time::NEVER);
        let due = self.global(node, due);
        if due < Time::NEVER {
            let due = due.max(self.now);
            if due != self.timers[node as usize] {
                self.timers[node as usize] = due;
                self.push(due, ModelEvent::Timer(node));
            }
        } else {
            self.timers[node as usize] = Time::NEVER;
        }
    }

    fn inject(&mut self, node: u32, packet: P) {
        self.n_events += 1;
        let id = self.n_events;
        self.controls += u64::from(packet.payload.len == 0);
        self.packets.insert(id, packet);
        let Some(pod) = self.pod.clone() else {
            let tx = RATE.tx_time(Bytes::new(packet.wire_bytes.into()));
            self.links.insert(Port::Node(node, 0), (self.now + tx, id));
            if self.rng.bernoulli(self.loss) {
                self.packets.remove(&id);
                return;
            }
            let late = Span::from_ns(self.rng.uniform_below(2_000) as u64);
            let at = self.now + tx + Span::from_us(4) + late;
            return self.push(at, ModelEvent::Deliver(packet.dst.get(), id));
        };
        let (rack, delay, link) = match pod.hosts.get(packet.src.idx()) {
            Some(host) => (host.rack, host.propagation, 0),
            None => {
                let rack = self.take_port(id);
                let arbiter = (node - self.fastpod.n_hosts) as usize;
                (rack, pod.arbiter_propagation[usize::from(rack)][arbiter], rack)
            }
        };
        self.start(Port::Node(node, link), id, delay, ModelEvent::AtRack(rack, id));
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Delivered { msg, .. } => {
                assert!(self.delivered.insert(msg, self.now).is_none(), "{msg:?} came twice");
                let size = self.messages[msg.idx()].1.size.get();
                assert_eq!(self.fresh.get(&msg), Some(&size), "bytes of {msg:?}");
            }
            Event::Completed { msg } => {
                assert!(self.delivered.contains_key(&msg), "{msg:?} has not arrived");
                assert!(self.completed.insert(msg, self.now).is_none(), "{msg:?} ended twice");
            }
            Event::Failed { msg } => assert!(self.failed.insert(msg), "{msg:?} failed twice"),
            Event::Abandoned { .. } | Event::Rejected { .. } => panic!("{event:?}"),
        }
    }
}
