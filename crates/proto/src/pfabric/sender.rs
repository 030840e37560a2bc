//! The source's side: flows start at line rate and slow down only when they starve (§4.3).
//!
//! The problem: short flows should finish first, though a source does not know the flows of others.
//! Rate control takes round trips to find a share, in which a short flow could have finished.
//!
//! The simple way sends everything at line rate and lets ports choose. Each packet carries the
//! remaining packets of its flow as its rank. A port sends the earliest packet of the flow with the
//! lowest rank, and drops the packet with the highest rank. If all flows did so forever, packets
//! of long flows would cross the network only to be dropped at the last hop.
//!
//! The present way is that with as little rate control as suffices. A window starts at one
//! bandwidth-delay product. It grows by a packet with each acknowledgement of new packets, up to a
//! limit. A timeout reduces it to one packet. The timeout is as long as a round trip and full
//! buffers on the path. After several timeouts in a row a flow starves. It then sends probes
//! without payload, until one is answered.
//!
//! The host follows the same order as ports. It sends a packet of the flow with the fewest
//! remaining packets, and of equals the first submitted. The rank is that at the time of sending.
//! So a later packet of a flow has a lower rank, and ports choose by flow to avoid reordering.
//!
//! Hazards: a probe must not be lost like data, or a starving flow would not know when to resume
//! (`a_starving_flow_probes_until_a_probe_is_answered`). With [`ProbePriority::First`] it is
//! answered at once, and the flow sends a packet that may be dropped again. Each acknowledgement
//! carries received packets, so a timeout retransmits only the rest
//! (`a_timeout_does_not_retransmit_selectively_acknowledged_packets`). Long flows over a full
//! network may time out many times in a row; too few attempts fail them.

use rampmeter_types::collections::{HeapPositions, KeyedHeap};
use rampmeter_types::{
    Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Priority, Stage, Time,
};

use super::config::{Pfabric, ProbePriority, TimeoutReaction, Windows};
use super::stats::PfabricStats;
use super::wire::PfabricHeader;
use crate::toolkit::{
    Ack, AckEffect, OutgoingFlow, OutgoingFlows, Output, SendLimit, SlotSet, Stream, Window,
};

/// pFabric's rate control (§4.3). The window grows by one packet with each acknowledgement of new
/// packets. It is one packet after a timeout, and halved after a loss that others overtook.
#[derive(Debug)]
pub(super) struct RateControl {
    cwnd: u32,
    cwnd_max: u32,
    reorder_max: Option<u32>,
}

impl Window for RateControl {
    const LIMIT: SendLimit = SendLimit::Window;

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn reorder_max(&self) -> Option<u32> {
        self.reorder_max
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        if acked.cumulative > 0 {
            self.cwnd = (self.cwnd + 1).min(self.cwnd_max);
        }
    }

    fn on_loss(&mut self, _now: Time, _in_flight: u32) {
        self.cwnd = (self.cwnd / 2).max(1);
    }

    fn on_timeout(&mut self, _now: Time) {
        self.cwnd = 1;
    }
}

type TxFlow = OutgoingFlow<Stream<RateControl>>;

/// Returns the next packet that the window allows, unless the flow only probes.
fn sendable(flow: &TxFlow, pfabric: &Pfabric) -> Option<u32> {
    let probes = flow.is_paused || is_starving(flow, pfabric);
    if probes { None } else { flow.state.sendable() }
}

fn is_starving(flow: &TxFlow, pfabric: &Pfabric) -> bool {
    let timeouts = flow.retry.attempts();
    timeouts >= pfabric.config.starvation_timeouts
        && pfabric.config.starvation_reaction == TimeoutReaction::Probe
}

pub(crate) const WINDOW: &Stage = &Stage {
    name: "window",
    meaning: "As many packets are in flight as the window allows (§4.3).",
};

