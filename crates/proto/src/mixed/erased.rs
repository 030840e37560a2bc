//! Endpoints whose types are erased.

use std::sync::Arc;

use rampmeter_types::fabric::Spray;
use rampmeter_types::{
    Event, Gauge, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission, Phase,
    Protocol, Receipt, Rng, Time,
};

use super::header::MixedHeader;
use crate::coexistence::replace_header;
use crate::registered::RegisteredTransport;

/// An [`Endpoint`] of any transport, whose packets have encoded headers.
pub(super) trait AnyHost: Send {
    fn submit(&mut self, now: Time, message: Message);
    fn cancel(&mut self, now: Time, msg: MsgId);
    fn handle_packet(&mut self, now: Time, packet: &Packet<MixedHeader>) -> Receipt;
    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<MixedHeader>) -> bool;
    fn is_duplicate(&mut self, packet: &Packet<MixedHeader>) -> bool;
    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId);
    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId);
    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId);
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64));
    fn gauges(&self, each: &mut dyn FnMut(Gauge));
    fn phases(&self, each: &mut dyn FnMut(Phase));
    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission>;
    fn message_counts(&self) -> Option<(usize, usize)>;
    fn limit_arriving(&mut self, per_peer: u32);
    fn arriving_excess(&self) -> u64;
    fn forget_peer(&mut self, now: Time, peer: NodeId);
    fn handle_timeout(&mut self, now: Time);
    fn poll_transmit(&mut self, now: Time, spray: Option<Spray>) -> Option<Packet<MixedHeader>>;
    fn poll_control(&mut self, now: Time, spray: Option<Spray>) -> Option<Packet<MixedHeader>>;
    fn wants_transmit(&self) -> bool;
    fn poll_timeout(&self) -> Time;
    fn poll_event(&mut self) -> Option<Event>;
}

/// The endpoint of transport `T` at one host.
pub(super) struct ErasedEndpoint<T: RegisteredTransport> {
    /// The number of its transport.
    member: u8,
    host: T::Host,
}

impl<T: RegisteredTransport> ErasedEndpoint<T> {
    pub(super) fn new(
        member: u8,
        config: Arc<T::Config>,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> Self {
        Self { member, host: T::Host::new(config, node, rng, now) }
    }

    fn decode_as(packet: &Packet<MixedHeader>) -> Packet<T::Header> {
        replace_header(packet, packet.header.decode_as())
    }

    fn to_erased(&self, packet: &Packet<T::Header>, spray: Option<Spray>) -> Packet<MixedHeader> {
        replace_header(packet, MixedHeader::from_header(self.member, &packet.header, spray))
    }
}

impl<T: RegisteredTransport> AnyHost for ErasedEndpoint<T> {
    fn submit(&mut self, now: Time, message: Message) {
        self.host.submit(now, message);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.host.cancel(now, msg);
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<MixedHeader>) -> Receipt {
        self.host.handle_packet(now, &Self::decode_as(packet))
    }

    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<MixedHeader>) -> bool {
        self.host.touch_if_delivered(now, &Self::decode_as(packet))
    }

    fn is_duplicate(&mut self, packet: &Packet<MixedHeader>) -> bool {
        self.host.is_duplicate(&Self::decode_as(packet))
    }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.host.pause(now, src, msg);
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.host.resume(now, src, msg);
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.host.abandon(now, src, msg);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.host.counters(each);
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.host.gauges(each);
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        self.host.phases(each);
    }

    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        self.host.permission(now, msg)
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        self.host.message_counts()
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.host.limit_arriving(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.host.arriving_excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.host.forget_peer(now, peer);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, spray: Option<Spray>) -> Option<Packet<MixedHeader>> {
        let packet = self.host.poll_transmit(now)?;
        Some(self.to_erased(&packet, spray))
    }

    fn poll_control(&mut self, now: Time, spray: Option<Spray>) -> Option<Packet<MixedHeader>> {
        let packet = self.host.poll_control(now)?;
        Some(self.to_erased(&packet, spray))
    }

    fn wants_transmit(&self) -> bool {
        self.host.wants_transmit()
    }

    fn poll_timeout(&self) -> Time {
        self.host.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.host.poll_event()
    }
}
