//! Two transports on one network: one that promises a bound, and one in lower classes (cosy §4).
//!
//! Messages of the first tenant belong to the upper transport, all others to the lower. Both see
//! the links as theirs. The classes of the upper are served first. To the lower the upper's share
//! looks like traffic of others.

mod arbiter;

use std::marker::PhantomData;
use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::wire::{Reader, Writer};
use rampmeter_core::{
    ClockOrigin, Departure, Endpoint, Event, FabricFacts, Family, Gauge, Header, Hop, Message,
    MsgId, NodeId, Packet, Phase, Priority, Promise, Queueing, Receipt, Rng, SwitchFacts, TenantId,
    Time, TransitPacket, Verdict, WireError,
};

pub use self::arbiter::BesideArbiter;
use crate::keys::BadKey;
use crate::parts::Framing;
use crate::transport::{Site, Transport};

/// The family of `A` above `B`. At most one of them has arbiters, and both need ports to queue the
/// same way; anything else does not compile.
#[derive(Clone, Copy, Debug)]
pub struct Beside<A, B>(PhantomData<fn() -> (A, B)>);

/// The parameters of both.
#[derive(Debug)]
pub struct Both<A, B> {
    /// Those of the upper transport.
    pub upper: Arc<A>,
    /// Those of the lower.
    pub lower: Arc<B>,
}

impl<A, B> Both<A, B> {
    /// Returns the parameters of both at `site`. The lower transport assumes the network `told`.
    ///
    /// # Errors
    /// A parameter that cannot be used there.
    pub fn configure<U, L>(
        upper: U::Keys,
        lower: L::Keys,
        site: &Site,
        told: FabricFacts,
    ) -> Result<Self, BadKey>
    where
        U: Transport<Config = A>,
        L: Transport<Config = B>,
    {
        let Framing { payload, header, .. } = L::framing(&lower);
        let (payload, header) = site.packet((payload, header));
        let above = Site { lower: Some(payload + header), ..site.clone() };
        let upper = U::configure(upper, &above)?;
        let site = Site { facts: told, ..site.clone() };
        let lower = L::configure(lower, &site).map_err(below)?;
        Ok(Self { upper: Arc::new(upper), lower: Arc::new(lower) })
    }
}

/// Returns an error of the lower transport's keys.
pub fn below(bad: BadKey) -> BadKey {
    BadKey { key: format!("best-effort.{}", bad.key), ..bad }
}

/// Returns the number in front of packets of two transports between hosts: 64, 8 times the upper's
/// and the lower's. `None` if there is none, as for transports outside this repository.
pub fn wire(upper: TransportId, lower: TransportId) -> Option<TransportId> {
    let is_small = upper.0 < 8 && lower.0 < 8;
    is_small.then(|| TransportId(64 + 8 * upper.0 + lower.0))
}

/// A header of either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Either<A, B> {
    /// Of the upper transport.
    Upper(A),
    /// Of the lower.
    Lower(B),
}

/// The endpoints of both at one host.
#[derive(Debug)]
pub struct BesideHost<A, B> {
    upper: A,
    lower: B,
}

/// The programs of both at one switch.
#[derive(Debug)]
pub struct BesideHop<A, B> {
    upper: A,
    lower: B,
}

/// The parts of a node's random stream that the transports have.
pub(crate) const UPPER: u64 = 0;
pub(crate) const LOWER: u64 = 1;

/// Classes that are the upper transport's: those of the lower start below.
const UPPER_CLASSES: u8 = 2;

impl<A: Family, B: Family> Family for Beside<A, B> {
    const NAME: &'static str = "beside";
    const HAS_ARBITERS: bool = A::HAS_ARBITERS || B::HAS_ARBITERS;
    type Config = Both<A::Config, B::Config>;
    type Header = Either<A::Header, B::Header>;
    type Host = BesideHost<A::Host, B::Host>;
    type Arbiter = BesideArbiter<A, B>;
    type Hop = BesideHop<A::Hop, B::Hop>;

