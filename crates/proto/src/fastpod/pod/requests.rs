//! Slot requests and grants of one host.
//!
//! RTSs hold totals by destination, so that a lost or duplicate one does no harm. SCHDs carry the
//! number up to which all RTSs have been received, and the number of slots given. A host restarts
//! its requests if it misses some slots or is not received, or if another arbiter has taken over.
//! It then uses the next incarnation number and the totals of its remaining demand.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_types::collections::{IdMap, SeqSet};
use rampmeter_types::{Span, Time};

use crate::fastpod::config::Fastpod;
use crate::fastpod::wire::{Demand, List};

/// Demand of a host for one destination, in slots.
#[derive(Clone, Copy, Debug, Default)]
struct DestinationDemand {
    /// Slots requested and given in this incarnation.
    total: u32,
    granted: u32,
    /// Given for slots that have not begun.
    n_slots: u32,
    is_dirty: bool,
}

/// A slot that a host may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) dst: u16,
    /// The aggregation switch to send by.
    pub(crate) agg: u8,
    /// True for the slot of a probe, which was not requested.
    pub(crate) is_probe: bool,
}

/// Answer of an SCHD to the requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchdAnswer {
    pub(crate) incarnation: u32,
    pub(crate) answered_rts: u32,
    pub(crate) granted: u32,
}

/// The demands of one host.
#[derive(Clone, Debug)]
pub(crate) struct HostDemands {
    incarnation: u32,
    /// RTSs with demands in this incarnation.
    number: u32,
    answered_rts: u32,
    demands: IdMap<u16, DestinationDemand>,
    /// Destinations whose totals have not been sent.
    dirty: VecDeque<u16>,
    /// Future slots.
    grants: BTreeMap<u64, Grant>,
    /// Slots given in this incarnation by the arbiter's count, and those that have arrived.
    granted: u32,
    received: SeqSet,
    /// Since when some of them are missing, and since when an RTS has no answer.
    missing_since: Time,
    unanswered_since: Time,
    /// Time of the last packet from an arbiter, or of the start of the wait; and the time of its
    /// last grant.
    last_packet_at: Time,
    granted_at: Time,
    attempts: u32,
    /// Time of the first attempt without an answer.
    first_attempt_at: Time,
}

/// Slots after one that is missing that are remembered.
const MISSING_MAX: u32 = 4_096;
/// Maximum number of doublings of the time before the next attempt.
const BACKOFF_MAX: u32 = 6;
/// Multiples of `retry` without a slot after which a waiting host repeats its requests.
const RETRIES_WITHOUT_SLOT: u64 = 64;

impl HostDemands {
    pub(crate) fn new(now: Time, incarnation: u32) -> Self {
        Self {
            incarnation,
            number: 0,
            answered_rts: 0,
            demands: IdMap::default(),
            dirty: VecDeque::new(),
            grants: BTreeMap::new(),
            granted: 0,
            received: SeqSet::default(),
            missing_since: Time::NEVER,
            unanswered_since: Time::NEVER,
            last_packet_at: now,
            granted_at: now,
            attempts: 0,
            first_attempt_at: now,
        }
    }

    /// Returns the host's incarnation and the number of RTSs with demands.
    pub(crate) fn last_rts(&self) -> (u32, u32) {
        (self.incarnation, self.number)
    }

    /// Begins the wait: from now on its arbiter should respond.
    pub(crate) fn begin(&mut self, now: Time) {
        self.last_packet_at = self.last_packet_at.max(now);
        self.granted_at = self.granted_at.max(now);
        self.attempts = 0;
    }

