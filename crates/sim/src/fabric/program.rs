//! The programs of switches: what they are told, and new ones for switches that come back.

use rampmeter_core::{Header, Hop, Purpose, Rng, SwitchFacts};

use super::Fabric;

impl<H: Header, P: Hop<H>> Fabric<H, P> {
    /// The program of a switch.
    pub fn program(&self, switch: u32) -> &P {
        &self.hops[switch as usize]
    }

    /// What the program of a switch is told.
    pub(super) fn switch_facts(&self, switch: u32, seed: u64) -> SwitchFacts {
        let is_its =
            |&port: &usize| port >= self.n_ends as usize && self.ports[port].switch == switch;
        let ports: Vec<usize> = (0..self.ports.len()).filter(is_its).collect();
        SwitchFacts {
            number: switch,
            first_port: ports.first().map_or(0, |&port| port as u32),
            rates: ports.iter().map(|&port| self.rates[port]).collect(),
            rng: Rng::new(seed, u64::from(switch), Purpose::Hop),
        }
    }

    /// Gives a switch that has forgotten everything a new program.
    pub(crate) fn reboot(&mut self, switch: u32, seed: u64, hop: impl Fn(SwitchFacts) -> P) {
        self.hops[switch as usize] = hop(self.switch_facts(switch, seed));
    }
}
