//! The tutorial's protocol, `docs/howto/add-a-protocol.md`: stop and wait, complete. One packet of
//! a message is under way at a time; what is not acknowledged in time is sent again.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_core::collections::{IdMap, SeqSet};
use rampmeter_core::packet::Marks;
use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{
    Bytes, Endpoint, Event, Family, Header, Message, MsgId, NoArbiter, NodeId, Packet, Passive,
    PayloadRef, Priority, Receipt, Rng, Span, SwitchFacts, Time, WireError,
};
use rampmeter_testkit::suite::each_seed;
use rampmeter_testkit::wire::{Manners, cancels_cleanly, plans};
use rampmeter_testkit::*;

/// 1. The header: what the protocol adds to a packet. `encode` and `decode` are each other's
///    inverse.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SawHeader {
    /// Packet `seq` of a message of `size` bytes.
    Data { seq: u32, size: u64 },
    /// It is here.
    Ack { seq: u32 },
}

impl Header for SawHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Data { .. } => 13,
            Self::Ack { .. } => 5,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = Writer::new(out);
        match *self {
            Self::Data { seq, size } => w.u8(1)?.u32(seq)?.u64(size)?,
            Self::Ack { seq } => w.u8(2)?.u32(seq)?,
        };
        Ok(w.written())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        let header = match r.u8()? {
            1 => Self::Data { seq: r.u32()?, size: r.u64()? },
            2 => Self::Ack { seq: r.u32()? },
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.consumed()))
    }
}

/// 2. The parameters, shared by all endpoints of a run.
struct Saw {
    payload: u64,
    header: u16,
    timeout: Span,
    attempts_max: u32,
}

/// 3. The endpoint: inputs change the state and queue outputs, `poll_*` hands the outputs out.
struct SawHost {
    config: Arc<Saw>,
    node: NodeId,
    /// Messages to send; the first is under way.
    sending: VecDeque<Message>,
    /// The packet under way, when it counts as lost, and how often it has been sent.
    seq: u32,
    times_out: Time,
    attempts: u32,
    /// Messages that arrive, by source and number.
    receiving: IdMap<(u32, u32), SeqSet>,
    packets: VecDeque<Packet<SawHeader>>,
    events: VecDeque<Event>,
}

impl SawHost {
    fn packets_of(&self, size: Bytes) -> u32 {
        size.packets_ceil(Bytes::new(self.config.payload)) as u32
    }

    fn packet(&mut self, dst: NodeId, header: SawHeader, payload: PayloadRef, priority: Priority) {
        self.packets.push_back(Packet {
            header,
            payload,
            src: self.node,
            dst,
            wire_bytes: self.config.header + payload.len,
            path: 0,
            priority,
            marks: Marks::NONE,
        });
    }

    /// Sends the packet under way, for the first time or again.
    fn send(&mut self, now: Time) {
        let Some(&Message { id: msg, dst, size, .. }) = self.sending.front() else {
            self.times_out = Time::NEVER;
            return;
        };
        let offset = u64::from(self.seq) * self.config.payload;
        let len = self.config.payload.min(size.get() - offset) as u16;
        let header = SawHeader::Data { seq: self.seq, size: size.get() };
        self.packet(dst, header, PayloadRef { msg, offset, len }, Priority::new(1));
        self.times_out = now + self.config.timeout;
        self.attempts += 1;
    }

    fn next_message(&mut self, now: Time) {
        self.sending.pop_front();
        (self.seq, self.attempts) = (0, 0);
        self.send(now);
    }
}

impl Endpoint for SawHost {
    type Header = SawHeader;
    type Config = Saw;

