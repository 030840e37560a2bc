//! The epoch model of Fastpass, as in the pHost study.
//!
//! Hosts announce flows. At the start of each epoch the arbiter fills the slots of the next one.
//! Each has a matching built greedily by fewest remaining packets; that takes no time. It notifies
//! each source of the flows that may send. The source sends as soon as the schedule arrives. There
//! is no common clock and no choice of paths.

use std::collections::VecDeque;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId, Time};

use super::config::Fastpass;
use super::flows::Flows;
use super::stats::FastpassStats;
use super::wire::{FastpassHeader, List};
use crate::toolkit::Output;

#[derive(Clone, Copy, Debug)]
struct FlowDemand {
    src: NodeId,
    tx_slot: u32,
    dst: u16,
    remaining: u32,
    /// The announcement that this is, among all: the tie-break.
    order: u64,
}

/// The arbiter of epochs.
#[derive(Debug)]
pub(super) struct EpochArbiter {
    flows: Vec<FlowDemand>,
    /// The latest announcement of each source's flow.
    numbers: IdMap<(u32, u32), u32>,
    order: u64,
    next_epoch: Time,
    src_busy: Vec<bool>,
    dst_busy: Vec<bool>,
}

/// No flow may send in a slot.
const NONE: u32 = u32::MAX;

impl EpochArbiter {
    pub(super) fn new(now: Time, fastpass: &Fastpass) -> Self {
        let idle = vec![false; fastpass.n_hosts as usize];
        Self {
            flows: Vec::new(),
            numbers: IdMap::default(),
            order: 0,
            next_epoch: now,
            src_busy: idle.clone(),
            dst_busy: idle,
        }
    }

    pub(super) fn handle_packet(
        &mut self,
        now: Time,
        src: NodeId,
        header: &FastpassHeader,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        let &FastpassHeader::Announce { tx_slot, dst, remaining, number } = header else { return };
        if src.get() >= fastpass.n_hosts || u32::from(dst) >= fastpass.n_hosts {
            return;
        }
        let latest = self.numbers.entry((src.get(), tx_slot)).or_default();
        if number <= *latest {
            return;
        }
        *latest = number;
        let before = self.flows.len();
        self.flows.retain(|f| (f.src, f.tx_slot) != (src, tx_slot));
        if self.flows.len() < before {
            // The flow waits for its turn; without an answer its source would abort it in the end.
            out.send(src, MsgId::default(), FastpassHeader::Schedule { flows: List::default() });
        }
        if remaining > 0 {
            self.order += 1;
            let order = self.order;
            self.flows.push(FlowDemand { src, tx_slot, dst, remaining, order });
        }
        // Epochs follow one another while there are flows.
        while self.next_epoch < now {
            self.next_epoch += fastpass.epoch;
        }
    }

    /// The source restarts the numbers of its announcements.
    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.flows.retain(|f| f.src != peer);
        self.numbers.retain(|(src, _), _| *src != peer.get());
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        if self.flows.is_empty() { Time::NEVER } else { self.next_epoch }
    }

    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        if self.deadline() > now {
            return;
        }
        self.next_epoch = now + fastpass.epoch;
        let n = fastpass.config.epoch_packets as usize;
        let mut schedules: IdMap<u32, [u32; super::wire::SLOTS_MAX]> = IdMap::default();
        let mut srcs = Vec::new();
        for slot in 0..n {
            self.flows.sort_unstable_by_key(|f| (f.remaining, f.order));
            self.src_busy.fill(false);
            self.dst_busy.fill(false);
            for flow in self.flows.iter_mut().filter(|f| f.remaining > 0) {
                let (src, dst) = (flow.src.idx(), usize::from(flow.dst));
                if self.src_busy[src] || self.dst_busy[dst] {
                    continue;
                }
                (self.src_busy[src], self.dst_busy[dst]) = (true, true);
                flow.remaining -= 1;
                let schedule = schedules.entry(flow.src.get()).or_insert_with(|| {
                    srcs.push(flow.src);
                    [NONE; super::wire::SLOTS_MAX]
                });
                schedule[slot] = flow.tx_slot;
            }
        }
        self.flows.retain(|f| f.remaining > 0);
        srcs.sort_unstable();
        for src in srcs {
            let mut flows = List::default();
            schedules[&src.get()][..n].iter().for_each(|&f| assert!(flows.push(f)));
            out.send(src, MsgId::default(), FastpassHeader::Schedule { flows });
        }
    }
}

/// The schedule of one host.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// Times at which flows may send, and their slots.
    schedule: VecDeque<(Time, u32)>,
    number: u32,
    /// Time of the last packet from the arbiter, and the number of unanswered requests since.
    last_packet_at: Time,
    attempts: u32,
    /// Time of the first attempt without an answer.
    unanswered_since: Time,
}

impl Epochs {
    /// Reports to the arbiter the packets that a flow has to send.
    pub(super) fn announce(
        &mut self,
        now: Time,
        slot: u32,
        flows: &Flows,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        let Some(flow) = flows.get(slot) else { return };
        self.number += 1;
        self.last_packet_at = self.last_packet_at.max(now);
        let (dst, remaining, number) = (flow.dst.get() as u16, flow.unsent(), self.number);
        let header = FastpassHeader::Announce { tx_slot: slot, dst, remaining, number };
        out.send(NodeId::new(fastpass.n_hosts), flow.msg, header);
    }

    pub(super) fn on_schedule(&mut self, now: Time, header: &FastpassHeader, fastpass: &Fastpass) {
        let FastpassHeader::Schedule { flows } = header else { return };
        self.last_packet_at = now;
        self.attempts = 0;
        let mut at = now;
        for &slot in flows.as_slice() {
            if slot != NONE {
                self.schedule.push_back((at, slot));
            }
            at += fastpass.mtu_time;
        }
    }

    /// Takes the flow whose turn it is.
    pub(super) fn take(&mut self, now: Time) -> Option<u32> {
        let &(at, slot) = self.schedule.front()?;
        if at > now {
            return None;
        }
        self.schedule.pop_front();
        Some(slot)
    }

    /// Returns the time of the next action. Turns count if `has_room` is true for one of them;
    /// `waits` is true if packets wait.
    #[inline]
    pub(super) fn deadline(&self, has_room: bool, waits: bool, fastpass: &Fastpass) -> Time {
        let first = self.schedule.front().filter(|_| has_room);
        let turn = first.map_or(Time::NEVER, |(at, _)| *at);
        if waits { turn.min(self.retransmit_at(fastpass)) } else { turn }
    }

    fn retransmit_at(&self, fastpass: &Fastpass) -> Time {
        self.last_packet_at + fastpass.retry + fastpass.epoch * 64
    }

    /// Repeats announcements without an answer; returns false if there is no hope.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        flows: &Flows,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
        stats: &mut FastpassStats,
    ) -> bool {
        let waiting: Vec<u32> =
            flows.iter().filter(|(_, f)| f.unsent() > 0).map(|(slot, _)| slot).collect();
        if waiting.is_empty() || self.retransmit_at(fastpass) > now {
            return true;
        }
        if self.attempts == 0 {
            self.unanswered_since = now;
        }
        self.attempts += 1;
        self.last_packet_at = now;
        let silence = now.saturating_since(self.unanswered_since);
        if fastpass.attempt_limit.is_exceeded(self.attempts, silence) {
            self.attempts = 0;
            return false;
        }
        for slot in waiting {
            stats.control_retransmissions += 1;
            self.announce(now, slot, flows, fastpass, out);
        }
        true
    }
}
