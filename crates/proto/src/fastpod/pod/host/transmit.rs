//! Packets of a host and their times: the instants of its slots, by the arbiter's clock.

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Packet, Span, Time};

use super::FastpodHost;
use super::open_slot::OpenSlot;
use crate::fastpod::core_routes;
use crate::fastpod::packing::CellTime;
use crate::fastpod::pod::requests::Grant;
use crate::fastpod::repair::observations::SlotReport;
use crate::fastpod::routes;
use crate::fastpod::timing::{Instant, instant, local};
use crate::fastpod::wire::{FastpodHeader, POD_FLAG};

/// Item sent at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// An RTS, and the destination that its place in the slot was chosen for.
    Rts(Option<(u16, Time)>),
    Scheduled(u16, Grant),
    Probe(Grant),
    Unscheduled(u16, (u16, Time)),
}

impl FastpodHost {
    /// Returns the numbers of the host and of its receiver at their switches. The receiver is a
    /// host of the pod, or the core switch of a grant.
    pub(super) fn pair(&self, dst: u16, grant: Option<Grant>) -> (u16, u16) {
        match grant.filter(|_| dst & POD_FLAG != 0) {
            Some(grant) => {
                (self.fastpod.place(self.node), self.fastpod.core_place(grant.agg.into()))
            }
            None => self.fastpod.pair(self.node, dst),
        }
    }

    /// Returns the next item of a slot, from `from` on, and its time by the host's clock.
    fn next_in(&self, number: u64, from: Instant) -> Option<(Instant, Item)> {
        let open = self.open.filter(|open| open.number == number);
        let offset = open.map_or(self.offset?, |open| open.offset);
        let timing = self.timing();
        let slots = &self.fastpod.slots;
        let start = timing.start(self.end, number) - offset;
        let grant = open.map_or_else(|| self.requests.grant(number), |open| open.grant);
        // The first one at the start of the slot has all of it.
        let free_to = match grant {
            Some(_) => None,
            None => open
                .and_then(|open| open.unscheduled_dst)
                .or_else(|| self.queues.earliest(start + offset)),
        };
        let dst = grant.map(|grant| grant.dst).or(free_to.map(|(dst, _)| dst));
        let pair = dst.map(|dst| self.pair(dst, grant));
        let after =
            |position: Span| Some(start + i128::from(position.as_ps())).filter(|&at| at >= from);
        let wants_rts = self.needs_rts(number) && !open.is_some_and(|open| open.has_rts);
        let i = timing.place(self.end);
        // A message that is submitted later does not move the RTS, which may have been sent.
        let alone = start + i128::from(slots.rts_at(i, None).as_ps());
        let is_known = grant.is_some() || free_to.is_some_and(|(_, at)| instant(at) < alone);
        let j = pair.map(|pair| pair.1).filter(|_| is_known);
        let rts = wants_rts.then(|| after(slots.rts_at(i, j))).flatten();
        let rts = rts.map(|at| (at, Item::Rts(free_to)));
        let cell = pair.zip(dst).and_then(|(pair, dst)| {
            let first = open.map_or(0, |open| open.next_cell);
            let is_clear = |p: &u16| grant.is_some() || slots.is_clear(*p, pair);
            let mut places = (first..slots.cells()).filter(is_clear);
            let (p, at) = places.find_map(|p| Some((p, after(slots.cell_at(p, pair))?)))?;
            match grant {
                Some(grant) if grant.is_probe => (p == 0).then_some((at, Item::Probe(grant))),
                Some(grant) if self.queues.waiting(dst) > 0 => {
                    Some((at, Item::Scheduled(p, grant)))
                }
                None if self.queues.has_unscheduled(dst, at + offset) => {
                    free_to.map(|free_to| (at, Item::Unscheduled(p, free_to)))
                }
                _ => None,
            }
        });
        match (rts, cell) {
            (Some(rts), Some(cell)) => Some(if rts.0 <= cell.0 { rts } else { cell }),
            (rts, cell) => rts.or(cell),
        }
    }

    /// Returns true if RTSs carry reports of slots: only pods have routes to test.
    #[inline]
    pub(super) fn has_slot_reports(&self) -> bool {
        self.fastpod.is_exact()
    }

