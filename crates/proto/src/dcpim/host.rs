//! The endpoint: a sender and a receiver behind one interface, driven by one schedule.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, ClockOrigin, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission, Phase,
    Protocol, Receipt, Rng, Time,
};

use super::config::Dcpim;
use super::matching::Offer;
use super::receiver::Receiver;
use super::schedule::Schedule;
use super::sender::Sender;
use super::stats::DcpimStats;
use super::wire::{DcpimHeader, Match, Step};
use crate::toolkit::{Announcement, Output, SizedFlow, sides};

/// dcPIM at one host.
#[derive(Debug)]
pub struct DcpimHost {
    dcpim: Arc<Dcpim>,
    rng: Rng,
    schedule: Schedule,
    /// Number of consecutive phases that began without message and match.
    idle_phases: u32,
    sender: Sender,
    receiver: Receiver,
    out: Output<DcpimHeader>,
    stats: DcpimStats,
}

/// Number of idle phases after which stages change nothing but their own numbers.
const IDLE_MAX: u32 = 2;

impl DcpimHost {
    /// Returns the counters.
    pub fn stats(&self) -> DcpimStats {
        let late = self.sender.late_offers() + self.receiver.late_offers();
        DcpimStats { late_matching_messages: late, ..self.stats }
    }

    fn announcement(
        &self,
        packet: &Packet<DcpimHeader>,
        flow: u32,
        slot: u32,
        size: u64,
    ) -> SizedFlow {
        let size = Bytes::new(size);
        let of = Announcement {
            src: packet.src,
            msg: packet.payload.msg,
            flow,
            tx_slot: slot,
            packets: self.dcpim.segmentation().packets(size),
        };
        SizedFlow { announcement: of, size }
    }

    fn on_match(&mut self, peer: NodeId, fields: Match) {
        let offer = Offer { peer, fields };
        match fields.step {
            Step::Request => self.sender.on_request(offer, &self.dcpim),
            Step::Grant => self.receiver.on_grant(offer, &self.dcpim),
            Step::Accept => self.sender.on_accept(peer, fields, &self.dcpim, &mut self.out),
            Step::Release => self.receiver.on_release(peer, fields),
        }
    }

    /// Returns true if the host skips stages, because they have no effect. The next message or
    /// packet makes it catch up.
    #[inline]
    fn is_asleep(&self) -> bool {
        self.idle_phases > IDLE_MAX
    }

    /// Catches up: runs the stages of the last whole phase and of this one that have passed.
    fn wake(&mut self, now: Time) {
        self.idle_phases = 0;
        self.schedule = self.schedule.skip(now, &self.dcpim);
        while self.schedule.at() < now {
            self.run_stage(self.schedule.at());
        }
        self.idle_phases = 0;
    }

    fn run_stage(&mut self, now: Time) {
        // A host that slept through more than a phase resumes the schedule at the current stage.
        if now.saturating_since(self.schedule.at()) > self.dcpim.phase() {
            self.schedule = Schedule::at_next_stage(now, self.schedule.clock(), &self.dcpim);
            return;
        }
        let start = self.schedule.at();
        let duties = self.schedule.advance(&self.dcpim);
        let (dcpim, rng, out) = (&*self.dcpim, &mut self.rng, &mut self.out);
        if let Some(round) = duties.accept {
            self.receiver.accept(now, round, dcpim, rng, out);
        }
        if let Some(phase) = duties.begin {
            self.receiver.begin(now, phase, dcpim, out);
            self.sender.begin(phase, start + dcpim.phase());
            let is_idle = dcpim.may_sleep && self.sender.is_idle() && self.receiver.is_idle();
            self.idle_phases = if is_idle { self.idle_phases + 1 } else { 0 };
        }
        if let Some(round) = duties.request {
            self.receiver.request(now, round, dcpim, out);
        }
        if let Some(round) = duties.grant {
            self.sender.grant(round, dcpim, rng, out);
        }
    }
}

impl Protocol for DcpimHost {
    type Header = DcpimHeader;
    type Config = Dcpim;

    sides! { poll_control, wants_transmit, poll_event }

    fn new(config: Arc<Dcpim>, node: NodeId, rng: Rng, now: Time) -> Self {
        let schedule = Schedule::at_next_stage(now, ClockOrigin::default(), &config);
        let (phase, phase_end) = schedule.phase(&config);
        Self {
            sender: Sender::new(node, phase, phase_end),
            schedule,
            idle_phases: 0,
            receiver: Receiver::new(&config),
            out: Output::new(node, config.config.packet.header.get() as u16),
            stats: DcpimStats::default(),
            dcpim: config,
            rng,
        }
    }

