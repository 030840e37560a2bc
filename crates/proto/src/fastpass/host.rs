//! The endpoint of a host: its flows, and when they may send.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_core::{
    Bytes, ClockOrigin, Endpoint, Message, MsgId, NodeId, Packet, Receipt, Rng, Time,
};

use super::config::{Fastpass, Model};
use super::epoch::Epochs;
use super::flows::{Flows, Outcome, Over};
use super::stats::FastpassStats;
use super::timetable::Timetable;
use super::wire::FastpassHeader;
use crate::parts::{AckingReceiver, Announcement, Output, sides};

/// Fastpass at one host.
#[derive(Debug)]
pub struct FastpassHost {
    fastpass: Arc<Fastpass>,
    flows: Flows,
    turns: Turns,
    /// Data packets that are due, at most [`DUE_MAX`].
    due: VecDeque<Packet<FastpassHeader>>,
    receiver: AckingReceiver,
    out: Output<FastpassHeader>,
    /// Packets of all flows that wait for a turn.
    unsent: u32,
    stats: FastpassStats,
}

/// Packets made ahead of their sending. If the link is slower than the schedule, turns wait in the
/// schedule. Their flows may end meanwhile, and no timeout counts their packets as lost.
const DUE_MAX: usize = 64;

/// Schedule that decides when packets may be sent.
#[derive(Debug)]
enum Turns {
    Slots(Timetable),
    Epochs(Epochs),
}

impl FastpassHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> FastpassStats {
        self.stats
    }

    /// More packets of the flow in `slot` wait.
    fn want(&mut self, now: Time, slot: u32, dst: NodeId, packets: u32) {
        self.unsent += packets;
        match &mut self.turns {
            Turns::Slots(timetable) => {
                timetable.want(now, dst.get() as u16, packets);
                timetable.ask(now, &self.fastpass, &mut self.out);
            }
            Turns::Epochs(epochs) => {
                epochs.announce(now, slot, &self.flows, &self.fastpass, &mut self.out);
            }
        }
    }

    fn on_outcome(&mut self, now: Time, slot: u32, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Lost(dst, packets) => self.want(now, slot, dst, packets),
            Outcome::Over(over) => self.unwant(over),
        }
    }

    /// Removes the packets of a flow that has ended from those that wait.
    fn unwant(&mut self, Over { dst, unsent }: Over) {
        self.unsent -= unsent;
        if let Turns::Slots(timetable) = &mut self.turns {
            timetable.unwant(dst.get() as u16, unsent);
        }
    }

    fn has_room(&self) -> bool {
        self.due.len() < DUE_MAX
    }

    /// Makes the packets that are due, as far as there is room for them.
    fn take_turns(&mut self, now: Time) {
        match &mut self.turns {
            Turns::Slots(timetable) => {
                while self.due.len() < DUE_MAX {
                    let Some((dst, path)) = timetable.take_slot(now, &self.fastpass) else { break };
                    let Some(slot) = self.flows.next_to(NodeId::new(dst.into())) else {
                        self.stats.slots_unused += 1;
                        continue;
                    };
                    let packet = self.flows.send(now, slot, path, &self.fastpass);
                    self.unsent -= packet.is_some() as u32;
                    self.due.extend(packet);
                }
                timetable.ask(now, &self.fastpass, &mut self.out);
            }
            Turns::Epochs(epochs) => {
                while self.due.len() < DUE_MAX {
                    let Some(slot) = epochs.take(now) else { break };
                    let packet = self.flows.send(now, slot, None, &self.fastpass);
                    self.unsent -= packet.is_some() as u32;
                    self.stats.slots_unused += u64::from(packet.is_none());
                    self.due.extend(packet);
                }
            }
        }
    }
}

impl Endpoint for FastpassHost {
    type Header = FastpassHeader;
    type Config = Fastpass;

    sides! {
        counters, arriving, data, poll_event,
    }

