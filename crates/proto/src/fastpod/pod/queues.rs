//! The virtual output queues of a host: its messages by destination, with their scheduled,
//! unscheduled and acknowledged bytes.
//!
//! Scheduled slots send every cell of a message in order. Before that, the same cells may have been
//! sent without a schedule (§3.3); whether they arrived is not known.

use std::collections::{BTreeSet, VecDeque};

use rampmeter_types::collections::IdMap;
use rampmeter_types::{Event, Message, MsgId, NodeId, Packet, Priority, Span, Time};

use crate::fastpod::config::{Fastpod, MessageOrder};
use crate::fastpod::packing::{CellTime, cells_of};
use crate::fastpod::timing::Instant;
use crate::fastpod::wire::{FastpodHeader, POD_FLAG};
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output};

/// A message's own part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The next cell that is sent by schedule, and without.
    next: u32,
    free: u32,
    /// Bytes on the wire of its last cell.
    last_bytes: u16,
    /// Key in its queue.
    key: u64,
    /// Time of its submission, and of its last cell sent by schedule.
    submitted_at: Time,
    sent_at: Time,
    /// Target of the requested slots: the destination host, or its pod.
    target: u16,
    /// End of the time in which it may be sent without a schedule; `None` while the arbiter has
    /// received no request.
    unscheduled_until: Option<Instant>,
}

/// Messages to one destination, a host of the pod or another pod, that have cells to send by
/// schedule.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Flows by order, then by slot at the source.
    queued: BTreeSet<(u64, u32)>,
    /// Number of cells, and their bytes on the wire.
    cells: u64,
    bytes: u64,
    /// The message whose cell was sent last.
    last: Option<u32>,
    /// Messages of which some cells were sent and then others', with the time, earliest first. Some
    /// have been sent since.
    deferred: VecDeque<(Time, u32)>,
}

impl Queue {
    /// Returns a message that waits, of which nothing was sent for `span` although it has begun.
    /// Receivers would forget it in the end.
    fn starved_message(
        &mut self,
        now: Time,
        span: Span,
        flows: &OutgoingFlows<Progress>,
    ) -> Option<(u64, u32)> {
        while let Some(&(at, slot)) = self.deferred.front()
            && at + span <= now
        {
            self.deferred.pop_front();
            let state = flows.get(slot).map(|flow| &flow.state);
            let has_begun = |state: &&Progress| state.next > 0 && state.sent_at <= at;
            let key = state.filter(has_begun).map(|state| (state.key, slot));
            if let Some(key) = key.filter(|key| self.queued.contains(key)) {
                return Some(key);
            }
        }
        None
    }

    /// Selects the message whose cells are sent next. An unfinished one before it is deferred.
    fn switch_to(&mut self, now: Time, slot: u32, flows: &OutgoingFlows<Progress>) {
        let before = self.last.replace(slot).filter(|&before| before != slot);
        let Some((before, flow)) = before.and_then(|slot| Some((slot, flows.get(slot)?))) else {
            return;
        };
        if self.queued.contains(&(flow.state.key, before)) {
            self.deferred.push_back((now, before));
        }
    }
}

/// The queues of one host.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    pod: u16,
    flows: OutgoingFlows<Progress>,
    queues: IdMap<u16, Queue>,
    /// Messages by destination and number, as acknowledgements name them.
    numbers: IdMap<(u32, u32), u32>,
    /// Messages that may be sent without a schedule, earliest first.
    unscheduled: VecDeque<(u32, MsgId)>,
    submitted: u64,
    /// Cells of all queues.
    cells: u64,
    /// Bytes on the wire of a cell that is not its message's last.
    full_cell_bytes: u64,
}

/// Returns the bytes on the wire of the scheduled part of a message.
fn remaining_bytes(flow: &OutgoingFlow<Progress>, whole_bytes: u64) -> u64 {
    match flow.packets - flow.state.next {
        0 => 0,
        left => u64::from(left - 1) * whole_bytes + u64::from(flow.state.last_bytes),
    }
}

/// Maximum number of doublings of a message's timeout.
const BACKOFF_MAX: u32 = 6;

/// Count of numbers for acknowledgements.
pub(crate) const ACK_NUMBERS: u32 = 1 << 16;

fn number(dst: NodeId, flow: u32) -> (u32, u32) {
    (dst.get(), flow % ACK_NUMBERS)
}

impl Queues {
    pub(crate) fn new(node: NodeId, pod: u16, fastpod: &Fastpod) -> Self {
        Self {
            pod,
            full_cell_bytes: fastpod.cell_bytes(),
            flows: OutgoingFlows::new(node),
            queues: IdMap::default(),
            numbers: IdMap::default(),
            unscheduled: VecDeque::new(),
            submitted: 0,
            cells: 0,
        }
    }

