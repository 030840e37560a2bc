//! A node among peers that send anything at all: it answers, counts and goes on, and the messages
//! that it holds stay within the limits of its applications.

mod common;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use common::*;
use proptest::prelude::*;
use rampmeter_core::{Bytes, Endpoint, Header, MsgId, NodeId, Span, Time};
use rampmeter_proto::dcpim::DcpimHost;
use rampmeter_proto::dcpim::wire::DcpimHeader;
use rampmeter_proto::fastpass::FastpassHost;
use rampmeter_proto::fastpass::wire::FastpassHeader;
use rampmeter_proto::phost::PhostHost;
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_runtime::app::{Hub, PortConfig};
use rampmeter_runtime::datapath::{Arrived, Route};
use rampmeter_runtime::wire::{Envelope, Fragment, Incarnation, Kind, TransportId};
use rampmeter_runtime::{Datapath, Node, NodeConfig};

const ME: NodeId = NodeId::new(0);
const PEER: NodeId = NodeId::new(1);
const MY_LIFE: Incarnation = Incarnation::new(11);
const PEER_LIFE: Incarnation = Incarnation::new(22);
const TRANSPORT: TransportId = TransportId(1);

/// What is to arrive, and what the node has sent.
#[derive(Debug, Default)]
struct Wire {
    arriving: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

#[derive(Debug, Default, Clone)]
struct Feed(Rc<RefCell<Wire>>);

impl Datapath for Feed {
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

    fn receive(&mut self, _now: Time, mut each: impl FnMut(Arrived<'_>)) -> io::Result<usize> {
        let arriving = std::mem::take(&mut self.0.borrow_mut().arriving);
        arriving.iter().for_each(|bytes| each(Arrived { bytes, from: None }));
        Ok(arriving.len())
    }
}

fn datagram(src_life: Incarnation, dst_life: Incarnation, kind: Kind, body: &[u8]) -> Vec<u8> {
    let dst_life = Some(dst_life);
    let envelope = Envelope { transport: TRANSPORT, src: PEER, dst: ME, src_life, dst_life, kind };
    let mut bytes = vec![0; Envelope::LEN_MAX];
    let len = envelope.encode(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes.extend(body);
    bytes
}

/// One thing that the peer does.
#[derive(Clone, Debug)]
enum Act {
    /// Bytes without sense.
    Noise(Vec<u8>),
    /// A good envelope around anything.
    Control {
        msg: u32,
        body: Vec<u8>,
    },
    Data {
        msg: u32,
        fragment: Fragment,
        body: Vec<u8>,
    },
    /// The peer has another life.
    Stranger {
        life: u32,
        body: Vec<u8>,
    },
    Refuse(u32),
    Answer(u32),
    /// The node's application sends something to the peer.
    Submit(usize),
    Wait(u64),
}

/// A header's encoding with some bytes changed, or bytes without sense.
fn bodies<H: Header>() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let random = prop::collection::vec(any::<u8>(), 0..60);
    (1u8..12, random, edits).prop_map(|(code, mut bytes, edits)| {
        bytes.insert(0, code);
        // Small numbers are those that a protocol uses: slots, sequence numbers.
        for byte in bytes.iter_mut().skip(1) {
            *byte %= 3;
        }
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok((header, read)) = H::decode(&bytes) {
            let mut again = vec![0; header.wire_len()];
            header.encode(&mut again).unwrap();
            assert_eq!(again, bytes[..read]);
        }
        bytes
    })
}

fn acts<H: Header + 'static>() -> impl Strategy<Value = Vec<Act>> {
    let fragment = (0u16..9, 0u32..4_000, 0u32..4_000)
        .prop_map(|(service, offset, size)| Fragment { service, offset, size });
    let act = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Act::Noise),
        6 => (0u32..4, bodies::<H>()).prop_map(|(msg, body)| Act::Control { msg, body }),
        6 => (0u32..4, fragment, bodies::<H>())
            .prop_map(|(msg, fragment, body)| Act::Data { msg, fragment, body }),
        1 => (1u32..4, bodies::<H>()).prop_map(|(life, body)| Act::Stranger { life, body }),
        1 => (0u32..4).prop_map(Act::Refuse),
        1 => any::<u32>().prop_map(Act::Answer),
        2 => (1usize..9_000).prop_map(Act::Submit),
        2 => (0u64..5_000).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 0..120)
}

