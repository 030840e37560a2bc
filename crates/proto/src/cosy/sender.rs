//! The sender's side (cosy §3.2, §3.3): requests, slots and their pace, and the end of every
//! message at its bound.
//!
//! Time is divided into ticks. Each is a full packet's time and the control packets' share of the
//! link. Slot i sends in the ticks that are i modulo K. So the slots of a host never meet at its
//! link. A message in one slot takes at most its packets times K ticks, the wait for the first
//! included.

use std::collections::BTreeSet;

use rampmeter_types::packet::Marks;
use rampmeter_types::{Event, Message, MsgId, NodeId, Packet, Permission, Priority, Stage, Time};

use super::config::Cosy;
use super::wire::{CosyHeader, ReleaseReason, Route};
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output};

/// The class of data, below that of control packets.
pub(super) const DATA: Priority = Priority::new(1);

/// Number of requests repeated at the last packet of a slot. The second is for the case that the
/// first one's receiver has no slot.
const REPEATED: usize = 2;

pub(crate) const RESERVATION: &Stage = &Stage {
    name: "reservation",
    meaning: "The message has no slot: its request, or a reservation for it, is in flight (§3.2).",
};

pub(crate) const SLOT: &Stage = &Stage { name: "slot", meaning: "Its slots are not due (§3.3)." };

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[RESERVATION, SLOT];

/// Messages to send, and the slots in which they are sent.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Messages whose outcome is not known. Their timers expire when it must be.
    messages: OutgoingFlows<Progress>,
    /// Messages that have had no slot yet, in the order of their deadlines for the first RSVP.
    waiting: BTreeSet<(Time, u32)>,
    slots: Vec<Option<TxSlot>>,
    /// Time of the next packet of each slot; `NEVER` while it is free.
    due: Vec<Time>,
    /// The first of these times, and its slot. No two slots send at once.
    next_due: Time,
    next_slot: usize,
    /// True if that time has passed.
    is_due: bool,
}

/// A message's own part.
#[derive(Clone, Debug)]
struct Progress {
    /// Packets sent.
    sent: u32,
    /// Slots that it has.
    slots: u32,
    /// True if it has ever had one.
    is_admitted: bool,
    /// Reservations that it has used.
    used_reservations: Vec<u32>,
    /// Deadline for the first RSVP.
    admit_until: Time,
}

/// A slot that is in use.
#[derive(Clone, Copy, Debug)]
struct TxSlot {
    message: u32,
    reservation: Reservation,
    /// Packets sent in it.
    sent: u32,
}

/// A reservation, as its rsvp names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) seq: u32,
    pub(super) rx_slot: u16,
    pub(super) link: u16,
    pub(super) route: Route,
}

impl Progress {
    /// Returns its outcome if it has not arrived.
    fn outcome_of_loss(&self) -> FlowOutcome {
        if self.is_admitted { FlowOutcome::Failed } else { FlowOutcome::Rejected }
    }
}

impl Sender {
    pub(super) fn new(node: NodeId, slots: u32) -> Self {
        Self {
            messages: OutgoingFlows::new(node),
            waiting: BTreeSet::new(),
            slots: vec![None; slots as usize],
            due: vec![Time::NEVER; slots as usize],
            next_due: Time::NEVER,
            next_slot: 0,
            is_due: false,
        }
    }

    pub(super) fn submit(
        &mut self,
        now: Time,
        message: Message,
        cosy: &Cosy,
        out: &mut Output<CosyHeader>,
    ) {
        let Message { id: msg, dst, size, .. } = message;
        if size > cosy.config.message_max {
            out.push_event(Event::Rejected { msg });
            return;
        }
        let admit_until = now.saturating_add(cosy.admission());
        let state = Progress {
            sent: 0,
            slots: 0,
            is_admitted: false,
            used_reservations: Vec::new(),
            admit_until,
        };
        let tx_slot = self.messages.submit(&message, cosy.segmentation().packets(size), state);
        self.messages.start_timer(tx_slot, now.saturating_add(cosy.bound(size)));
        self.waiting.insert((admit_until, tx_slot));
        let flow = self.messages[tx_slot].flow;
        out.send(dst, msg, CosyHeader::Request { flow, tx_slot, size: size.get() });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        let message = self.messages.slot(msg)?;
        let is_own = |&slot: &usize| self.slots[slot].is_some_and(|of| of.message == message);
        let dues = (0..self.slots.len()).filter(is_own).map(|slot| self.due[slot]);
        Some(match dues.min() {
            None => Permission::Awaited(RESERVATION),
            Some(due) if due <= now => Permission::Granted,
            Some(_) => Permission::Awaited(SLOT),
        })
    }

