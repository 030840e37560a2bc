//! Two nodes or more in one process, over UDP on loopback, each with an acceptor.

#![allow(dead_code, reason = "each program uses a part")]

#[path = "../../../runtime/tests/common/ports.rs"]
mod ports;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use ports::addresses;
use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::phost::PhostTransport;
use rampmeter_proto::registered::{Deployment, Site};
use rampmeter_ring::{AcceptorConfig, Clients, Limits, Services};
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
use rampmeter_runtime::wire::Incarnation;
use rampmeter_runtime::{
    BusyPoll, Clock, ClockSource, Node, NodeConfig, NodeStats, Signals, WaitMode, drive,
};
use rampmeter_types::envelope::{HostPacket, IPV4_UDP, Protection};
use rampmeter_types::{Bytes, FabricFacts, NodeId, Rate, Span};

/// Running nodes.
pub(crate) struct Testbed {
    /// Sockets, by node number.
    pub(crate) sockets: Vec<PathBuf>,
    signals: Vec<Signals>,
    threads: Vec<JoinHandle<NodeStats>>,
}

/// Configuration of a testbed.
pub(crate) struct TestbedConfig {
    /// Number of nodes.
    pub(crate) n_nodes: usize,
    /// Sending rate of each node in Mbit/s.
    pub(crate) mbps: u64,
    /// Limits on the applications of each node.
    pub(crate) limits: Limits,
    /// Services with restricted access.
    pub(crate) services: Services,
    /// Mode in which nodes wait.
    pub(crate) wait: WaitMode,
    /// Time for which a message waits for a node that has not responded yet.
    pub(crate) connect_timeout: Span,
    /// Round trip that transports are configured with.
    pub(crate) rtt: Span,
}

impl Default for TestbedConfig {
    fn default() -> Self {
        Self {
            n_nodes: 2,
            mbps: 1_000,
            limits: Limits { clients_max: 8, arena_max: 1 << 30, ..Limits::default() },
            services: Services::default(),
            wait: WaitMode::Block { spin: Span::ZERO },
            connect_timeout: Span::from_us(2_000_000),
            // Typical of busy machines. Transports abort after some thousand of these.
            rtt: Span::from_us(2_000),
        }
    }
}

impl TestbedConfig {
    /// Returns a transport as its nodes run it, in its default preset.
    pub(crate) fn protocol<T: RegisteredTransport>(&self) -> T::Config {
        let access_rate = Rate::from_bps(self.mbps * 1_000_000).unwrap();
        let data_rtt = self.rtt + access_rate.tx_time(Bytes::new(1_500)) * 4;
        let n_hosts = self.n_nodes as u32;
        let facts = FabricFacts {
            n_hosts,
            access_rate,
            core_rate: None,
            data_rtt,
            control_rtt: self.rtt,
            abort_timeout_min: Span::ZERO,
        };
        let HostPacket { payload, header } = HostPacket::new(1_500, IPV4_UDP, Protection::Checksum);
        let packet = PacketSizes::new(payload as u64, header as u64);
        let site = Site { facts, deployment: Deployment::Hosts(packet), lower: None };
        T::configure(T::Keys::default(), &site).unwrap()
    }
}

impl Testbed {
    /// Starts nodes of pHost with sockets in the folder `dir`.
    pub(crate) fn start(dir: &Path, config: &TestbedConfig) -> Self {
        Self::of::<PhostTransport>(dir, config)
    }

    /// Starts nodes of a transport.
    pub(crate) fn of<T: RegisteredTransport>(dir: &Path, config: &TestbedConfig) -> Self {
        let addrs = addresses(Ipv4Addr::LOCALHOST.into(), config.n_nodes);
        let sockets: Vec<PathBuf> =
            (0..config.n_nodes).map(|n| dir.join(format!("node{n}.sock"))).collect();
        let mut bed = Self { sockets, signals: Vec::new(), threads: Vec::new() };
        for node in 0..config.n_nodes {
            let signals = Signals::new().unwrap();
            let thread = run::<T>(&bed.sockets[node], &addrs, node, config, signals.clone());
            bed.threads.push(thread);
            bed.signals.push(signals);
        }
        bed
    }

    /// Stops one node; the others continue.
    pub(crate) fn stop_one(&mut self, node: usize) {
        self.signals[node].stop();
    }

    /// Stops all nodes.
    pub(crate) fn stop(self) -> Vec<NodeStats> {
        self.signals.iter().for_each(Signals::stop);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn run<T: RegisteredTransport>(
    socket: &Path,
    addrs: &[SocketAddr],
    node: usize,
    bed: &TestbedConfig,
    signals: Signals,
) -> JoinHandle<NodeStats> {
    let protocol = Arc::new(bed.protocol::<T>());
    let peers: Vec<Option<SocketAddr>> = addrs.iter().copied().map(Some).collect();
    let config = NodeConfig {
        node: NodeId::new(node as u32),
        transport: T::WIRE,
        incarnation: Incarnation::new(1_000 + node as u32),
        rate: Rate::from_bps(bed.mbps * 1_000_000).unwrap(),
        burst: Bytes::new(15_000),
        spray: rampmeter_types::fabric::Spray::Random,
        run: 1,
        coalescing: Span::ZERO,
        busy_poll: BusyPoll::BUDGET_MAX,
        agreement: rampmeter_runtime::SettingDigests::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        connect_timeout: bed.connect_timeout,
        peers: peers.iter().map(|addr| addr.map(|a| Some(a.ip()))).collect(),
        seed: 1,
    };
    let udp = UdpDatapath::open(&UdpConfig::new(addrs[node], peers)).unwrap();
    let clock = Clock::start(ClockSource::Monotonic).unwrap();
    let door =
        AcceptorConfig { path: socket.into(), limits: bed.limits, services: bed.services.clone() };
    let clients = Clients::listen(door, clock).unwrap();
    let wait = bed.wait;
    thread::spawn(move || {
        let mut node = Node::<T::Host, _, _>::new(config, protocol, udp, clients, clock.now());
        drive(&mut node, &clock, wait, &signals, Span::from_us(100_000), |_, _| ()).unwrap();
        node.stats()
    })
}
