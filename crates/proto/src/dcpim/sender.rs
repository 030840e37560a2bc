//! The sender's side: announcing flows, granting requests, spending tokens.

use std::collections::VecDeque;

use rampmeter_types::collections::{IdMap, SeqSet};
use rampmeter_types::{Event, Gauge, Message, MsgId, NodeId, Packet, Priority, Rng, Span, Time};

use super::config::{DataPriority, Dcpim, IdleCapacity, Notification, Rounds, TokenOrder};
use super::matching::{Capacity, Inbox, Offer, choose};
use super::order::order;
use super::schedule::MatchingRound;
use super::stats::DcpimStats;
use super::wire::{DcpimHeader, Match, Step};
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output, paused_probe_interval};

pub(crate) mod permission;

/// Rank of packets of short flows: above all tokens (§3.2).
const SHORT_RANK: u8 = 1;

/// The response that the sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AwaitedResponse {
    /// Any response that shows that the receiver has the flow.
    Any,
    Tokens,
    /// The receiver's finish.
    Finish,
}

/// The flow state of dcPIM. Its timer repeats the announcement or the finish.
#[derive(Debug)]
struct Progress {
    /// Packets missing at the receiver, as reported by the latest token.
    remaining: u32,
    /// Every packet below has arrived, as reported by tokens (§3.2).
    arrived: u32,
    /// The packets that have been sent, recorded if the notification is explicit.
    sent: SeqSet,
    awaited_response: AwaitedResponse,
    /// Phase of the receiver in which it gave the latest token.
    token_phase: Option<u32>,
    /// A short flow has packets that wait for this host's link.
    is_queued: bool,
}

/// Packets that may be sent: one for a token, or the rest of a short flow.
#[derive(Clone, Copy, Debug)]
struct Permit {
    slot: u32,
    msg: MsgId,
    seq: u32,
    end: u32,
    rank: u8,
    expires: Time,
    /// The receiver's slot and the token's number; `None` for a short flow.
    token: Option<(u32, u32)>,
}

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<Progress>,
    /// Permits to send, oldest first.
    permits: VecDeque<Permit>,
    requests: Inbox,
    /// The round whose requests are granted next.
    next_grant: MatchingRound,
    phase: u32,
    /// End of the phase.
    phase_end: Time,
    /// Channels accepted in this phase and in the one before.
    accepted: u8,
    accepted_last_phase: u8,
    /// Channels busy now, in the running data phase or prompted.
    busy: u8,
    /// Receivers that are matched, with the data phases for which they are.
    matches: Vec<(NodeId, u32)>,
    offers: Vec<Offer>,
}

impl Sender {
    /// Creates the sender of a host in a phase, with the end of the phase.
    pub(super) fn new(node: NodeId, phase: u32, phase_end: Time) -> Self {
        Self {
            flows: OutgoingFlows::new(node),
            permits: VecDeque::new(),
            requests: Inbox::default(),
            next_grant: MatchingRound::first_of(0),
            phase,
            phase_end,
            accepted: 0,
            accepted_last_phase: 0,
            busy: 0,
            matches: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Returns the time at which [`Sender::handle_timeout`] is due.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the number of packets of each flow that have tokens.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        let mut packets: IdMap<u32, u64> = IdMap::default();
        for permit in &self.permits {
            *packets.entry(permit.slot).or_default() += u64::from(permit.end - permit.seq);
        }
        for (slot, flow) in self.flows.iter() {
            let value = packets.get(&slot).copied().unwrap_or_default();
            each(Gauge { name: "token_packets", peer: flow.dst, msg: Some(flow.msg), value });
        }
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.permits.is_empty()
    }

    /// Returns true if there is no message, request or match.
    pub(super) fn is_idle(&self) -> bool {
        (self.accepted, self.accepted_last_phase, self.busy) == (0, 0, 0)
            && self.flows.is_empty()
            && self.permits.is_empty()
            && self.requests.is_empty()
    }

    pub(super) fn late_offers(&self) -> u64 {
        self.requests.late_offers()
    }

    /// Announces a new flow, and permits all its packets if it is short (§3.2).
    pub(super) fn submit(
        &mut self,
        now: Time,
        message: Message,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let Message { id: msg, dst, size, .. } = message;
        let packets = dcpim.segmentation().packets(size);
        let (arrived, sent, awaited_response) = (0, SeqSet::default(), AwaitedResponse::Any);
        let is_queued = packets <= dcpim.pair_to(dst).short_max;
        let (remaining, token_phase) = (packets, None);
        let state = Progress { remaining, arrived, sent, awaited_response, token_phase, is_queued };
        let slot = self.flows.submit(&message, packets, state);
        self.flows.start_timer(slot, now + dcpim.retry);
        let flow = self.flows[slot].flow;
        let (tx_slot, size) = (slot, size.get());
        let header = DcpimHeader::Notification { flow, tx_slot, size, is_retransmission: false };
        out.send(dst, msg, header);
        if is_queued {
            let (rank, expires, token) = (SHORT_RANK, Time::NEVER, None);
            let permit = Permit { slot, msg, seq: 0, end: packets, rank, expires, token };
            self.permits.push_back(permit);
        }
    }

    /// Handles an acknowledged announcement: the receiver will request missing packets.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        is_paused: bool,
        dcpim: &Dcpim,
    ) {
        if let Some(flow) = self.flows.get_current(slot, msg) {
            flow.state.awaited_response = AwaitedResponse::Tokens;
            let pause =
                if is_paused { paused_probe_interval(dcpim.keepalive) } else { dcpim.keepalive };
            flow.is_paused = is_paused;
            self.flows.on_response(slot, now + pause);
        }
    }

