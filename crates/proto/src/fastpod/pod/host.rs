//! Endpoint of a host: its inputs, and its next time of action.

mod open_slot;
mod transmit;

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission, Protocol, Receipt,
    Rng, Stage, Time,
};

use super::clocks::{LEAD_SLACK, is_jump, is_next_epoch};
use super::queues::Queues;
use super::receiver::Receiver;
use super::requests::{Grant, HostDemands, RetryAction, SchdAnswer};
use super::stats::FastpodStats;
use crate::fastpod::config::Fastpod;
use crate::fastpod::repair::observations::HostObservations;
use crate::fastpod::routes;
use crate::fastpod::timing::{Instant, Timing, instant};
use crate::fastpod::wire::{Ack, FastpodHeader, POD_FLAG};
use crate::toolkit::{Announcement, Output, sides};
use open_slot::OpenSlot;

pub(crate) const SLOT: &Stage = &Stage {
    name: "slot",
    meaning: "The arbiter has given no slot to a cell of the message, or the slot is not due.",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[SLOT];

/// Fastpod at one host.
#[derive(Clone, Debug)]
pub struct FastpodHost {
    fastpod: Arc<Fastpod>,
    node: u16,
    /// Pod of the host, and its number among the ends of the pod.
    pod: u16,
    end: u16,
    rng: Rng,
    queues: Queues,
    requests: HostDemands,
    receiver: Receiver,
    observations: HostObservations,
    out: Output<FastpodHeader>,
    /// The greatest epoch received, and its arbiter.
    epoch: u32,
    arbiter: u32,
    /// Offset of the arbiter's clock from the host's; `None` before its first packet arrives.
    offset: Option<Instant>,
    /// Time until which only the arbiter of the latest epoch is followed.
    follow_until: Time,
    /// Time from which on the clock may be too wrong, in a pod.
    stale_at: Time,
    open: Option<OpenSlot>,
    /// Packets whose instant has arrived.
    ready: VecDeque<(Time, Packet<FastpodHeader>)>,
    next: Time,
    stats: FastpodStats,
}

impl FastpodHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> FastpodStats {
        self.stats
    }

    fn timing(&self) -> &Timing {
        self.fastpod.timing(self.pod)
    }

    /// Handles a scheduled packet of a slot.
    #[inline]
    fn on_scheduled_packet(&mut self, now: Time, packet: &Packet<FastpodHeader>) {
        if let Some(offset) = self.offset.filter(|_| self.has_slot_reports())
            && !packet.marks.contains(Marks::UNSCHEDULED)
        {
            let length = self.fastpod.tx_time(packet.wire_bytes);
            let control = self.fastpod.slots.control;
            let longer = i128::from(length.as_ps()) - i128::from(control.as_ps());
            let received_at = instant(now) + offset - longer;
            self.observations.on_arrival(self.pod, self.end, received_at, &self.fastpod);
        }
    }

    /// Requests the slots that a destination needs beyond the present one.
    fn request_slots(&mut self, now: Time, dst: u16) {
        let cells = self.queues.cells_wanted(dst, &self.fastpod);
        let cells = cells.saturating_sub(self.slot_capacity(now, dst));
        if !self.requests.set_demand(dst, cells, &self.fastpod) {
            // Slots are in flight.
            let until = instant(now) + self.offset.unwrap_or(0);
            let answer = i128::from(self.fastpod.answer_time.as_ps());
            self.queues.on_requested(dst, until + answer);
        }
    }

    /// Cells to `dst` that the present slot still takes.
    fn slot_capacity(&self, now: Time, dst: u16) -> u64 {
        let is_to = |grant: Grant| grant.dst == dst && !grant.is_probe;
        let Some(open) = self.open.filter(|open| open.grant.is_some_and(is_to)) else {
            return 0;
        };
        let start = self.timing().start(self.end, open.number) - open.offset;
        let pair = self.pair(dst, open.grant);
        let (from, slots) = (self.fastpod.earliest(now), &self.fastpod.slots);
        let at = |p: u16| start + i128::from(slots.cell_at(p, pair).as_ps());
        (open.next_cell..slots.cells()).filter(|&p| at(p) >= from).count() as u64
    }

    fn request_all_slots(&mut self, now: Time) {
        self.queues.destinations().into_iter().for_each(|dst| self.request_slots(now, dst));
    }

    fn on_schd(&mut self, now: Time, from: NodeId, header: &FastpodHeader) {
        let FastpodHeader::Schd { incarnation, last_rts: answered_rts, granted, .. } = *header
        else {
            return;
        };
        let FastpodHeader::Schd { epoch, stamp, slot, dst, agg, probe, acks, .. } = *header else {
            return;
        };
        let arbiter = self.fastpod.arbiter_of(from).filter(|(pod, _)| *pod == self.pod);
        // A host that has received nothing for a long time has reported its epoch to nobody either.
        // Its epoch may be that of a damaged packet.
        let is_old = self.stale_at.min(self.follow_until) <= now;
        let is_fine = is_old || is_next_epoch(epoch, self.epoch);
        let Some((_, arbiter)) = arbiter.filter(|_| is_fine) else { return };
        let delay = self.timing().schd_delay(arbiter, self.end);
        let offset = i128::from(stamp) + i128::from(delay.as_ps()) - instant(now);
        let is_other = epoch != self.epoch || is_old && arbiter != self.arbiter;
        if is_other || self.offset.is_some_and(|before| is_jump(before, offset)) {
            self.stats.takeovers += u64::from(is_other && self.epoch > 0);
            (self.epoch, self.arbiter, self.open) = (epoch, arbiter, None);
            self.observations = HostObservations::new(&self.fastpod, self.pod);
            self.offset = Some(offset);
            self.requests.on_takeover(now);
            self.request_all_slots(now);
        }
        self.offset = Some(offset);
        self.follow_until = now.saturating_add(self.fastpod.listen_time * 2);
        if self.fastpod.is_exact() {
            self.stale_at = now.saturating_add(self.fastpod.clock_lifetime);
        }
        let present = self.timing().slot_at(self.end, instant(now) + offset).unwrap_or(0);
        // An SCHD is sent this far ahead of its slot. A slot beyond that is of a damaged packet,
        // and would count as given until it begins.
        let ahead = i64::from(slot.wrapping_sub(present as u32) as i32);
        let is_near = ahead <= self.timing().lead_slots as i64 + LEAD_SLACK;
        let grant = present.checked_add_signed(ahead);
        let grant = grant.filter(|_| is_near && self.may_send(dst, agg));
        let grant = grant.map(|slot| (slot, Grant { dst, agg, is_probe: probe != 0 }));
        let (probe, grant) = match grant {
            Some((_, Grant { is_probe: true, .. })) => (grant, None),
            _ => (None, grant),
        };
        if let Some((slot, grant)) = probe {
            self.requests.probe(slot, grant);
        }
        self.requests.on_schd(now, SchdAnswer { incarnation, answered_rts, granted }, grant);
        for &Ack { host, flow } in acks.as_slice() {
            self.queues.on_ack(host, flow, &mut self.out);
        }
    }

    /// Returns true if an SCHD may name these: a host of the pod and an aggregation switch, or
    /// another pod and a core switch.
    fn may_send(&self, dst: u16, by: u8) -> bool {
        let fastpod = &self.fastpod;
        match dst.checked_sub(POD_FLAG) {
            Some(pod) => {
                pod < fastpod.n_pods() && pod != self.pod && u16::from(by) < fastpod.n_cores()
            }
            None => {
                let is_own = fastpod.hosts_of(self.pod).contains(&dst.into());
                is_own && dst != self.node && usize::from(by) < routes::aggs(fastpod)
            }
        }
    }

    /// Restarts requests, or fails messages, if no arbiter answers.
    fn check_answers(&mut self, now: Time) {
        if !self.queues.has_waiting() {
            return;
        }
        match self.requests.handle_timeout(now, &self.fastpod) {
            RetryAction::None => {}
            RetryAction::RequestAgain => {
                self.stats.resets += 1;
                self.request_all_slots(now);
            }
            RetryAction::Abort => self.queues.fail_waiting(&mut self.out),
        }
    }
}

