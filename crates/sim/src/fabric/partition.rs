//! A partition of a fabric: the ports and switches that one thread runs, and the packets that cross
//! to other partitions.
//!
//! A partition has the tables of the whole fabric, so that numbers of ports and switches mean the
//! same everywhere. It uses those of its own stations and switches. A port that leads to another
//! partition is irregular: its packets are posted instead of scheduled.

use rampmeter_types::{Header, Packet, SwitchFacts, SwitchProgram, Time};

use super::border::{PartitionBoundary, PartitionPacket};
use super::config::Scheduling;
use super::discipline::FairIndex;
use super::fault::Faults;
use super::ingress::Ingress;
use super::pfc::Pfc;
use super::port::Queues;
use super::stats::{DropReason, FabricStats, LongestQueue, TierStats};
use super::watch::PortEventLog;
use super::{Fabric, Interface};
use crate::engine::event::{ARRIVE, packet_event};
use crate::engine::{Handle, Links, NIL, PacketPool, PacketTimes, Wheel};
use crate::topo::Partitions;

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns why the fabric cannot be divided; `None` if it can.
    pub(crate) fn reason_for_one_thread(&self) -> Option<&'static str> {
        let has_shared_coins = !self.mark_coins.is_empty();
        match () {
            () if !self.faults.is_none() => Some("links have faults or change"),
            () if self.pfc.is_on() => Some("switches pause links"),
            () if P::COUNTS_INGRESS || self.ingress.is_on => Some("switches count by ingress port"),
            () if self.occupancy.is_on => Some("switches have no buffers"),
            () if self.config.scheduling == Scheduling::Fair => Some("ports are fair"),
            () if has_shared_coins && self.config.interface == Interface::Queue => {
                Some("interfaces of hosts mark packets at random")
            }
            () => None,
        }
    }

    /// Returns a partition without packets. `program` makes programs that stand for those of other
    /// partitions' switches; its own are moved to it.
    pub(crate) fn partition(
        &mut self,
        number: usize,
        partitions: &Partitions,
        seed: u64,
        program: impl Fn(SwitchFacts) -> P,
    ) -> Self {
        let mut ports = self.ports.clone();
        let mut leads_to = vec![None; ports.len()];
        for (at, port) in ports.iter_mut().enumerate() {
            let far = self.far_partition(at as u32, partitions);
            if self.owning_partition(at as u32, partitions) == number && far != number {
                leads_to[at] = Some(far as u16);
                port.is_irregular = true;
            }
        }
        let mut programs: Vec<P> = (0..self.topology.n_switches())
            .map(|switch| program(self.switch_facts(switch, seed)))
            .collect();
        for (switch, own) in programs.iter_mut().enumerate() {
            if partitions.of_switch(switch as u32) == number {
                std::mem::swap(own, &mut self.programs[switch]);
            }
        }
        Self {
            config: self.config.clone(),
            n_stations: self.n_stations,
            n_interfaces: self.n_interfaces,
            first_ports: self.first_ports.clone(),
            queues: vec![Queues::EMPTY; ports.len()],
            ports,
            fair: FairIndex::default(),
            rates: self.rates.clone(),
            pool: PacketPool::new(),
            border: PartitionBoundary {
                leads_to,
                departed: (0..partitions.len()).map(|_| Vec::new()).collect(),
                n_away: 0,
            },
            topology: self.topology.clone(),
            routes: self.routes.clone(),
            planes: self.planes.clone(),
            programs,
            timers: self.timers.clone(),
            opposite: self.opposite.clone(),
            ingress: Ingress::new(false, 0),
            pfc: Pfc::disabled(),
            occupancy: self.occupancy.clone(),
            express_max: self.express_max,
            marking: self.marking.clone(),
            mark_coins: self.mark_coins.clone(),
            drop_unscheduled_above: self.drop_unscheduled_above,
            used_bytes: vec![0; self.used_bytes.len()],
            digits: self.digits.clone(),
            next_path: self.next_path.clone(),
            rails: self.rails,
            loads: self.loads.clone(),
            spray: self.spray.clone(),
            coins: self.coins.clone(),
            faults: Faults::none(),
            stats: self.stats.partition(),
            watch: PortEventLog::new(),
        }
    }

    /// Moves the queued packets of a partition's ports to it.
    pub(crate) fn move_queues(&mut self, number: usize, partitions: &Partitions, to: &mut Self) {
        for port in 0..self.ports.len() as u32 {
            if self.owning_partition(port, partitions) == number {
                self.move_queue(port, to);
            }
        }
    }

    /// Takes the state of a partition's switches, interfaces and ports back, with their packets.
    pub(crate) fn rejoin(&mut self, number: usize, partitions: &Partitions, mut from: Self) {
        self.update(number, partitions, &mut from);
        for at in 0..self.ports.len() {
            if self.owning_partition(at as u32, partitions) == number {
                from.move_queue(at as u32, self);
                self.loads[at] = from.loads[at];
            }
        }
        for switch in (0..self.topology.n_switches() as usize)
            .filter(|&switch| partitions.of_switch(switch as u32) == number)
        {
            std::mem::swap(&mut self.programs[switch], &mut from.programs[switch]);
            std::mem::swap(&mut self.spray[switch], &mut from.spray[switch]);
            if let (Some(own), Some(other)) =
                (self.coins.get_mut(switch), from.coins.get_mut(switch))
            {
                std::mem::swap(own, other);
            }
            if let (Some(own), Some(other)) =
                (self.mark_coins.get_mut(switch), from.mark_coins.get_mut(switch))
            {
                std::mem::swap(own, other);
            }
            if let (Some(own), Some(other)) = (self.timers.get_mut(switch), from.timers.get(switch))
            {
                *own = *other;
            }
        }
        let (first, count) = partitions.stations(number);
        let stations = first as usize..(first + count) as usize;
        self.next_path[stations.clone()].copy_from_slice(&from.next_path[stations]);
    }

    /// Updates the observed state of a partition's ports, and its counters.
    pub(crate) fn update(&mut self, number: usize, partitions: &Partitions, from: &mut Self) {
        for at in 0..self.ports.len() {
            if self.owning_partition(at as u32, partitions) == number {
                let is_irregular = self.ports[at].is_irregular;
                self.ports[at] = from.ports[at].clone();
                self.ports[at].is_irregular = is_irregular;
            }
        }
        self.stats.add_partition(&mut from.stats);
        self.border.n_away += from.pool.len() as u64;
    }

    /// Moves the queue of a port, whose state the other fabric has already.
    fn move_queue(&mut self, port: u32, to: &mut Self) {
        let queues = std::mem::replace(&mut self.queues[port as usize], Queues::EMPTY);
        let mut waiting = Vec::new();
        queues.for_each_list(&self.pool, |class, handle| waiting.push((class, handle)));
        let switch = self.ports[port as usize].switch;
        for (class, handle) in waiting {
            self.end_wait(switch, handle);
            let moved = self.move_packet(handle, to);
            to.begin_wait(switch, moved);
            to.queues[port as usize].append_only(class, &mut to.pool, moved);
        }
    }

    /// Moves a packet to another fabric. Returns its place there.
    pub(crate) fn move_packet(&mut self, handle: Handle, to: &mut Self) -> Handle {
        let times = *self.pool.stamps(handle);
        to.put(self.pool.remove(handle), times)
    }

    fn put(&mut self, packet: Packet<H>, times: PacketTimes) -> Handle {
        let handle = self.pool.insert(packet, times.sent);
        *self.pool.stamps(handle) = times;
        handle
    }

    /// Returns the arrival time of a packet that an irregular link would deliver at `at`. Returns
    /// `None` if it is lost or has left the partition.
    #[cold]
    pub(super) fn send_irregularly(
        &mut self,
        port: u32,
        handle: Handle,
        at: Time,
        wheel: &mut Wheel,
    ) -> Option<Time> {
        let Some(&leads_to) = self.border.leads_to.get(port as usize) else {
            return self.apply_faults(port, handle, at, wheel);
        };
        let to = leads_to.expect("other links of a partition have no faults");
        let times = *self.pool.stamps(handle);
        let packet = self.pool.remove(handle);
        self.border.departed[usize::from(to)].push(PartitionPacket { at, port, packet, times });
        None
    }

    /// Takes the packets that have left for a partition.
    pub(crate) fn take_left(&mut self, to: usize) -> Vec<PartitionPacket<H>> {
        std::mem::take(&mut self.border.departed[to])
    }

    /// Sets the number of packets in partitions, before [`Self::update`] adds theirs.
    pub(crate) fn set_packets_away(&mut self, n: u64) {
        self.border.n_away = n;
    }

    /// Schedules the arrivals of packets from another partition.
    pub(crate) fn admit_crossings(
        &mut self,
        crossings: Vec<PartitionPacket<H>>,
        wheel: &mut Wheel,
    ) {
        for PartitionPacket { at, port, packet, times } in crossings {
            let handle = self.put(packet, times);
            wheel.push(packet_event(at, ARRIVE, port, handle));
        }
    }

    /// Returns the partition of the node that sends by a port.
    pub(crate) fn owning_partition(&self, port: u32, partitions: &Partitions) -> usize {
        match port < self.n_interfaces {
            true => partitions.of_station(self.routes.owner(port)),
            false => partitions.of_switch(self.ports[port as usize].switch),
        }
    }

    /// Returns the partition of the node that a port leads to.
    pub(crate) fn far_partition(&self, port: u32, partitions: &Partitions) -> usize {
        let to = self.ports[port as usize].far_end;
        match to.checked_sub(self.n_stations) {
            None => partitions.of_station(to),
            Some(switch) => partitions.of_switch(switch),
        }
    }
}

