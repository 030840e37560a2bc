//! Whole nodes: a transport over a datapath, which block when they have nothing to do.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rampmeter_proto::dcpim::{Dcpim, DcpimConfig};
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::phost::{Phost, PhostConfig};
use rampmeter_runtime::app::Admission;
use rampmeter_runtime::datapath::secure::BadKey;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{
    Applications, Assembly, BusyPoll, Clock, ClockSource, Datapath, Node, NodeConfig, Outcome,
    Payload, PrivateKey, SealConfig, SecureDatapath, Security, Signals, Submission, Ticket,
    WaitMode, drive,
};
use rampmeter_types::envelope::{HostPacket, IPV4_UDP, Protection};
use rampmeter_types::{Bytes, Endpoint, FabricFacts, NodeId, Rate, Span, TenantId, Time};

use crate::netns::Net;
use crate::{LIMIT, MTU, Times, both, expect_all};

/// Bytes of a message.
const MESSAGE: usize = 1 << 20;
/// Messages in flight at a time.
const DEPTH: u64 = 8;
/// Round trip of a small packet that nodes assume.
const RTT: Span = Span::from_us(300);

/// Returns the facts of the link, with `mbps` as its rate.
pub(crate) fn facts(mbps: u64) -> FabricFacts {
    let access_rate = Rate::from_bps(mbps * 1_000_000).expect("more than nothing");
    let data_rtt = RTT + access_rate.tx_time(Bytes::new(MTU as u64)) * 4;
    FabricFacts {
        n_hosts: 2,
        access_rate,
        core_rate: None,
        data_rtt,
        control_rtt: RTT,
        abort_timeout_min: Span::ZERO,
    }
}

/// Returns the lengths of full packets.
fn packet_sizes() -> PacketSizes {
    let HostPacket { payload, header } = HostPacket::new(MTU, IPV4_UDP, Protection::Sealed);
    PacketSizes::new(payload as u64, header as u64)
}

/// Returns dcPIM as the daemon configures it.
pub(crate) fn dcpim(facts: &FabricFacts) -> Dcpim {
    let config = DcpimConfig { packet: packet_sizes(), ..DcpimConfig::paper() };
    config.derive(facts).expect("a good configuration")
}

/// Returns pHost as the daemon configures it: tokens outlive the round trip.
pub(crate) fn phost(facts: &FabricFacts) -> Phost {
    let packet = packet_sizes();
    let time = facts.access_rate.tx_time(packet.wire());
    let token_lifetime_milli = Some((RTT.as_ps() * 1_000 / time.as_ps()) as u32);
    let config = PhostConfig { packet, token_lifetime_milli, ..PhostConfig::paper() };
    config.derive(facts).expect("a good configuration")
}

/// Sends `bytes` from one node to the other, in messages. `open` opens the datapath of a host, on
/// that host.
pub(crate) fn transfer<E: Endpoint, D: Datapath + Send>(
    net: &Net,
    bytes: u64,
    facts: &FabricFacts,
    protocol: E::Config,
    protection: Protection,
    open: impl Fn(usize) -> io::Result<D> + Sync,
) -> io::Result<Times>
where
    E::Config: Send + Sync,
{
    let protocol = Arc::new(protocol);
    let messages = bytes.div_ceil(MESSAGE as u64);
    let [a, b] = [0, 1].map(|host| net.hosts[host].within(|| open(host)));
    let (a, b) = (a?, b?);
    let [sending, receiving] = [Signals::new()?, Signals::new()?];
    let run = |host: usize, datapath: D, bulk: Bulk| {
        let datapath = SecureDatapath::new(datapath, security(net, host, protection)?);
        run::<E, _>(net, host, facts, Arc::clone(&protocol), datapath, bulk)
    };
    let send = || {
        let sent = run(0, a, Bulk::new(messages, sending));
        receiving.stop();
        expect_all(messages, sent?.completed)
    };
    let receive = || {
        let received = run(1, b, Bulk::new(0, receiving.clone()))?;
        expect_all(messages, received.delivered)
    };
    both(net, send, receive)
}