    fn arbiter(
        config: Arc<Self::Config>,
        number: u32,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> Self::Arbiter {
        const { assert!(!(A::HAS_ARBITERS && B::HAS_ARBITERS), "both transports have arbiters") };
        if A::HAS_ARBITERS {
            let config = Arc::clone(&config.upper);
            BesideArbiter::Upper(A::arbiter(config, number, node, rng.part(UPPER), now))
        } else {
            let config = Arc::clone(&config.lower);
            BesideArbiter::Lower(B::arbiter(config, number, node, rng.part(LOWER), now))
        }
    }

    fn hop(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::Hop {
        let of = |part| SwitchFacts { rng: switch.rng.part(part), ..switch.clone() };
        let upper = A::hop(&config.upper, of(UPPER));
        BesideHop { upper, lower: B::hop(&config.lower, of(LOWER)) }
    }
}

impl<A: Header, B: Header> Header for Either<A, B> {
    fn wire_len(&self) -> usize {
        match self {
            Self::Upper(header) => 1 + header.wire_len(),
            Self::Lower(header) => 1 + header.wire_len(),
        }
    }

    fn rank(&self) -> u32 {
        match self {
            Self::Upper(header) => header.rank(),
            Self::Lower(header) => header.rank(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Upper(header) => header.kind(),
            Self::Lower(header) => header.kind(),
        }
    }

    fn fields(&self, tell: &mut dyn FnMut(&'static str, &'static str, u64)) {
        match self {
            Self::Upper(header) => header.fields(tell),
            Self::Lower(header) => header.fields(tell),
        }
    }

    fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let got = out.len();
        let mut w = Writer::new(out);
        w.u8(u8::from(matches!(self, Self::Lower(_))))?;
        let rest = out.get_mut(1..).unwrap_or_default();
        let written = match self {
            Self::Upper(header) => header.encode(rest),
            Self::Lower(header) => header.encode(rest),
        };
        written.map(|n| n + 1).map_err(|error| after_tag(error, got))
    }

    fn decode(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let tag = Reader::new(bytes).u8()?;
        let (got, rest) = (bytes.len(), bytes.get(1..).unwrap_or_default());
        let decoded = match tag {
            0 => A::decode(rest).map(|(header, n)| (Self::Upper(header), n + 1)),
            1 => B::decode(rest).map(|(header, n)| (Self::Lower(header), n + 1)),
            other => return Err(WireError::UnknownType(other)),
        };
        decoded.map_err(|error| after_tag(error, got))
    }
}

/// Returns an error of what follows the first byte, with lengths from the front.
fn after_tag(error: WireError, got: usize) -> WireError {
    match error {
        WireError::Truncated { needed, .. } => WireError::Truncated { needed: needed + 1, got },
        other => other,
    }
}

/// The same packet with another header.
pub(crate) fn with<H, G>(packet: &Packet<H>, header: G) -> Packet<G> {
    let Packet { payload, src, dst, wire_bytes, path, priority, marks, .. } = *packet;
    Packet { header, payload, src, dst, wire_bytes, path, priority, marks }
}

/// Returns a packet of the lower transport, in its class below the upper's.
fn lowered<A, B: Copy>(packet: &Packet<B>) -> Packet<Either<A, B>> {
    let class = packet.priority.get().saturating_add(UPPER_CLASSES);
    Packet { priority: Priority::new(class), ..with(packet, Either::Lower(packet.header)) }
}

fn raised<A: Copy, B>(packet: &Packet<A>) -> Packet<Either<A, B>> {
    with(packet, Either::Upper(packet.header))
}

impl<A: Endpoint, B: Endpoint> Endpoint for BesideHost<A, B> {
    type Header = Either<A::Header, B::Header>;
    type Config = Both<A::Config, B::Config>;

    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        let upper = A::new(Arc::clone(&config.upper), node, rng.part(UPPER), now);
        Self { upper, lower: B::new(Arc::clone(&config.lower), node, rng.part(LOWER), now) }
    }

    fn set_clock_origin(&mut self, now: Time, origin: ClockOrigin) {
        self.upper.set_clock_origin(now, origin);
        self.lower.set_clock_origin(now, origin);
    }

    fn submit(&mut self, now: Time, message: Message) {
        match is_upper(&message) {
            true => self.upper.submit(now, message),
            false => self.lower.submit(now, message),
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.upper.cancel(now, msg);
        self.lower.cancel(now, msg);
    }

    fn promise(&self) -> Option<Promise> {
        self.upper.promise().map(|promise| Promise { tenant: Some(FIRST), ..promise })
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        match packet.header {
            Either::Upper(header) => self.upper.handle_packet(now, &with(packet, header)),
            Either::Lower(header) => self.lower.handle_packet(now, &with(packet, header)),
        }
    }

    fn has_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            Either::Upper(header) => self.upper.has_delivered(now, &with(packet, header)),
            Either::Lower(header) => self.lower.has_delivered(now, &with(packet, header)),
        }
    }

