//! Bytes that change undetected by a packet's check: after the sender's node has read them and
//! before the receiver's has placed them. No application receives a changed message, and no sender
//! receives an acknowledgement of one. All other messages arrive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use crate::common::feed::*;
use crate::common::*;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::app::{Failure, Hub, Port, PortConfig};
use rampmeter_runtime::datapath::mem::{Impairments, MemDatapath, MemNet};
use rampmeter_runtime::datapath::{ArrivedPacket, Route};
use rampmeter_runtime::wire::{DatagramKind, Envelope, Fragment, Incarnation, TransportId};
use rampmeter_runtime::{Datapath, Node, NodeConfig, Outcome};
use rampmeter_testkit::network::n_arbiters;
use rampmeter_testkit::{Body, Case, Suite};
use rampmeter_types::{
    Bytes, Header, Message, MsgId, NodeId, Observation, Protocol, Purpose, Rng, Span, TenantId,
    Time, Transport,
};

/// Changed messages.
type ChangedMessages = Rc<RefCell<BTreeSet<MsgId>>>;

/// Datapath that changes arriving data packets.
struct CorruptingDatapath {
    inner: MemDatapath,
    chance: Rc<Cell<f64>>,
    rng: Rng,
    changed: ChangedMessages,
}

impl CorruptingDatapath {
    /// Changes a byte of the payload, or its offset, or the digest.
    fn change<H: Header>(bytes: &mut [u8], rng: &mut Rng) -> Option<MsgId> {
        let (mut envelope, read) = Envelope::decode(bytes).ok()?;
        let DatagramKind::Data { msg, ref mut fragment } = envelope.kind else { return None };
        let (_, header) = H::decode(&bytes[read..]).ok()?;
        let (payload, size) = (read + header..bytes.len(), fragment.size as usize);
        match rng.uniform_below(3) {
            0 => {
                bytes[payload.start + rng.uniform_below(payload.len())] ^= 1 << rng.uniform_below(8)
            }
            1 => fragment.offset = rng.uniform_below(size - payload.len() + 1) as u32,
            _ => {
                fragment.digest = fragment.digest.map(|digest| digest ^ 1 << rng.uniform_below(32))
            }
        }
        envelope.encode(bytes).ok()?;
        Some(msg)
    }
}

/// Datapath for packets with headers of one kind.
struct Of<H>(CorruptingDatapath, std::marker::PhantomData<H>);

impl<H: Header> Datapath for Of<H> {
    fn datagram_max(&self) -> usize {
        self.0.inner.datagram_max()
    }

    fn overhead(&self) -> usize {
        self.0.inner.overhead()
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        self.0.inner.send(route, write)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.inner.flush()
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let CorruptingDatapath { inner, chance, rng, changed } = &mut self.0;
        inner.receive(now, |arrived| {
            let mut bytes = arrived.bytes.to_vec();
            if rng.bernoulli(chance.get()) {
                changed.borrow_mut().extend(CorruptingDatapath::change::<H>(&mut bytes, rng));
            }
            each(ArrivedPacket { bytes: &bytes, ..arrived });
        })
    }

    fn next_arrival(&self) -> Time {
        self.0.inner.next_arrival()
    }
}

const SENDER: u32 = 0;
const RECEIVER: u32 = 1;
const LIFE: u32 = 5;
const MESSAGES: u64 = 60;

/// Node with a datapath that may change packets.
type TestNode<T> = Node<<T as Transport>::Host, Of<<T as Transport>::Header>, Hub>;

/// Two nodes, of which the second receives changed packets.
struct Pair<T: RegisteredTransport> {
    net: MemNet,
    nodes: Vec<(TestNode<T>, Port)>,
    now: Time,
    next: [Time; 2],
    seen: ApplicationEvents,
}

