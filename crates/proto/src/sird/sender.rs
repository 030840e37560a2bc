//! The sender's side: messages without credit at once, packets of others as they have credit.
//!
//! Every other packet is for the next receiver, round robin, so that each receives marks if its
//! sender is congested. The others are of the message with the fewest remaining bytes. Of the
//! messages for one receiver the one with the fewest remaining bytes is first in either case.

use std::collections::VecDeque;

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, Slab};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Stage, Time};

use super::config::{SenderPolicy, Sird};
use super::stats::SirdStats;
use super::wire::SirdHeader;
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output};

/// State of a message. Its timer expires when the sender must repeat its request.
#[derive(Debug)]
struct TxState {
    /// The first packet above all that have been sent.
    next: u32,
    /// Packets that have credit: first, and one past the last.
    credit: VecDeque<(u32, u32)>,
    /// Bytes of these.
    credit_bytes: u64,
    /// Slot at the receiver, once that is known.
    rx_slot: u32,
    /// Number of its receiver.
    peer: u32,
    /// True if its packets need no credit.
    is_unscheduled: bool,
}

/// Ranges of packets of one message that may have credit at a time; a credit for another is
/// dropped, and its receiver takes it back. Of a message without losses there is one.
const RANGES_MAX: usize = 1_024;

type TxFlow = OutgoingFlow<TxState>;

impl TxState {
    /// Returns true if a message of `packets` has a packet with credit, or one that needs none.
    fn is_sendable(&self, packets: u32) -> bool {
        self.is_unscheduled && self.next < packets || !self.credit.is_empty()
    }

    fn is_waiting(&self, seq: u32) -> bool {
        self.credit.iter().any(|&(from, end)| (from..end).contains(&seq))
    }
}

/// Preference among messages: remaining bytes, then age.
type Key = (u64, u32);

/// A receiver of messages.
#[derive(Debug, Default)]
struct Peer {
    /// Messages for it that have something to send.
    ready: KeyedHeap<Key>,
}

