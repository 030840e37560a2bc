//! The sender's side: unscheduled packets at once, others as they are granted, always of the
//! message with the fewest remaining bytes (Homa §3.2).
//!
//! # Droppable unscheduled packets (Aeolus)
//!
//! The problem: unscheduled packets are sent before the receiver knows of them. In an incast they
//! fill the queue of its port. Scheduled packets, whose capacity the receiver has planned, are then
//! delayed or lost.
//!
//! The simple way gives unscheduled packets a lower priority than scheduled ones. They still use
//! the memory of the port, and Homa needs them first: short messages have no other packets. Without
//! unscheduled packets each message waits a round trip.
//!
//! The present way: unscheduled packets are marked [`Marks::UNSCHEDULED`]. A switch drops them if
//! the queue of the port is above a small threshold, and drops no others for that. The receiver
//! acknowledges each one that arrives (`Sack`). Behind the last one the sender puts a probe into
//! the same class, which is not marked. Some time after the probe the receiver counts missing
//! unscheduled packets as lost. It grants them like the rest of the message, and answers the probe
//! again. Then the sender knows the lost packets: those without an acknowledgement. It retransmits
//! them with its next grants, before new packets and without the mark
//! (`dropped_packets_are_retransmitted_as_scheduled_packets`).
//!
//! Hazards: the probe is short and packets are sprayed, so it may overtake unscheduled packets.
//! Hence the receiver waits for [`Homa::settle_time`]. A packet may arrive after it was counted as
//! lost: the receiver then takes back its grant, if that has not been sent. A late or lost
//! acknowledgement makes the sender retransmit a packet that has arrived. The duplicate has used a
//! grant that another packet needs, so the receiver adds one. A probe that is lost is retransmitted
//! by the timer of the message. An unscheduled packet must not be so short that it is express, as
//! express packets are never dropped.

use std::collections::VecDeque;
use std::ops::Range;

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, SeqSet};
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Priority, Stage, Time,
};

use super::config::{Grants, Homa};
use super::wire::HomaHeader;
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output};

/// Grant of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) rx_slot: u32,
    pub(super) credit: u32,
    pub(super) priority: u8,
}

/// State of a message. Its timer expires when the sender must probe.
#[derive(Debug)]
struct TxState {
    /// Packets that need no grant.
    unscheduled: u32,
    /// The first packet that has not been sent.
    next: u32,
    /// Packets granted, and how many of these have been sent.
    credit: u32,
    used: u32,
    /// Priorities of granted packets: up to which number each holds.
    priorities: VecDeque<(u32, u8)>,
    /// Packets that the receiver misses: first, and one past the last.
    retransmit_queue: VecDeque<(u32, u32)>,
    /// Slot at the receiver, once that is known.
    rx_slot: u32,
    /// The request that it answers, plus one.
    answers: u32,
    has_incast: bool,
    /// State of unscheduled packets, if switches may drop them.
    first_round: Option<Box<UnscheduledState>>,
}

/// Unscheduled packets that switches may drop.
#[derive(Debug, Default)]
struct UnscheduledState {
    arrived: SeqSet,
    /// Packets that have not arrived, once the receiver has answered the probe.
    lost: VecDeque<u32>,
    is_probed: bool,
    is_resolved: bool,
}

/// Ranges of packets that a receiver may request at a time.
pub(super) const RANGES_MAX: usize = 16;

type TxFlow = OutgoingFlow<TxState>;

impl TxState {
    fn n_lost(&self) -> u64 {
        self.first_round.as_ref().map_or(0, |round| round.lost.len() as u64)
    }

    fn is_sendable(&self, packets: u32) -> bool {
        self.next < self.unscheduled.min(packets)
            || !self.retransmit_queue.is_empty()
            || (self.used < self.credit && (self.next < packets || self.n_lost() > 0))
    }
}

pub(crate) const GRANT: &Stage = &Stage {
    name: "grant",
    meaning: "Unscheduled packets have been sent, and the receiver has granted no more.",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[GRANT];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<TxState>,
    /// Messages that have something to send, by remaining bytes, then age.
    ready: KeyedHeap<(u64, u32)>,
    positions: HeapPositions,
    /// Peers that await too many messages, so that new ones must be short at first.
    incast_peers: IdMap<u32, ()>,
}