    fn set_clock_origin(&mut self, now: Time, origin: ClockOrigin) {
        self.schedule = Schedule::at_next_stage(now, origin, &self.dcpim);
        let (phase, phase_end) = self.schedule.phase(&self.dcpim);
        self.sender = Sender::new(self.out.node(), phase, phase_end);
        self.receiver.set_clock_origin(origin);
    }

    fn submit(&mut self, now: Time, message: Message) {
        if self.is_asleep() {
            self.wake(now);
        }
        self.sender.submit(now, message, &self.dcpim, &mut self.out);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.sender.cancel(msg, &mut self.out);
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<DcpimHeader>) -> Receipt {
        if self.is_asleep() {
            self.wake(now);
        }
        let (src, msg) = (packet.src, packet.payload.msg);
        match packet.header {
            DcpimHeader::Data { rx_slot, seq, number } => {
                let (receiver, out) = (&mut self.receiver, &mut self.out);
                return receiver.on_data(now, packet, rx_slot, seq, number, &self.dcpim, out);
            }
            DcpimHeader::Token { .. } => {
                self.sender.on_token(now, msg, &packet.header, &self.dcpim);
            }
            DcpimHeader::Unscheduled { flow, tx_slot, seq, size } => {
                let flow = self.announcement(packet, flow, tx_slot, size);
                let out = &mut self.out;
                return self.receiver.on_unscheduled(now, flow, seq, &self.dcpim, out);
            }
            DcpimHeader::Notification { flow, tx_slot, size, is_retransmission } => {
                let flow = self.announcement(packet, flow, tx_slot, size);
                self.receiver.on_notification(
                    now,
                    flow,
                    is_retransmission,
                    &self.dcpim,
                    &mut self.out,
                );
            }
            DcpimHeader::Ack { tx_slot, is_paused } => {
                self.sender.on_ack(now, tx_slot, msg, is_paused, &self.dcpim);
            }
            DcpimHeader::Match(fields) => self.on_match(src, fields),
            DcpimHeader::Finish { flow, tx_slot, packets } => {
                let announcement = Announcement { src, msg, flow, tx_slot, packets };
                let size = self.dcpim.config.packet.payload * u64::from(packets);
                let flow = SizedFlow { announcement, size };
                self.receiver.on_finish(now, flow, &self.dcpim, &mut self.out);
            }
            DcpimHeader::FinishAck { tx_slot } => {
                self.sender.on_finished(tx_slot, msg, &mut self.out);
            }
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        while self.schedule.at() <= now && !self.is_asleep() {
            self.run_stage(now);
        }
        if self.sender.deadline() <= now {
            self.sender.handle_timeout(now, &self.dcpim, &mut self.out, &mut self.stats);
        }
        if self.receiver.deadline() <= now {
            self.receiver.handle_timeout(now, &self.dcpim, &mut self.out, &mut self.stats);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<DcpimHeader>> {
        if let Some(packet) = self.out.next_control() {
            return Some(packet);
        }
        self.sender.next_data(now, &self.dcpim, &mut self.out, &mut self.stats)
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        let stage = if self.is_asleep() { Time::NEVER } else { self.schedule.at() };
        stage.min(self.receiver.deadline()).min(self.sender.deadline())
    }
}

impl Observation for DcpimHost {
    sides! { counters, gauges, message_counts }

    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        self.sender.permission(now, msg)
    }

    fn permission_deadline(&self) -> Time {
        self.schedule.at().min(self.sender.deadline())
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        if !self.is_asleep() {
            self.schedule.report_phases(&self.dcpim, each);
        }
    }
}

impl HostPolicy for DcpimHost {
    sides! { arriving, data }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.pause(now, src, msg);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.resume(now, src, msg, &self.dcpim);
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.abandon(src, msg, &mut self.out);
    }

    fn reconfigure(&mut self, now: Time, config: Arc<Dcpim>) -> bool {
        // Stages have other lengths: the schedule resumes at the current stage.
        (self.schedule, self.idle_phases) =
            (Schedule::at_next_stage(now, self.schedule.clock(), &config), 0);
        self.dcpim = config;
        true
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.sender.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
    }
}