    /// Accepts a rsvp or answers it with a reject. `last` is true if the receiver does not retry.
    pub(super) fn on_rsvp(
        &mut self,
        now: Time,
        packet: &Packet<CosyHeader>,
        tx_slot: u32,
        reservation: Reservation,
        last: bool,
        cosy: &Cosy,
        out: &mut Output<CosyHeader>,
    ) {
        let msg = packet.payload.msg;
        let slot = self.free_slot(now, cosy);
        let message = self.messages.get_current(tx_slot, msg);
        let Some(message) = message.filter(|m| m.dst == packet.src) else {
            release(out, packet.src, msg, reservation, ReleaseReason::Busy);
            return;
        };
        let state = &mut message.state;
        if state.used_reservations.contains(&reservation.seq) {
            // The network has doubled it: a release would end the reservation that is in use.
            return;
        }
        let is_late = !state.is_admitted && now > state.admit_until;
        match slot {
            Some((slot, due)) if state.sent < message.packets && !is_late => {
                state.slots += 1;
                if !state.is_admitted {
                    state.is_admitted = true;
                    self.waiting.remove(&(state.admit_until, tx_slot));
                }
                state.used_reservations.push(reservation.seq);
                self.slots[slot] = Some(TxSlot { message: tx_slot, reservation, sent: 0 });
                self.due[slot] = due;
                if due < self.next_due {
                    (self.next_due, self.next_slot) = (due, slot);
                }
                self.is_due = self.next_due <= now;
            }
            _ => {
                release(out, packet.src, msg, reservation, ReleaseReason::Busy);
                if last && !state.is_admitted {
                    self.end(tx_slot, FlowOutcome::Rejected, out);
                }
            }
        }
    }

    /// Returns the free slot whose turn is next, and when that is.
    fn free_slot(&self, now: Time, cosy: &Cosy) -> Option<(usize, Time)> {
        let (tick, k) = (cosy.tick.as_ps(), self.slots.len() as u64);
        let next = now.as_ps().div_ceil(tick);
        (next..next + k).find_map(|n| {
            let slot = (n % k) as usize;
            (self.due[slot] == Time::NEVER).then(|| (slot, Time::from_ps(n * tick)))
        })
    }

    /// Returns the message that a packet from its receiver is about.
    fn outgoing_flow(
        &self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
    ) -> Option<&OutgoingFlow<Progress>> {
        let is_it =
            |m: &&OutgoingFlow<Progress>| m.msg == packet.payload.msg && m.dst == packet.src;
        self.messages.get(tx_slot).filter(is_it)
    }

    /// Handles the rejection of a message.
    pub(super) fn on_reject(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if self.outgoing_flow(tx_slot, packet).is_some_and(|m| !m.state.is_admitted) {
            self.end(tx_slot, FlowOutcome::Rejected, out);
        }
    }

    /// Handles the completion of a message.
    pub(super) fn on_complete(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if self.outgoing_flow(tx_slot, packet).is_some_and(|m| m.state.sent == m.packets) {
            self.end(tx_slot, FlowOutcome::Complete, out);
        }
    }

    /// Handles a receiver that misses packets, or has no record of the message.
    pub(super) fn on_failure(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if let Some(outcome) =
            self.outgoing_flow(tx_slot, packet).map(|m| m.state.outcome_of_loss())
        {
            self.end(tx_slot, outcome, out);
        }
    }

