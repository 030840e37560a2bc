//! Common parts of tests of nodes: transports configured for a slow network, self-describing
//! messages, and nodes in memory on simulated time.

#![allow(dead_code, unused_imports, reason = "each test program uses a part")]

pub(crate) mod feed;
pub(crate) mod live;
pub(crate) mod ports;

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::keys::PacketSizes;
use rampmeter_runtime::Outcome;
use rampmeter_runtime::app::{Completion, Hub, HubHandle, Port, PortConfig};
use rampmeter_runtime::datapath::mem::{Impairments, MemDatapath, MemNet};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{Node, NodeConfig};
pub(crate) use rampmeter_testkit::message::{LABEL, message, mixed_size, read_message};
pub(crate) use rampmeter_testkit::network::{host_facts as facts, on_hosts};
use rampmeter_types::{
    Bytes, Endpoint, FabricFacts, HostPolicy, NodeId, Observation, Protocol, Rate, Span, Time,
};

/// Payload of a full packet: 1500 bytes without all headers.
pub(crate) const PAYLOAD: u64 = 1_356;

/// Bytes of all headers of a full packet.
const HEADERS: u64 = 100;

/// Returns the default preset of a transport, for hosts.
pub(crate) fn protocol<T: RegisteredTransport>(facts: &FabricFacts) -> T::Config {
    with_keys::<T>(&T::Keys::default(), facts)
}

/// Returns the configuration of a transport with any parameters, for hosts.
pub(crate) fn with_keys<T: RegisteredTransport>(keys: &T::Keys, facts: &FabricFacts) -> T::Config {
    on_hosts::<T>(keys, facts, PacketSizes::new(PAYLOAD, HEADERS))
}

/// One node in memory, with its application.
pub(crate) struct MemNode<E: Endpoint> {
    pub(crate) node: Node<E, MemDatapath, Hub>,
    pub(crate) port: Port,
    pub(crate) handle: HubHandle,
    pub(crate) restart: u32,
}

/// Events that every application of a test has received.
#[derive(Debug, Default)]
pub(crate) struct ApplicationEvents {
    /// Number of deliveries of each message, by source, incarnation and number.
    pub(crate) delivered: BTreeMap<(u32, u32, u64), u32>,
    /// Outcome of each message, by the same key.
    pub(crate) outcomes: BTreeMap<(u32, u32, u64), Outcome>,
}

