//! The source's side (pHost §3.2, algorithm 1): announcement, tokens, and which of them is used.

use std::collections::VecDeque;

use rampmeter_types::{
    Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Priority, Span, Stage, TenantId, Time,
};

use super::config::{DataPriority, FreeTokenExpiry, Phost, Policy};
use super::stats::PhostStats;
use super::wire::PhostHeader;
use crate::toolkit::{
    OutgoingFlow, OutgoingFlows, Output, SlotSet, TenantCounts, paused_probe_interval,
};

/// A token at its source.
#[derive(Clone, Copy, Debug)]
struct Token {
    seq: u32,
    number: u32,
    rx_slot: u32,
    expires: Time,
}

/// State of a flow. Its timer expires when its announcement is due for repetition.
#[derive(Debug)]
struct Tokens {
    deadline: Time,
    tenant: TenantId,
    /// Packets missing at the destination, according to the latest token.
    remaining: u32,
    /// Lifetime of its tokens.
    token_lifetime: Span,
    /// True if free tokens are enough for all its packets.
    is_short: bool,
    /// The next packet with a free token, and the first without.
    free_next: u32,
    free_end: u32,
    free_expires_at: Time,
    /// Tokens, oldest first.
    tokens: VecDeque<Token>,
}

impl Tokens {
    /// Drops tokens that have expired. Returns true if any remains.
    #[inline]
    fn is_ready(&mut self, now: Time, stats: &mut PhostStats) -> bool {
        if self.free_next < self.free_end && self.free_expires_at < now {
            stats.tokens_expired += u64::from(self.free_end - self.free_next);
            self.free_next = self.free_end;
        }
        while self.tokens.front().is_some_and(|t| t.expires < now) {
            self.tokens.pop_front();
            stats.tokens_expired += 1;
        }
        self.free_next < self.free_end || !self.tokens.is_empty()
    }

    /// Returns true if the next packet uses a free token. Tokens for later packets go first unless
    /// free tokens expire.
    #[inline]
    fn is_free_next(&self) -> bool {
        let is_later = |token: &Token| token.seq >= self.free_end;
        self.free_next < self.free_end
            && (self.free_expires_at != Time::NEVER || !self.tokens.front().is_some_and(is_later))
    }
}

fn make_rts(
    flow: &OutgoingFlow<Tokens>,
    now: Time,
    tx_slot: u32,
    is_retransmission: bool,
) -> PhostHeader {
    let time_to_deadline = match flow.state.deadline {
        Time::NEVER => Span::from_ps(u64::MAX),
        at => at.saturating_since(now),
    };
    let tenant = flow.state.tenant.get() as u16;
    let (flow, size) = (flow.flow, flow.size);
    PhostHeader::Rts { flow, tx_slot, size, time_to_deadline, tenant, is_retransmission }
}