pub(crate) const CREDIT: &Stage =
    &Stage { name: "credit", meaning: "The receiver has given no credit for the next packet." };

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[CREDIT];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<TxState>,
    /// Receivers by node. Each stays until its host loses its state.
    numbers: IdMap<u32, u32>,
    peers: Slab<Peer>,
    positions: HeapPositions,
    /// Receivers for which there is something to send, by the first message of each.
    shortest: KeyedHeap<Key>,
    shortest_positions: HeapPositions,
    /// The same, round robin.
    round_robin: KeyedHeap<u64>,
    turn_positions: HeapPositions,
    turn: u64,
    is_fair_next: bool,
    /// Bytes of packets that have credit, or need none, and have not been sent.
    credit: u64,
    /// Messages of which a packet has not been sent.
    unsent: u32,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            flows: OutgoingFlows::new(node),
            numbers: IdMap::default(),
            peers: Slab::default(),
            positions: HeapPositions::default(),
            shortest: KeyedHeap::default(),
            shortest_positions: HeapPositions::default(),
            round_robin: KeyedHeap::default(),
            turn_positions: HeapPositions::default(),
            turn: 0,
            is_fair_next: false,
            credit: 0,
            unsent: 0,
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the credit of all flows.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.flows.gauges(each, |flow| [("credit_bytes", flow.state.credit_bytes)]);
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        let flow = &self.flows[self.flows.slot(msg)?];
        let is_credited = flow.state.is_sendable(flow.packets);
        Some(if is_credited { Permission::Granted } else { Permission::Awaited(CREDIT) })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.shortest.is_empty()
    }

    /// Returns the bytes of packets that have credit and have not been sent.
    pub(super) fn credit(&self) -> u64 {
        self.credit
    }

    /// Submits a new message.
    pub(super) fn submit(
        &mut self,
        now: Time,
        message: &Message,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
    ) {
        let size = message.size.get();
        let node = message.dst.get();
        let Self { numbers, peers, .. } = self;
        let peer = *numbers.entry(node).or_insert_with(|| peers.insert(Peer::default()));
        let is_unscheduled = sird.is_unscheduled_to(message.dst, size);
        let own = if is_unscheduled { sird.wire_bytes(size) } else { 0 };
        self.credit += own;
        self.unsent += 1;
        let credit = VecDeque::new();
        let state =
            TxState { next: 0, credit, credit_bytes: own, rx_slot: 0, peer, is_unscheduled };
        let slot = self.flows.submit(message, sird.segmentation(size).packets(message.size), state);
        self.flows.start_timer(slot, now + sird.timeout_of(message.dst));
        if is_unscheduled {
            self.rank(slot, sird);
        } else {
            out.send(message.dst, message.id, make_request(&self.flows[slot], slot));
        }
    }

    /// Enters a message among those that have something to send, changes its place, or drops it.
    #[inline]
    fn rank(&mut self, slot: u32, sird: &Sird) {
        let flow = &self.flows[slot];
        let state = &flow.state;
        let left = sird.segmentation(flow.size).remaining(state.next, flow.size);
        let key = state.is_sendable(flow.packets).then_some((left, flow.msg.get()));
        self.set_key(state.peer, slot, key);
    }

    fn set_key(&mut self, peer: u32, slot: u32, key: Option<Key>) {
        let ready = &mut self.peers[peer].ready;
        match key {
            Some(key) => ready.set(&mut self.positions, slot, key),
            None => {
                ready.remove(&mut self.positions, slot);
            }
        }
        let Some((first, _)) = ready.first() else {
            self.shortest.remove(&mut self.shortest_positions, peer);
            self.round_robin.remove(&mut self.turn_positions, peer);
            return;
        };
        self.shortest.set(&mut self.shortest_positions, peer, first);
        if self.round_robin.get(&self.turn_positions, peer).is_none() {
            self.move_to_back(peer);
        }
    }

    /// Puts a receiver behind all others.
    fn move_to_back(&mut self, peer: u32) {
        self.turn += 1;
        self.round_robin.set(&mut self.turn_positions, peer, self.turn);
    }

    /// Handles credit for a packet of a message.
    pub(super) fn on_credit(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        rx_slot: u32,
        seq: u32,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
    ) {
        let due = |peer| now + sird.timeout_of(peer);
        let Some(flow) = self.flows.on_response_from(slot, msg, due) else { return };
        flow.state.rx_slot = rx_slot;
        if seq >= flow.packets {
            return;
        }
        let is_unsent = flow.state.is_unscheduled && seq >= flow.state.next;
        if is_unsent || flow.state.is_waiting(seq) {
            out.send(flow.dst, msg, SirdHeader::Busy { rx_slot });
            return;
        }
        let ranges = &mut flow.state.credit;
        let is_full = ranges.len() >= RANGES_MAX;
        match ranges.back_mut() {
            Some(last) if last.1 == seq => last.1 += 1,
            _ if is_full => return,
            _ => ranges.push_back((seq, seq + 1)),
        }
        let bytes = sird.segmentation(flow.size).wire_bytes(seq, flow.size);
        flow.state.credit_bytes += bytes;
        self.credit += bytes;
        self.rank(slot, sird);
    }

    /// Records that the receiver has the message.
    pub(super) fn on_request_acked(&mut self, now: Time, slot: u32, msg: MsgId, sird: &Sird) {
        self.flows.on_response_from(slot, msg, |peer| now + sird.timeout_of(peer));
    }

    /// Handles the arrival of the whole message at its receiver.
    pub(super) fn complete(&mut self, slot: u32, msg: MsgId, out: &mut Output<SirdHeader>) {
        if self.flows.get_current(slot, msg).is_some() {
            out.push_event(Event::Completed { msg });
            self.drop_flow(slot);
        }
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<SirdHeader>) {
        if let Some(slot) = self.flows.slot(msg) {
            out.cancel(msg, |header| {
                matches!(header, SirdHeader::Request { .. } | SirdHeader::Busy { .. })
            });
            self.drop_flow(slot);
        }
    }

    /// Handles a receiver that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<SirdHeader>) {
        let Some(number) = self.numbers.remove(&peer.get()) else { return };
        let Self { flows, peers, positions, credit, unsent, .. } = self;
        flows.forget_peer(peer, out, |slot, flow| {
            *credit -= flow.state.credit_bytes;
            *unsent -= u32::from(flow.state.next < flow.packets);
            peers[number].ready.remove(positions, slot);
        });
        self.shortest.remove(&mut self.shortest_positions, number);
        self.round_robin.remove(&mut self.turn_positions, number);
        self.peers.remove(number);
    }

    fn drop_flow(&mut self, slot: u32) {
        if let Some(flow) = self.flows.remove(slot) {
            self.credit -= flow.state.credit_bytes;
            self.unsent -= u32::from(flow.state.next < flow.packets);
            self.set_key(flow.state.peer, slot, None);
        }
    }

    /// Returns the receiver that has the next packet.
    #[inline]
    fn next_peer(&mut self, sird: &Sird) -> Option<u32> {
        if sird.config.sender_policy == SenderPolicy::HalfFair {
            self.is_fair_next = !self.is_fair_next;
            if !self.is_fair_next {
                let (_, peer) = self.round_robin.first()?;
                self.move_to_back(peer);
                return Some(peer);
            }
        }
        self.shortest.first().map(|(_, peer)| peer)
    }

    /// Returns the next data packet.
    #[inline]
    pub(super) fn next_data(
        &mut self,
        sird: &Sird,
        stats: &mut SirdStats,
    ) -> Option<Packet<SirdHeader>> {
        if self.shortest.is_empty() {
            return None;
        }
        let peer = self.next_peer(sird)?;
        let (_, slot) = self.peers[peer].ready.first()?;
        let has_others = self.unsent > 1;
        let flow = &mut self.flows[slot];
        let size = flow.size;
        let credited = take_credited(flow);
        let seq = credited.unwrap_or(flow.state.next);
        let bytes = sird.segmentation(size).wire_bytes(seq, size);
        let taken = bytes.min(flow.state.credit_bytes);
        flow.state.credit_bytes -= taken;
        self.credit -= taken;
        // A sender of one message is never congested.
        let csn = has_others && self.credit > sird.mark_above;
        stats.congested += u64::from(csn);
        let (rx_slot, tx_slot) = (flow.state.rx_slot, slot);
        let header = match credited {
            Some(_) => SirdHeader::Data { rx_slot, seq, csn },
            None => SirdHeader::Unscheduled { flow: flow.flow, tx_slot, seq, size, csn },
        };
        let was_unsent = flow.state.next < flow.packets;
        flow.state.next = flow.state.next.max(seq + 1);
        self.unsent -= u32::from(was_unsent && flow.state.next == flow.packets);
        let priority = match header {
            SirdHeader::Unscheduled { .. } => sird.unscheduled_class(),
            _ => Sird::DATA,
        };
        let outgoing = self.flows.message(slot);
        self.rank(slot, sird);
        let packet = sird.segmentation(size).data(outgoing, seq, priority, header);
        Some(Packet { marks: Marks::ECN_CAPABLE, ..packet })
    }

    /// Repeats requests without an answer, at intervals, and aborts messages that are never
    /// answered. If many requests wait for this host's own link, they are not repeated.
    pub(super) fn handle_timeout(&mut self, now: Time, sird: &Sird, out: &mut Output<SirdHeader>) {
        while let Some(slot) = self.flows.next_due(now) {
            self.flows.queue_retransmit(slot);
        }
        while !out.is_backlogged()
            && let Some(slot) = self.flows.next_retransmit(now, sird.recovery.retransmit_gap)
        {
            let flow = &mut self.flows[slot];
            let (msg, dst) = (flow.msg, flow.dst);
            if flow.retry.attempt(now, &sird.recovery.attempt_limit) {
                out.send(dst, msg, make_request(flow, slot));
                let pause = sird
                    .recovery
                    .attempt_limit
                    .interval(sird.timeout_of(dst), flow.retry.attempts());
                self.flows.start_timer(slot, now + pause);
            } else {
                self.drop_flow(slot);
                out.push_event(Event::Failed { msg });
            }
        }
        if out.is_backlogged() {
            self.flows.postpone_retransmits(now + sird.recovery.timeout);
        }
    }
}

fn make_request(flow: &TxFlow, tx_slot: u32) -> SirdHeader {
    SirdHeader::Request { flow: flow.flow, tx_slot, size: flow.size }
}

/// Returns the next packet of a message that has credit.
#[inline]
fn take_credited(flow: &mut TxFlow) -> Option<u32> {
    let (from, end) = flow.state.credit.front_mut()?;
    let seq = *from;
    *from += 1;
    if from == end {
        flow.state.credit.pop_front();
    }
    Some(seq)
}