    /// Returns the slot of a message.
    pub(crate) fn slot(&self, msg: MsgId) -> Option<u32> {
        self.flows.slot(msg)
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Cells that wait for scheduled slots to a destination.
    #[inline]
    pub(crate) fn waiting(&self, dst: u16) -> u64 {
        self.queues.get(&dst).map_or(0, |queue| queue.cells)
    }

    /// Returns the scheduled cells that they take: fewer if packets share cells.
    pub(crate) fn cells_wanted(&self, dst: u16, fastpod: &Fastpod) -> u64 {
        let Some(queue) = self.queues.get(&dst).filter(|_| fastpod.config.packing) else {
            return self.waiting(dst);
        };
        let messages = queue.queued.iter().map(|&(_, slot)| {
            let flow = &self.flows[slot];
            (flow.packets - flow.state.next - 1, flow.state.last_bytes)
        });
        cells_of(messages, queue.bytes, fastpod)
    }

    /// Returns true if any cell waits.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.cells > 0
    }

    /// Destinations for which cells wait, in order.
    pub(crate) fn destinations(&self) -> Vec<u16> {
        let waiting = self.queues.iter().filter(|(_, queue)| queue.cells > 0);
        let mut dsts: Vec<u16> = waiting.map(|(&dst, _)| dst).collect();
        dsts.sort_unstable();
        dsts
    }

    /// Enters a message. It may be sent without a schedule if nothing waits for its destination.
    pub(crate) fn submit(&mut self, now: Time, message: &Message, fastpod: &Fastpod) {
        let packets = fastpod.segmentation().packets(message.size);
        let target = fastpod.target(self.pod, message.dst.get() as u16);
        // Nothing is sent to other pods without a schedule (§3.4).
        let is_alone = self.waiting(target) == 0 && target & POD_FLAG == 0;
        // A message that waits for long keeps its number.
        let (dst, numbers) = (message.dst, &self.numbers);
        let is_free = |flow| !numbers.contains_key(&number(dst, flow));
        self.flows.skip_numbers(dst, ACK_NUMBERS, is_free);
        let slot = self.flows.submit(
            message,
            packets,
            Progress { submitted_at: now, target, ..Progress::default() },
        );
        self.flows[slot].state.last_bytes = self.cell(slot, packets - 1, fastpod).wire_bytes;
        self.numbers.insert(number(dst, self.flows[slot].flow), slot);
        self.submitted += 1;
        if fastpod.config.optimistic && is_alone {
            self.unscheduled.push_back((slot, message.id));
        }
        self.enqueue(slot, fastpod.config.message_order);
    }

    /// Puts all cells of a message into its queue.
    fn enqueue(&mut self, slot: u32, order: MessageOrder) {
        let submitted = self.submitted;
        let flow = &mut self.flows[slot];
        flow.state.next = 0;
        flow.state.key = match order {
            MessageOrder::Srpt => flow.packets.into(),
            MessageOrder::Fifo => submitted,
        };
        let queue = self.queues.entry(flow.state.target).or_default();
        queue.queued.insert((flow.state.key, slot));
        queue.cells += u64::from(flow.packets);
        queue.bytes += remaining_bytes(flow, self.full_cell_bytes);
        self.cells += u64::from(flow.packets);
    }

    /// Takes a message out of its queue.
    fn dequeue(&mut self, slot: u32) {
        let flow = &mut self.flows[slot];
        let left = u64::from(flow.packets - flow.state.next);
        if left == 0 {
            return;
        }
        let bytes = remaining_bytes(flow, self.full_cell_bytes);
        flow.state.next = flow.packets;
        if let Some(queue) = self.queues.get_mut(&flow.state.target) {
            queue.queued.remove(&(flow.state.key, slot));
            queue.cells -= left;
            queue.bytes -= bytes;
            self.cells -= left;
        }
    }