impl<T: RegisteredTransport> Pair<T> {
    fn new(keys: &T::Keys, chance: &Rc<Cell<f64>>, changed: &ChangedMessages, seed: u64) -> Self {
        let facts = facts(2, 1_000, Span::from_us(100));
        let weather =
            Impairments { delay: Span::from_us(30), loss: 0.01, duplicate: 0.05, reorder: 0.1 };
        let net = MemNet::new(2, weather, seed);
        let node = |node: u32| {
            let config = NodeConfig {
                node: NodeId::new(node),
                transport: TransportId(1),
                incarnation: Incarnation::new(LIFE),
                rate: facts.access_rate,
                burst: Bytes::new(3_000),
                spray: rampmeter_types::fabric::Spray::Random,
                run: 1,
                coalescing: Span::ZERO,
                busy_poll: Span::ZERO,
                agreement: rampmeter_runtime::SettingDigests::default(),
                message_max: NodeConfig::MESSAGE_MAX,
                connect_timeout: Span::from_us(2_000_000),
                peers: vec![Some(None); 2],
                seed,
            };
            let (hub, handle) = Hub::new().unwrap();
            let port = handle.open(SERVICE, PortConfig::default()).unwrap();
            let datapath = CorruptingDatapath {
                inner: net.datapath(NodeId::new(node)),
                chance: if node == RECEIVER { Rc::clone(chance) } else { Rc::default() },
                rng: Rng::new(seed, u64::from(node), Purpose::Test),
                changed: Rc::clone(changed),
            };
            let datapath = Of(datapath, std::marker::PhantomData);
            let protocol = Arc::new(with_keys::<T>(keys, &facts));
            (Node::new(config, protocol, datapath, hub, Time::ZERO), port)
        };
        let nodes = vec![node(SENDER), node(RECEIVER)];
        Self {
            net,
            nodes,
            now: Time::ZERO,
            next: [Time::ZERO; 2],
            seen: ApplicationEvents::default(),
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            for (next, (node, _)) in self.next.iter_mut().zip(&self.nodes) {
                *next = (*next).min(node.datapath().next_arrival());
            }
            let idx = usize::from(self.next[1] < self.next[0]);
            if self.next[idx] > end {
                break;
            }
            self.now = self.now.max(self.next[idx]);
            self.net.set_now(self.now);
            let (node, port) = &mut self.nodes[idx];
            self.next[idx] = node.poll(self.now).unwrap();
            while let Some(completion) = port.try_next() {
                self.seen.note(idx as u32, LIFE, completion);
            }
        }
        self.now = self.now.max(end);
    }
}

/// Every transport on hosts that needs no arbiter.
#[derive(Clone, Copy)]
struct Corrupt;

impl Body for Corrupt {
    const NAME: &'static str = "corrupt";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        if n_arbiters::<T>(&case.keys, &facts(2, 1_000, Span::from_us(100))) == 0 {
            case.each_seed(0..5, |seed| changes_are_found::<T>(&case.keys, seed));
        }
    }
}

fn changes_are_found<T: RegisteredTransport>(keys: &T::Keys, seed: u64) {
    let (chance, changed) = (Rc::new(Cell::new(0.0)), ChangedMessages::default());
    let mut pair = Pair::<T>::new(keys, &chance, &changed, seed);
    pair.run_until(Time::ZERO + Span::from_us(10_000));
    chance.set(0.01);
    let mut rng = Rng::new(seed, 7, Purpose::Test);
    for number in 0..MESSAGES {
        let bytes = message(SENDER, LIFE, number, mixed_size(&mut rng));
        pair.nodes[0].1.submit(NodeId::new(RECEIVER), SERVICE, bytes).unwrap();
        pair.next[0] = pair.now;
        pair.run_until(pair.now + Span::from_us(rng.uniform_below(2_000) as u64));
    }
    pair.run_until(pair.now + Span::from_us(20_000_000));
    let (stats, changed) = (pair.nodes[1].0.stats(), changed.borrow().len());
    let has_bound = pair.nodes[0].0.endpoint().latency_bound().is_some();
    assert_eq!(pair.seen.outcomes.len() as u64, MESSAGES, "{stats:?}");
    let is_corrupt = |outcome: &&Outcome| **outcome == Outcome::Failed(Failure::Corrupt);
    let corrupt = pair.seen.outcomes.values().filter(is_corrupt).count();
    for (label, outcome) in &pair.seen.outcomes {
        // All delivered messages have been compared byte by byte.
        let delivered = pair.seen.delivered.get(label).copied().unwrap_or_default();
        match outcome {
            Outcome::Completed => assert_eq!(delivered, 1, "message {}", label.2),
            Outcome::Failed(Failure::Corrupt) => assert!(delivered <= 1),
            // After a first segment at a wrong offset TCP ignores segments at the right offsets. A
            // failed message closes its connection, and other messages on that connection fail too.
            Outcome::Failed(Failure::Unreachable) if changed > 0 => assert!(delivered <= 1),
            other => assert!(has_bound && delivered <= 1, "message {}: {other:?}", label.2),
        }
    }
    let completed = pair.seen.outcomes.values().filter(|o| **o == Outcome::Completed).count();
    assert!(has_bound || completed as u64 > MESSAGES / 2, "{completed} completed");
    assert!(corrupt <= changed, "{corrupt} of {changed} messages");
    assert!(
        has_bound || (stats.corrupt_messages >= corrupt as u64 && stats.inconsistent_messages == 0),
        "{stats:?}"
    );
    assert!(changed < 5 || has_bound || corrupt > 0, "{changed} messages were changed");
    // Some endpoints check for aborted messages only when a packet arrives.
    chance.set(0.0);
    for number in MESSAGES..MESSAGES + 5 {
        let bytes = message(SENDER, LIFE, number, 1_000);
        pair.nodes[0].1.submit(NodeId::new(RECEIVER), SERVICE, bytes).unwrap();
        pair.next[0] = pair.now;
        pair.run_until(pair.now + Span::from_us(20_000_000));
    }
    assert_eq!(pair.nodes[1].0.messages().receiving, 0, "nothing is left of any message");
}