pub(crate) const TOKEN: &Stage =
    &Stage { name: "token", meaning: "The destination has given no token that is valid (§3.2)." };

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[TOKEN];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<Tokens>,
    /// Flows that have tokens, some perhaps expired.
    ready: SlotSet,
    /// Packets sent, by tenant, if the policy requires it.
    served: TenantCounts,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            flows: OutgoingFlows::new(node),
            ready: SlotSet::default(),
            served: TenantCounts::default(),
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the tokens of all flows.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.flows.gauges(each, |flow| {
            [
                ("token_packets", flow.state.tokens.len() as u64),
                ("free_token_packets", (flow.state.free_end - flow.state.free_next).into()),
            ]
        });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        let state = &self.flows[self.flows.slot(msg)?].state;
        let free = (state.free_next < state.free_end).then_some(state.free_expires_at);
        let valid = state.tokens.iter().map(|token| token.expires).chain(free);
        Some(match valid.max().filter(|&expires| expires >= now) {
            Some(expires) => Permission::GrantedUntil(expires, TOKEN),
            None => Permission::Awaited(TOKEN),
        })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Submits a new flow: it is announced, and gets its free tokens.
    pub(super) fn submit(
        &mut self,
        now: Time,
        message: Message,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let Message { id: msg, dst, size, deadline, tenant } = message;
        let packets = phost.segmentation().packets(size);
        let pair = phost.pair_to(dst);
        let free_end = pair.free_packets(packets, phost.config.free_tokens_for);
        let state = Tokens {
            deadline,
            tenant,
            remaining: packets,
            token_lifetime: pair.token_lifetime,
            is_short: packets <= pair.free_tokens,
            free_next: 0,
            free_end,
            free_expires_at: match phost.config.free_token_expiry {
                None | Some(FreeTokenExpiry::Never) => Time::NEVER,
                Some(FreeTokenExpiry::Pace) => now + pair.free_lifetime(free_end),
            },
            tokens: VecDeque::new(),
        };
        let slot = self.flows.submit(&message, packets, state);
        self.flows.start_timer(slot, now + phost.keepalive_to(dst));
        out.send(dst, msg, make_rts(&self.flows[slot], now, slot, false));
        if free_end > 0 {
            self.ready.insert(slot);
        }
    }

    /// Records that the destination has the flow.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        is_paused: bool,
        phost: &Phost,
    ) {
        if let Some(flow) = self.flows.get_current(slot, msg) {
            let keepalive = phost.keepalive_to(flow.dst);
            let pause = if is_paused { paused_probe_interval(keepalive) } else { keepalive };
            flow.is_paused = is_paused;
            self.flows.on_response(slot, now + pause);
        }
    }

    /// Handles a request of the destination for a packet.
    pub(super) fn on_token(&mut self, now: Time, msg: MsgId, header: &PhostHeader) {
        let &PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining } = header else {
            return;
        };
        let Some(flow) = self.flows.get_current(tx_slot, msg) else { return };
        if seq >= flow.packets {
            return;
        }
        // A token does not postpone the timer. If its tokens expire because others are served
        // first, the flow is announced again, so that its destination keeps it.
        flow.retry.reset();
        flow.is_paused = false;
        let state = &mut flow.state;
        state.remaining = remaining;
        // Destinations keep to one open token a packet; more than that are dropped.
        if state.tokens.len() >= flow.packets as usize {
            return;
        }
        let expires = now + state.token_lifetime;
        state.tokens.push_back(Token { seq, number, rx_slot, expires });
        self.ready.insert(tx_slot);
    }

    /// Handles the arrival of the whole flow at its destination.
    pub(super) fn on_ack(&mut self, slot: u32, msg: MsgId, out: &mut Output<PhostHeader>) {
        if self.flows.get_current(slot, msg).is_some() {
            self.drop_flow(slot);
            out.push_event(Event::Completed { msg });
        }
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<PhostHeader>) {
        let Some(slot) = self.flows.slot(msg) else { return };
        self.drop_flow(slot);
        out.cancel(msg, |header| matches!(header, PhostHeader::Rts { .. }));
    }

    /// Handles a destination that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PhostHeader>) {
        let Self { flows, ready, .. } = self;
        flows.forget_peer(peer, out, |slot, _| ready.remove(slot));
    }

    fn drop_flow(&mut self, slot: u32) {
        self.flows.remove(slot);
        self.ready.remove(slot);
    }

    /// Returns the next data packet, if a token pays for one (§3.3).
    ///
    /// Examines every flow that has tokens. Each of them may have expired, and the time of its
    /// expiry counts for the limit on tokens. By tenants, each packet changes the order of many.
    /// They are few, as a token is valid for one and a half packet times.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        phost: &Phost,
        stats: &mut PhostStats,
    ) -> Option<Packet<PhostHeader>> {
        let mut best: Option<((u64, u64), u32)> = None;
        let mut idx = 0;
        while let Some(slot) = self.ready.get(idx) {
            if !self.flows[slot].state.is_ready(now, stats) {
                self.ready.remove(slot);
                continue;
            }
            let key = self.key(slot, phost.config.policy);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, slot));
            }
            idx += 1;
        }
        let (_, slot) = best?;
        Some(self.take_packet(now, slot, phost))
    }

    /// Returns the key by which flows are preferred, lowest first. Of equals the flow submitted
    /// first is preferred.
    fn key(&self, slot: u32, policy: Policy) -> (u64, u64) {
        let flow = &self.flows[slot];
        let age = u64::from(flow.msg.get());
        let state = &flow.state;
        let remaining = u64::from(state.remaining);
        match policy {
            Policy::Srpt => (remaining, age),
            Policy::Edf => (state.deadline.as_ps(), age),
            Policy::TenantFair => (self.served.get(state.tenant), remaining << 32 | age),
        }
    }

    /// Uses a token of a flow that has one.
    fn take_packet(&mut self, now: Time, slot: u32, phost: &Phost) -> Packet<PhostHeader> {
        let outgoing = self.flows.message(slot);
        let flow = &mut self.flows[slot];
        let state = &mut flow.state;
        let is_short = state.is_short;
        if phost.config.policy == Policy::TenantFair {
            self.served.count(state.tenant);
        }
        let (seq, header) = if state.is_free_next() {
            let seq = state.free_next;
            state.free_next += 1;
            // Its destination may have taken it for lost.
            state.tokens.retain(|token| token.seq != seq);
            let header = PhostHeader::Free { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
            (seq, header)
        } else {
            let token = state.tokens.pop_front().expect("a ready flow has a token");
            let Token { seq, number, rx_slot, .. } = token;
            let keepalive = phost.keepalive_to(flow.dst);
            self.flows.postpone_timer(slot, now + keepalive);
            (seq, PhostHeader::Data { rx_slot, seq, number })
        };
        let priority = match phost.config.data_priority {
            DataPriority::Size if is_short => Priority::new(1),
            DataPriority::Size => Priority::new(2),
            DataPriority::Single => Priority::new(1),
        };
        phost.segmentation().data(outgoing, seq, priority, header)
    }

    /// Repeats announcements without an answer, at intervals, and aborts those that are never
    /// answered. If many announcements wait for this host's own link, they are not repeated.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
        stats: &mut PhostStats,
    ) {
        while let Some(slot) = self.flows.next_due(now) {
            self.flows.queue_retransmit(slot);
        }
        while !out.is_backlogged()
            && let Some(slot) = self.flows.next_retransmit(now, phost.retransmit_gap)
        {
            let flow = &mut self.flows[slot];
            let msg = flow.msg;
            if flow.retry.attempt(now, &phost.attempt_limit) {
                out.send(flow.dst, msg, make_rts(flow, now, slot, true));
                stats.control_retransmissions += 1;
                let keepalive = phost.keepalive_to(flow.dst);
                let pause = phost.attempt_limit.interval(keepalive, flow.retry.attempts());
                self.flows.start_timer(slot, now + pause);
            } else {
                self.drop_flow(slot);
                out.push_event(Event::Failed { msg });
            }
        }
        if out.is_backlogged() {
            self.flows.postpone_retransmits(now + phost.keepalive);
        }
    }
}