    fn new(config: Arc<Fastpass>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            flows: Flows::new(node),
            turns: match config.config.model {
                Model::Slots => Turns::Slots(Timetable::new()),
                Model::Epochs => Turns::Epochs(Epochs::default()),
            },
            due: VecDeque::new(),
            receiver: AckingReceiver::default(),
            out: Output::new(node, config.config.header.get() as u16),
            unsent: 0,
            stats: FastpassStats::default(),
            fastpass: config,
        }
    }

    fn set_clock_origin(&mut self, _now: Time, origin: ClockOrigin) {
        if let Turns::Slots(timetable) = &mut self.turns {
            timetable.set_clock_origin(origin);
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let slot = self.flows.submit(&message, &self.fastpass);
        let packets = self.fastpass.segmentation().packets(message.size);
        self.want(now, slot, message.dst, packets);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        let over = self.flows.cancel(msg);
        self.due.retain(|packet| packet.payload.msg != msg);
        self.out.cancel(msg, |header| matches!(header, FastpassHeader::Announce { .. }));
        if let Some(over) = over {
            self.unwant(over);
        }
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpassHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        match packet.header {
            FastpassHeader::Data { flow, tx_slot, seq, size } => {
                let packets = self.fastpass.segmentation().packets(Bytes::new(size));
                let of = Announcement { src, msg, flow, tx_slot, packets };
                let (forget, out) = (self.fastpass.forget, &mut self.out);
                return self.receiver.on_packet(now, of, Some(seq), forget, out, |arrived| {
                    FastpassHeader::Ack { tx_slot, cumulative: arrived.cumulative, seq }
                });
            }
            FastpassHeader::Ack { tx_slot, cumulative, seq } => {
                let outcome = self.flows.on_ack(msg, tx_slot, cumulative, seq, &mut self.out);
                self.on_outcome(now, tx_slot, outcome);
            }
            FastpassHeader::Hold { held } => {
                if let Some((slot, fewer, more)) =
                    self.flows.on_hold(now, src, msg, held, &self.fastpass)
                {
                    self.unwant(fewer);
                    self.on_outcome(now, slot, more);
                }
            }
            FastpassHeader::Schedule { .. } => {
                if let Turns::Epochs(epochs) = &mut self.turns {
                    epochs.on_schedule(now, &packet.header, &self.fastpass);
                    self.take_turns(now);
                }
            }
            FastpassHeader::Allocation { .. } => {
                if let Turns::Slots(timetable) = &mut self.turns {
                    let (fastpass, stats) = (&self.fastpass, &mut self.stats);
                    timetable.on_allocation(now, src, &packet.header, fastpass, stats);
                    self.take_turns(now);
                }
            }
            FastpassHeader::Passive => {
                if let Turns::Slots(timetable) = &mut self.turns {
                    timetable.on_passive(now, src, &self.fastpass);
                    timetable.ask(now, &self.fastpass, &mut self.out);
                }
            }
            FastpassHeader::Forgotten { incarnation } => {
                if let Turns::Slots(timetable) = &mut self.turns {
                    timetable.on_forgotten(now, src, incarnation, &self.fastpass);
                    timetable.ask(now, &self.fastpass, &mut self.out);
                }
            }
            FastpassHeader::Request { .. }
            | FastpassHeader::Watchdog
            | FastpassHeader::Announce { .. } => {}
        }
        Receipt::Control
    }

    fn messages(&self) -> Option<(usize, usize)> {
        Some((self.flows.len(), self.receiver.flows.len()))
    }

    fn hold(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.hold(src, msg);
        self.out.send(src, msg, FastpassHeader::Hold { held: true });
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.release(now, src, msg, self.fastpass.held_pause);
        self.out.send(src, msg, FastpassHeader::Hold { held: false });
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.abandon_message(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.due.retain(|packet| packet.dst != peer);
        let unsent = self.flows.forget_peer(peer, &mut self.out);
        self.unwant(Over { dst: peer, unsent });
        self.receiver.forget_peer(peer, &mut self.out);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.take_turns(now);
        loop {
            let (fastpass, out) = (&self.fastpass, &mut self.out);
            let Some((slot, outcome)) = self.flows.handle_timeout(now, fastpass, out) else {
                break;
            };
            self.stats.timeouts += u64::from(matches!(outcome, Outcome::Lost(..)));
            self.on_outcome(now, slot, outcome);
        }
        let (fastpass, out) = (&*self.fastpass, &mut self.out);
        let is_hopeful = match &mut self.turns {
            Turns::Slots(timetable) => {
                timetable.handle_timeout(now, fastpass, out, &mut self.stats)
            }
            Turns::Epochs(epochs) => {
                epochs.handle_timeout(now, &self.flows, fastpass, out, &mut self.stats)
            }
        };
        if !is_hopeful {
            for over in self.flows.fail_unsent(&mut self.out) {
                self.unwant(over);
            }
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<FastpassHeader>> {
        // A request behind a run of slots would wait for all of them.
        self.out.next_control().or_else(|| self.due.pop_front())
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.due.is_empty() || self.out.has_control()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        let turn = match &self.turns {
            Turns::Slots(timetable) => timetable.deadline(self.has_room(), &self.fastpass),
            Turns::Epochs(epochs) => {
                epochs.deadline(self.has_room(), self.unsent > 0, &self.fastpass)
            }
        };
        turn.min(self.flows.deadline())
    }
}
