//! The flows of a source: what has been sent, acknowledged and lost. When packets may be sent is
//! for the timetable or the epochs to say.

use rampmeter_core::collections::{SeqSet, Slab};
use rampmeter_core::packet::Marks;
use rampmeter_core::{Event, Message, MsgId, NodeId, Packet, Priority, Time};

use super::config::Fastpass;
use super::wire::FastpassHeader;
use crate::shared::{NextNumber, Outgoing, Output, Timers};

#[derive(Debug)]
pub(super) struct TxFlow {
    pub(super) dst: NodeId,
    pub(super) msg: MsgId,
    flow: u32,
    pub(super) packets: u32,
    size: u64,
    acked: SeqSet,
    /// The next packet that was never sent, and those that were lost, latest first.
    next: u32,
    lost: Vec<u32>,
    /// When losses are looked for; not while packets wait to be sent.
    check_at: Time,
    timer_at: Time,
    /// Searches since the last acknowledgement.
    attempts: u32,
}

impl TxFlow {
    /// Packets that wait to be sent.
    pub(super) fn unsent(&self) -> u32 {
        self.packets - self.next + self.lost.len() as u32
    }

    /// Packets that have not been acknowledged.
    pub(super) fn remaining(&self) -> u32 {
        self.packets - self.acked.len()
    }
}

/// The flows of one source.
#[derive(Debug)]
pub(super) struct Flows {
    node: NodeId,
    flows: Slab<TxFlow>,
    numbers: NextNumber,
    timers: Timers<(u32, MsgId)>,
}

/// What an acknowledgement or a search for losses came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// The flow is over; so many of its packets still waited to be sent to this host.
    Over(NodeId, u32),
    /// So many packets must be sent again to this host.
    Lost(NodeId, u32),
}

impl Flows {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            flows: Slab::default(),
            numbers: NextNumber::default(),
            timers: Timers::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&TxFlow> {
        self.flows.get(slot)
    }

    /// Slots of the flows to `dst` with packets to send.
    pub(super) fn to(&self, dst: NodeId) -> impl Iterator<Item = (u32, &TxFlow)> {
        self.flows.iter().filter(move |(_, f)| f.dst == dst && f.unsent() > 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &TxFlow)> {
        self.flows.iter()
    }

    pub(super) fn submit(&mut self, message: Message, fastpass: &Fastpass) -> u32 {
        let Message { id: msg, dst, size, .. } = message;
        self.flows.insert(TxFlow {
            dst,
            msg,
            flow: self.numbers.take(dst),
            packets: fastpass.framing().packets(size),
            size: size.get(),
            acked: SeqSet::default(),
            next: 0,
            lost: Vec::new(),
            check_at: Time::NEVER,
            timer_at: Time::NEVER,
            attempts: 0,
        })
    }

    /// The next packet of a flow that has one to send.
    pub(super) fn send(
        &mut self,
        now: Time,
        slot: u32,
        path: Option<u16>,
        fastpass: &Fastpass,
    ) -> Option<Packet<FastpassHeader>> {
        let flow = self.flows.get_mut(slot)?;
        let seq = match flow.lost.pop() {
            Some(seq) => seq,
            None if flow.next < flow.packets => {
                flow.next += 1;
                flow.next - 1
            }
            None => return None,
        };
        if flow.unsent() == 0 {
            flow.check_at = now + fastpass.rto;
            if flow.timer_at == Time::NEVER {
                flow.timer_at = flow.check_at;
                self.timers.push(flow.timer_at, (slot, flow.msg));
            }
        }
        let header = FastpassHeader::Data { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
        let (dst, msg, size) = (flow.dst, flow.msg, flow.size);
        let message = Outgoing { src: self.node, dst, msg, size };
        let mut packet = fastpass.framing().data(message, seq, Priority::new(1), header);
        if let Some(path) = path {
            packet.path = path;
            packet.marks = packet.marks.with(Marks::ROUTED);
        }
        Some(packet)
    }

    pub(super) fn on_ack(
        &mut self,
        msg: MsgId,
        (slot, cumulative, seq): (u32, u32, u32),
        out: &mut Output<FastpassHeader>,
    ) -> Outcome {
        let flow = self.flows.get_mut(slot).filter(|f| f.msg == msg);
        let Some(flow) = flow.filter(|f| cumulative <= f.packets) else { return Outcome::Nothing };
        flow.attempts = 0;
        while flow.acked.first_missing() < cumulative {
            flow.acked.insert(flow.acked.first_missing());
        }
        if seq < flow.packets {
            flow.acked.insert(seq);
        }
        if flow.remaining() > 0 {
            return Outcome::Nothing;
        }
        let (dst, unsent) = (flow.dst, flow.unsent());
        self.flows.remove(slot);
        out.say(Event::Completed { msg });
        Outcome::Over(dst, unsent)
    }

    pub(super) fn deadline(&self) -> Time {
        self.timers.next()
    }

    /// Looks for packets that were sent long ago and not acknowledged, in the next flow that is
    /// due. `None` if no other is.
    pub(super) fn check(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) -> Option<(u32, Outcome)> {
        let (at, (slot, msg)) = self.timers.pop_due(now)?;
        let flow = self.flows.get_mut(slot).filter(|f| f.msg == msg && f.timer_at == at);
        let Some(flow) = flow else { return Some((slot, Outcome::Nothing)) };
        if flow.unsent() > 0 {
            // The last of those that wait will look again.
            flow.timer_at = Time::NEVER;
            return Some((slot, Outcome::Nothing));
        }
        if flow.check_at > now {
            flow.timer_at = flow.check_at;
            self.timers.push(flow.timer_at, (slot, msg));
            return Some((slot, Outcome::Nothing));
        }
        flow.timer_at = Time::NEVER;
        flow.attempts += 1;
        if flow.attempts > fastpass.config.attempts_max {
            let (dst, unsent) = (flow.dst, flow.unsent());
            self.flows.remove(slot);
            out.say(Event::Failed { msg });
            return Some((slot, Outcome::Over(dst, unsent)));
        }
        let missing = (0..flow.packets).rev().filter(|&seq| !flow.acked.contains(seq));
        flow.lost.extend(missing);
        Some((slot, Outcome::Lost(flow.dst, flow.lost.len() as u32)))
    }

    /// The message is not to be sent after all.
    pub(super) fn cancel(&mut self, msg: MsgId) -> Outcome {
        let found = self.flows.iter().find(|(_, f)| f.msg == msg);
        let Some(slot) = found.map(|(slot, _)| slot) else { return Outcome::Nothing };
        let flow = self.flows.remove(slot).expect("the flow has just been found");
        Outcome::Over(flow.dst, flow.unsent())
    }

    /// The destination has lost its state. Returns how many packets waited to be sent there.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<FastpassHeader>) -> u32 {
        let of_peer = self.flows.iter().filter(|(_, f)| f.dst == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        let mut unsent = 0;
        for flow in slots.into_iter().filter_map(|slot| self.flows.remove(slot)) {
            unsent += flow.unsent();
            out.say(Event::Failed { msg: flow.msg });
        }
        self.numbers.reset(peer);
        unsent
    }

    /// Gives up every flow with packets to send.
    pub(super) fn fail_unsent(&mut self, out: &mut Output<FastpassHeader>) {
        let waiting = self.flows.iter().filter(|(_, f)| f.unsent() > 0);
        let slots: Vec<u32> = waiting.map(|(slot, _)| slot).collect();
        for flow in slots.into_iter().filter_map(|slot| self.flows.remove(slot)) {
            out.say(Event::Failed { msg: flow.msg });
        }
    }
}
