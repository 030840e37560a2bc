//! The destination's side (pHost §3.2, algorithm 2): pending flows, and one token a packet time.

use rampmeter_core::collections::{IdMap, SeqSet, Slab};
use rampmeter_core::{Event, MsgId, NodeId, Packet, Receipt, TenantId, Time};

use super::PhostStats;
use super::config::{FreeHold, FreeRepair, Phost, Policy, Wake};
use super::wire::PhostHeader;
use crate::shared::{FlowNumbers, Held, Known, Output};

/// A flow as its source describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    pub(super) src: NodeId,
    pub(super) msg: MsgId,
    pub(super) flow: u32,
    pub(super) tx_slot: u32,
    pub(super) packets: u32,
    pub(super) deadline: Time,
    pub(super) tenant: TenantId,
}

#[derive(Debug)]
struct RxFlow {
    of: Announcement,
    announced: Time,
    heard: Time,
    got: SeqSet,
    /// Where the search for the next packet to token begins.
    cursor: u32,
    /// Tokens so far, free ones included, and how many there may be until missing packets are
    /// counted again.
    tokens: u32,
    goal: u32,
    /// One more than the number of the latest token whose data has come.
    seen: u32,
    last_token: Time,
    /// Every packet has had a token: no more before this instant, which is for those in flight.
    settles: Option<Time>,
}

/// What a flow would do with a token.
enum Readiness {
    Ready,
    /// It does not want one before this instant.
    Waits(Time),
}

impl RxFlow {
    fn remaining(&self) -> u32 {
        self.of.packets - self.got.len()
    }

    /// Whether the flow may have a token (§3.2). A source that leaves as many tokens as the
    /// threshold unanswered is downgraded: it gets no other until data comes, or one after the
    /// timeout.
    fn readiness(&mut self, now: Time, phost: &Phost) -> Readiness {
        if let Some(at) = self.settles {
            if at > now {
                return Readiness::Waits(at);
            }
            self.settles = None;
            self.goal = self.tokens + self.remaining();
        }
        if self.tokens - self.seen < phost.threshold {
            return Readiness::Ready;
        }
        let until = self.last_token + phost.downgrade;
        if until > now {
            return Readiness::Waits(until);
        }
        self.seen = self.tokens + 1 - phost.threshold;
        Readiness::Ready
    }

    /// Takes the next packet to token, missing ones in cyclic order.
    fn take_token(&mut self, now: Time, phost: &Phost) -> u32 {
        let next = self.got.next_missing(self.cursor);
        let seq = if next < self.of.packets { next } else { self.got.first_missing() };
        self.cursor = seq + 1;
        self.tokens += 1;
        self.last_token = now;
        if self.tokens >= self.goal {
            self.settles = Some(now + phost.resend);
        }
        seq
    }
}

/// What a destination knows of a flow.
enum Found {
    New,
    Pending(u32),
    Over,
    Abandoned,
}

/// Token times between searches for flows whose source is gone.
const FORGET_TICKS: u32 = 1 << 14;

