//! The destination's side (pHost §3.2, algorithm 2): pending flows, and one token a packet time.
//!
//! The problem: many sources send to one destination. If all send at once, packets queue and are
//! dropped at the destination's port. Switches of pHost do no more than priorities.
//!
//! The simple way gives each flow a rate, or all of its tokens at once. Rates must then change with
//! each flow that arrives or ends. Tokens given at once let sources collide as before.
//!
//! The present way: the destination alone decides. Its clock sends one token each packet time of
//! its own link, to the pending flow that the policy prefers (`choice`). One token requests one
//! packet, so data arrives no faster than the link carries it. The clock has three states:
//!
//! * It *runs* after a token: the next is due a packet time later.
//! * It *waits* if no pending flow may have a token before an instant. Data or an announcement may
//!   start it earlier.
//! * It is *stopped* if no flow is pending, or all are paused.
//!
//! A source with a short flow cannot wait for a round trip. It uses free tokens at once, and the
//! destination does not request those packets. A flow's tokens begin with its first free packet, as
//! its source may serve other flows until then. When every packet has had a token, the flow waits
//! for those in flight. Then missing packets get new tokens, in cyclic order (`rx_flow`).
//!
//! Hazards: a repair that is too early requests queued packets again. Their duplicates delay others
//! and cause more repairs. So the wait is the measured time from token to data
//! (`repairs_wait_while_packets_arrive_as_long_as_free_packets_have_taken`). An unresponsive source
//! must not hold the clock: it is downgraded (`rx_flow`). Slow sources get tokens at the pace of
//! their own links (`pacing`), without a step for each flow
//! (`a_token_among_many_flows_of_a_slow_source_takes_few_lookups`).

mod announcements;

use rampmeter_types::{MsgId, NodeId, Packet, Receipt, Time};

