//! Failures and repairs of links, switches and arbiters.

use std::sync::Arc;

use rampmeter_types::{NodeId, Purpose, Rng, Time, Transport};

use super::{OUTAGE, Sim};
use crate::probe::Probe;
use crate::role::Role;
use crate::source::Source;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Applies the failures and repairs that are due.
    pub(super) fn apply_outages(&mut self) {
        let has_rerouted = self.fabric.apply_outages(self.now, &mut self.wheel);
        for switch in self.fabric.switches_restarting(self.now) {
            let hop = |switch| F::switch_program(&self.config, switch);
            self.fabric.reboot(switch, self.seed, hop, self.now, &mut self.wheel);
        }
        for arbiter in self.fabric.arbiters_restarting(self.now) {
            self.restart_arbiter(arbiter);
        }
        if has_rerouted {
            (0..self.fabric.topology().n_arbiters())
                .for_each(|arbiter| self.notify_links_down(arbiter));
        }
        self.schedule_outage();
    }

    /// Makes sure that there is an event for the next failure or repair.
    pub(super) fn schedule_outage(&mut self) {
        if let Some(at) = self.fabric.next_outage() {
            self.push_other(at, OUTAGE);
        }
    }

    /// An arbiter restarts after a crash, without state.
    fn restart_arbiter(&mut self, number: u32) {
        let station = self.fabric.topology().n_hosts() + number;
        let state = &mut self.stations[station];
        let rng = Rng::new(self.seed, u64::from(station), Purpose::Endpoint);
        let now = state.clock.local(self.now);
        let config = Arc::clone(&self.config);
        let arbiter = F::arbiter(config, number, NodeId::new(station), rng, now);
        state.endpoint = Role::Arbiter(arbiter);
        state.timer_at = Time::NEVER;
        self.notify_links_down(number);
    }

    /// Notifies an arbiter of the links that routing does not use.
    fn notify_links_down(&mut self, number: u32) {
        let station = self.fabric.topology().n_hosts() + number;
        let down = self.fabric.links_down();
        let state = &mut self.stations[station];
        state.endpoint.handle_links(state.clock.local(self.now), &down);
        self.after_input(station);
    }
}
