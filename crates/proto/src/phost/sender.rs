//! The source's side (pHost §3.2, algorithm 1): announcement, tokens, and which of them is used.

use std::collections::VecDeque;

use rampmeter_core::collections::Slab;
use rampmeter_core::{Event, Message, MsgId, NodeId, Packet, Priority, Span, TenantId, Time};

use super::PhostStats;
use super::config::{DataPriority, Phost, Policy};
use super::wire::PhostHeader;
use crate::shared::{NextNumber, Outgoing, Output, Timers};

/// A token at its source.
#[derive(Clone, Copy, Debug)]
struct Token {
    seq: u32,
    number: u32,
    rx_slot: u32,
    expires: Time,
}

#[derive(Debug)]
struct TxFlow {
    dst: NodeId,
    msg: MsgId,
    flow: u32,
    packets: u32,
    size: u64,
    deadline: Time,
    tenant: TenantId,
    /// Packets missing at the destination, as the latest token said.
    remaining: u32,
    /// The next packet with a free token, and the first without.
    free_next: u32,
    free_end: u32,
    free_until: Time,
    /// Tokens, oldest first.
    tokens: VecDeque<Token>,
    /// When the flow is announced again, and which entry of the timer heap says so.
    repeat_at: Time,
    timer_at: Time,
    attempts: u32,
    is_ready: bool,
}

impl TxFlow {
    /// Drops tokens that have expired; whether one is left.
    fn has_token(&mut self, now: Time, stats: &mut PhostStats) -> bool {
        if self.free_next < self.free_end && self.free_until < now {
            stats.tokens_expired += u64::from(self.free_end - self.free_next);
            self.free_next = self.free_end;
        }
        while self.tokens.front().is_some_and(|t| t.expires < now) {
            self.tokens.pop_front();
            stats.tokens_expired += 1;
        }
        self.free_next < self.free_end || !self.tokens.is_empty()
    }

