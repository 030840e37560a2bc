//! Choice of the pending flow that a destination serves next (pHost §3.3).
//!
//! Flows that may have a token are ordered by the policy's key, lowest first. Under `tenant-fair`
//! each tenant has its own, and the tenant that was served least is first. Flows of sources that
//! are slower than the destination are in a queue of their source. That queue is skipped until the
//! source's next token is due. With n flows a packet takes O(log n) steps. So does a token, and one
//! step for each tenant with flows.

use std::collections::BTreeMap;

use rampmeter_types::collections::{HeapPositions, KeyedHeap};
use rampmeter_types::{Span, TenantId, Time};

use super::config::{Phost, Policy};
use super::pacing::Pacing;
use super::queues::{Key, SourceQueues};
use super::rx_flow::{Arrivals, PendingFlow, Readiness, RxFlow};
use crate::toolkit::{ArrivingFlows, Candidates, TenantCounts};

/// The pending flows of one tenant.
#[derive(Debug, Default)]
struct TenantFlows {
    /// Flows of sources that are as fast as this host.
    fast: Candidates<Key>,
    /// Flows of slower sources.
    slow: Option<Box<SourceQueues>>,
}

impl TenantFlows {
    fn is_empty(&self) -> bool {
        self.fast.is_empty() && self.slow.as_ref().is_none_or(|slow| slow.is_empty())
    }

    /// Returns the key and the slot of the first flow that may have a token.
    #[inline]
    fn first(&self) -> Option<(Key, u32)> {
        let Some(slow) = &self.slow else { return self.fast.first() };
        self.fast.first().into_iter().chain(slow.first()).min()
    }

    #[inline]
    fn deadline(&self) -> Time {
        let slow = self.slow.as_ref().map_or(Time::NEVER, |slow| slow.deadline());
        self.fast.deadline().min(slow)
    }

    /// Calls `wake` for each set of flows of which some may be due.
    #[inline]
    fn wake(&mut self, now: Time, mut wake: impl FnMut(&mut Candidates<Key>)) {
        wake(&mut self.fast);
        if let Some(slow) = &mut self.slow {
            slow.wake(now, wake);
        }
    }
}

/// The pending flows of a destination.
#[derive(Debug, Default)]
pub(super) struct FlowSelector {
    /// Flows of tenant zero; all flows under policies that ignore tenants.
    first: TenantFlows,
    /// Flows of other tenants, of which each has some.
    others: BTreeMap<TenantId, TenantFlows>,
    positions: HeapPositions,
    /// Flows that wait only while packets arrive, by the silence that ends their waits.
    arriving: KeyedHeap<Span>,
    arriving_positions: HeapPositions,
    pacing: Pacing,
    /// Flows that [`Self::pick`] has looked at.
    #[cfg(test)]
    pub(super) n_examined: u64,
}

fn tenant(flow: &RxFlow, policy: Policy) -> TenantId {
    match policy {
        Policy::Srpt | Policy::Edf => TenantId::default(),
        Policy::TenantFair => flow.state.tenant,
    }
}

fn key(flow: &RxFlow, policy: Policy) -> Key {
    let measure = match policy {
        Policy::Srpt | Policy::TenantFair => flow.remaining().into(),
        Policy::Edf => flow.state.deadline.as_ps(),
    };
    (measure, flow.state.announced.as_ps())
}

impl FlowSelector {
    /// Changes the flows that `flow` belongs to, given the places of all.
    #[inline]
    fn change<R>(
        &mut self,
        flow: &RxFlow,
        policy: Policy,
        change: impl FnOnce(&mut Candidates<Key>, &mut HeapPositions) -> R,
    ) -> R {
        let tenant = tenant(flow, policy);
        let flows = match tenant == TenantId::default() {
            true => &mut self.first,
            false => self.others.entry(tenant).or_default(),
        };
        let places = &mut self.positions;
        if !flow.state.is_paced {
            return change(&mut flows.fast, places);
        }
        let (src, next) = (flow.announcement.src, self.pacing.next(flow.announcement.src));
        let slow = flows.slow.get_or_insert_default();
        slow.change(src, next, |flows| change(flows, places))
    }

    /// Enters a flow that is new, or notes that it is held or not any more.
    pub(super) fn insert(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        self.arriving.remove(&mut self.arriving_positions, slot);
        self.change(flow, policy, |flows, places| {
            if flow.is_paused {
                flows.wait(places, slot, Time::NEVER);
            } else {
                flows.make_ready(places, slot, key(flow, policy));
            }
        });
    }

    /// Lets a flow wait until `end`.
    pub(super) fn wait(&mut self, slot: u32, flow: &RxFlow, end: Time, policy: Policy) {
        self.arriving.remove(&mut self.arriving_positions, slot);
        self.change(flow, policy, |flows, places| flows.wait(places, slot, end));
    }

