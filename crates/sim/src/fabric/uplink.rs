//! The interfaces of hosts and arbiters: how packets enter the fabric.

use rampmeter_types::SourceRoute;
use rampmeter_types::fabric::Spray;
use rampmeter_types::packet::Marks;
use rampmeter_types::{Bytes, Header, NodeId, Packet, SwitchProgram, Time};

use super::stats::DropReason;
use super::{Fabric, flow_hash};
use crate::engine::Wheel;
use crate::engine::event::{WAKE, event};
use crate::topo::Node;

/// Bytes that may wait at an interface of a host with several, if the message chooses the
/// interface: two long packets.
const INTERFACE_QUEUE: u32 = 2 * 9_216;
/// The number of the switch in the hash that chooses an interface.
const INTERFACES: u32 = u32::MAX;

/// Load of an interface, to spread packets over links of several rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Start of the last packet that found the link idle.
    busy_since: Time,
    /// End of the transmissions by this link, if none had waited for its turn.
    busy_until: Time,
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the host or arbiter whose interface a port is; the port itself if it is none.
    #[inline]
    pub(crate) fn owner(&self, port: u32) -> u32 {
        self.routes.owner(port)
    }

    /// Returns true if `host`'s uplink can send a packet at `now`.
    #[inline]
    pub(crate) fn uplink_idle(&self, host: u32, now: Time) -> bool {
        let port = &self.ports[host as usize];
        port.busy_until <= now && !port.has_wakeup
    }

    /// Requests a wake-up of `host`'s interface when its link falls idle.
    #[inline]
    pub(crate) fn wake_uplink(&mut self, host: u32, now: Time, wheel: &mut Wheel) {
        let port = &mut self.ports[host as usize];
        if !port.has_wakeup {
            port.has_wakeup = true;
            wheel.push(event(port.busy_until.max(now), WAKE, host));
        }
    }

    /// Returns the number of planes that a host's endpoint is divided by.
    pub(crate) fn n_planes(&self, host: u32) -> usize {
        match &self.planes {
            Some(planes) if host < self.topology.n_hosts() => planes.count(NodeId::new(host)),
            _ => 1,
        }
    }

    /// Returns the uplinks of a plane of a host. While routing avoids failed links, it returns all
    /// uplinks, as packets of one plane may then be sent by links of another.
    pub(crate) fn uplinks_by(&self, host: u32, plane: usize) -> impl Iterator<Item = u32> {
        let planes = self.planes.as_ref().filter(|_| !self.faults.avoids_links());
        self.routes.uplinks_of(host).filter(move |&port| {
            let Some(planes) = planes.filter(|_| host < self.topology.n_hosts()) else {
                return true;
            };
            match self.routes.end(port) {
                (_, Node::Switch(to)) => {
                    planes.plane_of_switch(NodeId::new(host), to) == Some(plane)
                }
                _ => true,
            }
        })
    }

    /// Returns the uplink of a host or arbiter that has only one: its number equals that of the
    /// host.
    #[inline]
    pub(super) fn only_uplink(&self, host: u32) -> Option<u32> {
        (self.planes.is_none() && !self.routes.has_several(host)).then_some(host)
    }

    /// Returns true if an uplink of a host's plane can take a packet at `now`, and none has a
    /// queue. With equal-cost multipath, none may have a long queue, as packets of other messages
    /// may take the idle link.
    pub(crate) fn can_pull(&self, host: u32, plane: usize, now: Time) -> bool {
        let most = if self.config.spray.is_by_flow() { INTERFACE_QUEUE } else { 0 };
        if let Some(number) = self.only_uplink(host) {
            let port = &self.ports[number as usize];
            return (port.queued_priorities == 0 || port.queued < most)
                && self.uplink_idle(number, now);
        }
        let mut has_idle = false;
        for number in self.uplinks_by(host, plane) {
            let port = &self.ports[number as usize];
            if port.queued_priorities != 0 && port.queued >= most {
                return false;
            }
            has_idle |= self.uplink_idle(number, now);
        }
        has_idle
    }

    /// Requests a wake-up of each of `host`'s interfaces when its link falls idle.
    pub(crate) fn wake_uplinks(&mut self, host: u32, now: Time, wheel: &mut Wheel) {
        for port in self.routes.uplinks_of(host) {
            if self.ports[port as usize].busy_until > now {
                self.wake_uplink(port, now, wheel);
            }
        }
    }

    /// Puts a packet of a host with several links on an idle one of those that are nearest to its
    /// destination, by turns. If none of these is idle, it waits at one of them. Links of several
    /// rates are chosen as [`Self::by_rate`] describes. With equal-cost multipath the hash of its
    /// message chooses the link. One with a source route takes the link that it names. `leaves` is
    /// called with it when it starts.
    pub(crate) fn inject_by_rails(
        &mut self,
        host: u32,
        packet: Packet<H>,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        if packet.marks.contains(Marks::SOURCE_ROUTED) && self.routes.has_several(host) {
            return self.inject_queued(host, packet, now, wheel, leaves);
        }
        let only = [host];
        let ports = self.routes.interfaces(host, packet.dst.get()).unwrap_or(&only);
        let of_flow = self.interface_of_flow(&packet, ports).map(|port| [port]);
        let ports = of_flow.as_ref().map_or(ports, |port| &port[..]);
        let turn = usize::from(self.next_path[host as usize]);
        if packet.marks.contains(Marks::ROUTED) {
            // Its path is chosen, but the turn advances.
            self.next_path[host as usize] = self.next_path[host as usize].wrapping_add(1);
        }
        let by_turns = || (0..ports.len()).map(|i| ports[(turn + i) % ports.len()]);
        let stops = |port: u32| self.ports[port as usize].is_paused(packet.priority);
        let may_take = |port| self.uplink_idle(port, now) && !stops(port);
        let by_rate = self.by_rate(ports, &packet, now);
        let (idle, shortest) = match (by_rate, ports) {
            (Some((port, _)), _) | (None, &[port]) => {
                (Some(port).filter(|&port| may_take(port)), Some(port))
            }
            (None, _) => (
                by_turns().find(|&port| may_take(port)),
                by_turns().min_by_key(|&port| self.ports[port as usize].queued),
            ),
        };
        if let Some(port) = idle.or(shortest) {
            let load = &mut self.loads[port as usize];
            if self.ports[port as usize].busy_until < now {
                load.busy_since = now;
            }
            load.busy_until = by_rate.map_or(load.busy_until, |(_, ends)| ends);
        }
        match (idle, shortest) {
            (Some(port), _) => self.inject(host, port, packet, now, wheel, leaves),
            (None, Some(port)) => {
                let handle = self.enter_pool(packet, now);
                let interfaces = self.ports[port as usize].switch;
                self.enqueue(interfaces, port, handle, now, wheel);
            }
            (None, None) => {
                let handle = self.enter_pool(packet, now);
                self.discard(host, handle, DropReason::NoRoute);
            }
        }
    }

    /// Returns the interface of `ports` that a packet takes, and the end of its transmission there;
    /// `None` if all their links have one rate.
    ///
    /// An endpoint hands over packets one by one, so the length of its backlog is unknown. A lone
    /// packet must not take a slow link because that is idle, and a backlog must fill all links. So
    /// a packet takes the link that delivers it first. Slower links count as if they could send
    /// their packets from the start of the fastest link's busy period on. After n packets back to
    /// back a link of 1/n of the highest rate sends one, and in the long run its share.
    fn by_rate(&self, ports: &[u32], packet: &Packet<H>, now: Time) -> Option<(u32, Time)> {
        let rate = |port: u32| self.rates[port as usize];
        let (&first, rest) = ports.split_first()?;
        if rest.iter().all(|&port| rate(port) == rate(first)) {
            return None;
        }
        let fastest = rest.iter().fold(first, |a, &b| if rate(b) > rate(a) { b } else { a });
        let since = match self.ports[fastest as usize].busy_until < now {
            true => now,
            false => self.loads[fastest as usize].busy_since,
        };
        let ends = |port: u32| match rate(port) == rate(fastest) {
            true => self.queue_ends(port, packet, now),
            false => {
                let start = self.loads[port as usize].busy_until.max(since);
                let ends = start + rate(port).tx_time(Bytes::new(packet.wire_bytes.into()));
                match self.uplink_idle(port, now) {
                    true => ends,
                    // A packet that waits here would keep the endpoint from the fast link.
                    false => ends.max(self.queue_ends(port, packet, now)),
                }
            }
        };
        let stops = |port: u32| self.ports[port as usize].is_paused(packet.priority);
        let arrives = |port: u32| ends(port) + self.ports[port as usize].delay;
        let best = ports.iter().copied().min_by_key(|&port| (stops(port), arrives(port)))?;
        Some((best, ends(best)))
    }

    /// Returns the end of a packet's transmission by a port, after all that are queued there.
    fn queue_ends(&self, port: u32, packet: &Packet<H>, now: Time) -> Time {
        let of = &self.ports[port as usize];
        let bytes = u64::from(of.queued) + u64::from(packet.wire_bytes);
        of.busy_until.max(now) + self.rates[port as usize].tx_time(Bytes::new(bytes))
    }

    /// Returns the interface of `ports` whose queue delivers a packet first; the first of them if
    /// all have one rate.
    fn shortest_by_rate(&self, ports: &[u32], packet: &Packet<H>, now: Time) -> Option<u32> {
        let rate = |port: u32| self.rates[port as usize];
        let (&first, rest) = ports.split_first()?;
        if rest.iter().all(|&port| rate(port) == rate(first)) {
            return Some(first);
        }
        let stops = |port: u32| self.ports[port as usize].is_paused(packet.priority);
        let delay = |port: u32| self.ports[port as usize].delay;
        let arrives = |port: u32| self.queue_ends(port, packet, now) + delay(port);
        ports.iter().copied().min_by_key(|&port| (stops(port), arrives(port)))
    }

    /// Returns the one of several interfaces that equal-cost multipath chooses for a packet; `None`
    /// if each packet may take any of them.
    fn interface_of_flow(&self, packet: &Packet<H>, ports: &[u32]) -> Option<u32> {
        let hash = match packet.header.spray().unwrap_or(self.config.spray) {
            _ if packet.marks.contains(Marks::ROUTED) => return None,
            Spray::Ecmp => flow_hash(packet, packet.payload.msg.get(), INTERFACES),
            Spray::EcmpPair => flow_hash(packet, 0, INTERFACES),
            Spray::SourceRoundRobin | Spray::Random => return None,
        };
        let rates = || ports.iter().map(|&port| self.rates[port as usize].as_bps());
        if rates().min() == rates().max() {
            return ports.get(hash.checked_rem(ports.len() as u64)? as usize).copied();
        }
        // By rate, as switches spread packets.
        let mut place = hash % rates().sum::<u64>();
        let chosen = ports.iter().zip(rates()).find(|&(_, bps)| {
            let is_here = place < bps;
            place = place.saturating_sub(bps);
            is_here
        });
        chosen.map(|(&port, _)| port)
    }

    /// Puts a packet of `host` on its idle uplink `port`; `leaves` is called with it.
    #[inline(always)]
    pub(crate) fn inject(
        &mut self,
        host: u32,
        port: u32,
        packet: Packet<H>,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        let mut packet = packet;
        if !packet.marks.contains(Marks::ROUTED) {
            packet.path = self.take_path(host);
        }
        leaves(&packet);
        let handle = self.enter_pool(packet, now);
        self.start_tx(port, handle, now, wheel);
    }

    /// Returns the next path number of a host's interface.
    #[inline]
    pub(super) fn take_path(&mut self, host: u32) -> u16 {
        let next = &mut self.next_path[host as usize];
        let path = *next;
        *next = path.wrapping_add(1);
        // Successive packets take another link each, and those of one link another path.
        match self.rails {
            1 => path,
            _ => path / self.routes.uplinks_of(host).count() as u16,
        }
    }

    /// Queues a packet of `host` at its interface, or puts it on the link if that is idle; then
    /// `leaves` is called with it. Of several links a source route names the one.
    pub(crate) fn inject_queued(
        &mut self,
        host: u32,
        packet: Packet<H>,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        let mut packet = packet;
        let port = match packet.marks.contains(Marks::SOURCE_ROUTED) {
            true if self.routes.has_several(host) => {
                let (link, rest) = SourceRoute::split(packet.path);
                packet.path = rest;
                self.routes.uplinks_of(host).nth(link.into())
            }
            true => Some(host),
            false => {
                let only = [host];
                let ports = self.routes.interfaces(host, packet.dst.get()).unwrap_or(&only);
                let of_flow = match ports.len() {
                    1 => None,
                    _ => self.interface_of_flow(&packet, ports),
                };
                of_flow.or_else(|| self.shortest_by_rate(ports, &packet, now))
            }
        };
        if let Some(port) = port
            && self.uplink_idle(port, now)
            && !self.ports[port as usize].is_paused(packet.priority)
        {
            return self.inject(host, port, packet, now, wheel, leaves);
        }
        let handle = self.enter_pool(packet, now);
        let Some(port) = port else { return self.discard(host, handle, DropReason::NoRoute) };
        let interfaces = self.ports[port as usize].switch;
        self.enqueue(interfaces, port, handle, now, wheel);
    }
}