    /// Ensures that enough slots are requested to send `cells` to a destination. Returns true if an
    /// RTS will carry a request; if not, they have been requested.
    pub(crate) fn set_demand(&mut self, dst: u16, cells: u64, fastpod: &Fastpod) -> bool {
        let need = cells.div_ceil(fastpod.slots.cells().into());
        let need = u32::try_from(need).unwrap_or(u32::MAX);
        let demand = self.demands.entry(dst).or_default();
        let have = demand.total.saturating_sub(demand.granted).saturating_add(demand.n_slots);
        if need <= have {
            return demand.is_dirty;
        }
        demand.total = demand.total.saturating_add(need - have);
        if !demand.is_dirty {
            demand.is_dirty = true;
            self.dirty.push_back(dst);
        }
        true
    }

    /// Returns true if there is something to request.
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the demands for the next RTS.
    pub(crate) fn take_demands<const N: usize>(&mut self, now: Time) -> List<Demand, N> {
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
        if !demands.as_slice().is_empty() {
            self.number += 1;
            self.unanswered_since = self.unanswered_since.min(now);
        }
        demands
    }

    /// Handles the arrival of a packet from the arbiter.
    pub(crate) fn on_schd(&mut self, now: Time, answer: SchdAnswer, grant: Option<(u64, Grant)>) {
        self.last_packet_at = now;
        let is_of_this = answer.incarnation == self.incarnation;
        if let Some((slot, grant)) = grant
            && (!is_of_this || self.is_new(answer.granted))
            && !self.grants.contains_key(&slot)
        {
            self.grants.insert(slot, grant);
            self.granted_at = now;
            let demand = self.demands.entry(grant.dst).or_default();
            demand.n_slots += 1;
            demand.granted += u32::from(is_of_this);
        }
        if !is_of_this {
            return;
        }
        if answer.answered_rts > self.answered_rts {
            self.answered_rts = answer.answered_rts;
            self.attempts = 0;
            self.unanswered_since = if self.answered_rts < self.number { now } else { Time::NEVER };
        }
        self.granted = self.granted.max(answer.granted);
        self.missing_since = match self.received.len() < self.granted {
            true => self.missing_since.min(now),
            false => Time::NEVER,
        };
        if self.unanswered_since == Time::NEVER && self.missing_since == Time::NEVER {
            self.attempts = 0;
        }
    }

    /// Enters a probe that the arbiter requests in a slot.
    pub(crate) fn probe(&mut self, slot: u64, grant: Grant) {
        self.grants.entry(slot).or_insert(grant);
    }

    /// Counts the slot of this incarnation that is number `given`, from one; false if it has
    /// arrived before. Networks may double and reorder SCHDs.
    fn is_new(&mut self, given: u32) -> bool {
        let Some(number) = given.checked_sub(1) else { return false };
        let is_near = number < self.received.first_missing().saturating_add(MISSING_MAX);
        is_near && self.received.insert(number)
    }

    #[inline]
    pub(crate) fn grant(&self, slot: u64) -> Option<Grant> {
        self.grants.get(&slot).copied()
    }

    /// Returns the slots with grants after `slot`, in order.
    #[inline]
    pub(crate) fn grants_after(&self, slot: u64) -> impl Iterator<Item = u64> {
        self.grants.range(slot + 1..).map(|(&slot, _)| slot)
    }

    /// Takes the first grant of a slot up to `slot`.
    pub(crate) fn take_grant(&mut self, slot: u64) -> Option<(u64, Grant)> {
        let first = self.grants.first_entry().filter(|first| *first.key() <= slot)?;
        let (slot, grant) = first.remove_entry();
        if let Some(demand) = self.demands.get_mut(&grant.dst).filter(|_| !grant.is_probe) {
            demand.n_slots -= 1;
        }
        Some((slot, grant))
    }

    /// Clears all requests. [`HostDemands::set_demand`] repeats those that are still needed.
    pub(crate) fn restart(&mut self) {
        self.incarnation += 1;
        (self.number, self.answered_rts, self.granted) = (0, 0, 0);
        self.received = SeqSet::default();
        (self.missing_since, self.unanswered_since) = (Time::NEVER, Time::NEVER);
        self.dirty.clear();
        self.demands.retain(|_, demand| {
            *demand = DestinationDemand { n_slots: demand.n_slots, ..DestinationDemand::default() };
            demand.n_slots > 0
        });
    }

