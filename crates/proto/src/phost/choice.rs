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
    /// Those with flows.
    queues: BTreeMap<TenantId, Queue>,
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

impl Choice {
    /// Enters a flow that is new, or whose tenant, deadline or hold has changed.
    pub(super) fn place(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        self.leave(slot);
        if self.at.len() <= slot as usize {
            self.at.resize(slot as usize + 1, Place::Nowhere);
        }
        let tenant = tenant(flow, policy);
        let queue = self.queues.entry(tenant).or_default();
        if flow.is_held {
            queue.waiting.set(&mut self.places, slot, Time::NEVER);
            self.at[slot as usize] = Place::Waiting(tenant);
        } else {
            queue.awake.set(&mut self.places, slot, key(flow, policy));
            self.at[slot as usize] = Place::Awake(tenant);
        }
    }

    /// Notes that a packet of the flow has arrived, which may end a wait for data.
    #[inline]
    pub(super) fn on_packet(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        match self.at[slot as usize] {
            Place::Awake(tenant) => {
                if let Some(queue) = self.queues.get_mut(&tenant) {
                    queue.awake.lower(&mut self.places, slot, key(flow, policy));
                }
            }
            Place::Waiting(_) if flow.waits_for_data() => self.place(slot, flow, policy),
            Place::Waiting(_) | Place::Nowhere => {}
        }
    }

    /// Drops a flow that is over.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some(at) = self.at.get_mut(slot as usize).map(std::mem::take) else { return };
        let (Place::Awake(tenant) | Place::Waiting(tenant)) = at else { return };
        let Some(queue) = self.queues.get_mut(&tenant) else { return };
        match at {
            Place::Awake(_) => queue.awake.remove(&mut self.places, slot),
            Place::Waiting(_) | Place::Nowhere => queue.waiting.remove(&mut self.places, slot),
        };
        // The queue of those without tenants is always used again.
        if tenant != TenantId::default() && queue.awake.is_empty() && queue.waiting.is_empty() {
            self.queues.remove(&tenant);
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
        let policy = phost.config.policy;
        for (&tenant, queue) in &mut self.queues {
            while let Some((until, slot)) = queue.waiting.first()
                && until <= now
            {
                queue.waiting.remove(&mut self.places, slot);
                queue.awake.set(&mut self.places, slot, key(&flows[slot], policy));
                self.at[slot as usize] = Place::Awake(tenant);
            }
        }
        loop {
            let first = |(&tenant, queue): (&TenantId, &Queue)| {
                let (key, slot) = queue.awake.first()?;
                Some((served.get(tenant), key, slot, tenant))
            };
            let best = match policy {
                Policy::Srpt | Policy::Edf => self.queues.iter().next().and_then(first),
                Policy::TenantFair => self.queues.iter().filter_map(first).min(),
            };
            let Some((.., slot, tenant)) = best else {
                let until = self.queues.values().filter_map(|queue| queue.waiting.first());
                return Err(until.map(|(until, _)| until).min().unwrap_or(Time::NEVER));
            };
            let Readiness::Waits(until) = flows[slot].readiness(now, phost) else {
                return Ok(slot);
            };
            if let Some(queue) = self.queues.get_mut(&tenant) {
                queue.awake.remove(&mut self.places, slot);
                queue.waiting.set(&mut self.places, slot, until);
                self.at[slot as usize] = Place::Waiting(tenant);
            }
        }
    }
}
