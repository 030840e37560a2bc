//! What a simulation shows of itself.

use rampmeter_core::{Family, Time};

use super::Sim;
use crate::fabric::Fabric;
use crate::ledger::Counters;
use crate::role::Role;

impl<F: Family, A, P> Sim<F, A, P> {
    /// The simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Totals so far.
    pub fn counters(&self) -> &Counters {
        &self.ledger.counters
    }

    /// What the endpoints of all hosts and arbiters have counted, added up by name; names in the
    /// order in which endpoints tell them.
    pub fn transport_counters(&self) -> Vec<(&'static str, u64)> {
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for station in &self.stations {
            // Stations of a kind tell the same names in the same order.
            let mut next = 0;
            station.endpoint.counters(&mut |name, value| {
                let is_next = sums.get(next).is_some_and(|&(known, _)| std::ptr::eq(known, name));
                let place = match is_next {
                    true => Some(next),
                    false => sums.iter().position(|&(known, _)| known == name),
                };
                let place = place.unwrap_or_else(|| {
                    sums.push((name, 0));
                    sums.len() - 1
                });
                sums[place].1 += value;
                next = place + 1;
            });
        }
        sums
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric<F::Header, F::Hop> {
        &self.fabric
    }

    /// The endpoint of `host`.
    pub fn endpoint(&self, host: u32) -> &F::Host {
        match &self.stations[host as usize].endpoint {
            Role::Host(endpoint) => endpoint,
            Role::Arbiter(_) => panic!("{host} is the number of an arbiter"),
        }
    }

    /// The endpoint of arbiter `number`, counted from zero.
    pub fn arbiter(&self, number: u32) -> &F::Arbiter {
        let station = self.fabric.topology().n_hosts() + number;
        match &self.stations[station as usize].endpoint {
            Role::Arbiter(endpoint) => endpoint,
            Role::Host(_) => panic!("there is no arbiter {number}"),
        }
    }

    /// The probe.
    pub fn probe(&self) -> &P {
        &self.probe
    }
}