/// Relation of a submitted message to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RpcContext {
    /// The request that it answers, plus one; zero for none.
    pub(super) answers: u32,
    /// True if this host awaits too many messages.
    pub(super) has_incast: bool,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            flows: OutgoingFlows::new(node),
            ready: KeyedHeap::default(),
            positions: HeapPositions::default(),
            incast_peers: IdMap::default(),
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the grants of all flows.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.flows.gauges(each, |flow| {
            [
                ("grant_packets", u64::from(flow.state.credit - flow.state.used)),
                (
                    "unscheduled_packets",
                    flow.state.unscheduled.saturating_sub(flow.state.next).into(),
                ),
            ]
        });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        let flow = &self.flows[self.flows.slot(msg)?];
        let is_granted = flow.state.is_sendable(flow.packets);
        Some(if is_granted { Permission::Granted } else { Permission::Awaited(GRANT) })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Submits a new message. Returns its number and slot.
    pub(super) fn submit(
        &mut self,
        now: Time,
        message: &Message,
        relation: RpcContext,
        homa: &Homa,
    ) -> (u32, u32) {
        let packets = homa.segmentation.packets(message.size);
        let most = homa.unscheduled_to(message.dst);
        let most = match self.incast_peers.contains_key(&message.dst.get()) {
            true => most.min(homa.unscheduled_in_incast),
            false => most,
        };
        let state = TxState {
            unscheduled: packets.min(most),
            next: 0,
            credit: 0,
            used: 0,
            priorities: VecDeque::new(),
            retransmit_queue: VecDeque::new(),
            rx_slot: 0,
            answers: relation.answers,
            has_incast: relation.has_incast,
            first_round: homa.is_droppable().then(Box::default),
        };
        let slot = self.flows.submit(message, packets, state);
        self.flows.start_timer(slot, now + homa.timeout_of(message.dst));
        self.rank(slot, homa);
        (self.flows[slot].flow, slot)
    }

    /// Enters a message among those that have something to send, changes its place, or drops it.
    #[inline]
    fn rank(&mut self, slot: u32, homa: &Homa) {
        let flow = &self.flows[slot];
        let state = &flow.state;
        if !state.is_sendable(flow.packets) {
            self.ready.remove(&mut self.positions, slot);
            return;
        }
        let again: u64 =
            state.retransmit_queue.iter().map(|&(from, end)| u64::from(end - from)).sum();
        let left = homa.segmentation.remaining(state.next, flow.size)
            + (again + state.n_lost()) * homa.segmentation.full_wire_bytes().get();
        self.ready.set(&mut self.positions, slot, (left, flow.msg.get()));
    }

    /// Records the state of a receiver: true if it awaits too many messages.
    pub(super) fn on_incast(&mut self, peer: NodeId, incast: bool) {
        if incast {
            self.incast_peers.insert(peer.get(), ());
        } else if !self.incast_peers.is_empty() {
            self.incast_peers.remove(&peer.get());
        }
    }

    pub(super) fn on_grant(&mut self, now: Time, slot: u32, msg: MsgId, grant: Grant, homa: &Homa) {
        let due = |peer| now + homa.timeout_of(peer);
        let Some(flow) = self.flows.on_response_from(slot, msg, due) else { return };
        let credit = grant.credit.min(flow.packets);
        let state = &mut flow.state;
        state.rx_slot = grant.rx_slot;
        if credit <= state.credit {
            return;
        }
        state.credit = credit;
        match (homa.config.grants, state.priorities.back_mut()) {
            (Grants::Packet, Some(last)) if last.1 == grant.priority => last.0 = credit,
            (Grants::Packet, _) => state.priorities.push_back((credit, grant.priority)),
            (Grants::Window, _) => {
                state.priorities.clear();
                state.priorities.push_back((credit, grant.priority));
            }
        }
        self.rank(slot, homa);
    }

    /// Retransmits packets that the receiver misses. Those that have not been sent are granted, as
    /// a grant may be lost.
    ///
    /// The receiver requests packets up to the last that it has granted, so their number is that of
    /// its grants. The number of sent packets is another: lost unscheduled packets have used grants
    /// too. Credit beyond the grants would make the sender wait for as many later ones. If the last
    /// packet is requested, all have been granted.
    pub(super) fn on_resend(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        rx_slot: u32,
        missing: Range<u32>,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) {
        let due = |peer| now + homa.timeout_of(peer);
        let Some(flow) = self.flows.on_response_from(slot, msg, due) else { return };
        let (end, dst) = (missing.end.min(flow.packets), flow.dst);
        let state = &mut flow.state;
        state.rx_slot = rx_slot;
        let sent = (missing.start, end.min(state.next));
        if sent.0 < sent.1
            && !state.retransmit_queue.contains(&sent)
            && state.retransmit_queue.len() < RANGES_MAX
        {
            state.retransmit_queue.push_back(sent);
        }
        let granted = match end == flow.packets {
            true => state.used + (end - state.next) + state.n_lost() as u32,
            false => end.saturating_sub(state.unscheduled),
        };
        state.credit = state.credit.max(granted);
        self.rank(slot, homa);
        if self.ready.first().is_some_and(|(_, first)| first != slot) {
            out.send(dst, msg, HomaHeader::Busy { rx_slot });
        }
    }

    /// Records that the receiver has the message, and that its unscheduled packets have been sent.
    pub(super) fn on_request_acked(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        rx_slot: u32,
        is_burst_over: bool,
        homa: &Homa,
    ) {
        let due = |peer| now + homa.timeout_of(peer);
        let Some(flow) = self.flows.on_response_from(slot, msg, due) else { return };
        flow.state.rx_slot = rx_slot;
        let unscheduled = flow.state.unscheduled;
        if let Some(round) = &mut flow.state.first_round
            && is_burst_over
            && !round.is_resolved
        {
            round.is_resolved = true;
            let arrived = &round.arrived;
            round.lost = (0..unscheduled).filter(|&seq| !arrived.contains(seq)).collect();
            self.rank(slot, homa);
        }
    }

    /// Handles the acknowledgement of an unscheduled packet.
    pub(super) fn on_sack(&mut self, now: Time, slot: u32, msg: MsgId, seq: u32, homa: &Homa) {
        let due = |peer| now + homa.timeout_of(peer);
        let Some(flow) = self.flows.on_response_from(slot, msg, due) else { return };
        let unscheduled = flow.state.unscheduled;
        let Some(round) = flow.state.first_round.as_mut().filter(|_| seq < unscheduled) else {
            return;
        };
        round.arrived.insert(seq);
        if !round.lost.is_empty() {
            round.lost.retain(|&lost| lost != seq);
            self.rank(slot, homa);
        }
    }

    /// Handles the arrival of the whole message, reported by its acknowledgement or its answer.
    /// Returns its owner and its number.
    pub(super) fn complete(
        &mut self,
        slot: u32,
        msg: MsgId,
        out: &mut Output<HomaHeader>,
    ) -> Option<(NodeId, u32)> {
        self.flows.get_current(slot, msg)?;
        out.push_event(Event::Completed { msg });
        self.drop_flow(slot)
    }

    /// Cancels a message. Returns whose it was and its number.
    pub(super) fn cancel(
        &mut self,
        msg: MsgId,
        out: &mut Output<HomaHeader>,
    ) -> Option<(NodeId, u32)> {
        let slot = self.flows.slot(msg)?;
        out.cancel(msg, |header| {
            matches!(header, HomaHeader::Probe { .. } | HomaHeader::Busy { .. })
        });
        self.drop_flow(slot)
    }

    /// Handles a receiver that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<HomaHeader>) {
        let Self { flows, ready, positions, incast_peers } = self;
        incast_peers.remove(&peer.get());
        flows.forget_peer(peer, out, |slot, _| {
            ready.remove(positions, slot);
        });
    }

    fn drop_flow(&mut self, slot: u32) -> Option<(NodeId, u32)> {
        let flow = self.flows.remove(slot)?;
        self.ready.remove(&mut self.positions, slot);
        Some((flow.dst, flow.flow))
    }

    /// Returns the next data packet.
    #[inline]
    pub(super) fn next_data(
        &mut self,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) -> Option<Packet<HomaHeader>> {
        let (_, slot) = self.ready.first()?;
        let flow = &mut self.flows[slot];
        let (seq, priority, header) = take_packet(flow, slot, homa);
        let is_unscheduled = matches!(header, HomaHeader::Unscheduled { .. });
        let marks = match is_unscheduled && homa.is_droppable() {
            true => Marks::UNSCHEDULED,
            false => Marks::NONE,
        };
        let (dst, msg) = (flow.dst, flow.msg);
        if is_unscheduled
            && flow.state.next == flow.state.unscheduled
            && let Some(round) = &mut flow.state.first_round
            && !std::mem::replace(&mut round.is_probed, true)
        {
            // Behind the last of them, in their class.
            out.send_class(dst, msg, make_probe(flow, slot), priority);
        }
        let outgoing = self.flows.message(slot);
        self.rank(slot, homa);
        let packet = homa.segmentation.data(outgoing, seq, priority, header);
        Some(Packet { marks, ..packet })
    }

    /// Probes for messages without an answer, at intervals, and aborts those that are never
    /// answered. Notifies `gone` of them. If many probes wait for this host's own link, no more are
    /// made.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
        mut gone: impl FnMut(NodeId, u32),
    ) {
        while let Some(slot) = self.flows.next_due(now) {
            self.flows.queue_retransmit(slot);
        }
        while !out.is_backlogged()
            && let Some(slot) = self.flows.next_retransmit(now, homa.recovery.retransmit_gap)
        {
            let flow = &mut self.flows[slot];
            let (msg, dst, number) = (flow.msg, flow.dst, flow.flow);
            if flow.retry.attempt(now, &homa.recovery.attempt_limit) {
                out.send(dst, msg, make_probe(flow, slot));
                let pause = homa
                    .recovery
                    .attempt_limit
                    .interval(homa.timeout_of(dst), flow.retry.attempts());
                self.flows.start_timer(slot, now + pause);
            } else {
                self.drop_flow(slot);
                out.push_event(Event::Failed { msg });
                gone(dst, number);
            }
        }
        if out.is_backlogged() {
            self.flows.postpone_retransmits(now + homa.recovery.timeout);
        }
    }
}

