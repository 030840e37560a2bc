//! The receiver's side: announced flows, requests and accepts, tokens, arrived data.

mod announcements;

use rampmeter_types::{ClockOrigin, MsgId, NodeId, Packet, Receipt, Rng, Span, Time};

use super::backlog::Backlog;
use super::config::{Dcpim, Demand, IdleCapacity, Notification, Pair, TokenWindow};
use super::link::{LinkTimer, Links};
use super::matching::{Capacity, Inbox, Offer, choose};
use super::order::order;
use super::rx_flow::{Phase, Progress, RxFlow, Window};
use super::schedule::MatchingRound;
use super::sources::Sources;
use super::stats::DcpimStats;
use super::wire::{DcpimHeader, Match, Step};
use crate::toolkit::{
    Announcement, ArrivingFlow, ArrivingFlows, IssuedToken, Output, paused_probe_interval,
};

/// Number of phases in which every flow is checked once for an unresponsive sender.
const FORGET_PHASES: u32 = 256;

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<Progress>,
    sources: Sources,
    links: Links,
    grants: Inbox,
    /// The round whose grants are handled next.
    next_accept: MatchingRound,
    phase: u32,
    /// The same, counted among those that have begun here.
    phase_begun: Phase,
    /// Channels accepted in this phase.
    accepted: u8,
    /// Channels busy now, in the running data phase or prompted.
    busy: u8,
    withheld: u32,
    offers: Vec<Offer>,
    backlog: Backlog,
    clock: ClockOrigin,
}

impl Receiver {
    pub(super) fn new(dcpim: &Dcpim) -> Self {
        Self {
            flows: ArrivingFlows::default(),
            sources: Sources::default(),
            links: Links::default(),
            grants: Inbox::default(),
            next_accept: MatchingRound::first_of(0),
            phase: 0,
            phase_begun: Phase::default(),
            accepted: 0,
            busy: 0,
            withheld: 0,
            offers: Vec::new(),
            backlog: Backlog::new(dcpim),
            clock: ClockOrigin::default(),
        }
    }

    pub(super) fn set_clock_origin(&mut self, origin: ClockOrigin) {
        self.clock = origin;
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.links.deadline()
    }

    /// Returns true if there is no message, grant or match.
    pub(super) fn is_idle(&self) -> bool {
        (self.accepted, self.busy) == (0, 0)
            && self.flows.is_empty()
            && self.grants.is_empty()
            && self.links.is_empty()
    }

    pub(super) fn late_offers(&self) -> u64 {
        self.grants.late_offers()
    }