impl ApplicationEvents {
    pub(crate) fn note(&mut self, node: u32, restart: u32, completion: Completion) {
        match completion {
            Completion::Finished { ticket, outcome } => {
                let before = self.outcomes.insert((node, restart, ticket.0), outcome);
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
pub(crate) struct MemTestbed<E: Endpoint> {
    pub(crate) net: MemNet,
    pub(crate) nodes: Vec<Option<MemNode<E>>>,
    pub(crate) now: Time,
    pub(crate) seen: ApplicationEvents,
    protocol: Arc<E::Config>,
    rate: Rate,
    n_incarnations: u32,
    next: Vec<Time>,
    /// Configuration of the ports of nodes that start.
    pub(crate) port: PortConfig,
    /// Node whose application receives nothing.
    pub(crate) deaf: Option<usize>,
}

impl<E: Endpoint> MemTestbed<E> {
    pub(crate) fn new(
        protocol: E::Config,
        facts: &FabricFacts,
        weather: Impairments,
        seed: u64,
    ) -> Self {
        Self::new_at(Time::ZERO, protocol, facts, weather, seed)
    }

    /// Creates nodes that start at a given time.
    pub(crate) fn new_at(
        now: Time,
        protocol: E::Config,
        facts: &FabricFacts,
        weather: Impairments,
        seed: u64,
    ) -> Self {
        let n = facts.n_hosts as usize;
        let mut bed = Self {
            net: MemNet::new(n, weather, seed),
            nodes: (0..n).map(|_| None).collect(),
            now,
            seen: ApplicationEvents::default(),
            protocol: Arc::new(protocol),
            rate: facts.access_rate,
            n_incarnations: 0,
            next: vec![now; n],
            port: PortConfig::default(),
            deaf: None,
        };
        (0..n).for_each(|node| bed.start(node));
        bed
    }

    /// Starts a node that is not running: a new incarnation.
    pub(crate) fn start(&mut self, node: usize) {
        assert!(self.nodes[node].is_none());
        self.n_incarnations += 1;
        let config = self.config(node);
        let (hub, handle) = Hub::new().unwrap();
        let port = handle.open(SERVICE, self.port).unwrap();
        let datapath = self.net.datapath(config.node);
        let node_of = Node::new(config, Arc::clone(&self.protocol), datapath, hub, self.now);
        self.nodes[node] =
            Some(MemNode { node: node_of, port, handle, restart: self.n_incarnations });
        self.next[node] = self.now;
    }

    /// Returns the configuration of a node that starts now.
    fn config(&self, node: usize) -> NodeConfig {
        NodeConfig {
            node: NodeId::new(node as u32),
            transport: TransportId(1),
            incarnation: Incarnation::new(self.n_incarnations),
            rate: self.rate,
            burst: Bytes::new(3_000),
            spray: rampmeter_types::fabric::Spray::Random,
            run: 1,
            coalescing: Span::ZERO,
            busy_poll: Span::ZERO,
            agreement: rampmeter_runtime::SettingDigests::default(),
            message_max: NodeConfig::MESSAGE_MAX,
            connect_timeout: Span::from_us(2_000_000),
            peers: vec![Some(None); self.nodes.len()],
            seed: 1,
        }
    }

    /// Changes the peers of a running node, as a reload of its configuration does.
    pub(crate) fn set_peers(&mut self, node: usize, peers: &[usize]) {
        let is_peer = |idx| peers.contains(&idx).then_some(None);
        let peers = (0..self.nodes.len()).map(is_peer).collect();
        let config = NodeConfig { peers, ..self.config(node) };
        let running = self.nodes[node].as_mut().expect("the node runs");
        running.node.set_config(self.now, config);
        self.next[node] = self.now;
    }

    /// Ends a node without notice.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node] = None;
    }

    /// Submits a self-describing message. Nothing happens if the node is not running or has too
    /// many messages in flight.
    pub(crate) fn submit(&mut self, src: usize, dst: usize, size: usize, number: u64) -> bool {
        self.submit_to(SERVICE, src, dst, size, number)
    }

    /// Submits such a message to any service.
    pub(crate) fn submit_to(
        &mut self,
        service: u16,
        src: usize,
        dst: usize,
        size: usize,
        number: u64,
    ) -> bool {
        let Some(node) = &mut self.nodes[src] else { return false };
        let bytes = message(src as u32, node.restart, number, size);
        let Ok(ticket) = node.port.submit(NodeId::new(dst as u32), service, bytes) else {
            return false;
        };
        assert_eq!(ticket.0, number);
        self.next[src] = self.now;
        true
    }

    /// Runs until an instant, or until no node has any more work.
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
            self.next[idx] = node.node.poll(self.now).unwrap();
            while self.deaf != Some(idx)
                && let Some(completion) = node.port.try_next()
            {
                self.seen.note(idx as u32, node.restart, completion);
            }
        }
        self.now = self.now.max(end);
    }

    /// Runs until an instant with nodes that run only at this interval, even if work is due.
    pub(crate) fn run_late(&mut self, every: Span, end: Time) {
        while self.now < end {
            self.now += every;
            self.net.set_now(self.now);
            for (idx, node) in self.nodes.iter_mut().enumerate() {
                let Some(node) = node else { continue };
                node.node.poll(self.now).unwrap();
                while let Some(completion) = node.port.try_next() {
                    self.seen.note(idx as u32, node.restart, completion);
                }
            }
        }
    }
}
