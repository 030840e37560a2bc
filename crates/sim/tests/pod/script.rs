//! Hosts and arbiters that send given packets at given instants and record the packets that they
//! receive.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_sim::*;
use rampmeter_types::SourceRoute;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Event, ForwardOnly, HostPolicy, Message, MsgId, NodeId, Observation, Packet, PayloadRef,
    Priority, Protocol, Receipt, Rng, Span, SwitchFacts, Time, Transport,
};

use crate::ARBITER;
use crate::common::BlastHeader;

/// A packet to send. Its number is its place in the script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedPacket {
    pub(crate) at: Time,
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) bytes: u16,
    pub(crate) path: u16,
    pub(crate) is_control: bool,
    pub(crate) is_unscheduled: bool,
}

impl PlannedPacket {
    /// Returns a scheduled control packet of 64 bytes.
    pub(crate) fn new(at: Time, src: u32, dst: u32) -> Self {
        let (bytes, path, is_control, is_unscheduled) = (64, 0, true, false);
        Self { at, src, dst, bytes, path, is_control, is_unscheduled }
    }

    fn packet(&self, id: u64) -> Packet<BlastHeader> {
        let marks = Marks::ROUTED.union(Marks::SOURCE_ROUTED);
        let len = if self.is_control { 0 } else { self.bytes };
        Packet {
            header: BlastHeader::Data { packets: 0 },
            // A message that no application has submitted.
            payload: PayloadRef { msg: MsgId::new(1_000_000), offset: id, len },
            src: NodeId::new(self.src),
            dst: NodeId::new(self.dst),
            wire_bytes: self.bytes,
            // An arbiter names its link, that to the receiver's rack, before the ports of switches.
            path: match self.src == ARBITER {
                true => self.path * SourceRoute::PORTS + self.dst as u16 / 2,
                false => self.path,
            },
            priority: Priority::HIGHEST,
            marks: if self.is_unscheduled { marks.union(Marks::UNSCHEDULED) } else { marks },
        }
    }
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedPacket {
    pub(crate) at: Time,
    pub(crate) by: u32,
    pub(crate) id: u64,
    pub(crate) bytes: u16,
}

pub(crate) struct ScriptedTransport;

impl Transport for ScriptedTransport {
    const NAME: &'static str = "scripted";
    const HAS_ARBITERS: bool = true;
    type Config = Vec<PlannedPacket>;
    type Header = BlastHeader;
    type Host = ScriptedHost;
    type Arbiter = ScriptedHost;
    type SwitchProgram = ForwardOnly;

    fn arbiter(
        config: Arc<Vec<PlannedPacket>>,
        _: u32,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> ScriptedHost {
        ScriptedHost::new(config, node, rng, now)
    }

    fn switch_program(_config: &Arc<Vec<PlannedPacket>>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

#[derive(Debug)]
pub(crate) struct ScriptedHost {
    node: NodeId,
    later: VecDeque<(Time, Packet<BlastHeader>)>,
    due: VecDeque<Packet<BlastHeader>>,
    pub(crate) received: Vec<ReceivedPacket>,
}

impl Protocol for ScriptedHost {
    type Header = BlastHeader;
    type Config = Vec<PlannedPacket>;

    fn new(config: Arc<Vec<PlannedPacket>>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        let own = (0..).zip(config.iter()).filter(|(_, send)| send.src == node.get());
        let mut later: Vec<_> = own.map(|(id, send)| (send.at, send.packet(id))).collect();
        later.sort_by_key(|(at, _)| *at);
        Self { node, later: later.into(), due: VecDeque::new(), received: Vec::new() }
    }

    fn submit(&mut self, _now: Time, _message: Message) {}

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, at: Time, packet: &Packet<BlastHeader>) -> Receipt {
        assert_eq!(packet.dst, self.node);
        let (id, bytes) = (packet.payload.offset, packet.wire_bytes);
        self.received.push(ReceivedPacket { at, by: self.node.get(), id, bytes });
        Receipt::Ignored
    }

    fn handle_timeout(&mut self, now: Time) {
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            self.due.extend(self.later.pop_front().map(|(_, packet)| packet));
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<BlastHeader>> {
        self.due.pop_front()
    }

    fn wants_transmit(&self) -> bool {
        !self.due.is_empty()
    }

    fn poll_timeout(&self) -> Time {
        self.later.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Observation for ScriptedHost {}

impl HostPolicy for ScriptedHost {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<BlastHeader>) -> bool {
        false
    }

    fn is_duplicate(&mut self, _packet: &Packet<BlastHeader>) -> bool {
        true
    }

    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {}
}

pub(crate) type ScriptSim = Sim<ScriptedTransport, std::vec::IntoIter<Arrival>, NoProbe>;

/// Sends it all and waits until everything has arrived.
pub(crate) fn run(mut spec: SimSpec, sends: Vec<PlannedPacket>) -> ScriptSim {
    let last = sends.iter().map(|send| send.at).max().unwrap_or(Time::ZERO);
    // A message that no host sends keeps the run alive.
    let end = last + Span::from_us(200);
    let arrival = Arrival::new(end, NodeId::new(0), NodeId::new(1), Bytes::new(1));
    spec.drain = Span::ZERO;
    let mut sim = Sim::<ScriptedTransport, _, _>::new(
        spec,
        Arc::new(sends),
        vec![arrival].into_iter(),
        NoProbe,
    );
    assert_eq!(sim.run(u64::MAX), Status::TimedOut);
    let stats = sim.fabric().stats();
    assert_eq!(stats.injected + stats.duplicated, stats.delivered + stats.dropped());
    sim
}

/// Returns the packets that all ends have received, in the order of packets' numbers.
pub(crate) fn received(sim: &ScriptSim) -> Vec<ReceivedPacket> {
    let topology = sim.fabric().topology();
    let hosts = (0..topology.n_hosts()).flat_map(|host| &sim.endpoint(host).received);
    let arbiters = (0..topology.n_arbiters()).flat_map(|arbiter| &sim.arbiter(arbiter).received);
    let mut received: Vec<ReceivedPacket> = hosts.chain(arbiters).copied().collect();
    received.sort_by_key(|received| received.id);
    received
}