    /// Pauses a message: nothing of it is requested until it is resumed.
    pub(super) fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if let Some(slot) = self.flows.pause(src, msg) {
            self.sources.update(now, slot, &self.flows[slot]);
        }
    }

    /// Resumes a paused message, which may be requested.
    pub(super) fn resume(&mut self, now: Time, src: NodeId, msg: MsgId, dcpim: &Dcpim) {
        let probe_interval = paused_probe_interval(dcpim.keepalive);
        let Some(slot) = self.flows.resume(now, src, msg, probe_interval) else { return };
        self.sources.update(now, slot, &self.flows[slot]);
        if self.links.is_waiting(src) && self.candidate(src, now) == Some(slot) {
            self.links.wake(src, now);
        }
    }

    /// Handles a packet that a token requested.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<DcpimHeader>,
        rx_slot: u32,
        seq: u32,
        number: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) -> Receipt {
        if !self.flows.refresh_sender(now, rx_slot, packet.src, packet.payload.msg) {
            self.backlog.count(Receipt::Duplicate);
            return Receipt::Duplicate;
        }
        self.on_packet(now, rx_slot, seq, number, dcpim, out)
    }

    fn on_packet(
        &mut self,
        now: Time,
        slot: u32,
        seq: u32,
        number: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) -> Receipt {
        let held_up = self.backlog.core_delay(now);
        let flow = &mut self.flows[slot];
        if seq >= flow.announcement.packets {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        flow.enter_phase(self.phase_begun, held_up);
        self.backlog.on_data(now, (flow.announcement.src, flow.announcement.flow, number));
        if flow.on_token_data(number) && dcpim.config.demand == Demand::Source {
            self.links.count(flow.announcement.src);
        }
        let receipt = match flow.received.insert(seq) {
            true => Receipt::Fresh,
            false => {
                flow.on_duplicate(dcpim);
                Receipt::Duplicate
            }
        };
        self.backlog.count(receipt);
        let src = flow.announcement.src;
        if flow.remaining() == 0 {
            self.complete(slot, dcpim, out);
            return receipt;
        }
        self.sources.update(now, slot, flow);
        if self.links.is_waiting(src)
            && self.flows[slot].is_clocked(dcpim)
            && self.candidate(src, now) == Some(slot)
        {
            self.links.wake(src, now);
        }
        receipt
    }

    fn complete(&mut self, slot: u32, dcpim: &Dcpim, out: &mut Output<DcpimHeader>) {
        let Some(flow) = self.flows.deliver(slot, out) else { return };
        self.sources.remove(slot, &flow);
        if dcpim.config.notification == Notification::Implicit || flow.state.has_finish_request {
            let Announcement { src, msg, tx_slot, .. } = flow.announcement;
            out.send(src, msg, DcpimHeader::FinishAck { tx_slot });
        }
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(&mut self, src: NodeId, msg: MsgId, out: &mut Output<DcpimHeader>) {
        if let Some((slot, flow)) = self.flows.abandon_message(src, msg, out) {
            self.sources.remove(slot, &flow);
        }
    }

    /// Drops the flows of a sender that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<DcpimHeader>) {
        let Self { flows, sources, .. } = self;
        flows.forget_peer(peer, out, |slot, flow| sources.remove(slot, flow));
    }

    pub(super) fn on_grant(&mut self, offer: Offer, dcpim: &Dcpim) {
        self.grants.push(offer, self.next_accept, dcpim.config.stage_check);
    }

    pub(super) fn on_release(&mut self, peer: NodeId, fields: Match) {
        if fields.phase == self.phase {
            self.links.release(peer, fields.channels, fields.prompt);
        }
    }

    /// Accept stage: takes channels among those granted (§3.1, §3.4).
    pub(super) fn accept(
        &mut self,
        now: Time,
        round: MatchingRound,
        dcpim: &Dcpim,
        rng: &mut Rng,
        out: &mut Output<DcpimHeader>,
    ) {
        let mut offers = std::mem::take(&mut self.offers);
        self.grants.take(round, dcpim.config.stage_check, &mut offers);
        // Grants for requests of an earlier phase are void.
        offers.retain(|o| o.fields.phase == round.phase);
        self.next_accept = round.next();
        self.limit_to_pairs(&mut offers, dcpim);
        if !offers.is_empty() {
            let k = dcpim.receive_channels;
            let prompt = match dcpim.config.idle_capacity {
                IdleCapacity::Prompt => k.saturating_sub(self.busy),
                IdleCapacity::Unused => 0,
            };
            let capacity = Capacity { channels: k - self.accepted, prompt };
            choose(&mut offers, order(round.round, dcpim), capacity, rng);
            for Offer { peer, fields } in offers.drain(..) {
                self.accepted += fields.channels;
                self.busy += fields.prompt;
                let key = (fields.remaining, fields.announced);
                self.links.accept(peer, fields.channels, fields.prompt, key, now);
                let accept = Match { step: Step::Accept, ..fields };
                out.send(peer, MsgId::default(), DcpimHeader::Match(accept));
            }
        }
        self.offers = offers;
    }

    /// Reduces grants to the channels of their pairs. A grant that arrives late is handled in the
    /// next round, with the one for that round's request. A receiver that is faster than the sender
    /// has channels for both, but the sender has not.
    fn limit_to_pairs(&self, offers: &mut Vec<Offer>, dcpim: &Dcpim) {
        if dcpim.peers.is_none() {
            return;
        }
        for idx in 0..offers.len() {
            let Offer { peer, fields } = offers[idx];
            let has_later = offers[idx + 1..].iter().any(|other| other.peer == peer);
            let free =
                dcpim.pair_from(peer).channels.saturating_sub(self.links.matched_channels(peer));
            let channels = if has_later { 0 } else { fields.channels.min(free) };
            let prompt = fields.prompt.min(channels);
            offers[idx].fields = Match { channels, prompt, ..fields };
        }
        offers.retain(|offer| offer.fields.channels > 0);
    }

    /// Begins a phase: the matches of the last one serve its data phase.
    pub(super) fn begin(
        &mut self,
        now: Time,
        phase: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        self.links.begin(now, dcpim.config.channels, dcpim.receive_channels);
        self.phase = phase;
        self.busy = self.accepted;
        self.accepted = 0;
        self.next_accept = MatchingRound::first_of(phase);
        self.phase_begun = Phase { number: self.phase_begun.number + 1, began_at: now };
        let Self { flows, sources, .. } = self;
        let gone = |slot, flow: &RxFlow| sources.remove(slot, flow);
        flows.forget_unresponsive(now, dcpim.forget_timeout, FORGET_PHASES, out, gone);
    }

    /// Request stage: requests from each source the channels that its flows can fill (§3.4).
    pub(super) fn request(
        &mut self,
        now: Time,
        round: MatchingRound,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let k = dcpim.receive_channels;
        let unmatched = k - self.accepted;
        if unmatched == 0 {
            return;
        }
        for idx in 0..self.sources.len() {
            let src = self.sources.get(idx);
            let Some(slot) = self.candidate(src, now) else { continue };
            let flow = &self.flows[slot];
            let (remaining, announced) = (flow.remaining(), self.clock.stamp(flow.state.announced));
            let Pair { channels: most, channel_packets: per_channel, .. } = flow.state.pair;
            let free = unmatched.min(most.saturating_sub(self.links.matched_channels(src)));
            let requested_channels = match dcpim.config.demand {
                Demand::SmallestFlow => {
                    let requested_channels = remaining.div_ceil(per_channel);
                    u64::from(requested_channels.saturating_sub(self.links.n_channels_from(src)))
                }
                Demand::Source => {
                    let missing = self.sources.missing(src, &self.flows);
                    let promised = self.links.expected_packets(src, per_channel);
                    missing.saturating_sub(promised).div_ceil(u64::from(per_channel))
                }
            };
            if requested_channels == 0 || free == 0 {
                continue;
            }
            let channels = requested_channels.min(u64::from(free)) as u8;
            let prompt = match dcpim.config.idle_capacity {
                IdleCapacity::Prompt => channels.min(k.saturating_sub(self.busy)),
                IdleCapacity::Unused => 0,
            };
            let MatchingRound { phase, round } = round;
            let step = Step::Request;
            let fields = Match { step, channels, prompt, round, phase, remaining, announced };
            out.send(src, self.flows[slot].announcement.msg, DcpimHeader::Match(fields));
        }
    }

    /// Returns the flow of a source that is served.
    fn candidate(&mut self, src: NodeId, now: Time) -> Option<u32> {
        self.sources.candidate(src, now, &self.flows)
    }

    /// Sends the tokens that are due (§3.2).
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
        stats: &mut DcpimStats,
    ) {
        for idx in 0..self.links.len() {
            let Some(link) = self.links.due_link(idx, now) else { continue };
            let timer = self.serve_link(now, link.src, link.active, link.rank, dcpim, out, stats);
            self.links.set_timer(idx, timer);
        }
        self.links.refresh();
    }

    fn serve_link(
        &mut self,
        now: Time,
        src: NodeId,
        active: u8,
        rank: u8,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
        stats: &mut DcpimStats,
    ) -> LinkTimer {
        if active == 0 {
            return LinkTimer::Stopped;
        }
        // Each channel has the same share of the rate (§3.4).
        let of_link = |time: Span, channels: u8| time.scale_floor(channels.into(), active.into());
        if self.withheld > 0 {
            self.withheld -= 1;
            stats.tokens_withheld += 1;
            return LinkTimer::Paced(now + of_link(dcpim.mtu_time, dcpim.receive_channels));
        }
        let Some(slot) = self.candidate(src, now) else {
            // Behind a narrow core the missing packets may wait there for longer.
            let continues =
                dcpim.config.token_window == TokenWindow::Outstanding && !dcpim.may_hold_up();
            return match self.sources.idle_until(src, &self.flows) {
                at if continues && at < Time::NEVER => LinkTimer::Stalled(at),
                _ => LinkTimer::Stopped,
            };
        };
        let held_up = self.backlog.core_delay(now);
        let flow = &mut self.flows[slot];
        flow.enter_phase(self.phase_begun, held_up);
        if let Window::FullUntil(at) = flow.window(now, active, held_up, dcpim) {
            return LinkTimer::Stalled(at);
        }
        let Pair { mtu_time, channels, .. } = flow.state.pair;
        let IssuedToken { seq, number } = flow.take_token(now, held_up, dcpim, stats);
        self.backlog.on_token(now, (src, flow.announcement.flow, number));
        if flow.state.idle_until > now {
            self.sources.update(now, slot, flow);
        }
        let token = DcpimHeader::Token {
            tx_slot: flow.announcement.tx_slot,
            rx_slot: slot,
            seq,
            number,
            cumulative: flow.received.first_missing(),
            phase: self.phase,
            remaining: flow.remaining(),
            rank,
        };
        out.send(src, flow.announcement.msg, token);
        LinkTimer::Paced(now + of_link(mtu_time, channels))
    }
}

/// Returns the acknowledgement of a flow's notification.
fn ack(flow: &ArrivingFlow<Progress>) -> DcpimHeader {
    DcpimHeader::Ack { tx_slot: flow.announcement.tx_slot, is_paused: flow.is_paused }
}