fn withstands<E: Endpoint>(protocol: E::Config, acts: Vec<Act>) {
    let config = NodeConfig {
        node: ME,
        transport: TRANSPORT,
        incarnation: MY_LIFE,
        rate: facts(2, 1_000, Span::from_us(100)).access_rate,
        burst: Bytes::new(3_000),
        message_max: 1 << 20,
        patience: Span::from_us(50_000),
        peers: vec![Some(None); 2],
        seed: 1,
    };
    let (hub, handle) = Hub::new().unwrap();
    let mut port = handle.open(7, PortConfig { depth: 32, budget: 20_000 }).unwrap();
    let feed = Feed::default();
    let mut node = Node::<E, _, _>::new(config, Arc::new(protocol), feed.clone(), hub, Time::ZERO);
    let mut now = Time::ZERO;
    let step = |now: &mut Time, node: &mut Node<E, Feed, Hub>, bytes: Option<Vec<u8>>| {
        feed.0.borrow_mut().arriving.extend(bytes);
        for _ in 0..50 {
            *now = (*now + Span::from_us(1)).max(*now);
            if node.turn(*now).unwrap() > *now {
                break;
            }
        }
    };
    // The node learns the peer's incarnation: its hello is answered.
    let hello = datagram(PEER_LIFE, MY_LIFE, Kind::Hello { nonce: 5 }, &[]);
    step(&mut now, &mut node, Some(hello));
    let nonce = feed.0.borrow().sent.iter().find_map(|bytes| {
        let (envelope, _) = Envelope::decode(bytes).unwrap();
        match envelope.kind {
            Kind::Hello { nonce } => Some(nonce),
            _ => None,
        }
    });
    let here = Kind::Here { nonce: nonce.expect("a node greets those who greet it") };
    step(&mut now, &mut node, Some(datagram(PEER_LIFE, MY_LIFE, here, &[])));
    assert_eq!(node.n_peers_known(), 1);
    let mut submitted = 0;
    for act in acts {
        let good = |kind, body: &[u8]| Some(datagram(PEER_LIFE, MY_LIFE, kind, body));
        let bytes = match act {
            Act::Noise(bytes) => Some(bytes),
            Act::Control { msg, body } => good(Kind::Control { msg: MsgId::new(msg) }, &body),
            Act::Data { msg, fragment, body } => {
                good(Kind::Data { msg: MsgId::new(msg), fragment }, &body)
            }
            Act::Stranger { life, body } => {
                let kind = Kind::Control { msg: MsgId::new(0) };
                Some(datagram(Incarnation::new(life), MY_LIFE, kind, &body))
            }
            Act::Refuse(msg) => good(Kind::Refused { msg: MsgId::new(msg) }, &[]),
            Act::Answer(nonce) => good(Kind::Here { nonce }, &[]),
            Act::Submit(size) => {
                submitted += u64::from(port.submit(PEER, 7, vec![1; size]).is_ok());
                None
            }
            Act::Wait(us) => {
                now += Span::from_us(us);
                None
            }
        };
        step(&mut now, &mut node, bytes);
        feed.0.borrow_mut().sent.clear();
        while port.try_next().is_some() {}
        let (sending, waiting, arriving) = node.messages();
        // The budget holds at least a byte of each message that arrives.
        assert!(sending + waiting <= 32 && arriving <= 20_000, "{:?}", node.messages());
    }
    let stats = node.stats();
    assert!(stats.messages_submitted == submitted, "{stats:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn dcpim_withstands_anything(acts in acts::<DcpimHeader>()) {
        withstands::<DcpimHost>(dcpim(&facts(2, 1_000, Span::from_us(100))), acts);
    }

    #[test]
    fn phost_withstands_anything(acts in acts::<PhostHeader>()) {
        withstands::<PhostHost>(phost(&facts(2, 1_000, Span::from_us(100))), acts);
    }

    #[test]
    fn fastpass_withstands_anything(acts in acts::<FastpassHeader>()) {
        withstands::<FastpassHost>(fastpass(&facts(2, 1_000, Span::from_us(100))), acts);
    }
}
