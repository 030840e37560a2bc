//! The destination's side (pHost §3.2, algorithm 2): pending flows, and one token a packet time.

use rampmeter_core::{MsgId, NodeId, Packet, Receipt, Span, TenantId, Time};

use super::PhostStats;
use super::choice::Choice;
use super::config::{Downgrading, FreeHold, FreeRepair, Pair, Phost, Policy, Wake};
use super::expiry::Expiry;
use super::wire::PhostHeader;
use crate::parts::{
    Announcement, ArrivingFlow, ArrivingFlows, Found, Output, Served, TokenCursor, TokenDelay,
    Unscheduled, held_pause,
};

/// A flow's own part.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) deadline: Time,
    pub(super) tenant: TenantId,
    pub(super) announced: Time,
    tokens: TokenCursor,
    /// Empty if expired tokens do not count.
    expiry: Expiry,
    /// Until when it is downgraded, where expired tokens count.
    downgraded: Option<Time>,
    /// Number of tokens before the next count of missing packets.
    goal: u32,
    /// Every packet has had a token: no more before this instant, which is for those in flight.
    settles: Option<Time>,
    /// The parameters of the two ends.
    pub(super) pair: Pair,
    /// True if its source is slower than this host.
    pub(super) is_paced: bool,
}

pub(super) type RxFlow = ArrivingFlow<Pending>;

/// Readiness of a flow for a token.
pub(super) enum Readiness {
    Ready,
    /// It needs none before this instant.
    Waits(Time),
}

impl Pending {
    /// Downgrades a flow when more tokens than the threshold have expired (algorithm 2).
    fn by_expired(&mut self, now: Time) -> Readiness {
        let expired = self.expiry.expired(now, self.tokens.seen());
        if expired <= self.pair.threshold {
            self.downgraded = None;
            return Readiness::Ready;
        }
        let until = *self.downgraded.get_or_insert(now + self.pair.downgrade);
        if until > now {
            return Readiness::Waits(until);
        }
        self.downgraded = None;
        self.tokens.answer_below(self.expiry.below - self.pair.threshold);
        Readiness::Ready
    }

    /// Downgrades a flow when as many tokens as the threshold are unanswered.
    fn by_unanswered(&mut self, now: Time) -> Readiness {
        if self.tokens.open() < self.pair.threshold {
            return Readiness::Ready;
        }
        let until = self.tokens.last() + self.pair.downgrade;
        if until > now {
            return Readiness::Waits(until);
        }
        self.tokens.reopen(self.pair.threshold);
        Readiness::Ready
    }
}

impl RxFlow {
    /// Returns the readiness of the flow for a token (§3.2). A downgraded flow gets no other until
    /// data arrives or a timeout expires. If its source does not answer then either, one more token
    /// downgrades it once more.
    pub(super) fn readiness(
        &mut self,
        now: Time,
        unscheduled: Unscheduled,
        phost: &Phost,
    ) -> Readiness {
        let remaining = self.remaining();
        let state = &mut self.state;
        if let Some(at) = state.settles {
            let at = match phost.config.free_repair {
                FreeRepair::Measured => at.max(unscheduled.may_wait_until(now, state.pair.resend)),
                FreeRepair::RoundTrip | FreeRepair::TwicePace => at,
            };
            if at > now {
                return Readiness::Waits(at);
            }
            state.settles = None;
            state.goal = state.tokens.issued() + remaining;
        }
        match phost.config.downgrade_on {
            Downgrading::Expired => state.by_expired(now),
            Downgrading::Unanswered => state.by_unanswered(now),
        }
    }

    /// Returns whether data that arrives may end its wait.
    #[inline]
    pub(super) fn waits_for_data(&self) -> bool {
        self.state.settles.is_none() && !self.is_held
    }

    /// Takes the next packet to token, missing ones in cyclic order, and the token's number. After
    /// the last packet the flow waits for `resend`.
    fn take_token(
        &mut self,
        now: Time,
        resend: Span,
        phost: &Phost,
        stats: &mut PhostStats,
    ) -> (u32, u32) {
        let state = &mut self.state;
        let (seq, is_again) = state.tokens.advance(&self.got, self.of.packets);
        stats.tokens_sent += 1;
        stats.tokens_again += u64::from(is_again);
        let number = state.tokens.issue(now);
        if phost.config.downgrade_on == Downgrading::Expired {
            state.expiry.push(now + state.pair.token_expiry(), number + 1);
        }
        if state.tokens.issued() >= state.goal {
            state.settles = Some(now + resend);
        }
        (seq, number)
    }
}

/// Token times between searches of some flows for unresponsive sources.
const FORGET_TICKS: u32 = 64;

/// Looks after which each flow has been looked at.
const FORGET_PARTS: u32 = 256;

/// The clock of tokens: one a packet time (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// No flow is pending.
    Stopped,
    /// A token may be sent at this instant.
    Runs(Time),
    /// No pending flow needs a token before this instant.
    Waits(Time),
}

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<Pending>,
    choice: Choice,
    clock: Clock,
    /// Tokens to withhold for announced free tokens.
    withheld: u32,
    /// Packets of announced free tokens.
    unscheduled: Unscheduled,
    /// Delay from tokens to their data, if repairs depend on it.
    delay: TokenDelay,
    ticks: u32,
    /// Packets received, by tenant, if the policy requires it.
    served: Served,
}

