//! The endpoints of several transports at one host.

use std::sync::Arc;

use rampmeter_core::{
    Endpoint, Event, Gauge, Message, MsgId, NodeId, Packet, Priority, Receipt, Rng, TenantId, Time,
};

use super::erased::AnyHost;
use super::{MixedConfig, MixedHeader};

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
    /// Bytes that it has sent, or the floor where that was more when it had something to send.
    sent: u64,
}

/// The random stream of a transport is its part of the host's.
fn part_of(rng: &Rng, member: usize) -> Rng {
    rng.part(member as u64)
}

impl MixedHost {
    /// Returns the transport that carries the messages of a tenant: those of tenants beyond the last
    /// transport's belong to that.
    fn of(&mut self, tenant: TenantId) -> &mut dyn AnyHost {
        let last = self.parts.len() - 1;
        &mut *self.parts[(tenant.get() as usize).min(last)].host
    }

    /// Returns the transports that may have something to send, the one that has sent least first.
    fn in_turn(&mut self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.parts.len());
        for (number, part) in self.parts.iter_mut().enumerate() {
            if part.host.wants_transmit() {
                part.sent = part.sent.max(self.floor);
                order.push(number);
            }
        }
        order.sort_by_key(|&number| self.parts[number].sent);
        order
    }

    /// Counts a packet of a transport, and puts it into its class.
    fn count(&mut self, number: usize, packet: Packet<MixedHeader>) -> Packet<MixedHeader> {
        let part = &mut self.parts[number];
        self.floor = part.sent;
        part.sent += u64::from(packet.wire_bytes);
        let class = packet.priority.get().saturating_add(self.config.members[number].class);
        Packet { priority: Priority::new(class), ..packet }
    }
}

impl Endpoint for MixedHost {
    type Header = MixedHeader;
    type Config = MixedConfig;

    fn new(config: Arc<MixedConfig>, node: NodeId, rng: Rng, now: Time) -> Self {
        let part = |(number, member): (usize, &super::Member)| Part {
            host: (member.make)(node, part_of(&rng, number), now),
            sent: 0,
        };
        let parts = config.members.iter().enumerate().map(part).collect();
        Self { parts, config, floor: 0 }
    }

    fn submit(&mut self, now: Time, message: Message) {
        self.of(message.tenant).submit(now, message);
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

    fn has_delivered(&mut self, now: Time, packet: &Packet<MixedHeader>) -> bool {
        let part = self.parts.get_mut(usize::from(packet.header.member));
        part.is_some_and(|part| part.host.has_delivered(now, packet))
    }

    fn has_arrived(&mut self, packet: &Packet<MixedHeader>) -> bool {
        let part = self.parts.get_mut(usize::from(packet.header.member));
        part.is_none_or(|part| part.host.has_arrived(packet))
    }

    fn hold(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.hold(now, src, msg));
    }

    fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.parts.iter_mut().for_each(|part| part.host.release(now, src, msg));
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        // Counters that several transports have are sums.
        let mut totals: Vec<(&'static str, u64)> = Vec::new();
        for part in &self.parts {
            part.host.counters(&mut |name, value| match totals
                .iter_mut()
                .find(|(known, _)| *known == name)
            {
                Some((_, total)) if name.ends_with("_max") => *total = (*total).max(value),
                Some((_, total)) => *total += value,
                None => totals.push((name, value)),
            });
        }
        totals.into_iter().for_each(|(name, value)| each(name, value));
    }

    fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.parts.iter().for_each(|part| part.host.gauges(each));
    }

    fn messages(&self) -> Option<(usize, usize)> {
        self.parts.iter().try_fold((0, 0), |(sent, arriving), part| {
            let (own_sent, own_arriving) = part.host.messages()?;
            Some((sent + own_sent, arriving + own_arriving))
        })
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

    fn handle_timeout(&mut self, now: Time) {
        self.parts.iter_mut().for_each(|part| part.host.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<MixedHeader>> {
        for number in self.in_turn() {
            let spray = self.config.members[number].spray;
            if let Some(packet) = self.parts[number].host.poll_transmit(now, spray) {
                return Some(self.count(number, packet));
            }
        }
        None
    }

    fn poll_control(&mut self, now: Time) -> Option<Packet<MixedHeader>> {
        for number in self.in_turn() {
            let member = &self.config.members[number];
            if member.class > 0 {
                continue;
            }
            let spray = member.spray;
            if let Some(packet) = self.parts[number].host.poll_control(now, spray) {
                return Some(self.count(number, packet));
            }
        }
        None
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