impl Queues {
    /// Calls `visit` with each packet and its list, in their order.
    fn for_each_list<H: Copy>(&self, pool: &PacketPool<H>, mut visit: impl FnMut(usize, Handle)) {
        for (class, head) in self.head.into_iter().enumerate() {
            let mut at = head;
            while at != NIL {
                visit(class, at);
                at = pool.next(at);
            }
        }
    }

    /// Appends a packet to a list that its port counts already.
    fn append_only<H: Copy>(&mut self, class: usize, pool: &mut PacketPool<H>, handle: Handle) {
        let last = std::mem::replace(&mut self.tail[class], handle);
        *pool.links(handle) = Links { next: NIL, previous: last };
        match last {
            NIL => self.head[class] = handle,
            _ => pool.links(last).next = handle,
        }
    }
}

impl FabricStats {
    /// Returns counters of the same tiers, for a partition.
    pub(super) fn partition(&self) -> Self {
        let mut tiers = self.tiers.clone();
        for tier in &mut tiers {
            tier.reset();
        }
        Self::new(tiers, false)
    }

    /// Adds the counters of a partition, and resets them.
    pub(super) fn add_partition(&mut self, from: &mut Self) {
        self.hops += std::mem::take(&mut from.hops);
        self.injected += std::mem::take(&mut from.injected);
        self.duplicated += std::mem::take(&mut from.duplicated);
        self.delivered += std::mem::take(&mut from.delivered);
        self.consumed += std::mem::take(&mut from.consumed);
        for (key, count) in std::mem::take(&mut from.drops) {
            let own = self.drops.entry(key).or_default();
            own.packets += count.packets;
            own.data_packets += count.data_packets;
            own.bytes += count.bytes;
        }
        for (tier, other) in self.tiers.iter_mut().zip(&mut from.tiers) {
            tier.add(other);
        }
        for n in 0..self.peaks.len() {
            let (own, other) = (self.tiers[n].queue_max, from.tiers[n].queue_max);
            let order = |peak: &Option<LongestQueue>| {
                peak.map(|LongestQueue { at, instant, .. }| (at, instant))
            };
            let is_first = order(&from.peaks[n]) < order(&self.peaks[n]);
            if other > own || other == own && from.peaks[n].is_some() && is_first {
                self.tiers[n].queue_max = other;
                self.peaks[n] = from.peaks[n];
            }
            from.tiers[n].reset();
        }
    }
}

impl TierStats {
    /// Sets all counters to zero, but the longest queue.
    fn reset(&mut self) {
        self.bytes = 0;
        self.marks = 0;
        self.trimming = None;
        self.drops = [0; DropReason::COUNT];
        self.data_drops = 0;
        self.bytes_dropped = 0;
    }

    /// Adds the counters of a partition's ports of this tier.
    fn add(&mut self, other: &Self) {
        self.marks += other.marks;
        if let Some(of) = other.trimming {
            let own = self.trimming.get_or_insert_default();
            own.trims += of.trims;
            own.returns += of.returns;
            own.data_max = own.data_max.max(of.data_max);
            own.headers_max = own.headers_max.max(of.headers_max);
        }
        for (own, of) in self.drops.iter_mut().zip(other.drops) {
            *own += of;
        }
        self.data_drops += other.data_drops;
        self.bytes_dropped += other.bytes_dropped;
    }
}
