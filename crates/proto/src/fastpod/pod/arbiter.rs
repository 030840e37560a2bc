//! Arbiter (Fastpod §3.1, §3.2, §4): an endpoint like any other.
//!
//! For each slot it decides which host sends to which host by which aggregation switch. It sends
//! this in SCHDs that fill the gaps of an earlier slot. The other arbiter listens. It takes over
//! when all slots that may have been given have ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rampmeter_types::{
    Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Phase, Protocol, Receipt, Rng,
    Span, Time,
};

use super::clocks::is_next_epoch;
use super::demand_table::{DemandTable, PendingReport};
use crate::fastpod::config::Fastpod;
use crate::fastpod::core_routes;
use crate::fastpod::routes;
use crate::fastpod::slot_grant::SlotGrant;
use crate::fastpod::timing::{Timing, instant, local};
use crate::fastpod::wire::{FastpodHeader, NO_DST};
use crate::toolkit::sides;

/// Fastpod's arbiter, or its standby.
#[derive(Clone, Debug)]
pub struct FastpodArbiter {
    fastpod: Arc<Fastpod>,
    /// Pod of the arbiter, and its number among the arbiters of the pod.
    pod: u16,
    number: u32,
    role: Role,
    /// Epoch while the arbiter grants slots, else the greatest received.
    epoch: u32,
    clients: DemandTable,
    rng: Rng,
    /// Time of the last packet from a host, or of this arbiter's takeover.
    last_packet_at: Time,
    /// RTSs that have arrived since the last slot was decided, with their times.
    inbox: VecDeque<(Time, Packet<FastpodHeader>)>,
    /// Scheduled senders and receivers, by slot.
    grants_by_slot: BTreeMap<u64, Vec<SlotGrant>>,
    /// The first slot whose SCHDs are not decided.
    next_slot: u64,
    /// True if the next SCHDs are the first of an epoch, which all hosts receive.
    is_first: bool,
    /// SCHDs by instant and host.
    queued_schds: BTreeMap<(Time, u32), Packet<FastpodHeader>>,
    ready: VecDeque<(Time, Packet<FastpodHeader>)>,
}

/// Role of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Grants slots.
    Active,
    /// Listens since then: it has received a packet of the other arbiter, or was started.
    Listening(Time),
    /// Has received nothing for its patience, and tests its links.
    Testing(Test),
    /// Has notified the other arbiter that it takes over, and does so then.
    TakingOver(Time),
}

/// Packets of an arbiter to itself by the switch of every rack, in rounds of a watchdog's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    /// Time at which the round ends.
    round_end: Time,
    /// True if one of the round has returned.
    has_returned: bool,
    /// The rounds before it, without a break, of which one has.
    rounds: u32,
}

/// Rounds of tests after which an arbiter whose links work has received the other's packets, if
/// that works.
const TESTS: u32 = 3;
/// The epoch of the first arbiter of a run.
const FIRST_EPOCH: u32 = 2;

impl FastpodArbiter {
    fn timing(&self) -> &Timing {
        self.fastpod.timing(self.pod)
    }

    fn is_active(&self) -> bool {
        self.role == Role::Active
    }

    /// Notifies the other arbiter that it takes over, under a new epoch that is greater than any
    /// received. Of two that do so at one time the one with the lesser epoch listens.
    fn claim(&mut self, now: Time) {
        // Epochs of two arbiters are odd and even. Only forged packets have the greatest.
        self.epoch =
            ((self.epoch / 2).saturating_add(1).saturating_mul(2)).saturating_add(self.number);
        let wait = match self.fastpod.config.arbiters {
            1 => Span::ZERO,
            _ => self.interval(),
        };
        self.role = Role::TakingOver(now + wait);
        if wait > Span::ZERO {
            self.send_watchdogs(self.next_gap(now), 1 - self.number);
        }
    }

    /// Returns the time from one watchdog to the next.
    fn interval(&self) -> Span {
        self.fastpod.slot * self.fastpod.watchdog_slots
    }

    /// Begins a round of tests; this is the number of rounds of which a packet has returned. An
    /// arbiter that is cut off receives as little from the other as if that had crashed.
    fn test(&mut self, now: Time, rounds: u32) {
        let round_end = now + self.interval();
        self.role = Role::Testing(Test { round_end, has_returned: false, rounds });
        let slot = self.next_gap(now);
        // Watchdogs of the other have the slots in between.
        let is_others = slot.is_multiple_of(self.fastpod.watchdog_slots);
        self.send_watchdogs(slot + u64::from(is_others), self.number);
    }

