//! The receiver's side: announced flows, requests and accepts, tokens, arrived data.

use rampmeter_core::collections::Slab;
use rampmeter_core::{Event, MsgId, NodeId, Packet, Receipt, Rng, Time};

use super::config::{Dcpim, Demand, Handshake, IdleCapacity, ShortFlows};
use super::link::{LinkTimer, Links};
use super::matching::{Capacity, Inbox, Offer, choose};
use super::rx_flow::{RxFlow, Window};
use super::wire::{DcpimHeader, Match, Step};
use super::{DcpimStats, order};
use crate::shared::{FlowNumbers, Held, Known, Output};

mod serve;

/// No slot: the end of a source's list.
const NONE: u32 = u32::MAX;

/// What a receiver knows of a flow.
enum Found {
    /// Never heard of it.
    New,
    /// It is in this slot.
    Active(u32),
    /// It is complete.
    Over,
    /// It was given up.
    Abandoned,
}

/// A flow as its sender describes it.
#[derive(Clone, Copy)]
pub(super) struct Announcement {
    pub(super) src: NodeId,
    pub(super) msg: MsgId,
    pub(super) flow: u32,
    pub(super) tx_slot: u32,
    pub(super) packets: u32,
}

/// Phases between searches for flows whose sender is gone.
const FORGET_PHASES: u32 = 256;

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    flows: Slab<RxFlow>,
    pub(super) numbers: FlowNumbers,
    pub(super) held: Held,
    /// The slot of each source's first flow that is not complete; the others follow by
    /// `RxFlow::next`.
    first: Vec<u32>,
    /// Sources with flows, in no particular but a reproducible order.
    listed: Vec<u32>,
    links: Links,
    grants: Inbox,
    /// The round whose grants are handled next.
    next_accept: (u32, u8),
    phase: u32,
    /// Channels accepted in this phase.
    accepted: u8,
    /// Channels busy now, in the running data phase or prompted.
    busy: u8,
    withheld: u32,
    offers: Vec<Offer>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            flows: Slab::default(),
            numbers: FlowNumbers::default(),
            held: Held::default(),
            first: Vec::new(),
            listed: Vec::new(),
            links: Links::default(),
            grants: Inbox::default(),
            next_accept: (0, 0),
            phase: 0,
            accepted: 0,
            busy: 0,
            withheld: 0,
            offers: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.links.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn late(&self) -> u64 {
        self.grants.late()
    }

    fn find(&mut self, flow: Announcement) -> Found {
        let Announcement { src, flow, .. } = flow;
        if let Some(slot) = self.of_source(src).find(|&slot| self.flows[slot].flow == flow) {
            return Found::Active(slot);
        }
        match self.numbers.known(src, flow) {
            Known::New => Found::New,
            Known::Entered => Found::Over,
            Known::Abandoned => Found::Abandoned,
        }
    }

    /// The slots of a source's flows that are not complete.
    fn of_source(&self, src: NodeId) -> impl Iterator<Item = u32> {
        let first = self.first.get(src.idx()).copied().unwrap_or(NONE);
        let some = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(some(first), move |&slot| some(self.flows[slot].next))
    }

    /// Enters a flow that is new. `None` if its number makes no sense, or its source has too many.
    fn enter(&mut self, now: Time, flow: Announcement, dcpim: &Dcpim) -> Option<u32> {
        if !self.numbers.enter(flow.src, flow.flow) {
            return None;
        }
        if self.first.len() <= flow.src.idx() {
            self.first.resize(flow.src.idx() + 1, NONE);
        }
        let Announcement { src, msg, tx_slot, packets, .. } = flow;
        let mut state = RxFlow::new(src, msg, flow.flow, tx_slot, packets, now);
        if packets <= dcpim.short_max {
            state.expect_all(now, dcpim);
            if dcpim.config.short_flows == ShortFlows::Withhold {
                self.withheld = packets;
            }
        }
        let first = &mut self.first[src.idx()];
        if *first == NONE {
            self.listed.push(src.get());
        }
        state.next = *first;
        let slot = self.flows.insert(state);
        *first = slot;
        Some(slot)
    }

    pub(super) fn on_notification(
        &mut self,
        now: Time,
        flow: Announcement,
        repeated: bool,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let explicit = dcpim.config.handshake == Handshake::Explicit;
        match self.find(flow) {
            Found::New => {
                let Some(slot) = self.enter(now, flow, dcpim) else { return };
                // A match of the running phase serves new flows too, without a request.
                if self.links.is_waiting(flow.src) && self.candidate(flow.src, now) == Some(slot) {
                    self.links.wake(flow.src, now);
                }
            }
            Found::Active(slot) => self.flows[slot].heard = now,
            Found::Over => {
                if repeated {
                    let tx_slot = flow.tx_slot;
                    out.send(flow.src, flow.msg, DcpimHeader::Finished { tx_slot });
                }
                return;
            }
            Found::Abandoned => return,
        }
        if explicit || repeated {
            out.send(flow.src, flow.msg, DcpimHeader::Ack { tx_slot: flow.tx_slot });
        }
    }

    /// A packet of a short flow, which may come before its notification.
    pub(super) fn on_unscheduled(
        &mut self,
        now: Time,
        flow: Announcement,
        seq: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) -> Receipt {
        let slot = match self.find(flow) {
            Found::Active(slot) => slot,
            Found::Over => return Receipt::Duplicate,
            Found::Abandoned => return Receipt::Ignored,
            Found::New => match self.enter(now, flow, dcpim) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
        };
        self.on_packet(now, slot, seq, seq, dcpim, out)
    }

    /// A packet that a token asked for.
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
        if !self.holds(now, rx_slot, packet) {
            return Receipt::Duplicate;
        }
        self.on_packet(now, rx_slot, seq, number, dcpim, out)
    }

    /// Whether the slot that a packet names is its flow's: it is gone, or used anew, if that is
    /// over. Its sender lives.
    pub(super) fn holds(&mut self, now: Time, slot: u32, packet: &Packet<DcpimHeader>) -> bool {
        let is_of = |f: &&mut RxFlow| f.src == packet.src && f.msg == packet.payload.msg;
        let flow = self.flows.get_mut(slot).filter(is_of);
        flow.map(|flow| flow.heard = now).is_some()
    }

    pub(super) fn has_delivered(&mut self, flow: Announcement) -> bool {
        matches!(self.find(flow), Found::Over)
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
        let flow = &mut self.flows[slot];
        if seq >= flow.packets {
            return Receipt::Ignored;
        }
        flow.heard = now;
        flow.see(number);
        let receipt = if flow.got.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        let src = flow.src;
        if flow.remaining() == 0 {
            self.complete(slot, dcpim, out);
        } else if self.links.is_waiting(src)
            && self.flows[slot].is_clocked(dcpim)
            && self.candidate(src, now) == Some(slot)
        {
            self.links.wake(src, now);
        }
        receipt
    }

    fn complete(&mut self, slot: u32, dcpim: &Dcpim, out: &mut Output<DcpimHeader>) {
        let Some(flow) = self.forget(slot) else { return };
        self.numbers.complete(flow.src);
        out.say(Event::Delivered { src: flow.src, msg: flow.msg });
        if dcpim.config.handshake == Handshake::Implicit || flow.asked {
            out.send(flow.src, flow.msg, DcpimHeader::Finished { tx_slot: flow.tx_slot });
        }
    }

    /// Drops a flow's state; its number counts as over unless it is abandoned.
    fn forget(&mut self, slot: u32) -> Option<RxFlow> {
        let flow = self.flows.remove(slot)?;
        let first = &mut self.first[flow.src.idx()];
        if *first == slot {
            *first = flow.next;
        } else {
            let before = self.of_source(flow.src).find(|&s| self.flows[s].next == slot);
            if let Some(before) = before {
                self.flows[before].next = flow.next;
            }
        }
        if self.first[flow.src.idx()] == NONE {
            self.listed.retain(|&s| s != flow.src.get());
        }
        Some(flow)
    }

    /// The sender has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<DcpimHeader>) {
        let slots: Vec<u32> = self.of_source(peer).collect();
        for flow in slots.into_iter().filter_map(|slot| self.forget(slot)) {
            out.say(Event::Abandoned { src: flow.src, msg: flow.msg });
        }
        self.held.forget_peer(peer);
        self.numbers.reset(peer);
    }

    /// The sender has sent every packet and asks whether all are here (§3.2). If not, the answer
    /// follows when they are.
    pub(super) fn on_finish(
        &mut self,
        now: Time,
        flow: Announcement,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        match self.find(flow) {
            Found::Active(slot) => {
                let state = &mut self.flows[slot];
                state.heard = now;
                // The sender asks again: it need not, packets are missing and will get tokens.
                if std::mem::replace(&mut state.asked, true) {
                    out.send(flow.src, flow.msg, DcpimHeader::Ack { tx_slot: flow.tx_slot });
                }
            }
            Found::Over => {
                let tx_slot = flow.tx_slot;
                out.send(flow.src, flow.msg, DcpimHeader::Finished { tx_slot });
            }
            Found::Abandoned => {}
            // All that came before was lost.
            Found::New => {
                if let Some(slot) = self.enter(now, flow, dcpim) {
                    self.flows[slot].asked = true;
                    out.send(flow.src, flow.msg, DcpimHeader::Ack { tx_slot: flow.tx_slot });
                }
            }
        }
    }

    pub(super) fn on_grant(&mut self, offer: Offer, dcpim: &Dcpim) {
        self.grants.put(offer, self.next_accept, dcpim.config.round_view);
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
        round: (u32, u8),
        dcpim: &Dcpim,
        rng: &mut Rng,
        out: &mut Output<DcpimHeader>,
    ) {
        let mut offers = std::mem::take(&mut self.offers);
        self.grants.take(round, dcpim.config.round_view, &mut offers);
        // Channels asked for in an earlier phase are not those of this one.
        offers.retain(|o| o.fields.phase == round.0);
        self.next_accept = (round.0, round.1 + 1);
        if !offers.is_empty() {
            let k = dcpim.config.channels;
            let prompt = match dcpim.config.idle_capacity {
                IdleCapacity::Prompt => k.saturating_sub(self.busy),
                IdleCapacity::Unused => 0,
            };
            let capacity = Capacity { channels: k - self.accepted, prompt };
            choose(&mut offers, order(round.1, dcpim), capacity, rng);
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

    /// A phase begins: what has been matched becomes the data phase.
    pub(super) fn begin(
        &mut self,
        now: Time,
        phase: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        self.links.begin(now);
        self.phase = phase;
        self.busy = self.accepted;
        self.accepted = 0;
        self.next_accept = (phase, 0);
        for flow in self.flows.iter_mut() {
            flow.on_phase(now, dcpim);
        }
        if phase.is_multiple_of(FORGET_PHASES) {
            let is_long = |f: &RxFlow| now.saturating_since(f.heard) > dcpim.forget;
            let stale = |f: &RxFlow| is_long(f) && !self.held.contains(f.src, f.msg);
            let gone: Vec<u32> =
                self.flows.iter().filter(|(_, f)| stale(f)).map(|(slot, _)| slot).collect();
            for slot in gone {
                if let Some(flow) = self.forget(slot) {
                    self.numbers.abandon(flow.src, flow.flow);
                    out.say(Event::Abandoned { src: flow.src, msg: flow.msg });
                }
            }
        }
    }

    /// Request stage: asks each source for the channels that its flows can fill (§3.4).
    pub(super) fn request(
        &mut self,
        now: Time,
        round: (u32, u8),
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let k = dcpim.config.channels;
        let free = k - self.accepted;
        if free == 0 {
            return;
        }
        for &src in &self.listed {
            let src = NodeId::new(src);
            let Some(slot) = self.candidate(src, now) else { continue };
            let (remaining, announced) = self.flows[slot].key();
            let demand = match dcpim.config.demand {
                Demand::SmallestFlow => u64::from(remaining),
                Demand::Source => self.awake(src, now).map(|f| u64::from(f.remaining())).sum(),
            };
            let wanted = demand.div_ceil(u64::from(dcpim.channel_packets));
            let held = u64::from(self.links.held(src));
            if held >= wanted {
                continue;
            }
            let channels = (wanted - held).min(u64::from(free)) as u8;
            let prompt = match dcpim.config.idle_capacity {
                IdleCapacity::Prompt => channels.min(k.saturating_sub(self.busy)),
                IdleCapacity::Unused => 0,
            };
            let (phase, round) = round;
            let step = Step::Request;
            let fields = Match { step, channels, prompt, round, phase, remaining, announced };
            out.send(src, self.flows[slot].msg, DcpimHeader::Match(fields));
        }
    }

    /// Sends the tokens that are due (§3.2).
    pub(super) fn fire(
        &mut self,
        now: Time,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
        stats: &mut DcpimStats,
    ) {
        for idx in 0..self.links.len() {
            let Some(link) = self.links.due(idx, now) else { continue };
            let timer = self.fire_link(now, link.src, link.active, link.rank, dcpim, out, stats);
            self.links.set_timer(idx, timer);
        }
        self.links.refresh();
    }

    fn fire_link(
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
            return LinkTimer::Dead;
        }
        // Each channel has 1/k of the rate (§3.4).
        let pace = dcpim.mtu_time.scale_floor(dcpim.config.channels.into(), active.into());
        if self.withheld > 0 {
            self.withheld -= 1;
            stats.tokens_withheld += 1;
            return LinkTimer::Paced(now + pace);
        }
        let Some(slot) = self.candidate(src, now) else { return LinkTimer::Dead };
        let flow = &mut self.flows[slot];
        if let Window::FullUntil(at) = flow.window(now, active, dcpim) {
            return LinkTimer::Stalled(at);
        }
        let (seq, number) = flow.take_token(now, dcpim);
        let token = DcpimHeader::Token {
            tx_slot: flow.tx_slot,
            rx_slot: slot,
            seq,
            number,
            cumulative: flow.got.first_missing(),
            phase: self.phase,
            remaining: flow.remaining(),
            rank,
        };
        out.send(src, flow.msg, token);
        stats.tokens_sent += 1;
        LinkTimer::Paced(now + pace)
    }
}