pub(crate) const PROBE: &Stage = &Stage {
    name: "probe",
    meaning: "The flow starves, and no probe of it has been answered (§4.3).",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[WINDOW, PROBE];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<Stream<RateControl>>,
    /// Flows that may send, by remaining packets; of equals the first submitted is first.
    ready: KeyedHeap<(u32, u32)>,
    positions: HeapPositions,
    /// Flows that could send at the driver's last poll, and cannot any more. The driver polls once
    /// more for them: the order of events at one instant depends on it.
    stale: SlotSet,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        let (ready, positions, stale) =
            (KeyedHeap::default(), HeapPositions::default(), SlotSet::default());
        Self { flows: OutgoingFlows::new(node), ready, positions, stale }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.flows.deadline()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the windows of all flows.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.flows.gauges(each, |flow| {
            [
                ("cwnd_packets", flow.state.window.cwnd().into()),
                ("in_flight_packets", flow.state.in_flight().into()),
            ]
        });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, msg: MsgId, pfabric: &Pfabric) -> Option<Permission> {
        let slot = self.flows.slot(msg)?;
        let flow = &self.flows[slot];
        Some(match sendable(flow, pfabric) {
            Some(_) => Permission::Granted,
            None if is_starving(flow, pfabric) => Permission::Awaited(PROBE),
            None => Permission::Awaited(WINDOW),
        })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.stale.is_empty()
    }

    pub(super) fn submit(&mut self, message: Message, pfabric: &Pfabric) {
        let packets = pfabric.segmentation().packets(message.size);
        let Windows { first: cwnd, max: cwnd_max } = pfabric.windows_to(message.dst);
        let window = RateControl { cwnd, cwnd_max, reorder_max: pfabric.config.duplicate_acks };
        let slot = self.flows.submit(&message, packets, Stream::new(packets, window));
        self.update(slot, pfabric);
    }

    pub(super) fn on_ack(
        &mut self,
        now: Time,
        slot: u32,
        msg: MsgId,
        ack: &Ack,
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
    ) {
        let Some(flow) = self.flows.get_current(slot, msg) else { return };
        if flow.state.on_ack(now, ack).is_none() {
            return;
        }
        if flow.state.is_done() {
            self.drop_flow(slot);
            out.push_event(Event::Completed { msg });
        } else if flow.is_paused {
            // The destination has room, and its notification was lost.
            let dst = flow.dst;
            self.set_paused(now, dst, msg, false, pfabric);
        } else {
            let rto = pfabric.rto_to(flow.dst);
            self.flows.on_response(slot, now + rto);
            self.update(slot, pfabric);
        }
    }

    /// Pauses or resumes a message, by flow control of its destination. Packets in flight when it
    /// pauses are dropped there, so they are retransmitted.
    pub(super) fn set_paused(
        &mut self,
        now: Time,
        dst: NodeId,
        msg: MsgId,
        is_paused: bool,
        pfabric: &Pfabric,
    ) {
        let Some(slot) = self.flows.slot(msg) else { return };
        let flow = &mut self.flows[slot];
        if flow.dst != dst {
            return;
        }
        let pause = if is_paused { pfabric.paused_probe_interval } else { pfabric.rto_to(dst) };
        match (flow.is_paused, is_paused) {
            (false, false) => return,
            (true, true) => return self.flows.on_response(slot, now + pause),
            (false, true) => {}
            (true, false) => flow.state.on_timeout(now),
        }
        flow.is_paused = is_paused;
        flow.retry.reset();
        self.flows.start_timer(slot, now + pause);
        self.update(slot, pfabric);
    }

    /// Cancels a message.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<PfabricHeader>) {
        let Some(slot) = self.flows.slot(msg) else { return };
        self.drop_flow(slot);
        out.cancel(msg, |header| matches!(header, PfabricHeader::Probe { .. }));
    }

    fn drop_flow(&mut self, slot: u32) {
        self.flows.remove(slot);
        self.ready.remove(&mut self.positions, slot);
        self.stale.remove(slot);
    }

    /// Handles a destination that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PfabricHeader>) {
        let Self { flows, ready, positions, stale } = self;
        flows.forget_peer(peer, out, |slot, _| {
            ready.remove(positions, slot);
            stale.remove(slot);
        });
    }

    /// Enters the flow among those that may send, at its place, if it may.
    fn update(&mut self, slot: u32, pfabric: &Pfabric) {
        let flow = &self.flows[slot];
        if sendable(flow, pfabric).is_some() {
            let key = (flow.state.remaining(), flow.msg.get());
            self.ready.set(&mut self.positions, slot, key);
            self.stale.remove(slot);
        } else if self.ready.remove(&mut self.positions, slot).is_some() {
            self.stale.insert(slot);
        }
    }

    /// Returns the next packet of the flow with the fewest remaining, the first submitted of
    /// equals.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        pfabric: &Pfabric,
    ) -> Option<Packet<PfabricHeader>> {
        self.stale.clear();
        let (_, slot) = self.ready.first()?;
        let seq = sendable(&self.flows[slot], pfabric)?;
        if !self.flows[slot].retry.is_running() {
            let rto = pfabric.rto_to(self.flows[slot].dst);
            self.flows.defer_timer(slot, now + rto);
        }
        let flow = &self.flows[slot];
        let header = PfabricHeader::Data {
            flow: flow.flow,
            tx_slot: slot,
            seq,
            remaining: flow.state.remaining(),
            size: flow.size,
        };
        let outgoing = self.flows.message(slot);
        let packet = pfabric.segmentation().data(outgoing, seq, Priority::new(1), header);
        let flow = &mut self.flows[slot];
        flow.state.send(now, seq, packet.wire_bytes);
        if sendable(flow, pfabric).is_none() {
            self.ready.remove(&mut self.positions, slot);
        }
        Some(packet)
    }

    /// Restarts flows without a packet for a timeout with a window of one (§4.3). Those that are
    /// is_paused probe their receivers, at intervals.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
        stats: &mut PfabricStats,
    ) {
        while let Some(slot) = self.flows.next_due_or_probe(now, pfabric.retransmit_gap) {
            self.on_timeout(now, slot, pfabric, out, stats);
        }
    }

    fn on_timeout(
        &mut self,
        now: Time,
        slot: u32,
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
        stats: &mut PfabricStats,
    ) {
        stats.timeouts += 1;
        let flow = &mut self.flows[slot];
        let msg = flow.msg;
        if !flow.retry.attempt(now, &pfabric.attempt_limit) {
            self.drop_flow(slot);
            out.push_event(Event::Failed { msg });
            return;
        }
        flow.state.on_timeout(now);
        let is_held = flow.is_paused;
        if is_held || is_starving(flow, pfabric) {
            stats.probes += 1;
            let probe = PfabricHeader::Probe {
                flow: flow.flow,
                tx_slot: slot,
                remaining: match pfabric.config.probe_priority {
                    ProbePriority::First => 0,
                    ProbePriority::Flow => flow.state.remaining(),
                },
                size: flow.size,
            };
            out.send(flow.dst, msg, probe);
        }
        let flow = &self.flows[slot];
        let pause = if is_held {
            pfabric.paused_probe_interval
        } else {
            pfabric.attempt_limit.interval(pfabric.rto_to(flow.dst), flow.retry.attempts())
        };
        self.flows.start_timer(slot, now + pause);
        self.update(slot, pfabric);
    }
}
