//! What sits at the end of a link: a host or an arbiter.

use rampmeter_core::fabric::LinksDown;
use rampmeter_core::{Endpoint, Event, Gauge, Message, Packet, Phase, Promise, Receipt, Time};

/// A host's endpoint or an arbiter's. For families without arbiter the second is a type without
/// values, and the distinction costs nothing.
pub(crate) enum Role<H, A> {
    Host(H),
    Arbiter(A),
}

/// The interface of [`Endpoint`], passed on.
impl<H, A> Role<H, A>
where
    H: Endpoint,
    A: Endpoint<Header = H::Header>,
{
    pub(crate) fn submit(&mut self, now: Time, message: Message) {
        match self {
            Self::Host(e) => e.submit(now, message),
            Self::Arbiter(e) => e.submit(now, message),
        }
    }

    pub(crate) fn promise(&self) -> Option<Promise> {
        match self {
            Self::Host(e) => e.promise(),
            Self::Arbiter(e) => e.promise(),
        }
    }

    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Time, packet: &Packet<H::Header>) -> Receipt {
        match self {
            Self::Host(e) => e.handle_packet(now, packet),
            Self::Arbiter(e) => e.handle_packet(now, packet),
        }
    }

    pub(crate) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        match self {
            Self::Host(e) => e.gauges(each),
            Self::Arbiter(e) => e.gauges(each),
        }
    }

    pub(crate) fn has_arrived(&mut self, packet: &Packet<H::Header>) -> bool {
        match self {
            Self::Host(e) => e.has_arrived(packet),
            Self::Arbiter(e) => e.has_arrived(packet),
        }
    }

    pub(crate) fn handle_links(&mut self, now: Time, down: &LinksDown) {
        match self {
            Self::Host(e) => e.handle_links(now, down),
            Self::Arbiter(e) => e.handle_links(now, down),
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Host(e) => e.handle_timeout(now),
            Self::Arbiter(e) => e.handle_timeout(now),
        }
    }

    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Packet<H::Header>> {
        match self {
            Self::Host(e) => e.poll_transmit(now),
            Self::Arbiter(e) => e.poll_transmit(now),
        }
    }

    pub(crate) fn poll_control(&mut self, now: Time) -> Option<Packet<H::Header>> {
        match self {
            Self::Host(e) => e.poll_control(now),
            Self::Arbiter(e) => e.poll_control(now),
        }
    }

    #[inline]
    pub(crate) fn wants_transmit(&self) -> bool {
        match self {
            Self::Host(e) => e.wants_transmit(),
            Self::Arbiter(e) => e.wants_transmit(),
        }
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        match self {
            Self::Host(e) => e.poll_timeout(),
            Self::Arbiter(e) => e.poll_timeout(),
        }
    }

    pub(crate) fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Self::Host(e) => e.counters(each),
            Self::Arbiter(e) => e.counters(each),
        }
    }

    pub(crate) fn phases(&self, each: &mut dyn FnMut(Phase)) {
        match self {
            Self::Host(e) => e.phases(each),
            Self::Arbiter(e) => e.phases(each),
        }
    }

    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Host(e) => e.poll_event(),
            Self::Arbiter(e) => e.poll_event(),
        }
    }
}
