//! Which pending flow a destination serves next (pHost §3.3).
//!
//! Flows that may have a token come by the policy's key, lowest first. Under `tenant-fair` each
//! tenant has its own, and the tenant that was served least comes first. With n flows a packet takes
//! O(log n) steps. So does a token, and one step for each tenant with flows.

use std::collections::BTreeMap;

use rampmeter_core::collections::Places;
use rampmeter_core::{TenantId, Time};

use super::config::{Phost, Policy};
use super::pacing::Pacing;
use super::receiver::{Pending, Readiness, RxFlow};
use crate::parts::{ArrivingFlows, Candidates, Served};

/// By what flows of a tenant are preferred: the policy's measure, then the announcement.
type Key = (u64, u64);

/// The pending flows of a destination.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Those of tenant zero; all of them under policies that ignore tenants.
    first: Candidates<Key>,
    /// Those of other tenants, of which each has some.
    others: BTreeMap<TenantId, Candidates<Key>>,
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
    /// The flows of a tenant, and the places of all.
    #[inline]
    fn of(&mut self, tenant: TenantId) -> (&mut Candidates<Key>, &mut Places) {
        let flows = match tenant == TenantId::default() {
            true => &mut self.first,
            false => self.others.entry(tenant).or_default(),
        };
        (flows, &mut self.places)
    }

    /// Enters a flow that is new, or notes that it is held or not any more.
    pub(super) fn enter(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        let (flows, places) = self.of(tenant(flow, policy));
        if flow.is_held {
            flows.wait(places, slot, Time::NEVER);
        } else {
            flows.wake(places, slot, key(flow, policy));
        }
    }

    /// Notes that a packet of the flow has arrived, which may end a wait for data.
    #[inline]
    pub(super) fn on_packet(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        let (flows, places) = self.of(tenant(flow, policy));
        if flow.waits_for_data() || flows.key(places, slot).is_some() {
            flows.wake(places, slot, key(flow, policy));
        }
    }

    /// Drops a flow that is over, or whose tenant or deadline is about to change.
    pub(super) fn leave(&mut self, slot: u32, flow: &RxFlow, policy: Policy) {
        let tenant = tenant(flow, policy);
        let (flows, places) = self.of(tenant);
        flows.remove(places, slot);
        if flows.is_empty() {
            self.others.remove(&tenant);
        }
    }

    /// The flow that is served next. If there is none, the instant until which all wait;
    /// [`Time::NEVER`] if there are only held ones.
    pub(super) fn pick(
        &mut self,
        now: Time,
        pending: &mut ArrivingFlows<Pending>,
        pacing: &Pacing,
        served: &Served,
        phost: &Phost,
    ) -> Result<u32, Time> {
        let policy = phost.config.policy;
        let wake_due = |flows: &mut Candidates<Key>, places: &mut Places| {
            while let Some(slot) = flows.due(now) {
                flows.wake(places, slot, key(&pending[slot], policy));
            }
        };
        wake_due(&mut self.first, &mut self.places);
        for flows in self.others.values_mut() {
            wake_due(flows, &mut self.places);
        }
        while let Some((slot, tenant)) = self.best(served) {
            match pending[slot].readiness(now, pacing, phost) {
                Readiness::Ready => return Ok(slot),
                Readiness::Waits(until) => {
                    let (flows, places) = self.of(tenant);
                    flows.wait(places, slot, until);
                }
            }
        }
        let others = self.others.values().map(Candidates::deadline);
        Err(others.fold(self.first.deadline(), Time::min))
    }

    /// The first of the flows that may have a token, and the tenant that it is entered for.
    #[inline]
    fn best(&self, served: &Served) -> Option<(u32, TenantId)> {
        let none = TenantId::default();
        if self.others.is_empty() {
            return self.first.first().map(|(_, slot)| (slot, none));
        }
        let others = self.others.iter().map(|(&tenant, flows)| (tenant, flows));
        let firsts = others.chain([(none, &self.first)]).filter_map(|(tenant, flows)| {
            let (key, slot) = flows.first()?;
            Some((served.get(tenant), key, slot, tenant))
        });
        firsts.min().map(|(.., slot, tenant)| (slot, tenant))
    }
}
