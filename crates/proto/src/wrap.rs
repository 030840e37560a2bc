//! One transport wrapped in another: a layer around an endpoint that may hold back its packets and
//! change what it sends and receives (CAPTON over TCP is such a layer).
//!
//! The endpoint inside knows nothing of it. Applications submit messages to it and hear its events;
//! the layer sees every packet of it pass, both ways:
//!
//! ```text
//!   submit ─► inner endpoint ─► Layer::gate ─► link      a packet waits while the gate is closed
//!             inner endpoint ◄─ Layer::on_arrival ◄─ link    windows may be changed on the way
//!             Layer::poll_transmit, handle_packet        the layer's own packets, to its peers
//! ```
//!
//! A closed gate holds back one packet, and all that would follow it: the endpoint is not asked for
//! another, as if the link were busy. A layer that wants to slow down one peer only changes windows
//! in the packets that arrive from there.

use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_core::{
    Crossing, Departure, Endpoint, Event, Family, Header, Hop, Message, MsgId, NodeId, Packet,
    Phase, Promise, Queueing, Receipt, Rng, SwitchFacts, Time, Verdict,
};

use crate::beside::{Both, Either, LOWER, UPPER, with};

/// The parameters of a layer and of the family that it wraps.
pub type BothOf<L, F> = Both<<L as Layer<F>>::Config, <F as Family>::Config>;

/// What wraps the endpoints of family `F`.
pub trait Layer<F: Family>: Sized {
    /// The name of the wrapped family in plans.
    const NAME: &'static str;
    /// Whether the layer has arbiters.
    const HAS_ARBITERS: bool = false;
    /// The layer's own packets.
    type Header: Header;
    /// Its parameters.
    type Config: Send + Sync;
    /// Its controller; [`NoArbiter`](rampmeter_core::NoArbiter) for most.
    type Arbiter: Endpoint<Header = Either<Self::Header, F::Header>, Config = BothOf<Self, F>>;

    /// The layer at host `node`.
    fn new(config: &Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self;

    /// The application hands a message to the endpoint inside.
    fn on_submit(&mut self, _now: Time, _message: &Message) {}

    /// Whether a packet of the endpoint inside may leave at `now`.
    fn is_open(&self, now: Time, packet: &Packet<F::Header>) -> bool;

    /// A packet of the endpoint inside leaves; the layer may change it.
    fn on_leave(&mut self, now: Time, packet: &mut Packet<F::Header>);

    /// A packet for the endpoint inside has arrived; the layer may change it.
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet<F::Header>) {}

    /// A packet of a peer's layer has arrived.
    fn handle_packet(&mut self, _now: Time, _packet: &Packet<Self::Header>) {}

    /// A host or arbiter has lost its state.
    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {}

    /// A deadline may have passed.
    fn handle_timeout(&mut self, _now: Time) {}

    /// When [`Layer::handle_timeout`] wants to be called: also when the gate opens by itself.
    fn poll_timeout(&self) -> Time;

    /// The layer's next packet of its own, if any. These go first.
    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<Self::Header>> {
        None
    }

    /// Whether [`Layer::poll_transmit`] could answer with a packet now.
    fn wants_transmit(&self) -> bool {
        false
    }
}

/// The family of `F` wrapped in layer `L`. The layer's headers are [`Either::Upper`].
#[derive(Clone, Copy, Debug)]
pub struct Wrap<L, F>(PhantomData<fn() -> (L, F)>);

/// An endpoint in its layer.
#[derive(Debug)]
pub struct WrapHost<L, E: Endpoint> {
    layer: L,
    inner: E,
    /// The packet in front of the closed gate.
    waiting: Option<Packet<E::Header>>,
    /// The latest time that the endpoint was told.
    now: Time,
}

/// The switch program of the family inside. It does not see the layer's packets.
#[derive(Debug)]
pub struct WrapHop<P>(P);

impl<L: Layer<F> + 'static, F: Family> Family for Wrap<L, F> {
    const NAME: &'static str = L::NAME;
    const HAS_ARBITERS: bool = L::HAS_ARBITERS;
    type Config = Both<L::Config, F::Config>;
    type Header = Either<L::Header, F::Header>;
    type Host = WrapHost<LayerOf<L, F>, F::Host>;
    type Arbiter = L::Arbiter;
    type Hop = WrapHop<F::Hop>;

    fn hop(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::Hop {
        const { assert!(!F::HAS_ARBITERS, "the transport inside must not have arbiters") };
        WrapHop(F::hop(&config.lower, switch))
    }
}