    /// Grants slots from now on.
    fn take_over(&mut self, now: Time) {
        self.inbox.clear();
        self.grants_by_slot.clear();
        (self.role, self.is_first, self.last_packet_at) = (Role::Active, true, now);
        self.next_slot = self.slot_after(now);
        self.clients.begin(&self.fastpod, self.next_slot);
    }

    /// Another arbiter grants slots, or did so before this one was restarted.
    fn listen(&mut self, now: Time, epoch: u32) {
        self.role = Role::Listening(now);
        self.epoch = self.epoch.max(epoch);
        self.queued_schds.clear();
        self.ready.clear();
    }

    /// Returns the first slot that begins after `now` for packets of the arbiter.
    fn next_gap(&self, now: Time) -> u64 {
        let compute = i128::from(self.fastpod.config.compute.unwrap_or(Span::ZERO).as_ps());
        let at = instant(now) - compute;
        self.timing().tick_after(self.number, at).unwrap_or(0)
    }

    /// Returns the first slot that is decided after `now`.
    fn slot_after(&self, now: Time) -> u64 {
        self.timing().tick_after(self.number, instant(now)).unwrap_or(0)
    }

    /// Returns the next slot whose SCHDs must be decided.
    fn next_busy(&self) -> u64 {
        let next = self.next_slot;
        if self.is_first || !self.inbox.is_empty() || self.clients.is_busy() {
            return next;
        }
        // Receivers of cells always receive an SCHD, so that unscheduled cells fare the same
        // regardless of the beacon interval of idle hosts.
        let planned = self.grants_by_slot.range(next..).next().map_or(u64::MAX, |(&slot, _)| slot);
        let beacon = next.next_multiple_of(self.fastpod.config.beacon_slots.into());
        let watchdog = match self.fastpod.config.arbiters {
            1 => u64::MAX,
            _ => next.next_multiple_of(self.fastpod.watchdog_slots),
        };
        planned.min(beacon).min(watchdog)
    }

    /// Decides the content of a slot's SCHDs.
    fn decide(&mut self, slot: u64, at: Time) {
        // RTSs of several racks arrive at the same instant: their order is that of hosts.
        let n_received = self.inbox.iter().take_while(|(received_at, _)| *received_at < at).count();
        let received = &mut self.inbox.make_contiguous()[..n_received];
        received.sort_by_key(|(received_at, packet)| (*received_at, packet.src));
        for (received_at, packet) in self.inbox.drain(..n_received) {
            let (src, header) = (packet.src, &packet.header);
            self.clients.on_rts(slot, received_at, self.number, src, header, &self.fastpod);
        }
        let given = slot + self.timing().lead_slots;
        let plan = self.clients.allocate_slot(slot, &self.fastpod);
        let n_ends = self.clients.len();
        let mut grants: Vec<Option<SlotGrant>> = vec![None; n_ends.into()];
        plan.iter().for_each(|one| grants[usize::from(one.src)] = Some(*one));
        if !plan.is_empty() {
            self.grants_by_slot.insert(given, plan);
        }
        let mut senders: Vec<Option<u16>> = vec![None; n_ends.into()];
        for one in self.grants_by_slot.get(&slot).into_iter().flatten() {
            senders[usize::from(one.dst)] = Some(one.src);
        }
        while self.grants_by_slot.first_key_value().is_some_and(|(&first, _)| first <= slot) {
            if let Some((of, pairs)) = self.grants_by_slot.pop_first() {
                self.clients.on_slot(of, pairs);
            }
        }
        let beacon = u64::from(self.fastpod.config.beacon_slots);
        let is_for_all = std::mem::take(&mut self.is_first) || slot.is_multiple_of(beacon);
        for end in 0..n_ends {
            let (grant, sender) = (grants[usize::from(end)], senders[usize::from(end)]);
            let has_news = self.clients.has_pending_report(end);
            if is_for_all || has_news || grant.is_some() || sender.is_some() {
                self.send_schd(slot, given, grant, end, sender);
            }
        }
        if self.fastpod.config.arbiters > 1 && slot.is_multiple_of(self.fastpod.watchdog_slots) {
            self.send_watchdogs(slot, 1 - self.number);
        }
        self.next_slot = slot + 1;
    }

    /// Sends the SCHD of a slot to an end, into the gap of its sender.
    fn send_schd(
        &mut self,
        slot: u64,
        given: u64,
        grant: Option<SlotGrant>,
        end: u16,
        sender: Option<u16>,
    ) {
        let (timing, slots) = (self.timing(), &self.fastpod.slots);
        let j = timing.place(end);
        let gap = match sender {
            Some(src) => slots.gap_at(timing.place(src), j),
            None => slots.idle_gap(j),
        };
        let at = timing.schd_at(self.number, end, slot, gap);
        let packet = self.schd(given as u32, grant, end);
        self.queued_schds.insert((local(at), packet.dst.get()), packet);
    }

