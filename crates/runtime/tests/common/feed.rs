//! A node whose network is the test: arriving packets are made by hand, and sent packets are
//! recorded.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use rampmeter_runtime::app::{Hub, HubHandle, Port, PortConfig};
use rampmeter_runtime::datapath::{ArrivedPacket, Route};
use rampmeter_runtime::wire::{
    DatagramKind, Envelope, Fragment, Incarnation, Protection, TransportId, for_each_bundled,
};
use rampmeter_runtime::{Datapath, Node, NodeConfig};
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Endpoint, Header, HostPolicy, MsgId, NodeId, Observation, Packet, PayloadRef, Priority,
    Protocol, Rate, Span, Time,
};

use super::SERVICE;

pub(crate) const ME: NodeId = NodeId::new(0);
pub(crate) const PEER: NodeId = NodeId::new(1);
const MY_LIFE: Incarnation = Incarnation::new(11);
const PEER_LIFE: Incarnation = Incarnation::new(22);
const TRANSPORT: TransportId = TransportId(1);
/// Maximum bytes that the node sends at once after a delay.
pub(crate) const BURST: u64 = 3_000;

/// Packets to arrive, and packets that the node has sent.
#[derive(Debug, Default)]
pub(crate) struct RecordedDatagrams {
    pub(crate) arriving: Vec<Vec<u8>>,
    pub(crate) sent: Vec<Vec<u8>>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct RecordingDatapath(pub(crate) Rc<RefCell<RecordedDatagrams>>);

impl Datapath for RecordingDatapath {
    fn datagram_max(&self) -> usize {
        1_472
    }

    fn overhead(&self) -> usize {
        28
    }

