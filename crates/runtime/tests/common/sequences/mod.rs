//! Sequences of packets of a peer that has exchanged hellos with the node. Incarnations, transport
//! and addresses are right; all other fields are arbitrary. The test measures memory and work.
//!
//! There are three hosts, and arbiters if the transport has any. Node 0 is under test, node 1 is
//! another like it, and node 2 sends packets that follow from the input. The applications and the
//! network use no memory that is counted.
//!
//! **Memory.** The node's memory is limited by the bytes that it has received and the messages that
//! its application has submitted. It is at most [`A_BYTE`] for each byte received, [`A_SUBMISSION`]
//! for each message, and [`FIXED`]. Tables grow by doubling, so one iteration may allocate up to
//! twice the node's other memory.
//!
//! **Work.** An iteration allocates memory a bounded number of times for each packet received or
//! sent, or iterates over its state once; and it ends. An operation takes bounded processor time
//! for each iteration, for any history, and may iterate over all state once. If it takes more, the
//! minimum of several repetitions counts.

mod counting;
mod desk;
mod input;
mod operate;

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::registered::{Deployment, Site};
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::wire::{DatagramKind, Envelope, Incarnation, Protection, TransportId};
use rampmeter_runtime::{Datapath, Node, NodeConfig, SettingDigests};
use rampmeter_types::fabric::Spray;
use rampmeter_types::{Bytes, Endpoint, FabricFacts, NodeId, Rate, Span, Time};
use rustix::time::ClockId;

pub(crate) use counting::CountingAllocator;
use counting::{Counts, counted, counts, reset};
use desk::{Apps, InFlightPackets, NodeDatapath};
use input::{Input, Template};

pub(crate) const HOSTILE: NodeId = NodeId::new(2);
const HOSTS: u32 = 3;
const TRANSPORT: TransportId = TransportId(1);

/// Maximum bytes of memory per byte received.
const A_BYTE: u64 = 16;
/// Maximum bytes of memory per message submitted, without those of the application.
const A_SUBMISSION: u64 = 2_048;
/// Bytes of a submitted message per additional byte of memory: senders keep state for its packets.
const SUBMITTED_BYTES: u64 = 8;
/// Bytes of memory that a node may use at any time.
const FIXED: u64 = 64 << 10;
/// Maximum number of allocations of an iteration, for each packet, and bytes held for one more:
/// messages that are aborted are recorded.
const CALLS: u64 = 2_048;
const CALLS_A_PACKET: u64 = 64;
const BYTES_A_CALL: u64 = 64;
/// Maximum number of iterations at one instant.
const POLLS: u32 = 1_000;
/// Processor time of an operation, of each iteration, packet and message in it, and of each byte
/// held. Once in an operation a table may grow, and the state of unresponsive senders may be
/// dropped.
const AN_OPERATION: Span = Span::from_us(500);
const A_POLL: Span = Span::from_us(20);
const A_BYTE_HELD: Span = Span::from_ns(4);
/// Packets that the hostile node sends in a sequence, and iterations of a sequence.
const PACKETS: u32 = 20_000;
const EVENTS: u32 = 60_000;

/// Result of a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SequenceCost {
    /// Packets that the node has handled.
    pub(crate) packets: u64,
    /// Maximum bytes held for each byte received, in thousandths; maximum allocations for each
    /// packet of an iteration, and processor time of an iteration in nanoseconds.
    pub(crate) memory: u64,
    pub(crate) calls: u64,
    pub(crate) poll_ns: u64,
}

/// Runs the sequence that the bytes describe, of the transport that the first one selects.
#[allow(dead_code, reason = "tests go through all transports")]
pub(crate) fn sequence(bytes: &[u8]) -> SequenceCost {
    let [choice, rest @ ..] = bytes else { return SequenceCost::default() };
    let all = transports();
    let (_, run) = all[usize::from(*choice) % all.len()];
    run(rest)
}