impl Receiver {
    pub(super) fn new(phost: &Phost) -> Self {
        Self {
            flows: ArrivingFlows::default(),
            choice: Choice::default(),
            clock: Clock::Stopped,
            withheld: 0,
            unscheduled: Unscheduled::default(),
            delay: TokenDelay::new(phost.rtt, phost.keepalive),
            ticks: 0,
            served: Served::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn looks(&self) -> u64 {
        self.choice.looks
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        match self.clock {
            Clock::Stopped => Time::NEVER,
            Clock::Runs(at) | Clock::Waits(at) => at,
        }
    }

    /// Enters a flow that is new. `None` if its number is too far ahead, or its source has too
    /// many.
    fn enter(
        &mut self,
        now: Time,
        of: Announcement,
        (deadline, tenant): (Time, TenantId),
        phost: &Phost,
    ) -> Option<u32> {
        let pair = phost.pair_from(of.src);
        let free = pair.free_of(of.packets, phost.config.free_for);
        let free_time = pair.mtu_time * u64::from(free);
        let wait = match phost.config.free_repair {
            FreeRepair::Measured => {
                self.unscheduled.announce(now, phost.mtu_time * u64::from(free));
                free_time + self.delay.wait(pair.rtt)
            }
            FreeRepair::RoundTrip => free_time + pair.rtt,
            FreeRepair::TwicePace => free_time * 2,
        };
        let mut expiry = Expiry::default();
        if phost.config.downgrade_on == Downgrading::Expired && free > 0 && free < of.packets {
            expiry.push(now + pair.free_life(free) + pair.rtt, free);
        }
        let state = Pending {
            expiry,
            downgraded: None,
            deadline,
            tenant,
            announced: now,
            tokens: TokenCursor::new(now, free),
            goal: of.packets,
            settles: (free == of.packets).then(|| now + wait),
            pair,
            is_paced: pair.mtu_time > phost.mtu_time,
        };
        let slot = self.flows.enter(now, of, state)?;
        self.choice.enter(slot, &self.flows[slot], phost.config.policy);
        if phost.config.free_hold == FreeHold::Withhold {
            self.withheld = free;
        }
        self.start(now);
        Some(slot)
    }

    /// Starts the clock if it does not run.
    fn start(&mut self, now: Time) {
        if !matches!(self.clock, Clock::Runs(_)) {
            self.clock = Clock::Runs(now);
        }
    }

    /// Holds a message, which has no tokens until it is released.
    pub(super) fn hold(&mut self, src: NodeId, msg: MsgId, phost: &Phost) {
        if let Some(slot) = self.flows.hold(src, msg) {
            self.choice.enter(slot, &self.flows[slot], phost.config.policy);
        }
    }

    /// Releases a held message, which may have tokens.
    pub(super) fn release(&mut self, now: Time, src: NodeId, msg: MsgId, phost: &Phost) {
        let quiet = held_pause(phost.keepalive);
        if let Some(slot) = self.flows.release(now, src, msg, quiet) {
            self.choice.enter(slot, &self.flows[slot], phost.config.policy);
            self.start(now);
        }
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(
        &mut self,
        of: (NodeId, MsgId),
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        if let Some((slot, flow)) = self.flows.abandon_message(of, out) {
            self.choice.leave(slot, &flow, phost.config.policy);
        }
    }

    /// Handles a source that has lost its state.
    pub(super) fn forget_peer(
        &mut self,
        peer: NodeId,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let Self { flows, choice, .. } = self;
        let policy = phost.config.policy;
        flows.forget_peer(peer, out, |slot, flow| choice.leave(slot, flow, policy));
    }

    pub(super) fn on_rts(
        &mut self,
        now: Time,
        of: Announcement,
        terms: (Time, TenantId),
        repeated: bool,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let tx_slot = of.tx_slot;
        let slot = match self.flows.find(&of) {
            Found::New => {
                let Some(slot) = self.enter(now, of, terms, phost) else {
                    // The source has too many flows in flight. This one waits until others have
                    // ended.
                    if repeated {
                        out.send(of.src, of.msg, PhostHeader::Heard { tx_slot, held: true });
                    }
                    return;
                };
                slot
            }
            Found::Arriving(slot) => {
                // A free packet, which carries less, may have arrived first.
                let flow = &mut self.flows[slot];
                flow.heard = now;
                if (flow.state.deadline, flow.state.tenant) != terms {
                    if phost.config.policy == Policy::TenantFair {
                        let arrived = flow.of.packets - flow.remaining();
                        self.served.transfer(flow.state.tenant, terms.1, arrived);
                    }
                    self.choice.leave(slot, flow, phost.config.policy);
                    (flow.state.deadline, flow.state.tenant) = terms;
                    self.choice.enter(slot, &self.flows[slot], phost.config.policy);
                }
                slot
            }
            Found::Over => {
                if repeated {
                    out.send(of.src, of.msg, PhostHeader::Ack { tx_slot });
                }
                return;
            }
            Found::Abandoned => return,
        };
        if repeated {
            out.send(
                of.src,
                of.msg,
                PhostHeader::Heard { tx_slot, held: self.flows[slot].is_held },
            );
        }
    }

    /// Handles a packet sent with a free token, which may arrive before the RTS.
    pub(super) fn on_free(
        &mut self,
        now: Time,
        of: Announcement,
        seq: u32,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        let slot = match self.flows.find(&of) {
            Found::Arriving(slot) => slot,
            Found::Over => {
                let tx_slot = of.tx_slot;
                out.send(of.src, of.msg, PhostHeader::Ack { tx_slot });
                return Receipt::Duplicate;
            }
            Found::Abandoned => return Receipt::Ignored,
            Found::New => {
                let terms = (Time::NEVER, TenantId::default());
                match self.enter(now, of, terms, phost) {
                    Some(slot) => slot,
                    None => return Receipt::Ignored,
                }
            }
        };
        if seq == 0 && phost.config.free_repair == FreeRepair::Measured {
            // Longer than a round trip after the announcement it has waited at its source or at a
            // port, and so will others.
            let Pending { announced, pair, .. } = &self.flows[slot].state;
            let waited = now.saturating_since(*announced);
            if waited > pair.rtt {
                self.delay.sample(waited + pair.rtt, pair.rtt);
            }
        }
        self.on_packet(now, slot, (seq, seq), phost, out)
    }

    /// Handles a packet that a token requested: the flow's slot, the packet's and the token's
    /// number.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<PhostHeader>,
        (slot, seq, number): (u32, u32, u32),
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        if !self.flows.hear(now, slot, packet.src, packet.payload.msg) {
            return Receipt::Duplicate;
        }
        self.on_packet(now, slot, (seq, number), phost, out)
    }

    fn on_packet(
        &mut self,
        now: Time,
        slot: u32,
        (seq, number): (u32, u32),
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        self.unscheduled.see(now);
        let flow = &mut self.flows[slot];
        if seq >= flow.of.packets {
            return Receipt::Ignored;
        }
        flow.heard = now;
        flow.state.tokens.see(number);
        self.delay.see(now, (flow.of.src, flow.of.flow, number), flow.state.pair.rtt);
        if phost.config.policy == Policy::TenantFair {
            self.served.count(flow.state.tenant);
        }
        let receipt = if flow.got.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        if flow.remaining() == 0 {
            if let Some(flow) = self.flows.deliver(slot, out) {
                self.choice.leave(slot, &flow, phost.config.policy);
                let Announcement { src, msg, tx_slot, .. } = flow.of;
                out.send(src, msg, PhostHeader::Ack { tx_slot });
            }
            return receipt;
        }
        self.choice.on_packet(slot, flow, phost.config.policy);
        if phost.config.wake == Wake::OnData
            && matches!(self.clock, Clock::Waits(_))
            && self.choice.has_token(now, &self.flows[slot])
            && matches!(self.flows[slot].readiness(now, self.unscheduled, phost), Readiness::Ready)
        {
            self.start(now);
        }
        receipt
    }

    /// Sends a token if one is due (§3.2).
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
        stats: &mut PhostStats,
    ) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(FORGET_TICKS) {
            let Self { flows, choice, .. } = self;
            let gone = |slot, flow: &RxFlow| choice.leave(slot, flow, phost.config.policy);
            flows.forget_silent(now, phost.forget, FORGET_PARTS, out, gone);
        }
        if self.withheld > 0 {
            self.withheld -= 1;
            stats.tokens_withheld += 1;
            self.clock = Clock::Runs(now + phost.mtu_time);
            return;
        }
        let Self { choice, flows, served, unscheduled, .. } = self;
        let slot = match choice.pick(now, flows, (served, *unscheduled), phost) {
            Ok(slot) => slot,
            Err(Time::NEVER) => {
                self.choice.reset_pacing();
                self.clock = Clock::Stopped;
                return;
            }
            Err(until) => {
                self.clock = Clock::Waits(until);
                return;
            }
        };
        let flow = &mut self.flows[slot];
        let pair = flow.state.pair;
        let resend = match phost.config.free_repair {
            FreeRepair::Measured => pair.resend.max(self.delay.wait(pair.rtt)),
            FreeRepair::RoundTrip | FreeRepair::TwicePace => pair.resend,
        };
        self.choice.count(now, flow, phost);
        let (seq, number) = flow.take_token(now, resend, phost, stats);
        if phost.config.free_repair == FreeRepair::Measured {
            self.delay.start(now, (flow.of.src, flow.of.flow, number));
        }
        let (tx_slot, rx_slot, remaining) = (flow.of.tx_slot, slot, flow.remaining());
        let token = PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining };
        out.send(flow.of.src, flow.of.msg, token);
        self.clock = Clock::Runs(now + phost.mtu_time);
    }
}
