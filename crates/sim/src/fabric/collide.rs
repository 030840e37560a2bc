//! Collisions: packets that find their port busy if nothing may wait (Fastpod §3.3).
//!
//! A packet that was sent without a schedule makes way for any other. The part already sent, its
//! stump, is forwarded, and the links ahead are busy for the stump only. The end that it reaches
//! drops it, as does a switch that waits for more bytes than the stump has.

use rampmeter_types::packet::Marks;
use rampmeter_types::{Header, MsgId, NodeId, Packet, SwitchProgram, Time};

use super::config::{FabricConfig, PacketFate, Switching};
use super::stats::DropReason;
use super::{Fabric, PortChange};
use crate::engine::{Handle, NIL, Wheel};
use crate::topo::Node;

/// Kind of a collision, by the packets that collided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollisionKind {
    /// Two control packets: they carry no payload.
    ControlControl,
    /// A control packet and scheduled data.
    ControlData,
    /// Two packets of scheduled data.
    ScheduledScheduled,
    /// A packet without a schedule and any other.
    Unscheduled,
}

impl CollisionKind {
    /// Number of kinds.
    pub const COUNT: usize = 4;
    /// Names of the kinds in results, in order.
    pub const NAMES: [&'static str; Self::COUNT] =
        ["control-control", "control-data", "scheduled-scheduled", "unscheduled"];

    fn new(a: CollidingPacket, b: CollidingPacket) -> Self {
        match (a.is_unscheduled || b.is_unscheduled, a.is_control, b.is_control) {
            (true, ..) => Self::Unscheduled,
            (false, true, true) => Self::ControlControl,
            (false, false, false) => Self::ScheduledScheduled,
            (false, ..) => Self::ControlData,
        }
    }
}

/// A packet that takes part in a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollidingPacket {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// The message that it is about.
    pub msg: MsgId,
    /// The first of the message's bytes that it carries.
    pub offset: u64,
    /// True if it carries no payload.
    pub is_control: bool,
    /// True if it was sent without a schedule.
    pub is_unscheduled: bool,
}

impl CollidingPacket {
    fn new<H>(packet: &Packet<H>) -> Self {
        Self {
            src: packet.src,
            dst: packet.dst,
            msg: packet.payload.msg,
            offset: packet.payload.offset,
            is_control: packet.payload.len == 0,
            is_unscheduled: packet.marks.contains(Marks::UNSCHEDULED),
        }
    }
}

/// A collision of two packets of which neither makes way: a sender has broken the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Time at which the head of the second packet was at the port.
    pub at: Time,
    /// The end of the port's link that sends.
    pub from: Node,
    /// The end that receives.
    pub to: Node,
    /// Kind of the collision.
    pub kind: CollisionKind,
    /// The packet that was dropped.
    pub arriving_packet: CollidingPacket,
    /// The packet on the link.
    pub transmitted_packet: CollidingPacket,
}

/// The collisions of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Collisions {
    /// Number of collisions by [`CollisionKind`].
    pub kinds: [u64; CollisionKind::COUNT],
    /// The first of those in which neither packet was preempted.
    pub violations: Vec<Violation>,
}

impl Collisions {
    /// Maximum number of violations that are kept.
    pub const VIOLATIONS_MAX: usize = 16;
}

/// The packet that a port's link was given last.
#[derive(Clone, Copy, Debug)]
struct Occupant {
    handle: Handle,
    /// Number that distinguishes it from later packets of the same handle.
    generation: u32,
    /// Start of the transmission.
    from: Time,
    /// Bytes of the packet that are sent.
    bytes: u16,
    packet: CollidingPacket,
}

/// State of a packet in flight.
#[derive(Clone, Copy, Debug, Default)]
struct PacketState {
    /// Number of packets of this handle that have been dropped.
    generation: u32,
    is_cut: bool,
}

/// Packet on each link. If packets may wait, this is off, empty, and not updated.
#[derive(Clone, Debug)]
pub(super) struct Occupancy {
    pub(super) is_on: bool,
    /// Last packets by port.
    last: Vec<Occupant>,
    /// States of packets by handle.
    fates: Vec<PacketState>,
}

impl Occupancy {
    pub(super) fn new(config: &FabricConfig, n_ports: usize) -> Self {
        let is_on = config.is_memoryless();
        let nobody = CollidingPacket {
            src: NodeId::new(0),
            dst: NodeId::new(0),
            msg: MsgId::new(0),
            offset: 0,
            is_control: false,
            is_unscheduled: false,
        };
        let none =
            Occupant { handle: NIL, generation: 0, from: Time::ZERO, bytes: 0, packet: nobody };
        Self { is_on, last: vec![none; if is_on { n_ports } else { 0 }], fates: Vec::new() }
    }

    /// Puts a packet on a link.
    pub(super) fn occupy<H>(&mut self, port: u32, handle: Handle, packet: &Packet<H>, from: Time) {
        if self.fates.len() <= handle as usize {
            self.fates.resize(handle as usize + 1, PacketState::default());
        }
        let (generation, bytes) = (self.fates[handle as usize].generation, packet.wire_bytes);
        self.last[port as usize] =
            Occupant { handle, generation, from, bytes, packet: CollidingPacket::new(packet) };
    }

