//! The programs of switches: their facts, their packets, their timers, and new ones for switches
//! that restart.

use rampmeter_types::{Departure, Header, Packet, Purpose, Rng, SwitchFacts, SwitchProgram, Time};

use super::{Fabric, PortChange};
use crate::engine::event::{PROGRAM, event};
use crate::engine::{Handle, Wheel};

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the program of a switch.
    pub fn program(&self, switch: u32) -> &P {
        &self.programs[switch as usize]
    }

    /// Returns the programs of all switches, in their order.
    pub(crate) fn programs(&self) -> &[P] {
        &self.programs
    }

    /// Returns the facts that the program of a switch is created with.
    pub(super) fn switch_facts(&self, switch: u32, seed: u64) -> SwitchFacts {
        let [first, end] = [0, 1].map(|n| self.first_ports[switch as usize + n]);
        SwitchFacts {
            number: switch,
            first_port: if first < end { first } else { 0 },
            rates: self.rates[first as usize..end as usize].to_vec(),
            rng: Rng::new(seed, u64::from(switch), Purpose::SwitchProgram),
        }
    }

    /// Gives a switch that has forgotten everything a new program.
    pub(crate) fn reboot(
        &mut self,
        switch: u32,
        seed: u64,
        hop: impl Fn(SwitchFacts) -> P,
        now: Time,
        wheel: &mut Wheel,
    ) {
        self.programs[switch as usize] = hop(self.switch_facts(switch, seed));
        if P::HAS_TIMERS {
            // An event of the old program means nothing to the new one.
            self.timers[switch as usize] = Time::NEVER;
            self.set_program_timer(switch, now, wheel);
        }
    }

    /// Sets the first timers of all programs.
    pub(crate) fn start_programs(&mut self, wheel: &mut Wheel) {
        for switch in 0..self.timers.len() as u32 {
            self.set_program_timer(switch, Time::ZERO, wheel);
        }
    }

    /// The timer event of a switch's program.
    #[cold]
    pub(crate) fn program_timeout(&mut self, switch: u32, now: Time, wheel: &mut Wheel) {
        if self.timers[switch as usize] != now {
            return;
        }
        self.timers[switch as usize] = Time::NEVER;
        let hop = &mut self.programs[switch as usize];
        if hop.poll_timeout() <= now {
            hop.handle_timeout(now);
        }
        self.run_program(switch, now, wheel);
    }

    /// Sends the packets of a program after an input, and sets its timer.
    #[inline]
    pub(super) fn run_program(&mut self, switch: u32, now: Time, wheel: &mut Wheel) {
        while let Some((port, packet)) = self.programs[switch as usize].poll_transmit() {
            self.send_made(switch, port, packet, now, wheel);
        }
        if P::HAS_TIMERS {
            self.set_program_timer(switch, now, wheel);
        }
    }

    /// Takes a packet out of the fabric that a program has kept.
    pub(super) fn consume(&mut self, via: u32, handle: Handle) {
        self.record(via, |_| PortChange::Consume { handle });
        self.pool.remove(handle);
        self.occupancy.forget(handle);
        self.stats.consumed += 1;
    }

    /// Sends a packet that a program has made. Not inlined: most inputs make none.
    #[inline(never)]
    fn send_made(
        &mut self,
        switch: u32,
        port: u32,
        packet: Packet<H>,
        now: Time,
        wheel: &mut Wheel,
    ) {
        let handle = self.enter_pool(packet, now);
        if P::COUNTS_INGRESS || self.ingress.is_on {
            self.ingress.on_created(handle);
        }
        self.defer_cut_through(switch, port, handle, now, wheel);
    }

    fn set_program_timer(&mut self, switch: u32, now: Time, wheel: &mut Wheel) {
        let deadline = self.programs[switch as usize].poll_timeout();
        if deadline == Time::NEVER {
            return;
        }
        let (at, set) = (deadline.max(now), &mut self.timers[switch as usize]);
        if at < *set {
            *set = at;
            wheel.push(event(at, PROGRAM, switch));
        }
    }

    /// Shows a program the packet that one of its switch's ports begins to send.
    pub(super) fn show_departure(&mut self, port: u32, handle: Handle, now: Time) {
        let (of, rate) = (&self.ports[port as usize], self.rates[port as usize]);
        let departure = Departure { now, port, rate, queued: of.queued, sent: of.tx_bytes };
        let switch = of.switch as usize;
        self.programs[switch].on_depart(departure, self.pool.get_mut(handle));
    }
}
