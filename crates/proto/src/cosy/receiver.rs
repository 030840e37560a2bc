//! Receiver (cosy §3.2, §3.3, §4, §5.1): held requests, slots and the rsvps sent for them, and
//! failures inferred from packets that do not arrive.

use rampmeter_types::{Bytes, Event, MsgId, NodeId, Packet, Receipt, Rng, Span, Time};

use super::config::Cosy;
use super::stats::CosyStats;
use super::wire::{CosyHeader, ReleaseReason, Route};
use crate::toolkit::{Announcement, ArrivingFlow, ArrivingFlows, FlowStatus, Output, Timers};

/// Messages to receive, and their slots.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Messages that are requested or arrive.
    pub(super) flows: ArrivingFlows<Progress>,
    /// Flows without a slot that may have one.
    pending: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u16>,
    timers: Timers<Timer>,
    rng: Rng,
}

/// A message's own part.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// Slots that it has.
    slots: u32,
    /// True if its sender is known to send it.
    is_admitted: bool,
    /// Time until which it is held.
    hold_until: Time,
    /// Earliest time of the next rsvp for it.
    pause_until: Time,
    /// True if it is among those that may have a slot.
    is_pending: bool,
}

type RxFlow = ArrivingFlow<Progress>;

/// State of one of the K slots.
#[derive(Clone, Copy, Debug)]
struct Slot {
    flow: u32,
    seq: u32,
    /// Packets that have arrived by it.
    received: u32,
    state: State,
    /// Latest time at which the next packet, or the end of the reservation, arrives.
    expected_by: Time,
    /// Time from which nothing can arrive any more.
    ends_at: Time,
    /// Time at which its earliest timer expires.
    timer: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// A rsvp is out.
    Requested,
    /// Data arrives.
    Receiving,
    /// The message has been aborted; data may still arrive.
    Draining,
}

/// Deadlines, by their subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The hold or the pause of a flow ends.
    Flow(u32),
    /// Something must have arrived by a slot.
    Slot(u16),
}

/// Returns true if `choices` draws are expected to hit all of `n`, so that drawing can be omitted.
fn covers_all(choices: u32, n: usize) -> bool {
    choices as usize >= 16 * n
}

/// Context of the receiver's functions.
pub(super) struct ReceiverContext<'a> {
    pub(super) cosy: &'a Cosy,
    pub(super) out: &'a mut Output<CosyHeader>,
    pub(super) stats: &'a mut CosyStats,
}

impl Receiver {
    pub(super) fn new(slots: u32, rng: Rng) -> Self {
        let idle = Slot {
            flow: 0,
            seq: 0,
            received: 0,
            state: State::Free,
            expected_by: Time::NEVER,
            ends_at: Time::ZERO,
            timer: Time::NEVER,
        };
        Self {
            flows: ArrivingFlows::default(),
            pending: Vec::new(),
            slots: vec![idle; slots as usize],
            free: (0..slots as u16).rev().collect(),
            timers: Timers::default(),
            rng,
        }
    }

    pub(super) fn on_request(
        &mut self,
        now: Time,
        announcement: Announcement,
        cx: &mut ReceiverContext<'_>,
    ) {
        match self.flows.find(&announcement) {
            FlowStatus::New => {}
            FlowStatus::Arriving(idx) => return self.on_repeated_request(now, idx, cx),
            FlowStatus::Delivered | FlowStatus::Abandoned => return,
        }
        if cx.cosy.hold == Span::ZERO && self.free.is_empty() {
            if self.flows.refuse(announcement) {
                cx.stats.requests_rejected += 1;
                cx.out.send(
                    announcement.src,
                    announcement.msg,
                    CosyHeader::Reject { tx_slot: announcement.tx_slot },
                );
            }
            return;
        }
        let hold_until = now.saturating_add(cx.cosy.hold);
        let (slots, is_admitted, is_pending) = (0, false, true);
        let state = Progress { slots, is_admitted, hold_until, pause_until: now, is_pending };
        let Some(idx) = self.flows.insert(now, announcement, state) else { return };
        self.pending.push(idx);
        self.timers.push(hold_until, Timer::Flow(idx));
        self.send_rsvps(now, cx);
    }

    /// Ends the pause of a message that is held, as its sender has a free slot.
    fn on_repeated_request(&mut self, now: Time, idx: u32, cx: &mut ReceiverContext<'_>) {
        let state = &mut self.flows[idx].state;
        if state.slots == 0 && !state.is_pending && now < state.hold_until {
            state.is_pending = true;
            self.pending.push(idx);
            self.send_rsvps(now, cx);
        }
    }