    /// Removes the messages to a peer that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<CosyHeader>) {
        let to_peer = self.messages.iter().filter(|(_, m)| m.dst == peer);
        let to_peer: Vec<u32> = to_peer.map(|(slot, _)| slot).collect();
        for tx_slot in to_peer {
            self.end(tx_slot, FlowOutcome::Failed, out);
        }
        // No message remains: this resets the numbers of future ones.
        self.messages.forget_peer(peer, out, |_, _| {});
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<CosyHeader>) {
        let Some(tx_slot) = self.messages.slot(msg) else { return };
        out.cancel(msg, |header| matches!(header, CosyHeader::Request { .. }));
        self.forget(tx_slot, out);
    }

    /// Reports the outcome of a message and forgets it.
    fn end(&mut self, tx_slot: u32, outcome: FlowOutcome, out: &mut Output<CosyHeader>) {
        let Some(msg) = self.forget(tx_slot, out) else { return };
        out.push_event(match outcome {
            FlowOutcome::Complete => Event::Completed { msg },
            FlowOutcome::Rejected => Event::Rejected { msg },
            FlowOutcome::Failed => Event::Failed { msg },
        });
    }

    /// Removes a message and releases its reservations.
    fn forget(&mut self, tx_slot: u32, out: &mut Output<CosyHeader>) -> Option<MsgId> {
        let OutgoingFlow { msg, dst, state, .. } = self.messages.remove(tx_slot)?;
        if !state.is_admitted {
            self.waiting.remove(&(state.admit_until, tx_slot));
        }
        if state.slots > 0 {
            for (slot, due) in self.slots.iter_mut().zip(&mut self.due) {
                if let Some(taken) = slot.take_if(|slot| slot.message == tx_slot) {
                    *due = Time::NEVER;
                    release(out, dst, msg, taken.reservation, ReleaseReason::Failed);
                }
            }
            let due = self.next_due;
            self.update_next_due();
            // The slot that was due may have been this message's.
            self.is_due &= self.next_due == due;
        }
        Some(msg)
    }

    /// Returns the time of the next action.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        let end = self.messages.deadline();
        if self.is_due { end } else { end.min(self.next_due) }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, out: &mut Output<CosyHeader>) {
        while let Some(tx_slot) = self.messages.next_due(now) {
            let outcome = self.messages[tx_slot].state.outcome_of_loss();
            self.end(tx_slot, outcome, out);
        }
        self.is_due = self.next_due <= now;
    }

    /// Returns true if the next packet of a slot is due.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.is_due
    }

    /// Returns the packet of the slot whose turn it is.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        cosy: &Cosy,
        out: &mut Output<CosyHeader>,
    ) -> Option<Packet<CosyHeader>> {
        while self.next_due <= now {
            let (due, place) = (self.next_due, self.next_slot);
            let slot = self.slots[place].as_mut()?;
            let TxSlot { message, reservation, sent: number } = *slot;
            let outgoing = self.messages.message(message);
            let message = &mut self.messages[message];
            let (packets, state) = (message.packets, &mut message.state);
            let seq = state.sent;
            // Each other slot has a turn before this one's next.
            let last = packets.saturating_sub(seq + 1) < state.slots;
            if last {
                state.slots -= 1;
                (self.slots[place], self.due[place]) = (None, Time::NEVER);
            } else {
                (slot.sent, self.due[place]) = (number + 1, due + cosy.frame);
            }
            state.sent = packets.min(seq + 1);
            self.update_next_due();
            self.is_due = self.next_due <= now;
            if last {
                self.repeat_requests(now, out);
            }
            if seq == packets {
                release(out, outgoing.dst, outgoing.msg, reservation, ReleaseReason::Done);
                continue;
            }
            let Reservation { seq: reserved, rx_slot, link, route } = reservation;
            let header = CosyHeader::Data { seq: reserved, number, rx_slot, link, last, route };
            let mut packet = cosy.segmentation().data(outgoing, seq, DATA, header);
            keep_order(&mut packet, &reservation);
            return Some(packet);
        }
        None
    }

    /// Repeats the requests of the messages that have waited longest: a slot is free for them.
    /// Their receivers, which cannot see this, would request them later.
    fn repeat_requests(&self, now: Time, out: &mut Output<CosyHeader>) {
        let in_time = self.waiting.range((now, u32::MAX)..);
        for &(_, tx_slot) in in_time.take(REPEATED) {
            let OutgoingFlow { dst, msg, flow, size, .. } = self.messages[tx_slot];
            out.send(dst, msg, CosyHeader::Request { flow, tx_slot, size });
        }
    }

    fn update_next_due(&mut self) {
        (self.next_due, self.next_slot) = (Time::NEVER, 0);
        for (slot, &due) in self.due.iter().enumerate() {
            if due < self.next_due {
                (self.next_due, self.next_slot) = (due, slot);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn sending_slots(&self) -> Vec<(u32, u16, Route)> {
        let reservations = self.slots.iter().flatten().map(|slot| slot.reservation);
        reservations.map(|r| (r.seq, r.link, r.route)).collect()
    }

    /// Returns the messages whose outcome is not known, and slots in use.
    pub(super) fn state(&self) -> (usize, usize) {
        (self.messages.len(), self.slots.iter().flatten().count())
    }
}

/// Outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowOutcome {
    Complete,
    Rejected,
    Failed,
}

/// Gives a reservation back, behind the data that it carried.
fn release(
    out: &mut Output<CosyHeader>,
    dst: NodeId,
    msg: MsgId,
    reservation: Reservation,
    reason: ReleaseReason,
) {
    let Reservation { seq, rx_slot, link, route } = reservation;
    let header = CosyHeader::Release { seq, rx_slot, link, reason, route };
    keep_order(out.send_class(dst, msg, header, DATA), &reservation);
}

/// Keeps the packets of a reservation on one path if ordinary switches have chosen none: a receiver
/// counts an overtaken packet as lost.
fn keep_order(packet: &mut Packet<CosyHeader>, reservation: &Reservation) {
    if reservation.route.ports().is_empty() {
        packet.path = reservation.seq as u16;
        packet.marks = packet.marks.union(Marks::ROUTED);
    }
}
