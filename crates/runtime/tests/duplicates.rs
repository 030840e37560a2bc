//! Packets of messages that have been delivered, whose senders have missed it: they are answered
//! whatever their application does meanwhile.

mod common;

use common::feed::*;
use common::*;
use rampmeter_core::{Endpoint, Header, MsgId, Span};
use rampmeter_proto::dcpim::DcpimHost;
use rampmeter_proto::dcpim::wire::DcpimHeader;
use rampmeter_proto::fastpass::FastpassHost;
use rampmeter_proto::fastpass::wire::FastpassHeader;
use rampmeter_proto::pfabric::wire::PfabricHeader;
use rampmeter_proto::pfabric::{PfabricConfig, PfabricHost};
use rampmeter_proto::phost::PhostHost;
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_runtime::app::PortConfig;
use rampmeter_runtime::wire::Kind;

const SIZE: u64 = 1_000;
const MSG: MsgId = MsgId::new(3);

/// What the application does after the message has been delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum App {
    /// It does not read, and there is no room for another message.
    IsFull,
    IsGone,
}

/// A message arrives; then copies of its packet, for longer than nodes wait for applications. None
/// meets a refusal. Returns how many answers of the transport there were to a number of copies.
fn answers_to_copies<E: Endpoint>(
    protocol: E::Config,
    header: impl Header,
    app: App,
) -> (usize, usize) {
    let rate = facts(2, 1_000, Span::from_us(100)).access_rate;
    let mut fed = Fed::<E>::new(protocol, rate, PortConfig { depth: 1, budget: SIZE });
    let packet = whole_message(MSG, &header, SIZE as usize);
    fed.step(Some(packet.clone()));
    assert_eq!(fed.node.stats().messages_delivered, 1);
    if app == App::IsGone {
        fed.port = None;
    }
    fed.take_sent();
    let (mut copies, mut answers) = (0, 0);
    for _ in 0..10 {
        fed.now += Span::from_us(500_000);
        fed.step(Some(packet.clone()));
        copies += 1;
        for envelope in fed.take_sent() {
            assert!(!matches!(envelope.kind, Kind::Refused { .. }), "after {copies} copies");
            answers += usize::from(envelope.kind == Kind::Control { msg: MSG });
        }
    }
    let stats = fed.node.stats();
    assert_eq!((stats.no_room, stats.messages_delivered), (0, 1));
    assert_eq!(stats.payload_duplicate, copies as u64 * SIZE);
    (copies, answers)
}

/// dcPIM's senders ask again by themselves: by a packet that needs no room.
#[test]
fn dcpim_refuses_no_message_that_it_has_delivered() {
    let dcpim = || dcpim(&facts(2, 1_000, Span::from_us(100)));
    let whole = DcpimHeader::Unscheduled { flow: 0, tx_slot: 5, seq: 0, size: SIZE };
    for app in [App::IsFull, App::IsGone] {
        answers_to_copies::<DcpimHost>(dcpim(), whole, app);
    }
}

#[test]
fn phost_answers_copies_of_delivered_messages() {
    let phost = || phost(&facts(2, 1_000, Span::from_us(100)));
    let whole = PhostHeader::Free { flow: 0, tx_slot: 5, seq: 0, size: SIZE };
    for app in [App::IsFull, App::IsGone] {
        let (copies, answers) = answers_to_copies::<PhostHost>(phost(), whole, app);
        assert_eq!(answers, copies);
    }
}

#[test]
fn pfabric_answers_copies_of_delivered_messages() {
    let pfabric = || PfabricConfig::paper().on(&facts(2, 1_000, Span::from_us(100))).unwrap();
    let (seq, remaining) = (0, 1);
    let whole = PfabricHeader::Data { flow: 0, tx_slot: 5, seq, remaining, size: SIZE };
    for app in [App::IsFull, App::IsGone] {
        let (copies, answers) = answers_to_copies::<PfabricHost>(pfabric(), whole, app);
        assert_eq!(answers, copies);
    }
}

#[test]
fn fastpass_answers_copies_of_delivered_messages() {
    let fastpass = || fastpass(&facts(2, 1_000, Span::from_us(100)));
    let whole = FastpassHeader::Data { flow: 0, tx_slot: 5, seq: 0, size: SIZE };
    for app in [App::IsFull, App::IsGone] {
        let (copies, answers) = answers_to_copies::<FastpassHost>(fastpass(), whole, app);
        assert_eq!(answers, copies);
    }
}
