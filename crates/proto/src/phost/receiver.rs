//! The destination's side (pHost §3.2, algorithm 2): pending flows, and one token a packet time.

mod announced;

use rampmeter_core::{MsgId, NodeId, Packet, Receipt, Span, TenantId, Time};

use super::PhostStats;
use super::choice::Choice;
use super::config::{Downgrading, FreeRepair, Pair, Phost, Policy, Wake};
use super::expiry::Expiry;
use super::wire::PhostHeader;
use crate::parts::{
    Announcement, ArrivingFlow, ArrivingFlows, Output, TenantCounts, TokenCursor, TokenDelay,
    UnscheduledTime, held_pause,
};

/// A flow's own part.
#[derive(Debug)]
pub(super) struct PendingFlow {
    pub(super) deadline: Time,
    pub(super) tenant: TenantId,
    pub(super) announced: Time,
    tokens: TokenCursor,
    /// Empty if expired tokens do not count.
    expiry: Expiry,
    /// Its downgrading, if expired tokens count.
    downgraded: Option<Downgrade>,
    /// Number of tokens before the next count of missing packets.
    goal: u32,
    /// Its last free packet.
    free: Option<u32>,
    /// No tokens before this instant unless data arrives.
    begins: Option<Time>,
    /// Every packet has had a token: the wait for those in flight.
    settles: Option<Wait>,
    /// The parameters of the two ends.
    pub(super) pair: Pair,
    /// True if its source is slower than this host.
    pub(super) is_paced: bool,
}

pub(super) type RxFlow = ArrivingFlow<PendingFlow>;

/// A downgrading of a flow.
#[derive(Clone, Copy, Debug)]
struct Downgrade {
    until: Time,
    /// Answered tokens at its start.
    seen: u32,
}

/// Packets that arrive at a destination.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Packets of announced free tokens.
    free: UnscheduledTime,
    /// Arrival of the latest packet or announcement.
    pub(super) latest: Time,
}

/// Wait for missing packets.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Until(Time),
    /// Until the first instant. Then while packets arrive, until the second and until the link has
    /// carried the free packets announced by then.
    AtLeast(Time, Time),
    /// Until an instant, or until packets cease to arrive.
    WhileArriving(Time),
}

/// Readiness of a flow for a token.
pub(super) enum Readiness {
    Ready,
    /// It needs none before this instant.
    Waits(Time),
    /// It needs none before this instant unless no packet arrives for this time.
    WhileArriving(Time, Span),
}

impl PendingFlow {
    /// Downgrades a flow when more tokens than the threshold have expired (algorithm 2).
    fn by_expired(&mut self, now: Time) -> Readiness {
        let expired = self.expiry.expired(now, self.tokens.seen());
        if expired <= self.pair.threshold {
            self.downgraded = None;
            return Readiness::Ready;
        }
        let (until, seen) = (now + self.pair.downgrade, self.tokens.seen());
        let of = *self.downgraded.get_or_insert(Downgrade { until, seen });
        if of.seen < seen {
            // Its source answers, late.
            self.downgraded = None;
            self.tokens.answer_below(self.expiry.below - self.pair.threshold);
        } else if of.until > now {
            return Readiness::Waits(of.until);
        }
        Readiness::Ready
    }

