//! What tests of nodes share: transports set up for a slow network, messages that tell what they
//! are, and nodes in memory on simulated time.

#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod feed;
pub(crate) mod live;
pub(crate) mod ports;

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_core::{Bytes, Endpoint, FabricFacts, NodeId, Rate, Rng, Span, Time};
use rampmeter_proto::cosy::config::PathFacts;
use rampmeter_proto::cosy::{Cosy, CosyConfig};
use rampmeter_proto::dcpim::{Dcpim, DcpimConfig};
use rampmeter_proto::fastpass::{Fastpass, FastpassConfig, allocations_time};
use rampmeter_proto::phost::{Phost, PhostConfig};
use rampmeter_runtime::Outcome;
use rampmeter_runtime::app::{Completion, Hub, HubHandle, Port, PortConfig};
use rampmeter_runtime::datapath::mem::{MemDatapath, MemNet, Weather};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{Node, NodeConfig};

/// Payload of a full packet: what a 1500-byte packet carries beside all headers.
pub(crate) const PAYLOAD: u64 = 1_380;

/// The facts of a network of hosts at `mbps`, on which a round trip takes `rtt`.
pub(crate) fn facts(n_hosts: u32, mbps: u64, rtt: Span) -> FabricFacts {
    let access_rate = Rate::from_bps(mbps * 1_000_000).unwrap();
    let mtu = access_rate.tx_time(Bytes::new(1_500));
    FabricFacts { n_hosts, access_rate, data_rtt: rtt + mtu * 4, control_rtt: rtt }
}

pub(crate) fn dcpim(facts: &FabricFacts) -> Dcpim {
    let config = DcpimConfig {
        payload: Bytes::new(PAYLOAD),
        header: Bytes::new(100),
        ..DcpimConfig::paper()
    };
    config.on(facts).unwrap()
}

pub(crate) fn phost(facts: &FabricFacts) -> Phost {
    let config = PhostConfig {
        payload: Bytes::new(PAYLOAD),
        header: Bytes::new(100),
        ..PhostConfig::paper()
    };
    config.on(facts).unwrap()
}

pub(crate) fn cosy(facts: &FabricFacts, preset: CosyConfig) -> Cosy {
    let config = CosyConfig {
        payload: Bytes::new(PAYLOAD),
        header: Bytes::new(100),
        slack: Some(facts.control_rtt),
        ..preset
    };
    config.on(facts, PathFacts { switches: 3, ratio: 1, ports: 1, has_slower: false }).unwrap()
}

pub(crate) fn fastpass(facts: &FabricFacts) -> Fastpass {
    let config = FastpassConfig {
        payload: Bytes::new(PAYLOAD),
        header: Bytes::new(100),
        ..FastpassConfig::paper()
    };
    let time = allocations_time(facts.n_hosts, 100, facts.access_rate);
    config.on(facts, None, time).unwrap()
}

