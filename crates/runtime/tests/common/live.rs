//! Nodes on separate threads and on the real clock, over any datapath.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rampmeter_proto::RegisteredTransport;
use rampmeter_runtime::app::{Completion, Hub, Port, PortConfig};
use rampmeter_runtime::datapath::fault::{Faults, FaultyDatapath};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{
    BusyPoll, Clock, ClockSource, Datapath, Node, NodeConfig, NodeStats, Outcome, PrivateKey,
    SealConfig, SecureDatapath, Security, Signals, WaitMode, drive,
};
use rampmeter_types::{
    Bytes, Endpoint, FabricFacts, HostPolicy, NodeId, Observation, Protocol, Purpose, Rng, Span,
};

use rampmeter_testkit::network::promises_bound;

use super::{ApplicationEvents, SERVICE, facts, message, mixed_size, protocol};

const WAIT: WaitMode = WaitMode::Block { spin: Span::ZERO };

/// A running node.
pub(crate) struct LiveNode {
    pub(crate) port: Port,
    signals: Signals,
    thread: JoinHandle<NodeStats>,
}

impl LiveNode {
    pub(crate) fn stop(self) -> NodeStats {
        self.signals.stop();
        drop(self.port);
        self.thread.join().unwrap()
    }
}

/// Returns the private key of a node: its number, repeated.
fn key(node: usize) -> PrivateKey {
    STANDARD.encode([node as u8 + 1; 32]).parse().unwrap()
}

/// Starts node number `node` of those with these addresses, on the datapath that `open` opens on
/// the node's thread.
pub(crate) fn start<E: Endpoint, D: Datapath>(
    protocol: &Arc<E::Config>,
    facts: &FabricFacts,
    ips: &[IpAddr],
    node: usize,
    faults: Faults,
    port: PortConfig,
    open: impl FnOnce() -> D + Send + 'static,
) -> LiveNode
where
    E::Config: Send + Sync + 'static,
{
    let config = NodeConfig {
        node: NodeId::new(node as u32),
        transport: TransportId(1),
        incarnation: Incarnation::new(1_000 + node as u32),
        rate: facts.access_rate,
        burst: Bytes::new(3_000),
        spray: rampmeter_types::fabric::Spray::Random,
        run: 1,
        coalescing: NodeConfig::COALESCING,
        busy_poll: BusyPoll::BUDGET_MAX,
        agreement: rampmeter_runtime::SettingDigests::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        connect_timeout: Span::from_us(10_000_000),
        peers: ips.iter().map(|ip| Some(Some(*ip))).collect(),
        seed: 1,
    };
    let seal = SealConfig {
        node: config.node,
        transport: config.transport,
        incarnation: config.incarnation,
        started_ns: 1,
        key: key(node),
        peers: (0..ips.len()).map(|peer| Some(vec![key(peer).public()])).collect(),
    };
    let (hub, handle) = Hub::new().unwrap();
    let port = handle.open(SERVICE, port).unwrap();
    let signals = Signals::new().unwrap();
    let (protocol, stop) = (Arc::clone(protocol), signals.clone());
    let thread = thread::spawn(move || {
        let clock = Clock::start(ClockSource::Monotonic).unwrap();
        let datapath = FaultyDatapath::new(open(), faults, node as u64);
        let datapath = SecureDatapath::new(datapath, Security::Sealed(seal));
        let mut node = Node::<E, _, _>::new(config, protocol, datapath, hub, clock.now());
        drive(&mut node, &clock, WAIT, &stop, Span::from_us(1_000_000), |_, _| ()).unwrap();
        node.stats()
    });
    LiveNode { port, signals, thread }
}

