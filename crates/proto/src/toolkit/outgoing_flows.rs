//! The flows that a host sends: lookup by slot and by message, their timers, and their end.
//!
//! Answers name a flow by its slot and its message, as the slot may have another flow by then. The
//! slot freed last is used first. Each flow has one [`RetryTimer`].

use rampmeter_types::collections::{IdMap, Slab};
use rampmeter_types::{Event, Gauge, Message, MsgId, NodeId, Span, Time};

use super::retransmit_queue::RetransmitQueue;
use super::{NextNumber, Output, RetryTimer, Timers};
use rampmeter_types::OutgoingMessage;

/// A flow that is sent.
#[derive(Clone, Debug)]
pub struct OutgoingFlow<T> {
    /// The receiver.
    pub dst: NodeId,
    /// The driver's number for the message.
    pub msg: MsgId,
    /// Number among the flows of its pair of hosts.
    pub flow: u32,
    /// Number of packets.
    pub packets: u32,
    /// Size in bytes.
    pub size: u64,
    /// Retransmission timer.
    pub retry: RetryTimer,
    /// True if flow control of the receiver pauses it.
    pub is_paused: bool,
    /// The protocol's own part.
    pub state: T,
}

/// The flows that a host sends.
#[derive(Clone, Debug)]
pub struct OutgoingFlows<T> {
    node: NodeId,
    flows: Slab<OutgoingFlow<T>>,
    timers: Timers<(u32, MsgId)>,
    /// Time at which the next flow may repeat itself.
    retransmit_at: Time,
    cold: Box<Rest>,
}

/// State that only the start and the end of a flow need. It is boxed to keep the struct of a host
/// small: a simulation of a thousand hosts then has fewer cache misses.
#[derive(Clone, Debug, Default)]
struct Rest {
    /// Slots by message.
    slots: IdMap<u32, u32>,
    numbers: NextNumber,
    retransmits: RetransmitQueue<(u32, MsgId)>,
}

impl<T> OutgoingFlows<T> {
    /// No flow, at host `node`.
    pub fn new(node: NodeId) -> Self {
        let (flows, timers, cold) = (Slab::default(), Timers::default(), Box::default());
        Self { node, flows, timers, retransmit_at: Time::NEVER, cold }
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Enters a message that was submitted and returns its slot.
    pub fn submit(&mut self, message: &Message, packets: u32, state: T) -> u32 {
        let &Message { id: msg, dst, size, .. } = message;
        let (flow, size, retry) = (self.cold.numbers.take(dst), size.get(), RetryTimer::default());
        let is_paused = false;
        let flow = OutgoingFlow { dst, msg, flow, packets, size, retry, is_paused, state };
        let slot = self.flows.insert(flow);
        self.cold.slots.insert(msg.get(), slot);
        slot
    }

    /// Skips numbers of flows to `dst` until the next one is free; at most `max` of them.
    pub fn skip_numbers(&mut self, dst: NodeId, max: u32, is_free: impl Fn(u32) -> bool) {
        let numbers = &mut self.cold.numbers;
        for _ in 0..max {
            if is_free(numbers.peek(dst)) {
                return;
            }
            numbers.take(dst);
        }
    }

    /// Returns the flow in `slot`.
    pub fn get(&self, slot: u32) -> Option<&OutgoingFlow<T>> {
        self.flows.get(slot)
    }

    /// Returns the flow in `slot`, if it is still that of `msg`.
    pub fn get_current(&mut self, slot: u32, msg: MsgId) -> Option<&mut OutgoingFlow<T>> {
        self.flows.get_mut(slot).filter(|f| f.msg == msg)
    }

    /// Returns the flow in `slot`, if it is still that of `msg`. Its peer is alive: attempts are
    /// counted from zero, and the timer is due at `due`, a function of the peer, if it runs.
    #[inline]
    pub fn on_response_from(
        &mut self,
        slot: u32,
        msg: MsgId,
        due: impl FnOnce(NodeId) -> Time,
    ) -> Option<&mut OutgoingFlow<T>> {
        let flow = self.flows.get_mut(slot).filter(|f| f.msg == msg)?;
        flow.retry.on_response((slot, msg), due(flow.dst), &mut self.timers);
        Some(flow)
    }

    /// Returns the slot of a message.
    pub fn slot(&self, msg: MsgId) -> Option<u32> {
        self.cold.slots.get(&msg.get()).copied()
    }

    /// Returns the flows with their slots, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &OutgoingFlow<T>)> {
        self.flows.iter()
    }