    #[inline]
    fn needs_rts(&self, slot: u64) -> bool {
        let is_beacon = slot.is_multiple_of(self.fastpod.config.beacon_slots.into());
        is_beacon
            || self.requests.is_dirty()
            || self.receiver.has_acks()
            || self.observations.due() <= slot
    }

    /// Sets when there is something to do next.
    pub(super) fn plan(&mut self, now: Time) {
        let mut next = self.queues.deadline();
        next = next.min(self.requests.deadline(self.queues.has_waiting(), &self.fastpod));
        if let Some(at) = self.next_item(now) {
            next = next.min(local(at));
        }
        self.next = next;
    }

    fn next_item(&self, now: Time) -> Option<Instant> {
        let (offset, from) = (self.offset?, self.fastpod.earliest(now));
        let present = self.timing().slot_at(self.end, instant(now) + offset).unwrap_or(0);
        let present = self.open.map_or(present, |open| open.number.max(present));
        // A packet that is in neither this slot nor the next is in one without a grant. Or it is
        // the next grant's, or the next RTS without content.
        for slot in present..=present + self.timing().lead_slots + 1 {
            if let Some((at, _)) = self.next_in(slot, from) {
                return Some(at);
            }
            let start = self.timing().start(self.end, slot);
            let may_hope = self.queues.earliest(start).is_some();
            if slot > present && (!may_hope || self.requests.grant(slot).is_none()) {
                break;
            }
        }
        let beacon = u64::from(self.fastpod.config.beacon_slots);
        let beacon = (present + 1).next_multiple_of(beacon);
        let rts = beacon.min(self.observations.due().max(present + 1));
        let at = self.next_in(rts, from).map(|(at, _)| at);
        let cell = self.requests.grants_after(present).find_map(|slot| self.next_in(slot, from));
        at.into_iter().chain(cell.map(|(at, _)| at)).min()
    }

    /// Opens the slot that the host is in.
    pub(super) fn advance(&mut self, now: Time) {
        if self.stale_at <= now {
            (self.offset, self.open) = (None, None);
        }
        let Some(offset) = self.offset else { return };
        let at = instant(now) + offset;
        let Some(number) = self.timing().slot_at(self.end, at) else { return };
        if self.open.is_some_and(|open| open.number >= number) {
            return;
        }
        let before = self.open.take();
        if let Some(OpenSlot { grant: Some(grant), next_cell, .. }) = before
            && !grant.is_probe
        {
            self.stats.slots_unused += u64::from(next_cell == 0);
            self.close(now, grant, next_cell);
        }
        let mut grant = None;
        while let Some((slot, given)) = self.requests.take_grant(number) {
            if slot == number {
                grant = Some(given);
                continue;
            }
            if given.is_probe {
                continue;
            }
            let is_late = self.queues.waiting(given.dst) > 0;
            self.stats.grants_expired += u64::from(is_late);
            self.stats.slots_unused += u64::from(!is_late);
            self.close(now, given, 0);
        }
        self.queues.expire_unscheduled(self.timing().start(self.end, number));
        let (unscheduled_dst, has_rts, next_cell) = (None, false, 0);
        self.open = Some(OpenSlot { number, offset, grant, unscheduled_dst, has_rts, next_cell });
        if let Some(grant) = grant {
            self.request_slots(now, grant.dst);
        }
    }

    /// Ends a slot that was given. In networks with buffers, cells that were not sent in it are
    /// sent now.
    fn close(&mut self, now: Time, grant: Grant, first: u16) {
        if !self.fastpod.is_exact() {
            self.send_leftover_cells(now, grant, first);
        }
        self.request_slots(now, grant.dst);
    }

    /// Sends the cells of a slot that has ended, on networks with buffers.
    fn send_leftover_cells(&mut self, now: Time, grant: Grant, first: u16) {
        for _ in first..self.fastpod.slots.cells() {
            if !self.send_scheduled(now, now, grant) {
                return;
            }
        }
    }

    /// Sends the packets of a cell that begins at `at`. Returns false if none is queued.
    fn send_scheduled(&mut self, now: Time, at: Time, grant: Grant) -> bool {
        let mut time = CellTime::default();
        while let Some((mut packet, begin, is_again)) =
            self.queues.next_scheduled(now, grant.dst, &mut time, &self.fastpod)
        {
            self.stats.cells_retransmitted += u64::from(is_again);
            match grant.dst & POD_FLAG {
                0 => routes::cell(&self.fastpod, self.node, grant.agg, &mut packet),
                _ => core_routes::cell_to_core(
                    &self.fastpod,
                    self.node,
                    grant.agg.into(),
                    &mut packet,
                ),
            }
            self.ready.push_back((at + begin, packet));
            if !self.fastpod.config.packing {
                break;
            }
        }
        time.is_used()
    }