/// Sends `each` messages from host `src` to others, until all hosts have sent theirs and nothing
/// more arrives. Counts itself in `n_done` when all of its messages have outcomes.
fn exchange(
    port: &mut Port,
    src: usize,
    hosts: usize,
    each: u64,
    n_done: &AtomicUsize,
) -> ApplicationEvents {
    let mut rng = Rng::new(1, src as u64, Purpose::Test);
    let (mut seen, mut number, mut over) = (ApplicationEvents::default(), 0, 0);
    let (mut silent, mut is_done) = (0, false);
    // Other nodes may still be sending when this one has finished, and may pause meanwhile.
    while silent < if n_done.load(Ordering::Acquire) < hosts { 1_000 } else { 20 } {
        if over == each && !is_done {
            is_done = true;
            n_done.fetch_add(1, Ordering::AcqRel);
        }
        let dst = NodeId::new(((src + 1 + rng.uniform_below(hosts - 1)) % hosts) as u32);
        let bytes = message(src as u32, 1, number, mixed_size(&mut rng));
        if number < each && number < over + 8 {
            port.submit(dst, SERVICE, bytes).unwrap();
            number += 1;
        }
        silent += 1;
        while let Some(completion) = port.wait_for(Duration::from_millis(20)) {
            over += u64::from(matches!(completion, Completion::Finished { .. }));
            silent = 0;
            seen.note(src as u32, 1, completion);
            if number < each {
                break;
            }
        }
    }
    seen
}

/// Sends `each` messages from every host to others; each arrives once and unaltered. If the
/// transport promises a bound each has an outcome, and arrives once if it has completed. `open`
/// opens the datapath of a node, on the node's thread. The last of the addresses are those of
/// arbiters.
pub(crate) fn all_arrive<T: RegisteredTransport, D: Datapath>(
    ips: &[IpAddr],
    arbiters: usize,
    each: u64,
    loss: f64,
    open: impl Fn(usize) -> D + Clone + Send + 'static,
) {
    let hosts = ips.len() - arbiters;
    let facts = facts(hosts as u32, 200, Span::from_us(1_000));
    let delay_max = Span::from_us(2_000);
    let is_fair = loss == 0.0;
    let (duplicate, reorder, flip) = if is_fair { (0.0, 0.0, 0.0) } else { (0.02, 0.05, 0.01) };
    let faults = Faults { loss, duplicate, reorder, delay_max, flip };
    let protocol = Arc::new(protocol::<T>(&facts));
    let start = |node| {
        let (port, open) = (PortConfig::default(), open.clone());
        if node < hosts {
            start::<T::Host, D>(&protocol, &facts, ips, node, faults, port, move || open(node))
        } else {
            start::<T::Arbiter, D>(&protocol, &facts, ips, node, faults, port, move || open(node))
        }
    };
    let arbiters: Vec<LiveNode> = (hosts..ips.len()).map(start).collect();
    let nodes: Vec<LiveNode> = (0..hosts).map(start).collect();
    let n_done = Arc::new(AtomicUsize::new(0));
    let applications = nodes.into_iter().enumerate().map(|(src, mut running)| {
        let n_done = Arc::clone(&n_done);
        thread::spawn(move || {
            let seen = exchange(&mut running.port, src, hosts, each, &n_done);
            (seen, running)
        })
    });
    let applications: Vec<_> = applications.collect();
    let (mut delivered, mut completed) = (BTreeMap::new(), BTreeSet::new());
    for application in applications {
        let (seen, running) = application.join().unwrap();
        assert_eq!(seen.outcomes.len() as u64, each);
        let good = seen.outcomes.into_iter().filter(|(_, o)| *o == Outcome::Completed);
        completed.extend(good.map(|(label, _)| label));
        for (label, n) in seen.delivered {
            *delivered.entry(label).or_insert(0) += n;
        }
        let stats = running.stop();
        assert_eq!((stats.unknown_sender_packets, stats.inconsistent_messages), (0, 0));
        let refused = stats.malformed_packets + stats.unauthenticated_packets;
        assert_eq!(refused > 0, !is_fair, "{stats:?}");
    }
    assert!(delivered.values().all(|&n| n == 1));
    assert!(completed.iter().all(|label| delivered.contains_key(label)));
    let (n, all) = (completed.len() as u64, each * hosts as u64);
    assert!(n == all || (promises_bound::<T>(&protocol) && n > all / 4), "{n} of {all} completed");
    for arbiter in arbiters {
        arbiter.stop();
    }
}
