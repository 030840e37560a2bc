//! The sender's side (NDP, section 3): a first window at once, then a packet for each pull.
//!
//! A pull sends a refused packet if there is one, else a new one. Packets that were neither
//! acknowledged nor refused in time are retransmitted without a pull. A packet whose header
//! returned waits for a pull too, unless no pull is expected: then it is sent at once.

use std::collections::VecDeque;

use rampmeter_types::collections::SeqSet;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Priority, Rng, Span, Stage, Time,
};

use super::config::Ndp;
use super::path::Paths;
use super::stats::NdpStats;
use super::wire::NdpHeader;
use crate::toolkit::{OutgoingFlows, Output};

/// A packet that was sent and not answered.
#[derive(Clone, Copy, Debug)]
struct UnansweredPacket {
    seq: u32,
    path: u16,
    sent_at: Time,
}

/// A flow's own part.
#[derive(Debug, Default)]
struct Window {
    /// The next packet that was never sent.
    next: u32,
    /// Packets that may be sent.
    credit: u32,
    /// Packets that the receiver has pulled.
    pulled: u32,
    /// Packets acknowledged or refused: each brings a pull.
    answered: u32,
    acked: SeqSet,
    /// Packets to retransmit, first.
    retransmit_queue: VecDeque<u32>,
    /// Packets in flight, in the order in which they were sent. Those acknowledged are removed when
    /// they are first.
    sent: VecDeque<UnansweredPacket>,
    paths: Paths,
    /// True if the flow is queued for sending.
    is_ready_queued: bool,
}

impl Window {
    /// Returns the maximum number of packets that a flow of `packets` could send.
    fn sendable(&self, packets: u32) -> u32 {
        self.retransmit_queue.len() as u32 + (packets - self.next)
    }

    /// Returns the next packet to send.
    fn take(&mut self, packets: u32) -> Option<u32> {
        while let Some(seq) = self.retransmit_queue.pop_front() {
            if !self.acked.contains(seq) {
                return Some(seq);
            }
        }
        let seq = self.next;
        (seq < packets).then(|| self.next += 1)?;
        Some(seq)
    }

    /// Removes a packet from those in flight. Returns false if it was not among them.
    fn take_sent(&mut self, seq: u32) -> bool {
        let place = self.sent.iter().position(|sent| sent.seq == seq);
        place.and_then(|place| self.sent.remove(place)).is_some()
    }

    fn drop_acked(&mut self) {
        while self.sent.front().is_some_and(|sent| self.acked.contains(sent.seq)) {
            self.sent.pop_front();
        }
    }

    /// Returns the time at which the first packet in flight counts as lost. Without any, this is
    /// the end of the wait for a pull.
    fn due(&self, now: Time, timeout: Span) -> Time {
        self.sent.front().map_or(now, |sent| sent.sent_at) + timeout
    }

    /// Adds the pulls up to number `pull` to the credit. A pull may overtake the refusal of the
    /// packet that it is for, so its credit waits for a packet.
    fn pull(&mut self, pull: u32) {
        self.credit = self.credit.saturating_add(pull.saturating_sub(self.pulled));
        self.pulled = self.pulled.max(pull);
    }

    /// Counts packets as lost that were sent a timeout ago, and allows them to be retransmitted.
    fn expire(&mut self, now: Time, timeout: Span, ndp: &Ndp) -> u32 {
        let mut lost = 0;
        while let Some(&UnansweredPacket { seq, path, sent_at }) = self.sent.front()
            && sent_at + timeout <= now
        {
            self.sent.pop_front();
            if !self.acked.contains(seq) {
                self.paths.on_answer(path, ndp.paths, true);
                self.retransmit_queue.push_back(seq);
                lost += 1;
            }
        }
        self.credit = self.credit.saturating_add(lost);
        lost
    }
}

pub(crate) const PULL: &Stage = &Stage {
    name: "pull",
    meaning: "The first window has been sent, and the receiver has not pulled the next packet.",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[PULL];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<Window>,
    /// Flows that may send, round robin; those that have ended are skipped.
    ready_queue: VecDeque<(u32, MsgId)>,
    rng: Rng,
}

impl Sender {
    pub(super) fn new(node: NodeId, rng: Rng) -> Self {
        Self { flows: OutgoingFlows::new(node), ready_queue: VecDeque::new(), rng }
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
        self.flows.gauges(each, |flow| {
            [
                ("credit_packets", u64::from(flow.state.credit)),
                ("in_flight_packets", flow.state.sent.len() as u64),
            ]
        });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        let state = &self.flows[self.flows.slot(msg)?].state;
        let is_pulled = state.is_ready_queued;
        Some(if is_pulled { Permission::Granted } else { Permission::Awaited(PULL) })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready_queue.is_empty()
    }

    /// Submits a new flow: it sends its first window at once.
    pub(super) fn submit(&mut self, now: Time, message: Message, ndp: &Ndp) {
        let packets = ndp.segmentation().packets(message.size);
        let state = Window { credit: packets.min(ndp.window_to(message.dst)), ..Window::default() };
        let slot = self.flows.submit(&message, packets, state);
        self.flows.start_timer(slot, now + ndp.timeout_to(message.dst, 0));
        self.enqueue_ready(slot);
    }

    /// Puts a flow in line if it may send.
    #[inline]
    fn enqueue_ready(&mut self, slot: u32) {
        let flow = &mut self.flows[slot];
        let state = &mut flow.state;
        if state.credit > 0 && !state.is_ready_queued && state.sendable(flow.packets) > 0 {
            state.is_ready_queued = true;
            self.ready_queue.push_back((slot, flow.msg));
        }
    }