/// Name of a transport, and the function that runs a sequence of it.
pub(crate) type NamedTransport = (&'static str, fn(&[u8]) -> SequenceCost);

/// Returns all transports that run between hosts.
pub(crate) fn transports() -> Vec<NamedTransport> {
    #[derive(Default)]
    struct All(Vec<NamedTransport>);

    impl Visitor for All {
        fn transport<T: RegisteredTransport>(&mut self) {
            self.0.push((T::NAME, run::<T>));
        }
    }

    let mut all = All::default();
    HostCatalogue::<Builtin>::visit(&mut all);
    all.0
}

fn run<T: RegisteredTransport>(bytes: &[u8]) -> SequenceCost {
    let mut bed = Testbed::new::<T>();
    let (tally, mut slow) = bed.run::<T>(bytes, None);
    // A machine with other load is slow once, not always. The clock of a thread excludes it, but is
    // slow to read.
    for _ in 0..4 {
        let Some(suspect) = slow else { return tally };
        bed = Testbed::new::<T>();
        bed.clock = ClockId::ThreadCPUTime;
        slow = bed.run::<T>(bytes, Some(suspect.at)).1;
    }
    assert!(slow.is_none(), "{}: {slow:?}", T::NAME);
    tally
}

/// An operation that has taken too long.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "it is printed")]
struct Slow {
    at: usize,
    op: u8,
    took: Span,
    polls: u64,
}

/// A node with any endpoint.
trait Turns {
    fn poll(&mut self, now: Time) -> Time;
    fn inconsistent(&self) -> u64;
}

impl<E: Endpoint> Turns for Node<E, NodeDatapath, Apps> {
    fn poll(&mut self, now: Time) -> Time {
        Node::poll(self, now).expect("no datapath fails")
    }

    fn inconsistent(&self) -> u64 {
        self.stats().inconsistent_messages
    }
}

fn node<E: Endpoint + 'static>(
    node: NodeId,
    n: usize,
    protocol: &Arc<E::Config>,
    rate: Rate,
    wire: &Rc<RefCell<InFlightPackets>>,
    apps: &Apps,
) -> Box<dyn Turns> {
    let config = NodeConfig {
        node,
        transport: TRANSPORT,
        incarnation: Incarnation::new(10 + node.get()),
        rate,
        burst: Bytes::new(3_000),
        spray: Spray::Random,
        run: 1,
        coalescing: Span::ZERO,
        busy_poll: Span::ZERO,
        agreement: SettingDigests::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        connect_timeout: Span::from_us(100_000),
        peers: vec![Some(None); n],
        seed: 1,
    };
    let datapath = NodeDatapath(Rc::clone(wire), node);
    Box::new(Node::<E, _, _>::new(config, Arc::clone(protocol), datapath, apps.clone(), Time::ZERO))
}

/// Input and output of a node.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    packets: u64,
    bytes: u64,
    messages: u64,
    message_bytes: u64,
}

/// Returns the number of nodes, and the parameters of the transport, which are made once.
fn protocol<T: RegisteredTransport>(rate: Rate) -> (usize, Arc<T::Config>) {
    type Configs = BTreeMap<&'static str, (usize, Rc<dyn Any>)>;
    thread_local! {
        static MADE: RefCell<Configs> = RefCell::default();
    }
    let make = || {
        let mtu = rate.tx_time(Bytes::new(1_500));
        let control_rtt = Span::from_us(50);
        let data_rtt = control_rtt + mtu * 4;
        let facts = FabricFacts {
            n_hosts: HOSTS,
            access_rate: rate,
            core_rate: None,
            data_rtt,
            control_rtt,
            abort_timeout_min: Span::ZERO,
        };
        let keys = T::Keys::default();
        let n = HOSTS as usize + T::needs(&keys, &facts).arbiters.len();
        let deployment = Deployment::Hosts(PacketSizes::new(1_360, 100));
        let config = T::configure(keys, &Site { facts, deployment, lower: None });
        let config: Rc<dyn Any> = Rc::new(Arc::new(config.expect("a transport of hosts")));
        (n, config)
    };
    MADE.with_borrow_mut(|made| {
        let (n, config) = made.entry(T::NAME).or_insert_with(make);
        let config = config.downcast_ref::<Arc<T::Config>>().expect("one transport has a name");
        (*n, Arc::clone(config))
    })
}

/// Three hosts and their arbiters.
struct Testbed {
    nodes: Vec<Option<Box<dyn Turns>>>,
    next: Vec<Time>,
    apps: Vec<Apps>,
    wire: Rc<RefCell<InFlightPackets>>,
    now: Time,
    /// Incarnation of the hostile node.
    restart: u32,
    packets_left: u32,
    events_left: u32,
    template: Option<Template>,
    /// Source of the hostile node's packets: itself or an arbiter.
    src: NodeId,
    /// Iterations of the node under test, packets and messages in them.
    polls: u64,
    /// Clock and processor time of the node's iterations in an operation.
    clock: ClockId,
    took: Span,
    is_touched: bool,
    tally: SequenceCost,
}

