//! A transport whose ports are watched. It is the same transport: endpoints and programs of
//! switches are passed on. [`SwitchProgram::IS_WATCHED`] is set, so that the compiled simulator
//! notes the events of ports.

use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_types::{
    Departure, NodeId, Packet, Queueing, Rng, SwitchFacts, SwitchProgram, Time, TransitPacket,
    Transport, Verdict,
};

/// The transport `F`, watched: its probe gets [`Probe::on_port`](crate::Probe::on_port).
#[derive(Clone, Copy, Debug)]
pub struct WatchedTransport<F>(PhantomData<fn() -> F>);

/// The program of a switch whose ports are watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchedHop<P>(P);

impl<F: Transport> Transport for WatchedTransport<F> {
    const NAME: &'static str = F::NAME;
    const HAS_ARBITERS: bool = F::HAS_ARBITERS;
    const EVENTS_PER_CLOCK_READ: u64 = F::EVENTS_PER_CLOCK_READ;
    const IS_SINGLE_THREADED: bool = F::IS_SINGLE_THREADED;
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
    const HANDLES_FORWARD: bool = P::HANDLES_FORWARD;
    const HANDLES_DEPART: bool = P::HANDLES_DEPART;
    const HAS_TIMERS: bool = P::HAS_TIMERS;
    const COUNTS_INGRESS: bool = P::COUNTS_INGRESS;
    const QUEUEING: Queueing = P::QUEUEING;
    const IS_WATCHED: bool = true;

    fn on_forward(&mut self, crossing: TransitPacket<'_>, packet: &mut Packet<H>) -> Verdict {
        self.0.on_forward(crossing, packet)
    }

    #[inline]
    fn is_enabled(&self) -> bool {
        self.0.is_enabled()
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