    /// Handles the takeover by another arbiter, whose slots are others.
    pub(crate) fn on_takeover(&mut self, now: Time) {
        self.grants.clear();
        self.demands.clear();
        self.restart();
        (self.last_packet_at, self.granted_at, self.attempts) = (now, now, 0);
    }

    fn due(&self, fastpod: &Fastpod) -> Time {
        let backoff = 1 << self.attempts.min(BACKOFF_MAX);
        let doubled = |wait: Span| fastpod.attempt_limit.double_interval(wait * backoff, wait);
        let after = |since: Time, wait: Span| since.saturating_add(doubled(wait));
        let unresponsive_since = self.unanswered_since.min(self.missing_since);
        let answer = after(unresponsive_since, fastpod.retry)
            .min(after(self.last_packet_at, fastpod.unresponsive_after));
        // In case that the totals of both ends have parted.
        answer.min(self.granted_at.saturating_add(fastpod.retry * RETRIES_WITHOUT_SLOT))
    }

    /// Returns the next instant at which there is something to do, for a host that waits.
    #[inline]
    pub(crate) fn deadline(&self, waits: bool, fastpod: &Fastpod) -> Time {
        if waits { self.due(fastpod) } else { Time::NEVER }
    }

    /// Handles the timeout if no answer arrives.
    pub(crate) fn handle_timeout(&mut self, now: Time, fastpod: &Fastpod) -> RetryAction {
        if self.due(fastpod) > now {
            return RetryAction::None;
        }
        // A long wait for a slot is no failure if the arbiter's SCHDs arrive.
        let is_heard = self.attempts == 0
            && self.unanswered_since.min(self.missing_since) == Time::NEVER
            && now < self.last_packet_at.saturating_add(fastpod.unresponsive_after);
        if self.attempts == 0 {
            self.first_attempt_at = now;
        }
        self.attempts += u32::from(!is_heard);
        self.last_packet_at = self.last_packet_at.max(now);
        self.granted_at = now;
        let silence = now.saturating_since(self.first_attempt_at);
        if fastpod.attempt_limit.is_exceeded(self.attempts, silence) {
            self.attempts = 0;
            return RetryAction::Abort;
        }
        self.restart();
        RetryAction::RequestAgain
    }
}

