//! Flows of a source: packets sent, acknowledged and lost. The timetable or the epochs decide when
//! packets may be sent.

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, SeqSet};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Event, Message, MsgId, NodeId, Packet, Priority, Time};

use super::config::Fastpass;
use super::wire::FastpassHeader;
use crate::toolkit::{OutgoingFlow, OutgoingFlows, Output};

/// A flow's own part.
#[derive(Debug, Default)]
pub(super) struct Progress {
    acked: SeqSet,
    /// The next packet that was never sent, and those that were lost, latest first.
    next: u32,
    lost: Vec<u32>,
}

/// A flow. Its timer, which looks for losses, runs once no packet waits to be sent.
pub(super) type TxFlow = OutgoingFlow<Progress>;

impl TxFlow {
    /// Returns the packets that wait to be sent.
    pub(super) fn unsent(&self) -> u32 {
        self.packets - self.state.next + self.state.lost.len() as u32
    }

    /// Returns the packets that have not been acknowledged.
    pub(super) fn remaining(&self) -> u32 {
        self.packets - self.state.acked.len()
    }
}

/// The flows of one source.
#[derive(Debug)]
pub(super) struct Flows {
    flows: OutgoingFlows<Progress>,
    /// Flows with packets to send, by destination: those with the fewest remaining packets first.
    queued: IdMap<u32, KeyedHeap<(u32, MsgId)>>,
    positions: HeapPositions,
}

/// A flow that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedFlow {
    pub(super) dst: NodeId,
    /// Packets that still waited to be sent.
    pub(super) unsent: u32,
}

/// Change of a flow by acknowledgement or of a search for losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowChange {
    Unchanged,
    Ended(EndedFlow),
    /// Number of packets that must be retransmitted to this host.
    Lost(NodeId, u32),
}

/// Maximum number of doublings of a flow's timeout.
const BACKOFF_MAX: u32 = 6;

