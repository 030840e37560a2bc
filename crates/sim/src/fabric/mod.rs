//! The fabric: ports, buffers, switches, and the packets inside.
//!
//! One event a hop: a packet that finds its output port idle is put on the link at once. Only its
//! arrival at the far end is scheduled. A packet that finds the port busy queues, and the port is
//! woken when its link falls idle, and strict priorities choose the next packet. So a second event
//! is spent only on packets that wait.
//!
//! # Express packets
//!
//! The problem: receiver-driven transports send about one token for each data packet. Under load
//! they find many ports busy. In the simple way each of them queues and costs a second event.
//!
//! The present way: a packet is express if it has the highest priority and at most `express` bytes.
//! Its port must be up and not paused, and no packet of the highest priority may be queued. Strict
//! priority then makes its departure certain: it is the next packet on the link. So `send_or_queue`
//! starts it at `busy_until` and schedules only its arrival. Later express packets start behind it.
//! A wake-up that finds the link taken is repeated when it falls idle.
//!
//! Hazards: an express packet is in no queue. It uses no buffer memory, is not marked, dropped or
//! trimmed, and does not count in queue lengths. Fabrics in which such packets compete for buffers
//! set `express` to 0, and Aeolus sets it below its shortest unscheduled packet. Its start is
//! decided ahead, so a later pause would not stop it. PFC that pauses the highest class thus needs
//! `express` to be 0. Only queueing by classes has express packets, and bufferless fabrics have
//! none (`express_packets_are_dropped_too`). Programs receive a departure time later than now
//! ([`Departure`](rampmeter_types::Departure)).
//!
//! The functions of an arrival are always inlined. Simulators with and without a view of packets
//! share them, and a compiler that sees two callers would emit calls.

mod border;
mod by_port;
mod collide;
mod config;
mod deadlock;
mod discipline;
mod fault;
mod ingress;
mod outage;
mod partition;
mod pfc;
mod port;
mod program;
mod queueing;
mod setup;
mod stats;
mod trim;
mod uplink;
mod watch;

pub use by_port::{PortBytes, PortGroup};
pub use collide::{CollidingPacket, CollisionKind, Collisions, Violation};
pub use config::{
    Buffer, FabricConfig, Interface, Overflow, PacketFate, PfcConfig, Scheduling, Spray, Switching,
};
pub use deadlock::Deadlock;
pub use fault::{FaultSpec, LinkFault, Outage};
pub use pfc::PfcStats;
pub use stats::{
    DropCount, DropReason, FabricStats, PortId, PortSample, TierStats, TrimStats, link_tiers,
    port_groups, tier_capacities, tier_names,
};
pub use watch::{PortChange, PortEvent};

use std::sync::Arc;

use crate::blame::{Period, PortTimes};
use crate::engine::event::{ARRIVE, READY, packet_event};
use crate::engine::{Handle, PacketPool, Wheel, prefetch};
use crate::topo::{Routes, Topology};
use border::PartitionBoundary;
pub(crate) use border::PartitionPacket;
use by_port::Marking;
use collide::Occupancy;
use discipline::FairIndex;
use fault::Faults;
use ingress::Ingress;
use pfc::Pfc;
use port::{Port, Queues};
use rampmeter_types::SourceRoute;
use rampmeter_types::packet::Marks;
use rampmeter_types::rng::mix;
use rampmeter_types::{
    Header, Packet, Planes, Priority, Rate, Rng, SwitchProgram, Time, TransitPacket, Verdict,
};
use stats::PathDigit;
use watch::PortEventLog;