    /// Downgrades a flow of an unresponsive source anew after one token.
    fn on_token(&mut self, now: Time) {
        if let Some(Downgrade { until, .. }) = &mut self.downgraded {
            *until = now + self.pair.downgrade;
        }
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
    pub(super) fn readiness(&mut self, now: Time, arrivals: Arrivals, phost: &Phost) -> Readiness {
        let state = &mut self.state;
        if let Some(at) = state.begins.filter(|&at| at > now) {
            return Readiness::Waits(at);
        }
        match state.settles {
            None => {}
            Some(Wait::Until(at) | Wait::AtLeast(at, _)) if at > now => {
                return Readiness::Waits(at);
            }
            Some(Wait::Until(_)) => self.end_wait(),
            Some(Wait::AtLeast(_, until)) => {
                let until = until.max(arrivals.free.until());
                state.settles = Some(Wait::WhileArriving(until));
                return self.readiness(now, arrivals, phost);
            }
            Some(Wait::WhileArriving(until)) => {
                let idle = state.pair.resend;
                if until.min(arrivals.latest + idle) > now {
                    return Readiness::WhileArriving(until, idle);
                }
                self.end_wait();
            }
        }
        let state = &mut self.state;
        match phost.config.downgrade_on {
            Downgrading::Expired => state.by_expired(now),
            Downgrading::Unanswered => state.by_unanswered(now),
        }
    }

    /// Ends the wait for missing packets, which need tokens.
    pub(super) fn end_wait(&mut self) {
        let remaining = self.remaining();
        self.state.settles = None;
        self.state.goal = self.state.tokens.issued() + remaining;
    }

    /// Shortens the wait for missing packets when no more are in flight: the last free packet and
    /// data for the last token have arrived. Packets that took other paths have a quarter of a
    /// round trip. Returns its new end.
    fn shorten_wait(&mut self, now: Time) -> Option<Time> {
        let PendingFlow { settles, tokens, free, pair, .. } = &mut self.state;
        if let Some(wait @ (Wait::AtLeast(..) | Wait::WhileArriving(_))) = settles
            && tokens.open() == 0
            && free.is_none_or(|last| self.got.contains(last))
        {
            let end = now + pair.rtt / 4;
            *wait = Wait::Until(end);
            return Some(end);
        }
        None
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
        state.on_token(now);
        if phost.config.downgrade_on == Downgrading::Expired {
            state.expiry.push(now + state.pair.token_expiry(), number + 1);
        }
        if state.tokens.issued() >= state.goal {
            state.settles = Some(match phost.config.free_repair {
                FreeRepair::Measured => Wait::AtLeast(now + state.pair.resend, now + resend),
                FreeRepair::RoundTrip | FreeRepair::TwicePace => Wait::Until(now + resend),
            });
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
    pub(super) flows: ArrivingFlows<PendingFlow>,
    choice: Choice,
    clock: Clock,
    /// Tokens to withhold for announced free tokens.
    withheld: u32,
    arrivals: Arrivals,
    /// Delay from tokens to their data, if repairs depend on it.
    delay: TokenDelay,
    /// Delay of free packets, which also wait at their source behind others, and a round trip.
    free_delay: TokenDelay,
    ticks: u32,
    /// Packets received, by tenant, if the policy requires it.
    served: TenantCounts,
}

impl Receiver {
    pub(super) fn new(phost: &Phost) -> Self {
        Self {
            flows: ArrivingFlows::default(),
            choice: Choice::default(),
            clock: Clock::Stopped,
            withheld: 0,
            arrivals: Arrivals::default(),
            delay: TokenDelay::known(phost.rtt, phost.keepalive),
            free_delay: TokenDelay::new(phost.rtt, phost.keepalive),
            ticks: 0,
            served: TenantCounts::default(),
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
        self.arrivals.latest = now;
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
        let flow = &mut self.flows[slot];
        if seq >= flow.of.packets {
            return Receipt::Ignored;
        }
        flow.heard = now;
        flow.state.begins = None;
        flow.state.tokens.see(number);
        self.delay.see(now, (flow.of.src, flow.of.flow, number), flow.state.pair.rtt);
        if phost.config.policy == Policy::TenantFair {
            self.served.count(flow.state.tenant);
        }
        let receipt = if flow.got.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        let end = flow.shorten_wait(now);
        if flow.remaining() == 0 {
            if let Some(flow) = self.flows.deliver(slot, out) {
                self.choice.leave(slot, &flow, phost.config.policy);
                let Announcement { src, msg, tx_slot, .. } = flow.of;
                out.send(src, msg, PhostHeader::Ack { tx_slot });
            }
            return receipt;
        }
        match end {
            Some(end) if !flow.is_held => {
                self.choice.wait(slot, flow, end, phost.config.policy);
                if let Clock::Waits(until) = &mut self.clock {
                    *until = end.min(*until);
                }
            }
            _ => self.choice.on_packet(slot, flow, phost.config.policy),
        }
        if phost.config.wake == Wake::OnData
            && let Clock::Waits(until) = self.clock
        {
            let flow = &mut self.flows[slot];
            let at = match self.choice.next_token(flow) {
                at if at > now => at,
                _ => match flow.readiness(now, self.arrivals, phost) {
                    Readiness::Ready => now,
                    Readiness::Waits(_) | Readiness::WhileArriving(..) => until,
                },
            };
            self.clock = if at <= now { Clock::Runs(now) } else { Clock::Waits(until.min(at)) };
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
        let Self { choice, flows, served, arrivals, .. } = self;
        let slot = match choice.pick(now, flows, (served, *arrivals), phost) {
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
