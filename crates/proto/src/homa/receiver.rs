//! The receiver's side: messages that arrive, their grants, and requests of retransmissions.

use std::collections::VecDeque;

use rampmeter_types::{Gauge, MsgId, NodeId, Packet, Rate, Receipt, Span, Time};

use super::config::Homa;
use super::grant_scheduler::{GrantContext, GrantScheduler};
use super::rx_flow::{MessageProgress, RxFlow};
use super::sender::RANGES_MAX;
use super::stats::HomaStats;
use super::wire::HomaHeader;
use crate::toolkit::{
    Announcement, ArrivingFlowId, ArrivingFlows, FlowStatus, Output, RetryTimer, Timers,
};

/// A message as its first packet describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageDescription {
    pub(super) announcement: Announcement,
    pub(super) size: u64,
    pub(super) unscheduled: u32,
    pub(super) answers: u32,
}

/// Divisor of the timeout. A receiver requests retransmissions after the timeout if its link has
/// carried no data for this part of it.
const IDLE_PART: u64 = 16;
/// Timeouts for which a receiver with a busy link waits.
const BUSY_TIMES: u64 = 8;
/// Maximum number of doublings of the timeout of a receiver that requests packets that are not
/// lost.
const DOUBLINGS_MAX: u32 = 4;

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<MessageProgress>,
    grant_scheduler: GrantScheduler,
    timers: Timers<ArrivingFlowId>,
    /// Messages whose probes have arrived, and when their missing unscheduled packets count as
    /// lost.
    probed: VecDeque<(Time, ArrivingFlowId)>,
    /// The rate of the link, by which grants are paced.
    rate: Rate,
    /// Time of the latest data packet of any message.
    last_data: Time,
    /// Number of doublings of the timeout. It rises by one if a requested packet arrives twice, as
    /// it was queued in the network, and falls by one if none does.
    doublings: u32,
    next_age: u64,
}

/// Message that has arrived completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompleteMessage {
    pub(super) announcement: Announcement,
    pub(super) answers: u32,
}

