//! Two transports on one network: one that promises a bound, and one in lower classes (cosy §4).
//!
//! Messages of the first tenant belong to the upper transport, all others to the lower. Both see
//! the links as theirs. The classes of the upper are served first. To the lower the upper's share
//! looks like traffic of others.

mod arbiter;
mod pair;

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::{
    ClockOrigin, Departure, Endpoint, Event, Gauge, Header, HostPolicy, LatencyBound, Message,
    MsgId, NodeId, Observation, Packet, Permission, Phase, Protocol, Queueing, Receipt, Rng,
    SwitchFacts, SwitchProgram, TenantId, Time, TransitPacket, Transport, Verdict,
};

pub use self::arbiter::CoexistingArbiter;
pub(crate) use self::pair::replace_header;
pub use self::pair::{Coexisting, CoexistingConfig, CoexistingHeader, prefix_lower_key};
use self::pair::{wrap_lower, wrap_upper};

/// Returns the number in front of packets of two transports between hosts: 64, 8 times the upper's
/// and the lower's. `None` if there is none, as for transports outside this repository.
pub fn combine_wire_ids(upper: TransportId, lower: TransportId) -> Option<TransportId> {
    let is_small = upper.0 < 8 && lower.0 < 8;
    is_small.then(|| TransportId(64 + 8 * upper.0 + lower.0))
}

/// The endpoints of both at one host.
#[derive(Debug)]
pub struct CoexistingHost<A, B> {
    upper: A,
    lower: B,
}

/// The programs of both at one switch.
#[derive(Debug)]
pub struct CoexistingProgram<A, B> {
    upper: A,
    lower: B,
}

/// The parts of a node's random stream that the transports have.
pub(crate) const UPPER: u64 = 0;
pub(crate) const LOWER: u64 = 1;

impl<A: Transport, B: Transport> Transport for Coexisting<A, B> {
    const NAME: &'static str = "beside";
    const HAS_ARBITERS: bool = A::HAS_ARBITERS || B::HAS_ARBITERS;
    type Config = CoexistingConfig<A::Config, B::Config>;
    type Header = CoexistingHeader<A::Header, B::Header>;
    type Host = CoexistingHost<A::Host, B::Host>;
    type Arbiter = CoexistingArbiter<A, B>;
    type SwitchProgram = CoexistingProgram<A::SwitchProgram, B::SwitchProgram>;

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
            CoexistingArbiter::Upper(A::arbiter(config, number, node, rng.substream(UPPER), now))
        } else {
            let config = Arc::clone(&config.lower);
            CoexistingArbiter::Lower(B::arbiter(config, number, node, rng.substream(LOWER), now))
        }
    }

    fn switch_program(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::SwitchProgram {
        let of = |part| SwitchFacts { rng: switch.rng.substream(part), ..switch.clone() };
        let upper = A::switch_program(&config.upper, of(UPPER));
        CoexistingProgram { upper, lower: B::switch_program(&config.lower, of(LOWER)) }
    }
}