    fn new(config: Arc<Saw>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            config,
            node,
            sending: VecDeque::new(),
            seq: 0,
            times_out: Time::NEVER,
            attempts: 0,
            receiving: IdMap::default(),
            packets: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.sending.push_back(message);
        if self.sending.len() == 1 {
            self.send(now);
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        let under_way = self.sending.front().map(|m| m.id);
        self.sending.retain(|m| m.id != msg);
        let is_of = |p: &Packet<SawHeader>| p.payload.msg == msg && p.payload.len > 0;
        self.packets.retain(|p| !is_of(p));
        if under_way == Some(msg) {
            (self.seq, self.attempts) = (0, 0);
            self.send(now);
        }
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<SawHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        match packet.header {
            SawHeader::Data { seq, size } => {
                let n = self.packets_of(Bytes::new(size));
                if seq >= n {
                    return Receipt::Ignored;
                }
                let payload = PayloadRef { msg, offset: 0, len: 0 };
                self.packet(src, SawHeader::Ack { seq }, payload, Priority::HIGHEST);
                let got = self.receiving.entry((src.get(), msg.get())).or_default();
                if !got.insert(seq) {
                    return Receipt::Duplicate;
                }
                if got.len() == n {
                    self.events.push_back(Event::Delivered { src, msg });
                }
                Receipt::Fresh
            }
            SawHeader::Ack { seq } => {
                let Some(&Message { id, size, .. }) = self.sending.front() else {
                    return Receipt::Control;
                };
                if (id, seq) == (msg, self.seq) {
                    (self.seq, self.attempts) = (seq + 1, 0);
                    if self.seq == self.packets_of(size) {
                        self.events.push_back(Event::Completed { msg: id });
                        self.next_message(now);
                    } else {
                        self.send(now);
                    }
                }
                Receipt::Control
            }
        }
    }

    fn has_delivered(&mut self, _now: Time, packet: &Packet<SawHeader>) -> bool {
        let SawHeader::Data { size, .. } = packet.header else { return false };
        let got = self.receiving.get(&(packet.src.get(), packet.payload.msg.get()));
        got.is_some_and(|got| got.len() == self.packets_of(Bytes::new(size)))
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        let under_way = self.sending.front().map(|m| m.id);
        let lost = self.sending.iter().filter(|m| m.dst == peer);
        self.events.extend(lost.map(|m| Event::Failed { msg: m.id }));
        self.sending.retain(|m| m.dst != peer);
        self.receiving.retain(|&(src, _), _| src != peer.get());
        if self.sending.front().map(|m| m.id) != under_way {
            (self.seq, self.attempts) = (0, 0);
            self.send(now);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.times_out {
            return;
        }
        if self.attempts < self.config.attempts_max {
            self.send(now);
        } else if let Some(message) = self.sending.front() {
            self.events.push_back(Event::Failed { msg: message.id });
            self.next_message(now);
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<SawHeader>> {
        self.packets.pop_front()
    }

    fn wants_transmit(&self) -> bool {
        !self.packets.is_empty()
    }

    fn poll_timeout(&self) -> Time {
        self.times_out
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// 4. The family: the names by which drivers find all of it.
struct StopAndWait;

impl Family for StopAndWait {
    const NAME: &'static str = "stop-and-wait";
    type Config = Saw;
    type Header = SawHeader;
    type Host = SawHost;
    type Arbiter = NoArbiter<SawHeader, Saw>;
    type Hop = Passive;

    fn hop(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> Passive {
        Passive
    }
}

fn saw() -> Saw {
    Saw { payload: 1460, header: 40, timeout: Span::from_us(60), attempts_max: 200 }
}

/// 5. Theory first: alone in the network, a message of n packets takes n round trips less the last
///    acknowledgement's way.
#[test]
fn a_message_takes_a_round_trip_a_packet() {
    let (_, records) = run::<StopAndWait>(
        saw(),
        spec(leaf_spine(9, 16, 4), 1),
        vec![arrival(0, 0, 100, 5 * 1460)],
    );
    // 4 links of 650 ns; 120 + 30 + 30 + 120 ns for a packet, 3.2 + .8 + .8 + 3.2 ns for an answer.
    let (there, back) = (4 * 650_000 + 300_000, 4 * 650_000 + 8_000);
    let took = records[0].delivered.unwrap() - records[0].arrival;
    assert_eq!(took.as_ps(), 5 * there + 4 * back);
    assert_eq!(records[0].id, MsgId::new(0));
}

/// 6. Then everything that can go wrong.
#[test]
fn every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone() {
    let name = "every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone";
    each_seed(here!(), name, 0..200, |seed| {
        let Scenario { spec, arrivals, cut } = scenario(leaf_spine(2, 3, 2), seed);
        assert_sound(&run::<StopAndWait>(saw(), spec, arrivals), cut);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn messages_that_are_cancelled_are_forgotten(plan in plans()) {
        // What has come of them stays: this receiver gives up nothing.
        let manners = Manners::new(|host: &SawHost| (host.sending.len(), 0));
        cancels_cleanly::<StopAndWait>(&(Arc::new(saw()), 0), manners, &plan);
    }
}
