//! A family whose ports are watched. It is the same family: endpoints and programs of switches are
//! passed on. [`SwitchProgram::WATCHED`] is set, so that the compiled simulator notes the events of
//! ports.

use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_core::{
    Departure, Family, NodeId, Packet, Queueing, Rng, SwitchFacts, SwitchProgram, Time,
    TransitPacket, Verdict,
};

/// The family `F`, watched: its probe gets [`Probe::on_port`](crate::Probe::on_port).
#[derive(Clone, Copy, Debug)]
pub struct WatchedFamily<F>(PhantomData<fn() -> F>);

/// The program of a switch whose ports are watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchedHop<P>(P);

impl<F: Family> Family for WatchedFamily<F> {
    const NAME: &'static str = F::NAME;
    const HAS_ARBITERS: bool = F::HAS_ARBITERS;
    const BATCH: u64 = F::BATCH;
    type Config = F::Config;
    type Header = F::Header;
    type Host = F::Host;
    type Arbiter = F::Arbiter;
    type SwitchProgram = WatchedHop<F::SwitchProgram>;

    fn arbiter(
        config: Arc<Self::Config>,
        number: u32,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> Self::Arbiter {
        F::arbiter(config, number, node, rng, now)
    }

    fn switch_program(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::SwitchProgram {
        WatchedHop(F::switch_program(config, switch))
    }
}

impl<H, P: SwitchProgram<H>> SwitchProgram<H> for WatchedHop<P> {
    const ACTIVE: bool = P::ACTIVE;
    const DEPARTURES: bool = P::DEPARTURES;
    const TIMERS: bool = P::TIMERS;
    const INGRESS: bool = P::INGRESS;
    const QUEUEING: Queueing = P::QUEUEING;
    const WATCHED: bool = true;

    fn on_forward(&mut self, crossing: TransitPacket<'_>, packet: &mut Packet<H>) -> Verdict {
        self.0.on_forward(crossing, packet)
    }

    #[inline]
    fn is_on(&self) -> bool {
        self.0.is_on()
    }

    fn on_depart(&mut self, departure: Departure, packet: &mut Packet<H>) {
        self.0.on_depart(departure, packet);
    }

    fn poll_timeout(&self) -> Time {
        self.0.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<H>)> {
        self.0.poll_transmit()
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.0.counters(each);
    }
}
