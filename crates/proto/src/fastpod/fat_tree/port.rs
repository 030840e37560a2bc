//! One port of a core switch: an end of a pod like a host, with queues by host of the pod.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_types::{Bytes, Packet, Span, Time};

use super::stats::CoreStats;
use crate::fastpod::config::{Fastpod, MessageOrder};
use crate::fastpod::core_routes as routes;
use crate::fastpod::packing::{CellTime, cells_of};
use crate::fastpod::pod::backlog::Backlog;
use crate::fastpod::pod::requests::{Grant, HostDemands, RetryAction, SchdAnswer};
use crate::fastpod::routes::control;
use crate::fastpod::timing::{Instant, instant, local};
use crate::fastpod::wire::{FastpodHeader, List, RELAYS_MAX, Relay};

/// The side of a core switch towards one pod.
#[derive(Debug)]
pub(super) struct PodPort {
    pod: u16,
    /// The number of the port in the fabric.
    number: u32,
    requests: HostDemands,
    /// The greatest epoch received, and its arbiter.
    epoch: u32,
    arbiter: u32,
    /// Offset of the arbiter's clock from the switch's; `None` before its first packet arrives.
    offset: Option<Instant>,
    last_schd_at: Time,
    /// Time from which on the offset may be too wrong.
    stale_at: Time,
    open: Option<OpenSlot>,
    /// Cells by host, in their order.
    queues: BTreeMap<u16, Queue>,
    /// Packets that share the cell being sent and are not yet sent.
    packed_packets: VecDeque<Packet<FastpodHeader>>,
    /// Cells that have arrived so far.
    arrived: u64,
    /// Bytes that wait.
    queued_bytes: u64,
    /// Messages of hosts of the pod that have arrived elsewhere.
    relays: Backlog<Relay>,
    /// Space reported by the last RTS.
    reported_space: u32,
    /// Time from which the link is idle.
    idle_at: Time,
    next: Time,
    /// Slots that were given and not used, and are not counted.
    unused: u64,
}

/// The slot that the port is in.
#[derive(Clone, Copy, Debug)]
struct OpenSlot {
    number: u64,
    /// The clock that holds for the whole slot, so that its packets stay apart.
    offset: Instant,
    grant: Option<Grant>,
    has_rts: bool,
    next_cell: u16,
}

/// Queue of packets for one host.
#[derive(Debug, Default)]
struct Queue {
    /// Queued packets by arrival; by the cells of their message first, if short messages are first.
    packets: BTreeMap<(u64, u64), Packet<FastpodHeader>>,
    bytes: u64,
}

impl Queue {
    fn insert(&mut self, key: (u64, u64), packet: &Packet<FastpodHeader>) {
        self.packets.insert(key, *packet);
        self.bytes += u64::from(packet.wire_bytes);
    }

    /// Takes the first packet, if there is time for it in a cell.
    fn take(&mut self, time: &mut CellTime, fastpod: &Fastpod) -> Option<Packet<FastpodHeader>> {
        let first = self.packets.first_entry()?;
        time.place(first.get().wire_bytes, fastpod)?;
        let packet = first.remove();
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Returns the cells that it takes to send all.
    fn cells(&self, fastpod: &Fastpod) -> u64 {
        match fastpod.config.packing {
            false => self.packets.len() as u64,
            true => {
                let packets = self.packets.values().map(|packet| (0, packet.wire_bytes));
                cells_of(packets, self.bytes, fastpod)
            }
        }
    }
}

/// Item sent at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Rts,
    /// A cell's place in the slot, and its host.
    Cell(u16, u16),
}

/// Returns an incarnation that is greater than all before a restart of the switch, as it restarts
/// its requests less than once a slot.
fn incarnation(now: Time, fastpod: &Fastpod) -> u32 {
    let slots = now.as_ps() / fastpod.slot.as_ps().max(1) + 1;
    u32::try_from(slots).unwrap_or(u32::MAX)
}

impl PodPort {
    pub(super) fn new(pod: u16, number: u32) -> Self {
        Self {
            pod,
            number,
            requests: HostDemands::new(Time::ZERO, 0),
            epoch: 0,
            arbiter: 0,
            offset: None,
            last_schd_at: Time::ZERO,
            stale_at: Time::NEVER,
            open: None,
            queues: BTreeMap::new(),
            packed_packets: VecDeque::new(),
            arrived: 0,
            queued_bytes: 0,
            relays: Backlog::default(),
            reported_space: 0,
            idle_at: Time::ZERO,
            next: Time::NEVER,
            unused: 0,
        }
    }

