//! The fabric: ports, buffers, switches, and the packets inside.
//!
//! One event a hop: a packet that finds its output port idle is put on the link at once and only
//! its arrival at the far end is scheduled. A packet that finds the port busy queues, and the
//! port is woken when its link falls idle, where strict priorities choose the next packet. So a
//! second event is spent only on packets that wait.
//!
//! What an arrival goes through is always inlined: simulators with and without a view of packets
//! share these functions, and a compiler that sees two callers would make calls of them.

mod config;
mod fault;
mod outage;
mod port;
mod program;
mod routing;
mod stats;

pub use config::{Buffer, FabricConfig, Interface, Overflow, Spray, Switching};
pub use fault::{FaultSpec, LinkFault, Outage, Target};
pub use routing::Routes;
pub use stats::{DropReason, FabricStats, TierStats};

use crate::engine::event::{ARRIVE, PORTS_END, READY, WAKE, event, packet_event};
use crate::engine::{Handle, PacketPool, Wheel};
use crate::topo::{Node, Topology};
use fault::Faults;
use port::{Port, Queues};
use rampmeter_core::packet::Marks;
use rampmeter_core::rng::mix;
use rampmeter_core::{
    Crossing, Header, Hop, Packet, Priority, Purpose, Queueing, Rate, Rng, SwitchFacts, Time,
    Verdict,
};
use stats::PathDigit;

/// All nodes and links, and the packets in them.
#[derive(Debug)]
pub struct Fabric<H, P> {
    config: FabricConfig,
    /// Hosts and arbiters.
    n_ends: u32,
    pub(crate) ports: Vec<Port>,
    queues: Vec<Queues>,
    rates: Vec<Rate>,
    pub(crate) pool: PacketPool<H>,
    topology: Topology,
    routes: Routes,
    hops: Vec<P>,
    /// The port at the far end of each port's link; empty where programs do nothing.
    opposite: Vec<u32>,
    /// Bytes waiting in each switch, and last those in all hosts' interfaces.
    used: Vec<u64>,
    /// Which part of a packet's path number is for each switch.
    digits: Vec<PathDigit>,
    /// The next path number of each host's interface.
    next_path: Vec<u16>,
    spray: Vec<Rng>,
    faults: Faults,
    pub(crate) stats: FabricStats,
}

impl<H: Header, P: Hop<H>> Fabric<H, P> {
    /// The idle fabric of `topology`, whose switches run what `hop` makes. Random choices come from
    /// streams of `seed`.
    pub fn new(
        topology: Topology,
        config: FabricConfig,
        faults: FaultSpec,
        seed: u64,
        hop: impl Fn(SwitchFacts) -> P,
    ) -> Self {
        let routes = Routes::new(&topology, &|_| true);
        let n_ports = routes.n_ports();
        assert!(n_ports < PORTS_END, "a fabric of {n_ports} ports");
        let (n_ends, n_switches) = (topology.n_ends, topology.n_switches());
        let (tiers, tier_of) = stats::tiers(&topology, &routes);
        let mut ports = Vec::with_capacity(n_ports);
        let mut rates = Vec::with_capacity(n_ports);
        for (number, &tier) in tier_of.iter().enumerate() {
            let (link, to) = routes.end(number as u32);
            let link = topology.links()[link as usize];
            let switch = match if link.a == to { link.b } else { link.a } {
                Node::Switch(s) => s,
                Node::Host(_) => n_switches,
            };
            let delay = link.propagation + topology.latency(to);
            let to = match to {
                Node::Host(h) => h,
                Node::Switch(s) => n_ends + s,
            };
            let buffer = config.port_buffer();
            ports.push(Port::new(link.rate, delay, to, switch, tier, buffer));
            rates.push(link.rate);
        }
        let stream = |node: u32| Rng::new(seed, u64::from(node), Purpose::Spray);
        let next_path = (0..n_ends).map(|h| stream(h).bits() as u16).collect();
        let digits = stats::path_digits(&topology, &routes);
        let faults = Faults::new(faults, &topology, &routes, seed);
        for (port, faulty) in ports.iter_mut().zip(faults.faulty_ports(&routes)) {
            port.faulty = faulty;
        }
        let opposite = if P::ACTIVE { routes.opposites(&topology) } else { Vec::new() };
        let mut fabric = Self {
            queues: vec![Queues::EMPTY; ports.len()],
            hops: Vec::new(),
            opposite,
            used: vec![0; n_switches as usize + 1],
            spray: (0..n_switches).map(|s| stream(n_ends + s)).collect(),
            stats: FabricStats::new(tiers),
            pool: PacketPool::new(),
            config,
            n_ends,
            ports,
            rates,
            topology,
            routes,
            digits,
            next_path,
            faults,
        };
        let hops = (0..n_switches).map(|switch| hop(fabric.switch_facts(switch, seed)));
        fabric.hops = hops.collect();
        fabric
    }

