//! Packets served, by tenant, for policies that divide a link among tenants.

use std::collections::BTreeMap;

use rampmeter_types::TenantId;

/// Tenants with numbers below this have their counters in a table, which a header can make 8 KB
/// long at most.
const DENSE: usize = 1_024;

/// Counters by tenant. Memory is that of the tenants served, regardless of numbers in headers.
#[derive(Clone, Debug, Default)]
pub struct TenantCounts {
    dense: Vec<u64>,
    others: BTreeMap<u32, u64>,
}

impl TenantCounts {
    /// Returns the packets served to a tenant.
    pub fn get(&self, tenant: TenantId) -> u64 {
        match self.dense.get(tenant.idx()) {
            Some(&served) => served,
            None => self.others.get(&tenant.get()).copied().unwrap_or(0),
        }
    }

    /// Counts a packet.
    pub fn count(&mut self, tenant: TenantId) {
        *self.counter_mut(tenant) += 1;
    }

    /// Moves `packets` of a flow whose tenant was not known from the counter of `from` to that of
    /// `to`.
    pub fn transfer(&mut self, from: TenantId, to: TenantId, packets: u32) {
        let served = self.counter_mut(from);
        let moved = (*served).min(packets.into());
        *served -= moved;
        *self.counter_mut(to) += moved;
    }

    fn counter_mut(&mut self, tenant: TenantId) -> &mut u64 {
        if tenant.idx() >= DENSE {
            return self.others.entry(tenant.get()).or_default();
        }
        if self.dense.len() <= tenant.idx() {
            self.dense.resize(tenant.idx() + 1, 0);
        }
        &mut self.dense[tenant.idx()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_transferred_between_tenants() {
        let [none, other] = [0, 7_000].map(TenantId::new);
        let mut served = TenantCounts::default();
        (0..5).for_each(|_| served.count(none));
        served.transfer(none, other, 3);
        assert_eq!((served.get(none), served.get(other)), (2, 3));
        // No more than there is.
        served.transfer(none, other, 3);
        assert_eq!((served.get(none), served.get(other)), (0, 5));
    }
}