    /// Sends rsvps for free slots, first for messages that have none.
    fn send_rsvps(&mut self, now: Time, cx: &mut ReceiverContext<'_>) {
        while !self.free.is_empty() {
            if let Some(idx) = self.choose_pending(cx.cosy) {
                self.send_rsvp(now, idx, cx);
            } else if let Some(idx) = self.choose_wide(now, cx.cosy) {
                self.send_rsvp(now, idx, cx);
            } else {
                return;
            }
        }
    }

    /// Takes, of a few pending messages, the one whose hold ends first (§5.1).
    fn choose_pending(&mut self, cosy: &Cosy) -> Option<u32> {
        if self.pending.is_empty() {
            return None;
        }
        let n = self.pending.len();
        let hold = |place: &usize| self.flows[self.pending[*place]].state.hold_until;
        let best = if covers_all(cosy.config.choices, n) {
            (0..n).min_by_key(hold)?
        } else {
            (0..cosy.config.choices).map(|_| self.rng.uniform_below(n)).min_by_key(hold)?
        };
        let idx = self.pending.swap_remove(best);
        self.flows[idx].state.is_pending = false;
        Some(idx)
    }

    /// Chooses, of a few messages that have slots, the one with the fewest, if another slot pays
    /// off.
    fn choose_wide(&mut self, now: Time, cosy: &Cosy) -> Option<u32> {
        let worth = |flow: &RxFlow| {
            let state = &flow.state;
            // By the time that data arrives by one more slot, the others must not have sent it all.
            let time = cosy.frame * u64::from(flow.remaining()) / u64::from(state.slots);
            state.slots < cosy.slots_per_message_max
                && now >= state.pause_until
                && time > cosy.worth()
        };
        let is_taken = |slot: &&Slot| matches!(slot.state, State::Requested | State::Receiving);
        let taken = || self.slots.iter().filter(is_taken).map(|slot| slot.flow);
        let n = taken().count().max(1);
        let fewest = |flow: &u32| self.flows[*flow].state.slots;
        let is_worth = |flow: &u32| worth(&self.flows[*flow]);
        if covers_all(cosy.config.choices, n) {
            return taken().filter(is_worth).min_by_key(fewest);
        }
        let draws = (0..cosy.config.choices).map_while(|_| taken().nth(self.rng.uniform_below(n)));
        draws.filter(is_worth).min_by_key(fewest)
    }

    /// Sends a rsvp for a message by a free slot.
    fn send_rsvp(&mut self, now: Time, idx: u32, cx: &mut ReceiverContext<'_>) {
        let Some(number) = self.free.pop() else { return };
        let (cosy, flow) = (cx.cosy, &mut self.flows[idx]);
        flow.state.slots += 1;
        let lease = cosy.lease(flow.announcement.packets);
        let seq = self.rng.bits() as u32;
        let expected_by = now.saturating_add(cosy.answer());
        let ends_at = now.saturating_add(lease + cosy.facts.data_rtt);
        let slot = &mut self.slots[usize::from(number)];
        *slot = Slot {
            flow: idx,
            seq,
            received: 0,
            state: State::Requested,
            expected_by,
            ends_at,
            ..*slot
        };
        self.arm(number);
        let flow = &self.flows[idx];
        let header = CosyHeader::Rsvp {
            tx_slot: flow.announcement.tx_slot,
            seq,
            lease_us: u32::try_from(lease.as_ps().div_ceil(1_000_000)).unwrap_or(u32::MAX),
            rx_slot: number,
            link: number,
            last: !flow.state.is_admitted
                && now.saturating_add(cosy.facts.data_rtt) >= flow.state.hold_until,
            route: Route::default(),
        };
        cx.stats.requested += 1;
        cx.out.send(flow.announcement.src, flow.announcement.msg, header);
    }

