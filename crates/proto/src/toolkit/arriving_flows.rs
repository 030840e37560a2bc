//! The flows that arrive at a host: lookup by source and number, by slot, and their end.
//!
//! A flow is entered by its first packet, is kept alive by every other, and ends delivered or
//! abandoned. Packets find their flow in constant time regardless of the number of other flows.
//! Searches for unresponsive sources visit every flow, so protocols make them at long intervals.

#[cfg(test)]
mod tests;

use rampmeter_types::collections::{IdMap, SeqSet, Slab};
use rampmeter_types::{Event, MsgId, NodeId, Span, Time};

use super::message_set::MessageSet;
use super::output::BACKLOG;
use super::{FlowNumbers, NumberState, Output};

/// A flow as its sender describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The sender.
    pub src: NodeId,
    /// The sender's number for the message.
    pub msg: MsgId,
    /// Number among the flows of its pair of hosts.
    pub flow: u32,
    /// The sender's slot for it, for answers.
    pub tx_slot: u32,
    /// Number of packets.
    pub packets: u32,
}

impl Announcement {
    /// Returns the flow in `slot` of the receiver.
    pub fn at(&self, slot: u32) -> ArrivingFlowId {
        ArrivingFlowId { slot, flow: self.flow, src: self.src }
    }
}

/// A flow of [`ArrivingFlows`] as timers name it. When they expire its slot may be another flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrivingFlowId {
    slot: u32,
    flow: u32,
    src: NodeId,
}

/// A flow that has been entered and is not over.
#[derive(Clone, Debug)]
pub struct ArrivingFlow<T> {
    /// Description of the flow in its first packet.
    pub announcement: Announcement,
    /// Time of the last packet from its sender.
    pub last_packet_at: Time,
    /// Packets that have arrived.
    pub received: SeqSet,
    /// True if the driver has no space for the message now: none of it should be requested.
    pub is_paused: bool,
    /// The protocol's own part.
    pub state: T,
}

impl<T> ArrivingFlow<T> {
    /// Returns the packets that are missing.
    pub fn remaining(&self) -> u32 {
        self.announcement.packets - self.received.len()
    }
}

/// State of a flow at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStatus {
    /// No packet of it has arrived.
    New,
    /// The flow is in this slot.
    Arriving(u32),
    /// The flow was delivered.
    Delivered,
    /// The flow was aborted, or its number is that of a flow with conflicting parameters. Damaged
    /// packets can make such an entry, which is forgotten if nothing more arrives for it. Until
    /// then neither flow is answered, so that the sender of the other aborts it instead of waiting
    /// forever.
    Abandoned,
}

/// The flows that arrive at a host.
#[derive(Clone, Debug)]
pub struct ArrivingFlows<T> {
    flows: Slab<ArrivingFlow<T>>,
    /// Slots, by source and number.
    slots: IdMap<(u32, u32), u32>,
    cold: Box<Rest>,
    /// Time at which [`ArrivingFlows::sweep`] begins its next search.
    sweep_at: Time,
    /// The slot at which the search for unresponsive flows continues.
    sweep_slot: u32,
}

/// Slots that [`ArrivingFlows::sweep`] looks at in one call: 65 536 flows of each of many peers are
/// searched without a pause that others would notice.
const SWEEP_STEP: usize = 256;

/// State that only the first and the last packet of a flow need. It is boxed to keep the struct of
/// a host small: a simulation of a thousand hosts then has fewer cache misses.
#[derive(Clone, Debug, Default)]
struct Rest {
    numbers: FlowNumbers,
    paused: MessageSet,
    /// Slots, by source and message, if a driver may pause messages. Simulations do without.
    messages: Option<IdMap<(NodeId, MsgId), u32>>,
}

impl<T> Default for ArrivingFlows<T> {
    fn default() -> Self {
        Self {
            flows: Slab::default(),
            slots: IdMap::default(),
            cold: Box::default(),
            sweep_at: Time::ZERO,
            sweep_slot: 0,
        }
    }
}

impl<T> ArrivingFlows<T> {
    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Limits the flows that a source may have in flight from now on. Then messages are found by
    /// their number too. There is no flow yet.
    pub fn limit(&mut self, per_source: u32) {
        self.cold.numbers.limit(per_source);
        self.cold.messages.get_or_insert_default();
    }

