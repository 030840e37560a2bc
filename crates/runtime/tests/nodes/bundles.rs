//! Control packets of an iteration are sent together, and are batched with later ones only under
//! load.

use crate::common::feed::*;
use crate::common::*;
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_proto::phost::{PhostHost, PhostTransport};
use rampmeter_runtime::app::PortConfig;
use rampmeter_runtime::wire::DatagramKind;
use rampmeter_types::{Header, MsgId, Span};

const COALESCING: Span = Span::from_us(30);

fn node(coalescing: Span) -> FedNode<PhostHost> {
    let facts = facts(2, 10_000, Span::from_us(100));
    let port = PortConfig { depth: 1_000, budget: 1 << 30 };
    let protocol = protocol::<PhostTransport>(&facts);
    FedNode::with_coalescing(coalescing, protocol, facts.access_rate, port)
}

/// Sends requests for the state of flows of the peer: each is answered at once.
fn submit_flows(fed: &mut FedNode<PhostHost>, flows: std::ops::Range<u32>) {
    for flow in flows {
        let rts = PhostHeader::Rts {
            flow,
            tx_slot: flow,
            size: 1_000_000,
            time_to_deadline: Span::from_ps(u64::MAX),
            tenant: 0,
            is_retransmission: true,
        };
        let mut body = vec![0; rts.wire_len()];
        rts.encode(&mut body).unwrap();
        let bytes = datagram(DatagramKind::Control { msg: MsgId::new(flow) }, &body);
        fed.feed.0.borrow_mut().arriving.push(bytes);
    }
}

/// Returns the number of datagrams with answers that the node has sent, and of answers in them.
fn answers(fed: &mut FedNode<PhostHost>) -> (usize, usize) {
    let n_datagrams = fed.feed.0.borrow().sent.len();
    let packets = fed.take_packets::<PhostHeader>();
    let is_answer =
        |header: &Option<PhostHeader>| matches!(header, Some(PhostHeader::RtsAck { .. }));
    (n_datagrams, packets.iter().filter(|(_, header)| is_answer(header)).count())
}

#[test]
fn answers_of_an_iteration_are_sent_in_one_datagram() {
    let mut fed = node(Span::ZERO);
    submit_flows(&mut fed, 0..10);
    fed.now += Span::from_us(1);
    fed.node.poll(fed.now).unwrap();
    assert_eq!(answers(&mut fed), (1, 10));
}

#[test]
fn few_answers_do_not_wait() {
    let mut fed = node(COALESCING);
    for flow in 0..100 {
        submit_flows(&mut fed, flow..flow + 1);
        fed.now += Span::from_us(10);
        fed.node.poll(fed.now).unwrap();
        assert_eq!(answers(&mut fed).1, 1);
        assert_eq!(fed.node.coalescing(), Span::ZERO);
    }
}

#[test]
fn many_answers_wait_for_others_and_not_for_long() {
    let mut fed = node(COALESCING);
    let (mut n_submitted, mut n_datagrams, mut n_answers) = (0, 0, 0);
    for _ in 0..100 {
        submit_flows(&mut fed, n_submitted..n_submitted + 4);
        n_submitted += 4;
        fed.now += Span::from_us(10);
        let next = fed.node.poll(fed.now).unwrap();
        let (datagrams, answers) = answers(&mut fed);
        n_datagrams += datagrams;
        n_answers += answers;
        // Waiting packets are sent by the iteration that the node requests.
        let waiting = n_submitted as usize - n_answers;
        assert!(waiting == 0 || next <= fed.now + COALESCING, "{waiting} wait until {next:?}");
        assert!(waiting <= 4 * 4, "{waiting} wait");
    }
    assert!(fed.node.coalescing() == COALESCING);
    fed.now += COALESCING;
    fed.node.poll(fed.now).unwrap();
    let (datagrams, answers) = answers(&mut fed);
    assert_eq!(n_answers + answers, 400);
    // A datagram has at most 14 answers of 4 iterations; at the start each iteration sends its own.
    let n_datagrams = n_datagrams + datagrams;
    assert!(n_datagrams <= 40, "{n_datagrams} datagrams");
}

#[test]
fn bundles_with_bytes_left_over_or_missing_are_malformed() {
    let body = [0, 1, 0, 0, 0, 0, 9];
    for (n, body) in [(2, &body[..]), (2, &[body, body].concat()[..13])] {
        let mut fed = node(Span::ZERO);
        fed.step(Some(datagram(DatagramKind::Bundle { n }, body)));
        assert!(fed.node.stats().malformed_packets > 0);
    }
}