/// Returns the keys of both hosts, or none.
fn security(net: &Net, host: usize, protection: Protection) -> io::Result<Security> {
    if protection != Protection::Sealed {
        return Ok(Security::Checksum);
    }
    // Fixed keys: nobody else is on the link.
    let key = |host: usize| STANDARD.encode([host as u8 + 1; 32]).parse::<PrivateKey>();
    let peers = (0..net.hosts.len()).map(|peer| Ok(Some(vec![key(peer)?.public()])));
    Ok(Security::Sealed(SealConfig {
        node: NodeId::new(host as u32),
        transport: TransportId(1),
        incarnation: Incarnation::new(1 + host as u32),
        started_ns: 1,
        key: key(host).map_err(io::Error::other)?,
        peers: peers.collect::<Result<_, _>>().map_err(|error: BadKey| io::Error::other(error))?,
    }))
}

fn run<E: Endpoint, D: Datapath>(
    net: &Net,
    host: usize,
    facts: &FabricFacts,
    protocol: Arc<E::Config>,
    datapath: D,
    bulk: Bulk,
) -> io::Result<Bulk> {
    let limit = Span::from_us(LIMIT.as_micros() as u64);
    let config = NodeConfig {
        node: NodeId::new(host as u32),
        transport: TransportId(1),
        incarnation: Incarnation::new(1 + host as u32),
        rate: facts.access_rate,
        burst: facts.access_rate.bytes_floor(Span::from_us(250)),
        spray: rampmeter_types::fabric::Spray::Random,
        run: UdpConfig::RUN,
        coalescing: NodeConfig::COALESCING,
        busy_poll: BusyPoll::BUDGET_MAX,
        agreement: rampmeter_runtime::SettingDigests::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        connect_timeout: limit,
        peers: net.hosts.iter().map(|host| Some(Some(IpAddr::from(host.ip)))).collect(),
        seed: 1,
    };
    let clock = Clock::start(ClockSource::Monotonic).map_err(io::Error::other)?;
    let (signals, until) = (bulk.signals.clone(), clock.now() + limit);
    let mut node = Node::<E, D, Bulk>::new(config, protocol, datapath, bulk, clock.now());
    let wait = WaitMode::Block { spin: Span::ZERO };
    drive(&mut node, &clock, wait, &signals, Span::ZERO, |_, now| {
        if now > until {
            signals.stop();
        }
    })?;
    Ok(std::mem::replace(node.apps_mut(), Bulk::new(0, signals)))
}

/// Application of both nodes: sends messages, a few at a time, and counts those that arrive.
struct Bulk {
    block: Arc<[u8]>,
    /// Messages that have not been submitted yet, and those in flight.
    left: u64,
    under_way: u64,
    completed: u64,
    delivered: u64,
    signals: Signals,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Bulk {
    fn new(messages: u64, signals: Signals) -> Self {
        let block = vec![1; MESSAGE].into();
        let (under_way, completed, delivered) = (0, 0, 0);
        Self { block, left: messages, under_way, completed, delivered, signals, spare: Vec::new() }
    }

    fn has_next(&self) -> bool {
        self.left > 0 && self.under_way < DEPTH
    }
}

/// Message to send: all have the same bytes.
struct Block(Arc<[u8]>);

impl Payload for Block {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0[offset..offset + out.len()]);
    }
}

/// Message that arrives.
struct Buffer(Vec<u8>);

impl Assembly for Buffer {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

impl Applications for Bulk {
    type Payload = Block;
    type Assembly = Buffer;

    fn poll_submission(&mut self) -> Option<Submission<Block>> {
        if !self.has_next() {
            return None;
        }
        self.left -= 1;
        self.under_way += 1;
        Some(Submission {
            app: 0,
            ticket: Ticket(self.left),
            dst: NodeId::new(1),
            service: 0,
            deadline: Time::NEVER,
            tenant: TenantId::default(),
            payload: Block(Arc::clone(&self.block)),
        })
    }

    fn finish(&mut self, _app: u32, _ticket: Ticket, outcome: Outcome) {
        self.under_way -= 1;
        self.completed += u64::from(outcome == Outcome::Completed);
        if self.left == 0 && self.under_way == 0 {
            self.signals.stop();
        }
    }

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Accept
    }

    fn open(&mut self, _service: u16, size: u32) -> Buffer {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(size as usize, 0);
        Buffer(bytes)
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, message: Buffer) {
        self.delivered += 1;
        self.spare.push(message.0);
    }

    fn arm(&mut self) -> bool {
        self.has_next()
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}
