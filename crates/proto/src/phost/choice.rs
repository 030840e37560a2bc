//! Which pending flow a destination serves next (pHost §3.3).
//!
//! Flows that may have a token are in a heap by the policy's key, those that must wait in one by
//! until when. Where tenants count each has two heaps, and the tenant that was served least comes
//! first. So with n flows a packet takes O(log n) steps, and a token as many and one for each tenant.

use std::collections::BTreeMap;

use rampmeter_core::collections::{KeyedHeap, Places};
use rampmeter_core::{TenantId, Time};

use super::config::{Phost, Policy};
use super::receiver::{Pending, Readiness, RxFlow};
use crate::parts::{ArrivingFlows, Served};

/// By what flows of a tenant are preferred, lowest first: the policy's measure, then the
/// announcement. Of equals the flow in the lowest slot comes first.
type Key = (u64, u64);

/// The flows of a tenant, or all flows where tenants do not count.
#[derive(Debug, Default)]
struct Queue {
    /// Flows that may have a token, or did when they were last asked.
    awake: KeyedHeap<Key>,
    /// Flows that wait, by until when; held ones for ever.
    waiting: KeyedHeap<Time>,
}

/// Where a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Awake(TenantId),
    Waiting(TenantId),
}

/// The pending flows of a destination.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// That of tenant zero, or of all.
    first: Queue,
    /// Those of other tenants with flows.
    others: BTreeMap<TenantId, Queue>,
    /// Where the flow of each slot is.
    at: Vec<Place>,
    places: Places,
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

impl Queue {
    /// Moves flows whose wait is over to those that may have a token.
    #[inline]
    fn wake(
        &mut self,
        now: Time,
        tenant: TenantId,
        at: &mut [Place],
        places: &mut Places,
        key: impl Fn(u32) -> Key,
    ) {
        while let Some((until, slot)) = self.waiting.first()
            && until <= now
        {
            self.waiting.remove(places, slot);
            self.awake.set(places, slot, key(slot));
            at[slot as usize] = Place::Awake(tenant);
        }
    }
}

impl Choice {
    #[inline]
    fn queue(&mut self, tenant: TenantId) -> (&mut Queue, &mut Places) {
        let queue = match tenant == TenantId::default() {
            true => &mut self.first,
            false => self.others.entry(tenant).or_default(),
        };
        (queue, &mut self.places)
    }

    /// Enters a flow that is new, or whose tenant, deadline or hold has changed.
    pub(super) fn place(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        self.leave(slot);
        if self.at.len() <= slot as usize {
            self.at.resize(slot as usize + 1, Place::Nowhere);
        }
        let tenant = tenant(flow, policy);
        let (queue, places) = self.queue(tenant);
        if flow.is_held {
            queue.waiting.set(places, slot, Time::NEVER);
            self.at[slot as usize] = Place::Waiting(tenant);
        } else {
            queue.awake.set(places, slot, key(flow, policy));
            self.at[slot as usize] = Place::Awake(tenant);
        }
    }

    /// Notes that a packet of the flow has arrived, which may end a wait for data.
    #[inline]
    pub(super) fn on_packet(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        match self.at[slot as usize] {
            Place::Awake(tenant) => {
                let (queue, places) = self.queue(tenant);
                queue.awake.lower(places, slot, key(flow, policy));
            }
            Place::Waiting(_) if flow.waits_for_data() => self.place(slot, flow, policy),
            Place::Waiting(_) | Place::Nowhere => {}
        }
    }

    /// Drops a flow that is over.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some(at) = self.at.get_mut(slot as usize).map(std::mem::take) else { return };
        let (Place::Awake(tenant) | Place::Waiting(tenant)) = at else { return };
        let (queue, places) = self.queue(tenant);
        match at {
            Place::Awake(_) => queue.awake.remove(places, slot),
            Place::Waiting(_) | Place::Nowhere => queue.waiting.remove(places, slot),
        };
        if queue.awake.is_empty() && queue.waiting.is_empty() {
            self.others.remove(&tenant);
        }
    }

    /// The flow that is served next. If there is none, the instant until which all wait: never
    /// without flows that are not held.
    pub(super) fn pick(
        &mut self,
        now: Time,
        flows: &mut ArrivingFlows<Pending>,
        served: &Served,
        phost: &Phost,
    ) -> Result<u32, Time> {
        let Self { first, others, at, places } = self;
        let key = |slot: u32| key(&flows[slot], phost.config.policy);
        first.wake(now, TenantId::default(), at, places, key);
        for (&tenant, queue) in others.iter_mut() {
            queue.wake(now, tenant, at, places, key);
        }
        loop {
            let Some((slot, tenant)) = self.best(served) else {
                let until = self.others.values().filter_map(|queue| queue.waiting.first());
                let until = until.chain(self.first.waiting.first()).map(|(until, _)| until);
                return Err(until.min().unwrap_or(Time::NEVER));
            };
            let Readiness::Waits(until) = flows[slot].readiness(now, phost) else {
                return Ok(slot);
            };
            let (queue, places) = self.queue(tenant);
            queue.awake.remove(places, slot);
            queue.waiting.set(places, slot, until);
            self.at[slot as usize] = Place::Waiting(tenant);
        }
    }

    /// The first of the flows that may have a token, and the tenant that its queue is for.
    #[inline]
    fn best(&self, served: &Served) -> Option<(u32, TenantId)> {
        let none = TenantId::default();
        if self.others.is_empty() {
            return self.first.awake.first().map(|(_, slot)| (slot, none));
        }
        let queues = self.others.iter().map(|(&tenant, queue)| (tenant, queue));
        let firsts = queues.chain([(none, &self.first)]).filter_map(|(tenant, queue)| {
            let (key, slot) = queue.awake.first()?;
            Some((served.get(tenant), key, slot, tenant))
        });
        firsts.min().map(|(.., slot, tenant)| (slot, tenant))
    }
}