impl Receiver {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            flows: ArrivingFlows::default(),
            grant_scheduler: GrantScheduler::new(),
            timers: Timers::default(),
            probed: VecDeque::new(),
            rate,
            last_data: Time::ZERO,
            doublings: 0,
            next_age: 0,
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        let judged = self.probed.front().map_or(Time::NEVER, |&(at, _)| at);
        self.timers.next().min(self.grant_scheduler.deadline()).min(judged)
    }

    /// Calls `each` with the bytes of each message that may arrive: granted or unscheduled bytes
    /// that have not arrived.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        for (_, flow) in self.flows.iter() {
            let (peer, msg, value) =
                (flow.announcement.src, Some(flow.announcement.msg), flow.state.in_flight);
            each(Gauge { name: "granted_bytes", peer, msg, value });
        }
    }

    /// Enters a message that is new. `None` if its number is too far ahead, or its sender has too
    /// many.
    fn insert(&mut self, now: Time, message: &MessageDescription, homa: &Homa) -> Option<u32> {
        let MessageDescription { announcement, size, answers, .. } = *message;
        let unscheduled =
            message.unscheduled.min(announcement.packets).min(homa.segmentation.head_packets());
        let in_flight = (0..unscheduled).map(|seq| homa.segmentation.wire_bytes(seq, size)).sum();
        let state = MessageProgress {
            size,
            unscheduled,
            in_flight,
            issued: 0,
            goal: announcement.packets - unscheduled,
            age: self.next_age,
            is_burst_over: false,
            is_judged: false,
            answers,
            retry: RetryTimer::default(),
            progress_at: now,
            is_resend_requested: false,
        };
        let slot = self.flows.insert(now, announcement, state)?;
        self.next_age += 1;
        let flow = &mut self.flows[slot];
        flow.state.retry.start(
            announcement.at(slot),
            now + homa.timeout_of(announcement.src),
            &mut self.timers,
        );
        self.grant_scheduler.place(slot, flow, homa);
        Some(slot)
    }

    /// Sends the grants that may be sent now.
    pub(super) fn grant(
        &mut self,
        now: Time,
        has_incast: bool,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) {
        let by = GrantContext { now, homa, rate: self.rate, has_incast };
        self.grant_scheduler.grant(&mut self.flows, &by, out);
    }

    /// Pauses a message, which gets no grants until it is resumed.
    pub(super) fn pause(&mut self, src: NodeId, msg: MsgId, homa: &Homa) {
        if let Some(slot) = self.flows.pause(src, msg) {
            self.grant_scheduler.place(slot, &self.flows[slot], homa);
        }
    }

    /// Resumes a paused message, which may get grants. Packets that arrived meanwhile were
    /// dropped: they are requested at once.
    pub(super) fn resume(&mut self, now: Time, src: NodeId, msg: MsgId, homa: &Homa) {
        if let Some(slot) = self.flows.resume(now, src, msg, Span::ZERO) {
            let flow = &mut self.flows[slot];
            flow.state.retry.reset();
            let key = flow.announcement.at(slot);
            flow.state.retry.start(key, now, &mut self.timers);
            self.grant_scheduler.place(slot, flow, homa);
        }
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(&mut self, src: NodeId, msg: MsgId, out: &mut Output<HomaHeader>) {
        if let Some((slot, flow)) = self.flows.abandon_message(src, msg, out) {
            self.grant_scheduler.remove(slot, &flow);
        }
    }

    /// Handles a sender that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<HomaHeader>) {
        let Self { flows, grant_scheduler, .. } = self;
        flows.forget_peer(peer, out, |slot, flow| grant_scheduler.remove(slot, flow));
    }

    /// Finds a message, or enters it. `Err` has the treatment of the packet that names it.
    pub(super) fn find(
        &mut self,
        now: Time,
        message: &MessageDescription,
        homa: &Homa,
    ) -> Result<u32, FlowStatus> {
        match self.flows.find(&message.announcement) {
            FlowStatus::Arriving(slot) => Ok(slot),
            FlowStatus::New => self.insert(now, message, homa).ok_or(FlowStatus::Abandoned),
            found @ (FlowStatus::Delivered | FlowStatus::Abandoned) => Err(found),
        }
    }

    /// Handles a probe of whether the message is known, or a notice that its unscheduled packets
    /// have been sent.
    pub(super) fn on_probe(
        &mut self,
        now: Time,
        slot: u32,
        is_burst_over: bool,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) {
        let flow = &mut self.flows[slot];
        flow.last_packet_at = now;
        if homa.is_droppable() && is_burst_over && !flow.state.is_judged {
            flow.state.is_judged = true;
            self.probed.push_back((now + homa.settle_time, flow.announcement.at(slot)));
        }
        answer_probe(slot, flow, out);
    }

    /// Assumes the missing unscheduled packets lost, some time after the probe. The probe is short
    /// and may take another path, so that it overtakes the last of them.
    fn resolve_probed(&mut self, now: Time, homa: &Homa, out: &mut Output<HomaHeader>) {
        while let Some(&(at, id)) = self.probed.front() {
            if at > now {
                return;
            }
            self.probed.pop_front();
            let Some((slot, flow)) = self.flows.find_mut(id) else { continue };
            let state = &mut flow.state;
            state.is_burst_over = true;
            let mut seq = flow.received.next_missing(0);
            while seq < state.unscheduled {
                state.goal += 1;
                state.in_flight =
                    state.in_flight.saturating_sub(homa.segmentation.wire_bytes(seq, state.size));
                seq = flow.received.next_missing(seq + 1);
            }
            answer_probe(slot, flow, out);
            self.grant_scheduler.place(slot, flow, homa);
        }
    }

    /// Handles a packet that was sent without a grant.
    pub(super) fn on_unscheduled(
        &mut self,
        slot: u32,
        seq: u32,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) {
        let flow = &mut self.flows[slot];
        let Announcement { src, msg, tx_slot, .. } = flow.announcement;
        out.send(src, msg, HomaHeader::Sack { tx_slot, seq });
        // It arrives late, when it counts as lost.
        if flow.state.is_burst_over
            && seq < flow.state.unscheduled
            && !flow.received.contains(seq)
            && flow.state.issued < flow.state.goal
        {
            flow.state.goal -= 1;
            flow.state.in_flight += homa.segmentation.wire_bytes(seq, flow.state.size);
            self.grant_scheduler.place(slot, &self.flows[slot], homa);
        }
    }

    /// Handles a packet of a message. Returns the message too if it is whole now.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        slot: u32,
        seq: u32,
        packet: &Packet<HomaHeader>,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
    ) -> (Receipt, Option<CompleteMessage>) {
        let flow = &mut self.flows[slot];
        if seq >= flow.announcement.packets {
            return (Receipt::Ignored, None);
        }
        flow.last_packet_at = now;
        flow.state.progress_at = now;
        self.last_data = now;
        flow.state.retry.on_response_later(now + homa.timeout_of(packet.src));
        let is_fresh = flow.received.insert(seq);
        let state = &mut flow.state;
        // The bytes that were counted at its grant: between hosts a packet arrives without those
        // that the network and the datapath add.
        let bytes = homa.segmentation.wire_bytes(seq, state.size);
        if !is_fresh {
            if std::mem::take(&mut state.is_resend_requested) {
                self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
            }
            // The sender assumed a packet lost whose acknowledgement arrived late: it has used a
            // grant that another packet needs.
            if state.is_burst_over && matches!(packet.header, HomaHeader::Data { .. }) {
                state.in_flight = state.in_flight.saturating_sub(bytes);
                state.goal += u32::from(state.goal < flow.announcement.packets);
                self.grant_scheduler.place(slot, flow, homa);
            }
            return (Receipt::Duplicate, None);
        }
        state.in_flight = state.in_flight.saturating_sub(bytes);
        if flow.received.len() < flow.announcement.packets {
            return (Receipt::Fresh, None);
        }
        let Some(flow) = self.flows.deliver(slot, out) else { return (Receipt::Fresh, None) };
        self.grant_scheduler.remove(slot, &flow);
        self.doublings = self.doublings.saturating_sub(u32::from(flow.state.is_resend_requested));
        (
            Receipt::Fresh,
            Some(CompleteMessage { announcement: flow.announcement, answers: flow.state.answers }),
        )
    }

    /// Handles BUSY: the sender is alive, but has shorter messages.
    pub(super) fn on_busy(
        &mut self,
        now: Time,
        slot: u32,
        packet: &Packet<HomaHeader>,
        homa: &Homa,
    ) {
        if self.flows.refresh_sender(now, slot, packet.src, packet.payload.msg) {
            let state = &mut self.flows[slot].state;
            state.progress_at = now;
            state.retry.on_response_later(now + homa.timeout_of(packet.src));
        }
    }

    /// Requests missing packets (§3.7), and drops messages whose senders are unresponsive.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        homa: &Homa,
        out: &mut Output<HomaHeader>,
        stats: &mut HomaStats,
    ) {
        self.resolve_probed(now, homa, out);
        while let Some((at, key)) = self.timers.pop_due(now) {
            let Some((slot, flow)) = self.flows.find_mut(key) else { continue };
            if !flow.state.retry.expires(key, at, now, &mut self.timers) {
                continue;
            }
            if self
                .flows
                .get(slot)
                .is_some_and(|f| self.flows.is_unresponsive(f, now, homa.recovery.forget_timeout))
            {
                if let Some(flow) = self.flows.abandon(slot, out) {
                    self.grant_scheduler.remove(slot, &flow);
                }
                continue;
            }
            let flow = &mut self.flows[slot];
            // While the link is busy with other messages, packets may wait for it at the last
            // switch.
            let of_pair = homa.timeout_of(flow.announcement.src);
            let is_idle = now.saturating_since(self.last_data) >= of_pair / IDLE_PART;
            let times = if is_idle { 1 } else { BUSY_TIMES };
            let timeout = of_pair * times.max(1 << self.doublings);
            let waited = now.saturating_since(flow.state.progress_at);
            if !flow.is_paused && waited < timeout {
                let due = now + of_pair / IDLE_PART;
                flow.state.retry.start(key, due, &mut self.timers);
                continue;
            }
            flow.state.retry.count(now);
            let doublings = flow.state.retry.attempts().min(4);
            let due = now + timeout * (1 << doublings);
            flow.state.retry.start(key, due, &mut self.timers);
            if !flow.is_paused {
                flow.state.is_resend_requested = true;
                request_retransmissions(slot, flow, out, stats);
            }
        }
    }
}