    pub(super) fn pod(&self) -> u16 {
        self.pod
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the bytes that wait.
    pub(super) fn held(&self) -> u64 {
        self.queued_bytes
    }

    /// Returns the time of the next action.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Returns true if a packet of the pod's arbiter arrived within `silence`.
    pub(super) fn is_responsive(&self, now: Time, silence: Span) -> bool {
        self.offset.is_some() && now < self.last_schd_at.saturating_add(silence)
    }

    /// Takes in a cell for a host of the pod.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        packet: &Packet<FastpodHeader>,
        fastpod: &Fastpod,
        core: u16,
    ) {
        if self.queued_bytes == 0 {
            self.requests.begin(now);
        }
        self.advance(now, fastpod, core);
        let host = packet.dst.get() as u16;
        let cells = match (fastpod.config.message_order, packet.header) {
            (MessageOrder::Srpt, FastpodHeader::Cell { size, .. }) => {
                fastpod.segmentation().packets(Bytes::new(size)).into()
            }
            _ => 0,
        };
        self.arrived += 1;
        self.queues.entry(host).or_default().insert((cells, self.arrived), packet);
        self.queued_bytes += u64::from(packet.wire_bytes);
        self.request_slots(now, host, fastpod, core);
    }

    /// Takes an acknowledgement for the pod; false if there is no room.
    pub(super) fn relay(&mut self, relay: Relay) -> bool {
        self.relays.push(relay)
    }

    /// Handles a packet from an arbiter of the pod. Returns the arrivals in the pod; `None` if the
    /// arbiter has been succeeded.
    pub(super) fn on_schd(
        &mut self,
        now: Time,
        which: u32,
        header: &FastpodHeader,
        fastpod: &Fastpod,
        core: u16,
    ) -> Option<List<Relay, RELAYS_MAX>> {
        let &FastpodHeader::CoreSchd {
            epoch,
            stamp,
            slot,
            dst,
            incarnation: known,
            last_rts: answered_rts,
            granted,
            relays,
        } = header
        else {
            return None;
        };
        let is_stale = self.last_schd_at.saturating_add(fastpod.clock_lifetime) <= now;
        if epoch < self.epoch && !is_stale {
            return None;
        }
        if epoch != self.epoch {
            (self.epoch, self.arbiter, self.open) = (epoch, which, None);
            // Another arbiter has no record of this port's free space.
            self.reported_space = 0;
            let next = self.requests.last_rts().0 + 1;
            self.requests = HostDemands::new(now, incarnation(now, fastpod).max(next));
            self.request_all_slots(now, fastpod, core);
        }
        let (timing, end) = (fastpod.timing(self.pod), fastpod.end_of_core(core));
        let delay = timing.schd_delay(which, end);
        let offset = i128::from(stamp) + i128::from(delay.as_ps()) - instant(now);
        (self.offset, self.last_schd_at) = (Some(offset), now);
        self.stale_at = now.saturating_add(fastpod.clock_lifetime);
        let present = timing.slot_at(end, instant(now) + offset).unwrap_or(0);
        // The slot is less than 2^31 slots away.
        let ahead = i64::from(slot.wrapping_sub(present as u32) as i32);
        let is_fine = fastpod.hosts_of(self.pod).contains(&dst.into());
        let grant = present.checked_add_signed(ahead).filter(|_| is_fine);
        let grant = grant.map(|slot| (slot, Grant { dst, agg: 0, is_probe: false }));
        self.requests.on_schd(now, SchdAnswer { incarnation: known, answered_rts, granted }, grant);
        Some(relays)
    }

    /// Sets the time of the next action. `open` has the pods for which there is space.
    pub(super) fn plan(&mut self, now: Time, open: u32, fastpod: &Fastpod, core: u16) {
        let item = match self.packed_packets.is_empty() {
            true => self.next_item(now, open, fastpod, core).map_or(Time::NEVER, local),
            false => now,
        };
        let item = item.max(self.idle_at);
        self.next = self.requests.deadline(self.queued_bytes > 0, fastpod).min(item);
    }