    fn rts(&self, now: Time, tx_slot: u32, repeated: bool) -> PhostHeader {
        let time_left = match self.deadline {
            Time::NEVER => Span::from_ps(u64::MAX),
            at => at.saturating_since(now),
        };
        let tenant = self.tenant.get() as u16;
        let (flow, size) = (self.flow, self.size);
        PhostHeader::Rts { flow, tx_slot, size, time_left, tenant, repeated }
    }
}

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    node: NodeId,
    flows: Slab<TxFlow>,
    numbers: NextNumber,
    /// Slots of flows that have tokens, some perhaps expired.
    ready: Vec<u32>,
    timers: Timers<(u32, MsgId)>,
    /// Packets sent, by tenant.
    served: Vec<u64>,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            flows: Slab::default(),
            numbers: NextNumber::default(),
            ready: Vec::new(),
            timers: Timers::default(),
            served: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.timers.next()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn has_token(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A new flow: it is announced, and gets its free tokens.
    pub(super) fn submit(
        &mut self,
        now: Time,
        message: Message,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let Message { id: msg, dst, size, deadline, tenant } = message;
        let packets = phost.framing().packets(size);
        let free_end = phost.free_of(packets);
        let repeat_at = now + phost.retry;
        if self.served.len() <= tenant.idx() {
            self.served.resize(tenant.idx() + 1, 0);
        }
        let flow = TxFlow {
            dst,
            msg,
            flow: self.numbers.take(dst),
            packets,
            size: size.get(),
            deadline,
            tenant,
            remaining: packets,
            free_next: 0,
            free_end,
            free_until: now + phost.free_life(free_end),
            tokens: VecDeque::new(),
            repeat_at,
            timer_at: repeat_at,
            attempts: 0,
            is_ready: free_end > 0,
        };
        let slot = self.flows.insert(flow);
        self.timers.push(repeat_at, (slot, msg));
        out.send(dst, msg, self.flows[slot].rts(now, slot, false));
        if free_end > 0 {
            self.ready.push(slot);
        }
    }

    /// The flow in `slot`, if it is still that of `msg`.
    fn flow(&mut self, slot: u32, msg: MsgId) -> Option<&mut TxFlow> {
        self.flows.get_mut(slot).filter(|f| f.msg == msg)
    }

    /// The destination knows the flow.
    pub(super) fn on_heard(&mut self, now: Time, slot: u32, msg: MsgId, phost: &Phost) {
        if let Some(flow) = self.flow(slot, msg) {
            flow.attempts = 0;
            flow.repeat_at = now + phost.keepalive;
        }
    }

    /// The destination asks for a packet.
    pub(super) fn on_token(&mut self, now: Time, msg: MsgId, header: &PhostHeader, phost: &Phost) {
        let &PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining } = header else {
            return;
        };
        let Some(flow) = self.flow(tx_slot, msg) else { return };
        if seq >= flow.packets {
            return;
        }
        flow.attempts = 0;
        flow.repeat_at = now + phost.keepalive;
        flow.remaining = remaining;
        // No destination that makes sense has more tokens open than there are packets.
        if flow.tokens.len() >= flow.packets as usize {
            return;
        }
        let expires = now + phost.token_life;
        flow.tokens.push_back(Token { seq, number, rx_slot, expires });
        if !flow.is_ready {
            flow.is_ready = true;
            self.ready.push(tx_slot);
        }
    }

    /// The destination has the whole flow.
    pub(super) fn on_ack(&mut self, slot: u32, msg: MsgId, out: &mut Output<PhostHeader>) {
        if self.flow(slot, msg).is_some() {
            self.drop_flow(slot);
            out.say(Event::Completed { msg });
        }
    }

    /// The message is not to be sent after all.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<PhostHeader>) {
        let found = self.flows.iter().find(|(_, f)| f.msg == msg);
        let Some(slot) = found.map(|(slot, _)| slot) else { return };
        self.drop_flow(slot);
        out.cancel(msg, |header| matches!(header, PhostHeader::Rts { .. }));
    }

    /// The destination has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PhostHeader>) {
        let of_peer = self.flows.iter().filter(|(_, f)| f.dst == peer);
        let flows: Vec<(u32, MsgId)> = of_peer.map(|(slot, f)| (slot, f.msg)).collect();
        for (slot, msg) in flows {
            self.drop_flow(slot);
            out.say(Event::Failed { msg });
        }
        self.numbers.reset(peer);
    }

    fn drop_flow(&mut self, slot: u32) {
        if self.flows.remove(slot).is_some_and(|f| f.is_ready) {
            self.ready.retain(|&s| s != slot);
        }
    }

    /// The next data packet, if a token pays for one (§3.3).
    pub(super) fn next_data(
        &mut self,
        now: Time,
        phost: &Phost,
        stats: &mut PhostStats,
    ) -> Option<Packet<PhostHeader>> {
        let mut best: Option<((u64, u64), u32)> = None;
        let mut idx = 0;
        while let Some(&slot) = self.ready.get(idx) {
            let flow = &mut self.flows[slot];
            if !flow.has_token(now, stats) {
                flow.is_ready = false;
                self.ready.swap_remove(idx);
                continue;
            }
            let key = self.key(slot, phost.config.policy);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, slot));
            }
            idx += 1;
        }
        let (_, slot) = best?;
        Some(self.take(slot, phost))
    }

    /// By what flows are preferred, lowest first; ties go to the flow submitted first.
    fn key(&self, slot: u32, policy: Policy) -> (u64, u64) {
        let flow = &self.flows[slot];
        let age = u64::from(flow.msg.get());
        let remaining = u64::from(flow.remaining);
        match policy {
            Policy::Srpt => (remaining, age),
            Policy::Edf => (flow.deadline.as_ps(), age),
            Policy::TenantFair => (self.served[flow.tenant.idx()], remaining << 32 | age),
        }
    }

    /// Uses a token of a flow that has one.
    fn take(&mut self, slot: u32, phost: &Phost) -> Packet<PhostHeader> {
        let flow = &mut self.flows[slot];
        self.served[flow.tenant.idx()] += 1;
        let (seq, header) = if flow.free_next < flow.free_end {
            let seq = flow.free_next;
            flow.free_next += 1;
            let header = PhostHeader::Free { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
            (seq, header)
        } else {
            let token = flow.tokens.pop_front().expect("a ready flow has a token");
            let Token { seq, number, rx_slot, .. } = token;
            (seq, PhostHeader::Data { rx_slot, seq, number })
        };
        let priority = match phost.config.data_priority {
            DataPriority::Size if flow.packets <= phost.free => Priority::new(1),
            DataPriority::Size => Priority::new(2),
            DataPriority::Single => Priority::new(1),
        };
        let (dst, msg, size) = (flow.dst, flow.msg, flow.size);
        let message = Outgoing { src: self.node, dst, msg, size };
        phost.framing().data(message, seq, priority, header)
    }

    /// Announces again what has not been answered, and gives up on what never is.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        while let Some((at, (slot, msg))) = self.timers.pop_due(now) {
            let Some(flow) = self.flow(slot, msg).filter(|f| f.timer_at == at) else { continue };
            if flow.repeat_at <= now {
                flow.attempts += 1;
                if flow.attempts > phost.config.attempts_max {
                    self.drop_flow(slot);
                    out.say(Event::Failed { msg });
                    continue;
                }
                out.send(flow.dst, msg, flow.rts(now, slot, true));
                flow.repeat_at = now + phost.keepalive;
            }
            flow.timer_at = flow.repeat_at;
            let next = flow.timer_at;
            self.timers.push(next, (slot, msg));
        }
    }
}