fn answer_probe(slot: u32, flow: &RxFlow, out: &mut Output<HomaHeader>) {
    let Announcement { src, msg, tx_slot, .. } = flow.announcement;
    let is_burst_over = flow.state.is_burst_over;
    out.send(src, msg, HomaHeader::Known { tx_slot, rx_slot: slot, is_burst_over });
}

/// Requests packets that are expected: the first gaps.
fn request_retransmissions(
    slot: u32,
    flow: &RxFlow,
    out: &mut Output<HomaHeader>,
    stats: &mut HomaStats,
) {
    let MessageProgress { in_flight, issued, goal, unscheduled, .. } = flow.state;
    if in_flight == 0 && issued < goal {
        return;
    }
    let Announcement { src, msg, tx_slot, packets, .. } = flow.announcement;
    let end = if issued < goal { (unscheduled + issued).min(packets) } else { packets };
    let mut seq = flow.received.next_missing(0);
    for _ in 0..RANGES_MAX {
        if seq >= end {
            return;
        }
        let mut past = seq + 1;
        while past < end && !flow.received.contains(past) {
            past += 1;
        }
        let count = past - seq;
        out.send(src, msg, HomaHeader::Resend { tx_slot, rx_slot: slot, seq, count });
        stats.resends += 1;
        seq = flow.received.next_missing(past);
    }
}
