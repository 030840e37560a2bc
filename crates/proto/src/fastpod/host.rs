//! The endpoint of a host: it sends at the instants of its slots, by the arbiter's clock, and
//! receives.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_core::packet::Marks;
use rampmeter_core::{
    Bytes, Endpoint, Event, Message, MsgId, NodeId, Packet, Receipt, Rng, Span, Time,
};

use super::FastpodStats;
use super::asking::{Answer, Asking, Grant, Outcome};
use super::config::Fastpod;
use super::queues::Queues;
use super::receiver::Receiver;
use super::routes;
use super::timing::{Instant, Timing};
use super::wire::{Ack, FastpodHeader};
use crate::parts::{Announcement, Output};

/// Fastpod at one host.
#[derive(Clone, Debug)]
pub struct FastpodHost {
    fastpod: Arc<Fastpod>,
    node: u16,
    /// Its pod, and its number among the ends of the pod.
    pod: u16,
    end: u16,
    rng: Rng,
    queues: Queues,
    asking: Asking,
    receiver: Receiver,
    out: Output<FastpodHeader>,
    /// The greatest epoch heard of, and the arbiter whose it is.
    epoch: u32,
    arbiter: u32,
    /// What the arbiter's clock is ahead of the host's; `None` before it is heard.
    offset: Option<Instant>,
    /// From when on the clock may be too wrong, in a pod.
    stale_at: Time,
    open: Option<OpenSlot>,
    /// Packets whose instant has come.
    ready: VecDeque<(Time, Packet<FastpodHeader>)>,
    next: Time,
    stats: FastpodStats,
}

/// The slot that the host is in.
#[derive(Clone, Copy, Debug)]
struct OpenSlot {
    number: u64,
    /// The clock that holds for the whole slot, so that its packets stay apart.
    offset: Instant,
    grant: Option<Grant>,
    /// The destination of the slot's unscheduled cells, and when their message was submitted.
    free_to: Option<(u16, Time)>,
    has_rts: bool,
    next_cell: u16,
}

/// What is sent at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// An RTS, and the destination that its place in the slot was chosen for.
    Rts(Option<(u16, Time)>),
    Scheduled(u16, Grant),
    Unscheduled(u16, (u16, Time)),
}

