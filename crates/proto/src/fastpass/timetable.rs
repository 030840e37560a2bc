//! Slots of a host: requests to an arbiter, and the schedule given (Fastpass §2, §5).
//!
//! Requests hold totals, so that a lost or duplicate one does no harm. Allocations carry the number
//! of slots that the host has been given so far. A host restarts its requests if it misses some of
//! them, or if its arbiter has forgotten it. It then uses the next incarnation number, and totals
//! of its remaining demand. A host whose arbiter is unresponsive sends requests to the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rampmeter_types::collections::IdMap;
use rampmeter_types::{ClockOrigin, MsgId, NodeId, Span, Time};

use super::config::Fastpass;
use super::stats::FastpassStats;
use super::wire::{Demand, FastpassHeader, List, Slot};
use crate::toolkit::Output;

/// Demand of a host for one destination.
#[derive(Clone, Copy, Debug, Default)]
struct DestinationDemand {
    /// Packets that wait for a slot.
    unsent: u32,
    /// Slots in the timetable.
    n_slots: u32,
    /// Slots requested in this incarnation.
    total: u32,
    is_dirty: bool,
}

/// The slots of one host.
#[derive(Debug)]
pub(super) struct Timetable {
    /// Arbiter that receives the requests.
    arbiter: u32,
    incarnation: u32,
    /// The number of the latest request.
    number: u32,
    answered_request: u32,
    demands: IdMap<u16, DestinationDemand>,
    /// Packets that wait and slots held, of all destinations.
    unsent: u32,
    n_slots: u32,
    /// Destinations whose totals have not been sent.
    dirty: VecDeque<u16>,
    /// Future slots, earliest first: (time, destination, path).
    slots: BinaryHeap<Reverse<(Time, u16, u8)>>,
    /// Slots given in this incarnation by the arbiter's count, and those that have arrived.
    granted: u32,
    received: u32,
    /// Since when some of them are missing.
    missing_since: Time,
    /// Time of the last request to or packet from the arbiter, and the number of unanswered
    /// requests.
    last_exchange_at: Time,
    attempts: u32,
    /// Time of the first unanswered request.
    unanswered_since: Time,
    /// Answers since the last slot.
    answers: u32,
    clock: ClockOrigin,
    /// Time from the latest allocation to its batch, in picoseconds.
    lead: Option<i128>,
}

/// Unanswered repetitions after which a host sends its requests to the other arbiter.
const FAIL_OVER_AFTER: u32 = 3;
/// Answers without slots after which a host restarts its requests, in case that its totals and the
/// arbiter's differ.
const ANSWERS_MAX: u32 = 64;
/// Maximum change of the time from an allocation to its batch, from one to the next. Clocks do not
/// jump by more, and packets are not later.
const LEAD_CHANGE: Span = Span::from_us(1_000_000);
const LEAD_CHANGE_SLOTS: u64 = 1_024;
/// Maximum time from an allocation to its batch if the clocks of host and arbiter agree. Arbiters
/// plan some batches ahead.
const LEAD_MAX: Span = Span::from_us(50_000);

impl Timetable {
    pub(super) fn new() -> Self {
        Self {
            arbiter: 0,
            incarnation: 1,
            number: 0,
            answered_request: 0,
            demands: IdMap::default(),
            unsent: 0,
            n_slots: 0,
            dirty: VecDeque::new(),
            slots: BinaryHeap::new(),
            granted: 0,
            received: 0,
            missing_since: Time::NEVER,
            last_exchange_at: Time::ZERO,
            attempts: 0,
            unanswered_since: Time::ZERO,
            answers: 0,
            clock: ClockOrigin::default(),
            lead: None,
        }
    }

    pub(super) fn set_clock_origin(&mut self, origin: ClockOrigin) {
        self.clock = origin;
    }

    fn mark_dirty(&mut self, dst: u16) {
        let demand = self.demands.entry(dst).or_default();
        if !demand.is_dirty {
            demand.is_dirty = true;
            self.dirty.push_back(dst);
        }
    }

    /// Adds `packets` to the demand for slots to `dst`.
    pub(super) fn add_demand(&mut self, now: Time, dst: u16, packets: u32) {
        if self.unsent == 0 {
            (self.last_exchange_at, self.unanswered_since) = (now, now);
            (self.attempts, self.answers) = (0, 0);
        }
        self.unsent += packets;
        let demand = self.demands.entry(dst).or_default();
        demand.unsent += packets;
        demand.total += packets;
        self.mark_dirty(dst);
    }