    /// Reports gauges of every flow to `each`. `values` returns those of a flow with their names.
    pub fn gauges<const N: usize>(
        &self,
        each: &mut dyn FnMut(Gauge),
        values: impl Fn(&OutgoingFlow<T>) -> [(&'static str, u64); N],
    ) {
        for (_, flow) in self.iter() {
            for (name, value) in values(flow) {
                each(Gauge { name, peer: flow.dst, msg: Some(flow.msg), value });
            }
        }
    }

    /// Returns the source of the packets of the flow in `slot`.
    pub fn message(&self, slot: u32) -> OutgoingMessage {
        let OutgoingFlow { dst, msg, size, .. } = self.flows[slot];
        OutgoingMessage { src: self.node, dst, msg, size }
    }

    /// Removes a flow. Its timer is void.
    pub fn remove(&mut self, slot: u32) -> Option<OutgoingFlow<T>> {
        let flow = self.flows.remove(slot)?;
        self.cold.slots.remove(&flow.msg.get());
        Some(flow)
    }

    /// Removes the flows to a destination that has lost its state, and reports them as failed.
    /// Their numbers restart from zero. `gone` is called for each.
    pub fn forget_peer<H>(
        &mut self,
        peer: NodeId,
        out: &mut Output<H>,
        mut gone: impl FnMut(u32, &OutgoingFlow<T>),
    ) {
        let of_peer = self.flows.iter().filter(|(_, f)| f.dst == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        for slot in slots {
            let Some(flow) = self.remove(slot) else { continue };
            out.push_event(Event::Failed { msg: flow.msg });
            gone(slot, &flow);
        }
        self.cold.numbers.reset(peer);
    }

    /// Starts the timer of a flow, due at `at`. An earlier start is void.
    pub fn start_timer(&mut self, slot: u32, at: Time) {
        let flow = &mut self.flows[slot];
        flow.retry.start((slot, flow.msg), at, &mut self.timers);
    }

    /// Makes the timer of a flow due at `at` if it runs. Attempts stay counted.
    #[inline]
    pub fn postpone_timer(&mut self, slot: u32, at: Time) {
        let flow = &mut self.flows[slot];
        flow.retry.postpone((slot, flow.msg), at, &mut self.timers);
    }

    /// Handles a sign of life of a flow's peer: attempts are counted from zero, and the timer is
    /// due at `at` if it runs.
    #[inline]
    pub fn on_response(&mut self, slot: u32, at: Time) {
        let flow = &mut self.flows[slot];
        flow.retry.on_response((slot, flow.msg), at, &mut self.timers);
    }

    /// Makes the timer of a flow due at `at`, and starts it if it does not run.
    pub fn defer_timer(&mut self, slot: u32, at: Time) {
        let flow = &mut self.flows[slot];
        flow.retry.defer((slot, flow.msg), at, &mut self.timers);
    }

    /// Returns the time at which the next timer expires, or the next flow may repeat itself.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timers.next().min(self.retransmit_at)
    }

    /// Returns the slot of a flow whose timer is due; the timer has stopped.
    #[inline]
    pub fn next_due(&mut self, now: Time) -> Option<u32> {
        if self.timers.next() > now { None } else { self.take_due(now) }
    }

    /// A flow whose timer was due repeats itself when it is due.
    pub fn queue_retransmit(&mut self, slot: u32) {
        let OutgoingFlow { msg, is_paused, .. } = self.flows[slot];
        self.cold.retransmits.push((slot, msg), is_paused);
        self.retransmit_at = self.cold.retransmits.next_at();
    }

    /// Returns the slot of a flow that must repeat itself now: its timer does not run. The next one
    /// follows after `gap` at the earliest, except in a burst. Flows that received something while
    /// they waited have their timers back.
    #[inline]
    pub fn next_retransmit(&mut self, now: Time, gap: Span) -> Option<u32> {
        if self.retransmit_at > now { None } else { self.take_retransmit(now, gap) }
    }

    fn take_retransmit(&mut self, now: Time, gap: Span) -> Option<u32> {
        let mut found = None;
        while let Some((slot, msg)) = self.cold.retransmits.pop(now) {
            let Some(flow) = self.flows.get_mut(slot).filter(|f| f.msg == msg) else { continue };
            if flow.retry.is_running() {
                continue;
            }
            if flow.retry.due() > now {
                let at = flow.retry.due();
                self.start_timer(slot, at);
                continue;
            }
            let is_held = flow.is_paused;
            self.cold.retransmits.count(now, gap, is_held);
            found = Some(slot);
            break;
        }
        self.retransmit_at = self.cold.retransmits.next_at();
        found
    }

    /// Returns the slot of a flow whose timer is due, as [`Self::next_due`] has it. Flows that are
    /// held probe their receivers, and have their turns at intervals.
    pub fn next_due_or_probe(&mut self, now: Time, gap: Span) -> Option<u32> {
        while let Some(slot) = self.next_due(now) {
            if !self.flows[slot].is_paused {
                return Some(slot);
            }
            self.queue_retransmit(slot);
        }
        self.next_retransmit(now, gap)
    }

    /// No flow repeats itself before `at`.
    pub fn postpone_retransmits(&mut self, at: Time) {
        self.cold.retransmits.postpone(at);
        self.retransmit_at = self.cold.retransmits.next_at();
    }

    fn take_due(&mut self, now: Time) -> Option<u32> {
        while let Some((at, (slot, msg))) = self.timers.pop_due(now) {
            let flow = self.flows.get_mut(slot).filter(|f| f.msg == msg);
            if flow.is_some_and(|f| f.retry.expires((slot, msg), at, now, &mut self.timers)) {
                return Some(slot);
            }
        }
        None
    }
}

impl<T> std::ops::Index<u32> for OutgoingFlows<T> {
    type Output = OutgoingFlow<T>;

    /// Panics if the slot is empty: the caller holds a slot that it was given.
    fn index(&self, slot: u32) -> &OutgoingFlow<T> {
        &self.flows[slot]
    }
}

impl<T> std::ops::IndexMut<u32> for OutgoingFlows<T> {
    fn index_mut(&mut self, slot: u32) -> &mut OutgoingFlow<T> {
        &mut self.flows[slot]
    }
}
