//! `rampd agent`: CAPTON's host layer for unmodified programs (§IV.C).
//!
//! Programs that have loaded `librampmeter_capton.so` notify the agent when they have more to send
//! than the threshold. The agent sends a request to the controller, as a host of CAPTON does, and
//! forwards its decision to the program. Data passes from the program to the kernel's TCP; the
//! agent never sees it. The agent reads from the kernel how much of it has been sent.
//!
//! * `programs`: attached programs
//! * `bursts`: bursts of their connections
//! * `probe`: the kernel's state of their connections

mod bursts;
mod event;
mod probe;
mod programs;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rampmeter_gate::Settings;
use rampmeter_proto::Catalogue;
use rampmeter_proto::capton::{Capton, CaptonAgent, CaptonTransport};
use rampmeter_ring::AcceptorConfig;
use rampmeter_runtime::app::Admission;
use rampmeter_runtime::datapath::udp::UdpDatapath;
use rampmeter_runtime::{Applications, Node, Outcome, SecureDatapath, Submission, Ticket, drive};
use rampmeter_types::{NodeId, Protocol, Span, Time, Transport};
use tracing::info;

use self::bursts::Bursts;
use self::probe::Probe;
use self::programs::Programs;
use crate::apps::DroppedMessage;
use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::metrics::NodeObserver;
use crate::node_config::node_config;
use crate::reload::ConfigLoader;
use crate::run::{clock, raise_descriptor_limit, secured, stop_signals};

/// Minimum number of bytes that the kernel accepts of a burst ahead of sending: those that are sent
/// while a program wakes up.
const UNSENT_MIN: u64 = 16 << 10;
/// Minimum time without an iteration of the agent after which programs continue without it. The
/// agent has an iteration every second.
const PATIENCE_MIN: Span = Span::from_us(3_000_000);

/// Runs `rampd agent`.
pub(crate) fn run<C: Catalogue>(file: &Path) -> Result<(), Error> {
    let setup = Setup::load::<C>(file)?;
    let refuse = |key: &str, expected: &str, got: &str| {
        Err(InputError::unexpected(expected, got).at(key).in_file(file).into())
    };
    if setup.is_arbiter {
        return refuse("node.id", "the id of a host", "that of an arbiter (use `rampd arbiter`)");
    }
    let name = &setup.transport.table.name;
    if name != CaptonTransport::NAME {
        return refuse("transport.name", "capton, which agents are for", name);
    }
    if setup.interface.is_some() {
        return refuse("node.datapath", "udp, as agents carry no data", "xdp");
    }
    let has_limits = |acceptor: &AcceptorConfig| *acceptor != AcceptorConfig::new(&acceptor.path);
    if setup.acceptor.as_ref().is_some_and(has_limits) {
        return refuse("programs, service", "none, as agents do not count programs", "some");
    }
    let config = Arc::new(setup.transport.config::<CaptonTransport>()?);
    let (signals, clock) = (stop_signals()?, clock(&setup)?);
    raise_descriptor_limit();
    let socket = setup
        .acceptor
        .as_ref()
        .map(|acceptor| acceptor.path.clone())
        .unwrap_or_else(|| PathBuf::from(rampmeter_gate::SOCKET));
    let node_config = node_config(&setup)?;
    // Sockets on the network first: an agent that cannot open them must not replace the Unix socket
    // of another.
    let datapath = secured(&setup, &node_config, UdpDatapath::open(&setup.udp)?)?;
    let programs = Programs::listen(&socket, settings(&config), nodes(&setup))?;
    let probe = Probe::new().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot query the kernel about connections: {error}"))
    })?;
    let host =
        Host { bursts: Bursts::new(programs, probe, payload_share(&setup)), is_dirty: false };
    info!(socket = %socket.display(), "applications may attach");
    let mut node =
        Node::<CaptonAgent, _, Host>::new(node_config, config, datapath, host, clock.now());
    let mut watch = NodeObserver::start(&setup)?;
    info!(node = setup.id.get(), address = %setup.udp.local, "started");
    let mut current = setup.clone();
    let (mut loading, mut failed) = (ConfigLoader::default(), Ok(()));
    let each = |node: &mut Node<CaptonAgent, SecureDatapath<UdpDatapath>, Host>, now: Time| {
        let (endpoint, host) = node.parts_mut();
        if let Err(error) = host.iterate(now, endpoint) {
            failed = Err(error);
            signals.stop();
        }
        watch.observe(&current, node, now);
        let again = |setup: &Setup| setup.transport.config::<CaptonTransport>().map(Arc::new);
        loading.poll(&signals, &mut current, &again, node, now);
    };
    drive(&mut node, &clock, setup.wait, &signals, setup.drain_timeout, each)?;
    watch.report(&setup, &node);
    info!(node = setup.id.get(), "stopped");
    Ok(failed?)
}

/// Returns the settings for programs.
fn settings(config: &Capton) -> Settings {
    let patience = (config.settings.fallback * 2).max(PATIENCE_MIN);
    Settings {
        threshold: config.settings.threshold.get(),
        unsent: config.settings.tcp.start.granted.clamp(UNSENT_MIN, 1 << 20),
        timeout_ns: patience.as_ps() / 1_000,
    }
}

/// Returns the other hosts.
fn nodes(setup: &Setup) -> BTreeMap<IpAddr, NodeId> {
    let own = setup.udp.local.ip();
    let peers = setup.udp.peers.iter().zip(0..setup.facts.n_hosts);
    let others = peers.filter_map(|(peer, node)| Some((peer.as_ref()?.ip(), NodeId::new(node))));
    others.filter(|(ip, _)| *ip != own).collect()
}

/// Returns the bytes of a stream per byte on the wire: segments with timestamps, in Ethernet
/// frames.
fn payload_share(setup: &Setup) -> f64 {
    let headers = if setup.udp.local.is_ipv4() { 20.0 } else { 40.0 } + 32.0;
    let mtu = setup.udp.mtu as f64;
    (mtu - headers) / (mtu + 38.0)
}

/// Programs of the host for the runtime: applications that send no messages.
struct Host {
    bursts: Bursts,
    /// True if the endpoint has new input, so that the node must run an iteration.
    is_dirty: bool,
}

impl Host {
    fn iterate(&mut self, now: Time, agent: &mut CaptonAgent) -> io::Result<()> {
        self.bursts.iterate(now, agent)?;
        self.is_dirty = agent.wants_transmit();
        Ok(())
    }
}

impl Applications for Host {
    type Payload = Vec<u8>;
    type Assembly = DroppedMessage;

    fn poll_submission(&mut self) -> Option<Submission<Vec<u8>>> {
        None
    }

    fn next_submission(&self) -> Time {
        self.bursts.next()
    }

    fn finish(&mut self, _app: u32, _ticket: Ticket, _outcome: Outcome) {}

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Absent
    }

    fn open(&mut self, _service: u16, _size: u32) -> DroppedMessage {
        DroppedMessage
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, _message: DroppedMessage) {}

    fn arm(&mut self) -> bool {
        std::mem::take(&mut self.is_dirty)
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.bursts.programs.waker()]
    }
}