    /// Resets the state of a dropped packet's handle, which may be reused.
    pub(super) fn forget(&mut self, handle: Handle) {
        if let Some(fate) = self.fates.get_mut(handle as usize) {
            *fate = PacketState { generation: fate.generation.wrapping_add(1), is_cut: false };
        }
    }

    /// Returns true if a packet has been cut off.
    fn is_cut(&self, handle: Handle) -> bool {
        self.fates.get(handle as usize).is_some_and(|fate| fate.is_cut)
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns true if a packet that arrives at a switch, or at an end, is dropped there as it was
    /// cut off.
    #[inline]
    pub(super) fn is_truncated_end(&self, handle: Handle, is_end: bool) -> bool {
        if !self.occupancy.is_cut(handle) {
            return false;
        }
        let bytes = u64::from(self.pool.get(handle).wire_bytes);
        match self.config.switching {
            Switching::CutThrough { header } => {
                is_end
                    || self.config.unscheduled_collision == PacketFate::Vanish
                    || bytes < header.get()
            }
            // The whole packet is received before it is forwarded, and the damage is detected.
            Switching::StoreAndForward | Switching::Shaped { .. } => true,
        }
    }

    /// A packet finds its port busy, and cannot wait.
    #[cold]
    pub(super) fn collide(&mut self, port: u32, handle: Handle, now: Time, wheel: &mut Wheel) {
        let arriving_packet = CollidingPacket::new(self.pool.get(handle));
        let transmitted_packet = self.occupancy.last[port as usize].packet;
        let kind = CollisionKind::new(arriving_packet, transmitted_packet);
        // Only switches cut off. An end does not begin a packet that it cannot finish.
        let is_switch = port >= self.n_interfaces;
        let is_preempted =
            is_switch && transmitted_packet.is_unscheduled && !arriving_packet.is_unscheduled;
        let (from, to) = (self.port(port).from, self.port(port).to);
        let collisions = self.stats.collisions.get_or_insert_default();
        collisions.kinds[kind as usize] += 1;
        if is_preempted {
            self.cut_off(port, now);
            self.start_tx(port, handle, now, wheel);
            return;
        }
        if !arriving_packet.is_unscheduled
            && collisions.violations.len() < Collisions::VIOLATIONS_MAX
        {
            let violation =
                Violation { at: now, from, to, kind, arriving_packet, transmitted_packet };
            collisions.violations.push(violation);
        }
        self.discard(port, handle, DropReason::Collision);
    }

    /// Cuts off the packet on a port's link, which is free at once.
    fn cut_off(&mut self, port: u32, now: Time) {
        let Occupant { handle, generation, .. } = self.occupancy.last[port as usize];
        let stump = self.sent_by(port, now);
        self.shorten(port, stump);
        self.ports[port as usize].busy_until = now;
        if self.occupancy.fates[handle as usize].generation != generation {
            // The head has been dropped already; this was the rest.
            return;
        }
        self.record(port, |fabric| PortChange::CutOff { handle, packet: *fabric.pool.get(handle) });
        self.occupancy.fates[handle as usize].is_cut = true;
        let bytes = &mut self.pool.get_mut(handle).wire_bytes;
        if stump >= *bytes {
            // A switch further on has cut off more.
            return;
        }
        *bytes = stump;
        let mut last = port;
        while let Some(next) = self.port_ahead(last, handle, generation, now) {
            match self.config.unscheduled_collision {
                PacketFate::CutOff => self.shorten(next, stump),
                PacketFate::Vanish => {
                    self.shorten(next, self.sent_by(next, now));
                    self.ports[next as usize].busy_until = now;
                }
            }
            last = next;
        }
        let port = &self.ports[last as usize];
        self.pool.stamps(handle).tail = port.busy_until + port.delay;
    }

    /// Returns the port of the next switch whose link a packet is on too.
    fn port_ahead(&self, port: u32, handle: Handle, incarnation: u32, now: Time) -> Option<u32> {
        let switch = self.ports[port as usize].far_end.checked_sub(self.n_stations)? as usize;
        (self.first_ports[switch]..self.first_ports[switch + 1]).find(|&next| {
            let on_it = &self.occupancy.last[next as usize];
            let is_busy = self.ports[next as usize].busy_until > now;
            is_busy && on_it.handle == handle && on_it.generation == incarnation
        })
    }

    /// Returns the whole bytes that a port has sent of the packet on its link.
    fn sent_by(&self, port: u32, now: Time) -> u16 {
        let Occupant { from, bytes, .. } = self.occupancy.last[port as usize];
        let sent = self.rates[port as usize].bytes_floor(now.saturating_since(from));
        sent.get().min(u64::from(bytes)) as u16
    }

    /// Shortens the packet on a port's link to `bytes`: frees the link earlier, and corrects the
    /// port's count of bytes.
    fn shorten(&mut self, number: u32, bytes: u16) {
        let transmitted_packet = &mut self.occupancy.last[number as usize];
        if bytes >= transmitted_packet.bytes {
            return;
        }
        let port = &mut self.ports[number as usize];
        port.tx_bytes -= u64::from(transmitted_packet.bytes - bytes);
        port.busy_until = transmitted_packet.from + port.tx_time(bytes, &self.rates, number);
        transmitted_packet.bytes = bytes;
    }
}
