//! The endpoint of a host: its flows, and when they may send.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::{
    Bytes, ClockOrigin, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission,
    Protocol, Receipt, Rng, Stage, Time,
};

use super::config::{AllocationUnit, Fastpass};
use super::epoch::Epochs;
use super::flows::{EndedFlow, FlowChange, Flows};
use super::stats::FastpassStats;
use super::timetable::Timetable;
use super::wire::FastpassHeader;
use crate::toolkit::{AckReceiver, Announcement, Output, sides};

/// Fastpass at one host.
#[derive(Debug)]
pub struct FastpassHost {
    fastpass: Arc<Fastpass>,
    flows: Flows,
    schedule: TransmitSchedule,
    /// Data packets that are due, at most [`DUE_MAX`].
    due: VecDeque<Packet<FastpassHeader>>,
    receiver: AckReceiver,
    out: Output<FastpassHeader>,
    /// Packets of all flows that wait for a turn.
    unsent: u32,
    stats: FastpassStats,
}

/// Packets made ahead of their sending. If the link is slower than the schedule, turns wait in the
/// schedule. Their flows may end meanwhile, and no timeout counts their packets as lost.
const DUE_MAX: usize = 64;

pub(crate) const SLOT: &Stage = &Stage {
    name: "slot",
    meaning: "The arbiter has given no slot to a packet of the flow, or the slot is not due.",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[SLOT];

/// Schedule that decides when packets may be sent.
#[derive(Debug)]
enum TransmitSchedule {
    Slots(Timetable),
    Epochs(Epochs),
}

impl FastpassHost {
    /// Returns the counters so far.
    pub fn stats(&self) -> FastpassStats {
        self.stats
    }

    /// Adds `packets` of the flow in `slot` to the queue.
    fn add_demand(&mut self, now: Time, slot: u32, dst: NodeId, packets: u32) {
        self.unsent += packets;
        match &mut self.schedule {
            TransmitSchedule::Slots(timetable) => {
                timetable.add_demand(now, dst.get() as u16, packets);
                timetable.send_requests(now, &self.fastpass, &mut self.out);
            }
            TransmitSchedule::Epochs(epochs) => {
                epochs.announce(now, slot, &self.flows, &self.fastpass, &mut self.out);
            }
        }
    }

    fn on_outcome(&mut self, now: Time, slot: u32, outcome: FlowChange) {
        match outcome {
            FlowChange::Unchanged => {}
            FlowChange::Lost(dst, packets) => self.add_demand(now, slot, dst, packets),
            FlowChange::Ended(over) => self.remove_demand(over),
        }
    }

    /// Removes the packets of a flow that has ended from those that wait.
    fn remove_demand(&mut self, EndedFlow { dst, unsent }: EndedFlow) {
        self.unsent -= unsent;
        if let TransmitSchedule::Slots(timetable) = &mut self.schedule {
            timetable.remove_demand(dst.get() as u16, unsent);
        }
    }

    fn has_space(&self) -> bool {
        self.due.len() < DUE_MAX
    }

    /// Makes the packets that are due and fit.
    fn make_due_packets(&mut self, now: Time) {
        match &mut self.schedule {
            TransmitSchedule::Slots(timetable) => {
                while self.due.len() < DUE_MAX {
                    let Some((dst, path)) = timetable.take_slot(now, &self.fastpass) else { break };
                    let Some(slot) = self.flows.next_flow_to(NodeId::new(dst.into())) else {
                        self.stats.slots_unused += 1;
                        continue;
                    };
                    let packet = self.flows.send(now, slot, path, &self.fastpass);
                    self.unsent -= packet.is_some() as u32;
                    self.due.extend(packet);
                }
                timetable.send_requests(now, &self.fastpass, &mut self.out);
            }
            TransmitSchedule::Epochs(epochs) => {
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

impl Protocol for FastpassHost {
    type Header = FastpassHeader;
    type Config = Fastpass;

    sides! { poll_event }

    fn new(config: Arc<Fastpass>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self {
            flows: Flows::new(node),
            schedule: match config.config.allocation_unit {
                AllocationUnit::Slots => TransmitSchedule::Slots(Timetable::new()),
                AllocationUnit::Epochs => TransmitSchedule::Epochs(Epochs::default()),
            },
            due: VecDeque::new(),
            receiver: AckReceiver::default(),
            out: Output::new(node, config.config.packet.header.get() as u16),
            unsent: 0,
            stats: FastpassStats::default(),
            fastpass: config,
        }
    }

    fn set_clock_origin(&mut self, _now: Time, origin: ClockOrigin) {
        if let TransmitSchedule::Slots(timetable) = &mut self.schedule {
            timetable.set_clock_origin(origin);
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let slot = self.flows.submit(&message, &self.fastpass);
        let packets = self.fastpass.segmentation().packets(message.size);
        self.add_demand(now, slot, message.dst, packets);
    }

    fn cancel(&mut self, _now: Time, msg: MsgId) {
        let over = self.flows.cancel(msg);
        self.due.retain(|packet| packet.payload.msg != msg);
        self.out.cancel(msg, |header| matches!(header, FastpassHeader::Announce { .. }));
        if let Some(over) = over {
            self.remove_demand(over);
        }
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpassHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        match packet.header {
            FastpassHeader::Data { flow, tx_slot, seq, size } => {
                let packets = self.fastpass.segmentation().packets(Bytes::new(size));
                let of = Announcement { src, msg, flow, tx_slot, packets };
                let (forget, out) = (self.fastpass.forget_timeout, &mut self.out);
                return self.receiver.on_packet(now, of, Some(seq), forget, out, |arrived| {
                    FastpassHeader::Ack { tx_slot, cumulative: arrived.cumulative, seq }
                });
            }
            FastpassHeader::Ack { tx_slot, cumulative, seq } => {
                let outcome = self.flows.on_ack(msg, tx_slot, cumulative, seq, &mut self.out);
                self.on_outcome(now, tx_slot, outcome);
            }
            FastpassHeader::Pause { is_paused } => {
                if let Some((slot, fewer, more)) =
                    self.flows.set_paused(now, src, msg, is_paused, &self.fastpass)
                {
                    self.remove_demand(fewer);
                    self.on_outcome(now, slot, more);
                }
            }
            FastpassHeader::Schedule { .. } => {
                if let TransmitSchedule::Epochs(epochs) = &mut self.schedule {
                    epochs.on_schedule(now, &packet.header, &self.fastpass);
                    self.make_due_packets(now);
                }
            }
            FastpassHeader::Allocation { .. } => {
                if let TransmitSchedule::Slots(timetable) = &mut self.schedule {
                    let (fastpass, stats) = (&self.fastpass, &mut self.stats);
                    timetable.on_allocation(now, src, &packet.header, fastpass, stats);
                    self.make_due_packets(now);
                }
            }
            FastpassHeader::NotActive => {
                if let TransmitSchedule::Slots(timetable) = &mut self.schedule {
                    timetable.on_passive(now, src, &self.fastpass);
                    timetable.send_requests(now, &self.fastpass, &mut self.out);
                }
            }
            FastpassHeader::Reset { incarnation } => {
                if let TransmitSchedule::Slots(timetable) = &mut self.schedule {
                    timetable.on_unknown_client(now, src, incarnation, &self.fastpass);
                    timetable.send_requests(now, &self.fastpass, &mut self.out);
                }
            }
            FastpassHeader::Request { .. }
            | FastpassHeader::Watchdog
            | FastpassHeader::Announce { .. } => {}
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        self.make_due_packets(now);
        loop {
            let (fastpass, out) = (&self.fastpass, &mut self.out);
            let Some((slot, outcome)) = self.flows.handle_timeout(now, fastpass, out) else {
                break;
            };
            self.stats.timeouts += u64::from(matches!(outcome, FlowChange::Lost(..)));
            self.on_outcome(now, slot, outcome);
        }
        let (fastpass, out) = (&*self.fastpass, &mut self.out);
        let has_unscheduled = match &mut self.schedule {
            TransmitSchedule::Slots(timetable) => {
                timetable.handle_timeout(now, fastpass, out, &mut self.stats)
            }
            TransmitSchedule::Epochs(epochs) => {
                epochs.handle_timeout(now, &self.flows, fastpass, out, &mut self.stats)
            }
        };
        if !has_unscheduled {
            for over in self.flows.fail_unsent(&mut self.out) {
                self.remove_demand(over);
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
        let turn = match &self.schedule {
            TransmitSchedule::Slots(timetable) => {
                timetable.deadline(self.has_space(), &self.fastpass)
            }
            TransmitSchedule::Epochs(epochs) => {
                epochs.deadline(self.has_space(), self.unsent > 0, &self.fastpass)
            }
        };
        turn.min(self.flows.deadline())
    }
}

impl Observation for FastpassHost {
    sides! { counters }

    fn message_counts(&self) -> Option<(usize, usize)> {
        Some((self.flows.len(), self.receiver.flows.len()))
    }

    fn permission(&self, _now: Time, msg: MsgId) -> Option<Permission> {
        self.flows.slot(msg)?;
        let is_due = self.due.iter().any(|packet| packet.payload.msg == msg);
        Some(if is_due { Permission::Granted } else { Permission::Awaited(SLOT) })
    }
}

impl HostPolicy for FastpassHost {
    sides! { arriving, data }

    fn pause(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.pause(src, msg);
        self.out.send(src, msg, FastpassHeader::Pause { is_paused: true });
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.resume(now, src, msg, self.fastpass.paused_probe_interval);
        self.out.send(src, msg, FastpassHeader::Pause { is_paused: false });
    }

    fn abandon(&mut self, _now: Time, src: NodeId, msg: MsgId) {
        self.receiver.flows.abandon_message(src, msg, &mut self.out);
    }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        self.due.retain(|packet| packet.dst != peer);
        let unsent = self.flows.forget_peer(peer, &mut self.out);
        self.remove_demand(EndedFlow { dst: peer, unsent });
        self.receiver.forget_peer(peer, &mut self.out);
    }
}