/// The clock of tokens: one a packet time (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// No flow is pending.
    Stopped,
    /// A token may be sent at this instant.
    Runs(Time),
    /// No pending flow wants a token before this instant.
    Waits(Time),
}

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    flows: Slab<RxFlow>,
    /// The slots of pending flows, by source and number.
    pending: IdMap<(u32, u32), u32>,
    pub(super) numbers: FlowNumbers,
    pub(super) held: Held,
    clock: Clock,
    /// Tokens to withhold for announced free tokens.
    withheld: u32,
    ticks: u32,
    /// Packets received, by tenant.
    served: Vec<u64>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            flows: Slab::default(),
            pending: IdMap::default(),
            numbers: FlowNumbers::default(),
            held: Held::default(),
            clock: Clock::Stopped,
            withheld: 0,
            ticks: 0,
            served: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        match self.clock {
            Clock::Stopped => Time::NEVER,
            Clock::Runs(at) | Clock::Waits(at) => at,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    fn find(&mut self, flow: &Announcement) -> Found {
        if let Some(&slot) = self.pending.get(&(flow.src.get(), flow.flow)) {
            return Found::Pending(slot);
        }
        match self.numbers.known(flow.src, flow.flow) {
            Known::New => Found::New,
            Known::Entered => Found::Over,
            Known::Abandoned => Found::Abandoned,
        }
    }

    /// Enters a flow that is new. `None` if its number makes no sense, or its source has too many.
    fn enter(&mut self, now: Time, flow: Announcement, phost: &Phost) -> Option<u32> {
        if !self.numbers.enter(flow.src, flow.flow) {
            return None;
        }
        if self.served.len() <= flow.tenant.idx() {
            self.served.resize(flow.tenant.idx() + 1, 0);
        }
        let free = phost.free_of(flow.packets);
        if phost.config.free_hold == FreeHold::Withhold {
            self.withheld = free;
        }
        let wait = match phost.config.free_repair {
            FreeRepair::RoundTrip => phost.mtu_time * u64::from(free) + phost.rtt,
            FreeRepair::TwicePace => phost.mtu_time * u64::from(2 * free),
        };
        let slot = self.flows.insert(RxFlow {
            of: flow,
            announced: now,
            heard: now,
            got: SeqSet::default(),
            cursor: free,
            tokens: free,
            goal: flow.packets,
            seen: 0,
            last_token: now,
            settles: (free == flow.packets).then(|| now + wait),
        });
        self.pending.insert((flow.src.get(), flow.flow), slot);
        self.start(now);
        Some(slot)
    }

    /// Starts the clock if it does not run.
    fn start(&mut self, now: Time) {
        if !matches!(self.clock, Clock::Runs(_)) {
            self.clock = Clock::Runs(now);
        }
    }

    pub(super) fn on_rts(
        &mut self,
        now: Time,
        flow: Announcement,
        repeated: bool,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let tx_slot = flow.tx_slot;
        match self.find(&flow) {
            Found::New => {
                if self.enter(now, flow, phost).is_none() {
                    return;
                }
            }
            Found::Pending(slot) => {
                // A free packet may have come first, which says less.
                let state = &mut self.flows[slot];
                state.heard = now;
                (state.of.deadline, state.of.tenant) = (flow.deadline, flow.tenant);
                if self.served.len() <= flow.tenant.idx() {
                    self.served.resize(flow.tenant.idx() + 1, 0);
                }
            }
            Found::Over => {
                if repeated {
                    out.send(flow.src, flow.msg, PhostHeader::Ack { tx_slot });
                }
                return;
            }
            Found::Abandoned => return,
        }
        if repeated {
            out.send(flow.src, flow.msg, PhostHeader::Heard { tx_slot });
        }
    }

    /// A packet that a free token paid for, which may come before the RTS.
    pub(super) fn on_free(
        &mut self,
        now: Time,
        flow: Announcement,
        seq: u32,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        let slot = match self.find(&flow) {
            Found::Pending(slot) => slot,
            Found::Over => {
                let tx_slot = flow.tx_slot;
                out.send(flow.src, flow.msg, PhostHeader::Ack { tx_slot });
                return Receipt::Duplicate;
            }
            Found::Abandoned => return Receipt::Ignored,
            Found::New => match self.enter(now, flow, phost) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
        };
        self.on_packet(now, slot, (seq, seq), phost, out)
    }

    /// A packet that a token asked for: the flow's slot, the packet's and the token's number.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<PhostHeader>,
        (slot, seq, number): (u32, u32, u32),
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        if !self.holds(now, slot, packet) {
            return Receipt::Duplicate;
        }
        self.on_packet(now, slot, (seq, number), phost, out)
    }

    /// Whether the slot that a packet names is its flow's: it is gone, or used anew, if that is
    /// over. Its sender lives.
    pub(super) fn holds(&mut self, now: Time, slot: u32, packet: &Packet<PhostHeader>) -> bool {
        let is_of = |f: &&mut RxFlow| f.of.src == packet.src && f.of.msg == packet.payload.msg;
        let flow = self.flows.get_mut(slot).filter(is_of);
        flow.map(|flow| flow.heard = now).is_some()
    }

    pub(super) fn has_delivered(&mut self, flow: &Announcement) -> bool {
        matches!(self.find(flow), Found::Over)
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
        flow.seen = flow.seen.max(number.saturating_add(1).min(flow.tokens));
        self.served[flow.of.tenant.idx()] += 1;
        let receipt = if flow.got.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        if flow.remaining() == 0 {
            let Announcement { src, msg, flow, tx_slot, .. } = flow.of;
            self.flows.remove(slot);
            self.pending.remove(&(src.get(), flow));
            self.numbers.complete(src);
            out.say(Event::Delivered { src, msg });
            out.send(src, msg, PhostHeader::Ack { tx_slot });
        } else if phost.config.wake == Wake::OnData
            && matches!(self.clock, Clock::Waits(_))
            && matches!(self.flows[slot].readiness(now, phost), Readiness::Ready)
        {
            self.start(now);
        }
        receipt
    }

    /// Sends a token if one is due (§3.2).
    pub(super) fn fire(
        &mut self,
        now: Time,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
        stats: &mut PhostStats,
    ) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(FORGET_TICKS) {
            self.forget_silent(now, phost, out);
        }
        if self.withheld > 0 {
            self.withheld -= 1;
            stats.tokens_withheld += 1;
            self.clock = Clock::Runs(now + phost.mtu_time);
            return;
        }
        let slot = match self.pick(now, phost) {
            Ok(slot) => slot,
            Err(clock) => {
                self.clock = clock;
                return;
            }
        };
        let flow = &mut self.flows[slot];
        let number = flow.tokens;
        let seq = flow.take_token(now, phost);
        let (tx_slot, rx_slot, remaining) = (flow.of.tx_slot, slot, flow.remaining());
        let token = PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining };
        out.send(flow.of.src, flow.of.msg, token);
        stats.tokens_sent += 1;
        self.clock = Clock::Runs(now + phost.mtu_time);
    }

    /// The flow that is served next (§3.3), or what the clock does if there is none.
    fn pick(&mut self, now: Time, phost: &Phost) -> Result<u32, Clock> {
        let mut best: Option<((u64, u64, u64), u32)> = None;
        let mut waits = Clock::Stopped;
        for (slot, flow) in self.flows.entries_mut() {
            if self.held.contains(flow.of.src, flow.of.msg) {
                continue;
            }
            let remaining = u64::from(flow.remaining());
            let announced = flow.announced.as_ps();
            let key = match phost.config.policy {
                Policy::Srpt => (remaining, announced, 0),
                Policy::Edf => (flow.of.deadline.as_ps(), announced, 0),
                Policy::TenantFair => (self.served[flow.of.tenant.idx()], remaining, announced),
            };
            if best.is_some_and(|(least, _)| key >= least) {
                continue;
            }
            match flow.readiness(now, phost) {
                Readiness::Ready => best = Some((key, slot)),
                Readiness::Waits(until) => {
                    waits = match waits {
                        Clock::Waits(at) => Clock::Waits(at.min(until)),
                        Clock::Stopped | Clock::Runs(_) => Clock::Waits(until),
                    };
                }
            }
        }
        best.map(|(_, slot)| slot).ok_or(waits)
    }

    /// A message that was held may have tokens again.
    pub(super) fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if !self.held.release(src, msg) {
            return;
        }
        let is_its = |f: &&mut RxFlow| f.of.src == src && f.of.msg == msg;
        let flow = self.flows.entries_mut().map(|(_, flow)| flow).find(is_its);
        if flow.map(|flow| flow.heard = now).is_some() {
            self.start(now);
        }
    }

    fn forget_silent(&mut self, now: Time, phost: &Phost, out: &mut Output<PhostHeader>) {
        let held = &self.held;
        let stale = |f: &RxFlow| {
            now.saturating_since(f.heard) > phost.forget && !held.contains(f.of.src, f.of.msg)
        };
        let gone: Vec<u32> =
            self.flows.iter().filter(|(_, f)| stale(f)).map(|(slot, _)| slot).collect();
        for slot in gone {
            if let Some(flow) = self.flows.remove(slot) {
                self.pending.remove(&(flow.of.src.get(), flow.of.flow));
                self.numbers.abandon(flow.of.src, flow.of.flow);
                out.say(Event::Abandoned { src: flow.of.src, msg: flow.of.msg });
            }
        }
    }

    /// The source has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PhostHeader>) {
        let of_peer = self.flows.iter().filter(|(_, f)| f.of.src == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        for flow in slots.into_iter().filter_map(|slot| self.flows.remove(slot)) {
            self.pending.remove(&(flow.of.src.get(), flow.of.flow));
            out.say(Event::Abandoned { src: peer, msg: flow.of.msg });
        }
        self.held.forget_peer(peer);
        self.numbers.reset(peer);
    }
}