    /// Returns an SCHD that gives the slot `slot`.
    fn schd(&mut self, slot: u32, grant: Option<SlotGrant>, end: u16) -> Packet<FastpodHeader> {
        let (epoch, stamp) = (self.epoch, 0);
        let (dst, agg) = grant.map_or((NO_DST, 0), |grant| (grant.named_dst, grant.agg));
        let is_probe = grant.is_some_and(|grant| grant.is_probe);
        let PendingReport { incarnation, answered_rts, granted, acks, relays } =
            self.clients.take_report(end, grant.is_some() && !is_probe);
        let own = self.fastpod.arbiter(self.pod, self.number).get();
        if let Some(core) = self.clients.core(end) {
            let header = FastpodHeader::CoreSchd {
                epoch,
                stamp,
                slot,
                dst,
                incarnation,
                last_rts: answered_rts,
                granted,
                relays,
            };
            let mut packet = routes::control(&self.fastpod, own, self.fastpod.core(core), header);
            core_routes::core_schd(&self.fastpod, self.pod, core, &mut packet);
            return packet;
        }
        let probe = is_probe.into();
        let header = FastpodHeader::Schd {
            epoch,
            stamp,
            slot,
            dst,
            agg,
            incarnation,
            last_rts: answered_rts,
            granted,
            probe,
            acks,
        };
        let host = NodeId::new(self.fastpod.hosts_of(self.pod).start + u32::from(end));
        let mut packet = routes::control(&self.fastpod, own, host, header);
        routes::schd(&self.fastpod, &mut packet);
        packet
    }

    /// Sends a packet to an arbiter of the pod by every rack. Sent to the other arbiter, it
    /// prevents a takeover while this one works. Sent to itself, it tests a link.
    fn send_watchdogs(&mut self, slot: u64, to: u32) {
        let own = self.fastpod.arbiter(self.pod, self.number);
        let header = FastpodHeader::Watchdog { epoch: self.epoch };
        let dst = self.fastpod.arbiter(self.pod, to);
        let position = self.timing().watchdog_at.unwrap_or(Span::ZERO);
        for rack in 0..self.timing().n_racks() as u16 {
            let mut packet = routes::control(&self.fastpod, own.get(), dst, header);
            routes::watchdog(&self.fastpod, self.pod, to, rack, &mut packet);
            let at = self.timing().leaf_at(self.number, rack, slot, position);
            self.queued_schds.insert((local(at), u32::MAX - u32::from(rack)), packet);
        }
    }

    fn is_own(&self, node: NodeId) -> bool {
        node == self.fastpod.arbiter(self.pod, self.number)
    }

    /// Returns true if a pod has another arbiter.
    fn has_standby(&self) -> bool {
        self.fastpod.is_exact() && self.fastpod.config.arbiters > 1
    }

    /// Returns true if no packet of any host has arrived for so long that the other arbiter may
    /// take over soon.
    fn is_cut_off(&self, now: Time) -> bool {
        self.has_standby() && self.last_packet_at + self.fastpod.listen_time * 3 / 4 < now
    }

    /// Returns the time at which the next slot must be decided.
    fn tick(&self) -> Time {
        local(self.timing().tick_at(self.number, self.next_busy()))
    }

    /// Skips slots that no host could use any more: between real hosts a process may have slept.
    fn skip(&mut self, now: Time) {
        if !self.fastpod.is_exact() {
            let present = self.slot_after(now);
            let ahead = self.timing().lead_slots;
            if self.next_busy() + ahead < present {
                self.next_slot = self.next_slot.max(present);
            }
        }
    }
}

impl Protocol for FastpodArbiter {
    type Header = FastpodHeader;
    type Config = Fastpod;

    fn new(config: Arc<Fastpod>, node: NodeId, rng: Rng, now: Time) -> Self {
        let (pod, number) = config.arbiter_of(node).expect("the number of an arbiter");
        let mut arbiter = Self {
            pod,
            number,
            role: Role::Listening(now),
            epoch: 0,
            clients: DemandTable::new(&config, pod, 0),
            rng,
            last_packet_at: now,
            inbox: VecDeque::new(),
            grants_by_slot: BTreeMap::new(),
            next_slot: 0,
            is_first: false,
            queued_schds: BTreeMap::new(),
            ready: VecDeque::new(),
            fastpod: config,
        };
        // One that is started later may have lived before: slots that it gave may not be over.
        if number == 0 && now == Time::ZERO {
            arbiter.epoch = FIRST_EPOCH;
            arbiter.take_over(now);
            arbiter.next_slot = 0;
        }
        arbiter
    }

