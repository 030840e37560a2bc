//! The sender's side (cosy §3.2, §3.3): requests, slots and their pace, and the end of every
//! message at its bound.
//!
//! Time is divided into ticks, a full packet's time and the control packets' share of the link
//! each; slot i sends in the ticks that are i modulo K. So the slots of a host never meet at its
//! link, and a message in one slot takes at most its packets times K ticks, the wait for the first
//! included.

use rampmeter_core::collections::Slab;
use rampmeter_core::{Event, Message, MsgId, NodeId, Packet, Priority, Time};

use super::config::Cosy;
use super::wire::{CosyHeader, Route, Why};
use crate::shared::{NextNumber, Outgoing, Output, Timers};

/// The class of data, below that of control packets.
pub(super) const DATA: Priority = Priority::new(1);

/// Messages to send, and the slots in which they are sent.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    node: NodeId,
    numbers: NextNumber,
    messages: Slab<TxMessage>,
    slots: Vec<Option<TxSlot>>,
    /// When the fate of messages must be known.
    ends: Timers<u32>,
    /// When the next slot sends; `NEVER` while all are free.
    next_due: Time,
    /// Whether that time has come.
    is_due: bool,
}

/// A message whose fate is not known.
#[derive(Clone, Debug)]
struct TxMessage {
    msg: MsgId,
    dst: NodeId,
    size: u64,
    packets: u32,
    /// Packets sent.
    sent: u32,
    /// Slots that it has.
    slots: u32,
    /// Whether it has ever had one.
    admitted: bool,
    /// Reservations that it has used.
    used: Vec<u32>,
    /// How long its first rsvp is of use.
    admit_until: Time,
    /// When its fate must be known.
    end: Time,
}

/// A reservation as its sender uses it.
#[derive(Clone, Copy, Debug)]
struct TxSlot {
    message: u32,
    seq: u32,
    rx_slot: u16,
    link: u16,
    route: Route,
    /// Packets sent in it.
    sent: u32,
    due: Time,
}

/// A rsvp that has arrived.
pub(super) struct Reservation {
    pub(super) seq: u32,
    pub(super) rx_slot: u16,
    pub(super) link: u16,
    pub(super) last: bool,
    pub(super) route: Route,
}

impl Sender {
    pub(super) fn new(node: NodeId, slots: u32) -> Self {
        Self {
            node,
            numbers: NextNumber::default(),
            messages: Slab::default(),
            slots: vec![None; slots as usize],
            ends: Timers::default(),
            next_due: Time::NEVER,
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
            out.say(Event::Rejected { msg });
            return;
        }
        let flow = self.numbers.take(dst);
        let end = now.saturating_add(cosy.bound(size));
        let tx_slot = self.messages.insert(TxMessage {
            msg,
            dst,
            size: size.get(),
            packets: cosy.framing().packets(size),
            sent: 0,
            slots: 0,
            admitted: false,
            used: Vec::new(),
            admit_until: now.saturating_add(cosy.admission()),
            end,
        });
        self.ends.push(end, tx_slot);
        out.send(dst, msg, CosyHeader::Request { flow, tx_slot, size: size.get() });
    }

    /// A rsvp is accepted or answered with a reject.
    pub(super) fn on_rsvp(
        &mut self,
        now: Time,
        packet: &Packet<CosyHeader>,
        tx_slot: u32,
        reservation: Reservation,
        cosy: &Cosy,
        out: &mut Output<CosyHeader>,
    ) {
        let Reservation { seq, rx_slot, link, last, route } = reservation;
        let msg = packet.payload.msg;
        let slot = self.free_slot(now, cosy);
        let message = self.messages.get_mut(tx_slot);
        let Some(message) = message.filter(|m| m.msg == msg && m.dst == packet.src) else {
            release(out, packet.src, msg, (seq, rx_slot, link, route), Why::Busy);
            return;
        };
        if message.used.contains(&seq) {
            // The network has doubled it: a release would end the reservation that is in use.
            return;
        }
        let is_late = !message.admitted && now > message.admit_until;
        match slot {
            Some((slot, due)) if message.sent < message.packets && !is_late => {
                message.slots += 1;
                message.admitted = true;
                message.used.push(seq);
                let reserved = TxSlot { message: tx_slot, seq, rx_slot, link, route, sent: 0, due };
                self.slots[slot] = Some(reserved);
                self.next_due = self.next_due.min(due);
                self.is_due = self.next_due <= now;
            }
            _ => {
                release(out, packet.src, msg, (seq, rx_slot, link, route), Why::Busy);
                if last && !message.admitted {
                    self.end(tx_slot, Fate::Rejected, out);
                }
            }
        }
    }

    /// The free slot whose turn is next, and when that is.
    fn free_slot(&self, now: Time, cosy: &Cosy) -> Option<(usize, Time)> {
        let (tick, k) = (cosy.tick.as_ps(), self.slots.len() as u64);
        let next = now.as_ps().div_ceil(tick);
        (next..next + k).find_map(|n| {
            let slot = (n % k) as usize;
            self.slots[slot].is_none().then(|| (slot, Time::from_ps(n * tick)))
        })
    }

    /// The message that a packet from its receiver is about.
    fn of(&self, tx_slot: u32, packet: &Packet<CosyHeader>) -> Option<&TxMessage> {
        let is_it = |m: &&TxMessage| m.msg == packet.payload.msg && m.dst == packet.src;
        self.messages.get(tx_slot).filter(is_it)
    }

    /// The message is not admitted.
    pub(super) fn on_reject(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if self.of(tx_slot, packet).is_some_and(|m| !m.admitted) {
            self.end(tx_slot, Fate::Rejected, out);
        }
    }