/// A message that tells who sent it, in which life and as which, and whose other bytes follow from
/// that. At least [`LABEL`] bytes.
pub(crate) fn message(src: u32, life: u32, number: u64, size: usize) -> Vec<u8> {
    assert!(size >= LABEL, "{size} bytes hold no label");
    let mut bytes = Vec::with_capacity(size + 8);
    bytes.extend(src.to_be_bytes());
    bytes.extend(life.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    let mut word = number ^ u64::from(life) << 32 ^ u64::from(src);
    while bytes.len() < size {
        word = rampmeter_core::rng::mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
        bytes.extend(word.to_be_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Bytes that say which message it is.
pub(crate) const LABEL: usize = 16;

/// What a message says it is. Panics if a byte of it is not what it was.
pub(crate) fn read_message(bytes: &[u8]) -> (u32, u32, u64) {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let (src, life) = (word(0), word(4));
    let number = u64::from(word(8)) << 32 | u64::from(word(12));
    assert!(
        bytes == message(src, life, number, bytes.len()),
        "message {number} of node {src} was altered"
    );
    (src, life, number)
}

/// One node in memory, with its application.
pub(crate) struct MemNode<E: Endpoint> {
    pub(crate) node: Node<E, MemDatapath, Hub>,
    pub(crate) port: Port,
    _handle: HubHandle,
    pub(crate) life: u32,
}

/// What every application of a test saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How often each message was delivered, by source, life and number.
    pub(crate) delivered: BTreeMap<(u32, u32, u64), u32>,
    /// The outcome of each message, likewise.
    pub(crate) outcomes: BTreeMap<(u32, u32, u64), Outcome>,
}

impl Seen {
    pub(crate) fn note(&mut self, node: u32, life: u32, completion: Completion) {
        match completion {
            Completion::Finished { ticket, outcome } => {
                let before = self.outcomes.insert((node, life, ticket.0), outcome);
                assert_eq!(before, None, "message {} of node {node} ended twice", ticket.0);
            }
            Completion::Received(received) => {
                let label = read_message(received.bytes());
                assert_eq!(label.0, received.from.get());
                *self.delivered.entry(label).or_default() += 1;
            }
        }
    }
}

pub(crate) const SERVICE: u16 = 7;

/// Nodes in memory on simulated time.
pub(crate) struct MemBed<E: Endpoint> {
    pub(crate) net: MemNet,
    pub(crate) nodes: Vec<Option<MemNode<E>>>,
    pub(crate) now: Time,
    pub(crate) seen: Seen,
    protocol: Arc<E::Config>,
    rate: Rate,
    lives: u32,
    next: Vec<Time>,
    /// What the ports of nodes that start are opened with.
    pub(crate) port: PortConfig,
    /// A node whose application takes nothing.
    pub(crate) deaf: Option<usize>,
}

impl<E: Endpoint> MemBed<E> {
    pub(crate) fn new(
        protocol: E::Config,
        facts: &FabricFacts,
        weather: Weather,
        seed: u64,
    ) -> Self {
        Self::new_at(Time::ZERO, protocol, facts, weather, seed)
    }

    /// Nodes that start then.
    pub(crate) fn new_at(
        now: Time,
        protocol: E::Config,
        facts: &FabricFacts,
        weather: Weather,
        seed: u64,
    ) -> Self {
        let n = facts.n_hosts as usize;
        let mut bed = Self {
            net: MemNet::new(n, weather, seed),
            nodes: (0..n).map(|_| None).collect(),
            now,
            seen: Seen::default(),
            protocol: Arc::new(protocol),
            rate: facts.access_rate,
            lives: 0,
            next: vec![now; n],
            port: PortConfig::default(),
            deaf: None,
        };
        (0..n).for_each(|node| bed.start(node));
        bed
    }

    /// Starts a node that is not running: a new life.
    pub(crate) fn start(&mut self, node: usize) {
        assert!(self.nodes[node].is_none());
        self.lives += 1;
        let config = NodeConfig {
            node: NodeId::new(node as u32),
            transport: TransportId(1),
            incarnation: Incarnation::new(self.lives),
            rate: self.rate,
            burst: Bytes::new(3_000),
            message_max: NodeConfig::MESSAGE_MAX,
            patience: Span::from_us(2_000_000),
            peers: vec![Some(None); self.nodes.len()],
            seed: 1,
        };
        let (hub, handle) = Hub::new().unwrap();
        let port = handle.open(SERVICE, self.port).unwrap();
        let datapath = self.net.datapath(config.node);
        let node_of = Node::new(config, Arc::clone(&self.protocol), datapath, hub, self.now);
        self.nodes[node] = Some(MemNode { node: node_of, port, _handle: handle, life: self.lives });
        self.next[node] = self.now;
    }

    /// Ends a node without notice.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node] = None;
    }

    /// Submits a message that tells what it is. Nothing happens if the node is not running or has
    /// too many messages under way.
    pub(crate) fn submit(&mut self, src: usize, dst: usize, size: usize, number: u64) -> bool {
        self.submit_to(SERVICE, (src, dst), size, number)
    }

    /// The same for any service.
    pub(crate) fn submit_to(
        &mut self,
        service: u16,
        (src, dst): (usize, usize),
        size: usize,
        number: u64,
    ) -> bool {
        let Some(node) = &mut self.nodes[src] else { return false };
        let bytes = message(src as u32, node.life, number, size);
        let Ok(ticket) = node.port.submit(NodeId::new(dst as u32), service, bytes) else {
            return false;
        };
        assert_eq!(ticket.0, number);
        self.next[src] = self.now;
        true
    }

    /// Runs until an instant, or until nothing more would happen.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            for idx in 0..self.nodes.len() {
                let Some(node) = &self.nodes[idx] else { continue };
                let arrival = rampmeter_runtime::Datapath::next_arrival(node.node.datapath());
                self.next[idx] = self.next[idx].min(arrival);
            }
            let running = (0..self.nodes.len()).filter(|&idx| self.nodes[idx].is_some());
            let Some(idx) = running.min_by_key(|&idx| self.next[idx]) else { break };
            if self.next[idx] > end {
                break;
            }
            self.now = self.now.max(self.next[idx]);
            self.net.set_now(self.now);
            let node = self.nodes[idx].as_mut().unwrap();
            self.next[idx] = node.node.turn(self.now).unwrap();
            while self.deaf != Some(idx)
                && let Some(completion) = node.port.try_next()
            {
                self.seen.note(idx as u32, node.life, completion);
            }
        }
        self.now = self.now.max(end);
    }

    /// Runs until an instant with nodes that look only so often, whatever is due.
    pub(crate) fn run_late(&mut self, every: Span, end: Time) {
        while self.now < end {
            self.now += every;
            self.net.set_now(self.now);
            for (idx, node) in self.nodes.iter_mut().enumerate() {
                let Some(node) = node else { continue };
                node.node.turn(self.now).unwrap();
                while let Some(completion) = node.port.try_next() {
                    self.seen.note(idx as u32, node.life, completion);
                }
            }
        }
    }
}

/// Sizes of a mixed load: most are a packet or two, some are long.
pub(crate) fn mixed_size(rng: &mut Rng) -> usize {
    match rng.below(10) {
        0..6 => LABEL + rng.below(2_000),
        6..9 => LABEL + rng.below(20_000),
        _ => LABEL + rng.below(200_000),
    }
}