/// A node that receives a message of one packet with a wrong digest reports it, and accepts a
/// correct packet later.
fn a_wrong_digest_is_reported<T: RegisteredTransport>(keys: &T::Keys) {
    const SIZE: usize = 1_000;
    let facts = facts(2, 1_000, Span::from_us(100));
    let protocol = || with_keys::<T>(keys, &facts);
    let mut fed = FedNode::<T::Host>::new(protocol(), facts.access_rate, PortConfig::default());
    let rng = Rng::new(1, 1, Purpose::Endpoint);
    let mut peer = T::Host::new(Arc::new(protocol()), PEER, rng, fed.now);
    let msg = MsgId::new(3);
    let size = Bytes::new(SIZE as u64);
    let tenant = TenantId::default();
    peer.submit(fed.now, Message { id: msg, dst: ME, size, deadline: Time::NEVER, tenant });
    let data = std::iter::from_fn(|| peer.poll_transmit(fed.now)).find(|p| p.payload.len > 0);
    // Others send a request first.
    let Some(data) = data else { return };
    let mut wrong = whole_message(msg, &data.header, SIZE);
    *wrong.last_mut().unwrap() ^= 1;
    for n in 1..=3 {
        fed.step(Some(wrong.clone()));
        let sent = fed.take_sent();
        let is_reported = |envelope: &Envelope| envelope.kind == DatagramKind::Corrupt { msg };
        assert_eq!(sent.iter().filter(|envelope| is_reported(envelope)).count(), 1, "{sent:?}");
        assert!(sent.iter().all(is_reported), "the peer receives no report: {sent:?}");
        assert_eq!((fed.node.stats().corrupt_messages, fed.node.messages().receiving), (n, 0));
    }
    fed.step(Some(whole_message(msg, &data.header, SIZE)));
    assert_eq!(fed.node.stats().messages_delivered, 1);
    // A copy of the wrong one is a duplicate now.
    fed.step(Some(wrong));
    assert_eq!((fed.node.stats().corrupt_messages, fed.node.stats().messages_delivered), (3, 1));
}

/// Every transport reports it.
#[derive(Clone, Copy)]
struct ReportVisitor;

impl Body for ReportVisitor {
    const NAME: &'static str = "reported";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        if n_arbiters::<T>(&case.keys, &facts(2, 1_000, Span::from_us(100))) == 0 {
            a_wrong_digest_is_reported::<T>(&case.keys);
        }
    }
}

/// All data of a message without a digest: no node sends that.
fn messages_need_a_digest() {
    use rampmeter_proto::phost::wire::PhostHeader;
    use rampmeter_proto::phost::{PhostHost, PhostTransport};
    let facts = facts(2, 1_000, Span::from_us(100));
    let protocol = protocol::<PhostTransport>(&facts);
    let mut fed = FedNode::<PhostHost>::new(protocol, facts.access_rate, PortConfig::default());
    let header = PhostHeader::Free { flow: 0, tx_slot: 0, seq: 0, size: 10 };
    let mut body = vec![0; header.wire_len()];
    header.encode(&mut body).unwrap();
    body.resize(body.len() + 10, 1);
    let fragment = Fragment { service: SERVICE, offset: 0, size: 10, digest: None };
    fed.step(Some(datagram(DatagramKind::Data { msg: MsgId::new(0), fragment }, &body)));
    assert_eq!((fed.node.stats().corrupt_messages, fed.node.stats().messages_delivered), (1, 0));
}

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .each_preset::<HostCatalogue<Builtin>, _>(Corrupt)
        .each_preset::<HostCatalogue<Builtin>, _>(ReportVisitor)
        .with_test("messages_need_a_digest", messages_need_a_digest)
}