impl Flows {
    pub(super) fn new(node: NodeId) -> Self {
        let (flows, queued) = (OutgoingFlows::new(node), IdMap::default());
        Self { flows, queued, positions: HeapPositions::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns the slot of a message.
    pub(super) fn slot(&self, msg: MsgId) -> Option<u32> {
        self.flows.slot(msg)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&TxFlow> {
        self.flows.get(slot)
    }

    /// Returns the flow to `dst` with the fewest packets to send; of several such flows the
    /// earliest.
    pub(super) fn next_flow_to(&self, dst: NodeId) -> Option<u32> {
        let (_, slot) = self.queued.get(&dst.get())?.first()?;
        Some(slot)
    }

    /// The flow in `slot` has other packets to send, or others remain.
    fn rank(&mut self, slot: u32) {
        let flow = &self.flows[slot];
        let queue = self.queued.entry(flow.dst.get()).or_default();
        if flow.unsent() > 0 {
            queue.set(&mut self.positions, slot, (flow.remaining(), flow.msg));
        } else {
            queue.remove(&mut self.positions, slot);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &TxFlow)> {
        self.flows.iter()
    }

    pub(super) fn submit(&mut self, message: &Message, fastpass: &Fastpass) -> u32 {
        let packets = fastpass.segmentation().packets(message.size);
        let slot = self.flows.submit(message, packets, Progress::default());
        self.rank(slot);
        slot
    }

    /// Returns the next packet of a flow that has one to send.
    pub(super) fn send(
        &mut self,
        now: Time,
        slot: u32,
        path: Option<u16>,
        fastpass: &Fastpass,
    ) -> Option<Packet<FastpassHeader>> {
        if self.flows.get(slot)?.unsent() == 0 {
            return None;
        }
        let flow = &mut self.flows[slot];
        let state = &mut flow.state;
        let seq = state.lost.pop().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        let header = FastpassHeader::Data { flow: flow.flow, tx_slot: slot, seq, size: flow.size };
        if flow.unsent() == 0 {
            // Waits longer after each attempt: a path that has failed may be routed to for some
            // time.
            let wait = match flow.is_paused {
                true => fastpass.paused_probe_interval,
                false => fastpass.rto * (1 << flow.retry.attempts().min(BACKOFF_MAX)),
            };
            self.flows.defer_timer(slot, now + wait);
            self.rank(slot);
        }
        let outgoing = self.flows.message(slot);
        let mut packet = fastpass.segmentation().data(outgoing, seq, Priority::new(1), header);
        if let Some(path) = path {
            packet.path = path;
            packet.marks = packet.marks.union(Marks::ROUTED);
        }
        Some(packet)
    }

    pub(super) fn on_ack(
        &mut self,
        msg: MsgId,
        slot: u32,
        cumulative: u32,
        seq: u32,
        out: &mut Output<FastpassHeader>,
    ) -> FlowChange {
        let flow = self.flows.get_current(slot, msg);
        let Some(flow) = flow.filter(|f| cumulative <= f.packets) else {
            return FlowChange::Unchanged;
        };
        flow.retry.reset();
        flow.state.acked.insert_below(cumulative);
        if seq < flow.packets {
            flow.state.acked.insert(seq);
        }
        if flow.remaining() > 0 {
            if flow.is_paused && flow.unsent() == 0 {
                // The destination has room, and its notification was lost.
                flow.is_paused = false;
                return self.mark_lost(slot);
            }
            self.rank(slot);
            return FlowChange::Unchanged;
        }
        out.push_event(Event::Completed { msg });
        self.remove(slot).map_or(FlowChange::Unchanged, FlowChange::Ended)
    }

    fn remove(&mut self, slot: u32) -> Option<EndedFlow> {
        let flow = self.flows.remove(slot)?;
        dequeue(&mut self.queued, &mut self.positions, slot, flow.dst);
        Some(EndedFlow { dst: flow.dst, unsent: flow.unsent() })
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    /// Looks for packets that were sent long ago and not acknowledged, in the next flow that is
    /// due. `None` if no other is.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) -> Option<(u32, FlowChange)> {
        let slot = self.flows.next_due_or_probe(now, fastpass.probe_gap)?;
        let flow = &mut self.flows[slot];
        if flow.unsent() > 0 {
            // The last of those that wait will check.
            return Some((slot, FlowChange::Unchanged));
        }
        if !flow.retry.attempt(now, &fastpass.attempt_limit) {
            out.push_event(Event::Failed { msg: flow.msg });
            return Some((
                slot,
                self.remove(slot).map_or(FlowChange::Unchanged, FlowChange::Ended),
            ));
        }
        Some((slot, self.mark_lost(slot)))
    }

    /// Counts all packets that have not been acknowledged as lost; of a paused flow only one.
    fn mark_lost(&mut self, slot: u32) -> FlowChange {
        let flow = &mut self.flows[slot];
        let (is_paused, state) = (flow.is_paused, &mut flow.state);
        let from = if is_paused { state.acked.first_missing() } else { 0 };
        let most = if is_paused { 1 } else { flow.packets as usize };
        let missing = (from..flow.packets).filter(|&seq| !state.acked.contains(seq)).take(most);
        state.lost.extend(missing);
        state.lost.reverse();
        let lost = FlowChange::Lost(flow.dst, state.lost.len() as u32);
        self.rank(slot);
        lost
    }

    /// Pauses or resumes a flow, by flow control of its destination. Packets in flight when it
    /// pauses are dropped there, so they are retransmitted. Returns the flow's slot, the packets
    /// that no longer wait, and those that resume.
    pub(super) fn set_paused(
        &mut self,
        now: Time,
        dst: NodeId,
        msg: MsgId,
        is_paused: bool,
        fastpass: &Fastpass,
    ) -> Option<(u32, EndedFlow, FlowChange)> {
        let slot = self.flows.slot(msg)?;
        let flow = &mut self.flows[slot];
        if flow.dst != dst {
            return None;
        }
        let interval = if is_paused { fastpass.paused_probe_interval } else { fastpass.rto };
        if flow.is_paused == is_paused {
            if is_paused {
                self.flows.on_response(slot, now + interval);
            }
            return None;
        }
        let unsent = flow.unsent();
        flow.is_paused = is_paused;
        (flow.state.next, flow.state.lost) = (flow.packets, Vec::new());
        flow.retry.reset();
        self.flows.start_timer(slot, now + interval);
        let again = match is_paused {
            true => {
                self.rank(slot);
                FlowChange::Unchanged
            }
            false => self.mark_lost(slot),
        };
        Some((slot, EndedFlow { dst, unsent }, again))
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId) -> Option<EndedFlow> {
        self.remove(self.flows.slot(msg)?)
    }

    /// Handles a destination that has lost its state. Returns how many packets waited to be sent
    /// there.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<FastpassHeader>) -> u32 {
        let mut unsent = 0;
        let Self { flows, queued, positions } = self;
        flows.forget_peer(peer, out, |slot, flow| {
            unsent += flow.unsent();
            dequeue(queued, positions, slot, peer);
        });
        unsent
    }

    /// Fails every flow with packets to send.
    pub(super) fn fail_unsent(&mut self, out: &mut Output<FastpassHeader>) -> Vec<EndedFlow> {
        let waiting = self.flows.iter().filter(|(_, f)| f.unsent() > 0);
        let waiting: Vec<(u32, MsgId)> = waiting.map(|(slot, f)| (slot, f.msg)).collect();
        let fail = |(slot, msg): (u32, MsgId)| {
            out.push_event(Event::Failed { msg });
            self.remove(slot)
        };
        waiting.into_iter().filter_map(fail).collect()
    }
}

fn dequeue(
    waiting: &mut IdMap<u32, KeyedHeap<(u32, MsgId)>>,
    places: &mut HeapPositions,
    slot: u32,
    dst: NodeId,
) {
    if let Some(queue) = waiting.get_mut(&dst.get()) {
        queue.remove(places, slot);
    }
}