    /// The topology it was built from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What has happened so far.
    pub fn stats(&self) -> &FabricStats {
        &self.stats
    }

    /// Whether `host`'s uplink can take a packet at `now`.
    #[inline]
    pub(crate) fn uplink_idle(&self, host: u32, now: Time) -> bool {
        let port = &self.ports[host as usize];
        port.busy_until <= now && !port.woken
    }

    /// Asks for a wake-up of `host`'s interface when its link falls idle.
    #[inline]
    pub(crate) fn wake_uplink(&mut self, host: u32, now: Time, wheel: &mut Wheel) {
        let port = &mut self.ports[host as usize];
        if !port.woken {
            port.woken = true;
            wheel.push(event(port.busy_until.max(now), WAKE, host));
        }
    }

    /// Puts a packet of `host` on its idle uplink; `leaves` hears of it.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        host: u32,
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
        let handle = self.pool.insert(packet, now);
        self.stats.injected += 1;
        self.transmit(host, handle, now, wheel);
    }

    /// The next path number of a host's interface.
    #[inline]
    fn take_path(&mut self, host: u32) -> u16 {
        let next = &mut self.next_path[host as usize];
        let path = *next;
        *next = path.wrapping_add(1);
        path
    }

    /// Queues a packet of `host` at its interface, or puts it on the link if that is idle; then
    /// `leaves` hears of it.
    pub(crate) fn offer(
        &mut self,
        host: u32,
        packet: Packet<H>,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        if self.uplink_idle(host, now) {
            return self.send(host, packet, now, wheel, leaves);
        }
        let handle = self.pool.insert(packet, now);
        self.stats.injected += 1;
        let interfaces = self.ports[host as usize].switch;
        self.enqueue(interfaces, host, handle, now, wheel);
    }

    /// A packet's arrival event: at a switch it is forwarded, at a host its number is returned.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        via: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) -> Option<u32> {
        let port = &self.ports[via as usize];
        if port.faulty && self.lost_in_outage(via, handle, now) {
            self.discard(via, handle, DropReason::LinkDown);
            return None;
        }
        let to = self.ports[via as usize].to;
        if to < self.n_ends {
            return Some(to);
        }
        self.forward(to - self.n_ends, via, handle, now, wheel);
        None
    }

    /// Loads what an arrival will need, while the processor has something else to do: in large
    /// fabrics both lines are in the last level of the cache at best.
    #[inline]
    pub(crate) fn touch(&self, via: u32, handle: Handle) {
        std::hint::black_box(self.pool.get(handle).wire_bytes);
        std::hint::black_box(self.ports[via as usize].to);
    }

    /// Takes a packet out of the fabric at its host, which has read it.
    #[inline]
    pub(crate) fn take(&mut self, handle: Handle) {
        self.stats.delivered += 1;
        self.pool.remove(handle);
    }

    /// The wake-up of a port with a queue: its link is idle and packets wait. If it is the
    /// interface of a host, `leaves` hears of the packet that is next.
    #[inline]
    pub(crate) fn wake(
        &mut self,
        number: u32,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        let port = &mut self.ports[number as usize];
        if port.busy_until > now {
            // An express packet has taken the link in the meantime.
            wheel.push(event(port.busy_until, WAKE, number));
            return;
        }
        port.woken = false;
        if port.waiting == 0 {
            return;
        }
        let queues = &mut self.queues[number as usize];
        let handle = match P::QUEUEING {
            Queueing::Classes => queues.pop(port, &mut self.pool),
            Queueing::Ranks => queues.pop_best(port, &mut self.pool),
        };
        let (switch, more) = (port.switch, port.waiting != 0);
        self.used[switch as usize] -= u64::from(self.pool.get(handle).wire_bytes);
        if number < self.n_ends && !self.pool.get(handle).marks.contains(Marks::ROUTED) {
            self.pool.get_mut(handle).path = self.take_path(number);
        }
        if number < self.n_ends {
            leaves(self.pool.get(handle));
        }
        self.transmit(number, handle, now, wheel);
        if more {
            let port = &mut self.ports[number as usize];
            port.woken = true;
            wheel.push(event(port.busy_until.max(now), WAKE, number));
        }
    }

    #[inline(always)]
    fn forward(&mut self, switch: u32, via: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let packet = self.pool.get_mut(handle);
        let dst = packet.dst.get();
        let path = match self.config.spray {
            Spray::SourceRoundRobin => self.digits[switch as usize].of(packet.path),
            _ if packet.marks.contains(Marks::ROUTED) => {
                self.digits[switch as usize].of(packet.path)
            }
            Spray::Random => self.spray[switch as usize].bits() as u16,
            Spray::Ecmp => flow_hash(packet, switch) as u16,
        };
        let mut egress = self.routes.by_path(switch, dst, path);
        if P::ACTIVE {
            let choices = self.routes.next(switch, dst);
            let ingress = self.opposite[via as usize];
            let crossing = Crossing { now, ingress, egress, choices };
            match self.hops[switch as usize].on_forward(crossing, packet) {
                Verdict::Forward => {}
                Verdict::Via(port) => egress = Some(port),
                Verdict::Drop => {
                    self.discard(via, handle, DropReason::Program);
                    return;
                }
            }
            while let Some((port, packet)) = self.hops[switch as usize].poll_transmit() {
                let handle = self.pool.insert(packet, now);
                self.stats.injected += 1;
                self.send_on(switch, port, handle, now, wheel);
            }
        }
        let Some(egress) = egress else {
            self.discard(via, handle, DropReason::NoRoute);
            return;
        };
        self.send_on(switch, egress, handle, now, wheel);
    }

    /// Takes up a packet at its output port as soon as that may be.
    #[inline(always)]
    fn send_on(&mut self, switch: u32, egress: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        if matches!(self.config.switching, Switching::CutThrough { .. })
            && let Some(at) = self.too_early(egress, handle, now)
        {
            wheel.push(packet_event(at, READY, egress, handle));
            return;
        }
        self.take_up(switch, egress, handle, now, wheel);
    }

    /// When a packet of which only the head is here may start on its output link without running
    /// dry, if that is later than `now`. Until then the link is free for others.
    fn too_early(&mut self, egress: u32, handle: Handle, now: Time) -> Option<Time> {
        let bytes = self.pool.get(handle).wire_bytes;
        let tail = self.pool.stamps(handle).tail;
        let tx = self.ports[egress as usize].tx_time(bytes, &self.rates, egress);
        let at = Time::from_ps(tail.as_ps().saturating_sub(tx.as_ps()));
        (at > now).then_some(at)
    }

    /// The packet that was too early is not any more.
    pub(crate) fn ready(&mut self, egress: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let switch = self.ports[egress as usize].switch;
        self.take_up(switch, egress, handle, now, wheel);
    }

    /// Sends a packet that is at its output port, or queues it there.
    #[inline(always)]
    fn take_up(&mut self, switch: u32, egress: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let packet = self.pool.get(handle);
        let port = &mut self.ports[egress as usize];
        if port.up && port.busy_until <= now && !port.woken {
            self.transmit(egress, handle, now, wheel);
        } else if port.up
            && packet.priority == Priority::HIGHEST
            && packet.wire_bytes <= self.config.express
            && P::QUEUEING == Queueing::Classes
            && !port.highest_waits()
        {
            // Nothing can come before it any more: it leaves when the link falls idle.
            let start = port.busy_until.max(now);
            self.transmit(egress, handle, start, wheel);
        } else {
            self.enqueue(switch, egress, handle, now, wheel);
        }
    }

    fn enqueue(&mut self, switch: u32, egress: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        if !self.ports[egress as usize].up {
            self.discard(egress, handle, DropReason::LinkDown);
            return;
        }
        if !self.make_room(switch, egress, handle) {
            self.discard(egress, handle, DropReason::Buffer);
            return;
        }
        let port = &mut self.ports[egress as usize];
        self.used[switch as usize] += u64::from(self.pool.get(handle).wire_bytes);
        let queues = &mut self.queues[egress as usize];
        match P::QUEUEING {
            Queueing::Classes => queues.push(port, &mut self.pool, handle),
            Queueing::Ranks => queues.push_ranked(port, &mut self.pool, handle),
        }
        if !port.woken {
            port.woken = true;
            wheel.push(event(port.busy_until.max(now), WAKE, egress));
        }
    }

    /// Whether the packet may queue, after pushing out lower ones where the fabric does that.
    fn make_room(&mut self, switch: u32, egress: u32, handle: Handle) -> bool {
        let packet = self.pool.get(handle);
        let (bytes, priority) = (u32::from(packet.wire_bytes), packet.priority);
        let rank = packet.header.rank();
        loop {
            let port = &mut self.ports[egress as usize];
            let fits = if egress < self.n_ends {
                port.queued + bytes <= port.buffer
            } else {
                self.config.admits(port.queued, port.buffer, self.used[switch as usize], bytes)
            };
            if fits {
                return true;
            }
            let queues = &mut self.queues[egress as usize];
            let out = match (P::QUEUEING, self.config.overflow) {
                (Queueing::Ranks, _) => queues.pop_worst(port, &mut self.pool, rank),
                (Queueing::Classes, Overflow::TailDrop) => None,
                (Queueing::Classes, Overflow::PushOut) => {
                    queues.pop_lowest(port, &mut self.pool, priority)
                }
            };
            let Some(out) = out else { return false };
            self.used[switch as usize] -= u64::from(self.pool.get(out).wire_bytes);
            self.discard(egress, out, DropReason::PushedOut);
        }
    }

    /// Puts a packet on a link that is idle at `now` and schedules its arrival.
    #[inline]
    fn transmit(&mut self, number: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let bytes = self.pool.get(handle).wire_bytes;
        let port = &mut self.ports[number as usize];
        assert!(port.busy_until <= now, "port {number} sends two packets at once at {now}");
        let tx = port.tx_time(bytes, &self.rates, number);
        let mut at;
        match self.config.switching {
            Switching::StoreAndForward => {
                port.busy_until = now + tx;
                at = port.busy_until + port.delay;
            }
            Switching::Shaped { burst } => {
                let earliest = Time::from_ps(now.as_ps().saturating_sub(burst.as_ps()));
                port.busy_until = port.busy_until.max(earliest) + tx;
                at = now + port.delay;
                if port.to < self.n_ends {
                    at += tx;
                }
            }
            Switching::CutThrough { header } => {
                port.busy_until = now + tx;
                let tail = port.busy_until + port.delay;
                self.pool.stamps(handle).tail = tail;
                at = if port.to < self.n_ends {
                    tail
                } else {
                    let head = bytes.min(header.get() as u16);
                    now + port.tx_time(head, &self.rates, number) + port.delay
                };
            }
        }
        port.tx_bytes += u64::from(bytes);
        self.stats.hops += 1;
        if port.faulty {
            match self.apply_faults(number, handle, at, wheel) {
                Some(later) => at = later,
                None => return,
            }
        }
        wheel.push(packet_event(at, ARRIVE, number, handle));
    }

    fn discard(&mut self, number: u32, handle: Handle, reason: DropReason) {
        let packet = self.pool.remove(handle);
        let tier = self.ports[number as usize].tier;
        self.stats.count_drop(tier, reason, packet.wire_bytes, packet.payload.len > 0);
    }

    /// Checks that no packet was lost track of. Panics with the counts if one was.
    pub(crate) fn check_conservation(&self) {
        let s = &self.stats;
        let made = s.injected + s.duplicated;
        let ended = s.delivered + s.dropped() + self.pool.len() as u64;
        assert!(made == ended, "{made} packets made, {ended} delivered, dropped or in flight");
    }
}

/// The hash by which equal-cost multipath keeps a message on one path.
fn flow_hash<H>(packet: &Packet<H>, switch: u32) -> u64 {
    let ends = u64::from(packet.src.get()) << 32 | u64::from(packet.dst.get());
    mix(mix(ends) ^ (u64::from(packet.payload.msg.get()) << 32 | u64::from(switch)))
}
