//! Two nodes or more in one process, over UDP on loopback, each with a door for applications.

#![allow(dead_code, reason = "each program uses a part")]

#[path = "../../../runtime/tests/common/ports.rs"]
mod ports;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use ports::addresses;
use rampmeter_core::{Bytes, FabricFacts, NodeId, Rate, Span};
use rampmeter_proto::phost::{PhostConfig, PhostHost};
use rampmeter_ring::{Clients, DoorConfig};
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{Clock, ClockSource, Node, NodeConfig, NodeStats, Signals, Wait, drive};

/// Running nodes.
pub(crate) struct Bed {
    /// Their sockets, by number.
    pub(crate) sockets: Vec<PathBuf>,
    signals: Vec<Signals>,
    threads: Vec<JoinHandle<NodeStats>>,
}

/// What a bed is made of.
pub(crate) struct BedConfig {
    /// How many nodes.
    pub(crate) n_nodes: usize,
    /// How fast each sends.
    pub(crate) mbps: u64,
    /// Applications of each.
    pub(crate) clients_max: usize,
    /// Bytes of each application.
    pub(crate) arena_max: u64,
    /// How nodes wait.
    pub(crate) wait: Wait,
    /// How long a message waits for a node that has not been heard.
    pub(crate) patience: Span,
}

impl Default for BedConfig {
    fn default() -> Self {
        Self {
            n_nodes: 2,
            mbps: 1_000,
            clients_max: 8,
            arena_max: 1 << 30,
            wait: Wait::Block { spin: Span::ZERO },
            patience: Span::from_us(2_000_000),
        }
    }
}

impl Bed {
    /// Starts nodes with sockets in the folder `dir`.
    pub(crate) fn start(dir: &Path, config: &BedConfig) -> Self {
        let addrs = addresses(Ipv4Addr::LOCALHOST.into(), config.n_nodes);
        let sockets: Vec<PathBuf> =
            (0..config.n_nodes).map(|n| dir.join(format!("node{n}.sock"))).collect();
        let mut bed = Self { sockets, signals: Vec::new(), threads: Vec::new() };
        for node in 0..config.n_nodes {
            let signals = Signals::new().unwrap();
            bed.threads.push(run(&bed.sockets[node], &addrs, node, config, signals.clone()));
            bed.signals.push(signals);
        }
        bed
    }

    /// Stops a node; the others go on.
    pub(crate) fn stop_one(&mut self, node: usize) {
        self.signals[node].stop();
    }

    /// Stops all nodes.
    pub(crate) fn stop(self) -> Vec<NodeStats> {
        self.signals.iter().for_each(Signals::stop);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn run(
    socket: &Path,
    addrs: &[SocketAddr],
    node: usize,
    bed: &BedConfig,
    signals: Signals,
) -> JoinHandle<NodeStats> {
    let access_rate = Rate::from_bps(bed.mbps * 1_000_000).unwrap();
    // What busy machines have: transports give up after some thousand of these.
    let rtt = Span::from_us(2_000);
    let data_rtt = rtt + access_rate.tx_time(Bytes::new(1_500)) * 4;
    let n_hosts = addrs.len() as u32;
    let facts = FabricFacts { n_hosts, access_rate, data_rtt, control_rtt: rtt };
    let protocol =
        PhostConfig { payload: Bytes::new(1_380), header: Bytes::new(100), ..PhostConfig::paper() };
    let protocol = Arc::new(protocol.on(&facts).unwrap());
    let peers: Vec<Option<SocketAddr>> = addrs.iter().copied().map(Some).collect();
    let config = NodeConfig {
        node: NodeId::new(node as u32),
        transport: TransportId(2),
        incarnation: Incarnation::new(1_000 + node as u32),
        rate: access_rate,
        burst: Bytes::new(15_000),
        message_max: NodeConfig::MESSAGE_MAX,
        patience: bed.patience,
        peers: peers.iter().map(|addr| addr.map(|a| Some(a.ip()))).collect(),
        seed: 1,
    };
    let udp = UdpDatapath::open(&UdpConfig::new(addrs[node], peers)).unwrap();
    let clock = Clock::start(ClockSource::Monotonic).unwrap();
    let door =
        DoorConfig { path: socket.into(), clients_max: bed.clients_max, arena_max: bed.arena_max };
    let clients = Clients::listen(door, clock).unwrap();
    let wait = bed.wait;
    thread::spawn(move || {
        let mut node = Node::<PhostHost, _, _>::new(config, protocol, udp, clients, clock.now());
        drive(&mut node, &clock, wait, &signals, Span::from_us(100_000), |_, _| ()).unwrap();
        node.stats()
    })
}