/// All nodes and links, and the packets in them.
#[derive(Debug)]
pub struct Fabric<H, P> {
    config: FabricConfig,
    /// Hosts and arbiters.
    n_stations: u32,
    /// Ports of hosts and arbiters.
    n_interfaces: u32,
    /// The first port of each switch, and last the number of ports.
    first_ports: Vec<u32>,
    pub(crate) ports: Vec<Port>,
    queues: Vec<Queues>,
    /// Packets by the tags of fair queueing, if ports are fair.
    fair: FairIndex,
    rates: Vec<Rate>,
    pub(crate) pool: PacketPool<H>,
    /// Links to other partitions.
    border: PartitionBoundary<H>,
    topology: Topology,
    routes: Routes,
    /// Planes that endpoints of hosts are divided by.
    planes: Option<Arc<Planes>>,
    programs: Vec<P>,
    /// Time of each program's earliest timer event in the queue; empty without timers.
    timers: Vec<Time>,
    /// The port at the far end of each port's link; empty if it is not needed.
    opposite: Vec<u32>,
    /// Queued bytes by the port at which they arrived.
    ingress: Ingress,
    /// State of paused ports.
    pfc: Pfc,
    /// Packet on each link, if packets may not wait.
    occupancy: Occupancy,
    /// The longest packet that is express.
    express_max: u16,
    /// Distinct thresholds of marks; `Port::marking` is an index into these.
    marking: Vec<Marking>,
    /// Coins of each switch for marks of a share of packets; empty if no port marks so.
    mark_coins: Vec<Rng>,
    /// Switch ports with longer queues drop unscheduled packets.
    drop_unscheduled_above: u32,
    /// Bytes waiting in each switch, and last those in all hosts' interfaces.
    used_bytes: Vec<u64>,
    /// Part of a packet's path number for each switch.
    digits: Vec<PathDigit>,
    /// The next path number of each host's interface.
    next_path: Vec<u16>,
    /// The most links of any host.
    rails: u16,
    /// Loads by port.
    loads: Vec<uplink::Load>,
    spray: Vec<Rng>,
    /// Random stream of each switch that chooses the packet to trim; empty if ports do not trim.
    coins: Vec<Rng>,
    faults: Faults,
    pub(crate) stats: FabricStats,
    /// Used if ports are watched.
    pub(crate) watch: PortEventLog<H>,
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the fabric with hosts whose endpoints are divided by `planes`.
    pub fn with_planes(self, planes: Option<Arc<Planes>>) -> Self {
        Self { planes, ..self }
    }