fn local(at: Instant) -> Time {
    Time::from_ps(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
}

fn instant(at: Time) -> Instant {
    i128::from(at.as_ps())
}

impl FastpodHost {
    /// What has been counted so far.
    pub fn stats(&self) -> FastpodStats {
        self.stats
    }

    fn timing(&self) -> &Timing {
        self.fastpod.timing(self.pod)
    }

    /// From when on packets may still leave.
    fn earliest(&self, now: Time) -> Instant {
        match self.fastpod.is_exact() {
            true => instant(now) - i128::from(self.fastpod.late_max.as_ps()),
            false => Instant::MIN,
        }
    }

    /// What is sent next in a slot, from `from` on, and when, by the host's clock.
    fn next_in(&self, number: u64, from: Instant) -> Option<(Instant, Item)> {
        let open = self.open.filter(|open| open.number == number);
        let offset = open.map_or(self.offset?, |open| open.offset);
        let timing = self.timing();
        let slots = &self.fastpod.slots;
        let start = timing.start(self.end, number) - offset;
        let grant = open.map_or_else(|| self.asking.grant(number), |open| open.grant);
        // Whoever is first at the start of the slot has all of it.
        let free_to = match grant {
            Some(_) => None,
            None => {
                open.and_then(|open| open.free_to).or_else(|| self.queues.earliest(start + offset))
            }
        };
        let dst = grant.map(|grant| grant.dst).or(free_to.map(|(dst, _)| dst));
        let pair = dst.map(|dst| self.fastpod.pair(self.node, dst));
        let after =
            |position: Span| Some(start + i128::from(position.as_ps())).filter(|&at| at >= from);
        let wants_rts = self.wants_rts(number) && !open.is_some_and(|open| open.has_rts);
        let i = timing.place(self.end);
        // A message that comes later does not move the RTS, which may have been sent.
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
                Some(grant) if self.queues.waiting(dst) > 0 => {
                    Some((at, Item::Scheduled(p, grant)))
                }
                None if self.queues.hopes(dst, at + offset) => {
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

    #[inline]
    fn wants_rts(&self, slot: u64) -> bool {
        let is_beacon = slot.is_multiple_of(self.fastpod.config.beacon_slots.into());
        is_beacon || self.asking.is_dirty() || self.receiver.has_acks()
    }

    /// Sets when there is something to do next.
    fn plan(&mut self, now: Time) {
        let mut next = self.queues.deadline();
        next = next.min(self.asking.deadline(self.queues.has_waiting(), &self.fastpod));
        if let Some(at) = self.next_item(now) {
            next = next.min(local(at));
        }
        self.next = next;
    }

    fn next_item(&self, now: Time) -> Option<Instant> {
        let (offset, from) = (self.offset?, self.earliest(now));
        let present = self.timing().slot_at(self.end, instant(now) + offset).unwrap_or(0);
        let present = self.open.map_or(present, |open| open.number.max(present));
        // What is not in this slot or the next one is in one without a grant, or it is the next
        // grant's or the next RTS without content.
        for slot in present..=present + self.timing().ahead + 1 {
            if let Some((at, _)) = self.next_in(slot, from) {
                return Some(at);
            }
            let start = self.timing().start(self.end, slot);
            let may_hope = self.queues.earliest(start).is_some();
            if slot > present && (!may_hope || self.asking.grant(slot).is_none()) {
                break;
            }
        }
        let beacon = u64::from(self.fastpod.config.beacon_slots);
        let beacon = (present + 1).next_multiple_of(beacon);
        let at = self.next_in(beacon, from).map(|(at, _)| at);
        let cell = self.asking.after(present).find_map(|slot| self.next_in(slot, from));
        at.into_iter().chain(cell.map(|(at, _)| at)).min()
    }

    /// Opens the slot that the host is in.
    fn advance(&mut self, now: Time) {
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
        if let Some(OpenSlot { grant: Some(grant), next_cell, .. }) = before {
            self.stats.slots_unused += u64::from(next_cell == 0);
            self.close(now, grant, next_cell);
        }
        let mut grant = None;
        while let Some((slot, given)) = self.asking.take_until(number) {
            if slot == number {
                grant = Some(given);
                continue;
            }
            let is_late = self.queues.waiting(given.dst) > 0;
            self.stats.grants_late += u64::from(is_late);
            self.stats.slots_unused += u64::from(!is_late);
            self.close(now, given, 0);
        }
        self.queues.give_up_hope(self.timing().start(self.end, number));
        let (free_to, has_rts, next_cell) = (None, false, 0);
        self.open = Some(OpenSlot { number, offset, grant, free_to, has_rts, next_cell });
        if let Some(grant) = grant {
            self.want(now, grant.dst);
        }
    }

    /// A slot that was given is over. Networks with buffers take what was not sent in it.
    fn close(&mut self, now: Time, grant: Grant, first: u16) {
        if !self.fastpod.is_exact() {
            self.send_rest(now, grant, first);
        }
        self.want(now, grant.dst);
    }

    /// Sends the cells of a slot that is over, on networks with buffers.
    fn send_rest(&mut self, now: Time, grant: Grant, first: u16) {
        for _ in first..self.fastpod.slots.cells() {
            if !self.send_scheduled(now, now, grant) {
                return;
            }
        }
    }

    fn send_scheduled(&mut self, now: Time, at: Time, grant: Grant) -> bool {
        let next = self.queues.scheduled(now, grant.dst, &self.fastpod);
        let Some((mut packet, is_again)) = next else { return false };
        self.stats.cells_again += u64::from(is_again);
        routes::cell(&self.fastpod, self.node, grant.agg, &mut packet);
        self.ready.push_back((at, packet));
        true
    }

    /// Makes the packets of the open slot whose instant has come.
    fn emit(&mut self, now: Time) {
        while let Some(open) = self.open
            && let Some((at, item)) = self.next_in(open.number, self.earliest(now))
            && at <= instant(now)
        {
            let mut next = open;
            match item {
                Item::Rts(free_to) => {
                    (next.has_rts, next.free_to) = (true, free_to);
                    self.open = Some(next);
                    self.send_rts(now, at, open.offset);
                }
                Item::Scheduled(p, grant) => {
                    next.next_cell = p + 1;
                    self.open = Some(next);
                    self.send_scheduled(now, local(at), grant);
                }
                Item::Unscheduled(p, free_to) => {
                    (next.next_cell, next.free_to) = (p + 1, Some(free_to));
                    self.open = Some(next);
                    self.send_unscheduled(at, open.offset, free_to.0);
                }
            }
        }
    }

    fn send_unscheduled(&mut self, at: Instant, offset: Instant, dst: u16) {
        let Some(mut packet) = self.queues.unscheduled(dst, at + offset, &self.fastpod) else {
            return;
        };
        let agg = self.rng.below(routes::aggs(&self.fastpod)) as u8;
        routes::cell(&self.fastpod, self.node, agg, &mut packet);
        packet.marks = packet.marks.with(Marks::UNSCHEDULED);
        self.stats.cells_unscheduled += 1;
        self.ready.push_back((local(at), packet));
    }

    fn send_rts(&mut self, now: Time, at: Instant, offset: Instant) {
        let demands = self.asking.take(now);
        let acks = self.receiver.take_acks();
        let knowing = self.timing().knowing(self.arbiter, self.end, at + offset);
        demands.as_slice().iter().for_each(|demand| self.queues.on_asked(demand.dst, knowing));
        let (incarnation, number) = self.asking.stamp();
        let header = FastpodHeader::Rts { epoch: self.epoch, incarnation, number, demands, acks };
        let dst = self.fastpod.arbiter(self.pod, self.arbiter);
        let mut packet = routes::control(&self.fastpod, self.node.into(), dst, header);
        routes::rts(&self.fastpod, self.node, self.arbiter, &mut packet);
        self.stats.rtss += 1;
        self.ready.push_back((local(at), packet));
    }

    /// Asks for what is wanted of a destination, beyond what the present slot takes.
    fn want(&mut self, now: Time, dst: u16) {
        let cells = self.queues.waiting(dst).saturating_sub(self.room(now, dst));
        if !self.asking.want(dst, cells, &self.fastpod) {
            // Slots are on their way.
            let until = instant(now) + self.offset.unwrap_or(0);
            let answer = i128::from(self.fastpod.answer.as_ps());
            self.queues.on_asked(dst, until + answer);
        }
    }

    /// Cells to `dst` that the present slot still takes.
    fn room(&self, now: Time, dst: u16) -> u64 {
        let Some(open) = self.open.filter(|open| open.grant.is_some_and(|g| g.dst == dst)) else {
            return 0;
        };
        let start = self.timing().start(self.end, open.number) - open.offset;
        let pair = self.fastpod.pair(self.node, dst);
        let (from, slots) = (self.earliest(now), &self.fastpod.slots);
        let at = |p: u16| start + i128::from(slots.cell_at(p, pair).as_ps());
        (open.next_cell..slots.cells()).filter(|&p| at(p) >= from).count() as u64
    }

    fn want_all(&mut self, now: Time) {
        self.queues.destinations().into_iter().for_each(|dst| self.want(now, dst));
    }

    fn on_schd(&mut self, now: Time, from: NodeId, header: &FastpodHeader) {
        let &FastpodHeader::Schd { epoch, stamp, slot, dst, agg, incarnation, heard, given, acks } =
            header
        else {
            return;
        };
        let arbiter = self.fastpod.arbiter_of(from).filter(|(pod, _)| *pod == self.pod);
        let Some((_, arbiter)) = arbiter.filter(|_| epoch >= self.epoch) else { return };
        if epoch > self.epoch {
            self.stats.turn_overs += u64::from(self.epoch > 0);
            (self.epoch, self.arbiter, self.open) = (epoch, arbiter, None);
            self.asking.turn_over(now);
            self.want_all(now);
        }
        let delay = self.timing().schd_delay(arbiter, self.end);
        let offset = i128::from(stamp) + i128::from(delay.as_ps()) - instant(now);
        self.offset = Some(offset);
        if self.fastpod.is_exact() {
            self.stale_at = now.saturating_add(self.fastpod.clock_life);
        }
        let present = self.timing().slot_at(self.end, instant(now) + offset).unwrap_or(0);
        // The slot is less than 2^31 slots away.
        let ahead = i64::from(slot.wrapping_sub(present as u32) as i32);
        let is_fine = u32::from(dst) < self.fastpod.n_hosts
            && dst != self.node
            && usize::from(agg) < routes::aggs(&self.fastpod);
        let grant = present.checked_add_signed(ahead).filter(|_| is_fine);
        let grant = grant.map(|slot| (slot, Grant { dst, agg }));
        self.asking.on_schd(now, Answer { incarnation, heard, given }, grant);
        for &Ack { host, flow } in acks.as_slice() {
            self.queues.on_ack(host, flow, &mut self.out);
        }
    }

    /// Asks anew or gives up where no arbiter answers.
    fn look_for_answers(&mut self, now: Time) {
        if !self.queues.has_waiting() {
            return;
        }
        match self.asking.handle_timeout(now, &self.fastpod) {
            Outcome::Nothing => {}
            Outcome::AskAnew => {
                self.stats.resets += 1;
                self.want_all(now);
            }
            Outcome::GiveUp => self.queues.fail_waiting(&mut self.out),
        }
    }
}

impl Endpoint for FastpodHost {
    type Header = FastpodHeader;
    type Config = Fastpod;

    fn new(config: Arc<Fastpod>, node: NodeId, rng: Rng, now: Time) -> Self {
        let host = node.get() as u16;
        Self {
            node: host,
            pod: config.pod_of(host),
            end: config.end_of(host),
            rng,
            queues: Queues::new(node),
            asking: Asking::new(now, 1),
            receiver: Receiver::default(),
            out: Output::new(node, config.config.control.get() as u16),
            epoch: 0,
            arbiter: 0,
            offset: None,
            stale_at: Time::NEVER,
            open: None,
            ready: VecDeque::new(),
            next: Time::NEVER,
            stats: FastpodStats::default(),
            fastpod: config,
        }
    }

    fn submit(&mut self, now: Time, message: Message) {
        if !self.queues.has_waiting() {
            self.asking.begin(now);
        }
        self.advance(now);
        self.queues.submit(now, &message, &self.fastpod);
        self.want(now, message.dst.get() as u16);
        self.plan(now);
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.queues.cancel(msg);
        self.ready.retain(|(_, packet)| packet.payload.len == 0 || packet.payload.msg != msg);
        self.plan(now);
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpodHeader>) -> Receipt {
        let receipt = match packet.header {
            FastpodHeader::Cell { flow, tx_slot, seq, size } => {
                let packets = self.fastpod.framing().packets(Bytes::new(size));
                let (src, msg) = (packet.src, packet.payload.msg);
                let of = Announcement { src, msg, flow, tx_slot, packets };
                self.receiver.on_cell(now, of, seq, &self.fastpod, &mut self.out)
            }
            FastpodHeader::Schd { .. } => {
                self.on_schd(now, packet.src, &packet.header);
                Receipt::Control
            }
            FastpodHeader::Rts { .. }
            | FastpodHeader::Watchdog { .. }
            | FastpodHeader::CoreRts { .. }
            | FastpodHeader::CoreSchd { .. } => Receipt::Control,
        };
        self.plan(now);
        receipt
    }

    fn has_delivered(&mut self, _now: Time, packet: &Packet<FastpodHeader>) -> bool {
        let FastpodHeader::Cell { flow, .. } = packet.header else { return false };
        self.receiver.flows.has_delivered(packet.src, flow)
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.stats.tell(each);
    }

    fn messages(&self) -> Option<(usize, usize)> {
        Some((self.queues.len(), self.receiver.flows.len()))
    }

    fn limit_arriving(&mut self, per_peer: u32) {
        self.receiver.flows.limit(per_peer);
    }

    fn arriving_excess(&self) -> u64 {
        self.receiver.flows.excess()
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        self.ready.retain(|(_, packet)| packet.dst != peer);
        self.queues.forget_peer(peer, &mut self.out);
        self.receiver.forget_peer(peer, &mut self.out);
        if peer == self.fastpod.arbiter(self.pod, self.arbiter) {
            // It counts its epochs from the start.
            (self.epoch, self.offset, self.open) = (0, None, None);
            self.asking.turn_over(now);
            self.want_all(now);
        }
        self.plan(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.next > now {
            return;
        }
        self.advance(now);
        self.emit(now);
        while let Some(dst) = self.queues.handle_timeout(now, &self.fastpod, &mut self.out) {
            self.stats.timeouts += 1;
            self.asking.begin(now);
            self.want(now, dst);
        }
        self.look_for_answers(now);
        self.emit(now);
        self.plan(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<FastpodHeader>> {
        while let Some((at, packet)) = self.ready.pop_front() {
            if !self.fastpod.is_exact() || now <= at + self.fastpod.late_max {
                return Some(packet);
            }
            self.stats.packets_late += 1;
        }
        None
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    fn poll_timeout(&self) -> Time {
        self.next
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        self.out.next_event()
    }
}