    /// Returns the number of new flows that arrived beyond the limit.
    pub fn excess(&self) -> u64 {
        self.cold.numbers.excess()
    }

    /// Returns the state of a flow, which each of its packets describes alike.
    pub fn find(&mut self, announcement: &Announcement) -> FlowStatus {
        match self.find_number(announcement.src, announcement.flow) {
            FlowStatus::Arriving(slot) if self.flows[slot].announcement != *announcement => {
                FlowStatus::Abandoned
            }
            found => found,
        }
    }

    /// Returns the state of a source's flow of that number.
    fn find_number(&mut self, src: NodeId, flow: u32) -> FlowStatus {
        if let Some(&slot) = self.slots.get(&(src.get(), flow)) {
            return FlowStatus::Arriving(slot);
        }
        match self.cold.numbers.state(src, flow) {
            NumberState::New => FlowStatus::New,
            NumberState::Entered => FlowStatus::Delivered,
            NumberState::Abandoned => FlowStatus::Abandoned,
        }
    }

    /// Returns true if a source's flow was delivered.
    pub fn is_delivered(&mut self, src: NodeId, flow: u32) -> bool {
        self.find_number(src, flow) == FlowStatus::Delivered
    }

    /// Returns true if packet `seq` of a source's flow has arrived, or the flow has completed or
    /// failed.
    pub fn has_received(&mut self, src: NodeId, flow: u32, seq: u32) -> bool {
        match self.find_number(src, flow) {
            FlowStatus::New => false,
            FlowStatus::Arriving(slot) => self.flows[slot].received.contains(seq),
            FlowStatus::Delivered | FlowStatus::Abandoned => true,
        }
    }

    /// Returns the same of the flow that has, or had, `slot`.
    pub fn has_received_in(&self, slot: u32, src: NodeId, msg: MsgId, seq: u32) -> bool {
        let flow =
            self.flows.get(slot).filter(|f| f.announcement.src == src && f.announcement.msg == msg);
        flow.is_none_or(|flow| flow.received.contains(seq))
    }

    /// Inserts a new flow and returns its slot. Returns `None` if its number is too far ahead or
    /// its source has too many in flight.
    pub fn insert(&mut self, now: Time, announcement: Announcement, state: T) -> Option<u32> {
        if !self.cold.numbers.insert(announcement.src, announcement.flow) {
            return None;
        }
        let (received, is_paused) =
            (SeqSet::default(), self.cold.paused.contains(announcement.src, announcement.msg));
        let slot = self.flows.insert(ArrivingFlow {
            announcement,
            last_packet_at: now,
            received,
            is_paused,
            state,
        });
        self.slots.insert((announcement.src.get(), announcement.flow), slot);
        if let Some(messages) = &mut self.cold.messages {
            messages.insert((announcement.src, announcement.msg), slot);
        }
        Some(slot)
    }

    /// Counts a new flow as ended without entering it. Returns false if [`Self::insert`] would
    /// insert nothing.
    pub fn refuse(&mut self, announcement: Announcement) -> bool {
        let is_counted = self.cold.numbers.insert(announcement.src, announcement.flow);
        if is_counted {
            self.cold.numbers.complete(announcement.src);
        }
        is_counted
    }

    /// Holds a message back until it is released. Returns its slot if it has been entered. Examines
    /// every flow if [`ArrivingFlows::limit`] has not been called.
    pub fn pause(&mut self, src: NodeId, msg: MsgId) -> Option<u32> {
        self.cold.paused.insert(src, msg);
        self.set_paused(src, msg, true)
    }

    /// Releases a message that was held. Its sender may be unresponsive for `probe_interval` more.
    /// Returns its slot if it was held and has been entered.
    pub fn resume(
        &mut self,
        now: Time,
        src: NodeId,
        msg: MsgId,
        probe_interval: Span,
    ) -> Option<u32> {
        if !self.cold.paused.remove(src, msg) {
            return None;
        }
        let slot = self.set_paused(src, msg, false)?;
        self.flows[slot].last_packet_at = now.saturating_add(probe_interval);
        Some(slot)
    }

    /// Returns true if a message is held back, entered or not.
    pub fn is_paused(&self, src: NodeId, msg: MsgId) -> bool {
        self.cold.paused.contains(src, msg)
    }