    /// Returns the topology of the fabric.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the number of ports that are the interfaces of hosts and arbiters. Those of switches
    /// follow, switch by switch, in the order of their links.
    pub fn n_interfaces(&self) -> u32 {
        self.n_interfaces
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> &FabricStats {
        &self.stats
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
        if port.is_irregular && self.lost_in_outage(via, handle, now) {
            self.discard(via, handle, DropReason::LinkDown);
            return None;
        }
        let to = self.ports[via as usize].far_end;
        if self.occupancy.is_on && self.is_truncated_end(handle, to < self.n_stations) {
            self.discard(via, handle, DropReason::CutOff);
            return None;
        }
        if to < self.n_stations {
            self.record(via, |fabric| PortChange::Arrival {
                handle,
                packet: *fabric.pool.get(handle),
            });
            return Some(to);
        }
        if P::COUNTS_INGRESS || self.ingress.is_on {
            self.ingress.on_arrival(handle, self.opposite[via as usize]);
        }
        self.forward(to - self.n_stations, via, handle, now, wheel);
        None
    }

    /// Starts to load the packet and the port of an arrival. Other numbers have no effect.
    #[inline]
    pub(crate) fn prefetch_arrival(&self, via: u32, handle: Handle) {
        self.pool.prefetch(handle);
        if let Some(port) = self.ports.get(via as usize) {
            prefetch(port);
        }
    }

    /// Prefetches the forwarding entry at a switch, or the times of the packet at a host. Returns
    /// the number of the host.
    #[inline]
    pub(crate) fn prefetch_next_hop(&self, via: u32, handle: Handle) -> Option<u32> {
        let to = self.ports[via as usize].far_end;
        let Some(switch) = to.checked_sub(self.n_stations) else {
            self.pool.prefetch_stamps(handle);
            return Some(to);
        };
        self.routes.prefetch(switch, self.pool.get(handle).dst.get());
        None
    }

    /// Starts to load the output port of an arrival at a switch, by its path number.
    #[inline]
    pub(crate) fn prefetch_egress(&self, via: u32, handle: Handle) {
        let to = self.ports[via as usize].far_end;
        let Some(switch) = to.checked_sub(self.n_stations) else { return };
        let packet = self.pool.get(handle);
        let path = self.digits[switch as usize].choice(packet.path);
        if let Some(egress) = self.routes.by_path(switch, packet.dst.get(), path) {
            prefetch(&self.ports[egress as usize]);
        }
    }

    /// Takes a packet out of the fabric at its host, which has read it.
    #[inline]
    pub(crate) fn remove_delivered(&mut self, handle: Handle) {
        self.stats.delivered += 1;
        self.pool.remove(handle);
    }

    #[inline(always)]
    fn forward(&mut self, switch: u32, via: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let packet = self.pool.get_mut(handle);
        let dst = packet.dst.get();
        let path = match packet.header.spray().unwrap_or(self.config.spray) {
            Spray::SourceRoundRobin => self.digits[switch as usize].choice(packet.path),
            _ if packet.marks.contains(Marks::ROUTED) => {
                self.digits[switch as usize].choice(packet.path)
            }
            Spray::Random => self.spray[switch as usize].bits() as u16,
            Spray::Ecmp => flow_hash(packet, packet.payload.msg.get(), switch) as u16,
            Spray::EcmpPair => flow_hash(packet, 0, switch) as u16,
        };
        let mut egress = match packet.marks.contains(Marks::SOURCE_ROUTED) {
            false => self.routes.by_path(switch, dst, path),
            true => {
                let (digit, rest) = SourceRoute::split(packet.path);
                packet.path = rest;
                let port = self.first_ports[switch as usize] + u32::from(digit);
                (port < self.first_ports[switch as usize + 1]).then_some(port)
            }
        };
        if P::HANDLES_FORWARD && self.programs[switch as usize].is_enabled() {
            // A source route may lead to nodes without a routing table.
            let choices = match packet.marks.contains(Marks::SOURCE_ROUTED) {
                false => self.routes.next(switch, dst),
                true => &[],
            };
            let ingress = self.opposite[via as usize];
            let crossing = TransitPacket { now, ingress, egress, choices };
            match self.programs[switch as usize].on_forward(crossing, packet) {
                Verdict::Forward => {}
                Verdict::Redirect(port) => egress = Some(port),
                Verdict::Drop => {
                    self.discard(via, handle, DropReason::Program);
                    self.run_program(switch, now, wheel);
                    return;
                }
                Verdict::Consume => {
                    self.consume(via, handle);
                    self.run_program(switch, now, wheel);
                    return;
                }
            }
            self.run_program(switch, now, wheel);
        }
        let Some(egress) = egress else {
            self.discard(via, handle, DropReason::NoRoute);
            return;
        };
        self.defer_cut_through(switch, egress, handle, now, wheel);
    }

    /// Takes up a packet at its output port as soon as that may be.
    #[inline(always)]
    pub(super) fn defer_cut_through(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        if matches!(self.config.switching, Switching::CutThrough { .. })
            && let Some(at) = self.too_early(egress, handle, now)
        {
            if self.pool.get(handle).payload.len > 0 {
                self.note_transit(|transits| transits.note_tail_wait(handle, at - now));
            }
            wheel.push(packet_event(at, READY, egress, handle));
            return;
        }
        self.send_or_queue(switch, egress, handle, now, wheel);
    }

    /// Returns the earliest start without underrun of a packet whose tail has not arrived; `None`
    /// if it is not later than `now`. Until then the output link is free for others.
    fn too_early(&mut self, egress: u32, handle: Handle, now: Time) -> Option<Time> {
        let bytes = self.pool.get(handle).wire_bytes;
        let tail = self.pool.stamps(handle).tail;
        let tx = self.ports[egress as usize].tx_time(bytes, &self.rates, egress);
        let at = Time::from_ps(tail.as_ps().saturating_sub(tx.as_ps()));
        (at > now).then_some(at)
    }

    /// Resumes the packet that was too early for cut-through.
    pub(crate) fn resume_cut_through(
        &mut self,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        if self.occupancy.is_on && self.is_truncated_end(handle, false) {
            self.discard(egress, handle, DropReason::CutOff);
            return;
        }
        let switch = self.ports[egress as usize].switch;
        self.send_or_queue(switch, egress, handle, now, wheel);
    }

    /// Sends a packet that is at its output port, or queues it there.
    #[inline(always)]
    fn send_or_queue(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        let packet = self.pool.get(handle);
        let port = &self.ports[egress as usize];
        let may_start = port.is_up && !port.is_paused(packet.priority);
        if may_start && port.busy_until <= now && !port.has_wakeup {
            self.start_tx(egress, handle, now, wheel);
        } else if may_start
            && packet.priority == Priority::HIGHEST
            && packet.wire_bytes <= self.express_max
            && discipline::is_express(P::QUEUEING)
            && !port.has_highest_queued()
        {
            // No packet can overtake it any more: it is sent when the link falls idle.
            let start = port.busy_until.max(now);
            self.start_tx(egress, handle, start, wheel);
        } else {
            self.enqueue(switch, egress, handle, now, wheel);
        }
    }

    /// Puts a packet on a link that is idle at `now` and schedules its arrival.
    #[inline]
    fn start_tx(&mut self, number: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        if P::HANDLES_DEPART && number >= self.n_interfaces {
            self.show_departure(number, handle, now);
        }
        let bytes = self.pool.get(handle).wire_bytes;
        let port = &mut self.ports[number as usize];
        assert!(port.busy_until <= now, "port {number} sends two packets at once at {now}");
        let tx = port.tx_time(bytes, &self.rates, number);
        let busy_before = port.busy_until;
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
                if port.far_end < self.n_stations {
                    at += tx;
                }
            }
            Switching::CutThrough { header } => {
                port.busy_until = now + tx;
                let tail = port.busy_until + port.delay;
                self.pool.stamps(handle).tail = tail;
                at = if port.far_end < self.n_stations {
                    tail
                } else {
                    let head = bytes.min(header.get() as u16);
                    now + port.tx_time(head, &self.rates, number) + port.delay
                };
            }
        }
        port.tx_bytes += u64::from(bytes);
        self.stats.hops += 1;
        let (until, is_irregular) = (port.busy_until, port.is_irregular);
        if self.occupancy.is_on {
            let from = Time::from_ps(until.as_ps() - tx.as_ps());
            self.occupancy.occupy(number, handle, self.pool.get(handle), from);
        }
        if P::IS_WATCHED
            && let Some(transits) = &mut self.watch.transits
        {
            transits.last_until = until;
            let payload = &self.pool.get(handle).payload;
            if payload.len > 0 || transits.logs_control {
                let busy = Period { from: Time::from_ps(until.as_ps() - tx.as_ps()), until };
                let follows = busy_before == busy.from;
                if payload.len > 0 {
                    let times = PortTimes { start: now, port: number, flight: at - now };
                    transits.on_data_start(handle, payload.msg.get(), times, busy, follows);
                } else {
                    transits.on_control_start(number, busy, follows);
                }
            }
        }
        self.record(number, |fabric| {
            let (packet, from) = (*fabric.pool.get(handle), until.as_ps() - tx.as_ps());
            PortChange::TransmitStart { handle, packet, from: Time::from_ps(from), until }
        });
        if is_irregular {
            match self.send_irregularly(number, handle, at, wheel) {
                Some(later) => at = later,
                None => return,
            }
        }
        wheel.push(packet_event(at, ARRIVE, number, handle));
    }

    fn discard(&mut self, number: u32, handle: Handle, reason: DropReason) {
        let packet = self.pool.remove(handle);
        self.occupancy.forget(handle);
        self.record(number, |_| PortChange::Drop { handle, packet, reason });
        let tier = self.ports[number as usize].tier;
        if packet.payload.len > 0 {
            self.note_data_drop(packet.payload.msg.get(), tier);
        }
        self.stats.count_drop(number, tier, reason, packet.wire_bytes, packet.payload.len > 0);
    }

    /// Checks that no packet was lost track of. Panics with the counts if one was.
    pub(crate) fn check_conservation(&self) {
        let s = &self.stats;
        let made = s.injected + s.duplicated;
        let in_flight = self.pool.len() as u64 + self.border.n_away;
        let ended = s.delivered + s.dropped() + s.consumed + in_flight;
        assert!(
            made == ended,
            "{made} packets made, {ended} delivered, dropped, kept or in flight"
        );
        self.check_pfc();
        self.ingress.check(self.used_bytes[..self.used_bytes.len() - 1].iter().sum());
    }
}

/// Returns the hash by which equal-cost multipath keeps a message, or all of a pair of hosts, on
/// one path.
fn flow_hash<H>(packet: &Packet<H>, msg: u32, switch: u32) -> u64 {
    let ends = u64::from(packet.src.get()) << 32 | u64::from(packet.dst.get());
    mix(mix(ends) ^ (u64::from(msg) << 32 | u64::from(switch)))
}