    /// Sends the packets that are due, and restarts requests or drops cells if no arbiter answers.
    pub(super) fn send_due(
        &mut self,
        now: Time,
        open: u32,
        fastpod: &Fastpod,
        core: u16,
        stats: &mut CoreStats,
        out: &mut VecDeque<(u32, Packet<FastpodHeader>)>,
    ) {
        self.advance(now, fastpod, core);
        stats.slots_unused += std::mem::take(&mut self.unused);
        self.emit(now, open, fastpod, core, stats, out);
        if self.queued_bytes == 0 {
            return;
        }
        match self.requests.handle_timeout(now, fastpod) {
            RetryAction::None => {}
            RetryAction::RequestAgain => {
                stats.resets += 1;
                self.request_all_slots(now, fastpod, core);
            }
            RetryAction::Abort => {
                let waiting = self.queues.values().map(|queue| queue.packets.len()).sum::<usize>();
                stats.cells_abandoned += (waiting + self.packed_packets.len()) as u64;
                self.queues.clear();
                self.packed_packets.clear();
                self.queued_bytes = 0;
            }
        }
    }

    /// Makes the packets of the open slot whose instant has arrived. Packets that share a cell
    /// follow its first packet as soon as the link is idle.
    fn emit(
        &mut self,
        now: Time,
        open: u32,
        fastpod: &Fastpod,
        core: u16,
        stats: &mut CoreStats,
        out: &mut VecDeque<(u32, Packet<FastpodHeader>)>,
    ) {
        while self.idle_at <= now {
            let packet = match self.packed_packets.pop_front() {
                Some(packet) => {
                    self.queued_bytes -= u64::from(packet.wire_bytes);
                    packet
                }
                None => {
                    let Some(item) = self.due(now, open, fastpod, core) else { break };
                    let Some(slot) = &mut self.open else { break };
                    match item {
                        Item::Rts => {
                            slot.has_rts = true;
                            stats.rts_sent += 1;
                            self.rts(now, open, fastpod, core)
                        }
                        Item::Cell(p, host) => {
                            slot.next_cell = p + 1;
                            self.fill(host, fastpod, core);
                            continue;
                        }
                    }
                }
            };
            self.idle_at = now + fastpod.tx_time(packet.wire_bytes);
            out.push_back((self.number, packet));
        }
    }

    /// Returns the next item of the open slot if its instant has passed.
    fn due(&self, now: Time, room: u32, fastpod: &Fastpod, core: u16) -> Option<Item> {
        let slot = self.open?.number;
        let (at, item) = self.next_in(slot, fastpod.earliest(now), room, fastpod, core)?;
        (at <= instant(now)).then_some(item)
    }

    fn rts(&mut self, now: Time, open: u32, fastpod: &Fastpod, core: u16) -> Packet<FastpodHeader> {
        let demands = self.requests.take_demands(now);
        let relays = self.relays.take();
        let (incarnation, number) = self.requests.last_rts();
        let open = self.reachable_pods(open);
        self.reported_space = open;
        let epoch = self.epoch;
        let header = FastpodHeader::CoreRts { epoch, incarnation, number, open, demands, relays };
        let (src, dst) = (fastpod.core(core), fastpod.arbiter(self.pod, self.arbiter));
        let mut packet = control(fastpod, src.get(), dst, header);
        routes::core_rts(fastpod, core, self.pod, self.arbiter, &mut packet);
        packet
    }

    /// Removes the packets that share the next cell to a host.
    fn fill(&mut self, host: u16, fastpod: &Fastpod, core: u16) {
        let Some(queue) = self.queues.get_mut(&host) else { return };
        let mut time = CellTime::default();
        while let Some(mut packet) = queue.take(&mut time, fastpod) {
            routes::cell_from_core(fastpod, core, &mut packet);
            self.packed_packets.push_back(packet);
            if !fastpod.config.packing {
                break;
            }
        }
        if queue.packets.is_empty() {
            self.queues.remove(&host);
        }
    }

    /// Returns the pods that hosts of this one may send to.
    fn reachable_pods(&self, open: u32) -> u32 {
        open & !(1 << self.pod)
    }