    fn has_arrived(&mut self, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            Either::Upper(header) => self.upper.has_arrived(&with(packet, header)),
            Either::Lower(header) => self.lower.has_arrived(&with(packet, header)),
        }
    }

    fn hold(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.hold(now, src, msg);
        self.lower.hold(now, src, msg);
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.release(now, src, msg);
        self.lower.release(now, src, msg);
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.abandon(now, src, msg);
        self.lower.abandon(now, src, msg);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.upper.counters(each);
        self.lower.counters(each);
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.upper.gauges(each);
        self.lower.gauges(each);
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        self.upper.phases(each);
        self.lower.phases(each);
    }

    fn messages(&self) -> Option<(usize, usize)> {
        let ((sent, arriving), lower) = (self.upper.messages()?, self.lower.messages()?);
        Some((sent + lower.0, arriving + lower.1))
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.upper.limit_arriving(per_peer);
        self.lower.limit_arriving(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.upper.arriving_excess() + self.lower.arriving_excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.upper.forget_peer(now, peer);
        self.lower.forget_peer(now, peer);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.upper.handle_timeout(now);
        self.lower.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        if let Some(packet) = self.upper.poll_transmit(now) {
            return Some(raised(&packet));
        }
        self.lower.poll_transmit(now).map(|packet| lowered(&packet))
    }

    fn wants_transmit(&self) -> bool {
        self.upper.wants_transmit() || self.lower.wants_transmit()
    }

    fn poll_timeout(&self) -> Time {
        self.upper.poll_timeout().min(self.lower.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.upper.poll_event().or_else(|| self.lower.poll_event())
    }
}

/// The tenant whose messages are the upper transport's.
const FIRST: TenantId = TenantId::new(0);

fn is_upper(message: &Message) -> bool {
    message.tenant == FIRST
}

impl<A, B, P, Q> Hop<Either<A, B>> for BesideHop<P, Q>
where
    A: Header,
    B: Header,
    P: Hop<A>,
    Q: Hop<B>,
{
    const ACTIVE: bool = P::ACTIVE || Q::ACTIVE;
    const DEPARTURES: bool = P::DEPARTURES || Q::DEPARTURES;
    const TIMERS: bool = P::TIMERS || Q::TIMERS;
    const INGRESS: bool = P::INGRESS || Q::INGRESS;
    const QUEUEING: Queueing = match (P::QUEUEING, Q::QUEUEING) {
        (Queueing::Classes, Queueing::Classes) => Queueing::Classes,
        (Queueing::Ranks, Queueing::Ranks) => Queueing::Ranks,
        _ => panic!("the two transports want ports to queue in different ways"),
    };

    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<Either<A, B>>,
    ) -> Verdict {
        match packet.header {
            Either::Upper(header) => {
                let mut own = with(packet, header);
                let verdict = self.upper.on_forward(crossing, &mut own);
                *packet = raised(&own);
                verdict
            }
            Either::Lower(header) => {
                let mut own = with(packet, header);
                let verdict = self.lower.on_forward(crossing, &mut own);
                *packet = with(&own, Either::Lower(own.header));
                verdict
            }
        }
    }

    fn on_depart(&mut self, departure: Departure, packet: &mut Packet<Either<A, B>>) {
        match packet.header {
            Either::Upper(header) => {
                let mut own = with(packet, header);
                self.upper.on_depart(departure, &mut own);
                *packet = raised(&own);
            }
            Either::Lower(header) => {
                let mut own = with(packet, header);
                self.lower.on_depart(departure, &mut own);
                *packet = with(&own, Either::Lower(own.header));
            }
        }
    }

    fn poll_timeout(&self) -> Time {
        self.upper.poll_timeout().min(self.lower.poll_timeout())
    }

    fn handle_timeout(&mut self, now: Time) {
        self.upper.handle_timeout(now);
        self.lower.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<Either<A, B>>)> {
        if let Some((port, packet)) = self.upper.poll_transmit() {
            return Some((port, raised(&packet)));
        }
        self.lower.poll_transmit().map(|(port, packet)| (port, lowered(&packet)))
    }
}