    /// Removes packets whose flow has ended from those that wait. Slots already requested stay
    /// unused.
    pub(super) fn remove_demand(&mut self, dst: u16, packets: u32) {
        if let Some(demand) = self.demands.get_mut(&dst) {
            let packets = packets.min(demand.unsent);
            demand.unsent -= packets;
            self.unsent -= packets;
        }
    }

    /// Queues requests for packets that have not been requested.
    pub(super) fn send_requests(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        while !self.dirty.is_empty() {
            self.number += 1;
            let mut demands = List::default();
            while let Some(&dst) = self.dirty.front() {
                let Some(demand) = self.demands.get_mut(&dst) else {
                    self.dirty.pop_front();
                    continue;
                };
                if !demands.push(Demand { dst, total: demand.total }) {
                    break;
                }
                demand.is_dirty = false;
                self.dirty.pop_front();
            }
            self.send(demands, fastpass, out);
            self.last_exchange_at = now;
        }
    }

    fn send(
        &self,
        demands: List<Demand, { super::wire::DEMANDS_MAX }>,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        let (incarnation, number) = (self.incarnation, self.number);
        let request = FastpassHeader::Request { incarnation, number, demands };
        let arbiter = NodeId::new(fastpass.n_hosts + self.arbiter);
        out.send_sized(arbiter, MsgId::default(), request, fastpass.control_bytes(&request));
    }

    /// Handles an allocation of slots by an arbiter.
    pub(super) fn on_allocation(
        &mut self,
        now: Time,
        from: NodeId,
        header: &FastpassHeader,
        fastpass: &Fastpass,
        stats: &mut FastpassStats,
    ) {
        let &FastpassHeader::Allocation { incarnation, last_request, granted, first, slots } =
            header
        else {
            return;
        };
        if from.get() != fastpass.n_hosts + self.arbiter || incarnation != self.incarnation {
            return;
        }
        (self.last_exchange_at, self.unanswered_since) = (now, now);
        self.attempts = 0;
        if !slots.as_slice().is_empty() && !self.has_usual_lead(now, first, fastpass) {
            return;
        }
        self.answers = if slots.as_slice().is_empty() { self.answers + 1 } else { 0 };
        self.answered_request = self.answered_request.max(last_request);
        self.granted = self.granted.max(granted);
        let excess = self.excess_lead(now, first, fastpass);
        for &Slot { dst, offset, path } in slots.as_slice() {
            self.received += 1;
            let number = first.saturating_add(offset.into());
            let start = self.clock.interval_start(number, fastpass.slot);
            let at = Time::from_ps(start.as_ps().saturating_sub(excess.as_ps()));
            // A slot that has begun is used at once. Otherwise hosts whose clocks are ahead of the
            // arbiter's by more than it plans ahead would never send.
            stats.late_slots += u64::from(at < now);
            self.demands.entry(dst).or_default().n_slots += 1;
            self.n_slots += 1;
            self.slots.push(Reverse((at, dst, path)));
        }
        self.missing_since = match self.received < self.granted {
            true => self.missing_since.min(now),
            false => Time::NEVER,
        };
    }

    /// Returns true if a batch follows its allocation as closely as the one before. An allocation
    /// of which that is not true is damaged, or the first of another clock: it counts as lost. Its
    /// slots might be far off, and would count as held until then.
    fn has_usual_lead(&mut self, now: Time, first: u64, fastpass: &Fastpass) -> bool {
        let start = self.clock.interval_start(first, fastpass.slot);
        let lead = i128::from(start.as_ps()) - i128::from(now.as_ps());
        let most = LEAD_CHANGE + fastpass.slot * LEAD_CHANGE_SLOTS;
        let before = self.lead.replace(lead);
        start < Time::NEVER
            && before.is_none_or(|before| before.abs_diff(lead) <= u128::from(most.as_ps()))
    }

    /// Returns by how much the batch from slot `first` must begin earlier. It is zero unless the
    /// arbiter's clock is far ahead: slots of its clock would begin after minutes or hours.
    fn excess_lead(&self, now: Time, first: u64, fastpass: &Fastpass) -> Span {
        let lead = self.clock.interval_start(first, fastpass.slot).saturating_since(now);
        let is_usual = lead <= LEAD_MAX + fastpass.slot * LEAD_CHANGE_SLOTS;
        if is_usual { Span::ZERO } else { lead }
    }