    /// Notes that a packet of the flow has arrived, which may end a wait for data.
    #[inline]
    pub(super) fn on_packet(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        self.change(flow, policy, |flows, places| {
            if flow.waits_for_data() || flows.key(places, slot).is_some() {
                flows.make_ready(places, slot, key(flow, policy));
            }
        });
    }

    /// Removes a flow that has ended, or whose tenant or deadline is about to change.
    pub(super) fn remove(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        self.arriving.remove(&mut self.arriving_positions, slot);
        self.change(flow, policy, |flows, places| flows.remove(places, slot));
        let tenant = tenant(flow, policy);
        if self.others.get(&tenant).is_some_and(TenantFlows::is_empty) {
            self.others.remove(&tenant);
        }
    }

    /// Returns the instant from which the pace of the flow's source allows a token.
    #[inline]
    pub(super) fn next_token(&self, flow: &RxFlow) -> Time {
        if flow.state.is_paced { self.pacing.next(flow.announcement.src) } else { Time::ZERO }
    }

    /// Counts a token for a flow. Its source gets no other before the next is due.
    #[inline]
    pub(super) fn on_token(&mut self, now: Time, flow: &RxFlow, phost: &Phost) {
        if !flow.state.is_paced {
            return;
        }
        let src = flow.announcement.src;
        let next = self.pacing.count(now, src, &flow.state.pair, phost);
        for flows in self.others.values_mut().chain([&mut self.first]) {
            if let Some(slow) = &mut flows.slow {
                slow.close(src, next);
            }
        }
    }

    /// Forgets when tokens are due, as no flow may have one.
    pub(super) fn reset_pacing(&mut self) {
        self.pacing = Pacing::default();
    }

    /// Returns the flow that is served next. If there is none, the instant until which all wait;
    /// [`Time::NEVER`] if there are only held ones.
    pub(super) fn pick(
        &mut self,
        now: Time,
        pending: &mut ArrivingFlows<PendingFlow>,
        served: &TenantCounts,
        arrivals: Arrivals,
        phost: &Phost,
    ) -> Result<u32, Time> {
        let policy = phost.config.policy;
        self.wake_due(now, pending, policy);
        self.end_waits(now, pending, arrivals, policy);
        while let Some(slot) = self.first_ready(served) {
            #[cfg(test)]
            {
                self.n_examined += 1;
            }
            match pending[slot].readiness(now, arrivals, phost) {
                Readiness::Ready => return Ok(slot),
                Readiness::NotBefore(until) => self.wait(slot, &pending[slot], until, policy),
                Readiness::WhileArriving(until, idle) => {
                    self.wait(slot, &pending[slot], until, policy);
                    self.arriving.set(&mut self.arriving_positions, slot, idle);
                }
            }
        }
        let silence = self.arriving.first().map_or(Time::NEVER, |(idle, _)| arrivals.latest + idle);
        let others = self.others.values().map(TenantFlows::deadline);
        Err(others.fold(self.first.deadline().min(silence), Time::min))
    }

    /// Ends the waits of flows that only wait while packets arrive, if none has for long enough.
    #[inline]
    fn end_waits(
        &mut self,
        now: Time,
        pending: &mut ArrivingFlows<PendingFlow>,
        arrivals: Arrivals,
        policy: Policy,
    ) {
        while let Some((idle, slot)) = self.arriving.first()
            && arrivals.latest + idle <= now
        {
            #[cfg(test)]
            {
                self.n_examined += 1;
            }
            pending[slot].end_wait();
            self.insert(slot, &pending[slot], policy);
        }
    }

    /// Ends the waits that are due.
    #[inline]
    fn wake_due(&mut self, now: Time, pending: &ArrivingFlows<PendingFlow>, policy: Policy) {
        let Self { first, others, positions, arriving, arriving_positions, .. } = self;
        #[cfg(test)]
        let looks = &mut self.n_examined;
        let mut wake = |flows: &mut Candidates<Key>| {
            while let Some(slot) = flows.due(now) {
                #[cfg(test)]
                {
                    *looks += 1;
                }
                arriving.remove(arriving_positions, slot);
                flows.make_ready(positions, slot, key(&pending[slot], policy));
            }
        };
        first.wake(now, &mut wake);
        for flows in others.values_mut() {
            flows.wake(now, &mut wake);
        }
    }

    /// Returns the slot of the first flow that may have a token.
    #[inline]
    fn first_ready(&self, served: &TenantCounts) -> Option<u32> {
        let none = TenantId::default();
        if self.others.is_empty() {
            return self.first.first().map(|(_, slot)| slot);
        }
        let others = self.others.iter().map(|(&tenant, flows)| (tenant, flows));
        let firsts = others.chain([(none, &self.first)]).filter_map(|(tenant, flows)| {
            let (key, slot) = flows.first()?;
            Some((served.get(tenant), key, slot, tenant))
        });
        firsts.min().map(|(_, _, slot, _)| slot)
    }
}