    /// Returns the next item of a slot, from `from` on, and its time by the switch's clock.
    fn next_in(
        &self,
        number: u64,
        from: Instant,
        room: u32,
        fastpod: &Fastpod,
        core: u16,
    ) -> Option<(Instant, Item)> {
        let open = self.open.filter(|open| open.number == number);
        let offset = open.map_or(self.offset?, |open| open.offset);
        let (timing, slots) = (fastpod.timing(self.pod), &fastpod.slots);
        let start = timing.start(fastpod.end_of_core(core), number) - offset;
        let grant = open.map_or_else(|| self.requests.grant(number), |open| open.grant);
        let i = fastpod.core_place(core);
        let host = grant.map(|grant| (grant.dst, fastpod.place(grant.dst)));
        let after =
            |position: Span| Some(start + i128::from(position.as_ps())).filter(|&at| at >= from);
        let is_told = self.reachable_pods(room) == self.reported_space;
        let is_beacon = number.is_multiple_of(fastpod.config.beacon_slots.into());
        let wants_rts =
            is_beacon || self.requests.is_dirty() || !self.relays.is_empty() || !is_told;
        let wants_rts = wants_rts && !open.is_some_and(|open| open.has_rts);
        let at_rts = || after(slots.rts_at(i, host.map(|host| host.1)));
        let rts = wants_rts.then(at_rts).flatten().map(|at| (at, Item::Rts));
        let cell = host.filter(|host| self.queues.contains_key(&host.0)).and_then(|(host, j)| {
            let mut places = open.map_or(0, |open| open.next_cell)..slots.cells();
            places.find_map(|p| Some((after(slots.cell_at(p, (i, j)))?, Item::Cell(p, host))))
        });
        match (rts, cell) {
            (Some(rts), Some(cell)) => Some(if rts.0 <= cell.0 { rts } else { cell }),
            (rts, cell) => rts.or(cell),
        }
    }

    fn next_item(&self, now: Time, room: u32, fastpod: &Fastpod, core: u16) -> Option<Instant> {
        let (offset, from) = (self.offset?, fastpod.earliest(now));
        let timing = fastpod.timing(self.pod);
        let present = timing.slot_at(fastpod.end_of_core(core), instant(now) + offset).unwrap_or(0);
        let present = self.open.map_or(present, |open| open.number.max(present));
        let next_in = |slot| Some(self.next_in(slot, from, room, fastpod, core)?.0);
        if let Some(at) = next_in(present).or_else(|| next_in(present + 1)) {
            return Some(at);
        }
        // Else it is the next RTS without content, or the next slot with cells to send.
        let beacon = (present + 1).next_multiple_of(fastpod.config.beacon_slots.into());
        let cell = self.requests.grants_after(present).find_map(next_in);
        next_in(beacon).into_iter().chain(cell).min()
    }

    /// Opens the slot that the port is in, and counts those in which nothing was sent.
    fn advance(&mut self, now: Time, fastpod: &Fastpod, core: u16) {
        if self.stale_at <= now {
            (self.offset, self.open) = (None, None);
        }
        let Some(offset) = self.offset else { return };
        let timing = fastpod.timing(self.pod);
        let number = timing.slot_at(fastpod.end_of_core(core), instant(now) + offset);
        let Some(number) = number else { return };
        if self.open.is_some_and(|open| open.number >= number) {
            return;
        }
        let before = self.open.take();
        if let Some(OpenSlot { grant: Some(grant), next_cell, .. }) = before {
            self.unused += u64::from(next_cell == 0);
            self.request_slots(now, grant.dst, fastpod, core);
        }
        let mut grant = None;
        while let Some((slot, given)) = self.requests.take_grant(number) {
            if slot == number {
                grant = Some(given);
                continue;
            }
            self.unused += 1;
            self.request_slots(now, given.dst, fastpod, core);
        }
        self.open = Some(OpenSlot { number, offset, grant, has_rts: false, next_cell: 0 });
        if let Some(grant) = grant {
            self.request_slots(now, grant.dst, fastpod, core);
        }
    }

    /// Requests slots for the queue of a host, beyond the cells of the present slot.
    fn request_slots(&mut self, now: Time, host: u16, fastpod: &Fastpod, core: u16) {
        let cells = self.queues.get(&host).map_or(0, |queue| queue.cells(fastpod));
        let cells = cells.saturating_sub(self.slot_capacity(now, host, fastpod, core));
        self.requests.set_demand(host, cells, fastpod);
    }

    fn request_all_slots(&mut self, now: Time, fastpod: &Fastpod, core: u16) {
        let hosts: Vec<u16> = self.queues.keys().copied().collect();
        hosts.into_iter().for_each(|host| self.request_slots(now, host, fastpod, core));
    }

    /// Cells to a host that the present slot still takes.
    fn slot_capacity(&self, now: Time, host: u16, fastpod: &Fastpod, core: u16) -> u64 {
        let Some(open) = self.open.filter(|open| open.grant.is_some_and(|g| g.dst == host)) else {
            return 0;
        };
        let (timing, slots) = (fastpod.timing(self.pod), &fastpod.slots);
        let start = timing.start(fastpod.end_of_core(core), open.number) - open.offset;
        let pair = (fastpod.core_place(core), fastpod.place(host));
        let from = fastpod.earliest(now);
        let at = |p: u16| start + i128::from(slots.cell_at(p, pair).as_ps());
        (open.next_cell..slots.cells()).filter(|&p| at(p) >= from).count() as u64
    }
}