    /// Handles a token, which requests one packet.
    pub(super) fn on_token(&mut self, now: Time, msg: MsgId, header: &DcpimHeader, dcpim: &Dcpim) {
        let &DcpimHeader::Token {
            tx_slot,
            rx_slot,
            seq,
            number,
            cumulative,
            phase,
            remaining,
            rank,
        } = header
        else {
            return;
        };
        let Some(flow) = self.flows.get_current(tx_slot, msg) else { return };
        if seq >= flow.packets {
            return;
        }
        // A token does not postpone the timer. If its tokens expire because others are served
        // first, the flow is announced again, so that its receiver keeps it.
        flow.retry.reset();
        flow.is_paused = false;
        let state = &mut flow.state;
        state.awaited_response = AwaitedResponse::Tokens;
        state.token_phase = Some(phase);
        state.remaining = remaining;
        state.arrived = state.arrived.max(cumulative);
        let expires = self.expiry(now, phase, dcpim);
        self.permits.push_back(Permit {
            slot: tx_slot,
            msg,
            seq,
            end: seq + 1,
            rank,
            expires,
            token: Some((rx_slot, number)),
        });
    }

    /// Completes a flow that the receiver has in full.
    pub(super) fn on_finished(&mut self, slot: u32, msg: MsgId, out: &mut Output<DcpimHeader>) {
        if self.flows.get_current(slot, msg).is_some() {
            self.flows.remove(slot);
            out.push_event(Event::Completed { msg });
        }
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<DcpimHeader>) {
        let Some(slot) = self.flows.slot(msg) else { return };
        self.flows.remove(slot);
        self.permits.retain(|permit| permit.msg != msg);
        out.cancel(msg, |header| {
            matches!(header, DcpimHeader::Notification { .. } | DcpimHeader::Finish { .. })
        });
    }

