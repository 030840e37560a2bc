//! The endpoints of several transports at one host.

use std::sync::Arc;

use rampmeter_types::{
    Event, Gauge, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission, Phase,
    Priority, Protocol, Receipt, Rng, TenantId, Time, merge_counters,
};

use super::config::{MemberTransport, MixedConfig};
use super::erased::AnyHost;
use super::header::MixedHeader;

/// The endpoints of all transports at one host.
pub struct MixedHost {
    config: Arc<MixedConfig>,
    parts: Vec<Part>,
    /// Bytes that the transport that sent last had sent before its last packet: one that was idle
    /// starts from there.
    floor: u64,
}

/// The endpoint of one transport.
struct Part {
    host: Box<dyn AnyHost>,
    /// Bytes that it has sent, or the floor if that was more when it sent last.
    sent: u64,
}

/// The random stream of a transport is its part of the host's.
fn part_of(rng: &Rng, member: usize) -> Rng {
    rng.substream(member as u64)
}

impl MixedHost {
    /// Returns the transport that carries the messages of a tenant: those of tenants beyond the
    /// last transport's belong to that.
    fn host_of_tenant(&mut self, tenant: TenantId) -> &mut dyn AnyHost {
        let last = self.parts.len() - 1;
        &mut *self.parts[(tenant.get() as usize).min(last)].host
    }

    /// Returns the first packet that `poll` has of a transport, the one that has sent least first.
    fn poll_first(
        &mut self,
        mut poll: impl FnMut(&mut dyn AnyHost, &MemberTransport) -> Option<Packet<MixedHeader>>,
    ) -> Option<Packet<MixedHeader>> {
        // A bit for each transport that has been polled: there are eight at most.
        let mut polled = 0_u8;
        loop {
            let ready = |&number: &usize| {
                polled & 1 << number == 0 && self.parts[number].host.wants_transmit()
            };
            let sent = |&number: &usize| self.parts[number].sent.max(self.floor);
            let number = (0..self.parts.len()).filter(ready).min_by_key(sent)?;
            polled |= 1 << number;
            let part = &mut self.parts[number];
            if let Some(packet) = poll(&mut *part.host, &self.config.members[number]) {
                part.sent = part.sent.max(self.floor);
                return Some(self.charge(number, packet));
            }
        }
    }

    /// Counts a packet of a transport, and puts it into its class.
    fn charge(&mut self, number: usize, packet: Packet<MixedHeader>) -> Packet<MixedHeader> {
        let part = &mut self.parts[number];
        self.floor = part.sent;
        part.sent += u64::from(packet.wire_bytes);
        let class = packet.priority.get().saturating_add(self.config.members[number].class_offset);
        Packet { priority: Priority::new(class), ..packet }
    }
}

impl Protocol for MixedHost {
    type Header = MixedHeader;
    type Config = MixedConfig;

    fn new(config: Arc<MixedConfig>, node: NodeId, rng: Rng, now: Time) -> Self {
        let part = |(number, member): (usize, &MemberTransport)| Part {
            host: (member.make)(node, part_of(&rng, number), now),
            sent: 0,
        };
        let parts = config.members.iter().enumerate().map(part).collect();
        Self { parts, config, floor: 0 }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.host_of_tenant(message.tenant).submit(now, message);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.cancel(now, msg));
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<MixedHeader>) -> Receipt {
        match self.parts.get_mut(usize::from(packet.header.member)) {
            Some(part) => part.host.handle_packet(now, packet),
            None => Receipt::Ignored,
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.parts.iter_mut().for_each(|part| part.host.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<MixedHeader>> {
        self.poll_first(|host, member| host.poll_transmit(now, member.spray))
    }

    fn poll_control(&mut self, now: Time) -> Option<Packet<MixedHeader>> {
        self.poll_first(|host, member| {
            // Others have no packets in the highest class.
            if member.class_offset > 0 { None } else { host.poll_control(now, member.spray) }
        })
    }

    fn wants_transmit(&self) -> bool {
        self.parts.iter().any(|part| part.host.wants_transmit())
    }

    fn poll_timeout(&self) -> Time {
        let deadlines = self.parts.iter().map(|part| part.host.poll_timeout());
        deadlines.min().unwrap_or(Time::NEVER)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.parts.iter_mut().find_map(|part| part.host.poll_event())
    }
}

impl Observation for MixedHost {
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let mut totals: Vec<(&'static str, u64)> = Vec::new();
        for part in &self.parts {
            part.host.counters(&mut |name, value| match totals
                .iter_mut()
                .find(|(known, _)| *known == name)
            {
                Some((_, total)) => *total = merge_counters(name, *total, value),
                None => totals.push((name, value)),
            });
        }
        totals.into_iter().for_each(|(name, value)| each(name, value));
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.parts.iter().for_each(|part| part.host.gauges(each));
    }

    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        self.parts.iter().for_each(|part| part.host.phases(each));
    }

    fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        self.parts.iter().find_map(|part| part.host.permission(now, msg))
    }

    fn message_counts(&self) -> Option<(usize, usize)> {
        self.parts.iter().try_fold((0, 0), |(sent, arriving), part| {
            let (own_sent, own_arriving) = part.host.message_counts()?;
            Some((sent + own_sent, arriving + own_arriving))
        })
    }
}

impl HostPolicy for MixedHost {
    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<MixedHeader>) -> bool {
        let part = self.parts.get_mut(usize::from(packet.header.member));
        part.is_some_and(|part| part.host.touch_if_delivered(now, packet))
    }

    fn is_duplicate(&mut self, packet: &Packet<MixedHeader>) -> bool {
        let part = self.parts.get_mut(usize::from(packet.header.member));
        part.is_none_or(|part| part.host.is_duplicate(packet))
    }

    fn pause(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.pause(now, src, msg));
    }

    fn resume(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.resume(now, src, msg));
    }

    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.abandon(now, src, msg));
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.parts.iter_mut().for_each(|part| part.host.limit_arriving(per_peer));
    }

    fn arriving_excess(&self) -> u64 {
        self.parts.iter().map(|part| part.host.arriving_excess()).sum()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.parts.iter_mut().for_each(|part| part.host.forget_peer(now, peer));
    }
}