    fn send(&mut self, _route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let mut bytes = vec![0; self.datagram_max()];
        let len = write(&mut bytes);
        bytes.truncate(len);
        self.0.borrow_mut().sent.push(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(
        &mut self,
        _now: Time,
        mut each: impl FnMut(ArrivedPacket<'_>),
    ) -> io::Result<usize> {
        let arriving = std::mem::take(&mut self.0.borrow_mut().arriving);
        arriving.iter().for_each(|bytes| {
            each(ArrivedPacket { bytes, from: None, rail: 0, marks: Marks::NONE })
        });
        Ok(arriving.len())
    }
}

/// Returns a datagram of the peer's incarnation `src_life`.
pub(crate) fn datagram_of(src_life: Incarnation, kind: DatagramKind, body: &[u8]) -> Vec<u8> {
    datagram_from(PEER, src_life, kind, body)
}

/// Returns a datagram of a peer whose incarnation the node has.
pub(crate) fn datagram_of_end(src: NodeId, kind: DatagramKind, body: &[u8]) -> Vec<u8> {
    datagram_from(src, PEER_LIFE, kind, body)
}

fn datagram_from(
    src: NodeId,
    src_incarnation: Incarnation,
    kind: DatagramKind,
    body: &[u8],
) -> Vec<u8> {
    let dst_incarnation = Some(MY_LIFE);
    let protection = Protection::Unprotected;
    let envelope = Envelope {
        transport: TRANSPORT,
        src,
        dst: ME,
        src_incarnation,
        dst_incarnation,
        kind,
        protection,
    };
    let mut bytes = vec![0; Envelope::LEN_MAX];
    let len = envelope.encode(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes.extend(body);
    bytes
}

/// Returns a datagram of the peer whose incarnation the node has.
pub(crate) fn datagram(kind: DatagramKind, body: &[u8]) -> Vec<u8> {
    datagram_of(PEER_LIFE, kind, body)
}

/// Returns a data packet with this header: a whole message of `size` bytes.
pub(crate) fn whole_message(msg: MsgId, header: &impl Header, size: usize) -> Vec<u8> {
    let digest = Some(crc32c::crc32c(&vec![1; size]));
    let fragment = Fragment { service: SERVICE, offset: 0, size: size as u32, digest };
    let mut body = vec![0; header.wire_len()];
    header.encode(&mut body).unwrap();
    body.resize(body.len() + size, 1);
    datagram(DatagramKind::Data { msg, fragment }, &body)
}

/// A node that has exchanged hellos with one peer, and with arbiters if there are any, and its
/// application.
pub(crate) struct FedNode<E: Endpoint> {
    pub(crate) node: Node<E, RecordingDatapath, Hub>,
    pub(crate) feed: RecordingDatapath,
    pub(crate) handle: HubHandle,
    pub(crate) port: Option<Port>,
    pub(crate) now: Time,
}

impl<E: Endpoint> FedNode<E> {
    pub(crate) fn new(protocol: E::Config, rate: Rate, port: PortConfig) -> Self {
        Self::with_arbiters(0, protocol, rate, port)
    }

    /// Creates a node that batches packets if many arrive.
    pub(crate) fn with_coalescing(
        coalescing: Span,
        protocol: E::Config,
        rate: Rate,
        port: PortConfig,
    ) -> Self {
        Self::with(0, coalescing, protocol, rate, port)
    }

    pub(crate) fn with_arbiters(
        n_arbiters: u32,
        protocol: E::Config,
        rate: Rate,
        port: PortConfig,
    ) -> Self {
        Self::with(n_arbiters, Span::ZERO, protocol, rate, port)
    }

    fn with(
        n_arbiters: u32,
        coalescing: Span,
        protocol: E::Config,
        rate: Rate,
        port: PortConfig,
    ) -> Self {
        let config = NodeConfig {
            node: ME,
            transport: TRANSPORT,
            incarnation: MY_LIFE,
            rate,
            burst: Bytes::new(BURST),
            spray: rampmeter_types::fabric::Spray::Random,
            run: 1,
            coalescing,
            busy_poll: Span::ZERO,
            agreement: rampmeter_runtime::SettingDigests::default(),
            message_max: 1 << 20,
            connect_timeout: Span::from_us(50_000),
            peers: vec![Some(None); 2 + n_arbiters as usize],
            seed: 1,
        };
        let (hub, handle) = Hub::new().unwrap();
        let port = Some(handle.open(SERVICE, port).unwrap());
        let feed = RecordingDatapath::default();
        let node = Node::new(config, Arc::new(protocol), feed.clone(), hub, Time::ZERO);
        let mut this = Self { node, feed, handle, port, now: Time::ZERO };
        this.meet(1 + n_arbiters);
        this
    }

    /// Exchanges hellos: the node sends one to each end when it starts, and their answers have
    /// their incarnations.
    fn meet(&mut self, ends: u32) {
        self.step(None);
        let sent = self.take_sent();
        for end in (1..=ends).map(NodeId::new) {
            let nonce = sent.iter().find_map(|envelope| match envelope.kind {
                DatagramKind::Hello { nonce } if envelope.dst == end => Some(nonce),
                _ => None,
            });
            let here = DatagramKind::HelloAck {
                nonce: nonce.expect("a node that starts greets all others"),
            };
            self.step(Some(datagram_of_end(end, here, &[])));
        }
        assert_eq!(self.node.n_responsive_peers(), ends as usize);
        self.take_sent();
    }

    /// Delivers a datagram, if any, and runs the node.
    pub(crate) fn step(&mut self, bytes: Option<Vec<u8>>) {
        self.feed.0.borrow_mut().arriving.extend(bytes);
        for _ in 0..50 {
            self.now += Span::from_us(1);
            if self.node.poll(self.now).unwrap() > self.now {
                break;
            }
        }
    }

    /// Removes and returns the envelopes that the node has sent since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Envelope> {
        let sent = std::mem::take(&mut self.feed.0.borrow_mut().sent);
        sent.iter().map(|bytes| Envelope::decode(bytes).unwrap().0).collect()
    }

    /// As above, with the headers of packets of the transport. Packets of a bundle are listed
    /// separately.
    pub(crate) fn take_packets<H: Header>(&mut self) -> Vec<(Envelope, Option<H>)> {
        let sent = std::mem::take(&mut self.feed.0.borrow_mut().sent);
        let mut packets = Vec::new();
        for bytes in sent {
            let (envelope, read) = Envelope::decode(&bytes).unwrap();
            let header = |bytes: &[u8]| H::decode(bytes).unwrap().0;
            match envelope.kind {
                DatagramKind::Control { .. } | DatagramKind::Data { .. } => {
                    packets.push((envelope, Some(header(&bytes[read..]))));
                }
                DatagramKind::Bundle { n } => for_each_bundled(n, &bytes[read..], |msg, bytes| {
                    let envelope = Envelope { kind: DatagramKind::Control { msg }, ..envelope };
                    packets.push((envelope, Some(header(bytes))));
                })
                .unwrap(),
                _ => packets.push((envelope, None)),
            }
        }
        packets
    }
}

/// Returns a packet without payload, as the peer of the node receives it.
pub(crate) fn answer<H: Header>(envelope: &Envelope, header: H) -> Packet<H> {
    let msg = match envelope.kind {
        DatagramKind::Control { msg } => msg,
        kind => panic!("expected a control packet, got {kind:?}"),
    };
    Packet {
        payload: PayloadRef { msg, offset: 0, len: 0 },
        src: envelope.src,
        dst: envelope.dst,
        wire_bytes: 100,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
        header,
    }
}
