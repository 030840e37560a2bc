//! A node among peers that send arbitrary packets: it answers, counts and continues, and its
//! messages stay within the limits of its applications.

use crate::common::feed::*;
use crate::common::*;
use proptest::prelude::*;
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_proto::phost::{PhostHost, PhostTransport};
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::NodeConfig;
use rampmeter_runtime::app::PortConfig;
use rampmeter_runtime::wire::{DatagramKind, Fragment, Incarnation};
use rampmeter_testkit::bodies::test_sample;
use rampmeter_testkit::{Body, Case, Suite};
use rampmeter_types::{Bytes, Endpoint, Header, MsgId, Observation, Span};

/// An action of the peer.
#[derive(Clone, Debug)]
enum Act {
    /// Random bytes.
    Noise(Vec<u8>),
    /// A valid envelope around arbitrary bytes.
    Control {
        msg: u32,
        body: Vec<u8>,
    },
    Data {
        msg: u32,
        fragment: Fragment,
        body: Vec<u8>,
    },
    /// The peer has another incarnation.
    Stranger {
        incarnation: u32,
        body: Vec<u8>,
    },
    Refuse(u32),
    Spoil(u32),
    Answer(u32),
    /// The node's application sends a message to the peer.
    Submit(usize),
    Wait(u64),
}

/// Returns a header's encoding with some bytes changed, or random bytes.
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
    let fragment = (0u16..9, 0u32..4_000, 0u32..4_000, any::<Option<u32>>())
        .prop_map(|(service, offset, size, digest)| Fragment { service, offset, size, digest });
    let act = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Act::Noise),
        6 => (0u32..4, bodies::<H>()).prop_map(|(msg, body)| Act::Control { msg, body }),
        6 => (0u32..4, fragment, bodies::<H>())
            .prop_map(|(msg, fragment, body)| Act::Data { msg, fragment, body }),
        1 => (1u32..4, bodies::<H>())
            .prop_map(|(incarnation, body)| Act::Stranger { incarnation, body }),
        1 => (0u32..4).prop_map(Act::Refuse),
        1 => (0u32..4).prop_map(Act::Spoil),
        1 => any::<u32>().prop_map(Act::Answer),
        2 => (1usize..9_000).prop_map(Act::Submit),
        2 => (0u64..5_000).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 0..120)
}

fn withstands<E: Endpoint>(protocol: E::Config, acts: Vec<Act>) {
    let rate = facts(2, 1_000, Span::from_us(100)).access_rate;
    let mut fed = FedNode::<E>::new(protocol, rate, PortConfig { depth: 32, budget: 20_000 });
    let mut submitted = 0;
    for act in acts {
        let good = |kind, body: &[u8]| Some(datagram(kind, body));
        let port = fed.port.as_mut().unwrap();
        let bytes = match act {
            Act::Noise(bytes) => Some(bytes),
            Act::Control { msg, body } => {
                good(DatagramKind::Control { msg: MsgId::new(msg) }, &body)
            }
            Act::Data { msg, mut fragment, body } => {
                // Every other digest would be correct if the packet were the whole message.
                if let Some(digest) =
                    fragment.digest.as_mut().filter(|digest| digest.is_multiple_of(2))
                    && let Ok((_, read)) = E::Header::decode(&body)
                {
                    *digest = crc32c::crc32c(&body[read..]);
                }
                good(DatagramKind::Data { msg: MsgId::new(msg), fragment }, &body)
            }
            Act::Stranger { incarnation, body } => {
                let kind = DatagramKind::Control { msg: MsgId::new(0) };
                Some(datagram_of(Incarnation::new(incarnation), kind, &body))
            }
            Act::Refuse(msg) => good(DatagramKind::Refused { msg: MsgId::new(msg) }, &[]),
            Act::Spoil(msg) => good(DatagramKind::Corrupt { msg: MsgId::new(msg) }, &[]),
            Act::Answer(nonce) => good(DatagramKind::HelloAck { nonce }, &[]),
            Act::Submit(size) => {
                submitted += u64::from(port.submit(PEER, SERVICE, vec![1; size]).is_ok());
                None
            }
            Act::Wait(us) => {
                fed.now += Span::from_us(us);
                None
            }
        };
        fed.step(bytes);
        fed.take_sent();
        let port = fed.port.as_mut().unwrap();
        while port.try_next().is_some() {}
        let messages = fed.node.messages();
        // The budget holds at least a byte of each message that arrives.
        assert!(messages.sending + messages.queued <= 32, "{messages:?}");
        assert!(messages.receiving <= 20_000, "{messages:?}");
    }
    let stats = fed.node.stats();
    assert!(stats.messages_submitted == submitted, "{stats:?}");
}