impl Testbed {
    fn new<T: RegisteredTransport>() -> Self {
        reset();
        let rate = Rate::from_gbps(10);
        let (n, config) = protocol::<T>(rate);
        let wire = Rc::new(RefCell::new(InFlightPackets::new(n)));
        let honest = |node: u32| NodeId::new(1 - node.min(1));
        let apps: Vec<Apps> = (0..n as u32).map(|node| Apps::new(honest(node))).collect();
        let make = |number: usize| {
            let (id, apps) = (NodeId::new(number as u32), &apps[number]);
            match id.get() {
                2 => None,
                0 => Some(counted(|| node::<T::Host>(id, n, &config, rate, &wire, apps))),
                1 => Some(node::<T::Host>(id, n, &config, rate, &wire, apps)),
                _ => Some(node::<T::Arbiter>(id, n, &config, rate, &wire, apps)),
            }
        };
        let nodes = (0..n).map(make).collect();
        let mut bed = Self {
            nodes,
            next: vec![Time::ZERO; n],
            apps,
            wire,
            now: Time::ZERO,
            restart: 1,
            packets_left: PACKETS,
            events_left: EVENTS,
            template: None,
            src: HOSTILE,
            polls: 0,
            clock: ClockId::Monotonic,
            took: Span::ZERO,
            is_touched: false,
            tally: SequenceCost::default(),
        };
        bed.run_until(Time::ZERO + Span::from_us(500));
        bed
    }

    /// Runs the operations that the bytes describe. Returns the first slow operation; with `only`,
    /// that operation if it is slow.
    fn run<T: RegisteredTransport>(
        &mut self,
        bytes: &[u8],
        only: Option<usize>,
    ) -> (SequenceCost, Option<Slow>) {
        let mut input = Input(bytes);
        let mut slow = None;
        while !input.is_over() && self.events_left > 0 {
            let (at, polls) = (bytes.len() - input.0.len(), self.polls);
            let held = counts().live;
            self.took = Span::ZERO;
            let op = input.u8();
            self.operate::<T>(op, &mut input);
            let (took, polls) = (self.took, self.polls - polls);
            self.tally.poll_ns = self.tally.poll_ns.max(took.as_ps() / 1_000 / polls.max(20));
            let walk = A_BYTE_HELD * counts().live.max(held).max(0) as u64;
            let is_slow = took > AN_OPERATION + A_POLL * polls + walk;
            if is_slow && only.is_none_or(|only| only == at) {
                slow = Some(Slow { at, op, took, polls });
                break;
            }
        }
        self.tally.packets = self.wire.borrow().received;
        self.look();
        (self.tally, slow)
    }

    /// Sends a packet to the node under test, and runs the node.
    fn send(&mut self, kind: DatagramKind, body: &[u8]) {
        let Some(left) = self.packets_left.checked_sub(1) else { return };
        (self.packets_left, self.is_touched) = (left, true);
        let (src, dst) = (self.src, NodeId::new(0));
        let src_incarnation = match src {
            HOSTILE => Incarnation::new(1_000 + self.restart),
            arbiter => Incarnation::new(10 + arbiter.get()),
        };
        let dst_incarnation = Some(Incarnation::new(10));
        let (transport, protection) = (TRANSPORT, Protection::Unprotected);
        let envelope =
            Envelope { transport, src, dst, src_incarnation, dst_incarnation, kind, protection };
        let mut bytes = [0; 1_472];
        let Ok(read) = envelope.encode(&mut bytes) else { return };
        let len = body.len().min(bytes.len() - read);
        bytes[read..read + len].copy_from_slice(&body[..len]);
        self.now += Span::from_us(1);
        self.wire.borrow_mut().put(self.now, 0, &bytes[..read + len]);
        self.next[0] = self.now;
        self.run_until(self.now);
    }