impl<A: Endpoint, B: Endpoint> Protocol for CoexistingHost<A, B> {
    type Header = CoexistingHeader<A::Header, B::Header>;
    type Config = CoexistingConfig<A::Config, B::Config>;

    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        let upper = A::new(Arc::clone(&config.upper), node, rng.substream(UPPER), now);
        Self { upper, lower: B::new(Arc::clone(&config.lower), node, rng.substream(LOWER), now) }
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

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        match packet.header {
            CoexistingHeader::Upper(header) => {
                self.upper.handle_packet(now, &replace_header(packet, header))
            }
            CoexistingHeader::Lower(header) => {
                self.lower.handle_packet(now, &replace_header(packet, header))
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.upper.handle_timeout(now);
        self.lower.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        if let Some(packet) = self.upper.poll_transmit(now) {
            return Some(wrap_upper(&packet));
        }
        self.lower.poll_transmit(now).map(|packet| wrap_lower(&packet))
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

impl<A: Endpoint, B: Endpoint> Observation for CoexistingHost<A, B> {
    fn latency_bound(&self) -> Option<LatencyBound> {
        self.upper.latency_bound().map(|promise| LatencyBound { tenant: Some(FIRST), ..promise })
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

    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        self.upper.permission(now, msg).or_else(|| self.lower.permission(now, msg))
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        let ((sent, arriving), lower) =
            (self.upper.message_counts()?, self.lower.message_counts()?);
        Some((sent + lower.0, arriving + lower.1))
    }
}

impl<A: Endpoint, B: Endpoint> HostPolicy for CoexistingHost<A, B> {
    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            CoexistingHeader::Upper(header) => {
                self.upper.touch_if_delivered(now, &replace_header(packet, header))
            }
            CoexistingHeader::Lower(header) => {
                self.lower.touch_if_delivered(now, &replace_header(packet, header))
            }
        }
    }

    fn is_duplicate(&mut self, packet: &Packet<Self::Header>) -> bool {
        match packet.header {
            CoexistingHeader::Upper(header) => {
                self.upper.is_duplicate(&replace_header(packet, header))
            }
            CoexistingHeader::Lower(header) => {
                self.lower.is_duplicate(&replace_header(packet, header))
            }
        }
    }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.pause(now, src, msg);
        self.lower.pause(now, src, msg);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.resume(now, src, msg);
        self.lower.resume(now, src, msg);
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.upper.abandon(now, src, msg);
        self.lower.abandon(now, src, msg);
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
}

/// The tenant whose messages are the upper transport's.
const FIRST: TenantId = TenantId::new(0);

fn is_upper(message: &Message) -> bool {
    message.tenant == FIRST
}

impl<A, B, P, Q> SwitchProgram<CoexistingHeader<A, B>> for CoexistingProgram<P, Q>
where
    A: Header,
    B: Header,
    P: SwitchProgram<A>,
    Q: SwitchProgram<B>,
{
    const HANDLES_FORWARD: bool = P::HANDLES_FORWARD || Q::HANDLES_FORWARD;
    const HANDLES_DEPART: bool = P::HANDLES_DEPART || Q::HANDLES_DEPART;
    const HAS_TIMERS: bool = P::HAS_TIMERS || Q::HAS_TIMERS;
    const COUNTS_INGRESS: bool = P::COUNTS_INGRESS || Q::COUNTS_INGRESS;
    const QUEUEING: Queueing = match (P::QUEUEING, Q::QUEUEING) {
        (Queueing::Classes, Queueing::Classes) => Queueing::Classes,
        (Queueing::Ranks, Queueing::Ranks) => Queueing::Ranks,
        _ => panic!("the two transports want ports to queue in different ways"),
    };

    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<CoexistingHeader<A, B>>,
    ) -> Verdict {
        match packet.header {
            CoexistingHeader::Upper(header) => {
                let mut own = replace_header(packet, header);
                let verdict = self.upper.on_forward(crossing, &mut own);
                *packet = wrap_upper(&own);
                verdict
            }
            CoexistingHeader::Lower(header) => {
                let mut own = replace_header(packet, header);
                let verdict = self.lower.on_forward(crossing, &mut own);
                *packet = replace_header(&own, CoexistingHeader::Lower(own.header));
                verdict
            }
        }
    }

    fn on_depart(&mut self, departure: Departure, packet: &mut Packet<CoexistingHeader<A, B>>) {
        match packet.header {
            CoexistingHeader::Upper(header) => {
                let mut own = replace_header(packet, header);
                self.upper.on_depart(departure, &mut own);
                *packet = wrap_upper(&own);
            }
            CoexistingHeader::Lower(header) => {
                let mut own = replace_header(packet, header);
                self.lower.on_depart(departure, &mut own);
                *packet = replace_header(&own, CoexistingHeader::Lower(own.header));
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

    fn poll_transmit(&mut self) -> Option<(u32, Packet<CoexistingHeader<A, B>>)> {
        if let Some((port, packet)) = self.upper.poll_transmit() {
            return Some((port, wrap_upper(&packet)));
        }
        self.lower.poll_transmit().map(|(port, packet)| (port, wrap_lower(&packet)))
    }
}