    /// Makes the packets of the open slot whose instant has arrived.
    pub(super) fn emit(&mut self, now: Time) {
        while let Some(open) = self.open
            && let Some((at, item)) = self.next_in(open.number, self.fastpod.earliest(now))
            && at <= instant(now)
        {
            let mut next = open;
            match item {
                Item::Rts(free_to) => {
                    (next.has_rts, next.unscheduled_dst) = (true, free_to);
                    self.open = Some(next);
                    self.send_rts(now, at, open.offset);
                }
                Item::Scheduled(p, grant) => {
                    next.next_cell = p + 1;
                    self.open = Some(next);
                    self.send_scheduled(now, local(at), grant);
                    self.observations.on_sent(open.number, true);
                }
                Item::Probe(grant) => {
                    next.next_cell = 1;
                    self.open = Some(next);
                    self.send_probe(local(at), grant);
                    self.observations.on_sent(open.number, true);
                }
                Item::Unscheduled(p, free_to) => {
                    (next.next_cell, next.unscheduled_dst) = (p + 1, Some(free_to));
                    self.open = Some(next);
                    self.send_unscheduled(at, open.offset, free_to.0);
                }
            }
        }
    }

    fn send_unscheduled(&mut self, at: Instant, offset: Instant, dst: u16) {
        let Some(mut packet) = self.queues.next_unscheduled(dst, at + offset, &self.fastpod) else {
            return;
        };
        let agg = self.rng.uniform_below(routes::aggs(&self.fastpod)) as u8;
        routes::cell(&self.fastpod, self.node, agg, &mut packet);
        packet.marks = packet.marks.union(Marks::UNSCHEDULED);
        self.stats.cells_unscheduled += 1;
        self.ready.push_back((local(at), packet));
    }

    fn send_rts(&mut self, now: Time, at: Instant, offset: Instant) {
        let demands = self.requests.take_demands(now);
        let acks = self.receiver.take_acks();
        let knowing = self.timing().schd_after_report(self.arbiter, self.end, at + offset);
        demands.as_slice().iter().for_each(|demand| self.queues.on_requested(demand.dst, knowing));
        let (epoch, (incarnation, number)) = (self.epoch, self.requests.last_rts());
        let slot = self.open.filter(|_| self.has_slot_reports()).map(|open| open.number);
        let report = match slot.filter(|_| demands.as_slice().is_empty()) {
            Some(slot) => self.observations.report(slot),
            None => None,
        };
        let header = match report {
            None => {
                let seen = slot.map_or(0, |slot| self.observations.brief_report(slot));
                FastpodHeader::Rts { epoch, incarnation, number, seen, demands, acks }
            }
            Some(SlotReport { latest, sent, received }) => {
                FastpodHeader::Report { epoch, slot: latest as u32, sent, received, acks }
            }
        };
        let dst = self.fastpod.arbiter(self.pod, self.arbiter);
        let mut packet = routes::control(&self.fastpod, self.node.into(), dst, header);
        routes::rts(&self.fastpod, self.node, self.arbiter, &mut packet);
        self.stats.rts_sent += 1;
        self.ready.push_back((local(at), packet));
    }

    /// A control packet by an aggregation switch, which it shows to work.
    fn send_probe(&mut self, at: Time, Grant { dst, agg, .. }: Grant) {
        let header = FastpodHeader::Probe { epoch: self.epoch, agg };
        let dst = NodeId::new(dst.into());
        let mut packet = routes::control(&self.fastpod, self.node.into(), dst, header);
        routes::cell(&self.fastpod, self.node, agg, &mut packet);
        self.ready.push_back((at, packet));
    }

    /// Records that a packet due at `at` was not sent then.
    pub(super) fn on_late(&mut self, at: Time, packet: &Packet<FastpodHeader>) {
        let Some(offset) = self.offset.filter(|_| !packet.marks.contains(Marks::UNSCHEDULED))
        else {
            return;
        };
        if let Some(slot) = self.timing().slot_at(self.end, instant(at) + offset) {
            self.observations.on_sent(slot, false);
        }
    }
}