fn make_probe(flow: &TxFlow, tx_slot: u32) -> HomaHeader {
    let TxState { unscheduled, answers, next, .. } = flow.state;
    let is_burst_over = next >= unscheduled;
    let (flow, size) = (flow.flow, flow.size);
    HomaHeader::Probe { flow, tx_slot, size, unscheduled, answers, is_burst_over }
}

/// Takes the next packet of a message that has one: its number, priority and header.
#[inline]
fn take_packet(flow: &mut TxFlow, tx_slot: u32, homa: &Homa) -> (u32, Priority, HomaHeader) {
    let (size, number) = (flow.size, flow.flow);
    let state = &mut flow.state;
    let rx_slot = state.rx_slot;
    if let Some((from, end)) = state.retransmit_queue.front_mut() {
        let seq = *from;
        *from += 1;
        if from == end {
            state.retransmit_queue.pop_front();
        }
        return (seq, Priority::HIGHEST, HomaHeader::Data { rx_slot, seq });
    }
    let seq = state.next;
    if seq < state.unscheduled {
        state.next += 1;
        let TxState { unscheduled, answers, has_incast, .. } = *state;
        let header = HomaHeader::Unscheduled {
            flow: number,
            tx_slot,
            seq,
            size,
            unscheduled,
            answers,
            incast: has_incast,
        };
        return (seq, homa.unscheduled_priority(size), header);
    }
    state.used += 1;
    while state.priorities.len() > 1 && state.priorities[0].0 < state.used {
        state.priorities.pop_front();
    }
    let lowest = homa.config.priorities - 1;
    let priority = state.priorities.front().map_or(lowest, |&(_, priority)| priority.min(lowest));
    let lost = state.first_round.as_mut().and_then(|round| round.lost.pop_front());
    let seq = lost.unwrap_or_else(|| {
        state.next += 1;
        seq
    });
    (seq, Priority::new(priority), HomaHeader::Data { rx_slot, seq })
}