    /// Drops the flows of a receiver that has lost its state. Their permits are void.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<DcpimHeader>) {
        self.flows.forget_peer(peer, out, |_, _| {});
    }

    pub(super) fn on_request(&mut self, offer: Offer, dcpim: &Dcpim) {
        self.requests.push(offer, self.next_grant, dcpim.config.stage_check);
    }

    /// Handles an accept. Only a late accept can exceed k channels. If idle capacity is used, and
    /// so must be counted, the surplus is released.
    pub(super) fn on_accept(
        &mut self,
        peer: NodeId,
        fields: Match,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let local = dcpim.config.stage_check == Rounds::Local;
        let current = local || fields.phase == self.phase;
        let count = if current {
            &mut self.accepted
        } else if fields.phase.wrapping_add(1) == self.phase {
            &mut self.accepted_last_phase
        } else {
            return;
        };
        let taken = fields.channels.min(dcpim.send_channels - *count);
        *count += taken;
        let prompt = fields.prompt.min(taken);
        if current {
            self.busy += prompt;
        }
        if taken > 0 {
            let wait = u32::from(current && prompt == 0);
            self.note_match(peer, self.phase.wrapping_add(wait));
        }
        let surplus = fields.channels - taken;
        if surplus > 0 && dcpim.config.idle_capacity == IdleCapacity::Prompt {
            let (step, prompt) = (Step::Release, fields.prompt - prompt);
            let release = Match { step, channels: surplus, prompt, ..fields };
            out.send(peer, MsgId::default(), DcpimHeader::Match(release));
        }
    }

    /// A phase begins.
    pub(super) fn begin(&mut self, phase: u32, end: Time) {
        self.phase = phase;
        self.phase_end = end;
        // Accepts of the last round are still in flight and not counted here.
        self.busy = self.accepted;
        self.accepted_last_phase = self.accepted;
        self.accepted = 0;
        self.next_grant = MatchingRound::first_of(phase);
    }

    /// Grant stage: offers free channels to the receivers that requested some (§3.1, §3.4). A grant
    /// reserves nothing beyond its stage.
    pub(super) fn grant(
        &mut self,
        round: MatchingRound,
        dcpim: &Dcpim,
        rng: &mut Rng,
        out: &mut Output<DcpimHeader>,
    ) {
        let mut offers = std::mem::take(&mut self.offers);
        self.requests.take(round, dcpim.config.stage_check, &mut offers);
        self.next_grant = round.next();
        if !offers.is_empty() {
            let k = dcpim.send_channels;
            let prompt = k.saturating_sub(self.busy);
            let capacity = Capacity { channels: k - self.accepted, prompt };
            choose(&mut offers, order(round.round, dcpim), capacity, rng);
            for Offer { peer, fields } in offers.drain(..) {
                let grant = Match { step: Step::Grant, ..fields };
                out.send(peer, MsgId::default(), DcpimHeader::Match(grant));
            }
        }
        self.offers = offers;
    }

    /// Returns the next data packet, if there is a permit to send one.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
        stats: &mut DcpimStats,
    ) -> Option<Packet<DcpimHeader>> {
        loop {
            let idx = self.choose_permit(now, dcpim, stats)?;
            let permit = &mut self.permits[idx];
            let Permit { slot, msg, seq, rank, token, .. } = *permit;
            permit.seq += 1;
            let is_last = permit.seq == permit.end;
            if is_last {
                self.permits.remove(idx);
            }
            // Permits of finished flows, and for packets that have arrived since, are void.
            let Some(flow) = self.flows.get_current(slot, msg) else { continue };
            let (arrived, is_sent) = (flow.state.arrived, is_last && token.is_none());
            if is_sent {
                flow.state.is_queued = false;
                self.resume_timer(now, slot, dcpim);
            }
            if seq >= arrived {
                return Some(self.data(now, slot, seq, rank, token, dcpim, out));
            }
        }
    }

    /// Restarts the timer of a short flow whose last packet has been sent, if it expired meanwhile.
    /// It is then due whole intervals later.
    fn resume_timer(&mut self, now: Time, slot: u32, dcpim: &Dcpim) {
        let retry = &self.flows[slot].retry;
        if !retry.is_running() {
            let late = now.saturating_since(retry.due());
            let intervals = late.as_ps() / dcpim.keepalive.as_ps() + 1;
            let at = if retry.due() > now {
                retry.due()
            } else {
                retry.due() + dcpim.keepalive * intervals
            };
            self.flows.start_timer(slot, at);
        }
    }

    /// Returns the index of the permit to serve, and drops permits at the head that have expired.
    fn choose_permit(&mut self, now: Time, dcpim: &Dcpim, stats: &mut DcpimStats) -> Option<usize> {
        while self.permits.front().is_some_and(|p| p.expires < now) {
            self.permits.pop_front();
            stats.tokens_expired += 1;
        }
        let mut best = 0;
        let mut best_rank = self.permits.front()?.rank;
        for (idx, permit) in self.permits.iter().enumerate().skip(1) {
            if best_rank <= SHORT_RANK {
                // No other has a lower rank, regardless of the number of short flows.
                break;
            }
            if permit.rank >= best_rank || permit.expires < now {
                continue;
            }
            let remaining = |p: &Permit| self.flows.get(p.slot).map_or(0, |f| f.state.remaining);
            if dcpim.config.token_order == TokenOrder::RankAndRemaining
                && remaining(permit) >= remaining(&self.permits[best])
            {
                continue;
            }
            (best, best_rank) = (idx, permit.rank);
        }
        Some(best)
    }

    fn data(
        &mut self,
        now: Time,
        slot: u32,
        seq: u32,
        rank: u8,
        token: Option<(u32, u32)>,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) -> Packet<DcpimHeader> {
        let outgoing = self.flows.message(slot);
        let header = match token {
            Some((rx_slot, number)) => {
                self.flows.postpone_timer(slot, now + dcpim.keepalive);
                DcpimHeader::Data { rx_slot, seq, number }
            }
            None => {
                let OutgoingFlow { flow, size, .. } = self.flows[slot];
                DcpimHeader::Unscheduled { flow, tx_slot: slot, seq, size }
            }
        };
        let flow = &mut self.flows[slot];
        let priority = match dcpim.config.data_priority {
            DataPriority::Token => Priority::new(rank),
            DataPriority::Size => size_priority(flow.packets),
        };
        let packet = dcpim.segmentation().data(outgoing, seq, priority, header);
        if dcpim.config.notification == Notification::Explicit {
            let state = &mut flow.state;
            state.sent.insert(seq);
            if state.sent.len() == flow.packets && state.awaited_response != AwaitedResponse::Finish
            {
                state.awaited_response = AwaitedResponse::Finish;
                flow.retry.reset();
                out.send(flow.dst, flow.msg, finish(flow, slot));
                self.flows.start_timer(slot, now + dcpim.retry);
            }
        }
        packet
    }

    /// Repeats messages without response, and fails flows after the last attempt (§3.5). Short
    /// flows that wait for this host's own link are not repeated. With enough flows, repetitions
    /// would take all of the link.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
        stats: &mut DcpimStats,
    ) {
        while let Some(slot) = self.flows.next_due(now) {
            // The timer of a short flow that waits for the link restarts when its last packet is
            // sent.
            if !self.flows[slot].state.is_queued {
                self.flows.queue_retransmit(slot);
            }
        }
        while !out.is_backlogged()
            && let Some(slot) = self.flows.next_retransmit(now, dcpim.retransmit_gap)
        {
            let flow = &mut self.flows[slot];
            let msg = flow.msg;
            if !flow.retry.attempt(now, &dcpim.attempt_limit) {
                self.flows.remove(slot);
                out.push_event(Event::Failed { msg });
                continue;
            }
            let header = match flow.state.awaited_response {
                AwaitedResponse::Any | AwaitedResponse::Tokens => {
                    let (flow, size) = (flow.flow, flow.size);
                    DcpimHeader::Notification { flow, tx_slot: slot, size, is_retransmission: true }
                }
                AwaitedResponse::Finish => finish(flow, slot),
            };
            out.send(flow.dst, msg, header);
            stats.control_retransmissions += 1;
            let pause = backoff(flow.retry.attempts(), dcpim);
            self.flows.start_timer(slot, now + pause);
        }
        if out.is_backlogged() {
            self.flows.postpone_retransmits(now + dcpim.keepalive);
        }
    }
}

fn finish(flow: &OutgoingFlow<Progress>, tx_slot: u32) -> DcpimHeader {
    DcpimHeader::Finish { flow: flow.flow, tx_slot, packets: flow.packets }
}

/// Returns the pause after the n-th repetition: doubled each time, up to the keep-alive interval.
fn backoff(attempts: u32, dcpim: &Dcpim) -> Span {
    let pause = (dcpim.retry * (1 << attempts.min(16))).min(dcpim.keepalive);
    dcpim.attempt_limit.interval(pause, attempts)
}

/// Priority by flow size to the base 7: the authors' simulator's.
fn size_priority(packets: u32) -> Priority {
    let bounds = [7, 49, 343, 2_401, 16_807];
    Priority::new(1 + bounds.iter().filter(|&&b| packets > b).count() as u8)
}