    fn submit(&mut self, _now: Time, _message: Message) {}

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpodHeader>) -> Receipt {
        match packet.header {
            FastpodHeader::Rts { epoch, .. }
            | FastpodHeader::Report { epoch, .. }
            | FastpodHeader::CoreRts { epoch, .. } => {
                let is_next = is_next_epoch(epoch, self.epoch);
                match self.role {
                    // Hosts cannot have this epoch: the packet is damaged.
                    _ if epoch > self.epoch && !is_next => {}
                    Role::Active if epoch > self.epoch => self.listen(now, epoch),
                    // Hosts of an earlier epoch repeat their requests when they receive this one.
                    Role::Active if epoch == self.epoch => {
                        // Packets of core switches may arrive although none of a rack does.
                        if !matches!(packet.header, FastpodHeader::CoreRts { .. }) {
                            self.last_packet_at = now;
                        }
                        if self.inbox.is_empty() && !self.clients.is_busy() {
                            // There was nothing to send in the slots since.
                            let next = self.slot_after(now);
                            self.next_slot = self.next_slot.max(next.min(self.next_busy()));
                        }
                        self.inbox.push_back((now, *packet));
                    }
                    Role::Active => {}
                    Role::Listening(_) | Role::Testing(_) => self.epoch = self.epoch.max(epoch),
                    Role::TakingOver(_) if epoch > self.epoch => self.listen(now, epoch),
                    Role::TakingOver(_) => {}
                }
            }
            FastpodHeader::Watchdog { .. } if self.is_own(packet.src) => {
                if let Role::Testing(test) = &mut self.role {
                    test.has_returned = true;
                }
            }
            FastpodHeader::Watchdog { epoch } => match self.role {
                Role::Listening(_) | Role::Testing(_) => self.listen(now, epoch),
                Role::Active | Role::TakingOver(_) if epoch < self.epoch => {}
                Role::Active | Role::TakingOver(_) => self.listen(now, epoch),
            },
            _ => {}
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Role::Listening(since) = self.role
            && since + self.fastpod.listen_time <= now
        {
            match self.has_standby() {
                true => self.test(now, 0),
                false => self.claim(now),
            }
        }
        if let Role::Testing(Test { round_end, has_returned, rounds }) = self.role
            && round_end <= now
        {
            match if has_returned { rounds + 1 } else { 0 } {
                TESTS.. => self.claim(now),
                rounds => self.test(now, rounds),
            }
        }
        if let Role::TakingOver(until) = self.role
            && until <= now
        {
            self.take_over(now);
        }
        if self.is_active() && self.is_cut_off(now) {
            self.listen(now, self.epoch);
        }
        if self.is_active() {
            self.skip(now);
            while self.tick() <= now {
                let slot = self.next_busy();
                self.decide(slot, self.tick());
            }
        }
        while let Some((&key, _)) = self.queued_schds.first_key_value()
            && key.0 <= now
            && let Some(packet) = self.queued_schds.remove(&key)
        {
            self.ready.push_back((key.0, packet));
        }
    }

    /// Returns the next packet. An SCHD carries its time of departure.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<FastpodHeader>> {
        while let Some((at, mut packet)) = self.ready.pop_front() {
            if self.fastpod.is_exact() && now > at + self.fastpod.late_max {
                continue;
            }
            if let FastpodHeader::Schd { stamp, .. } | FastpodHeader::CoreSchd { stamp, .. } =
                &mut packet.header
            {
                *stamp = self.fastpod.stamp(now, &mut self.rng);
            }
            return Some(packet);
        }
        None
    }

    fn wants_transmit(&self) -> bool {
        !self.ready.is_empty()
    }

    fn poll_timeout(&self) -> Time {
        let first = self.queued_schds.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let turn = match self.role {
            Role::Active => self.tick(),
            Role::Listening(since) => since + self.fastpod.listen_time,
            Role::Testing(Test { round_end, .. }) | Role::TakingOver(round_end) => round_end,
        };
        first.min(turn)
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Observation for FastpodArbiter {
    /// Reports the granted slots, by the first that is not granted.
    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        let name = match self.role {
            Role::Active if self.clients.is_busy() => "scheduling",
            Role::Active => "idle",
            Role::Listening(_) | Role::Testing(_) => "listening",
            Role::TakingOver(_) => "claiming",
        };
        each(Phase { track: "arbiter", name, number: self.epoch.into() });
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.clients.report(each);
    }
}

impl HostPolicy for FastpodArbiter {
    sides! { no_data }

    /// The host restarts its count of incarnations.
    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.inbox.retain(|(_, packet)| packet.src != peer);
        self.clients.forget(peer, &self.fastpod);
    }
}