/// A layer with the family that it wraps.
#[derive(Debug)]
pub struct LayerOf<L, F>(L, PhantomData<fn() -> F>);

impl<L: Layer<F>, F: Family> WrapHost<LayerOf<L, F>, F::Host> {
    /// The layer.
    pub fn layer(&self) -> &L {
        &self.layer.0
    }
}

impl<L: Layer<F>, F: Family> Endpoint for WrapHost<LayerOf<L, F>, F::Host> {
    type Header = Either<L::Header, F::Header>;
    type Config = Both<L::Config, F::Config>;

    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        let layer = LayerOf(L::new(&config.upper, node, rng.part(UPPER), now), PhantomData);
        let inner = F::Host::new(Arc::clone(&config.lower), node, rng.part(LOWER), now);
        Self { layer, inner, waiting: None, now }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.now = now;
        self.layer.0.on_submit(now, &message);
        self.inner.submit(now, message);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.now = now;
        self.inner.cancel(now, msg);
    }

    fn promise(&self) -> Option<Promise> {
        self.inner.promise()
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        self.now = now;
        match packet.header {
            Either::Upper(header) => {
                self.layer.0.handle_packet(now, &with(packet, header));
                Receipt::Control
            }
            Either::Lower(header) => {
                let mut own = with(packet, header);
                self.layer.0.on_arrival(now, &mut own);
                self.inner.handle_packet(now, &own)
            }
        }
    }

    fn has_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool {
        self.now = now;
        match packet.header {
            Either::Upper(_) => false,
            Either::Lower(header) => self.inner.has_delivered(now, &with(packet, header)),
        }
    }

    fn hold(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.inner.hold(now, src, msg);
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.inner.release(now, src, msg);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(each);
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        self.inner.phases(each);
    }

    fn messages(&self) -> Option<(usize, usize)> {
        self.inner.messages()
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.inner.limit_arriving(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.inner.arriving_excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.now = now;
        // What is for the peer's earlier life must not go to its new one.
        self.waiting.take_if(|packet| packet.dst == peer);
        self.layer.0.forget_peer(now, peer);
        self.inner.forget_peer(now, peer);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.layer.0.handle_timeout(now);
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        self.now = now;
        if let Some(packet) = self.layer.0.poll_transmit(now) {
            return Some(with(&packet, Either::Upper(packet.header)));
        }
        let mut packet = self.waiting.take().or_else(|| self.inner.poll_transmit(now))?;
        if !self.layer.0.is_open(now, &packet) {
            self.waiting = Some(packet);
            return None;
        }
        self.layer.0.on_leave(now, &mut packet);
        Some(with(&packet, Either::Lower(packet.header)))
    }

    fn wants_transmit(&self) -> bool {
        let inner_wants = match &self.waiting {
            Some(packet) => self.layer.0.is_open(self.now, packet),
            None => self.inner.wants_transmit(),
        };
        inner_wants || self.layer.0.wants_transmit()
    }

    fn poll_timeout(&self) -> Time {
        self.layer.0.poll_timeout().min(self.inner.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}

impl<A: Header, B: Header, P: Hop<B>> Hop<Either<A, B>> for WrapHop<P> {
    const ACTIVE: bool = P::ACTIVE;
    const DEPARTURES: bool = P::DEPARTURES;
    const TIMERS: bool = P::TIMERS;
    const INGRESS: bool = P::INGRESS;
    const QUEUEING: Queueing = P::QUEUEING;

    fn on_forward(&mut self, crossing: Crossing<'_>, packet: &mut Packet<Either<A, B>>) -> Verdict {
        let Either::Lower(header) = packet.header else { return Verdict::Forward };
        let mut own = with(packet, header);
        let verdict = self.0.on_forward(crossing, &mut own);
        *packet = with(&own, Either::Lower(own.header));
        verdict
    }

    fn on_depart(&mut self, departure: Departure, packet: &mut Packet<Either<A, B>>) {
        let Either::Lower(header) = packet.header else { return };
        let mut own = with(packet, header);
        self.0.on_depart(departure, &mut own);
        *packet = with(&own, Either::Lower(own.header));
    }

    fn poll_timeout(&self) -> Time {
        self.0.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<Either<A, B>>)> {
        let (port, packet) = self.0.poll_transmit()?;
        Some((port, with(&packet, Either::Lower(packet.header))))
    }
}