    /// Handles the answer to packet `seq`, which took `path`: it has arrived, or was trimmed.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        msg: MsgId,
        header: &NdpHeader,
        ndp: &Ndp,
        out: &mut Output<NdpHeader>,
    ) {
        let (tx_slot, seq, cumulative, pull, path) = match *header {
            NdpHeader::Ack { tx_slot, seq, cumulative, pull, path } => {
                (tx_slot, seq, Some(cumulative), pull, path)
            }
            NdpHeader::Nack { tx_slot, seq, pull, path } => (tx_slot, seq, None, pull, path),
            NdpHeader::Pull { .. } | NdpHeader::Data { .. } => return,
        };
        let Some(flow) = self.flows.get_current(tx_slot, msg) else { return };
        let state = &mut flow.state;
        if seq >= state.next {
            return;
        }
        if ndp.paths > 1 && flow.packets > 1 {
            state.paths.on_answer(path, ndp.paths, cumulative.is_none());
        }
        state.answered = state.answered.saturating_add(1);
        match cumulative {
            Some(cumulative) => {
                state.acked.insert(seq);
                if cumulative >= flow.packets || state.acked.len() == flow.packets {
                    self.flows.remove(tx_slot);
                    out.push_event(Event::Completed { msg });
                    return;
                }
                state.drop_acked();
            }
            None if !state.acked.contains(seq) && state.take_sent(seq) => {
                state.retransmit_queue.push_back(seq);
                state.drop_acked();
            }
            None => {}
        }
        state.pull(pull);
        let due = state.due(now, ndp.timeout_to(flow.dst, 0));
        self.flows.on_response(tx_slot, due);
        self.enqueue_ready(tx_slot);
    }

    /// Handles a pull.
    pub(super) fn on_pull(&mut self, now: Time, slot: u32, msg: MsgId, pull: u32, ndp: &Ndp) {
        let Some(flow) = self.flows.get_current(slot, msg) else { return };
        flow.state.pull(pull);
        let due = flow.state.due(now, ndp.timeout_to(flow.dst, 0));
        self.flows.on_response(slot, due);
        self.enqueue_ready(slot);
    }

    /// Handles the returned header of packet `seq`: a queue on its path was full.
    pub(super) fn on_returned(&mut self, slot: u32, msg: MsgId, seq: u32, stats: &mut NdpStats) {
        let Some(flow) = self.flows.get_current(slot, msg) else { return };
        let state = &mut flow.state;
        if state.acked.contains(seq) || !state.take_sent(seq) {
            return;
        }
        stats.returned += 1;
        state.retransmit_queue.push_back(seq);
        state.drop_acked();
        // With nothing in flight and no outstanding pull, nothing else would send it.
        if state.sent.is_empty() && state.credit == 0 && state.answered <= state.pulled {
            state.credit = 1;
        }
        self.enqueue_ready(slot);
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId) {
        if let Some(slot) = self.flows.slot(msg) {
            self.flows.remove(slot);
        }
    }

    /// Handles a receiver that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<NdpHeader>) {
        self.flows.forget_peer(peer, out, |_, _| {});
    }

    /// Returns the next data packet: flows that may send take turns.
    #[inline]
    pub(super) fn next_data(&mut self, now: Time, ndp: &Ndp) -> Option<Packet<NdpHeader>> {
        while let Some((slot, msg)) = self.ready_queue.pop_front() {
            let Some(flow) = self.flows.get_current(slot, msg) else { continue };
            let state = &mut flow.state;
            state.is_ready_queued = false;
            let Some(seq) = state.take(flow.packets) else { continue };
            state.credit -= 1;
            let path = match ndp.paths {
                1 => None,
                n if flow.packets == 1 => Some(self.rng.uniform_below(n.into()) as u16),
                n => Some(state.paths.next(n, ndp.config.path_penalty, &mut self.rng)),
            };
            state.sent.push_back(UnansweredPacket { seq, path: path.unwrap_or(0), sent_at: now });
            let header = NdpHeader::Data { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
            let outgoing = self.flows.message(slot);
            self.enqueue_ready(slot);
            let mut packet = ndp.segmentation().data(outgoing, seq, Priority::new(1), header);
            if let Some(path) = path {
                packet.path = path;
                packet.marks = Marks::ROUTED;
            }
            return Some(packet);
        }
        None
    }

    /// Retransmits packets without an answer, and aborts flows of which none is ever answered.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        ndp: &Ndp,
        out: &mut Output<NdpHeader>,
        stats: &mut NdpStats,
    ) {
        while let Some(slot) = self.flows.next_due(now) {
            let flow = &mut self.flows[slot];
            let (msg, dst, state) = (flow.msg, flow.dst, &mut flow.state);
            let waits_for_link = state.is_ready_queued;
            let timeout = ndp.timeout_to(dst, flow.retry.attempts());
            let lost = state.expire(now, timeout, ndp);
            stats.timeouts += u64::from(lost);
            if lost == 0 && (waits_for_link || !state.sent.is_empty()) {
                let at = state.due(now, timeout);
                self.flows.start_timer(slot, at);
                continue;
            }
            // A timer without a lost packet waited for a pull.
            stats.pull_timeouts += u64::from(lost == 0);
            if !flow.retry.attempt(now, &ndp.attempt_limit) {
                self.flows.remove(slot);
                out.push_event(Event::Failed { msg });
                continue;
            }
            let attempts = flow.retry.attempts();
            // Without a packet in flight, the pull was lost.
            let state = &mut self.flows[slot].state;
            state.credit = state.credit.max(1);
            let timeout = ndp.timeout_to(dst, attempts);
            self.flows.start_timer(slot, now + timeout);
            self.enqueue_ready(slot);
        }
    }
}