    /// Handles a data packet. `seq`, `number`, `rx_slot` and `last` are those of the header.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<CosyHeader>,
        seq: u32,
        number: u32,
        rx_slot: u16,
        last: bool,
        cx: &mut ReceiverContext<'_>,
    ) -> Receipt {
        let Some(slot) = self.slots.get_mut(usize::from(rx_slot)) else { return Receipt::Ignored };
        if slot.seq != seq || slot.state == State::Free {
            return Receipt::Ignored;
        }
        if slot.state == State::Draining {
            if last {
                self.free_slot(now, rx_slot, cx);
            }
            return Receipt::Ignored;
        }
        let idx = slot.flow;
        let Some(flow) = self.flows.get_mut(idx).filter(|f| f.announcement.src == packet.src)
        else {
            return Receipt::Ignored;
        };
        if number < slot.received {
            return Receipt::Duplicate;
        }
        let payload = cx.cosy.config.packet.payload.get();
        let (place, beyond) = (packet.payload.offset / payload, packet.payload.offset % payload);
        let place =
            u32::try_from(place).ok().filter(|&p| p < flow.announcement.packets && beyond == 0);
        let is_next = number == slot.received && packet.payload.msg == flow.announcement.msg;
        if !is_next || !place.is_some_and(|place| flow.received.insert(place)) {
            self.fail(now, idx, cx);
            return Receipt::Ignored;
        }
        slot.state = State::Receiving;
        slot.received += 1;
        slot.expected_by = now.saturating_add(cx.cosy.next_packet());
        flow.last_packet_at = now;
        flow.state.is_admitted = true;
        let is_whole = flow.remaining() == 0;
        if is_whole {
            let Announcement { src, msg, tx_slot, .. } = flow.announcement;
            cx.out.push_event(Event::Delivered { src, msg });
            cx.out.send(src, msg, CosyHeader::Complete { tx_slot });
        }
        flow.state.slots -= u32::from(last);
        let is_stuck = flow.state.slots == 0;
        if is_whole {
            self.forget(idx);
        } else if is_stuck {
            self.fail(now, idx, cx);
        }
        if last {
            self.free_slot(now, rx_slot, cx);
        } else if !self.free.is_empty() {
            self.send_rsvps(now, cx);
        }
        Receipt::Fresh
    }

    /// Returns true if a slot receives a message by a reservation. If not, that message has
    /// completed or was aborted.
    pub(super) fn is_reserved(&self, rx_slot: u16, seq: u32) -> bool {
        let slot = self.slots.get(usize::from(rx_slot));
        slot.is_some_and(|s| s.seq == seq && matches!(s.state, State::Requested | State::Receiving))
    }

    /// Returns true if a part of a message is the next one by its reservation.
    pub(super) fn is_expected(
        &self,
        packet: &Packet<CosyHeader>,
        seq: u32,
        number: u32,
        rx_slot: u16,
        payload: Bytes,
    ) -> bool {
        let slot = self.slots.get(usize::from(rx_slot));
        let Some(slot) = slot.filter(|_| self.is_reserved(rx_slot, seq)) else { return false };
        let flow = self.flows.get(slot.flow).filter(|f| f.announcement.src == packet.src);
        let place = (packet.payload.offset / payload.get()) as u32;
        number == slot.received && flow.is_some_and(|flow| !flow.received.contains(place))
    }

    /// Ends a reservation: it was not made, not used, or is not needed any more.
    pub(super) fn on_release(
        &mut self,
        now: Time,
        src: NodeId,
        seq: u32,
        rx_slot: u16,
        reason: ReleaseReason,
        cx: &mut ReceiverContext<'_>,
    ) {
        let Some(&slot) = self.slots.get(usize::from(rx_slot)) else { return };
        if slot.seq != seq || slot.state == State::Free {
            return;
        }
        let is_drained = slot.state == State::Draining;
        if !is_drained && self.flows[slot.flow].announcement.src != src {
            return;
        }
        match reason {
            ReleaseReason::Blocked => cx.stats.blocked += 1,
            ReleaseReason::Busy => cx.stats.busy += 1,
            ReleaseReason::Done | ReleaseReason::Failed => {}
        }
        if is_drained {
            return self.free_slot(now, rx_slot, cx);
        }
        let (cosy, idx) = (cx.cosy, slot.flow);
        let flow = &mut self.flows[idx].state;
        flow.slots -= 1;
        flow.pause_until = now.saturating_add(cosy.pause);
        let has_none = flow.slots == 0;
        let is_held = flow.pause_until < flow.hold_until;
        match reason {
            ReleaseReason::Failed => self.abort(idx, cx),
            _ if !has_none => {}
            // Its sender has nothing more to send, and something has not arrived.
            _ if reason == ReleaseReason::Done || flow.is_admitted => self.fail(now, idx, cx),
            _ if is_held => self.timers.push(flow.pause_until, Timer::Flow(idx)),
            _ => self.reject(idx, cx),
        }
        self.free_slot(now, rx_slot, cx);
    }

    /// Notifies the sender that its message is not admitted.
    fn reject(&mut self, idx: u32, cx: &mut ReceiverContext<'_>) {
        let Announcement { src, msg, tx_slot, .. } = self.flows[idx].announcement;
        cx.stats.requests_rejected += 1;
        cx.out.send(src, msg, CosyHeader::Reject { tx_slot });
        self.forget(idx);
    }

    /// Fails a message of which a packet has not arrived in time: the sender is notified, and
    /// nothing more is expected (§4).
    fn fail(&mut self, now: Time, idx: u32, cx: &mut ReceiverContext<'_>) {
        let Announcement { src, msg, tx_slot, .. } = self.flows[idx].announcement;
        cx.stats.failures += 1;
        cx.out.send(src, msg, CosyHeader::Failure { tx_slot });
        self.abort(idx, cx);
        self.send_rsvps(now, cx);
    }

    /// Forgets a message of which packets may still arrive.
    fn abort(&mut self, idx: u32, cx: &mut ReceiverContext<'_>) {
        let flow = &self.flows[idx];
        let Announcement { src, msg, .. } = flow.announcement;
        if !flow.received.is_empty() {
            cx.out.push_event(Event::Abandoned { src, msg });
        }
        self.forget(idx);
    }

    /// Removes a message. Its slots stay in use until their reservations are released.
    fn forget(&mut self, idx: u32) {
        let Some(flow) = self.flows.end(idx) else { return };
        if flow.state.is_pending {
            self.pending.retain(|&pending| pending != idx);
        }
        for number in 0..self.slots.len() {
            let slot = &mut self.slots[number];
            if slot.flow == idx && matches!(slot.state, State::Requested | State::Receiving) {
                slot.state = State::Draining;
                slot.expected_by = slot.ends_at;
                self.arm(number as u16);
            }
        }
    }

    /// Ensures that a slot's timer expires when something must have arrived.
    fn arm(&mut self, number: u16) {
        let slot = &mut self.slots[usize::from(number)];
        if slot.expected_by < slot.timer {
            slot.timer = slot.expected_by;
            self.timers.push(slot.expected_by, Timer::Slot(number));
        }
    }

    fn free_slot(&mut self, now: Time, number: u16, cx: &mut ReceiverContext<'_>) {
        self.slots[usize::from(number)].state = State::Free;
        self.free.push(number);
        self.send_rsvps(now, cx);
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(&mut self, src: NodeId, msg: MsgId, cx: &mut ReceiverContext<'_>) {
        if let Some(idx) = self.flows.slot_of(src, msg) {
            self.abort(idx, cx);
        }
    }

    /// Removes the messages of a peer that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, cx: &mut ReceiverContext<'_>) {
        let of_peer = self.flows.iter().filter(|(_, flow)| flow.announcement.src == peer);
        let of_peer: Vec<u32> = of_peer.map(|(idx, _)| idx).collect();
        for idx in of_peer {
            self.abort(idx, cx);
        }
        // No flow remains: this resets the numbers of future ones.
        self.flows.forget_peer(peer, cx.out, |_, _| {});
    }

    /// Returns the time of the next action.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timers.next()
    }

    pub(super) fn handle_timeout(&mut self, now: Time, cx: &mut ReceiverContext<'_>) {
        while let Some((at, timer)) = self.timers.pop_due(now) {
            match timer {
                Timer::Flow(idx) => self.on_flow_timer(now, idx, cx),
                Timer::Slot(number) => self.on_slot_timer(now, at, number, cx),
            }
        }
        self.send_rsvps(now, cx);
    }

    fn on_flow_timer(&mut self, now: Time, idx: u32, cx: &mut ReceiverContext<'_>) {
        let Some(flow) = self.flows.get(idx).map(|flow| &flow.state) else { return };
        if flow.slots > 0 {
            return;
        }
        if !flow.is_admitted && now >= flow.hold_until {
            self.reject(idx, cx);
        } else if !flow.is_pending && now >= flow.pause_until {
            self.flows[idx].state.is_pending = true;
            self.pending.push(idx);
        }
    }

    fn on_slot_timer(&mut self, now: Time, at: Time, number: u16, cx: &mut ReceiverContext<'_>) {
        let slot = &mut self.slots[usize::from(number)];
        if slot.timer != at {
            return;
        }
        slot.timer = Time::NEVER;
        let slot = *slot;
        match slot.state {
            State::Free => {}
            _ if slot.expected_by > now => self.arm(number),
            State::Draining => self.free_slot(now, number, cx),
            State::Requested | State::Receiving => self.fail(now, slot.flow, cx),
        }
    }

    #[cfg(test)]
    pub(super) fn reseed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Returns the messages that are known, and slots in use.
    pub(super) fn state(&self) -> (usize, usize) {
        (self.flows.len(), self.slots.len() - self.free.len())
    }
}