impl Protocol for FastpodHost {
    type Header = FastpodHeader;
    type Config = Fastpod;

    sides! { poll_event }

    fn new(config: Arc<Fastpod>, node: NodeId, rng: Rng, now: Time) -> Self {
        let host = node.get() as u16;
        Self {
            node: host,
            pod: config.pod_of(host),
            end: config.end_of(host),
            rng,
            queues: Queues::new(node, config.pod_of(host), &config),
            requests: HostDemands::new(now, 1),
            receiver: Receiver::default(),
            observations: HostObservations::new(&config, config.pod_of(host)),
            out: Output::new(node, config.config.control.get() as u16),
            epoch: 0,
            arbiter: 0,
            offset: None,
            follow_until: Time::ZERO,
            stale_at: Time::NEVER,
            open: None,
            ready: VecDeque::new(),
            next: Time::NEVER,
            stats: FastpodStats::default(),
            fastpod: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        if !self.queues.has_waiting() {
            self.requests.begin(now);
        }
        self.advance(now);
        self.queues.submit(now, &message, &self.fastpod);
        self.request_slots(now, self.fastpod.target(self.pod, message.dst.get() as u16));
        self.plan(now);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.queues.cancel(msg);
        self.out.cancel(msg, |header| matches!(header, FastpodHeader::Request { .. }));
        self.ready.retain(|(_, packet)| packet.payload.len == 0 || packet.payload.msg != msg);
        self.plan(now);
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpodHeader>) -> Receipt {
        let receipt = match packet.header {
            FastpodHeader::Cell { flow, tx_slot, seq, size } => {
                let packets = self.fastpod.segmentation().packets(Bytes::new(size));
                let (src, msg) = (packet.src, packet.payload.msg);
                let of = Announcement { src, msg, flow, tx_slot, packets };
                self.on_scheduled_packet(now, packet);
                self.receiver.on_cell(now, of, seq, &self.fastpod, &mut self.out)
            }
            FastpodHeader::Schd { .. } => {
                self.on_schd(now, packet.src, &packet.header);
                Receipt::Control
            }
            FastpodHeader::Probe { .. } => {
                self.on_scheduled_packet(now, packet);
                Receipt::Control
            }
            FastpodHeader::Pause { is_paused } => {
                let (src, msg) = (packet.src, packet.payload.msg);
                if let Some(dst) = self.queues.set_paused(now, src, msg, is_paused, &self.fastpod) {
                    self.requests.begin(now);
                    self.request_slots(now, dst);
                }
                Receipt::Control
            }
            FastpodHeader::Request { flow, tx_slot, size } => {
                let packets = self.fastpod.segmentation().packets(Bytes::new(size));
                let (src, msg) = (packet.src, packet.payload.msg);
                let of = Announcement { src, msg, flow, tx_slot, packets };
                self.receiver.on_pause_probe(of, &mut self.out);
                Receipt::Control
            }
            FastpodHeader::Rts { .. }
            | FastpodHeader::Report { .. }
            | FastpodHeader::Watchdog { .. }
            | FastpodHeader::CoreRts { .. }
            | FastpodHeader::CoreSchd { .. } => Receipt::Control,
        };
        self.plan(now);
        receipt
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.next > now {
            return;
        }
        self.advance(now);
        self.emit(now);
        while let Some(dst) = self.queues.handle_timeout(now, &self.fastpod, &mut self.out) {
            self.stats.timeouts += 1;
            self.requests.begin(now);
            self.request_slots(now, dst);
        }
        self.check_answers(now);
        self.emit(now);
        self.plan(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<FastpodHeader>> {
        while let Some((at, packet)) = self.ready.pop_front() {
            if !self.fastpod.is_exact() || now <= at + self.fastpod.late_max {
                return Some(packet);
            }
            self.stats.transmissions_missed += 1;
            self.on_late(at, &packet);
        }
        self.out.next_control()
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.ready.is_empty() || self.out.has_control()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.next
    }
}

impl Observation for FastpodHost {
    sides! { counters }

    fn message_counts(&self) -> Option<(usize, usize)> {
        Some((self.queues.len(), self.receiver.flows.len()))
    }

    fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        self.queues.slot(msg)?;
        let is_data = |packet: &Packet<FastpodHeader>| packet.payload.len > 0;
        let is_due = self.ready.iter().any(|(_, p)| is_data(p) && p.payload.msg == msg);
        Some(if is_due { Permission::Granted } else { Permission::Awaited(SLOT) })
    }
}

impl HostPolicy for FastpodHost {
    sides! { arriving, data }

    /// Holds a message back, except in pods: there every packet has its instant, and a hold has
    /// none.
    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        if !self.fastpod.is_exact() {
            self.receiver.flows.pause(src, msg);
            self.out.send(src, msg, FastpodHeader::Pause { is_paused: true });
        }
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if !self.fastpod.is_exact() {
            self.receiver.flows.resume(now, src, msg, self.fastpod.paused_probe_interval);
            self.out.send(src, msg, FastpodHeader::Pause { is_paused: false });
        }
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.abandon_message(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.ready.retain(|(_, packet)| packet.dst != peer);
        self.out.forget_peer(peer);
        self.queues.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
        if peer == self.fastpod.arbiter(self.pod, self.arbiter) {
            // It counts its epochs from the start.
            (self.epoch, self.offset, self.open) = (0, None, None);
            self.requests.on_takeover(now);
            self.request_all_slots(now);
        }
        self.plan(now);
    }
}