/// Reaction of a host that receives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAction {
    None,
    RequestAgain,
    Abort,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastpod::FastpodConfig;
    use rampmeter_types::{FabricFacts, Rate};

    fn fastpod() -> Fastpod {
        let facts = FabricFacts {
            n_hosts: 4,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            abort_timeout_min: Span::ZERO,
        };
        FastpodConfig::paper().derive(&facts, None).unwrap()
    }

    fn take(demands_of_host: &mut HostDemands, now: Time) -> List<Demand, 3> {
        demands_of_host.take_demands(now)
    }

    fn answer(incarnation: u32, answered_rts: u32, granted: u32) -> SchdAnswer {
        SchdAnswer { incarnation, answered_rts, granted }
    }

    const GRANT: Grant = Grant { dst: 1, agg: 0, is_probe: false };

    /// Three cells fit a slot; requested slots are not requested twice.
    #[test]
    fn totals_cover_exactly_the_queued_packets() {
        let (fastpod, mut demands_of_host) = (fastpod(), HostDemands::new(Time::ZERO, 1));
        assert!(demands_of_host.set_demand(1, 4, &fastpod));
        assert_eq!(
            take(&mut demands_of_host, Time::ZERO).as_slice(),
            [Demand { dst: 1, total: 2 }]
        );
        assert!(!demands_of_host.set_demand(1, 6, &fastpod));
        assert!(demands_of_host.set_demand(1, 7, &fastpod));
        assert_eq!(
            take(&mut demands_of_host, Time::ZERO).as_slice(),
            [Demand { dst: 1, total: 3 }]
        );
        // One is given: two are outstanding, and that one.
        demands_of_host.on_schd(Time::ZERO, answer(1, 2, 1), Some((50, GRANT)));
        assert!(!demands_of_host.set_demand(1, 9, &fastpod));
        assert_eq!(demands_of_host.take_grant(50), Some((50, GRANT)));
        assert!(
            !demands_of_host.set_demand(1, 6, &fastpod)
                && demands_of_host.set_demand(1, 7, &fastpod)
        );
    }

    #[test]
    fn a_host_repeats_demands_after_a_lost_rts_or_a_missing_slot() {
        let (fastpod, mut demands_of_host) = (fastpod(), HostDemands::new(Time::ZERO, 1));
        demands_of_host.set_demand(1, 3, &fastpod);
        take(&mut demands_of_host, Time::ZERO);
        let late = Time::ZERO + fastpod.retry;
        demands_of_host.on_schd(late, answer(0, 0, 0), None);
        assert_eq!(demands_of_host.deadline(true, &fastpod), late);
        assert_eq!(demands_of_host.handle_timeout(late, &fastpod), RetryAction::RequestAgain);
        assert_eq!(demands_of_host.last_rts(), (2, 0));
        demands_of_host.set_demand(1, 3, &fastpod);
        take(&mut demands_of_host, late);
        // The request was received, but the SCHD with the slot is lost.
        demands_of_host.on_schd(late, answer(2, 1, 1), None);
        assert!(demands_of_host.deadline(true, &fastpod) <= late + fastpod.retry * 2);
        let later = late + fastpod.retry * 2;
        assert_eq!(demands_of_host.handle_timeout(later, &fastpod), RetryAction::RequestAgain);
    }

    /// A broken arbiter gives one slot twice: the first grant holds.
    #[test]
    fn a_slot_that_is_given_twice_is_held_once() {
        let (fastpod, mut demands_of_host) = (fastpod(), HostDemands::new(Time::ZERO, 1));
        demands_of_host.set_demand(1, 3, &fastpod);
        take(&mut demands_of_host, Time::ZERO);
        demands_of_host.on_schd(Time::ZERO, answer(1, 1, 1), Some((50, GRANT)));
        demands_of_host.on_schd(Time::ZERO, answer(1, 1, 2), Some((50, Grant { dst: 2, ..GRANT })));
        assert_eq!(demands_of_host.take_grant(50), Some((50, GRANT)));
        assert_eq!(demands_of_host.take_grant(50), None);
    }

    /// A host repeats a demand regardless of the totals at both ends.
    #[test]
    fn a_host_repeats_a_demand_after_a_long_wait() {
        let (fastpod, mut demands_of_host) = (fastpod(), HostDemands::new(Time::ZERO, 1));
        demands_of_host.set_demand(1, 6, &fastpod);
        take(&mut demands_of_host, Time::ZERO);
        for given in [1, 2] {
            demands_of_host.on_schd(Time::ZERO, answer(1, 1, given), Some((50, GRANT)));
            demands_of_host.take_grant(50);
        }
        let wait = fastpod.retry * RETRIES_WITHOUT_SLOT;
        let mut now = Time::ZERO;
        while now + fastpod.unresponsive_after / 2 < Time::ZERO + wait {
            now += fastpod.unresponsive_after / 2;
            demands_of_host.on_schd(now, answer(1, 1, 2), None);
            assert_eq!(demands_of_host.handle_timeout(now, &fastpod), RetryAction::None);
        }
        assert_eq!(
            demands_of_host.handle_timeout(Time::ZERO + wait, &fastpod),
            RetryAction::RequestAgain
        );
        assert!(demands_of_host.set_demand(1, 3, &fastpod));
    }
}