    /// Handles the notice that the arbiter that received the request is the standby.
    pub(super) fn on_passive(&mut self, now: Time, from: NodeId, fastpass: &Fastpass) {
        if from.get() == fastpass.n_hosts + self.arbiter {
            self.fail_over(now, fastpass);
        }
    }

    fn fail_over(&mut self, now: Time, fastpass: &Fastpass) {
        self.arbiter = (self.arbiter + 1) % fastpass.config.arbiters;
        self.restart(now);
    }

    /// Forgets requests and grants, and requests the remaining demand.
    fn restart(&mut self, now: Time) {
        self.incarnation += 1;
        (self.number, self.answered_request, self.granted, self.received) = (0, 0, 0, 0);
        self.missing_since = Time::NEVER;
        self.last_exchange_at = now;
        self.answers = 0;
        let mut dsts: Vec<u16> = self.demands.keys().copied().collect();
        dsts.sort_unstable();
        for dst in dsts {
            let Some(demand) = self.demands.get_mut(&dst) else { continue };
            demand.total = demand.unsent.saturating_sub(demand.n_slots);
            match demand.total {
                0 if demand.unsent == 0 && demand.n_slots == 0 && !demand.is_dirty => {
                    self.demands.remove(&dst);
                }
                0 => {}
                _ => self.mark_dirty(dst),
            }
        }
    }

    /// Returns the time of the next action. Slots count if `has_room` is true for one of them.
    #[inline]
    pub(super) fn deadline(&self, has_room: bool, fastpass: &Fastpass) -> Time {
        let first = self.slots.peek().filter(|_| has_room);
        let slot = first.map_or(Time::NEVER, |Reverse((at, ..))| *at);
        if self.has_unmet_demand() {
            slot.min(self.last_exchange_at + self.answer_timeout(fastpass))
        } else {
            slot
        }
    }

    /// Returns the time for which an arbiter may be unresponsive before the request is repeated.
    /// The time doubles each time both have been tried.
    fn answer_timeout(&self, fastpass: &Fastpass) -> Span {
        fastpass.retry * (1 << (self.attempts / (2 * FAIL_OVER_AFTER)).min(6))
    }

    fn has_unmet_demand(&self) -> bool {
        self.unsent > self.n_slots
    }

    /// Takes the slot that has begun, if one has: its destination and path.
    pub(super) fn take_slot(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
    ) -> Option<(u16, Option<u16>)> {
        let &Reverse((at, dst, path)) = self.slots.peek()?;
        if at > now {
            return None;
        }
        self.slots.pop();
        self.n_slots -= 1;
        if let Some(demand) = self.demands.get_mut(&dst) {
            demand.n_slots -= 1;
            if demand.unsent > 0 {
                demand.unsent -= 1;
                self.unsent -= 1;
            }
        }
        Some((dst, fastpass.paths.is_some().then_some(path.into())))
    }

    /// Repeats a request, restarts all or changes to the other arbiter if there is no answer.
    /// Returns false if the attempts of all arbiters are exhausted.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
        stats: &mut FastpassStats,
    ) -> bool {
        if !self.has_unmet_demand() || now < self.last_exchange_at + self.answer_timeout(fastpass) {
            return true;
        }
        self.attempts += 1;
        self.last_exchange_at = now;
        let silence = now.saturating_since(self.unanswered_since);
        if fastpass.attempt_limit.is_exceeded(self.attempts, silence) {
            (self.attempts, self.unanswered_since) = (0, now);
            return false;
        }
        let is_missing = now.saturating_since(self.missing_since) > fastpass.retry
            && self.missing_since < Time::NEVER;
        let is_unheard = self.answered_request < self.number;
        if self.attempts.is_multiple_of(FAIL_OVER_AFTER) && fastpass.config.arbiters > 1 {
            stats.failovers += 1;
            self.fail_over(now, fastpass);
        } else if is_missing || is_unheard || self.answers > ANSWERS_MAX {
            stats.resets += 1;
            self.restart(now);
        } else {
            stats.control_retransmissions += 1;
            self.number += 1;
            self.send(List::default(), fastpass, out);
        }
        self.send_requests(now, fastpass, out);
        true
    }

    /// Handles an arbiter without a record of this host's requests.
    pub(super) fn on_unknown_client(
        &mut self,
        now: Time,
        from: NodeId,
        incarnation: u32,
        fastpass: &Fastpass,
    ) {
        let is_requested = from.get() == fastpass.n_hosts + self.arbiter;
        if is_requested && incarnation == self.incarnation {
            self.restart(now);
        }
    }
}