use super::config::{FreeTokenRepair, Phost, Policy, WakeEvent};
use super::flow_selector::FlowSelector;
use super::rx_flow::{Arrivals, PendingFlow, Readiness, RxFlow};
use super::stats::PhostStats;
use super::wire::PhostHeader;
use crate::toolkit::{
    Announcement, ArrivingFlows, IssuedToken, Output, TenantCounts, TokenDelay,
    paused_probe_interval,
};

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
    TokenAt(Time),
    /// No pending flow needs a token before this instant.
    IdleUntil(Time),
}

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<PendingFlow>,
    selector: FlowSelector,
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
            selector: FlowSelector::default(),
            clock: Clock::Stopped,
            withheld: 0,
            arrivals: Arrivals::default(),
            delay: TokenDelay::with_initial(phost.rtt, phost.keepalive),
            free_delay: TokenDelay::new(phost.rtt, phost.keepalive),
            ticks: 0,
            served: TenantCounts::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn n_examined(&self) -> u64 {
        self.selector.n_examined
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        match self.clock {
            Clock::Stopped => Time::NEVER,
            Clock::TokenAt(at) | Clock::IdleUntil(at) => at,
        }
    }

    /// Starts the clock if it does not run.
    fn start(&mut self, now: Time) {
        if !matches!(self.clock, Clock::TokenAt(_)) {
            self.clock = Clock::TokenAt(now);
        }
    }

    /// Pauses a message, which gets no tokens until it is resumed.
    pub(super) fn pause(&mut self, src: NodeId, msg: MsgId, phost: &Phost) {
        if let Some(slot) = self.flows.pause(src, msg) {
            self.selector.insert(slot, &self.flows[slot], phost.config.policy);
        }
    }

    /// Resumes a paused message, which may get tokens.
    pub(super) fn resume(&mut self, now: Time, src: NodeId, msg: MsgId, phost: &Phost) {
        let probe_interval = paused_probe_interval(phost.keepalive);
        if let Some(slot) = self.flows.resume(now, src, msg, probe_interval) {
            self.selector.insert(slot, &self.flows[slot], phost.config.policy);
            self.start(now);
        }
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(
        &mut self,
        src: NodeId,
        msg: MsgId,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        if let Some((slot, flow)) = self.flows.abandon_message(src, msg, out) {
            self.selector.remove(slot, &flow, phost.config.policy);
        }
    }

    /// Handles a source that has lost its state.
    pub(super) fn forget_peer(
        &mut self,
        peer: NodeId,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let Self { flows, selector, .. } = self;
        let policy = phost.config.policy;
        flows.forget_peer(peer, out, |slot, flow| selector.remove(slot, flow, policy));
    }

    /// Handles a packet that a token requested: the flow's slot, the packet's and the token's
    /// number.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<PhostHeader>,
        slot: u32,
        seq: u32,
        number: u32,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        self.arrivals.latest = now;
        if !self.flows.refresh_sender(now, slot, packet.src, packet.payload.msg) {
            return Receipt::Duplicate;
        }
        self.on_packet(now, slot, seq, number, phost, out)
    }

    fn on_packet(
        &mut self,
        now: Time,
        slot: u32,
        seq: u32,
        number: u32,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        let flow = &mut self.flows[slot];
        if seq >= flow.announcement.packets {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        flow.state.tokens_from = None;
        flow.state.tokens.on_data(number);
        self.delay.on_data(
            now,
            (flow.announcement.src, flow.announcement.flow, number),
            flow.state.pair.rtt,
        );
        if phost.config.policy == Policy::TenantFair {
            self.served.count(flow.state.tenant);
        }
        let receipt = if flow.received.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        let end = flow.shorten_wait(now);
        if flow.remaining() == 0 {
            if let Some(flow) = self.flows.deliver(slot, out) {
                self.selector.remove(slot, &flow, phost.config.policy);
                let Announcement { src, msg, tx_slot, .. } = flow.announcement;
                out.send(src, msg, PhostHeader::Ack { tx_slot });
            }
            return receipt;
        }
        match end {
            Some(end) if !flow.is_paused => {
                self.selector.wait(slot, flow, end, phost.config.policy);
                if let Clock::IdleUntil(until) = &mut self.clock {
                    *until = end.min(*until);
                }
            }
            _ => self.selector.on_packet(slot, flow, phost.config.policy),
        }
        if phost.config.wake_event == WakeEvent::OnData
            && let Clock::IdleUntil(until) = self.clock
        {
            let flow = &mut self.flows[slot];
            let at = match self.selector.next_token(flow) {
                at if at > now => at,
                _ => match flow.readiness(now, self.arrivals, phost) {
                    Readiness::Ready => now,
                    Readiness::NotBefore(_) | Readiness::WhileArriving(..) => until,
                },
            };
            self.clock =
                if at <= now { Clock::TokenAt(now) } else { Clock::IdleUntil(until.min(at)) };
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
            let Self { flows, selector, .. } = self;
            let gone = |slot, flow: &RxFlow| selector.remove(slot, flow, phost.config.policy);
            flows.forget_unresponsive(now, phost.forget_timeout, FORGET_PARTS, out, gone);
        }
        if self.withheld > 0 {
            self.withheld -= 1;
            stats.tokens_withheld += 1;
            self.clock = Clock::TokenAt(now + phost.mtu_time);
            return;
        }
        let Self { selector, flows, served, arrivals, .. } = self;
        let slot = match selector.pick(now, flows, served, *arrivals, phost) {
            Ok(slot) => slot,
            Err(Time::NEVER) => {
                self.selector.reset_pacing();
                self.clock = Clock::Stopped;
                return;
            }
            Err(until) => {
                self.clock = Clock::IdleUntil(until);
                return;
            }
        };
        let flow = &mut self.flows[slot];
        let pair = flow.state.pair;
        let resend = match phost.config.free_token_repair {
            FreeTokenRepair::Measured => pair.resend_wait.max(self.delay.wait(pair.rtt)),
            FreeTokenRepair::RoundTrip | FreeTokenRepair::TwicePace => pair.resend_wait,
        };
        self.selector.on_token(now, flow, phost);
        let IssuedToken { seq, number } = flow.take_token(now, resend, phost, stats);
        if phost.config.free_token_repair == FreeTokenRepair::Measured {
            self.delay.on_token(now, (flow.announcement.src, flow.announcement.flow, number));
        }
        let (tx_slot, rx_slot, remaining) = (flow.announcement.tx_slot, slot, flow.remaining());
        let token = PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining };
        out.send(flow.announcement.src, flow.announcement.msg, token);
        self.clock = Clock::TokenAt(now + phost.mtu_time);
    }
}
