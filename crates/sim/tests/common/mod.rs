//! A transport without flow control. A host sends every packet of its messages as fast as it can,
//! in order of submission, and the receiver confirms each message once.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::collections::{IdMap, SeqSet};
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Event, ForwardOnly, Header, HostPolicy, Message, MsgId, NoArbiter, NodeId, Observation, Packet,
    PayloadRef, Priority, Protocol, RankProgram, Receipt, Rng, SwitchFacts, Time, Transport,
    WireError,
};

/// Segmentation and priorities of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmentation {
    pub(crate) payload: u16,
    pub(crate) header: u16,
    pub(crate) priority: Priority,
    /// If a host is named, its packets keep that priority and all others get priority 6.
    pub(crate) urgent: Option<NodeId>,
    /// The marks of data packets.
    pub(crate) marks: Marks,
}

impl Default for Segmentation {
    fn default() -> Self {
        Self {
            payload: 1460,
            header: 40,
            priority: Priority::new(1),
            urgent: None,
            marks: Marks::NONE,
        }
    }
}

/// Ports that queue by rank take shorter messages first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BlastHeader {
    Data { packets: u32 },
    Ack,
}

impl Header for BlastHeader {
    fn wire_len(&self) -> usize {
        match self {
            Self::Data { .. } => 5,
            Self::Ack => 1,
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut w = rampmeter_types::wire::Writer::new(out);
        match self {
            Self::Data { packets } => w.u8(0)?.u32(*packets)?,
            Self::Ack => w.u8(1)?,
        };
        Ok(w.position())
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let mut r = rampmeter_types::wire::Reader::new(bytes);
        let header = match r.u8()? {
            0 => Self::Data { packets: r.u32()? },
            1 => Self::Ack,
            other => return Err(WireError::UnknownType(other)),
        };
        Ok((header, r.position()))
    }

    fn rank(&self) -> u32 {
        match self {
            Self::Data { packets } => *packets,
            Self::Ack => 0,
        }
    }
}

/// The same over ports that queue by rank.
#[allow(dead_code, reason = "benchmarks share this file and do not use it")]
pub(crate) struct RankedBlast;

impl Transport for RankedBlast {
    const NAME: &'static str = "ranked-blast";
    type Config = Segmentation;
    type Header = BlastHeader;
    type Host = BlastHost;
    type Arbiter = NoArbiter<BlastHeader, Segmentation>;
    type SwitchProgram = RankProgram;

    fn switch_program(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> RankProgram {
        RankProgram
    }
}

pub(crate) struct Blast;

impl Transport for Blast {
    const NAME: &'static str = "blast";
    type Config = Segmentation;
    type Header = BlastHeader;
    type Host = BlastHost;
    type Arbiter = NoArbiter<BlastHeader, Segmentation>;
    type SwitchProgram = ForwardOnly;

    fn switch_program(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

pub(crate) struct BlastHost {
    cut: Segmentation,
    node: NodeId,
    sending: VecDeque<(Message, u64)>,
    acks: VecDeque<(NodeId, MsgId)>,
    arrived: IdMap<u64, SeqSet>,
    events: VecDeque<Event>,
    /// Data packets that were received with a congestion mark.
    pub(crate) marked: u64,
    /// Packets of switches and arbiters, which carry nothing. Those that announce no packets are
    /// answered.
    pub(crate) beats: u64,
}

impl Protocol for BlastHost {
    type Header = BlastHeader;
    type Config = Segmentation;

    fn new(config: Arc<Segmentation>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            cut: *config,
            node,
            sending: VecDeque::new(),
            acks: VecDeque::new(),
            arrived: IdMap::default(),
            events: VecDeque::new(),
            marked: 0,
            beats: 0,
        }
    }

    fn submit(&mut self, _now: Time, message: Message) {
        self.sending.push_back((message, 0));
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sending.retain(|(message, _)| message.id != msg);
    }

    fn handle_packet(&mut self, _now: Time, packet: &Packet<BlastHeader>) -> Receipt {
        let msg = packet.payload.msg;
        let BlastHeader::Data { packets } = packet.header else {
            self.events.push_back(Event::Completed { msg });
            return Receipt::Control;
        };
        if packet.payload.len == 0 {
            self.beats += 1;
            if packets == 0 {
                self.acks.push_back((packet.src, msg));
            }
            return Receipt::Control;
        }
        self.marked += u64::from(packet.marks.contains(Marks::CONGESTION));
        let key = u64::from(packet.src.get()) << 32 | u64::from(msg.get());
        let set = self.arrived.entry(key).or_default();
        if !set.insert((packet.payload.offset / u64::from(self.cut.payload)) as u32) {
            return Receipt::Duplicate;
        }
        if set.len() == packets {
            self.arrived.remove(&key);
            self.events.push_back(Event::Delivered { src: packet.src, msg });
            self.acks.push_back((packet.src, msg));
        }
        Receipt::Fresh
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<BlastHeader>> {
        let packet = |dst, header, payload: PayloadRef, priority, marks| Packet {
            header,
            payload,
            src: self.node,
            dst,
            wire_bytes: self.cut.header + payload.len,
            path: 0,
            priority,
            marks,
        };
        if let Some((dst, msg)) = self.acks.pop_front() {
            let payload = PayloadRef { msg, offset: 0, len: 0 };
            return Some(packet(dst, BlastHeader::Ack, payload, Priority::HIGHEST, Marks::NONE));
        }
        let (message, offset) = self.sending.front_mut()?;
        let left = message.size.get() - *offset;
        let len = left.min(u64::from(self.cut.payload)) as u16;
        let payload = PayloadRef { msg: message.id, offset: *offset, len };
        let packets = message.size.get().div_ceil(u64::from(self.cut.payload)) as u32;
        let is_urgent = self.cut.urgent.is_none_or(|host| host == self.node);
        let priority = if is_urgent { self.cut.priority } else { Priority::new(6) };
        let header = BlastHeader::Data { packets };
        let out = packet(message.dst, header, payload, priority, self.cut.marks);
        *offset += u64::from(len);
        if *offset == message.size.get() {
            self.sending.pop_front();
        }
        Some(out)
    }

    fn wants_transmit(&self) -> bool {
        !self.acks.is_empty() || !self.sending.is_empty()
    }

    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Observation for BlastHost {}

impl HostPolicy for BlastHost {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<BlastHeader>) -> bool {
        false
    }

    fn is_duplicate(&mut self, packet: &Packet<BlastHeader>) -> bool {
        let key = u64::from(packet.src.get()) << 32 | u64::from(packet.payload.msg.get());
        let seq = (packet.payload.offset / u64::from(self.cut.payload)) as u32;
        self.arrived.get(&key).is_some_and(|set| set.contains(seq))
    }

    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {}
}