    /// The receiver has everything.
    pub(super) fn on_complete(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if self.of(tx_slot, packet).is_some_and(|m| m.sent == m.packets) {
            self.end(tx_slot, Fate::Complete, out);
        }
    }

    /// The receiver misses something, or knows nothing of the message.
    pub(super) fn on_failure(
        &mut self,
        tx_slot: u32,
        packet: &Packet<CosyHeader>,
        out: &mut Output<CosyHeader>,
    ) {
        if let Some(message) = self.of(tx_slot, packet) {
            let fate = if message.admitted { Fate::Failed } else { Fate::Rejected };
            self.end(tx_slot, fate, out);
        }
    }

    /// A peer has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<CosyHeader>) {
        let of_peer = self.messages.iter().filter(|(_, m)| m.dst == peer);
        let of_peer: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        for tx_slot in of_peer {
            self.end(tx_slot, Fate::Failed, out);
        }
        self.numbers.reset(peer);
    }

    /// The message is not to be sent after all.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<CosyHeader>) {
        let found = self.messages.iter().find(|(_, m)| m.msg == msg);
        let Some(tx_slot) = found.map(|(slot, _)| slot) else { return };
        out.cancel(msg, |header| matches!(header, CosyHeader::Request { .. }));
        self.forget(tx_slot, out);
    }

    /// Says what became of a message and forgets it.
    fn end(&mut self, tx_slot: u32, fate: Fate, out: &mut Output<CosyHeader>) {
        let Some(msg) = self.forget(tx_slot, out) else { return };
        out.say(match fate {
            Fate::Complete => Event::Completed { msg },
            Fate::Rejected => Event::Rejected { msg },
            Fate::Failed => Event::Failed { msg },
        });
    }

    /// Forgets a message; what it reserves is given back.
    fn forget(&mut self, tx_slot: u32, out: &mut Output<CosyHeader>) -> Option<MsgId> {
        let TxMessage { msg, dst, slots, .. } = self.messages.remove(tx_slot)?;
        if slots > 0 {
            for slot in &mut self.slots {
                if let Some(TxSlot { message, seq, rx_slot, link, route, .. }) = *slot
                    && message == tx_slot
                {
                    release(out, dst, msg, (seq, rx_slot, link, route), Why::Failed);
                    *slot = None;
                }
            }
            let due = self.next_due;
            self.find_next();
            // The slot whose turn had come may have been this message's.
            self.is_due &= self.next_due == due;
        }
        Some(msg)
    }

    /// When something is to be done.
    pub(super) fn deadline(&self) -> Time {
        if self.is_due { self.ends.next() } else { self.ends.next().min(self.next_due) }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, out: &mut Output<CosyHeader>) {
        while let Some((at, tx_slot)) = self.ends.pop_due(now) {
            if let Some(message) = self.messages.get(tx_slot).filter(|m| m.end == at) {
                let fate = if message.admitted { Fate::Failed } else { Fate::Rejected };
                self.end(tx_slot, fate, out);
            }
        }
        self.is_due = self.next_due <= now;
    }

    /// Whether a slot's turn has come.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// The packet of the slot whose turn it is.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        cosy: &Cosy,
        out: &mut Output<CosyHeader>,
    ) -> Option<Packet<CosyHeader>> {
        while self.next_due <= now {
            let due = self.next_due;
            let slot = self.slots.iter_mut().flatten().find(|slot| slot.due == due)?;
            slot.due = due + cosy.frame;
            let number = slot.sent;
            slot.sent += 1;
            let TxSlot { message, seq, rx_slot, link, route, .. } = *slot;
            let TxMessage { msg, dst, size, packets, ref mut sent, ref mut slots, .. } =
                self.messages[message];
            let place = *sent;
            // The other slots have a turn each before this one's next.
            let last = packets.saturating_sub(place + 1) < *slots;
            if place == packets || last {
                *slots -= 1;
            }
            if place < packets {
                *sent += 1;
            }
            if place == packets || last {
                self.clear(due + cosy.frame);
            }
            self.find_next();
            self.is_due = self.next_due <= now;
            if place == packets {
                release(out, dst, msg, (seq, rx_slot, link, route), Why::Done);
                continue;
            }
            let message = Outgoing { src: self.node, dst, msg, size };
            let header = CosyHeader::Data { seq, number, rx_slot, link, last, route };
            return Some(cosy.framing().data(message, place, DATA, header));
        }
        None
    }

    /// Frees the slot that is due then.
    fn clear(&mut self, due: Time) {
        let is_it = |slot: &&mut Option<TxSlot>| slot.is_some_and(|s| s.due == due);
        if let Some(slot) = self.slots.iter_mut().find(is_it) {
            *slot = None;
        }
    }

    fn find_next(&mut self) {
        let due = self.slots.iter().flatten().map(|slot| slot.due);
        self.next_due = due.min().unwrap_or(Time::NEVER);
    }

    #[cfg(test)]
    pub(super) fn sending(&self) -> Vec<(u32, u16, Route)> {
        self.slots.iter().flatten().map(|slot| (slot.seq, slot.link, slot.route)).collect()
    }

    /// Messages whose fate is not known, and slots in use.
    pub(super) fn state(&self) -> (usize, usize) {
        (self.messages.len(), self.slots.iter().flatten().count())
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Complete,
    Rejected,
    Failed,
}

/// Gives a reservation back, behind the data that it carried.
fn release(
    out: &mut Output<CosyHeader>,
    dst: NodeId,
    msg: MsgId,
    (seq, rx_slot, link, route): (u32, u16, u16, Route),
    why: Why,
) {
    out.send_class(dst, msg, CosyHeader::Release { seq, rx_slot, link, why, route }, DATA);
}
