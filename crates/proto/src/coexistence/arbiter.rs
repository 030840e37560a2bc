//! The arbiter of two transports on one network.

use std::sync::Arc;

use rampmeter_types::{
    ClockOrigin, Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Phase, Protocol,
    Receipt, Rng, Time, Transport, fabric::LinksDown,
};

use super::pair::{
    Coexisting, CoexistingConfig, CoexistingHeader, replace_header, wrap_lower, wrap_upper,
};

/// The arbiter of the transport that has one. If neither has, this type has no values.
pub enum CoexistingArbiter<A: Transport, B: Transport> {
    /// The upper transport's.
    Upper(A::Arbiter),
    /// The lower's.
    Lower(B::Arbiter),
}

impl<A: Transport, B: Transport> Protocol for CoexistingArbiter<A, B> {
    type Header = CoexistingHeader<A::Header, B::Header>;
    type Config = CoexistingConfig<A::Config, B::Config>;

    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self {
        Coexisting::<A, B>::arbiter(config, 0, node, rng, now)
    }

    fn set_clock_origin(&mut self, now: Time, origin: ClockOrigin) {
        match self {
            Self::Upper(arbiter) => arbiter.set_clock_origin(now, origin),
            Self::Lower(arbiter) => arbiter.set_clock_origin(now, origin),
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        match self {
            Self::Upper(arbiter) => arbiter.submit(now, message),
            Self::Lower(arbiter) => arbiter.submit(now, message),
        }
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        match self {
            Self::Upper(arbiter) => arbiter.cancel(now, msg),
            Self::Lower(arbiter) => arbiter.cancel(now, msg),
        }
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt {
        match (self, packet.header) {
            (Self::Upper(arbiter), CoexistingHeader::Upper(header)) => {
                arbiter.handle_packet(now, &replace_header(packet, header))
            }
            (Self::Lower(arbiter), CoexistingHeader::Lower(header)) => {
                arbiter.handle_packet(now, &replace_header(packet, header))
            }
            // The other transport has no arbiter.
            (Self::Upper(_), CoexistingHeader::Lower(_))
            | (Self::Lower(_), CoexistingHeader::Upper(_)) => Receipt::Ignored,
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Upper(arbiter) => arbiter.handle_timeout(now),
            Self::Lower(arbiter) => arbiter.handle_timeout(now),
        }
    }

    fn handle_links(&mut self, now: Time, down: &LinksDown) {
        match self {
            Self::Upper(arbiter) => arbiter.handle_links(now, down),
            Self::Lower(arbiter) => arbiter.handle_links(now, down),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>> {
        match self {
            Self::Upper(arbiter) => arbiter.poll_transmit(now).map(|packet| wrap_upper(&packet)),
            Self::Lower(arbiter) => arbiter.poll_transmit(now).map(|packet| wrap_lower(&packet)),
        }
    }

    fn wants_transmit(&self) -> bool {
        match self {
            Self::Upper(arbiter) => arbiter.wants_transmit(),
            Self::Lower(arbiter) => arbiter.wants_transmit(),
        }
    }

    fn poll_timeout(&self) -> Time {
        match self {
            Self::Upper(arbiter) => arbiter.poll_timeout(),
            Self::Lower(arbiter) => arbiter.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Upper(arbiter) => arbiter.poll_event(),
            Self::Lower(arbiter) => arbiter.poll_event(),
        }
    }
}

impl<A: Transport, B: Transport> Observation for CoexistingArbiter<A, B> {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Self::Upper(arbiter) => arbiter.counters(each),
            Self::Lower(arbiter) => arbiter.counters(each),
        }
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        match self {
            Self::Upper(arbiter) => arbiter.phases(each),
            Self::Lower(arbiter) => arbiter.phases(each),
        }
    }
}

impl<A: Transport, B: Transport> HostPolicy for CoexistingArbiter<A, B> {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<Self::Header>) -> bool {
        false
    }

    fn is_duplicate(&mut self, _packet: &Packet<Self::Header>) -> bool {
        true
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        match self {
            Self::Upper(arbiter) => arbiter.forget_peer(now, peer),
            Self::Lower(arbiter) => arbiter.forget_peer(now, peer),
        }
    }
}
