//! Station at the end of a link: a host or an arbiter.

use std::sync::Arc;

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{
    Endpoint, Event, Gauge, LatencyBound, Message, MsgId, NodeId, Observation, Packet, Permission,
    Phase, Planes, Protocol, Receipt, Time,
};

/// A host's endpoint or an arbiter's.
pub(crate) enum Role<H, A> {
    Host(H),
    Arbiter(A),
    /// The endpoints of a host with several planes.
    Planes(Box<PlaneHost<H>>),
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
            Self::Planes(e) => e.submit(now, message),
        }
    }

    pub(crate) fn latency_bound(&self) -> Option<LatencyBound> {
        match self {
            Self::Host(e) => e.latency_bound(),
            Self::Arbiter(e) => e.latency_bound(),
            Self::Planes(e) => e.latency_bound(),
        }
    }

    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Time, packet: &Packet<H::Header>) -> Receipt {
        match self {
            Self::Host(e) => e.handle_packet(now, packet),
            Self::Arbiter(e) => e.handle_packet(now, packet),
            Self::Planes(e) => e.handle_packet(now, packet),
        }
    }

    pub(crate) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        match self {
            Self::Host(e) => e.gauges(each),
            Self::Arbiter(e) => e.gauges(each),
            Self::Planes(e) => e.gauges(each),
        }
    }

    pub(crate) fn is_duplicate(&mut self, packet: &Packet<H::Header>) -> bool {
        match self {
            Self::Host(e) => e.is_duplicate(packet),
            Self::Arbiter(e) => e.is_duplicate(packet),
            Self::Planes(e) => e.is_duplicate(packet),
        }
    }

    pub(crate) fn handle_links(&mut self, now: Time, down: &LinksDown) {
        match self {
            Self::Host(e) => e.handle_links(now, down),
            Self::Arbiter(e) => e.handle_links(now, down),
            Self::Planes(e) => e.handle_links(now, down),
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Host(e) => e.handle_timeout(now),
            Self::Arbiter(e) => e.handle_timeout(now),
            Self::Planes(e) => e.handle_timeout(now),
        }
    }

    /// Returns true if a host has a packet to send by this plane.
    pub(crate) fn is_plane_waiting(&self, plane: usize) -> bool {
        match self {
            Self::Planes(e) => e.parts[plane].wants_transmit(),
            _ => self.wants_transmit(),
        }
    }

    /// Returns the next packet by a plane.
    pub(crate) fn poll_plane(&mut self, plane: usize, now: Time) -> Option<Packet<H::Header>> {
        match self {
            Self::Planes(e) => e.parts[plane].poll_transmit(now),
            _ => self.poll_transmit(now),
        }
    }

    /// Returns the next packet of the highest class by a plane.
    pub(crate) fn poll_plane_control(
        &mut self,
        plane: usize,
        now: Time,
    ) -> Option<Packet<H::Header>> {
        match self {
            Self::Planes(e) => e.parts[plane].poll_control(now),
            Self::Host(e) => e.poll_control(now),
            Self::Arbiter(e) => e.poll_control(now),
        }
    }

    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Packet<H::Header>> {
        match self {
            Self::Host(e) => e.poll_transmit(now),
            Self::Arbiter(e) => e.poll_transmit(now),
            Self::Planes(e) => e.poll_transmit(now),
        }
    }

    #[inline]
    pub(crate) fn wants_transmit(&self) -> bool {
        match self {
            Self::Host(e) => e.wants_transmit(),
            Self::Arbiter(e) => e.wants_transmit(),
            Self::Planes(e) => e.wants_transmit(),
        }
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Time {
        match self {
            Self::Host(e) => e.poll_timeout(),
            Self::Arbiter(e) => e.poll_timeout(),
            Self::Planes(e) => e.poll_timeout(),
        }
    }

    pub(crate) fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Self::Host(e) => e.counters(each),
            Self::Arbiter(e) => e.counters(each),
            Self::Planes(e) => e.counters(each),
        }
    }

    pub(crate) fn phases(&self, each: &mut dyn FnMut(Phase)) {
        match self {
            Self::Host(e) => e.phases(each),
            Self::Arbiter(e) => e.phases(each),
            Self::Planes(e) => e.phases(each),
        }
    }

    #[inline]
    pub(crate) fn permission_deadline(&self) -> Time {
        match self {
            Self::Host(e) => e.permission_deadline(),
            Self::Arbiter(e) => e.permission_deadline(),
            Self::Planes(e) => {
                let deadlines = e.parts.iter().map(Observation::permission_deadline);
                deadlines.min().unwrap_or(Time::NEVER)
            }
        }
    }

    /// Returns the permission of a message to `dst`.
    #[inline]
    pub(crate) fn permission(&self, now: Time, dst: NodeId, msg: MsgId) -> Option<Permission> {
        match self {
            Self::Host(e) => e.permission(now, msg),
            Self::Arbiter(e) => e.permission(now, msg),
            Self::Planes(e) => e.parts[e.planes.plane_to(e.host, dst)].permission(now, msg),
        }
    }

    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Host(e) => e.poll_event(),
            Self::Arbiter(e) => e.poll_event(),
            Self::Planes(e) => e.poll_event(),
        }
    }
}

/// The endpoints of a host with several planes: one for each, since planes share no links.
///
/// A single endpoint sends in one order. A packet for a busy plane would block those for an idle
/// one. Receivers would divide the credit of one link among senders of both.
pub(crate) struct PlaneHost<H> {
    host: NodeId,
    pub(crate) parts: Vec<H>,
    planes: Arc<Planes>,
}

impl<H: Endpoint> PlaneHost<H> {
    /// Returns the endpoints of `host`, which `make` makes by plane.
    pub(crate) fn new(host: NodeId, planes: Arc<Planes>, make: impl FnMut(usize) -> H) -> Self {
        let parts = (0..planes.count(host)).map(make).collect();
        Self { host, parts, planes }
    }

    fn to(&mut self, peer: NodeId) -> &mut H {
        &mut self.parts[self.planes.plane_to(self.host, peer)]
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.to(message.dst).submit(now, message);
    }

    fn latency_bound(&self) -> Option<LatencyBound> {
        self.parts[0].latency_bound()
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<H::Header>) -> Receipt {
        self.to(packet.src).handle_packet(now, packet)
    }

    fn is_duplicate(&mut self, packet: &Packet<H::Header>) -> bool {
        self.to(packet.src).is_duplicate(packet)
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.parts.iter().for_each(|part| part.gauges(each));
    }

    fn handle_links(&mut self, now: Time, down: &LinksDown) {
        self.parts.iter_mut().for_each(|part| part.handle_links(now, down));
    }

    fn handle_timeout(&mut self, now: Time) {
        let due = self.parts.iter_mut().filter(|part| part.poll_timeout() <= now);
        due.for_each(|part| part.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<H::Header>> {
        self.parts.iter_mut().find_map(|part| part.poll_transmit(now))
    }

    fn wants_transmit(&self) -> bool {
        self.parts.iter().any(Protocol::wants_transmit)
    }

    fn poll_timeout(&self) -> Time {
        self.parts.iter().map(Protocol::poll_timeout).min().unwrap_or(Time::NEVER)
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.parts.iter().for_each(|part| part.counters(each));
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        self.parts.iter().for_each(|part| part.phases(each));
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.parts.iter_mut().find_map(Protocol::poll_event)
    }
}
