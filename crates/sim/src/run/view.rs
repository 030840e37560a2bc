//! Results that a simulation exposes.

use rampmeter_types::{SwitchProgram, Time, Transport, merge_counters};

use super::{Sim, WindowTotals};
use crate::fabric::Fabric;
use crate::ledger::Counters;
use crate::role::Role;

impl<F: Transport, A, P> Sim<F, A, P> {
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Totals so far.
    pub fn counters(&self) -> &Counters {
        &self.ledger.counters
    }

    /// Returns the totals of the windows in which the run was divided.
    pub fn windows(&self) -> WindowTotals {
        self.windows
    }

    /// Returns the counters of endpoints of all hosts and arbiters, and of programs of switches, by
    /// name. Those of one name are merged by [`merge_counters`].
    pub fn transport_counters(&self) -> Vec<(&'static str, u64)> {
        Self::counters_of(|| std::iter::once(self))
    }

    /// Returns the same counters of all `parts` of a run.
    pub(super) fn counters_of<'a, I: Iterator<Item = &'a Self>>(
        parts: impl Fn() -> I,
    ) -> Vec<(&'static str, u64)>
    where
        Self: 'a,
    {
        let mut totals = Totals::default();
        for (_, station) in parts().flat_map(|part| part.stations.iter()) {
            totals.next = 0;
            station.endpoint.counters(&mut |name, value| totals.add(name, value));
        }
        for program in parts().flat_map(|part| part.fabric.programs()) {
            totals.next = 0;
            program.counters(&mut |name, value| totals.add(name, value));
        }
        totals.all
    }

    /// Returns the fabric.
    pub fn fabric(&self) -> &Fabric<F::Header, F::SwitchProgram> {
        &self.fabric
    }

    /// Returns the endpoint of `host`, or that of its first plane.
    pub fn endpoint(&self, host: u32) -> &F::Host {
        match &self.stations[host].endpoint {
            Role::Host(endpoint) => endpoint,
            Role::Planes(host) => &host.parts[0],
            Role::Arbiter(_) => panic!("{host} is the number of an arbiter"),
        }
    }

    /// Returns the endpoint of arbiter `number`, counted from zero.
    pub fn arbiter(&self, number: u32) -> &F::Arbiter {
        let station = self.fabric.topology().n_hosts() + number;
        match &self.stations[station].endpoint {
            Role::Arbiter(endpoint) => endpoint,
            Role::Host(_) | Role::Planes(_) => panic!("there is no arbiter {number}"),
        }
    }

    /// Returns the probe.
    pub fn probe(&self) -> &P {
        &self.probe
    }
}

/// Counters of all endpoints and programs, by name.
#[derive(Default)]
struct Totals {
    all: Vec<(&'static str, u64)>,
    /// Position of the next expected name: those of a kind report the same names in the same order.
    next: usize,
}

impl Totals {
    fn add(&mut self, name: &'static str, value: u64) {
        let is_next = self.all.get(self.next).is_some_and(|&(known, _)| std::ptr::eq(known, name));
        let place = match is_next {
            true => Some(self.next),
            false => self.all.iter().position(|&(known, _)| known == name),
        };
        let place = place.unwrap_or_else(|| {
            self.all.push((name, 0));
            self.all.len() - 1
        });
        let total = &mut self.all[place].1;
        *total = merge_counters(name, *total, value);
        self.next = place + 1;
    }
}