    fn set_paused(&mut self, src: NodeId, msg: MsgId, is_held: bool) -> Option<u32> {
        let slot = self.slot_of(src, msg)?;
        self.flows[slot].is_paused = is_held;
        Some(slot)
    }

    /// Returns the slot of a message. Examines every flow if [`ArrivingFlows::limit`] has not been
    /// called.
    pub fn slot_of(&self, src: NodeId, msg: MsgId) -> Option<u32> {
        let is_its = |f: &ArrivingFlow<T>| f.announcement.src == src && f.announcement.msg == msg;
        match &self.cold.messages {
            Some(messages) => messages
                .get(&(src, msg))
                .copied()
                .filter(|slot| self.flows.get(*slot).is_some_and(is_its)),
            None => self.flows.iter().find(|(_, f)| is_its(f)).map(|(slot, _)| slot),
        }
    }

    /// Returns the flow in `slot`.
    pub fn get(&self, slot: u32) -> Option<&ArrivingFlow<T>> {
        self.flows.get(slot)
    }

    /// Returns the flow in `slot`, to change.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut ArrivingFlow<T>> {
        self.flows.get_mut(slot)
    }

    /// Returns a flow with its slot, to change; `None` if it is over.
    pub fn find_mut(&mut self, id: ArrivingFlowId) -> Option<(u32, &mut ArrivingFlow<T>)> {
        let flow = self.flows.get_mut(id.slot)?;
        (flow.announcement.at(id.slot) == id).then_some((id.slot, flow))
    }

    /// Returns true if `slot` has the source's flow for `msg`; if so, notes that its sender is
    /// alive. The slot is free, or another flow's, once the flow has completed or failed.
    pub fn refresh_sender(&mut self, now: Time, slot: u32, src: NodeId, msg: MsgId) -> bool {
        let is_of =
            |f: &&mut ArrivingFlow<T>| f.announcement.src == src && f.announcement.msg == msg;
        let flow = self.flows.get_mut(slot).filter(is_of);
        flow.map(|flow| flow.last_packet_at = now).is_some()
    }

    /// Returns the flows with their slots, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &ArrivingFlow<T>)> {
        self.flows.iter()
    }

    /// Returns the flows with their slots, to change, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut ArrivingFlow<T>)> {
        self.flows.iter_mut()
    }

    /// Removes a flow of which everything has arrived and reports it.
    pub fn deliver<H>(&mut self, slot: u32, out: &mut Output<H>) -> Option<ArrivingFlow<T>> {
        let flow = self.end(slot)?;
        let Announcement { src, msg, .. } = flow.announcement;
        out.push_event(Event::Delivered { src, msg });
        Some(flow)
    }

    /// Removes a flow, which counts as over. For protocols that report its outcome otherwise.
    pub fn end(&mut self, slot: u32) -> Option<ArrivingFlow<T>> {
        let flow = self.remove(slot)?;
        self.cold.numbers.complete(flow.announcement.src);
        Some(flow)
    }

    fn remove(&mut self, slot: u32) -> Option<ArrivingFlow<T>> {
        let flow = self.flows.remove(slot)?;
        self.slots.remove(&(flow.announcement.src.get(), flow.announcement.flow));
        if let Some(messages) = &mut self.cold.messages
            && messages.get(&(flow.announcement.src, flow.announcement.msg)) == Some(&slot)
        {
            messages.remove(&(flow.announcement.src, flow.announcement.msg));
        }
        Some(flow)
    }

    /// Returns true if no packet of a flow has arrived for longer than `forget`, without its being
    /// held. A source that repeats itself for at most 1024 flows at a time may have more. Each of
    /// these may then be unresponsive for proportionally longer.
    pub fn is_unresponsive(&self, flow: &ArrivingFlow<T>, now: Time, forget: Span) -> bool {
        let silence = now.saturating_since(flow.last_packet_at);
        if silence <= forget || flow.is_paused {
            return false;
        }
        let rounds = 1 + self.cold.numbers.in_flight(flow.announcement.src) / BACKLOG;
        silence > forget * u64::from(rounds)
    }

    /// Abandons the flows that [are unresponsive](Self::is_unresponsive) in one of `parts` ranges
    /// of slots. N calls with `parts` N check each flow once. `gone` is called for each abandoned
    /// flow.
    pub fn forget_unresponsive<H>(
        &mut self,
        now: Time,
        forget: Span,
        parts: u32,
        out: &mut Output<H>,
        gone: impl FnMut(u32, &ArrivingFlow<T>),
    ) {
        let n = self.flows.slot_count().div_ceil(parts as usize);
        self.search(n, now, forget, out, gone);
    }

    /// Abandons the flow in `slot`. `None` if there is none.
    pub fn abandon<H>(&mut self, slot: u32, out: &mut Output<H>) -> Option<ArrivingFlow<T>> {
        let flow = self.remove(slot)?;
        let Announcement { src, msg, flow: number, .. } = flow.announcement;
        self.cold.numbers.abandon(src, number);
        out.push_event(Event::Abandoned { src, msg });
        Some(flow)
    }

    /// Abandons a message that the driver refuses, held or not. Returns its flow with its slot;
    /// `None` if it has not been entered.
    pub fn abandon_message<H>(
        &mut self,
        src: NodeId,
        msg: MsgId,
        out: &mut Output<H>,
    ) -> Option<(u32, ArrivingFlow<T>)> {
        self.cold.paused.remove(src, msg);
        let slot = self.slot_of(src, msg)?;
        self.abandon(slot, out).map(|flow| (slot, flow))
    }

    /// Looks at the next `n` slots for unresponsive flows. Returns true if the last slot was among
    /// them.
    fn search<H>(
        &mut self,
        n: usize,
        now: Time,
        forget: Span,
        out: &mut Output<H>,
        mut gone: impl FnMut(u32, &ArrivingFlow<T>),
    ) -> bool {
        let first = self.sweep_slot as usize;
        let end = (first + n).min(self.flows.slot_count());
        for slot in first as u32..end as u32 {
            if self.flows.get(slot).is_some_and(|flow| self.is_unresponsive(flow, now, forget))
                && let Some(flow) = self.abandon(slot, out)
            {
                gone(slot, &flow);
            }
        }
        let is_last = end == self.flows.slot_count();
        self.sweep_slot = if is_last { 0 } else { end as u32 };
        is_last
    }

    /// Abandons unresponsive flows, for receivers without a clock that call it with each packet. It
    /// examines all flows once every `forget`, some of them in a call.
    pub fn sweep<H>(&mut self, now: Time, forget: Span, out: &mut Output<H>) {
        self.sweep_with(now, forget, out, |_, _| {});
    }

    /// The same; `gone` is notified of each flow that is abandoned.
    #[inline]
    pub fn sweep_with<H>(
        &mut self,
        now: Time,
        forget: Span,
        out: &mut Output<H>,
        gone: impl FnMut(u32, &ArrivingFlow<T>),
    ) {
        if now >= self.sweep_at && self.search(SWEEP_STEP, now, forget, out, gone) {
            self.sweep_at = now.saturating_add(forget);
        }
    }

    /// Abandons the flows of a source that has lost its state, and restarts its numbers from zero;
    /// `gone` is notified of each.
    pub fn forget_peer<H>(
        &mut self,
        peer: NodeId,
        out: &mut Output<H>,
        mut gone: impl FnMut(u32, &ArrivingFlow<T>),
    ) {
        let of_peer = self.flows.iter().filter(|(_, f)| f.announcement.src == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        for slot in slots {
            let Some(flow) = self.remove(slot) else { continue };
            out.push_event(Event::Abandoned { src: peer, msg: flow.announcement.msg });
            gone(slot, &flow);
        }
        self.cold.paused.forget_peer(peer);
        self.cold.numbers.reset(peer);
    }
}

impl<T> std::ops::Index<u32> for ArrivingFlows<T> {
    type Output = ArrivingFlow<T>;

    /// Panics if the slot is empty: the caller holds a slot that it was given.
    fn index(&self, slot: u32) -> &ArrivingFlow<T> {
        &self.flows[slot]
    }
}

impl<T> std::ops::IndexMut<u32> for ArrivingFlows<T> {
    fn index_mut(&mut self, slot: u32) -> &mut ArrivingFlow<T> {
        &mut self.flows[slot]
    }
}