/// Announcements of a peer use memory before any application is involved.
fn announcements_of_a_peer_are_limited() {
    let facts = facts(2, 1_000, Span::from_us(100));
    let mut fed = FedNode::<PhostHost>::new(
        protocol::<PhostTransport>(&facts),
        facts.access_rate,
        PortConfig::default(),
    );
    let rts = |flow| {
        let (time_to_deadline, size) = (Span::from_us(1), 1 << 20);
        let rts = PhostHeader::Rts {
            flow,
            tx_slot: flow,
            size,
            time_to_deadline,
            tenant: 0,
            is_retransmission: false,
        };
        let mut body = vec![0; rts.wire_len()];
        rts.encode(&mut body).unwrap();
        datagram(DatagramKind::Control { msg: MsgId::new(flow) }, &body)
    };
    fed.feed.0.borrow_mut().arriving.extend((0..70_000).map(rts));
    fed.node.poll(fed.now).unwrap();
    let in_flight = NodeConfig::ARRIVING_MAX as usize;
    assert_eq!(fed.node.endpoint().message_counts(), Some((0, in_flight)));
    assert_eq!(fed.node.stats().message_limit_packets, 70_000 - in_flight as u64);
}

/// Answers to hellos are sent at once, but occupy the link: later packets wait for them.
fn answers_of_the_node_itself_are_paced() {
    let facts = facts(2, 1_000, Span::from_us(100));
    let mut fed = FedNode::<PhostHost>::new(
        protocol::<PhostTransport>(&facts),
        facts.access_rate,
        PortConfig::default(),
    );
    fed.now += Span::from_us(1_000);
    let before = fed.node.stats();
    let hello = |nonce| datagram(DatagramKind::Hello { nonce }, &[]);
    fed.feed.0.borrow_mut().arriving.extend((0..1_000).map(hello));
    fed.node.poll(fed.now).unwrap();
    let after = fed.node.stats();
    assert_eq!(after.packets_sent - before.packets_sent, 1_000);
    fed.port.as_mut().unwrap().submit(PEER, SERVICE, vec![1; 100]).unwrap();
    let next = fed.node.poll(fed.now).unwrap();
    assert_eq!(fed.node.stats().packets_sent, after.packets_sent);
    let bytes = after.sent_bytes - before.sent_bytes + 1_000 * 28 - BURST;
    assert!(next >= fed.now + facts.access_rate.tx_time(Bytes::new(bytes)), "{next}");
}

/// Every transport withstands arbitrary packets.
#[derive(Clone, Copy)]
struct Hostile;

impl Body for Hostile {
    const NAME: &'static str = "hostile";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let facts = facts(2, 1_000, Span::from_us(100));
        case.each_seed(0..400, |seed| {
            test_sample(seed, &acts::<T::Header>(), |acts| {
                withstands::<T::Host>(with_keys::<T>(&case.keys, &facts), acts);
            });
        });
    }
}

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .each_preset::<HostCatalogue<Builtin>, _>(Hostile)
        .with_test("announcements_of_a_peer_are_limited", announcements_of_a_peer_are_limited)
        .with_test("answers_of_the_node_itself_are_paced", answers_of_the_node_itself_are_paced)
}