    fn cell(&self, slot: u32, seq: u32, fastpod: &Fastpod) -> Packet<FastpodHeader> {
        let flow = &self.flows[slot];
        let header = FastpodHeader::Cell { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
        let packet =
            fastpod.segmentation().data(self.flows.message(slot), seq, Priority::new(1), header);
        Packet { wire_bytes: fastpod.charged_bytes(packet.wire_bytes), ..packet }
    }

    /// Returns the next packet to a destination, in the rest of the time of a scheduled cell. Also
    /// returns its start, and true if it was sent by schedule before.
    pub(crate) fn next_scheduled(
        &mut self,
        now: Time,
        dst: u16,
        time: &mut CellTime,
        fastpod: &Fastpod,
    ) -> Option<(Packet<FastpodHeader>, Span, bool)> {
        let queue = self.queues.get_mut(&dst)?;
        // A starved message has a cell's first packet, which always fits.
        let starved = match time.is_used() {
            true => None,
            false => queue.starved_message(now, fastpod.forget_timeout / 4, &self.flows),
        };
        let (key, slot) = starved.or_else(|| queue.queued.first().copied())?;
        let flow = &self.flows[slot];
        let bytes = match flow.state.next + 1 == flow.packets {
            true => flow.state.last_bytes,
            false => self.full_cell_bytes as u16,
        };
        let begin = time.place(bytes, fastpod)?;
        queue.switch_to(now, slot, &self.flows);
        let flow = &mut self.flows[slot];
        flow.state.sent_at = now;
        let seq = flow.state.next;
        flow.state.next += 1;
        queue.cells -= 1;
        queue.bytes -= u64::from(bytes);
        self.cells -= 1;
        let is_last = flow.state.next == flow.packets;
        if is_last || fastpod.config.message_order == MessageOrder::Srpt {
            queue.queued.remove(&(key, slot));
        }
        if is_last {
            // Waits longer after each attempt.
            let rto = if dst & POD_FLAG == 0 { fastpod.rto } else { fastpod.rto_far };
            let wait = rto * (1 << flow.retry.attempts().min(BACKOFF_MAX));
            let wait = fastpod.attempt_limit.double_interval(wait, rto);
            self.flows.defer_timer(slot, now + wait);
        } else if fastpod.config.message_order == MessageOrder::Srpt {
            flow.state.key = (flow.packets - flow.state.next).into();
            queue.queued.insert((flow.state.key, slot));
        }
        let is_again = self.flows[slot].retry.attempts() > 0;
        Some((self.cell(slot, seq, fastpod), begin, is_again))
    }

    /// Returns the messages that may still be sent without a schedule at `at`, earliest first.
    fn unscheduled_candidates(&self, at: Instant) -> impl Iterator<Item = &OutgoingFlow<Progress>> {
        let flows = self
            .unscheduled
            .iter()
            .filter_map(|&(slot, msg)| self.flows.get(slot).filter(|flow| flow.msg == msg));
        flows.filter(move |f| may_send_unscheduled(&f.state, f.packets, at))
    }

    /// Returns the destination of the earliest of them, and when it was submitted.
    #[inline]
    pub(crate) fn earliest(&self, at: Instant) -> Option<(u16, Time)> {
        self.unscheduled_candidates(at)
            .next()
            .map(|flow| (flow.dst.get() as u16, flow.state.submitted_at))
    }

    /// Returns true if one of them is for `dst`.
    #[inline]
    pub(crate) fn has_unscheduled(&self, dst: u16, at: Instant) -> bool {
        self.unscheduled_candidates(at).any(|flow| flow.dst.get() == u32::from(dst))
    }

    /// Returns the next cell to `dst` without a schedule.
    pub(crate) fn next_unscheduled(
        &mut self,
        dst: u16,
        at: Instant,
        fastpod: &Fastpod,
    ) -> Option<Packet<FastpodHeader>> {
        let flow = self.unscheduled_candidates(at).find(|flow| flow.dst.get() == u32::from(dst))?;
        let slot = self.flows.slot(flow.msg)?;
        let seq = self.flows[slot].state.free;
        self.flows[slot].state.free += 1;
        Some(self.cell(slot, seq, fastpod))
    }

    /// Forgets messages that can no longer be sent without a schedule at `at`.
    pub(crate) fn expire_unscheduled(&mut self, at: Instant) {
        let flows = &self.flows;
        self.unscheduled.retain(|&(slot, msg)| {
            let flow = flows.get(slot).filter(|flow| flow.msg == msg);
            flow.is_some_and(|f| may_send_unscheduled(&f.state, f.packets, at))
        });
    }

    /// Handles requests for slots to `dst` that the arbiter has received. Packets that were not
    /// requested before may be sent without slots until `until`.
    pub(crate) fn on_requested(&mut self, dst: u16, until: Instant) {
        for &(slot, msg) in &self.unscheduled {
            let flow =
                self.flows.get_current(slot, msg).filter(|flow| flow.dst.get() == u32::from(dst));
            if let Some(flow) = flow {
                flow.state.unscheduled_until.get_or_insert(until);
            }
        }
    }

    /// Removes a message from the queues.
    fn remove(&mut self, slot: u32) -> Option<OutgoingFlow<Progress>> {
        self.flows.get(slot)?;
        self.dequeue(slot);
        let flow = self.flows.remove(slot)?;
        // Only if all numbers are in use does another message have the same.
        let number = number(flow.dst, flow.flow);
        if self.numbers.get(&number) == Some(&slot) {
            self.numbers.remove(&number);
        }
        Some(flow)
    }

    /// Handles the acknowledgement of a message.
    pub(crate) fn on_ack(&mut self, dst: u16, flow: u16, out: &mut Output<FastpodHeader>) {
        let Some(&slot) = self.numbers.get(&(u32::from(dst), u32::from(flow))) else { return };
        // Unsent packets cannot have arrived: the number is that of an earlier message.
        let is_sent = self.flows.get(slot).is_some_and(|flow| {
            flow.state.next > 0 || flow.state.free > 0 || flow.retry.attempts() > 0
        });
        if is_sent && let Some(flow) = self.remove(slot) {
            out.push_event(Event::Completed { msg: flow.msg });
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    /// Pauses or resumes a message, by flow control of its destination. If it resumes, returns the
    /// destination for which slots are needed.
    pub(crate) fn set_paused(
        &mut self,
        now: Time,
        dst: NodeId,
        msg: MsgId,
        is_paused: bool,
        fastpod: &Fastpod,
    ) -> Option<u16> {
        let slot = self.flows.slot(msg)?;
        let flow = &mut self.flows[slot];
        if flow.dst != dst {
            return None;
        }
        let pause = now + fastpod.paused_probe_interval;
        if flow.is_paused == is_paused {
            if is_paused {
                self.flows.on_response(slot, pause);
            }
            return None;
        }
        flow.is_paused = is_paused;
        flow.retry.reset();
        self.dequeue(slot);
        if is_paused {
            self.flows.start_timer(slot, pause);
            return None;
        }
        self.enqueue(slot, fastpod.config.message_order);
        Some(self.flows[slot].state.target)
    }

    /// Probes the receiver of a paused message.
    fn probe_receiver(&self, slot: u32, out: &mut Output<FastpodHeader>) {
        let flow = &self.flows[slot];
        let header = FastpodHeader::Request { flow: flow.flow, tx_slot: slot, size: flow.size };
        out.send(flow.dst, flow.msg, header);
    }

    /// Queues unacknowledged messages for retransmission, and probes the receivers of paused ones.
    /// Returns the destination of the next; `None` if no other is due.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        fastpod: &Fastpod,
        out: &mut Output<FastpodHeader>,
    ) -> Option<u16> {
        let slot = self.flows.next_due_or_probe(now, fastpod.retransmit_gap)?;
        let flow = &mut self.flows[slot];
        let to = flow.state.target;
        if flow.state.next < flow.packets {
            return Some(to);
        }
        let is_paused = flow.is_paused;
        if flow.retry.attempt(now, &fastpod.attempt_limit) {
            if is_paused {
                self.flows.defer_timer(slot, now + fastpod.paused_probe_interval);
                self.probe_receiver(slot, out);
            } else {
                self.enqueue(slot, fastpod.config.message_order);
            }
        } else if let Some(flow) = self.remove(slot) {
            out.push_event(Event::Failed { msg: flow.msg });
        }
        Some(to)
    }

    /// Cancels a message.
    pub(crate) fn cancel(&mut self, msg: MsgId) {
        if let Some(slot) = self.flows.slot(msg) {
            self.remove(slot);
        }
    }

    fn fail(&mut self, is_one: impl Fn(&OutgoingFlow<Progress>) -> bool) -> Vec<MsgId> {
        let all = self.flows.iter().filter(|(_, flow)| is_one(flow));
        let all: Vec<(u32, MsgId)> = all.map(|(slot, flow)| (slot, flow.msg)).collect();
        let remove = |(slot, msg)| self.remove(slot).map(|_| msg);
        all.into_iter().filter_map(remove).collect()
    }

    /// Handles a destination that has lost its state: messages to it fail, and others are
    /// renumbered.
    pub(crate) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<FastpodHeader>) {
        for msg in self.fail(|flow| flow.dst == peer) {
            out.push_event(Event::Failed { msg });
        }
        self.flows.forget_peer(peer, out, |_, _| {});
    }

    /// Fails every message with cells to send.
    pub(crate) fn fail_waiting(&mut self, out: &mut Output<FastpodHeader>) {
        for msg in self.fail(|flow| flow.state.next < flow.packets) {
            out.push_event(Event::Failed { msg });
        }
    }
}

fn may_send_unscheduled(state: &Progress, packets: u32, at: Instant) -> bool {
    state.next == 0
        && state.free < packets
        && state.unscheduled_until.is_none_or(|until| at < until)
}
