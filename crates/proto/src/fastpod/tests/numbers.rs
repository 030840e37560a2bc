//! The numbers by which acknowledgements name messages.

use rampmeter_types::{Bytes, Event, Message, MsgId, NodeId, Time};

use super::*;
use crate::fastpod::packing::CellTime;
use crate::fastpod::pod::queues::{ACK_NUMBERS, Queues};
use crate::fastpod::wire::FastpodHeader;
use crate::toolkit::Output;

/// A message that is in flight while 65 536 others complete is acknowledged by its number, and
/// none of them is.
#[test]
fn a_number_in_use_is_given_to_no_other_message() {
    let fastpod = alike(config(), 2, 2);
    let mut queues = Queues::new(NodeId::new(0), 0, &fastpod);
    let mut out = Output::new(NodeId::new(0), 64);
    let send = |queues: &mut Queues, n: u32| {
        let (id, dst, size) = (MsgId::new(n), NodeId::new(1), Bytes::new(200));
        queues.submit(Time::ZERO, &Message::new(id, dst, size), &fastpod);
        let time = &mut CellTime::default();
        let (packet, ..) = queues.next_scheduled(Time::ZERO, 1, time, &fastpod).unwrap();
        let FastpodHeader::Cell { flow, .. } = packet.header else { unreachable!() };
        (packet.payload.msg, flow as u16)
    };
    let (first, number) = send(&mut queues, 0);
    for n in 1..=ACK_NUMBERS + 10 {
        let (msg, flow) = send(&mut queues, n);
        assert!(msg == MsgId::new(n) && flow != number, "{msg:?} has {flow}");
        queues.on_ack(1, flow, &mut out);
        assert_eq!(out.next_event(), Some(Event::Completed { msg }));
    }
    queues.on_ack(1, number, &mut out);
    assert_eq!(out.next_event(), Some(Event::Completed { msg: first }));
}
