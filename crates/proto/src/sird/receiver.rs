//! The receiver's side: messages that arrive, and credit of packets that do not.
//!
//! The packets of a message that have credit are those below [`MessageProgress::next`] that have
//! not arrived. Those of an unscheduled message have credit from the start. When the first of them
//! has had credit for a timeout, the credit of all is taken back and `next` starts from the first,
//! so that they get credit again in turn with all others. Late arrivals then return no credit,
//! unless they have been given some again.
//!
//! Packets behind the first do not defer the timer: a few that survive an outage would keep the
//! message alive with a fraction of its window until its end.

use rampmeter_types::packet::Marks;
use rampmeter_types::{Gauge, MsgId, NodeId, Packet, Receipt, Span, Time};

use super::config::Sird;
use super::credit::CreditBucket;
use super::rx_flow::MessageProgress;
use super::stats::SirdStats;
use super::wire::SirdHeader;
use crate::toolkit::{
    Announcement, ArrivingFlowId, ArrivingFlows, FlowStatus, Output, RetryTimer, Timers,
};

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<MessageProgress>,
    bucket: CreditBucket,
    timers: Timers<ArrivingFlowId>,
    next_age: u64,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            flows: ArrivingFlows::default(),
            bucket: CreditBucket::new(),
            timers: Timers::default(),
            next_age: 0,
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timers.next().min(self.bucket.deadline())
    }

    /// Reports the credit of each sender, and its limit.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.bucket.gauges(each);
    }

    /// Finds a message, or enters it; one that is requested needs credit. `Err` has the treatment
    /// of the packet that names it.
    pub(super) fn find(
        &mut self,
        now: Time,
        announcement: &Announcement,
        size: u64,
        is_requested: bool,
        sird: &Sird,
    ) -> Result<(u32, bool), FlowStatus> {
        match self.flows.find(announcement) {
            FlowStatus::Arriving(slot) => Ok((slot, false)),
            FlowStatus::New => {
                // A long message arrives by credit alone.
                let needs_credit =
                    is_requested || !sird.is_unscheduled_from(announcement.src, size);
                let slot = self.insert(now, announcement, size, needs_credit, sird);
                slot.map(|slot| (slot, true)).ok_or(FlowStatus::Abandoned)
            }
            found @ (FlowStatus::Delivered | FlowStatus::Abandoned) => Err(found),
        }
    }

    fn insert(
        &mut self,
        now: Time,
        announcement: &Announcement,
        size: u64,
        needs_credit: bool,
        sird: &Sird,
    ) -> Option<u32> {
        let unscheduled = if needs_credit { 0 } else { sird.wire_bytes(size) };
        let state = MessageProgress {
            size,
            next: if needs_credit { 0 } else { announcement.packets },
            outstanding: unscheduled,
            age: self.next_age,
            source: 0,
            first_at: now,
            retry: RetryTimer::default(),
        };
        let slot = self.flows.insert(now, *announcement, state)?;
        self.next_age += 1;
        let source = self.bucket.source(announcement.src, sird);
        let flow = &mut self.flows[slot];
        flow.state.source = source;
        flow.state.retry.start(
            announcement.at(slot),
            now + sird.timeout_of(announcement.src),
            &mut self.timers,
        );
        self.bucket.charge(source, unscheduled);
        self.bucket.update(slot, flow, sird);
        Some(slot)
    }

    /// Sends the credits that may be sent now.
    #[inline]
    pub(super) fn grant(&mut self, now: Time, sird: &Sird, out: &mut Output<SirdHeader>) {
        self.bucket.grant(now, &mut self.flows, sird, out);
    }

    /// Pauses a message, which gets no credit until it is resumed. Other messages get its credit,
    /// because its packets are dropped.
    pub(super) fn pause(&mut self, src: NodeId, msg: MsgId, sird: &Sird, stats: &mut SirdStats) {
        if let Some(slot) = self.flows.pause(src, msg) {
            self.reclaim(slot, sird, stats);
            self.bucket.update(slot, &self.flows[slot], sird);
        }
    }

    /// Resumes a paused message, which may get credit.
    pub(super) fn resume(&mut self, now: Time, src: NodeId, msg: MsgId, sird: &Sird) {
        if let Some(slot) = self.flows.resume(now, src, msg, Span::ZERO) {
            let flow = &mut self.flows[slot];
            flow.state.retry.reset();
            let key = flow.announcement.at(slot);
            flow.state.retry.start(key, now + sird.timeout_of(src), &mut self.timers);
            self.bucket.update(slot, flow, sird);
        }
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(
        &mut self,
        src: NodeId,
        msg: MsgId,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
    ) {
        if let Some((slot, flow)) = self.flows.abandon_message(src, msg, out) {
            self.bucket.remove(slot, &flow, sird);
        }
    }

    /// Handles a sender that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, sird: &Sird, out: &mut Output<SirdHeader>) {
        let Self { flows, bucket, .. } = self;
        flows.forget_peer(peer, out, |slot, flow| bucket.remove(slot, flow, sird));
        bucket.forget(peer);
    }

    /// Handles a packet of a message. Returns the message too if it is whole now.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        slot: u32,
        seq: u32,
        csn: bool,
        packet: &Packet<SirdHeader>,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
    ) -> (Receipt, Option<Announcement>) {
        let flow = &mut self.flows[slot];
        if seq >= flow.announcement.packets {
            return (Receipt::Ignored, None);
        }
        flow.last_packet_at = now;
        flow.state.retry.reset();
        let (source, ce) = (flow.state.source, packet.marks.contains(Marks::CONGESTION));
        self.bucket.on_data(source, csn, ce);
        let is_first = seq == flow.received.first_missing();
        if !flow.received.insert(seq) {
            self.bucket.rank(source, sird);
            return (Receipt::Duplicate, None);
        }
        if is_first {
            flow.state.first_at = now;
        }
        if seq < flow.state.next {
            let bytes = sird.segmentation(flow.state.size).wire_bytes(seq, flow.state.size);
            flow.state.outstanding -= bytes;
            self.bucket.reclaim(source, bytes);
        }
        if flow.received.len() < flow.announcement.packets {
            self.bucket.update(slot, flow, sird);
            return (Receipt::Fresh, None);
        }
        let Some(flow) = self.flows.deliver(slot, out) else { return (Receipt::Fresh, None) };
        self.bucket.remove(slot, &flow, sird);
        (Receipt::Fresh, Some(flow.announcement))
    }

    /// Takes a control packet of a host into account.
    pub(super) fn on_control(&mut self, src: NodeId, sird: &Sird) {
        self.bucket.on_control(src, sird);
    }

    /// Notes that the sender is alive, but sends others first.
    pub(super) fn on_busy(&mut self, now: Time, slot: u32, packet: &Packet<SirdHeader>) {
        if self.flows.refresh_sender(now, slot, packet.src, packet.payload.msg) {
            let state = &mut self.flows[slot].state;
            state.first_at = now;
            state.retry.reset();
        }
    }

    /// Takes back credit of packets that have not arrived, and forgets messages whose senders are
    /// unresponsive.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
        stats: &mut SirdStats,
    ) {
        while let Some((at, key)) = self.timers.pop_due(now) {
            let Some((slot, flow)) = self.flows.find_mut(key) else { continue };
            if !flow.state.retry.expires(key, at, now, &mut self.timers) {
                continue;
            }
            if self
                .flows
                .get(slot)
                .is_some_and(|f| self.flows.is_unresponsive(f, now, sird.recovery.forget_timeout))
            {
                if let Some(flow) = self.flows.abandon(slot, out) {
                    self.bucket.remove(slot, &flow, sird);
                }
                continue;
            }
            let flow = &mut self.flows[slot];
            let timeout = sird.timeout_of(flow.announcement.src);
            let has_credit = flow.received.first_missing() < flow.state.next;
            let due = if has_credit { flow.state.first_at } else { now } + timeout;
            if due > now {
                flow.state.retry.start(key, due, &mut self.timers);
                continue;
            }
            flow.state.retry.count(now);
            let doublings = flow.state.retry.attempts().min(4);
            let due = now + timeout * (1 << doublings);
            flow.state.retry.start(key, due, &mut self.timers);
            self.reclaim(slot, sird, stats);
        }
    }

    /// Takes back the credit of a message's missing packets, which then need new credit.
    fn reclaim(&mut self, slot: u32, sird: &Sird, stats: &mut SirdStats) {
        let flow = &mut self.flows[slot];
        let (next, first) = (flow.state.next, flow.received.first_missing());
        if first >= next {
            return;
        }
        let missing = (first..next).filter(|&seq| !flow.received.contains(seq));
        stats.credits_reclaimed += missing.count() as u64;
        let bytes = std::mem::take(&mut flow.state.outstanding);
        flow.state.next = first;
        self.bucket.reclaim(flow.state.source, bytes);
        self.bucket.update(slot, flow, sird);
    }

    #[cfg(test)]
    pub(super) fn outstanding(&self) -> (u64, Vec<(u32, u64, u64)>) {
        self.bucket.outstanding()
    }

    /// Bytes of packets that have credit and have not arrived, counted packet by packet.
    #[cfg(test)]
    pub(super) fn counted_outstanding(&self, sird: &Sird) -> u64 {
        let of = |f: &super::rx_flow::RxFlow| -> u64 {
            let missing = (0..f.state.next).filter(|&seq| !f.received.contains(seq));
            missing.map(|seq| sird.segmentation(f.state.size).wire_bytes(seq, f.state.size)).sum()
        };
        self.flows.iter().map(|(_, f)| of(f)).sum()
    }
}
