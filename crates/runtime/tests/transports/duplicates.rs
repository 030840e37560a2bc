//! Packets of delivered messages, whose acknowledgement was lost: they are answered in any state of
//! their application.

use std::sync::Arc;

use crate::common::feed::*;
use crate::common::*;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::app::PortConfig;
use rampmeter_runtime::wire::DatagramKind;
use rampmeter_testkit::network::{n_arbiters, promises_bound};
use rampmeter_testkit::{Body, Case, Suite};
use rampmeter_types::{
    Bytes, Event, FabricFacts, Header, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rng, Span,
};

const SIZE: u64 = 1_000;
const MSG: MsgId = MsgId::new(3);

/// Behaviour of the application after the message has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum App {
    /// The application is stalled, and there is no memory for another message.
    IsFull,
    IsGone,
}

/// A node, and as its peer an endpoint with its arbiters, without delay between them.
struct Pair<T: RegisteredTransport> {
    fed: FedNode<T::Host>,
    peer: T::Host,
    arbiters: Vec<T::Arbiter>,
    /// Events of the peer about its message.
    events: Vec<Event>,
    has_bound: bool,
}

impl<T: RegisteredTransport> Pair<T> {
    fn new(keys: &T::Keys) -> Self {
        let facts: FabricFacts = facts(2, 1_000, Span::from_us(100));
        let protocol = || with_keys::<T>(keys, &facts);
        let config = Arc::new(protocol());
        let port = PortConfig { depth: 1, budget: SIZE };
        let (n_arbiters, rate) = (n_arbiters::<T>(keys, &facts), facts.access_rate);
        let fed = FedNode::<T::Host>::with_arbiters(n_arbiters, protocol(), rate, port);
        let rng = |node: u32| Rng::new(1, node.into(), Purpose::Endpoint);
        let arbiter = |number: u32| {
            let node = 2 + number;
            T::arbiter(Arc::clone(&config), number, NodeId::new(node), rng(node), fed.now)
        };
        Self {
            peer: T::Host::new(Arc::clone(&config), PEER, rng(1), fed.now),
            arbiters: (0..n_arbiters).map(arbiter).collect(),
            events: Vec::new(),
            has_bound: promises_bound::<T>(&config),
            fed,
        }
    }

    /// Runs all work that is due at all ends. Returns the packets from the peer to the node.
    fn poll(&mut self) -> Vec<Packet<T::Header>> {
        self.fed.now += Span::from_us(10);
        self.fed.step(None);
        self.take_answers();
        let now = self.fed.now;
        if self.peer.poll_timeout() <= now {
            self.peer.handle_timeout(now);
        }
        let mut to_node = Vec::new();
        while let Some(packet) = self.peer.poll_transmit(now) {
            match (packet.dst.idx()).checked_sub(2) {
                Some(number) => {
                    self.arbiters[number].handle_packet(now, &packet);
                }
                None => to_node.push(packet),
            }
        }
        let mut of_arbiters = Vec::new();
        for arbiter in &mut self.arbiters {
            if arbiter.poll_timeout() <= now {
                arbiter.handle_timeout(now);
            }
            of_arbiters.extend(std::iter::from_fn(|| arbiter.poll_transmit(now)));
        }
        for packet in of_arbiters {
            match packet.dst {
                PEER => drop(self.peer.handle_packet(now, &packet)),
                ME => self.exchange(&packet),
                _ => {}
            }
        }
        self.events.extend(std::iter::from_fn(|| self.peer.poll_event()));
        to_node
    }

    /// Passes a packet to the node, and its answers to the peer or its arbiter.
    fn exchange(&mut self, packet: &Packet<T::Header>) {
        self.fed.step(Some(datagram_with(packet)));
        self.take_answers();
    }

    fn take_answers(&mut self) {
        for (envelope, header) in self.fed.take_packets::<T::Header>() {
            assert!(!matches!(envelope.kind, DatagramKind::Refused { .. }));
            if let Some(header) = header {
                let answer = answer(&envelope, header);
                match answer.dst.idx().checked_sub(2) {
                    Some(number) => self.arbiters[number].handle_packet(self.fed.now, &answer),
                    None => self.peer.handle_packet(self.fed.now, &answer),
                };
            }
        }
    }

    /// Runs until the peer sends the message, which is one packet.
    fn first_data(&mut self) -> Packet<T::Header> {
        self.peer.submit(self.fed.now, Message::new(MSG, ME, Bytes::new(SIZE)));
        for _ in 0..100_000 {
            for packet in self.poll() {
                if packet.payload.len > 0 {
                    return packet;
                }
                self.exchange(&packet);
            }
        }
        panic!("nothing of the message was sent");
    }
}

/// Returns the packet as a datagram; its payload is the whole message.
fn datagram_with<H: Header>(packet: &Packet<H>) -> Vec<u8> {
    if packet.payload.len > 0 {
        return whole_message(MSG, &packet.header, SIZE as usize);
    }
    let mut body = vec![0; packet.header.wire_len()];
    packet.header.encode(&mut body).unwrap();
    datagram_of_end(packet.src, DatagramKind::Control { msg: packet.payload.msg }, &body)
}

/// A message arrives, and the node's answer is lost. Its sender receives another answer, even if
/// its application is stalled or has ended. Copies of the packet are not refused, for longer than
/// nodes wait for applications.
fn answers_copies<T: RegisteredTransport>(keys: &T::Keys, app: App) {
    let mut pair = Pair::<T>::new(keys);
    let data = pair.first_data();
    pair.fed.step(Some(datagram_with(&data)));
    assert_eq!(pair.fed.node.stats().messages_delivered, 1);
    if app == App::IsGone {
        pair.fed.port = None;
    }
    pair.fed.take_sent();
    for _ in 0..200_000 {
        pair.poll().iter().for_each(|packet| pair.exchange(packet));
        if !pair.events.is_empty() {
            break;
        }
    }
    // A sender with a promised bound may report only that the bound has passed.
    let failed = [Event::Failed { msg: MSG }];
    let is_fine =
        pair.events == [Event::Completed { msg: MSG }] || (pair.has_bound && pair.events == failed);
    assert!(is_fine, "{app:?}: {:?}", pair.events);
    let before = pair.fed.node.stats().payload_duplicate_bytes;
    for copies in 1..=10 {
        pair.fed.now += Span::from_us(500_000);
        pair.fed.step(Some(datagram_with(&data)));
        for envelope in pair.fed.take_sent() {
            assert!(
                !matches!(envelope.kind, DatagramKind::Refused { .. }),
                "after {copies} copies"
            );
        }
    }
    let stats = pair.fed.node.stats();
    assert_eq!((stats.no_memory_packets, stats.messages_delivered), (0, 1));
    assert_eq!(stats.payload_received_bytes, SIZE);
    // Receivers that reserve ignore packets after the end of a reservation.
    let duplicate = stats.payload_duplicate_bytes - before;
    assert!(duplicate == 10 * SIZE || (pair.has_bound && duplicate == 0), "{duplicate} bytes");
}

/// Every transport answers copies of delivered messages.
#[derive(Clone, Copy)]
struct Duplicates;

impl Body for Duplicates {
    const NAME: &'static str = "duplicates";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        for app in [App::IsFull, App::IsGone] {
            answers_copies::<T>(&case.keys, app);
        }
    }
}

pub(crate) fn add(suite: Suite) -> Suite {
    suite.each_preset::<HostCatalogue<Builtin>, _>(Duplicates)
}