    fn wait(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Runs until an instant, or until there have been too many iterations.
    fn run_until(&mut self, end: Time) {
        let (mut at, mut polls) = (Time::ZERO, 0);
        let most = self.events_left.saturating_sub(2_000);
        loop {
            for idx in 0..self.nodes.len() {
                let arrival = Datapath::next_arrival(&NodeDatapath(
                    Rc::clone(&self.wire),
                    NodeId::new(idx as u32),
                ));
                self.next[idx] = self.next[idx].min(arrival);
            }
            let running = (0..self.nodes.len()).filter(|&idx| self.nodes[idx].is_some());
            let idx = running.min_by_key(|&idx| self.next[idx]).expect("there are nodes");
            if self.next[idx] > end || self.events_left <= most {
                break;
            }
            self.events_left = self.events_left.saturating_sub(1);
            let now = self.now.max(self.next[idx]);
            polls = if now == at { polls + 1 } else { 0 };
            assert!(polls < POLLS, "node {idx} does not end at {now}");
            (self.now, at) = (now, now);
            self.wire.borrow_mut().now = now;
            self.next[idx] = match idx {
                0 => self.poll_tested(),
                _ => self.nodes[idx].as_mut().expect("it runs").poll(now),
            };
            self.answer();
        }
        self.now = self.now.max(end);
    }

    /// Answers the hellos to the hostile node, as others do.
    fn answer(&mut self) {
        let mut wire = self.wire.borrow_mut();
        while let Some((dst, nonce)) = wire.hellos.pop() {
            let envelope = Envelope {
                transport: TRANSPORT,
                src: HOSTILE,
                dst,
                src_incarnation: Incarnation::new(1_000 + self.restart),
                dst_incarnation: Some(Incarnation::new(10 + dst.get())),
                kind: DatagramKind::HelloAck { nonce },
                protection: Protection::Unprotected,
            };
            let mut bytes = [0; Envelope::LEN_MAX];
            let len = envelope.encode(&mut bytes).expect("there is room");
            let now = wire.now;
            wire.put(now, dst.idx(), &bytes[..len]);
        }
    }

    /// Returns the input and output of the node under test, and the submissions of its application.
    fn seen(&self) -> Traffic {
        let wire = self.wire.borrow();
        let &InFlightPackets { received, bytes, sent, .. } = &*wire;
        let (messages, message_bytes) = self.apps[0].taken();
        Traffic { packets: received + sent, bytes, messages, message_bytes }
    }

    /// Runs an iteration of the node under test, and checks its memory and work.
    fn poll_tested(&mut self) -> Time {
        let (before, seen_before, now) = (counts(), self.seen(), self.now);
        let node = self.nodes[0].as_mut().expect("it is never stopped");
        let begin = read(self.clock);
        let next = counted(|| node.poll(now));
        self.took += read(self.clock) - begin;
        let (Counts { live, total, calls }, seen) = (counts(), self.seen());
        let (held, live) = (before.live.max(0) as u64, live.max(0) as u64);
        let (packets, messages) =
            (seen.packets - seen_before.packets, seen.messages - seen_before.messages);
        self.polls += 1 + packets + messages;
        let submitted = A_SUBMISSION * seen.messages + seen.message_bytes / SUBMITTED_BYTES;
        assert!(
            live <= FIXED + A_BYTE * seen.bytes + submitted,
            "{live} bytes held after {seen:?}"
        );
        let (n_asked, calls) = (total - before.total, calls - before.calls);
        let allowed = FIXED + 2 * (held + live) + A_BYTE * 1_500 * packets;
        assert!(
            n_asked <= allowed,
            "{n_asked} bytes asked for where {held} were held, with {packets} packets"
        );
        assert!(
            calls <= CALLS + CALLS_A_PACKET * (packets + messages) + held / BYTES_A_CALL,
            "memory was asked for {calls} times, with {packets} packets and {messages} messages"
        );
        let rest = live.saturating_sub(submitted + FIXED / 2);
        let tally = &mut self.tally;
        tally.memory = tally.memory.max(1_000 * rest / seen.bytes.max(1));
        tally.calls = tally.calls.max(calls.saturating_sub(256) / (packets + messages).max(1));
        next
    }

    /// Checks that honest nodes' views of one another are consistent.
    fn look(&self) {
        for (idx, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            assert!(idx == 0 && self.is_touched || node.inconsistent() == 0, "node {idx}");
        }
    }
}

fn read(clock: ClockId) -> Time {
    let time = rustix::time::clock_gettime(clock);
    Time::from_ps((time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) * 1_000)
}
